/* Makes a graph smaller that shows a difference. */
#ifndef KILN_TESTS_FUZZ_GRAPHS_SHRINK_H
#define KILN_TESTS_FUZZ_GRAPHS_SHRINK_H

#include "tests/fuzz/graphs/check.h"

/* Changes the graph and the way of running it to the smallest that still differ, and the
 * difference to theirs. */
void shrink(Spec *spec, Difference *difference);

#endif
