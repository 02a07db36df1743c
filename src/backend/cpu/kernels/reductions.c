/* Reductions over axes. The input is viewed as slabs, each [rows, columns] and contiguous, whose
 * rows are reduced. Slabs are cut into chunks of rows, independent of the number of threads; each
 * chunk gives a part per column, and the parts of a result are combined in order. */
#include <math.h>

#include "backend/cpu/cpu.h"

enum { CHUNK = 16384 /* elements, for rows of one element */, CHUNK_ROWS = 64 };

typedef struct Reduction {
    const KilnOp *op;
    const KilnLoops *loops;
    const void *x; /* floats, or bf16 where `bf16` */
    bool bf16;
    float *parts, *shifts; /* [slabs, chunks, columns]; shifts: only for logsumexp */
    void *y;
    /* Axes of the slabs, outermost first, and which of them are reduced. */
    int rank;
    int64_t dim[KILN_MAX_RANK];
    bool reduced[KILN_MAX_RANK];
    int64_t slabs, results; /* results: slabs that are not reduced with others */
    int64_t rows, columns, chunk_rows, chunks;
    int64_t fold;  /* adjacent columns treated as one, for short rows */
    int64_t count; /* elements for each result */
    int64_t limit; /* results that exist; those past it are padding */
} Reduction;

/* ---- The view as slabs --------------------------------------------------------------- */

typedef struct Axes {
    int rank;
    int64_t dim[KILN_MAX_RANK];
    bool reduced[KILN_MAX_RANK];
} Axes;

static void push_axis(Axes *axes, int64_t dim, bool reduced)
{
    if (dim == 1)
        return;
    if (axes->rank > 0 && axes->reduced[axes->rank - 1] == reduced) {
        axes->dim[axes->rank - 1] *= dim;
        return;
    }
    axes->dim[axes->rank] = dim;
    axes->reduced[axes->rank++] = reduced;
}

/* Channels per block if a blocked image is reduced to its channels, else 0. */
static int64_t block_of(const KilnCall *call)
{
    const KilnArg *x = &call->inputs[0];
    const KilnReduceAttrs *attrs = call->attrs;

    return attrs->axes == 7 ? kiln_layout_block(&kiln_cpu(call)->dnnl, x->layout, &x->shape) : 0;
}

static bool sums_all(const KilnCall *call)
{
    const KilnReduceAttrs *attrs = call->attrs;

    return (call->op == &kiln_op_sum || call->op == &kiln_op_mean) &&
           attrs->axes + 1 == 1u << call->inputs[0].shape.rank;
}

/* The input's axes in memory order. Padding is zero: it does not change a sum, and in images
 * reduced to channels it has its own channels. */
static Axes axes_of(const KilnCall *call)
{
    const KilnReduceAttrs *attrs = call->attrs;
    const KilnArg *x = &call->inputs[0];
    const int64_t block = block_of(call);
    Axes axes = { .rank = 0 };

    if (block > 0) {
        push_axis(&axes, x->shape.dim[0], true);
        push_axis(&axes, (x->shape.dim[3] + block - 1) / block, false);
        push_axis(&axes, x->shape.dim[1] * x->shape.dim[2], true);
        push_axis(&axes, block, false);
    } else if (x->layout != KILN_PLAIN) {
        push_axis(&axes, kiln_cpu_stored(x), true);
    } else {
        for (int axis = 0; axis < x->shape.rank; axis++)
            push_axis(&axes, x->shape.dim[axis], (attrs->axes >> axis & 1) != 0);
    }
    return axes;
}

/* Rows of a few columns are processed together if that divides evenly. */
static int64_t fold_of(int64_t rows, int64_t columns)
{
    int64_t fold = 1;

    while (columns > 1 && columns * fold < 16 && rows % (2 * fold) == 0)
        fold *= 2;
    return fold;
}

static void cut(Reduction *r, const Axes *axes)
{
    int rank = axes->rank;

    r->rows = r->columns = r->slabs = r->results = 1;
    if (rank > 0 && !axes->reduced[rank - 1])
        r->columns = axes->dim[--rank];
    if (rank > 0 && axes->reduced[rank - 1])
        r->rows = axes->dim[--rank];
    r->rank = rank;
    for (int axis = 0; axis < rank; axis++) {
        r->dim[axis] = axes->dim[axis];
        r->reduced[axis] = axes->reduced[axis];
        r->slabs *= axes->dim[axis];
        r->results *= axes->reduced[axis] ? 1 : axes->dim[axis];
    }
    r->fold = fold_of(r->rows, r->columns);
    r->rows /= r->fold;
    r->columns *= r->fold;
    r->chunk_rows = r->columns == 1 ? CHUNK : CHUNK_ROWS;
    r->chunks = (r->rows + r->chunk_rows - 1) / r->chunk_rows;
}

static Reduction reduction_of(const KilnCall *call)
{
    const KilnArg *x = &call->inputs[0], *y = &call->outputs[0];
    const Axes axes = axes_of(call);
    Reduction r = {
        .op = call->op,
        .loops = kiln_cpu(call)->loops,
        .x = x->data,
        .bf16 = x->dtype == KILN_BF16,
        .parts = call->workspace,
        .y = y->data,
        .count = kiln_cpu_count(x) / kiln_cpu_count(y),
        .limit = kiln_cpu_count(y),
    };

    cut(&r, &axes);
    r.shifts = r.parts != NULL ? r.parts + r.slabs * r.chunks * r.columns : NULL;
    return r;
}

static KilnStatus reduce_prepare(KilnCall *call, KilnError *err)
{
    KilnArg *x = &call->inputs[0];

    (void)err;
    if (block_of(call) == 0 && !sums_all(call))
        x->layout = KILN_PLAIN;
    x->bytes = call->backend->ops->layout_bytes(call->backend, x->layout, x->dtype, &x->shape);

    const Reduction r = reduction_of(call);

    call->workspace_size = (size_t)(r.slabs * r.chunks * r.columns) * sizeof(float);
    if (call->op == &kiln_op_logsumexp)
        call->workspace_size *= 2;
    return KILN_OK;
}

/* ---- Parts ----------------------------------------------------------------------------- */

static float sign_of(const Reduction *r)
{
    return r->op == &kiln_op_min ? -1.0f : 1.0f;
}

/* An infinite shift would give NaN, so use none. */
static void bound_shifts(float *shift, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (isinf(shift[i]))
            shift[i] = 0.0f;
}

static void part_of(const Reduction *r, const float *x, int64_t rows, float *part, float *shift)
{
    const bool single = r->columns == 1;

    if (r->op == &kiln_op_sum || r->op == &kiln_op_mean) {
        if (single)
            *part = (float)r->loops->sum(x, rows);
        else
            r->loops->sum_rows(part, x, rows, r->columns, r->columns);
        return;
    }

    float *most = r->op == &kiln_op_logsumexp ? shift : part;

    if (single)
        *most = r->loops->largest(x, sign_of(r), rows);
    else
        r->loops->largest_rows(most, x, sign_of(r), rows, r->columns);
    if (most == part)
        return;
    bound_shifts(shift, r->columns);
    if (single)
        *part = (float)r->loops->sum_exp(x, *shift, rows);
    else
        r->loops->sum_exp_rows(part, x, shift, rows, r->columns);
}

/* The same for bf16, as many columns at a time as fit; only sums support it. */
static void bf16_part(const Reduction *r, const uint16_t *x, int64_t rows, float *part)
{
    const int64_t most = CHUNK / r->chunk_rows;
    float f32[CHUNK];

    for (int64_t c = 0; c < r->columns; c += most) {
        const int64_t n = r->columns - c < most ? r->columns - c : most;

        if (n == r->columns)
            r->loops->from_bf16(f32, x, rows * n);
        else
            for (int64_t row = 0; row < rows; row++)
                r->loops->from_bf16(f32 + row * n, x + row * r->columns + c, n);
        if (r->columns == 1)
            *part = (float)r->loops->sum(f32, rows);
        else
            r->loops->sum_rows(part + c, f32, rows, n, n);
    }
}

static bool short_rows(const Reduction *r)
{
    return r->columns == 1 && r->rows <= KILN_SHORT_ROW;
}

/* Whether each part is a whole result. */
static bool parts_are_whole(const Reduction *r)
{
    return r->slabs == r->results && r->chunks * r->fold == 1;
}

/* Such a part has no shift, so it cannot be combined with others. */
static bool short_logsumexp(const Reduction *r)
{
    return r->op == &kiln_op_logsumexp && short_rows(r) && parts_are_whole(r);
}

/* Whether the parts already are the results. */
static bool parts_are_results(const Reduction *r)
{
    return parts_are_whole(r) && r->limit == r->slabs * r->columns &&
           (r->op == &kiln_op_sum || r->op == &kiln_op_max || short_logsumexp(r));
}

/* Slabs [begin, end) of bf16, each one short row. */
static void short_bf16_parts(const Reduction *r, int64_t begin, int64_t end)
{
    const int64_t most = CHUNK / r->rows;
    float f32[CHUNK];

    for (int64_t slab = begin; slab < end; slab += most) {
        const int64_t n = end - slab < most ? end - slab : most;

        r->loops->from_bf16(f32, (const uint16_t *)r->x + slab * r->rows, n * r->rows);
        r->loops->sum_short(r->parts + slab, f32, n, r->rows);
    }
}

/* Slabs [begin, end), each one short row. */
static void short_parts(const Reduction *r, int64_t begin, int64_t end)
{
    const float *x = (const float *)r->x + begin * r->rows;

    if (r->bf16)
        short_bf16_parts(r, begin, end);
    else if (r->op == &kiln_op_logsumexp)
        r->loops->logsumexp_short(r->parts + begin, x, end - begin, r->rows);
    else if (r->op == &kiln_op_max || r->op == &kiln_op_min)
        r->loops->largest_short(r->parts + begin, x, sign_of(r), end - begin, r->rows);
    else
        r->loops->sum_short(r->parts + begin, x, end - begin, r->rows);
}

static void parts_range(void *context, int64_t begin, int64_t end)
{
    const Reduction *r = context;

    if (short_rows(r) && (r->op != &kiln_op_logsumexp || short_logsumexp(r))) {
        short_parts(r, begin, end);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % r->chunks * r->chunk_rows, left = r->rows - first;
        const int64_t row = item / r->chunks * r->rows + first;

        const int64_t rows = left < r->chunk_rows ? left : r->chunk_rows;
        float *part = r->parts + item * r->columns;

        if (r->bf16)
            bf16_part(r, (const uint16_t *)r->x + row * r->columns, rows, part);
        else
            part_of(r, (const float *)r->x + row * r->columns, rows, part,
                    r->shifts + item * r->columns);
    }
}

/* ---- Results ---------------------------------------------------------------------------- */

/* Offset of slab number i, counted over the reduced axes or the others. */
static int64_t slab_offset(const Reduction *r, bool reduced, int64_t i)
{
    int64_t at = 0, size = 1;

    for (int axis = r->rank - 1; axis >= 0; axis--) {
        if (r->reduced[axis] == reduced) {
            at += i % r->dim[axis] * size;
            i /= r->dim[axis];
        }
        size *= r->dim[axis];
    }
    return at;
}

/* A result combined from some of its parts. */
typedef struct Joined {
    double value;
    float shift;
} Joined;

/* Changes the shift of a sum of exponentials to a larger one; infinity stays infinite, even where
 * the factor would be 0. */
static double reshifted(double sum, float from, float to)
{
    return isinf(sum) ? sum : sum * exp((double)(from - to));
}

/* A part of only -inf has no shift and changes nothing. */
static void join_sum_exp(Joined *joined, float part, float shift)
{
    if (part == 0.0f)
        return;
    if (joined->value == 0.0)
        joined->shift = shift;

    const float most = shift > joined->shift ? shift : joined->shift;

    joined->value = reshifted(joined->value, joined->shift, most) +
                    reshifted((double)part, shift, most);
    joined->shift = most;
}

static void join(const Reduction *r, Joined *joined, float part, float shift)
{
    if (r->op == &kiln_op_sum || r->op == &kiln_op_mean)
        joined->value += (double)part;
    else if (r->op == &kiln_op_logsumexp)
        join_sum_exp(joined, part, shift);
    else if (!isnan(joined->value) && !((double)part <= joined->value))
        joined->value = (double)part;
}

static float result_of(const Reduction *r, const Joined *joined)
{
    if (r->op == &kiln_op_mean)
        return (float)(joined->value / (double)r->count);
    if (r->op == &kiln_op_logsumexp)
        return (float)((double)joined->shift + log(joined->value));
    return (float)(joined->value * (double)sign_of(r));
}

static Joined nothing(const Reduction *r)
{
    const bool extreme = r->op == &kiln_op_max || r->op == &kiln_op_min;

    return (Joined) { .value = extreme ? -INFINITY : 0.0 };
}

/* Column c of the result slab whose parts begin at slab `base`. */
static float join_column(const Reduction *r, int64_t base, int64_t c)
{
    const int64_t width = r->columns / r->fold, together = r->slabs / r->results;
    Joined joined = nothing(r);

    for (int64_t s = 0; s < together; s++) {
        const int64_t slab = base + slab_offset(r, true, s);

        for (int64_t i = 0; i < r->chunks * r->fold; i++) {
            const int64_t at = slab * r->chunks * r->columns + i * width + c;

            join(r, &joined, r->parts[at], r->op == &kiln_op_logsumexp ? r->shifts[at] : 0.0f);
        }
    }
    return result_of(r, &joined);
}

static void whole_range(const Reduction *r, int64_t begin, int64_t end)
{
    float *y = r->y;

    for (int64_t i = begin; i < end && i < r->limit; i++) {
        const Joined whole = { .value = (double)r->parts[i],
                               .shift = r->op == &kiln_op_logsumexp ? r->shifts[i] : 0.0f };

        y[i] = result_of(r, &whole);
    }
}

static void results_range(void *context, int64_t begin, int64_t end)
{
    const Reduction *r = context;

    if (parts_are_whole(r)) {
        whole_range(r, begin, end);
        return;
    }

    const int64_t width = r->columns / r->fold;
    float *y = r->y;

    for (int64_t i = begin; i < end && i < r->limit; i++)
        y[i] = join_column(r, slab_offset(r, false, i / width), i % width);
}

/* Least work per thread, in items of this many elements. */
static int64_t grain_of(int64_t elements)
{
    return 2 * CHUNK / (elements + 1) + 1;
}

static void reduce_run(KilnCall *call)
{
    Reduction r = reduction_of(call);
    const int threads = call->backend->threads;
    const int64_t items = r.slabs * r.chunks;
    const int64_t rows = r.rows < r.chunk_rows ? r.rows : r.chunk_rows;

    const bool direct = parts_are_results(&r);

    if (direct)
        r.parts = r.y;
    kiln_parallel(threads, items, grain_of(rows * r.columns), 1, parts_range, &r);
    if (direct)
        return;
    kiln_parallel(threads, r.results * (r.columns / r.fold),
                  grain_of(8 * r.fold * r.slabs * r.chunks / r.results), 1, results_range, &r);
}

/* ---- Argmax ------------------------------------------------------------------------------- */

static void argmax_range(void *context, int64_t begin, int64_t end)
{
    const Reduction *r = context;
    int32_t *y = r->y;

    for (int64_t slab = begin; slab < end; slab++) {
        const float *x = (const float *)r->x + slab * r->rows * r->columns;

        for (int64_t c = 0; c < r->columns; c++) {
            float most = x[c];
            int64_t best = 0;

            for (int64_t row = 1; row < r->rows && !isnan(most); row++)
                if (!(x[row * r->columns + c] <= most)) {
                    best = row;
                    most = x[row * r->columns + c];
                }
            y[slab * r->columns + c] = (int32_t)best;
        }
    }
}

static void argmax_run(KilnCall *call)
{
    Reduction r = reduction_of(call);

    r.rows *= r.fold;
    r.columns /= r.fold;
    kiln_parallel(call->backend->threads, r.slabs, grain_of(r.rows * r.columns), 1, argmax_range,
                  &r);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_sum, .prepare = reduce_prepare, .run = reduce_run, .bf16_inputs = 1 },
    { .op = &kiln_op_mean, .prepare = reduce_prepare, .run = reduce_run, .bf16_inputs = 1 },
    { .op = &kiln_op_max, .prepare = reduce_prepare, .run = reduce_run },
    { .op = &kiln_op_min, .prepare = reduce_prepare, .run = reduce_run },
    { .op = &kiln_op_logsumexp, .prepare = reduce_prepare, .run = reduce_run },
    { .op = &kiln_op_argmax, .run = argmax_run },
};

const KilnCpuTable kiln_cpu_reductions = { kernels, KILN_COUNT(kernels) };
