/* The CPU backend: finds the kernel of an operation (cpu_kernel), and the vector loops of this
 * processor's level (set_level). cpu.h says how to add a kernel or a processor. */
#include "backend/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/blas.h"
#include "backend/cpu/families.h"
#include "backend/cpu/isa/gemm.h"
#include "backend/cpu/onednn/primitives.h"
#include "backend/host_memory.h"
#include "base/system/machine.h"
#include "base/system/zeros.h"

KilnCpuBackend *kiln_cpu(const KilnCall *call)
{
    return (KilnCpuBackend *)call->backend;
}

int64_t kiln_cpu_count(const KilnArg *arg)
{
    return kiln_shape_count(&arg->shape);
}

int64_t kiln_cpu_stored(const KilnArg *arg)
{
    return (int64_t)(arg->bytes / kiln_dtype_size(arg->dtype));
}

int64_t kiln_cpu_columns(const KilnArg *arg)
{
    return arg->shape.rank > 0 ? arg->shape.dim[arg->shape.rank - 1] : 1;
}

int64_t kiln_cpu_rows(const KilnArg *arg)
{
    int64_t rows = 1;

    for (int axis = 0; axis + 1 < arg->shape.rank; axis++)
        rows *= arg->shape.dim[axis];
    return rows;
}

void kiln_cpu_each(KilnCall *call, int64_t n, KilnRange range)
{
    /* Below this, a thread costs more than it gains. */
    const int64_t grain = 16384;

    kiln_parallel(call->backend->threads, n, grain, 64, range, call);
}

static const KilnKernel *cpu_kernel(const KilnBackend *backend, const KilnOp *op)
{
    const KilnCpuTable *const tables[] = {
        &kiln_cpu_cast,          &kiln_cpu_elementwise, &kiln_cpu_movement,   &kiln_cpu_reductions,
        &kiln_cpu_products,      &kiln_cpu_convolution, &kiln_cpu_pooling,    &kiln_cpu_losses,
        &kiln_cpu_normalization, &kiln_cpu_updates,     &kiln_cpu_optimizers, &kiln_cpu_attention,
        &kiln_cpu_rotary,        &kiln_cpu_recurrent,   &kiln_cpu_index,      &kiln_cpu_embedding,
        &kiln_cpu_resample,      &kiln_cpu_padding,     &kiln_cpu_ctc,        &kiln_cpu_row_norm,
        &kiln_cpu_group_norm,    &kiln_cpu_prod,        &kiln_cpu_sort,       &kiln_cpu_segment,
        &kiln_cpu_random,        &kiln_cpu_kv_cache,    &kiln_cpu_resize,     &kiln_cpu_patches,
        &kiln_cpu_sample,        &kiln_cpu_boxes,       &kiln_cpu_compact,    &kiln_cpu_crf,
        &kiln_cpu_dropout,
    };

    (void)backend;
    if (op->custom != NULL)
        return &kiln_cpu_custom;
    for (size_t t = 0; t < KILN_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t]->count; i++)
            if (tables[t]->kernels[i].op == op)
                return &tables[t]->kernels[i];
    return NULL;
}

static size_t cpu_layout_bytes(const KilnBackend *backend, KilnLayout layout, KilnDType dtype,
                               const KilnShape *shape)
{
    const KilnCpuBackend *cpu = (const KilnCpuBackend *)backend;

    if (layout == KILN_PLAIN)
        return (size_t)kiln_shape_count(shape) * kiln_dtype_size(dtype);
    return kiln_md_bytes(kiln_layout_md(&cpu->dnnl, layout, NULL));
}

static void cpu_free(KilnBackend *backend)
{
    KilnCpuBackend *cpu = (KilnCpuBackend *)backend;

    kiln_dnnl_release(&cpu->dnnl);
    kiln_zeros_free(cpu->scratch);
    free(cpu);
}

/* ---- Reorder ------------------------------------------------------------------ */

/* One side of a conversion: plain, or the layout of `known`. The shape alone does not determine a
 * plain side (a weight's groups); the other side does. */
static KilnStatus side_md(KilnDnnl *dnnl, KilnMdRole role, KilnMd known, KilnLayout layout,
                          KilnMd *ret, KilnError *err)
{
    if (layout == KILN_PLAIN)
        return kiln_md_plain(dnnl, role, known, ret, err);
    *ret = kiln_layout_md(dnnl, layout, NULL);
    return KILN_OK;
}

static KilnStatus reorder_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *from = &call->inputs[0], *to = &call->outputs[0];
    KilnLayout known = from->layout != KILN_PLAIN ? from->layout : to->layout;
    KilnMdRole role = KILN_MD_IMAGE;
    KilnMd source = NULL, target = NULL;
    dnnl_primitive_desc_t pd = NULL;

    if (from->layout == to->layout)
        return KILN_OK; /* plain copy */

    KilnMd md = kiln_layout_md(dnnl, known, &role);
    KilnStatus status = side_md(dnnl, role, md, from->layout, &source, err);

    if (status == KILN_OK)
        status = side_md(dnnl, role, md, to->layout, &target, err);
    if (status != KILN_OK)
        return status;

    dnnl_status_t made = kiln_pd_reorder(dnnl, source, target, &pd);
    const KilnPrimitiveArg args[] = {
        { DNNL_ARG_FROM, source, KILN_BUFFER_INPUT, 0 },
        { DNNL_ARG_TO, target, KILN_BUFFER_OUTPUT, 0 },
    };

    if (made != dnnl_success)
        return kiln_dnnl_error(err, made, "a change of layout");
    status = kiln_primitives_add(call, pd, args, (int)KILN_COUNT(args), err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static void reorder_run(KilnCall *call)
{
    if (call->priv == NULL)
        memcpy(call->outputs[0].data, call->inputs[0].data, call->outputs[0].bytes);
    else
        kiln_primitives_run(call);
}

const KilnKernel kiln_cpu_reorder = {
    .prepare = reorder_prepare,
    .run = reorder_run,
    .release = kiln_primitives_release,
};

/* ---- Making one --------------------------------------------------------------- */

/* Picks the kernels of each family in families.c. */
static void set_level(KilnCpuBackend *cpu, KilnCpuLevel level)
{
    static const KilnLoops *const loops[KILN_CPU_LEVELS] = {
        [KILN_CPU_BASE] = &kiln_loops_base,
#if defined(__x86_64__)
        [KILN_CPU_AVX2] = &kiln_loops_avx2,
        [KILN_CPU_AVX512] = &kiln_loops_avx512,
#endif
    };
    static const KilnMdFormat blocked[KILN_CPU_LEVELS] = {
        [KILN_CPU_BASE] = KILN_MD_PLAIN,
        [KILN_CPU_AVX2] = KILN_MD_C8,
        [KILN_CPU_AVX512] = KILN_MD_C16,
    };
    static const KilnTileOps *const tiles[KILN_CPU_LEVELS] = {
#if defined(__x86_64__)
        [KILN_CPU_AVX512_BF16] = &kiln_tiles_vectors,
        [KILN_CPU_AMX] = &kiln_tiles_amx,
#endif
    };
    const KilnCpuLevel vectors = kiln_cpu_kernels(KILN_CPU_LOOPS, level);
    const KilnCpuLevel products_bf16 = kiln_cpu_kernels(KILN_CPU_PRODUCTS_BF16, level);
    const dnnl_version_t *version = dnnl_version();

    cpu->level = level;
    cpu->loops = loops[vectors];
    cpu->blocked = blocked[kiln_cpu_kernels(KILN_CPU_CONVOLUTIONS, level)];
    cpu->tiles = tiles[products_bf16];
    cpu->base.bf16 = cpu->tiles != NULL;
    cpu->blas = kiln_cpu_kernels(KILN_CPU_PRODUCTS, level) == KILN_CPU_BASE && kiln_blas_load();
    snprintf(cpu->base.machine, sizeof(cpu->base.machine), "%s%s%s, oneDNN %d.%d.%d%s%s",
             kiln_cpu_families[KILN_CPU_LOOPS].kernels[vectors], cpu->base.bf16 ? " with " : "",
             cpu->base.bf16 ? kiln_cpu_level_name(products_bf16) : "", version->major,
             version->minor, version->patch, cpu->blas ? ", " : "",
             cpu->blas ? kiln_blas_version() : "");
}

/* Bytes of the second-level cache for each core; 0: unknown. */
static int64_t second_level_cache(void)
{
    const KilnCaches caches = kiln_caches_read("");
    const int cores = caches.shared[1] / 2; /* a core has up to two hardware threads */

    return cores > 1 ? caches.bytes[1] / cores : caches.bytes[1];
}

/* Of the left factor, beside packed panels of the right one and an eighth for all else. */
static int64_t packed_floats(int64_t cache)
{
    enum { PANELS = KILN_GEMM_PANELS * KILN_GEMM_DEPTH * KILN_GEMM_COLUMNS };
    const int64_t floats = cache / 8 * 7 / (int64_t)sizeof(float) - PANELS;

    if (cache == 0 || floats > KILN_GEMM_PACKED)
        return KILN_GEMM_PACKED;
    return floats > PANELS / 2 ? floats : PANELS / 2;
}

KilnStatus kiln_backend_cpu_new(int threads, KilnBackend **ret, KilnError *err)
{
    static const KilnBackendOps ops = {
        .name = "cpu",
        .memory = &kiln_host_memory,
        .kernel = cpu_kernel,
        .layout_bytes = cpu_layout_bytes,
        .reorder = &kiln_cpu_reorder,
        .free = cpu_free,
    };

    if (threads < 1)
        return kiln_error_set(err, KILN_E_RANGE, "threads: expected at least 1, got %d", threads);

    KilnCpuLevel level = KILN_CPU_BASE;
    bool capped = false;
    KilnStatus status = kiln_cpu_level_choose(&level, &capped, err);

    if (status == KILN_OK && capped)
        status = kiln_dnnl_cap(level, err);
    if (status != KILN_OK)
        return status;
    kiln_blas_choose(level, capped);
    kiln_parallel_allow_forks();

    KilnCpuBackend *cpu = calloc(1, sizeof(*cpu));

    if (cpu == NULL)
        return kiln_error_nomem(err, sizeof(*cpu));
    cpu->base = (KilnBackend) { .ops = &ops, .float_type = KILN_F32, .threads = threads };
    set_level(cpu, level);
    cpu->gemm_packed = packed_floats(second_level_cache());

    const size_t bytes = ((size_t)threads * KILN_GEMM_SCRATCH + KILN_GEMM_SUMS) * sizeof(float);

    if (cpu->blas)
        status = kiln_blas_reserve(threads, err);
    if (status == KILN_OK)
        status = kiln_dnnl_init(&cpu->dnnl, threads, err);
    if (status == KILN_OK && (cpu->scratch = kiln_zeros(bytes)) == NULL)
        status = kiln_error_nomem(err, bytes);
    if (status != KILN_OK) {
        cpu_free(&cpu->base);
        return status;
    }
    *ret = &cpu->base;
    return KILN_OK;
}
