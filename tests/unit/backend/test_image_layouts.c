/* Operations between convolutions that keep oneDNN's blocks of channels: the same results and
 * gradients as in plain order, and no conversion where a block divides all channels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "graph/graph.h"
#include "graph/passes/pass_list.h"
#include "graph/plan/profile.h"
#include "kiln/ops/image.h"
#include "kiln/rng.h"
#include "tests/support/cmocka.h"

enum { IMAGES = 4, HEIGHT = 9, WIDTH = 7, IN = 16, MOST = 48, OUT = 16, PARAMS = 3 };

typedef KilnTensor *Middle(KilnTensor *a, KilnTensor *b);

static int32_t key[2] = { 3, 4 };

/* ---- Operations --------------------------------------------------------------------------- */

static KilnTensor *nothing(KilnTensor *a, KilnTensor *b)
{
    (void)b;
    return a;
}

static KilnTensor *channels_joined(KilnTensor *a, KilnTensor *b)
{
    return kiln_concat((KilnTensor *[]) { a, b, a }, 3, -1);
}

static KilnTensor *rows_joined(KilnTensor *a, KilnTensor *b)
{
    return kiln_concat((KilnTensor *[]) { a, b }, 2, 1);
}

static KilnTensor *channels_cut(KilnTensor *a, KilnTensor *b)
{
    (void)b;
    return kiln_narrow(a, 3, kiln_tensor_dim(a, 3) / 2, kiln_tensor_dim(a, 3) / 2);
}

static KilnTensor *pixels_cut(KilnTensor *a, KilnTensor *b)
{
    (void)b;
    return kiln_slice(kiln_slice(a, 1, 1, -1, 1), 2, 1, KILN_END, 2);
}

static KilnTensor *turned(KilnTensor *a, KilnTensor *b)
{
    (void)b;
    return kiln_flip(kiln_flip(a, 0), 2);
}

static KilnTensor *padded(KilnTensor *a, KilnTensor *b)
{
    static const int64_t before[] = { 0, 1, 0, 16 }, after[] = { 0, 2, 3, 0 };

    (void)b;
    return kiln_pad(a, before, after, 0.5);
}

static KilnTensor *mirrored(KilnTensor *a, KilnTensor *b)
{
    static const int64_t before[] = { 0, 2, 1, 0 }, after[] = { 0, 0, 3, 0 };

    (void)b;
    return kiln_pad_reflect(a, before, after);
}

static KilnTensor *parts_swapped(KilnTensor *a, KilnTensor *b)
{
    const int64_t half = kiln_tensor_dim(a, 3) / 2, sizes[] = { half, half };
    KilnTensor *parts[2];

    (void)b;
    kiln_split(a, 3, sizes, 2, parts);
    return kiln_concat((KilnTensor *[]) { parts[1], parts[0] }, 2, 3);
}

static KilnTensor *nearest(KilnTensor *a, KilnTensor *b)
{
    (void)b;
    return kiln_upsample_nearest(a, (KilnSize) { 2 * HEIGHT, 11 });
}

static KilnTensor *bilinear(KilnTensor *a, KilnTensor *b)
{
    (void)b;
    return kiln_upsample_bilinear(a, (KilnSize) { 2 * HEIGHT, 3 }, false);
}

static KilnTensor *bicubic(KilnTensor *a, KilnTensor *b)
{
    (void)b;
    return kiln_upsample_bicubic(a, (KilnSize) { 5, 2 * WIDTH }, false);
}

static KilnTensor *dropped(KilnTensor *a, KilnTensor *b)
{
    KilnGraph *graph = kiln_tensor_graph(a);

    (void)b;
    return kiln_dropout(a, 0.3, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), key), 7);
}

static const struct {
    const char *name;
    Middle *middle;
} cases[] = {
    { "nothing", nothing },
    { "concat of channels", channels_joined },
    { "concat of rows", rows_joined },
    { "slice of channels", channels_cut },
    { "slice of pixels", pixels_cut },
    { "flip", turned },
    { "pad", padded },
    { "pad_reflect", mirrored },
    { "split", parts_swapped },
    { "upsample_nearest", nearest },
    { "upsample_bilinear", bilinear },
    { "upsample_bicubic", bicubic },
    { "dropout", dropped },
};

/* ---- Running ------------------------------------------------------------------------------- */

typedef struct Run {
    double loss;
    float *values[PARAMS + 1], *grads[PARAMS + 1];
    int64_t counts[PARAMS + 1];
    int64_t conversions; /* of images, beside those to the first convolutions and from the last */
    bool base;           /* the processor's lowest level, where layouts of convolutions vary */
} Run;

static KilnTensor *variable(KilnGraph *graph, Run *run, int i, KilnShape shape)
{
    const int64_t n = run->counts[i] = kiln_shape_count(&shape);
    float *values = run->values[i] = malloc((size_t)n * sizeof(float));
    KilnRng rng;

    assert_non_null(values);
    run->grads[i] = calloc((size_t)n, sizeof(float));
    assert_non_null(run->grads[i]);
    kiln_rng_init(&rng, 9, KILN_RNG_USER, 0, (uint64_t)i);
    for (int64_t k = 0; k < n; k++)
        values[k] = 0.3f * kiln_rng_normal(&rng);
    return kiln_graph_variable(graph, KILN_F32, shape, values, true, run->grads[i]);
}

/* Conversions in the layers that an operation and its gradient belong to. */
static int64_t conversions_of(const KilnGraph *graph)
{
    KilnProfileRow row;
    int64_t n = 0;

    for (size_t i = 0; kiln_graph_profile(graph, i, &row); i++)
        n += strcmp(row.op, "reorder") == 0 && strcmp(row.layer, "first") != 0;
    return n;
}

static Run run(Middle *middle, int64_t channels, KilnPrecision precision, bool layouts)
{
    const KilnConv conv = { .stride = 1, .padding = 1 };
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnTensor *values[PARAMS + 1];
    KilnError err = { 0 };
    Run run = { 0 };

    assert_int_equal(kiln_backend_cpu_new(2, &backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, precision);
    graph->passes_off = layouts ? 0 : 1u << KILN_PASS_layouts;
    graph->profile = true;
    kiln_graph_begin(graph);
    values[0] = variable(graph, &run, 0, KILN_SHAPE(IMAGES, HEIGHT, WIDTH, IN));
    values[1] = variable(graph, &run, 1, KILN_SHAPE(channels, IN, 3, 3));
    values[2] = variable(graph, &run, 2, KILN_SHAPE(channels, IN, 3, 3));
    kiln_graph_layer(graph, "first");
    KilnTensor *a = kiln_conv2d(values[0], values[1], NULL, conv);
    KilnTensor *b = kiln_conv2d(values[0], values[2], NULL, conv);
    kiln_graph_layer(graph, "middle");
    KilnTensor *y = middle(a, b);
    values[3] = variable(graph, &run, 3, KILN_SHAPE(OUT, kiln_tensor_dim(y, 3), 3, 3));
    kiln_graph_layer(graph, "last");
    y = kiln_conv2d(y, values[3], NULL, conv);
    KilnTensor *loss = kiln_mean(kiln_square(y));
    kiln_graph_layer(graph, NULL);
    kiln_graph_backward(graph, loss);
    if (kiln_graph_run(graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    run.loss = kiln_tensor_scalar(loss);
    run.conversions = conversions_of(graph);
    run.base = strncmp(backend->machine, "sse2", 4) == 0;
    kiln_graph_free(graph);
    kiln_backend_free(backend);
    return run;
}

static void release(Run *run)
{
    for (int i = 0; i <= PARAMS; i++) {
        free(run->values[i]);
        free(run->grads[i]);
    }
}

static void compare(const char *name, int64_t channels, const Run *a, const Run *b, double most)
{
    if (!(fabs(a->loss - b->loss) <= most * fabs(b->loss)))
        fail_msg("%s of %d channels: loss %g, in plain order %g", name, (int)channels, a->loss,
                 b->loss);
    for (int i = 0; i <= PARAMS; i++) {
        double size = 0.0, difference = 0.0;

        for (int64_t k = 0; k < a->counts[i]; k++) {
            const double there = (double)b->grads[i][k];

            size += there * there;
            difference += ((double)a->grads[i][k] - there) * ((double)a->grads[i][k] - there);
        }
        if (!(sqrt(difference) <= most * sqrt(size)))
            fail_msg("%s of %d channels: gradient %d differs by %g of %g", name, (int)channels, i,
                     sqrt(difference), sqrt(size));
    }
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void test_same_results(void **unused)
{
    static const int64_t channels[] = { 32, 24, 20, MOST };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        for (size_t c = 0; c < KILN_COUNT(channels); c++) {
            Run blocked = run(cases[i].middle, channels[c], KILN_PRECISION_32, true);
            Run plain = run(cases[i].middle, channels[c], KILN_PRECISION_32, false);

            compare(cases[i].name, channels[c], &blocked, &plain, 1e-5);
            release(&blocked);
            release(&plain);
        }
}

static void test_same_in_bf16(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        Run blocked = run(cases[i].middle, 32, KILN_BF16_MIXED, true);
        Run plain = run(cases[i].middle, 32, KILN_BF16_MIXED, false);

        compare(cases[i].name, 32, &blocked, &plain, 2e-2);
        release(&blocked);
        release(&plain);
    }
}

#if defined(__x86_64__)
/* With 32 channels, of which halves are whole blocks too: as few as between two convolutions. */
static void test_no_conversions(void **unused)
{
    Run none = run(nothing, 32, KILN_PRECISION_32, true);

    (void)unused;
    for (size_t i = 1; i < KILN_COUNT(cases) && !none.base; i++) {
        Run blocked = run(cases[i].middle, 32, KILN_PRECISION_32, true);

        if (blocked.conversions > none.conversions)
            fail_msg("%s: %d conversions, without it %d", cases[i].name, (int)blocked.conversions,
                     (int)none.conversions);
        release(&blocked);
    }
    release(&none);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_results),
        cmocka_unit_test(test_same_in_bf16),
#if defined(__x86_64__)
        cmocka_unit_test(test_no_conversions),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
