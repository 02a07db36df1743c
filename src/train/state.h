/* Named numbers and texts as JSON: what a checkpoint keeps for a component. */
#ifndef KILN_TRAIN_STATE_H
#define KILN_TRAIN_STATE_H

#include <jansson.h>

#include "kiln/trainer.h"

struct KilnState {
    json_t *object; /* owned */
    bool failed;    /* a value could not be kept for lack of memory */
};

/* A double that reads back as the same one; NaN and infinities, which JSON
 * lacks, as {"f64": "nan"}. NULL when memory is out. */
json_t *kiln_json_f64(double value);
/* False, and `ret` untouched, when `value` is no such thing. */
bool kiln_json_get_f64(const json_t *value, double *ret);

#endif
