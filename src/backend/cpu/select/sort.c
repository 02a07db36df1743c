/* Sorting along an axis. Each element becomes a code of 64 bits, its key in the upper half and its
 * index in the lower: codes are sorted as numbers, and equal elements stay in order. Long lines are
 * sorted by radix, a byte of the key at a time (least significant first); few of many elements are
 * selected with a heap. Threads take lines. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "graph/ops/select/lines.h"

enum { SHORT = 48, RADIX = 256 };

typedef struct Sort {
    const KilnCall *call;
    KilnLines from, to;
    bool descending;
} Sort;

/* ---- Codes ---------------------------------------------------------------------- */

/* Grows with the number; zeros of both signs are equal, and so are NaNs, above all numbers. */
static uint32_t float_key(float x)
{
    const float number = x + 0.0f; /* -0 becomes 0 */
    uint32_t bits;

    if (isnan(x))
        return UINT32_MAX;
    memcpy(&bits, &number, sizeof(bits));
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

static void encode(const Sort *sort, int64_t line, uint64_t *codes)
{
    const KilnArg *x = &sort->call->inputs[0];
    const int64_t start = kiln_line_start(&sort->from, line);
    const uint32_t flip = sort->descending ? UINT32_MAX : 0;

    for (int64_t i = 0; i < sort->from.n; i++) {
        const int64_t at = start + i * sort->from.inner;
        const uint32_t key = x->dtype == KILN_I32
                                 ? (uint32_t)((const int32_t *)x->data)[at] ^ 0x80000000u
                                 : float_key(((const float *)x->data)[at]);

        codes[i] = (uint64_t)(key ^ flip) << 32 | (uint64_t)i;
    }
}

/* ---- Sorting codes ----------------------------------------------------------------- */

static void insertion_sort(uint64_t *codes, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const uint64_t code = codes[i];
        int64_t k = i;

        for (; k > 0 && codes[k - 1] > code; k--)
            codes[k] = codes[k - 1];
        codes[k] = code;
    }
}

/* By one byte of the codes, from a to b. False, with b unchanged, if the byte is the same in all.
 */
static bool radix_pass(const uint64_t *a, uint64_t *b, int64_t n, int shift)
{
    int64_t at[RADIX] = { 0 }, sum = 0;

    for (int64_t i = 0; i < n; i++)
        at[a[i] >> shift & (RADIX - 1)]++;
    if (at[a[0] >> shift & (RADIX - 1)] == n)
        return false;
    for (int digit = 0; digit < RADIX; digit++) {
        const int64_t count = at[digit];

        at[digit] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        b[at[a[i] >> shift & (RADIX - 1)]++] = a[i];
    return true;
}

/* Codes in the order of their indices are sorted, into a or b; returns which. */
static uint64_t *radix_sort(uint64_t *a, uint64_t *b, int64_t n)
{
    for (int shift = 32; shift < 64; shift += 8)
        if (radix_pass(a, b, n, shift)) {
            uint64_t *other = a;

            a = b;
            b = other;
        }
    return a;
}

/* Restores the heap, whose parents are larger than their children, after its item i shrank. */
static void sift_down(uint64_t *heap, int64_t n, int64_t i)
{
    const uint64_t code = heap[i];

    for (int64_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] <= code)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = code;
}

/* Makes the first k codes the k smallest ones, in order. */
static void select_smallest(uint64_t *codes, int64_t n, int64_t k)
{
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        sift_down(codes, k, i);
    for (int64_t i = k; i < n; i++)
        if (codes[i] < codes[0]) {
            codes[0] = codes[i];
            sift_down(codes, k, 0);
        }
    for (int64_t left = k - 1; left > 0; left--) {
        const uint64_t largest = codes[0];

        codes[0] = codes[left];
        codes[left] = largest;
        sift_down(codes, left, 0);
    }
}

/* ---- Lines ------------------------------------------------------------------------------ */

static void sort_line(const Sort *sort, int64_t line, uint64_t *codes)
{
    const KilnArg *x = &sort->call->inputs[0];
    const int64_t n = sort->from.n, k = sort->to.n;
    const int64_t start = kiln_line_start(&sort->from, line), to = kiln_line_start(&sort->to, line);
    uint32_t *values = sort->call->outputs[0].data;
    int32_t *indices = sort->call->outputs[1].data;

    encode(sort, line, codes);
    if (n <= SHORT)
        insertion_sort(codes, n);
    else if (k < n / 8)
        select_smallest(codes, n, k);
    else
        codes = radix_sort(codes, codes + n, n);
    for (int64_t i = 0; i < k; i++) {
        const int64_t index = (int64_t)(codes[i] & UINT32_MAX), at = to + i * sort->to.inner;

        values[at] = ((const uint32_t *)x->data)[start + index * sort->from.inner];
        indices[at] = (int32_t)index;
    }
}

static void sort_part(void *context, int64_t begin, int64_t end)
{
    const Sort *sort = context;
    uint64_t *codes = (uint64_t *)sort->call->workspace + 2 * sort->from.n * kiln_thread();

    for (int64_t line = begin; line < end; line++)
        sort_line(sort, line, codes);
}

static KilnStatus sort_prepare(KilnCall *call, KilnError *err)
{
    const KilnSortAttrs *attrs = call->attrs;
    const int64_t n = call->inputs[0].shape.dim[attrs->axis];

    (void)err;
    call->inputs[0].layout = KILN_PLAIN;
    call->workspace_size = (size_t)(2 * n * call->backend->threads) * sizeof(uint64_t);
    return KILN_OK;
}

static void sort_run(KilnCall *call)
{
    const KilnSortAttrs *attrs = call->attrs;
    Sort sort = {
        .call = call,
        .from = kiln_lines_of(&call->inputs[0].shape, attrs->axis),
        .to = kiln_lines_of(&call->outputs[0].shape, attrs->axis),
        .descending = attrs->descending != 0,
    };

    kiln_parallel(call->backend->threads, sort.from.count, 1024 / sort.from.n + 1, 1, sort_part,
                  &sort);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_sort, .prepare = sort_prepare, .run = sort_run },
};

const KilnCpuTable kiln_cpu_sort = { kernels, KILN_COUNT(kernels) };
