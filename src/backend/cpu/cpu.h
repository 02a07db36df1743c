/* Private to the CPU backend: its state, and the table in which each file lists its kernels.
 *
 * To add a kernel: write it in kernels/SUBJECT.c (products of bf16 in bf16/, oneDNN primitives
 * in onednn/, Winograd's convolutions in winograd/, normalization in norm/), add it to that file's
 * KilnCpuTable, and add a new table to this header and to cpu_kernel in cpu.c.
 *
 * To support a new processor: add its level to level.h and level.c, its kernels to families.c, its
 * compiler flags to ISAS and ISA_FLAGS in the Makefile, its name to KILN_DECLARE_LOOPS (level.h),
 * and its loops to set_level in cpu.c. Each isa/NAME.c is compiled once per level and exports a
 * table of loops (KilnGemmLoops, KilnOptimizerLoops, ...); KilnLoops (isa/vector_loops.h) holds all
 * tables of a level. isa/vector.h and isa/transpose.h hold what differs between vector widths. */
#ifndef KILN_BACKEND_CPU_H
#define KILN_BACKEND_CPU_H

#include "backend/cpu/bf16/tiles.h"
#include "backend/cpu/onednn/layouts.h"
#include "backend/cpu/isa/batch_norm.h"
#include "backend/cpu/isa/images/pooling.h"
#include "backend/cpu/isa/vector_loops.h"
#include "backend/cpu/isa/row_norm.h"
#include "backend/cpu/parallel.h"

typedef struct KilnRotaryTable KilnRotaryTable; /* kernels/rotary.c */

typedef struct KilnCpuBackend {
    KilnBackend base;
    KilnCpuLevel level; /* processor features in use */
    const KilnLoops *loops;
    const KilnTileOps *tiles; /* multiply bf16; NULL: none, so products are of f32 */
    bool blas;                /* OpenBLAS computes products of f32 */
    KilnMdFormat blocked;     /* preferred layout of activations, where neighbours do not decide */
    KilnDnnl dnnl;
    /* For matrix products: KILN_GEMM_SCRATCH per thread, then KILN_GEMM_SUMS. */
    float *scratch;
    int64_t gemm_packed;            /* as in KilnGemmScratch */
    KilnRotaryTable *rotary_tables; /* of the plans that exist */
} KilnCpuBackend;

/* The kernels of one file. */
typedef struct KilnCpuTable {
    const KilnKernel *kernels;
    size_t count;
} KilnCpuTable;

extern const KilnCpuTable kiln_cpu_cast, kiln_cpu_elementwise, kiln_cpu_dropout, kiln_cpu_movement,
    kiln_cpu_reductions, kiln_cpu_products, kiln_cpu_convolution, kiln_cpu_pooling,
    kiln_cpu_normalization, kiln_cpu_losses, kiln_cpu_updates, kiln_cpu_optimizers,
    kiln_cpu_attention, kiln_cpu_rotary, kiln_cpu_recurrent, kiln_cpu_index, kiln_cpu_embedding,
    kiln_cpu_resample, kiln_cpu_padding, kiln_cpu_ctc, kiln_cpu_row_norm, kiln_cpu_group_norm,
    kiln_cpu_prod, kiln_cpu_sort, kiln_cpu_segment, kiln_cpu_random, kiln_cpu_kv_cache,
    kiln_cpu_resize, kiln_cpu_patches, kiln_cpu_sample, kiln_cpu_boxes, kiln_cpu_compact,
    kiln_cpu_crf;
extern const KilnKernel kiln_cpu_custom; /* of every custom operation */
extern const KilnKernel kiln_cpu_reorder;

/* The backend of a call. */
KilnCpuBackend *kiln_cpu(const KilnCall *call);
/* Elements of a value in plain order; and as stored, with the padding of blocked layouts. */
int64_t kiln_cpu_count(const KilnArg *arg);
int64_t kiln_cpu_stored(const KilnArg *arg);
/* Size of the last axis (1 for a scalar), and the number of such rows. */
int64_t kiln_cpu_columns(const KilnArg *arg);
int64_t kiln_cpu_rows(const KilnArg *arg);
/* Splits the elements of an elementwise call between the threads. */
void kiln_cpu_each(KilnCall *call, int64_t n, KilnRange range);

#endif
