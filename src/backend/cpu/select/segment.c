/* Sums, means and largest elements of groups of rows. Each thread owns some of the groups and walks
 * all ids, so that no two write the same row and sums are in the order of the rows: runs of them in
 * floats, the runs of a long group in double. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

typedef struct Segments {
    const KilnCall *call;
    const float *x;     /* [n, inner]; NULL in gradients that do not need it */
    const int32_t *ids; /* [n] */
    float *y;           /* [count, inner] */
    int64_t n, inner, count, mode;
    double *sums;  /* [count, inner]: of the rows of long groups but the last ones, which y has */
    int32_t *rows; /* [count]: rows of each group */
    float *ties;   /* [count, inner]: rows that have the largest element */
} Segments;

static Segments segments_of(const KilnCall *call, int y)
{
    const KilnSegmentAttrs *attrs = call->attrs;
    const KilnArg *whole = y < 0 ? &call->outputs[0] : &call->inputs[y];

    return (Segments) {
        .call = call,
        .ids = call->inputs[1].data,
        .n = kiln_cpu_count(&call->inputs[1]),
        .inner = kiln_cpu_count(whole) / attrs->count,
        .count = attrs->count,
        .mode = attrs->mode,
        .rows = call->workspace,
        .ties = (float *)call->workspace + attrs->count,
    };
}

/* Least groups for a thread. */
static int64_t grain_of(const Segments *s)
{
    return 16384 * s->count / (s->n * s->inner + s->count) + 1;
}

/* ---- Forward ------------------------------------------------------------------------ */

/* Rows of a group that are added in floats. */
enum { RUN = 64 };

static void add_row(const Segments *s, int64_t id, const float *x)
{
    enum { SHORT = 8 };
    float *y = s->y + id * s->inner;

    if (s->inner > SHORT)
        kiln_cpu(s->call)->loops->add(y, y, x, s->inner);
    else
        for (int64_t c = 0; c < s->inner; c++)
            y[c] += x[c];
}

/* Moves the group's last run of rows from y to the sums. */
static void move_run(const Segments *s, int64_t id)
{
    for (int64_t at = id * s->inner; at < (id + 1) * s->inner; at++) {
        s->sums[at] = (s->rows[id] > RUN ? s->sums[at] : 0.0) + (double)s->y[at];
        s->y[at] = 0.0f;
    }
}

static void take_largest(const Segments *s, int64_t id, const float *x)
{
    float *y = s->y + id * s->inner;

    for (int64_t c = 0; c < s->inner; c++)
        y[c] = s->rows[id] == 0 || x[c] > y[c] || isnan(x[c]) ? x[c] : y[c];
}

static void finish_group(const Segments *s, int64_t id)
{
    const double by = s->mode == KILN_SEGMENT_MEAN && s->rows[id] > 0 ? (double)s->rows[id] : 1.0;

    if (s->rows[id] < RUN && s->mode == KILN_SEGMENT_SUM)
        return;
    for (int64_t at = id * s->inner; at < (id + 1) * s->inner; at++)
        s->y[at] = (float)(((s->rows[id] >= RUN ? s->sums[at] : 0.0) + (double)s->y[at]) / by);
}

static void segment_part(void *context, int64_t begin, int64_t end)
{
    const Segments *s = context;
    const bool max = s->mode == KILN_SEGMENT_MAX;
    bool invalid = false;

    memset(s->y + begin * s->inner, 0, (size_t)((end - begin) * s->inner) * sizeof(*s->y));
    memset(s->rows + begin, 0, (size_t)(end - begin) * sizeof(*s->rows));
    for (int64_t i = 0; i < s->n; i++) {
        const int32_t id = s->ids[i];
        const float *x = s->x + i * s->inner;

        invalid = invalid || id >= s->count;
        if (id < begin || id >= end)
            continue;
        if (max)
            take_largest(s, id, x);
        else
            add_row(s, id, x);
        if (++s->rows[id] % RUN == 0 && !max)
            move_run(s, id);
    }
    for (int64_t id = begin; id < end && !max; id++)
        finish_group(s, id);
    if (invalid && begin == 0)
        kiln_cpu(s->call)->loops->fill(s->y, NAN, s->inner);
}

static KilnStatus plain_prepare(KilnCall *call, KilnError *err)
{
    const KilnSegmentAttrs *attrs = call->attrs;

    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)attrs->count * sizeof(int32_t);
    return KILN_OK;
}

/* Whether a group may have more than a run of rows. */
static bool needs_sums(const KilnCall *call)
{
    const KilnSegmentAttrs *attrs = call->attrs;

    return attrs->mode != KILN_SEGMENT_MAX && kiln_cpu_count(&call->inputs[1]) >= RUN;
}

static KilnStatus segment_prepare(KilnCall *call, KilnError *err)
{
    const KilnStatus status = plain_prepare(call, err);

    if (needs_sums(call))
        call->workspace_size += (size_t)kiln_cpu_count(&call->outputs[0]) * sizeof(double);
    return status;
}

static void segment_run(KilnCall *call)
{
    Segments s = segments_of(call, -1);

    s.x = call->inputs[0].data;
    s.y = call->outputs[0].data;
    if (needs_sums(call)) {
        s.sums = call->workspace;
        s.rows = (void *)(s.sums + s.count * s.inner);
    }
    kiln_parallel(call->backend->threads, s.count, grain_of(&s), 1, segment_part, &s);
}

/* ---- Gradient ------------------------------------------------------------------------- */

/* Counts rows, and rows with the largest element, of groups [begin, end). */
static void count_part(void *context, int64_t begin, int64_t end)
{
    const Segments *s = context;
    const bool max = s->mode == KILN_SEGMENT_MAX;

    memset(s->rows + begin, 0, (size_t)(end - begin) * sizeof(*s->rows));
    if (max)
        memset(s->ties + begin * s->inner, 0, (size_t)((end - begin) * s->inner) * sizeof(float));
    for (int64_t i = 0; i < s->n; i++) {
        const int32_t id = s->ids[i];

        if (id < begin || id >= end)
            continue;
        s->rows[id]++;
        for (int64_t c = 0; c < s->inner && max; c++)
            s->ties[id * s->inner + c] += s->x[i * s->inner + c] == s->y[id * s->inner + c] ? 1.0f
                                                                                            : 0.0f;
    }
}

static void gradient_part(void *context, int64_t begin, int64_t end)
{
    const Segments *s = context;

    for (int64_t i = begin; i < end; i++) {
        const int64_t id = s->ids[i];
        const float *dy = (const float *)s->call->inputs[0].data + id * s->inner;
        float *dx = (float *)s->call->outputs[0].data + i * s->inner;

        if (id < 0 || id >= s->count) {
            memset(dx, 0, (size_t)s->inner * sizeof(*dx));
            continue;
        }
        for (int64_t c = 0; c < s->inner; c++) {
            const int64_t at = id * s->inner + c;

            if (s->mode == KILN_SEGMENT_SUM)
                dx[c] = dy[c];
            else if (s->mode == KILN_SEGMENT_MEAN)
                dx[c] = dy[c] / (float)s->rows[id];
            else
                dx[c] = s->x[i * s->inner + c] == s->y[at] ? dy[c] / s->ties[at] : 0.0f;
        }
    }
}

static KilnStatus segment_grad_prepare(KilnCall *call, KilnError *err)
{
    const KilnSegmentAttrs *attrs = call->attrs;
    const int64_t ties = attrs->mode == KILN_SEGMENT_MAX ? kiln_cpu_count(&call->inputs[0]) : 0;
    const KilnStatus status = plain_prepare(call, err);

    call->workspace_size += (size_t)ties * sizeof(float);
    return status;
}

static void segment_grad_run(KilnCall *call)
{
    Segments s = segments_of(call, 0);

    if (s.mode == KILN_SEGMENT_MAX) {
        s.x = call->inputs[2].data;
        s.y = call->inputs[3].data;
    }
    if (s.mode != KILN_SEGMENT_SUM)
        kiln_parallel(call->backend->threads, s.count, grain_of(&s), 1, count_part, &s);
    kiln_parallel(call->backend->threads, s.n, 8192 / (s.inner + 1) + 1, 1, gradient_part, &s);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_segment, .prepare = segment_prepare, .run = segment_run },
    { .op = &kiln_op_segment_grad, .prepare = segment_grad_prepare, .run = segment_grad_run },
};

const KilnCpuTable kiln_cpu_segment = { kernels, KILN_COUNT(kernels) };
