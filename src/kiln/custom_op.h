/* Operations of your own: a shape rule, a kernel, and a gradient, recorded like any operation of
 * kiln/ops.h. Write one for a loop that no combination of operations computes fast enough; what can
 * be built from operations needs none of this, and gets its gradient for free. */
#ifndef KILN_CUSTOM_OP_H
#define KILN_CUSTOM_OP_H

#include "kiln/tensor.h"

enum {
    KILN_CUSTOM_INPUTS = 12, /* of an operation, at most */
    KILN_CUSTOM_OUTPUTS = 8
};

typedef struct KilnCustomOp KilnCustomOp;

/* An input or output of an operation. */
typedef struct KilnOpArg {
    KilnDType dtype;
    KilnShape shape;
    void *data; /* plain order, for the kernel alone; NULL: an absent input */
} KilnOpArg;

/* A call of a kernel. */
typedef struct KilnOpCall {
    const void *attrs;
    int n_inputs, n_outputs;
    KilnOpArg inputs[KILN_CUSTOM_INPUTS];
    KilnOpArg outputs[KILN_CUSTOM_OUTPUTS];
    void *workspace; /* of the size that KilnCustomOp.workspace gave; contents undefined */
    int threads;     /* that kiln_op_parallel uses */
} KilnOpCall;

/* The arguments of a gradient while it is recorded. */
typedef struct KilnOpGradient {
    const void *attrs;
    KilnTensor *const *inputs;  /* as recorded; NULL: absent */
    KilnTensor *const *outputs; /* of the operation */
    KilnTensor *const *dy;      /* gradient of each output; NULL: it has none */
    KilnTensor **dx;            /* to set: the gradient of each input; NULL: it has none */
} KilnOpGradient;

struct KilnCustomOp {
    size_t size;      /* sizeof(KilnCustomOp) */
    const char *name; /* for messages and profiles; static */
    int n_inputs, n_outputs;
    size_t attrs_size; /* of the attributes; their padding must be zero. 0: none */
    /* Bit i: the kernel writes input i, a variable. Such an operation may have no outputs; it must
     * not have gradients. */
    unsigned updates;
    /* Check types and shapes of the inputs, and set those of all outputs (`data` is NULL).
     * KILN_E_SHAPE with what the operation needs and what it got; recording adds the layer and the
     * name. */
    KilnStatus (*infer)(const void *attrs, const KilnOpArg *inputs, KilnOpArg *outputs,
                        KilnError *err);
    /* Optional: record the gradients of the inputs from those of the outputs, by operations of any
     * kind. NULL: backward through the operation is an error (kiln_detach leaves it out). */
    void (*gradient)(const KilnOpGradient *at);
    /* Optional: bytes of scratch memory for a call. */
    size_t (*workspace)(const void *attrs, const KilnOpArg *inputs, const KilnOpArg *outputs);
    /* The kernel on the processor: floats are f32. It must write every element of the outputs, the
     * same for any number of threads. */
    void (*cpu)(const KilnOpCall *call);
    /* Optional: the same in f64, for gradient checks. */
    void (*cpu_f64)(const KilnOpCall *call);
};

/* Record `op`, which must outlive the graph, with op->n_inputs inputs (NULL: absent) and its
 * attributes (copied; NULL if there are none). Fills ret[op->n_outputs]; NULL: none wanted. Returns
 * output 0, which is poisoned if something does not fit, or NULL if there are no outputs. */
KILN_API KilnTensor *kiln_custom_op(KilnGraph *graph, const KilnCustomOp *op,
                                    KilnTensor *const *inputs, const void *attrs, KilnTensor **ret);
/* For kernels: call `part` with ranges that make up [0, n), in up to call->threads threads; each
 * has at least `grain` items. Returns when all are done. */
KILN_API void kiln_op_parallel(const KilnOpCall *call, int64_t n, int64_t grain,
                               void (*part)(void *context, int64_t begin, int64_t end),
                               void *context);

#endif
