/* Inside of the parameter store, and what training does with a whole store:
 * flat leaves for the optimizer, comparison with a saved state dict. */
#ifndef KILN_NN_PARAMS_H
#define KILN_NN_PARAMS_H

#include "base/arena.h"
#include "kiln/nn.h"

struct KilnParam {
    const KilnParams *store;
    const char *name; /* full name, in the store's arena */
    uint64_t hash;    /* of the name */
    size_t index;     /* in order of declaration */
    KilnDType dtype;
    KilnShape shape;
    int64_t count; /* elements */
    bool trained;
    KilnInit init;
    int64_t offset;   /* trained: elements in the flat buffers; else bytes in `buffers` */
    void *data;       /* NULL before the store is sealed */
    float *gradient;  /* trained only */
    KilnTensor *leaf; /* of the step it was last used in; see kiln_param_tensor */
    int leaf_id;
};

struct KilnParams {
    uint64_t seed;
    KilnArena arena;   /* parameters and their names */
    KilnParam **items; /* in order of declaration */
    size_t count, capacity;
    int64_t size; /* trained elements */
    size_t buffer_bytes;
    float *values, *gradients; /* [size] */
    void *buffers;
    bool sealed;
    bool scope_too_long; /* a scope's path did not fit; reported by the next declaration */
};

/* Fill a parameter or buffer with its initial value. Its data must be there. */
void kiln_param_draw(KilnParam *param, uint64_t seed);

/* The two halves of kiln_params_seal: the flat buffers, all zero and not yet in
 * memory, so that a step can be recorded and planned; and the initial values. */
KILN_NODISCARD KilnStatus kiln_params_place(KilnParams *params, KilnError *err);
void kiln_params_draw(KilnParams *params);

/* All trained values as one variable leaf f32 [size] without a gradient of its
 * own, and all gradients as one input leaf: what an optimizer's update gets.
 * The operations recorded before them read and write the same bytes under the
 * parameters' own leaves; execution follows the order of recording. */
KilnTensor *kiln_params_flat_values(KilnParams *params, KilnGraph *graph);
KilnTensor *kiln_params_flat_gradients(KilnParams *params, KilnGraph *graph);

/* Name and form of one tensor of a saved state dict. */
typedef struct KilnParamForm {
    const char *name; /* borrowed */
    KilnDType dtype;
    KilnShape shape;
} KilnParamForm;

/* Check that a saved state dict fits: every name, type and shape agrees, in
 * both directions. Otherwise KILN_E_FORMAT, with a message that names `source`
 * and what is missing, unexpected or of another form. */
KILN_NODISCARD KilnStatus kiln_params_compare(const KilnParams *params, const KilnParamForm *forms,
                                              size_t n, const char *source, KilnError *err);

#endif
