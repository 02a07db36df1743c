/* Internals of the parameter store, and operations of training on a whole store: flat leaves for
 * the optimizer, and comparison with a saved state dict. */
#ifndef KILN_NN_PARAMS_H
#define KILN_NN_PARAMS_H

#include "base/arena.h"
#include "kiln/nn.h"

struct KilnParam {
    const KilnParams *store;
    const char *name; /* full name, in the store's arena */
    uint64_t hash;    /* of the name */
    size_t index;     /* in order of declaration */
    KilnDType dtype;  /* as declared; floats are stored in the store's type */
    KilnShape shape;
    int64_t count; /* elements */
    bool trained;
    bool frozen; /* no gradient or update now; statistics: used unchanged */
    KilnInit init;
    int64_t zero_first, zero_count; /* elements that start as 0, whatever init says */
    int64_t offset;   /* index in the flat buffers if trained, else in statistics or counters */
    void *data;       /* NULL before the store is sealed */
    void *gradient;   /* trained only */
    KilnTensor *leaf; /* of the step that last used it; see kiln_param_tensor */
    int leaf_id;
};

struct KilnParams {
    uint64_t seed;
    KilnArena arena;   /* parameters and their names */
    KilnParam **items; /* in order of declaration */
    size_t count, capacity;
    int64_t size;                     /* trained elements */
    int64_t n_statistics, n_counters; /* elements of float and i64 buffers, gaps included */
    KilnDType dtype;                  /* of all floats: f32 or bf16 */
    void *values, *gradients;         /* [size] */
    void *statistics;                 /* float buffers */
    int64_t *counters;                /* i64 buffers */
    bool sealed;
    bool scope_too_long; /* a scope's path was too long; the next declaration reports it */
};

/* Weight of a batch's statistics in the running ones, as in PyTorch. */
#define KILN_BATCH_NORM_MOMENTUM 0.1

/* Fills `data` with the initial value of a parameter or float buffer. */
void kiln_param_draw(const KilnParam *param, uint64_t seed, float *data);

/* The two halves of kiln_params_seal: the flat buffers, zero and not yet backed by memory, so that
 * a step can be recorded and planned; then the initial values. */
KILN_NODISCARD KilnStatus kiln_params_allocate(KilnParams *params, KilnError *err);
KILN_NODISCARD KilnStatus kiln_params_draw(KilnParams *params, KilnError *err);
/* Resets a parameter to its initial value. */
KILN_NODISCARD KilnStatus kiln_param_redraw(KilnParam *param, KilnError *err);

/* All trained values, and all gradients, each as one variable leaf [size] without its own gradient:
 * inputs of clipping and of an optimizer's update. Operations recorded before them read and write
 * the same bytes under the parameters' own leaves; execution follows the recorded order. */
KilnTensor *kiln_params_flat_values(KilnParams *params, KilnGraph *graph);
KilnTensor *kiln_params_flat_gradients(KilnParams *params, KilnGraph *graph);
/* All float buffers as one variable leaf; NULL if there are none. Each starts at a multiple of 64
 * bytes; the gaps are zero. */
KilnTensor *kiln_params_flat_statistics(KilnParams *params, KilnGraph *graph);

/* Name, type and shape of one tensor in a saved state dict. */
typedef struct KilnParamForm {
    const char *name; /* borrowed */
    KilnDType dtype;
    KilnShape shape;
} KilnParamForm;

/* Checks that a saved state dict matches: every name, type and shape, in both directions. Otherwise
 * KILN_E_FORMAT, with a message that names `source` and what is missing, unexpected or different.
 */
KILN_NODISCARD KilnStatus kiln_params_compare(const KilnParams *params, const KilnParamForm *forms,
                                              size_t n, const char *source, KilnError *err);

#endif
