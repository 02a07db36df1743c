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
    KilnDType dtype;  /* as declared; floats are kept in the store's type */
    KilnShape shape;
    int64_t count; /* elements */
    bool trained;
    bool frozen; /* no gradient, no update now; of statistics: they are used as they are */
    KilnInit init;
    int64_t zero_first, zero_count; /* elements that begin as 0 whatever init says */
    int64_t offset;   /* trained: elements in the flat buffers; else in statistics, counters */
    void *data;       /* NULL before the store is sealed */
    void *gradient;   /* trained only */
    KilnTensor *leaf; /* of the step it was last used in; see kiln_param_tensor */
    int leaf_id;
};

struct KilnParams {
    uint64_t seed;
    KilnArena arena;   /* parameters and their names */
    KilnParam **items; /* in order of declaration */
    size_t count, capacity;
    int64_t size;                     /* trained elements */
    int64_t n_statistics, n_counters; /* elements of float and i64 buffers, gaps included */
    KilnDType dtype;                  /* of all that is float: f32 or bf16 */
    void *values, *gradients;         /* [size] */
    void *statistics;                 /* float buffers */
    int64_t *counters;                /* i64 buffers */
    bool sealed;
    bool scope_too_long; /* a scope's path did not fit; reported by the next declaration */
};

/* What a batch's statistics weigh in the running ones, as in PyTorch. */
#define KILN_BATCH_NORM_MOMENTUM 0.1

/* Fill `data` with the initial value of a parameter or buffer of floats. */
void kiln_param_draw(const KilnParam *param, uint64_t seed, float *data);

/* The two halves of kiln_params_seal: the flat buffers, all zero and not yet in
 * memory, so that a step can be recorded and planned; and the initial values. */
KILN_NODISCARD KilnStatus kiln_params_place(KilnParams *params, KilnError *err);
KILN_NODISCARD KilnStatus kiln_params_draw(KilnParams *params, KilnError *err);
/* Give one its initial value again. */
KILN_NODISCARD KilnStatus kiln_param_redraw(KilnParam *param, KilnError *err);

/* All trained values, and all gradients, as one variable leaf [size] each, without
 * a gradient of its own: what clipping and an optimizer's update get.
 * The operations recorded before them read and write the same bytes under the
 * parameters' own leaves; execution follows the order of recording. */
KilnTensor *kiln_params_flat_values(KilnParams *params, KilnGraph *graph);
KilnTensor *kiln_params_flat_gradients(KilnParams *params, KilnGraph *graph);
/* All float buffers as one variable leaf, NULL when there are none. Each begins at a
 * multiple of 64 bytes; what lies between them is zero. */
KilnTensor *kiln_params_flat_statistics(KilnParams *params, KilnGraph *graph);

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
