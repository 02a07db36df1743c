/* Test-time augmentation: which parts of an image the views are, and the mean of what a model says
 * about them. */
#include <math.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "kiln/images/test_views.h"
#include "tests/support/cmocka.h"

enum { N = 2, HEIGHT = 7, WIDTH = 10, CHANNELS = 3, CROP_HEIGHT = 4, CROP_WIDTH = 5 };

static float pixels[N * HEIGHT * WIDTH * CHANNELS];

/* torchvision's FiveCrop of 4 x 5: rows and columns where crops begin. */
static const int places[5][2] = {
    { 0, 0 }, { 0, 5 }, { 3, 0 }, { 3, 5 }, { 2, 2 } /* round(1.5), round(2.5) */
};

static float pixel(int n, int y, int x, int c)
{
    return pixels[((n * HEIGHT + y) * WIDTH + x) * CHANNELS + c];
}

static void check_crop(const KilnTensor *view, const int place[2], bool mirrored)
{
    const float *got = kiln_tensor_data(view);

    for (int n = 0; n < N; n++)
        for (int y = 0; y < CROP_HEIGHT; y++)
            for (int x = 0; x < CROP_WIDTH; x++)
                for (int c = 0; c < CHANNELS; c++) {
                    const int column = place[1] + x;

                    assert_true(*got++ ==
                                pixel(n, place[0] + y, mirrored ? WIDTH - 1 - column : column, c));
                }
}

static void test_crops(void **unused)
{
    const KilnTestViews how = { .augmentation = KILN_TEST_TEN_CROP,
                                .crop = { CROP_HEIGHT, CROP_WIDTH } };
    KilnTensor *views[KILN_TEST_VIEWS];
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(pixels); i++)
        pixels[i] = sinf((float)i);
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnTensor *images = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(N, HEIGHT, WIDTH, CHANNELS),
                                          pixels);
    assert_int_equal(kiln_test_views(&how, images, views), 10);
    if (kiln_graph_run(graph, views, 10, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 10; i++)
        check_crop(views[i], places[i % 5], i >= 5);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

/* Also where a probability is too small for a float. */
static void test_mean(void **unused)
{
    static const float logits[2][3] = { { 1.0f, 2.0f, -300.0f }, { 0.5f, -400.0f, -300.0f } };
    KilnTensor *each[2];
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_backend_cpu_new(1, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    for (int i = 0; i < 2; i++)
        each[i] = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1, 3), logits[i]);
    KilnTensor *mean = kiln_test_views_mean(each, 2);
    if (kiln_graph_run(graph, &mean, 1, &err) < 0)
        fail_msg("%s", err.text);
    const float *got = kiln_tensor_data(mean);
    const double a = 1.0 / (1.0 + exp(1.0)); /* of class 0 in the first view; 1 in the second */
    assert_true(fabs(exp((double)got[0]) - 0.5 * (a + 1.0)) < 1e-6);
    assert_true(fabs(exp((double)got[1]) - 0.5 * (1.0 - a)) < 1e-6);
    assert_true(isfinite(got[2]) && got[2] < -290.0f);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crops),
        cmocka_unit_test(test_mean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
