/* What a sample of a datamodule in Python is. */
#ifndef KILN_PYTHON_PYTHON_SPEC_H
#define KILN_PYTHON_PYTHON_SPEC_H

#include <jansson.h>

#include "base/arena.h"
#include "kiln/data.h"

/* Fill the spec with what data.py said of the samples (`features` and `classes` of its reply); it
 * lives in the arena. */
KILN_NODISCARD KilnStatus kiln_python_set_spec(KilnDataSpec *spec, KilnArena *arena,
                                               const json_t *opened, KilnError *err);

#endif
