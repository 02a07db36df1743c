/* The interface of a backend: which kernel computes an operation, and in which memory layouts. Only
 * a backend knows how data is arranged and which library computes.
 *
 * A backend is a folder backend/NAME with a KilnBackendOps table and a function that returns a
 * KilnBackend: backend/cpu/cpu.c, and backend/ref/ref.c as the reference. A GPU would be one more
 * such folder: its kernels are KilnKernel entries, one for each operation (graph/op.h), and its
 * layouts are numbers of its own. Planning (graph/plan/plan.c) asks for kernels and inserts layout
 * conversions; graph/plan/execute.c calls them. Memory is the backend's too (KilnMemoryOps): the
 * addresses that kernels get mean nothing to anybody else. */
#ifndef KILN_GRAPH_BACKEND_H
#define KILN_GRAPH_BACKEND_H

#include "graph/op.h"
#include "kiln/field.h"

/* Memory order of a value. 0 is plain order (row-major in the tensor's shape); other numbers belong
 * to the backend, and equal numbers mean equal order. */
typedef uint32_t KilnLayout;
#define KILN_PLAIN 0u

/* One input or output of a call. */
typedef struct KilnArg {
    KilnDType dtype;
    KilnShape shape;
    KilnLayout layout;
    bool fixed;    /* outputs: has a destination or is read after the run, so it must be plain */
    bool has_dest; /* outputs: has a destination, which only the step writes */
    bool absent;   /* optional input not given */
    bool constant; /* inputs: depends on parameters alone, so that its conversion to another layout
                    * is kept between runs */
    size_t bytes;  /* size of the value in its layout */
    void *data;    /* address in the backend's memory, set before each run; aligned to 64 bytes
                    * unless it is a leaf */
} KilnArg;

/* A planned node: what a kernel prepares once and runs every step. */
typedef struct KilnCall {
    KilnBackend *backend;
    const KilnOp *op;
    const void *attrs;
    const KilnMap *epilogue; /* as in KilnNode; only for kernels that support epilogues */
    int n_inputs, n_outputs; /* including the epilogue's */
    KilnArg inputs[KILN_MAX_INPUTS], outputs[KILN_MAX_OUTPUTS];
    size_t workspace_size; /* set by prepare; scratch memory valid during run only */
    void *workspace;       /* aligned to 64 bytes */
    void *priv;            /* the kernel's own state, freed by its release */
    void *epilogue_priv;   /* the same, for the code that runs the epilogue */
} KilnCall;

typedef struct KilnKernel {
    const KilnOp *op;
    /* Optional; by default all inputs and outputs are plain. On entry inputs[i].layout is what the
     * producer gives, and outputs are plain with their plain size. The kernel may set
     * inputs[i].layout to what it wants (the planner converts), the layout and bytes of outputs
     * that are not fixed, and workspace_size. May be called with layouts only (no data). */
    KilnStatus (*prepare)(KilnCall *call, KilnError *err);
    void (*run)(KilnCall *call);
    /* Optional. Also called after a failed prepare that set `priv`. */
    void (*release)(KilnCall *call);
    bool alias;              /* output 0 shares input 0's bytes; run does nothing (reshape) */
    bool epilogue;           /* can run a map on its output 0 */
    bool epilogue_gives_f32; /* the epilogue's results may be f32 where output 0 would be bf16 */
    /* Bit i: output 0 may overwrite input i when type, shape and layout agree: no element is read
     * after one at the same position was written. */
    unsigned in_place;
    /* Bit i: input or output i may be bf16 where the operation was recorded with floats. The
     * planner converts the others. */
    unsigned bf16_inputs, bf16_outputs;
    /* Bit i: a variable may stay f32 at input i where the others are bf16: the kernel rounds it to
     * bf16 while packing. */
    unsigned rounding_inputs;
    /* Floats at those bits may differ in type. Otherwise they are all bf16 or all f32, except for
     * products, whose output may be f32 with any inputs. */
    bool mixed_floats;
} KilnKernel;

/* The memory that a backend computes in. An address is a number to everybody else; bytes may be
 * added to it. Copies and kernels take effect in the order of the calls. */
typedef struct KilnMemoryOps {
    /* Zeros, aligned to 64 bytes; NULL: out of memory. */
    void *(*allocate)(KilnBackend *backend, size_t bytes);
    void (*free)(KilnBackend *backend, void *address);
    /* The host's bytes may be reused after upload and are complete after download. */
    void (*upload)(KilnBackend *backend, void *to, const void *host, size_t bytes);
    void (*download)(KilnBackend *backend, void *host, const void *from, size_t bytes);
    void (*copy)(KilnBackend *backend, void *to, const void *from, size_t bytes);
    void (*clear)(KilnBackend *backend, void *to, size_t bytes); /* writes zeros */
    /* Waits for all kernels and copies. Fails when one of them did since the last call. */
    KilnStatus (*synchronize)(KilnBackend *backend, KilnError *err);
    bool on_host; /* it is the host's own memory: addresses are pointers on both sides, and batches
                   * and results need no copy */
} KilnMemoryOps;

typedef struct KilnBackendOps {
    const char *name;
    const KilnMemoryOps *memory;
    const KilnKernel *(*kernel)(const KilnBackend *backend, const KilnOp *op); /* NULL: none */
    /* Bytes of a value in a layout. */
    size_t (*layout_bytes)(const KilnBackend *backend, KilnLayout layout, KilnDType dtype,
                           const KilnShape *shape);
    /* The kernel that copies input 0 to output 0 between any two layouts of one shape. */
    const KilnKernel *reorder;
    void (*free)(KilnBackend *backend);
} KilnBackendOps;

/* First member of every backend. */
struct KilnBackend {
    const KilnBackendOps *ops;
    KilnDType float_type; /* of all floats in a step: f32 or f64 */
    int threads;
    uint64_t writes; /* to its buffers so far: kiln_buffer_version */
    KilnConvolution convolution;
    bool bf16; /* the processor multiplies bf16; otherwise products of bf16 are computed in f32 */
    char machine[64]; /* affects rounding: "avx512, oneDNN 2.7.2"; "" if nothing does */
};

/* ---- Backends by name: trainer.accelerator --------------------------------------------- */

typedef KilnStatus KilnBackendNew(int threads, KilnBackend **ret, KilnError *err);

enum { KILN_MAX_ACCELERATORS = 8 };
/* The names, and numbers for kiln_backend_open; the row without a name ends them. "auto" is the
 * processor. */
extern KilnChoice kiln_accelerators[KILN_MAX_ACCELERATORS + 1];
/* Adds a backend; `name` is borrowed for good. Call it before a config is read, from one thread.
 * False if there is no room. */
KILN_API bool kiln_backend_register(const char *name, KilnBackendNew *make);
/* A backend whose floats are `float_type`: f32, or f64, which only the processor computes
 * (trainer.precision=64-true); KILN_E_RANGE elsewhere. */
KILN_NODISCARD KilnStatus kiln_backend_open(int64_t accelerator, KilnDType float_type, int threads,
                                            KilnBackend **ret, KilnError *err);

/* The processor in double precision: products and convolutions by OpenBLAS with `threads` threads,
 * other operations by the reference's kernels. KILN_E_IO if OpenBLAS is not installed. */
KILN_API KILN_NODISCARD KilnStatus kiln_backend_cpu_f64_new(int threads, KilnBackend **ret,
                                                            KilnError *err);
/* The reference backend in double precision, for gradient checks. */
KILN_API KILN_NODISCARD KilnStatus kiln_backend_ref_f64_new(KilnBackend **ret, KilnError *err);

#endif
