/* Mean average precision against pycocotools, and FCOS's targets and losses against torchvision
 * (tests/record/detection.py). */
#include <math.h>
#include <string.h>

#include "kiln/images/detection.h"
#include "tests/support/components/built_component.h"
#include "tests/support/data/data_fixture.h"
#include "train/metrics/metric_state.h"

enum { VALUES = 12, CLASSES = 4 };

typedef struct Evaluated {
    const char *name;
    const float *found, *boxes;
    const int64_t *sizes;
    int64_t images, classes;
    double values[VALUES], of_class[CLASSES];
} Evaluated;

#include "tests/data/detection.h"

/* The parts of the metric in the order of COCOeval.stats. */
static const char *const parts[VALUES] = {
    "",      "50",     "75",      "small",     "medium",     "large",
    "mar_1", "mar_10", "mar_100", "mar_small", "mar_medium", "mar_large",
};
static const char *const names[CLASSES] = { "a", "b", "c", "d" };

/* ---- The metric ------------------------------------------------------------------------------ */

static void assert_value(const KilnMetricResult *results, size_t n, const char *rows,
                         const char *part, double want)
{
    for (size_t i = 0; i < n; i++) {
        const double got = results[i].value;

        if (strcmp(results[i].name, part) != 0)
            continue;
        if (want < 0.0 ? !isnan(got) : !(fabs(got - want) <= 1e-12))
            fail_msg("%s, %s: got %.17g, want %.17g", rows, part, got, want);
        return;
    }
    fail_msg("%s: there is no value \"%s\"", rows, part);
}

/* Add the images in calls of `batch`. */
static void add(KilnMetricState *state, const Evaluated *set, int64_t batch)
{
    const float *found = set->found, *boxes = set->boxes;
    KilnError err = { 0 };

    for (int64_t i = 0; i < set->images; i += batch) {
        const int64_t n = batch < set->images - i ? batch : set->images - i;
        const KilnMetricRows rows = {
            .count = n, .scores = found, .targets = boxes, .group_sizes = set->sizes + 2 * i
        };

        if (kiln_metric_state_update(state, &rows, &err) < 0)
            fail_msg("%s: %s", set->name, err.text);
        for (int64_t k = 2 * i; k < 2 * (i + n); k += 2) {
            found += set->sizes[k] * KILN_DETECTION_COLUMNS;
            boxes += set->sizes[k + 1] * KILN_TRUTH_COLUMNS;
        }
    }
}

static void check_set(KilnInstance *metric, const Evaluated *set, int64_t batch)
{
    const KilnMetricForm form = { .names = names, .n_names = set->classes };
    const KilnMetricResult *results = NULL;
    KilnMetricState *state = NULL;
    KilnError err = { 0 };
    size_t n = 0;

    if (kiln_metric_state_new(metric, &form, &state, &err) < 0)
        fail_msg("%s", err.text);
    add(state, set, batch);
    assert_int_equal(kiln_metric_state_compute(state, &results, &n, &err), KILN_OK);
    for (int i = 0; i < VALUES; i++)
        assert_value(results, n, set->name, parts[i], set->values[i]);
    for (int64_t i = 0; i < set->classes; i++)
        assert_value(results, n, set->name, names[i], set->of_class[i]);
    kiln_metric_state_free(state);
}

static void test_pycocotools(void **unused)
{
    Built built;
    KilnError err = { 0 };

    (void)unused;
    if (build_yaml(&built, KILN_KIND_METRIC, "coco_map", "per_class: true", &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < KILN_COUNT(evaluated); i++) {
        check_set(built.instance, &evaluated[i], 1);
        check_set(built.instance, &evaluated[i], 3);
    }
    built_free(&built);
}

/* ---- Training -------------------------------------------------------------------------------- */

enum { BATCH = 3, TRUTH = 3, KINDS = 3, PLACES = KILN_COUNT(fcos_places) / 3 };

static KilnBackend *backend;

static int open_backend(void **unused)
{
    (void)unused;
    return kiln_backend_cpu_new(2, &backend, NULL);
}

static int close_backend(void **unused)
{
    (void)unused;
    kiln_backend_free(backend);
    return 0;
}

static KilnGraph *graph_new(void)
{
    KilnGraph *graph = NULL;

    assert_int_equal(kiln_graph_new(backend, &graph, NULL), KILN_OK);
    kiln_graph_begin(graph);
    return graph;
}

static void assert_near(const float *got, const float *want, size_t n, float tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= tolerance))
            fail_msg("%zu: got %g, want %g", i, (double)got[i], (double)want[i]);
}

static void test_fcos(void **unused)
{
    KilnGraph *graph = graph_new();
    KilnError err = { 0 };

    (void)unused;
    KilnTensor *boxes = kiln_graph_input(graph, KILN_F32,
                                         KILN_SHAPE(BATCH, TRUTH, KILN_BOX_COLUMNS), fcos_boxes);
    KilnTensor *places = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(PLACES, 3), fcos_places);
    KilnTensor *logits = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, PLACES, KINDS),
                                          fcos_logits);
    KilnTensor *decoded = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, PLACES, 4),
                                           fcos_decoded);
    KilnTensor *middle = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(BATCH, PLACES), fcos_middle);
    const KilnBoxTargets targets = kiln_fcos_targets(boxes, places, KINDS, 1.5);
    KilnTensor *n = kiln_sum(targets.weight);
    KilnTensor *outputs[] = {
        kiln_div(kiln_sigmoid_focal(logits, targets.classes, 0.25, 2.0, KILN_REDUCTION_SUM), n),
        kiln_div(kiln_sum(kiln_mul(kiln_giou_loss(decoded, targets.boxes), targets.weight)), n),
        kiln_div(kiln_bce_with_logits(middle, targets.centerness, targets.weight, NULL,
                                      KILN_REDUCTION_SUM),
                 n),
        targets.weight,
        targets.boxes,
    };
    if (kiln_graph_run(graph, outputs, KILN_COUNT(outputs), &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < 3; i++)
        assert_near(kiln_tensor_data(outputs[i]), &fcos_losses[i], 1, 2e-5f);
    const float *weight = kiln_tensor_data(outputs[3]), *to = kiln_tensor_data(outputs[4]);
    for (size_t i = 0; i < BATCH * PLACES; i++) {
        const size_t image = i / PLACES;

        assert_true(weight[i] == (fcos_matched[i] >= 0 ? 1.0f : 0.0f));
        if (fcos_matched[i] >= 0)
            assert_near(to + 4 * i,
                        fcos_boxes + (image * TRUTH + (size_t)fcos_matched[i]) * KILN_BOX_COLUMNS,
                        4, 0.0f);
    }
    kiln_graph_free(graph);
}

/* A crowd and a box out of view are no place's. */
static void test_left_out(void **unused)
{
    static const float rows[2][KILN_BOX_COLUMNS] = { { 4, 4, 44, 44, 1, 1 }, { 0, 0, 0, 0, 1, 0 } };
    KilnGraph *graph = graph_new();

    (void)unused;
    KilnTensor *boxes = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1, 2, KILN_BOX_COLUMNS), rows);
    KilnTensor *places = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(PLACES, 3), fcos_places);
    KilnTensor *n = kiln_sum(kiln_fcos_targets(boxes, places, KINDS, 1.5).weight);
    assert_int_equal(kiln_graph_run(graph, &n, 1, NULL), KILN_OK);
    assert_true(*(const float *)kiln_tensor_data(n) == 0.0f);
    kiln_graph_free(graph);
}

static void test_giou(void **unused)
{
    const int64_t n = KILN_COUNT(giou_loss);
    KilnGraph *graph = graph_new();

    (void)unused;
    KilnTensor *a = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n, 4), giou_a);
    KilnTensor *b = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n, 4), giou_b);
    KilnTensor *loss = kiln_giou_loss(a, b);
    assert_int_equal(kiln_graph_run(graph, &loss, 1, NULL), KILN_OK);
    assert_near(kiln_tensor_data(loss), giou_loss, (size_t)n, 1e-6f);
    kiln_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pycocotools),
        cmocka_unit_test(test_fcos),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_giou),
    };

    return cmocka_run_group_tests(tests, open_backend, close_backend);
}
