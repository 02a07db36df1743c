/* Losses, moving and picking by index on both backends against values and gradients
 * that PyTorch computed once (tests/record/losses.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "tests/data/ops/losses.h"

enum { MOST_LEAVES = 4 };
static const double tolerance = 1e-5;

static const struct Record *find(const char *group, const char *name, const char *prefix)
{
    char full[64];

    snprintf(full, sizeof(full), "%s.%s%s", group, prefix, name);
    for (size_t i = 0; i < KILN_COUNT(records); i++)
        if (strcmp(records[i].name, full) == 0)
            return &records[i];
    return NULL;
}

/* ---- The operations ----------------------------------------------------------------- */

typedef struct Leaf {
    const char *name;
    KilnDType dtype;
    KilnShape shape;
} Leaf;

typedef struct Group {
    const char *name;
    KilnTensor *(*build)(KilnTensor *const *x);
    Leaf leaves[MOST_LEAVES];
} Group;

#define BUILD(name) static KilnTensor *name(KilnTensor *const *x)
#define RETURNS(name, ...)                                                                         \
    BUILD(build_##name)                                                                            \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

RETURNS(entropy, kiln_cross_entropy(x[0], x[1],
                                    (KilnCrossEntropy) { .weight = x[2],
                                                         .label_smoothing = 0.2,
                                                         .ignore = true,
                                                         .ignore_index = 2 }))
RETURNS(entropy_sum,
        kiln_cross_entropy(x[0], x[1],
                           (KilnCrossEntropy) { .weight = x[2], .reduction = KILN_REDUCTION_SUM }))
RETURNS(entropy_none, kiln_cross_entropy(x[0], x[1],
                                         (KilnCrossEntropy) { .label_smoothing = 0.1,
                                                              .ignore = true,
                                                              .ignore_index = 2,
                                                              .reduction = KILN_REDUCTION_NONE }))
RETURNS(nll, kiln_nll(x[0], x[1],
                      (KilnCrossEntropy) { .weight = x[2], .ignore = true, .ignore_index = 2 }))
RETURNS(nll_none, kiln_nll(x[0], x[1],
                           (KilnCrossEntropy) { .weight = x[2], .reduction = KILN_REDUCTION_NONE }))
RETURNS(entropy_soft,
        kiln_cross_entropy_soft(x[0], x[1],
                                (KilnCrossEntropy) { .weight = x[2], .label_smoothing = 0.2 }))
RETURNS(entropy_soft_none,
        kiln_cross_entropy_soft(x[0], x[1],
                                (KilnCrossEntropy) { .weight = x[2],
                                                     .reduction = KILN_REDUCTION_NONE }))
RETURNS(log_softmax0, kiln_log_softmax(kiln_scale(x[0], 3.0), 0))
RETURNS(log_softmax1, kiln_log_softmax(kiln_scale(x[0], 3.0), 1))
RETURNS(softmax0, kiln_softmax(kiln_scale(x[0], 3.0), 0))
RETURNS(softmax1, kiln_softmax(kiln_scale(x[0], 3.0), -2))
RETURNS(ctc,
        kiln_ctc(kiln_log_softmax(x[0], -1), x[1], x[2], x[3], (KilnCtc) { .zero_infinity = true }))
RETURNS(ctc_none, kiln_ctc(kiln_log_softmax(x[0], -1), x[1], x[2], x[3],
                           (KilnCtc) { .zero_infinity = true, .reduction = KILN_REDUCTION_NONE }))
RETURNS(mse, kiln_mse(x[0], x[1], KILN_REDUCTION_MEAN))
RETURNS(l1, kiln_l1(x[0], x[1], KILN_REDUCTION_NONE))
RETURNS(huber, kiln_huber(x[0], x[1], 0.7, KILN_REDUCTION_SUM))
RETURNS(smooth_l1, kiln_smooth_l1(x[0], x[1], 0.4, KILN_REDUCTION_MEAN))
RETURNS(kl, kiln_kl_div(x[0], x[1], false, KILN_REDUCTION_SUM))
RETURNS(kl_log, kiln_kl_div(x[0], x[1], true, KILN_REDUCTION_MEAN))
RETURNS(focal, kiln_sigmoid_focal(kiln_scale(x[0], 4.0), x[1], 0.25, 2.0, KILN_REDUCTION_MEAN))
RETURNS(focal_classes,
        kiln_focal(kiln_scale(x[0], 4.0), x[1], 1.5,
                   (KilnCrossEntropy) { .weight = x[2], .ignore = true, .ignore_index = 2 }))
RETURNS(dice, kiln_dice(kiln_sigmoid(x[0]), x[1], 1.0, KILN_REDUCTION_MEAN))
RETURNS(cosine, kiln_cosine_similarity(x[0], x[1], 0, 1e-8))
RETURNS(cosine_embedding, kiln_cosine_embedding(x[0], x[1], x[2], 0.1, KILN_REDUCTION_MEAN))
RETURNS(gather, kiln_gather(x[0], 1, x[1]))
RETURNS(scatter_add, kiln_scatter_add(x[0], 0, x[1], x[2]))
RETURNS(index_select, kiln_index_select(x[0], 1, x[1]))
RETURNS(embedding, kiln_embedding(x[0], x[1], 2))
RETURNS(bag_sum, kiln_embedding_bag(x[0], x[1], x[2], KILN_BAG_SUM, 2))
RETURNS(bag_factors, kiln_embedding_bag_weighed(x[0], x[1], x[3], x[2], 2))
RETURNS(bag_factors_rows, kiln_embedding_bag_weighed(x[0], x[1], NULL, x[2], 2))
RETURNS(pad_reflect, kiln_pad_reflect(x[0], (int64_t[]) { 0, 0, 3, 0 }, (int64_t[]) { 0, 2, 1, 0 }))
RETURNS(pad_reflect_line, kiln_pad_reflect(x[0], (int64_t[]) { 0, 0, 2 }, (int64_t[]) { 0, 0, 4 }))
RETURNS(pad_replicate,
        kiln_pad_replicate(x[0], (int64_t[]) { 0, 0, 3, 0 }, (int64_t[]) { 0, 2, 1, 0 }))
RETURNS(pad_replicate_line,
        kiln_pad_replicate(x[0], (int64_t[]) { 0, 0, 2 }, (int64_t[]) { 0, 0, 4 }))
RETURNS(bag_mean, kiln_embedding_bag(x[0], x[1], x[2], KILN_BAG_MEAN, 2))
RETURNS(bag_max, kiln_embedding_bag(x[0], x[1], x[2], KILN_BAG_MAX, 2))
RETURNS(cumsum, kiln_cumsum(x[0], 1))
RETURNS(tril, kiln_tril(x[0], 1, 0.0))
RETURNS(nearest, kiln_upsample_nearest(x[0], (KilnSize) { 7, 12 }))
RETURNS(bilinear, kiln_upsample_bilinear(x[0], (KilnSize) { 7, 12 }, false))
RETURNS(bilinear_small, kiln_upsample_bilinear(x[0], (KilnSize) { 3, 2 }, false))
RETURNS(corners, kiln_upsample_bilinear(x[0], (KilnSize) { 7, 12 }, true))

/* The weights are those of the script. */
BUILD(build_bce)
{
    KilnGraph *graph = kiln_tensor_graph(x[0]);
    KilnTensor *weight = kiln_arange(graph, KILN_F32, 1.0, 1.0, 6);
    KilnTensor *pos_weight = kiln_arange(graph, KILN_F32, 0.5, 0.5, 6);

    return kiln_bce_with_logits(kiln_scale(x[0], 8.0), x[1], weight, pos_weight,
                                KILN_REDUCTION_MEAN);
}

#define F(name, ...)                                                                               \
    {                                                                                              \
        name, KILN_F32,                                                                            \
        {                                                                                          \
            SIZES(__VA_ARGS__)                                                                     \
        }                                                                                          \
    }
#define I(name, ...)                                                                               \
    {                                                                                              \
        name, KILN_I32,                                                                            \
        {                                                                                          \
            SIZES(__VA_ARGS__)                                                                     \
        }                                                                                          \
    }
#define SIZES(...)                                                                                 \
    .rank = (int)(sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t)), .dim = { __VA_ARGS__ }
#define GROUP(name, ...)                                                                           \
    {                                                                                              \
#name, build_##name,                                                                       \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define CLASSES F("x", 4, 3, 5), I("labels", 4, 3), F("weight", 5)
#define SOFT F("x", 6, 5), F("target", 6, 5), F("weight", 5)
#define SEQUENCES F("x", 9, 3, 5), I("targets", 3, 4), I("inputs", 3), I("lengths", 3)
#define PAIR F("x", 4, 6), F("target", 4, 6)
#define BAGS F("x", 6, 3), I("index", 12), I("offsets", 4)
#define IMAGE F("x", 2, 4, 5, 3)

static const Group groups[] = {
    GROUP(entropy, CLASSES),
    GROUP(entropy_sum, CLASSES),
    GROUP(entropy_none, CLASSES),
    GROUP(nll, CLASSES),
    GROUP(nll_none, CLASSES),
    GROUP(entropy_soft, SOFT),
    GROUP(entropy_soft_none, SOFT),
    GROUP(log_softmax0, F("x", 4, 5, 3)),
    GROUP(log_softmax1, F("x", 4, 5, 3)),
    GROUP(softmax0, F("x", 4, 5, 3)),
    GROUP(softmax1, F("x", 4, 5, 3)),
    GROUP(ctc, SEQUENCES),
    GROUP(ctc_none, SEQUENCES),
    GROUP(mse, PAIR),
    GROUP(l1, PAIR),
    GROUP(huber, PAIR),
    GROUP(smooth_l1, PAIR),
    GROUP(kl, PAIR),
    GROUP(kl_log, PAIR),
    GROUP(bce, PAIR),
    GROUP(focal, PAIR),
    GROUP(focal_classes, CLASSES),
    GROUP(dice, F("x", 2, 3, 4, 3), F("target", 2, 3, 4, 3)),
    GROUP(cosine, PAIR),
    GROUP(cosine_embedding, F("x", 6, 3), F("other", 6, 3), F("target", 6)),
    GROUP(gather, F("x", 4, 5, 3), I("index", 4, 7, 2)),
    GROUP(scatter_add, F("x", 4, 5, 3), I("index", 7, 5, 2), F("src", 7, 5, 2)),
    GROUP(index_select, F("x", 4, 5, 3), I("index", 6)),
    GROUP(embedding, F("x", 6, 3), I("index", 4, 5)),
    GROUP(bag_sum, BAGS),
    GROUP(bag_mean, BAGS),
    GROUP(bag_max, BAGS),
    GROUP(bag_factors, F("x", 6, 3), I("index", 12), F("factors", 12), I("offsets", 4)),
    GROUP(bag_factors_rows, F("x", 6, 3), I("index", 4, 3), F("factors", 4, 3)),
    GROUP(pad_reflect, F("x", 2, 3, 4, 2)),
    GROUP(pad_reflect_line, F("x", 2, 3, 5)),
    GROUP(pad_replicate, F("x", 2, 3, 4, 2)),
    GROUP(pad_replicate_line, F("x", 2, 3, 5)),
    GROUP(cumsum, F("x", 3, 5)),
    GROUP(tril, F("x", 2, 4, 5)),
    GROUP(nearest, IMAGE),
    GROUP(bilinear, IMAGE),
    GROUP(bilinear_small, IMAGE),
    GROUP(corners, IMAGE),
};

/* ---- Running one -------------------------------------------------------------------- */

/* Largest difference over the largest recorded value. */
static void check(const char *backend, const char *group, const char *what,
                  const struct Record *want, const float *got)
{
    double worst = 0.0, scale = 1e-30;

    for (size_t i = 0; i < want->n; i++) {
        double d = fabs((double)want->values[i] - (double)got[i]);

        worst = d > worst || isnan(d) ? d : worst;
        scale = fmax(scale, fabs((double)want->values[i]));
    }
    if (!(worst / scale <= tolerance))
        fail_msg("%s.%s on %s: differs by %g", group, what, backend, worst / scale);
}

/* The recorded values of a leaf, in its type; freed by the caller. */
static void *leaf_data(const Leaf *leaf, const struct Record *record)
{
    float *data = calloc(record->n, sizeof(*data));

    assert_non_null(data);
    assert_int_equal(record->n, kiln_shape_count(&leaf->shape));
    for (size_t i = 0; i < record->n; i++) {
        if (leaf->dtype == KILN_I32)
            ((int32_t *)(void *)data)[i] = (int32_t)record->values[i];
        else
            data[i] = record->values[i];
    }
    return data;
}

static void run_group(KilnBackend *backend, const Group *group)
{
    KilnTensor *leaf[MOST_LEAVES] = { NULL };
    void *data[MOST_LEAVES] = { NULL };
    float *grad[MOST_LEAVES] = { NULL };
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    for (int i = 0; i < MOST_LEAVES && group->leaves[i].name != NULL; i++) {
        const Leaf *l = &group->leaves[i];
        const struct Record *record = find(group->name, l->name, "");
        const bool wants = find(group->name, l->name, "d") != NULL;

        if (record == NULL)
            fail_msg("no record %s.%s", group->name, l->name);
        data[i] = leaf_data(l, record);
        grad[i] = calloc(record->n, sizeof(float));
        leaf[i] = kiln_graph_variable(graph, l->dtype, l->shape, data[i], wants, grad[i]);
    }

    KilnTensor *y = group->build(leaf);
    const struct Record *dy = find(group->name, "dy", "");
    KilnTensor *weights = kiln_graph_input(graph, KILN_F32, *kiln_tensor_shape(y), dy->values);

    kiln_graph_backward(graph, kiln_sum(kiln_mul(y, weights)));
    if (kiln_graph_run(graph, &y, 1, &err) != KILN_OK)
        fail_msg("%s on %s: %s", group->name, backend->ops->name, err.text);
    assert_int_equal(dy->n, kiln_shape_count(kiln_tensor_shape(y)));
    check(backend->ops->name, group->name, "y", find(group->name, "y", ""), kiln_tensor_data(y));
    for (int i = 0; i < MOST_LEAVES && group->leaves[i].name != NULL; i++) {
        const struct Record *want = find(group->name, group->leaves[i].name, "d");

        if (want != NULL)
            check(backend->ops->name, group->name, want->name, want, grad[i]);
        free(data[i]);
        free(grad[i]);
    }
    kiln_graph_free(graph);
}

static void test_groups(void **unused)
{
    KilnBackend *backends[2] = { NULL };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_backend_ref_new(&backends[0], &err), KILN_OK);
    assert_int_equal(kiln_backend_cpu_new(2, &backends[1], &err), KILN_OK);
    for (size_t b = 0; b < KILN_COUNT(backends); b++) {
        for (size_t i = 0; i < KILN_COUNT(groups); i++)
            run_group(backends[b], &groups[i]);
        kiln_backend_free(backends[b]);
    }
}

/* Each group of the script is checked. */
static void test_all_recorded(void **unused)
{
    size_t n = 0;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(records); i++) {
        const size_t length = strlen(records[i].name);

        n += length > 2 && strcmp(records[i].name + length - 2, ".y") == 0;
    }
    assert_int_equal(n, KILN_COUNT(groups));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_all_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
