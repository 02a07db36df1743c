/* The state of a component in a checkpoint: callbacks, modules, schedulers, loggers. */
#ifndef KILN_STATE_H
#define KILN_STATE_H

#include "kiln/tensor.h"

/* Named numbers and texts, written into state.json under the component's path; and tensors, written
 * into trainer.safetensors as state.<path>.<name> (not those of loggers). */
typedef struct KilnState KilnState;
KILN_API void kiln_state_set_i64(KilnState *state, const char *name, int64_t value);
KILN_API void kiln_state_set_f64(KilnState *state, const char *name,
                                 double value); /* exact, including NaN and infinity */
KILN_API void kiln_state_set_str(KilnState *state, const char *name,
                                 const char *value); /* NULL allowed */
/* Copies `data`, which is in plain (row-major) order. */
KILN_API void kiln_state_set_tensor(KilnState *state, const char *name, KilnDType dtype,
                                    const KilnShape *shape, const void *data);
/* False, with the output unchanged, if the name is absent or has another type. */
KILN_API bool kiln_state_get_i64(const KilnState *state, const char *name, int64_t *ret);
KILN_API bool kiln_state_get_f64(const KilnState *state, const char *name, double *ret);
KILN_API bool kiln_state_get_str(const KilnState *state, const char *name, const char **ret);
/* The type and shape of a tensor; then copy its elements, which must have that type and shape, to
 * `data`. */
KILN_API bool kiln_state_find_tensor(const KilnState *state, const char *name, KilnDType *ret_dtype,
                                     KilnShape *ret_shape);
KILN_API bool kiln_state_get_tensor(const KilnState *state, const char *name, KilnDType dtype,
                                    const KilnShape *shape, void *data);

#endif
