/* What a checkpoint keeps of a component that has state: callbacks, schedulers. */
#ifndef KILN_STATE_H
#define KILN_STATE_H

#include "kiln/base.h"

/* Named numbers and texts; written into state.json under the component's path. */
typedef struct KilnState KilnState;
KILN_API void kiln_state_set_i64(KilnState *state, const char *name, int64_t value);
KILN_API void kiln_state_set_f64(KilnState *state, const char *name,
                                 double value); /* exact; NaN and infinities too */
KILN_API void kiln_state_set_str(KilnState *state, const char *name,
                                 const char *value); /* NULL allowed */
/* False, and the output untouched, when the name is absent or of another type. */
KILN_API bool kiln_state_get_i64(const KilnState *state, const char *name, int64_t *ret);
KILN_API bool kiln_state_get_f64(const KilnState *state, const char *name, double *ret);
KILN_API bool kiln_state_get_str(const KilnState *state, const char *name, const char **ret);

#endif
