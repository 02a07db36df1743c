/* Attention of one query (isa/sequence/attention_one.h) beside the same query among several, which
 * other loops compute. */
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "kiln/rng.h"

enum { BATCH = 2, QUERIES = 3, HEADS = 4, MOST_KEYS = 200, MOST_WIDTH = 80 };

typedef struct Case {
    int64_t keys, width, groups;
    bool padded, masked;
    KilnPrecision precision;
} Case;

/* [BATCH, time, heads, width], of which a call takes the first `queries` of each sample. */
typedef struct Data {
    float q[BATCH * QUERIES * HEADS * MOST_WIDTH], q_first[BATCH * HEADS * MOST_WIDTH];
    float k[BATCH * MOST_KEYS * HEADS * MOST_WIDTH], v[BATCH * MOST_KEYS * HEADS * MOST_WIDTH];
    float mask[BATCH * HEADS * QUERIES * MOST_KEYS];
    uint8_t padding[BATCH * MOST_KEYS];
    float one[BATCH * HEADS * MOST_WIDTH], several[BATCH * QUERIES * HEADS * MOST_WIDTH];
} Data;

static void draw(float *to, size_t n, KilnRng *rng)
{
    for (size_t i = 0; i < n; i++)
        to[i] = kiln_rng_normal(rng);
}

static void fill(Data *data, const Case *c)
{
    const size_t row = (size_t)(HEADS * c->width);
    KilnRng rng;

    kiln_rng_init(&rng, 5, KILN_RNG_USER, 0, 0);
    draw(data->q, KILN_COUNT(data->q), &rng);
    draw(data->k, KILN_COUNT(data->k), &rng);
    draw(data->v, KILN_COUNT(data->v), &rng);
    draw(data->mask, KILN_COUNT(data->mask), &rng);
    for (size_t i = 0; i < KILN_COUNT(data->padding); i++)
        data->padding[i] = kiln_rng_below(&rng, 4) > 0;
    for (size_t b = 0; b < BATCH; b++)
        memcpy(data->q_first + b * row, data->q + b * QUERIES * row, row * sizeof(float));
}

static void attend(KilnGraph *graph, Data *data, const Case *c, float *q, int64_t queries,
                   float *ret)
{
    const KilnShape keys = KILN_SHAPE(BATCH, c->keys, c->groups, c->width);
    const KilnShape shape = KILN_SHAPE(BATCH, queries, HEADS, c->width);
    KilnAttention attention = { 0 };
    KilnError err;

    kiln_graph_begin(graph);
    if (c->padded)
        attention.padding = kiln_graph_input(graph, KILN_U8, KILN_SHAPE(BATCH, c->keys),
                                             data->padding);
    if (c->masked) /* one row for all queries */
        attention.mask = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, HEADS, 1, c->keys),
                                          data->mask);
    KilnTensor *y = kiln_attention(kiln_graph_input(graph, KILN_F32, shape, q),
                                   kiln_graph_input(graph, KILN_F32, keys, data->k),
                                   kiln_graph_input(graph, KILN_F32, keys, data->v), attention);
    if (kiln_graph_run(graph, &y, 1, &err) < 0)
        fail_msg("%s", err.text);
    memcpy(ret, kiln_tensor_data(y), (size_t)kiln_shape_count(&shape) * sizeof(*ret));
}

static void check(const Case *c)
{
    Data *data = malloc(sizeof(*data));
    const size_t row = (size_t)(HEADS * c->width);
    const double tolerance = c->precision == KILN_PRECISION_32 ? 2e-6 : 0.02;
    KilnBackend *backend;
    KilnGraph *graph;
    KilnError err;

    assert_non_null(data);
    if (kiln_backend_cpu_new(2, &backend, &err) < 0 || kiln_graph_new(backend, &graph, &err) < 0)
        fail_msg("%s", err.text);
    kiln_graph_set_precision(graph, c->precision);
    fill(data, c);
    attend(graph, data, c, data->q_first, 1, data->one);
    attend(graph, data, c, data->q, QUERIES, data->several);
    for (size_t b = 0; b < BATCH; b++)
        for (size_t i = 0; i < row; i++)
            assert_true(fabs((double)data->one[b * row + i] -
                             (double)data->several[b * QUERIES * row + i]) < tolerance);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
    free(data);
}

static void test_one_of_several(void **unused)
{
    static const Case cases[] = {
        { .keys = 1, .width = 64, .groups = 4 },
        { .keys = 64, .width = 64, .groups = 4 },
        { .keys = 200, .width = 64, .groups = 1, .padded = true },
        { .keys = 130, .width = 80, .groups = 2, .masked = true },
        { .keys = 65, .width = 13, .groups = 4, .padded = true, .masked = true },
        { .keys = 200, .width = 3, .groups = 2 },
        { .keys = 130, .width = 64, .groups = 4, .precision = KILN_BF16_MIXED },
        { .keys = 65, .width = 13, .groups = 2, .padded = true, .precision = KILN_BF16_MIXED },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_of_several) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
