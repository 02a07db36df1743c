/* KilnState: the numbers, texts and tensors that a checkpoint holds for a component. */
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
    const char *path;         /* of the component in the config; borrowed */
    json_t *object;           /* numbers and texts; owned by the creator of the state */
    KilnStateTensor *tensors; /* set by the component; freed by kiln_state_release */
    size_t n_tensors, tensors_capacity;
    const KilnSafetensors *file; /* tensors are read from here; NULL: none. Borrowed */
    bool failed;                 /* memory ran out while a value was set */
};
/* Free the tensors. */
void kiln_state_release(KilnState *state);

/* A double as JSON, exactly; NaN and infinities, which JSON lacks, as {"f64": "nan"}. NULL when
 * memory runs out. */
json_t *kiln_json_f64(double value);
/* Read it back; false, with *ret unchanged, when `value` is no such double. */
bool kiln_json_get_f64(const json_t *value, double *ret);

#endif
