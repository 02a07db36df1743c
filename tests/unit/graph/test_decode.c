/* Decoding step by step with cached keys and values gives what attention over whole sequences
 * gives, with one plan for all steps of one length. */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "kiln/rng.h"
#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"

enum { BATCH = 2, STEPS = 12, HEADS = 2, WIDTH = 4, ROW = HEADS * WIDTH, ALL = STEPS * ROW };

typedef struct Sequences {
    float q[BATCH][ALL], k[BATCH][ALL], v[BATCH][ALL], y[BATCH][ALL];
} Sequences;

static void fill(Sequences *s)
{
    KilnRng rng;

    kiln_rng_init(&rng, 3, KILN_RNG_USER, 0, 0);
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < ALL; i++) {
            s->q[b][i] = kiln_rng_normal(&rng);
            s->k[b][i] = kiln_rng_normal(&rng);
            s->v[b][i] = kiln_rng_normal(&rng);
        }
}

static void run(KilnGraph *graph, KilnTensor *y, float *ret, size_t n)
{
    KilnError err;

    if (kiln_graph_run(graph, &y, 1, &err) != KILN_OK)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_shape_count(kiln_tensor_shape(y)), n);
    memcpy(ret, kiln_tensor_data(y), n * sizeof(*ret));
}

static KilnTensor *input(KilnGraph *graph, int64_t steps, const void *data)
{
    return kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, steps, HEADS, WIDTH), data);
}

/* Attention over whole sequences. */
static void whole(KilnBackend *backend, Sequences *s)
{
    const KilnRotary rotary = { 0 };
    KilnGraph *graph = NULL;
    KilnError err;

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    KilnTensor *q = kiln_rotary(input(graph, STEPS, s->q), rotary);
    KilnTensor *k = kiln_rotary(input(graph, STEPS, s->k), rotary);
    KilnTensor *y = kiln_attention(q, k, input(graph, STEPS, s->v),
                                   (KilnAttention) { .causal = true });

    run(graph, y, s->y[0], BATCH * ALL);
    kiln_graph_free(graph);
}

/* Rows `from` to from + n of each sequence, one after the other. */
static void take(const float (*x)[ALL], int64_t from, int64_t n, float *ret)
{
    for (int b = 0; b < BATCH; b++)
        memcpy(ret + b * n * ROW, x[b] + from * ROW, (size_t)(n * ROW) * sizeof(float));
}

static void decode(KilnGraph *graph, const Sequences *s, int64_t from, int64_t n,
                   float (*cache)[ALL], float *ret)
{
    float q[BATCH * ALL], k[BATCH * ALL], v[BATCH * ALL];
    const int32_t first[1] = { (int32_t)from };
    const KilnShape shape = KILN_SHAPE(BATCH, STEPS, HEADS, WIDTH);

    take(s->q, from, n, q);
    take(s->k, from, n, k);
    take(s->v, from, n, v);
    kiln_graph_begin(graph);
    KilnTensor *position = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(1), first);
    KilnTensor *keys = kiln_graph_variable(graph, KILN_F32, shape, cache[0], false, NULL);
    KilnTensor *values = kiln_graph_variable(graph, KILN_F32, shape, cache[BATCH], false, NULL);
    const KilnAttention attention = { .mask = kiln_cache_mask(position, n, STEPS) };

    kiln_cache_write(keys, kiln_rotary_at(input(graph, n, k), position, (KilnRotary) { 0 }),
                     position, 1);
    kiln_cache_write(values, input(graph, n, v), position, 1);
    run(graph,
        kiln_attention(kiln_rotary_at(input(graph, n, q), position, (KilnRotary) { 0 }), keys,
                       values, attention),
        ret, (size_t)(BATCH * n * ROW));
}

static void check_decoding(KilnBackend *backend)
{
    static Sequences s;
    static float cache[2 * BATCH][ALL];
    float got[BATCH * ALL], want[BATCH * ALL];
    KilnGraph *graph = NULL;
    KilnError err;
    int64_t n;

    fill(&s);
    whole(backend, &s);
    memset(cache, 0, sizeof(cache));
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    for (int64_t at = 0; at < STEPS; at += n) { /* a prompt of 5, then one by one */
        n = at == 0 ? 5 : 1;
        decode(graph, &s, at, n, cache, got);
        take(s.y, at, n, want);
        for (int64_t i = 0; i < BATCH * n * ROW; i++)
            if (!(fabsf(got[i] - want[i]) < 1e-5f))
                fail_msg("%s, position %d: %g, not %g", backend->ops->name, (int)at, (double)got[i],
                         (double)want[i]);
    }
    assert_int_equal(graph->plan_cache.made, 2);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static void test_decoding(void **unused)
{
    (void)unused;
    check_decoding(ref_new());
    check_decoding(cpu_new(2, KILN_CONVOLUTION_DIRECT));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_decoding) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
