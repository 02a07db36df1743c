/* Shapes, element types and tensors. A tensor is either a leaf (a parameter, a
 * buffer, an input) or the output of an operation that was recorded on a step's
 * graph. Recording computes nothing; the bytes exist after kiln_graph_run. */
#ifndef KILN_TENSOR_H
#define KILN_TENSOR_H

#include "kiln/base.h"

#define KILN_MAX_RANK 6

typedef enum KilnDType {
    KILN_F32,
    KILN_I32,
    KILN_U8,
    KILN_I64, /* storage only: PyTorch's counters */
    KILN_F64, /* the float type of graphs in double precision */
    KILN_BF16 /* the upper half of an f32 */
} KilnDType;

/* Bytes of one element, and the name ("f32"). */
KILN_API size_t kiln_dtype_size(KilnDType dtype);
KILN_API const char *kiln_dtype_name(KilnDType dtype);

/* Up to KILN_MAX_RANK sizes of at least 1, slowest axis first; rank 0: scalar. < 2^31 elements. */
typedef struct KilnShape {
    int rank;
    int64_t dim[KILN_MAX_RANK];
} KilnShape;

/* KILN_SHAPE(2, 3) is the shape [2, 3]; KILN_SCALAR the shape []. */
#define KILN_SHAPE(...)                                                                            \
    ((KilnShape) { .rank = (int)(sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t)),           \
                   .dim = { __VA_ARGS__ } })
#define KILN_SCALAR ((KilnShape) { .rank = 0 })

/* Number of elements; -1 on overflow of int64_t or a negative size. */
KILN_API int64_t kiln_shape_count(const KilnShape *shape);
KILN_API bool kiln_shape_equal(const KilnShape *a, const KilnShape *b);
/* Writes "[2, 3]" (truncated to size) and returns buf. */
KILN_API const char *kiln_shape_text(const KilnShape *shape, char *buf, size_t size);
#define KILN_SHAPE_TEXT 128

typedef struct KilnTensor KilnTensor;
typedef struct KilnGraph KilnGraph;
typedef struct KilnBackend KilnBackend;

KILN_API const KilnShape *kiln_tensor_shape(const KilnTensor *tensor);
KILN_API KilnDType kiln_tensor_dtype(const KilnTensor *tensor);
/* Size of one axis; negative axes count from the end. 0 for a poisoned tensor. */
KILN_API int64_t kiln_tensor_dim(const KilnTensor *tensor, int axis);
KILN_API KilnGraph *kiln_tensor_graph(const KilnTensor *tensor);
/* True when the tensor, or something it was made from, did not fit. */
KILN_API bool kiln_tensor_poisoned(const KilnTensor *tensor);
/* Bytes in plain order, in the host's memory; valid after kiln_graph_run that asked for
 * this tensor, until the next run or kiln_graph_begin. NULL when it was not computed. */
KILN_API const void *kiln_tensor_data(const KilnTensor *tensor);
/* A computed scalar (f32, f64 or i32) as double; NaN when not computed. */
KILN_API double kiln_tensor_scalar(const KilnTensor *tensor);

/* ---- Backends ----------------------------------------------------------- */

/* The fast CPU backend: oneDNN and vector loops chosen for the processor at run time;
 * `threads` >= 1. Owned by the caller. The environment variable KILN_ISA (base, avx2,
 * avx512, avx512_bf16, amx) caps which features of the processor it uses; a value that this machine
 * does not have is KILN_E_RANGE. */
KILN_API KILN_NODISCARD KilnStatus kiln_backend_cpu_new(int threads, KilnBackend **ret,
                                                        KilnError *err);
/* How convolutions are computed. */
typedef enum KilnConvolution {
    KILN_CONVOLUTION_AUTO,  /* the backend chooses; Winograd's algorithm (Lavin and Gray 2016) where
                             * it is faster, whose rounding is somewhat larger: up to 5e-6 of the
                             * largest value against 1e-6. In bf16 without AMX the error of an
                             * image's values is 0.43 % (root mean square), against 0.24 % */
    KILN_CONVOLUTION_DIRECT /* sums in the order of the definition */
} KilnConvolution;
/* For the graphs that are planned from now on; AUTO when this is never called.
 * The reference backend is always direct. */
KILN_API void kiln_backend_set_convolution(KilnBackend *backend, KilnConvolution convolution);
/* Whether the processor multiplies bf16 (AMX, AVX-512 BF16). Where it does not, bf16 works all
 * the same: values are rounded to it and multiplied in f32. */
KILN_API bool kiln_backend_bf16(const KilnBackend *backend);
/* The plain C reference: slow, one thread, f32 and f64, the oracle of tests. */
KILN_API KILN_NODISCARD KilnStatus kiln_backend_ref_new(KilnBackend **ret, KilnError *err);
/* Accepts NULL. No graph may use it any more. */
KILN_API void kiln_backend_free(KilnBackend *backend);

/* ---- Graphs ------------------------------------------------------------- */

/* A graph records one step at a time and caches a plan per structure.
 * `backend` must outlive it. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_graph_new(KilnBackend *backend, KilnGraph **ret,
                                                  KilnError *err);
KILN_API void kiln_graph_free(KilnGraph *graph);
/* In which type floats are kept and multiplied. Sums of bf16 are gathered in f32. */
typedef enum KilnPrecision {
    KILN_PRECISION_32, /* f32 throughout */
    KILN_BF16_MIXED,   /* products and convolutions of bf16, and bf16 between them; parameters,
                        * their gradients, statistics, losses and updates in f32: what PyTorch's
                        * autocast does, but that whole activations stay bf16 */
    KILN_BF16_TRUE,    /* the same steps; a run keeps parameters, gradients, statistics and
                        * optimizer state as bf16 */
    KILN_PRECISION_64  /* f64 throughout: the run's backend computes in it */
} KilnPrecision;
/* For steps that are recorded from now on; 32 when this is never called. No
 * effect on backends that compute in double precision. */
KILN_API void kiln_graph_set_precision(KilnGraph *graph, KilnPrecision precision);
/* Forget the recorded step (its tensors become invalid) and start the next. */
KILN_API void kiln_graph_begin(KilnGraph *graph);
/* Record operations made from now on as part of layer `path` ("layer1.0.conv1"),
 * used in error messages, profiles and drawings; borrowed until the next begin. */
KILN_API void kiln_graph_layer(KilnGraph *graph, const char *path);
/* A leaf over host bytes that the caller keeps valid until after kiln_graph_run, which
 * copies them if the backend has memory of its own. `data` may be NULL when the graph is
 * only recorded for its shapes. Where the graph's floats are f64, the result for f32 is those
 * values as f64. */
KILN_API KilnTensor *kiln_graph_input(KilnGraph *graph, KilnDType dtype, KilnShape shape,
                                      const void *data);
/* A float scalar that is data: `value` may change from step to step, and the plan stays the same.
 * An attribute of an operation (the factor of kiln_scale) is a part of the plan: a step with
 * another one is planned again, which costs far more than the step. So a number that varies, such
 * as an annealed weight, temperature or exponent, is a scalar, and operations on tensors take it:
 *
 *     kiln_scale(x, v)             kiln_mul(x, s)
 *     kiln_shift(x, v)             kiln_add(x, s)
 *     kiln_pow(x, v)               kiln_power(x, s)
 *     kiln_clamp(x, a, b)          kiln_minimum(kiln_maximum(x, s), t)
 *     kiln_ema_update(y, x, v)     kiln_lerp_update(y, x, s)
 *     kiln_dropout(x, v, ...)      kiln_dropout_rate(x, s, ...)
 *     label smoothing v            (1 - s) a + s b, of kiln_cross_entropy with smoothing 0 and 1
 *     kiln_focal, gamma v          losses * kiln_power(1 - exp(-losses), s), of kiln_cross_entropy
 *                                  unreduced
 *
 * The value is copied until the next kiln_graph_begin. It has no gradient. */
KILN_API KilnTensor *kiln_graph_scalar(KilnGraph *graph, double value);
/* As kiln_graph_input, over bytes that operations may update in place; only on backends that
 * compute in the host's memory (parameters are variables on all: kiln_param_tensor). With
 * `wants_grad` kiln_graph_backward computes its gradient. When `grad` is not
 * NULL the gradient is written there (same dtype and shape). A variable of bf16
 * counts as f32 in operations (kiln_tensor_dtype says f32): what reads it widens
 * it, updates are computed in f32 and rounded, and so is its gradient; only the
 * bytes, kiln_tensor_data's and those at `grad`, are bf16. */
KILN_API KilnTensor *kiln_graph_variable(KilnGraph *graph, KilnDType dtype, KilnShape shape,
                                         void *data, bool wants_grad, void *grad);
/* A constant of the graph's float type, f32 or f64, filled with `value`. */
KILN_API KilnTensor *kiln_graph_full(KilnGraph *graph, KilnShape shape, double value);
/* Record the gradients of the scalar `loss` with respect to every variable
 * that wants one. Afterwards kiln_tensor_grad gives a variable's gradient. An operation on
 * the way that has no gradient for such a variable poisons the step; kiln_detach leaves
 * a part out. */
KILN_API void kiln_graph_backward(KilnGraph *graph, KilnTensor *loss);
/* What is recorded between begin and end is a block whose results are not kept for
 * the gradients: kiln_graph_backward computes it a second time from its inputs
 * (activation checkpointing, Chen et al. 2016; torch.utils.checkpoint). Results are
 * the same to the bit; memory falls, the block's forward pass is paid twice. Blocks
 * follow each other, they don't nest. */
KILN_API void kiln_graph_recompute_begin(KilnGraph *graph);
KILN_API void kiln_graph_recompute_end(KilnGraph *graph);
/* The same for blocks of layers, by patterns of their paths in which `*` stands for
 * any letters but a dot: "layers.*" makes a block of each of layers.0, layers.1, ...
 * with all that is within it. For all steps from now on; `patterns` is borrowed. */
KILN_API void kiln_graph_set_recompute(KilnGraph *graph, const char *const *patterns, size_t n);
/* The gradient of a variable; NULL when loss does not depend on it. */
KILN_API KilnTensor *kiln_tensor_grad(const KilnTensor *variable);
/* Plan (once per structure) and execute: computes `outputs`, every gradient
 * with a place of its own, and every operation that updates a variable. The
 * first error of recording (shapes) is returned here. */
KILN_API KILN_NODISCARD KilnStatus kiln_graph_run(KilnGraph *graph, KilnTensor *const *outputs,
                                                  size_t n, KilnError *err);
/* The first error of recording, if any, without running. */
KILN_API KILN_NODISCARD KilnStatus kiln_graph_check(const KilnGraph *graph, KilnError *err);
/* Plans made so far, and bytes held for activations and workspace. */
KILN_API size_t kiln_graph_plans(const KilnGraph *graph);
KILN_API size_t kiln_graph_bytes(const KilnGraph *graph);

#endif
