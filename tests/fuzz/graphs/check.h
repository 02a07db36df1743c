/* Compares what a graph computes on the CPU's backend with the reference. */
#ifndef KILN_TESTS_FUZZ_GRAPHS_CHECK_H
#define KILN_TESTS_FUZZ_GRAPHS_CHECK_H

#include "tests/fuzz/graphs/execute.h"

typedef struct Difference {
    char text[256];
    Way way; /* of running, in which it shows */
} Difference;

/* How many graphs were compared how. */
typedef struct CheckCounts {
    unsigned long close;    /* within a fixed multiple of the rounding error */
    unsigned long measured; /* within what noise as large as rounding errors changes, too */
    unsigned long extreme;  /* overflow or underflow on the way: at most infinities compared */
    unsigned long refused;  /* both backends gave an error */
} CheckCounts;
extern CheckCounts check_counts;

/* The ways in which a graph of this seed is run. Returns how many. */
int check_ways(uint64_t seed, Way *ret);
enum { CHECK_WAYS = 3 };

/* Whether one of the ways gives anything else than the reference. */
bool check_differs(const Spec *spec, const Way *ways, int n, Difference *ret);
void check_print_way(const Way *way, FILE *file);

#endif
