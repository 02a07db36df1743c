/* Internals of the parameter store, and operations of training on a whole store: flat leaves for
 * the optimizer, and comparison with a saved state dict. */
#ifndef KILN_NN_PARAMS_H
#define KILN_NN_PARAMS_H

#include "base/arena.h"
#include "graph/buffer.h"
#include "kiln/nn.h"

/* kiln_param_foreign. */
typedef struct KilnForeignName {
    const char *name;
    KilnForeignTensor part;
    struct KilnForeignName *next; /* in order of declaration */
} KilnForeignName;

/* Low-rank adapters of a linear layer's weight W: x (W + scale B A)^T (nn/lora.h). */
typedef struct KilnLora {
    KilnParam *a, *b; /* [r, in], [out, r] */
    double scale, dropout;
    bool used; /* a recorded step has used it */
} KilnLora;

struct KilnParam {
    KilnParams *store;
    const char *name; /* full name, in the store's arena */
    uint64_t hash;    /* of the name */
    size_t index;     /* in order of declaration */
    KilnDType dtype;  /* as declared; floats are stored in the store's type */
    KilnShape shape;
    int64_t count; /* elements */
    bool trained;
    bool frozen;     /* no gradient or update now; statistics: used unchanged */
    bool fixed;      /* a parameter that never trains (nn/lora.h); then `trained` is false */
    bool linear;     /* the weight of a linear layer, which adapters can change */
    bool is_adapter; /* A or B of a KilnLora */
    KilnLora *lora;  /* of a weight; NULL: none */
    bool head;       /* of the layer whose rows are the classes of the data */
    KilnInit init;
    double eps, momentum;           /* of a running statistic: as KilnBatchNorm */
    int64_t zero_first, zero_count; /* elements that start as 0, whatever init says */
    int64_t offset; /* index in the flat buffers if trained, else in fixed values, statistics or
                     * counters */
    KilnForeignName *foreign, **foreign_end;
    int64_t sparse_rows; /* index in the store's sparse rows; -1: it has none */
    KilnTensor *leaf;    /* of the step that last used it; see kiln_param_tensor */
    int leaf_id;
};

struct KilnParams {
    uint64_t seed;
    KilnArena arena;   /* parameters and their names */
    KilnParam **items; /* in order of declaration */
    size_t count, capacity;
    int64_t size;                     /* trained elements */
    int64_t n_statistics, n_counters; /* elements of float and i64 buffers, gaps included */
    int64_t n_fixed;                  /* elements of fixed parameters, gaps included */
    int64_t n_sparse_rows;            /* words of all lists of sparse rows */
    KilnDType dtype;                  /* of all floats: f32 or bf16 */
    KilnBuffer *values, *gradients;   /* [size] */
    KilnBuffer *fixed;                /* [n_fixed] */
    KilnBuffer *statistics;           /* float buffers */
    KilnBuffer *counters;             /* i64 buffers */
    KilnBuffer *sparse_rows;          /* i32, as graph/sparse_rows.h says; zero until a step runs */
    KilnDropoutState lora_dropout;    /* of adapters in the step being recorded; key NULL: none */
    int threads;                      /* that draw initial values: the backend's */
    bool allocated;
    bool scope_too_long; /* a scope's path was too long; the next declaration reports it */
};

/* Where the parameter or buffer is, where its gradient is (trained only), and its list of sparse
 * rows; nowhere before the store is allocated. */
KilnLocation kiln_param_location(const KilnParam *param);
KilnLocation kiln_param_gradient_location(const KilnParam *param);
KilnLocation kiln_param_sparse_rows_location(const KilnParam *param);
/* Reserves a list of sparse rows for a parameter [rows, ...], before the store is allocated. */
void kiln_param_add_sparse_rows(KilnParam *param, int64_t rows);
/* The size of the list of a parameter that has one. */
int64_t kiln_param_sparse_rows_words(const KilnParam *param);
/* To be called when something else than a step wrote the gradient: no row of it is known to be 0.
 */
void kiln_param_gradient_written(KilnParam *param);

/* Fills `data` with the initial value of a parameter or float buffer, in up to `threads` threads:
 * the same values for any number. */
void kiln_param_draw(const KilnParam *param, uint64_t seed, int threads, float *data);

/* The two halves of kiln_params_seal: the flat buffers, zero and not yet backed by memory, so that
 * a step can be recorded and planned; then the initial values. */
KILN_NODISCARD KilnStatus kiln_params_allocate(KilnParams *params, KilnBackend *backend,
                                               KilnError *err);
KILN_NODISCARD KilnStatus kiln_params_draw(KilnParams *params, KilnError *err);
/* Resets a parameter to its initial value. */
KILN_NODISCARD KilnStatus kiln_param_redraw(KilnParam *param, KilnError *err);

/* Records kiln_graph_backward. Parameters that the loss does not depend on get zeros, and their
 * lists of sparse rows become empty; a graph that accumulates leaves both as they are. */
void kiln_params_backward(KilnParams *params, KilnGraph *graph, KilnTensor *loss);
/* All gradients as one variable leaf [size], as kiln_params_flat_values. */
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

/* The type of the store's floats in a step, and of averages of them: f64 for f64, else f32. */
KilnDType kiln_params_step_dtype(const KilnParams *params);

#endif
