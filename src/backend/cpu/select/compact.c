/* Results whose size is data. Threads count what chunks of the elements give; then each chunk knows
 * where its results begin. */
#include "backend/cpu/cpu.h"

#include <string.h>

enum { CHUNK = 16384 };

/* How many results the elements [begin, end) give; and those results, from number `at` on. */
typedef int64_t CountRange(const KilnCall *call, int64_t begin, int64_t end);
typedef void WriteRange(KilnCall *call, int64_t begin, int64_t end, int64_t at);

typedef struct Compaction {
    KilnCall *call;
    int64_t n;
    CountRange *count;
    WriteRange *write;
    int64_t *before; /* [chunks]: results of the chunks before each */
} Compaction;

static int64_t chunks_of(const KilnCall *call)
{
    return (kiln_cpu_count(&call->inputs[0]) + CHUNK - 1) / CHUNK;
}

static KilnStatus compact_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)chunks_of(call) * sizeof(int64_t);
    return KILN_OK;
}

static int64_t chunk_end(const Compaction *c, int64_t chunk)
{
    return (chunk + 1) * CHUNK < c->n ? (chunk + 1) * CHUNK : c->n;
}

static void count_part(void *context, int64_t begin, int64_t end)
{
    const Compaction *c = context;

    for (int64_t chunk = begin; chunk < end; chunk++)
        c->before[chunk] = c->count(c->call, chunk * CHUNK, chunk_end(c, chunk));
}

static void write_part(void *context, int64_t begin, int64_t end)
{
    const Compaction *c = context;

    for (int64_t chunk = begin; chunk < end; chunk++)
        c->write(c->call, chunk * CHUNK, chunk_end(c, chunk), c->before[chunk]);
}

/* Writes all results and returns their number. */
static int64_t compact(KilnCall *call, CountRange *count, WriteRange *write)
{
    Compaction c = { call, kiln_cpu_count(&call->inputs[0]), count, write, call->workspace };
    const int64_t chunks = chunks_of(call);
    int64_t total = 0;

    kiln_parallel(call->backend->threads, chunks, 1, 1, count_part, &c);
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        const int64_t own = c.before[chunk];

        c.before[chunk] = total;
        total += own;
    }
    kiln_parallel(call->backend->threads, chunks, 1, 1, write_part, &c);
    return total;
}

/* ---- nonzero -------------------------------------------------------------------------- */

/* Whether any bit is set that makes the element differ from zero: not the sign of floats. */
static bool is_set(const KilnArg *x, int64_t i)
{
    switch (x->dtype) {
    case KILN_F32:
        return ((const float *)x->data)[i] != 0.0f;
    case KILN_F64:
        return ((const double *)x->data)[i] != 0.0;
    case KILN_I32:
        return ((const int32_t *)x->data)[i] != 0;
    case KILN_I64:
        return ((const int64_t *)x->data)[i] != 0;
    case KILN_U8:
        return ((const uint8_t *)x->data)[i] != 0;
    case KILN_BF16:
        return (((const uint16_t *)x->data)[i] & 0x7fff) != 0;
    }
    return false;
}

static int64_t count_set(const KilnCall *call, int64_t begin, int64_t end)
{
    int64_t count = 0;

    for (int64_t i = begin; i < end; i++)
        count += is_set(&call->inputs[0], i);
    return count;
}

static void write_set(KilnCall *call, int64_t begin, int64_t end, int64_t at)
{
    const int64_t limit = ((const KilnNonzeroAttrs *)call->attrs)->limit;
    int32_t *index = call->outputs[0].data;

    for (int64_t i = begin; i < end && at < limit; i++)
        if (is_set(&call->inputs[0], i))
            index[at++] = (int32_t)i;
}

static void nonzero_run(KilnCall *call)
{
    const KilnNonzeroAttrs *attrs = call->attrs;
    const int64_t count = compact(call, count_set, write_set);
    int32_t *index = call->outputs[0].data;

    for (int64_t i = count; i < attrs->limit; i++)
        index[i] = (int32_t)attrs->fill;
    *(int32_t *)call->outputs[1].data = (int32_t)count;
}

/* ---- unique --------------------------------------------------------------------------- */

/* Whether sorted elements i - 1 and i differ: NaN differs from everything. */
static bool differs(const KilnArg *x, int64_t i)
{
    const float *f32 = x->data;
    const int32_t *i32 = x->data;

    return x->dtype == KILN_I32 ? i32[i] != i32[i - 1] : f32[i] != f32[i - 1];
}

static int64_t count_unique(const KilnCall *call, int64_t begin, int64_t end)
{
    int64_t count = 0;

    for (int64_t i = begin; i < end; i++)
        count += i == 0 || differs(&call->inputs[0], i);
    return count;
}

/* `counts` gets where each value begins. */
static void write_unique(KilnCall *call, int64_t begin, int64_t end, int64_t at)
{
    const int32_t *index = call->inputs[1].data, *sorted = call->inputs[0].data;
    int32_t *values = call->outputs[0].data, *inverse = call->outputs[1].data;
    int32_t *counts = call->outputs[2].data;
    int64_t last = at - 1;

    for (int64_t i = begin; i < end; i++) {
        if (i == 0 || differs(&call->inputs[0], i)) {
            values[++last] = sorted[i]; /* the bits of either type */
            counts[last] = (int32_t)i;
        }
        inverse[index[i]] = (int32_t)last;
    }
}

static void unique_run(KilnCall *call)
{
    const int64_t n = kiln_cpu_count(&call->inputs[0]);
    const int64_t count = compact(call, count_unique, write_unique);
    int32_t *values = call->outputs[0].data, *counts = call->outputs[2].data;

    for (int64_t i = 0; i < count; i++)
        counts[i] = (i + 1 < count ? counts[i + 1] : (int32_t)n) - counts[i];
    memset(values + count, 0, (size_t)(n - count) * sizeof(*values));
    memset(counts + count, 0, (size_t)(n - count) * sizeof(*counts));
    *(int32_t *)call->outputs[3].data = (int32_t)count;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_nonzero, .prepare = compact_prepare, .run = nonzero_run },
    { .op = &kiln_op_unique, .prepare = compact_prepare, .run = unique_run },
};

const KilnCpuTable kiln_cpu_compact = { kernels, KILN_COUNT(kernels) };
