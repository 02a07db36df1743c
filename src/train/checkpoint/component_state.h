/* Named numbers and texts as JSON: what a checkpoint keeps for a component. */
#ifndef KILN_TRAIN_CHECKPOINT_COMPONENT_STATE_H
#define KILN_TRAIN_CHECKPOINT_COMPONENT_STATE_H

#include <jansson.h>

#include "kiln/trainer.h"
#include "tensor/safetensors.h"

typedef struct KilnStateTensor {
    char *name; /* state.<path>.<name> */
    KilnDType dtype;
    KilnShape shape;
    void *data;
} KilnStateTensor;

struct KilnState {
    const char *path; /* of the component; borrowed */
    json_t *object;   /* owned by whoever made the state */
    /* What was set, to be released with kiln_state_release; */
    KilnStateTensor *tensors;
    size_t n_tensors;
    /* and where tensors are got from; NULL: there are none. Borrowed. */
    const KilnSafetensors *file;
    bool failed; /* a value could not be kept for lack of memory */
};
/* Free the tensors that were set. */
void kiln_state_release(KilnState *state);

/* A double that reads back as the same one; NaN and infinities, which JSON
 * lacks, as {"f64": "nan"}. NULL when memory is out. */
json_t *kiln_json_f64(double value);
/* False, and `ret` untouched, when `value` is no such thing. */
bool kiln_json_get_f64(const json_t *value, double *ret);

#endif
