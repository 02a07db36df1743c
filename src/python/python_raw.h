/* A user's samples for a datamodule in Python: the parameters of its preprocess as fields, and
 * values for a call. */
#ifndef KILN_PYTHON_PYTHON_RAW_H
#define KILN_PYTHON_PYTHON_RAW_H

#include "python/python_class.h"

/* Set the raw fields of a class, from what describe.py said; they live in the arena. Memory that is
 * out shows in the arena. */
void kiln_python_set_raw_fields(KilnPythonClass *class, KilnArena *arena, const json_t *described);

/* The values of a sample, one for each field, by their names: those that are there, in the shared
 * memory. NULL: memory is out. With the lock held. */
json_t *kiln_python_raw_values(KilnPythonHost *host, const KilnPythonClass *class,
                               const KilnRawValue *values);

#endif
