/* Choosing a token from logits, in the order of Hugging Face's generate: the penalty of repetition,
 * temperature, top k, top p. */
#include <math.h>
#include <string.h>

#include "kiln/tools/generate.h"
#include "kiln/rng.h"

/* Candidates as a heap: the largest logit is first, of equal ones the lowest id. */
typedef struct Heap {
    float *logits; /* by id */
    int32_t *ids;
    int64_t n;
} Heap;

static bool before(const Heap *heap, int32_t a, int32_t b)
{
    const float x = heap->logits[a], y = heap->logits[b];

    return x > y || (x == y && a < b);
}

static void sift_down(Heap *heap, int64_t i)
{
    const int32_t id = heap->ids[i];

    for (int64_t child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && before(heap, heap->ids[child + 1], heap->ids[child]))
            child++;
        if (!before(heap, heap->ids[child], id))
            break;
        heap->ids[i] = heap->ids[child];
    }
    heap->ids[i] = id;
}

/* Put the first id behind the heap, which gets smaller, and return it. */
static int32_t pop(Heap *heap)
{
    const int32_t first = heap->ids[0];

    heap->ids[0] = heap->ids[--heap->n];
    heap->ids[heap->n] = first;
    if (heap->n > 0)
        sift_down(heap, 0);
    return first;
}

static void penalize(float *logits, int64_t n, const float *original, double penalty,
                     const int32_t *seen, size_t n_seen)
{
    for (size_t i = 0; i < n_seen; i++) {
        const int32_t id = seen[i];

        if (id < 0 || id >= n)
            continue;
        logits[id] = original[id] > 0.0f ? original[id] / (float)penalty
                                         : original[id] * (float)penalty;
    }
}

static int32_t largest(const float *logits, int64_t n)
{
    int64_t best = 0;

    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

/* The candidate at which the running sum of weights passes `share` of all. */
static int32_t pick(const float *weights, const int32_t *ids, int64_t n, double total, double share)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n - 1; i++) {
        sum += (double)weights[ids[i]];
        if (sum > share * total)
            return ids[i];
    }
    return ids[n - 1];
}

static double uniform(const KilnTokenChoice *choice, uint32_t prompt, size_t position)
{
    KilnRng rng;

    kiln_rng_init(&rng, choice->seed, KILN_RNG_GENERATE, prompt, position);
    const uint64_t high = kiln_rng_u32(&rng);
    return (double)((high << 32 | kiln_rng_u32(&rng)) >> 11) * 0x1p-53;
}

int32_t kiln_token_choose(const KilnTokenChoice *choice, const float *logits, int64_t n,
                          const int32_t *seen, size_t n_seen, uint32_t prompt, float *work,
                          int32_t *ids)
{
    const double penalty = choice->repetition_penalty, top_p = choice->top_p;
    const int64_t top_k = choice->top_k > 0 && choice->top_k < n ? choice->top_k : n;
    double total = 0.0;

    memcpy(work, logits, (size_t)n * sizeof(*work));
    if (penalty > 0.0 && penalty != 1.0)
        penalize(work, n, logits, penalty, seen, n_seen);
    const int32_t best = largest(work, n);
    if (choice->temperature == 0.0)
        return best;
    Heap heap = { .logits = work, .ids = ids, .n = n };
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)i;
    /* Weights are exp of the distance to the largest logit. */
    const float most = work[best];
    if (top_k == n && !(top_p > 0.0 && top_p < 1.0)) {
        for (int64_t i = 0; i < n; i++) {
            work[i] = expf((work[i] - most) / (float)choice->temperature);
            total += (double)work[i];
        }
        return pick(work, ids, n, total, uniform(choice, prompt, n_seen));
    }
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(&heap, i);
    for (int64_t i = 0; i < top_k; i++)
        pop(&heap); /* to ids[n - 1 - i] */
    int32_t *chosen = ids + n - top_k;
    for (int64_t i = 0; i < top_k / 2; i++) { /* largest first */
        const int32_t id = chosen[i];

        chosen[i] = chosen[top_k - 1 - i];
        chosen[top_k - 1 - i] = id;
    }
    for (int64_t i = 0; i < top_k; i++) {
        work[chosen[i]] = expf((work[chosen[i]] - most) / (float)choice->temperature);
        total += (double)work[chosen[i]];
    }
    int64_t kept = top_k;
    if (top_p > 0.0 && top_p < 1.0) {
        double sum = 0.0;

        for (kept = 0; kept < top_k && sum < top_p * total; kept++)
            sum += (double)work[chosen[kept]];
        kept = kept > 0 ? kept : 1;
        total = sum;
    }
    return pick(work, chosen, kept, total, uniform(choice, prompt, n_seen));
}
