/* Reductions joined from parts that are infinite, empty, far apart or NaN: the CPU backend
 * against the reference. And counts of reductions over blocked layouts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"

/* ---- Joined parts ---------------------------------------------------------------- */

typedef KilnTensor *Record(KilnTensor *x, const int *axes, int n, bool keep);

/* Over rows, so that axes do not matter. */
static KilnTensor *softmax(KilnTensor *x, const int *axes, int n, bool keep)
{
    (void)axes, (void)n, (void)keep;
    return kiln_softmax(x, -1);
}

static KilnTensor *log_softmax(KilnTensor *x, const int *axes, int n, bool keep)
{
    (void)axes, (void)n, (void)keep;
    return kiln_log_softmax(x, -1);
}

static KilnTensor *norm(KilnTensor *x, const int *axes, int n, bool keep)
{
    (void)axes, (void)n, (void)keep;
    return kiln_l2_norm(x);
}

static const struct {
    const char *name;
    Record *record;
} ops[] = {
    { "sum", kiln_sum_axes },        { "mean", kiln_mean_axes },
    { "max", kiln_max_axes },        { "min", kiln_min_axes },
    { "logsumexp", kiln_logsumexp }, { "softmax", softmax },
    { "log_softmax", log_softmax },  { "l2_norm", norm },
};

/* Single columns and several, folded ones, chunks, slabs that are joined. */
static const struct {
    KilnShape shape;
    int axes[2], n;
} views[] = {
    { SHAPE(4, 8), { 0 }, 1 },        { SHAPE(4, 8), { 1 }, 1 },
    { SHAPE(9), { 0 }, 1 },           { SHAPE(200, 24), { 0 }, 1 },
    { SHAPE(70000), { 0 }, 1 },       { SHAPE(3, 40000), { 1 }, 1 },
    { SHAPE(3, 70, 5), { 0, 2 }, 2 }, { SHAPE(6, 5, 130, 3), { 0, 2 }, 2 },
    { SHAPE(512, 2), { 0 }, 1 },      { SHAPE(2, 300, 300), { 0, 2 }, 2 },
};

/* What the elements are: `low` but for every `every`-th, from `first` on, which is `high`;
 * counted along the first axis, or over all elements. */
static const struct {
    float low, high;
    int64_t first, every;
} fills[] = {
    { -1000.0f, -INFINITY, 1, 2 },
    { -INFINITY, -1000.0f, 1, 2 },
    { -INFINITY, -INFINITY, 0, 1 },
    { INFINITY, INFINITY, 0, 1 },
    { 1000.0f, INFINITY, 1, 2 },
    { INFINITY, 1000.0f, 1, 2 },
    { 1000.0f, -1000.0f, 1, 2 },
    { -1000.0f, 1000.0f, 1, 2 },
    { -INFINITY, 1000.0f, 3, 1000000 },
    { 0.5f, NAN, 3, 1000000 },
    { -INFINITY, NAN, 2, 3 },
    { INFINITY, -INFINITY, 1, 2 },
    { -3e20f, 1.0f, 1, 2 },
    { 1e-30f, 1e18f, 2, 3 },
    { -INFINITY, 88.0f, 1, 20000 },
    { -103.0f, -INFINITY, 0, 70 },
};

static void fill(float *x, const KilnShape *shape, size_t f, bool rows)
{
    const int64_t n = kiln_shape_count(shape), width = rows ? n / shape->dim[0] : 1;

    for (int64_t i = 0; i < n; i++) {
        const int64_t at = i / width - fills[f].first;

        x[i] = at >= 0 && at % fills[f].every == 0 ? fills[f].high : fills[f].low;
    }
}

/* The result, owned by the caller. */
static Bytes reduced(KilnBackend *backend, size_t op, size_t v, const float *x)
{
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnTensor *in = kiln_graph_input(graph, KILN_F32, views[v].shape, x);
    KilnTensor *y = ops[op].record(in, views[v].axes, views[v].n, false);

    if (kiln_graph_run(graph, &y, 1, &err) != KILN_OK)
        fail_msg("%s: %s", ops[op].name, err.text);
    Bytes bytes = bytes_new(KILN_F32, kiln_tensor_shape(y));
    memcpy(bytes.data, kiln_tensor_data(y), bytes.size);
    kiln_graph_free(graph);
    return bytes;
}

static void check_parts(KilnBackend *ref, KilnBackend *cpu, const char *how, size_t op, size_t v,
                        size_t f, bool rows)
{
    const KilnShape *shape = &views[v].shape;
    char text[KILN_SHAPE_TEXT];
    float *x = malloc((size_t)kiln_shape_count(shape) * sizeof(*x));

    assert_non_null(x);
    fill(x, shape, f, rows);
    Bytes want = reduced(ref, op, v, x), got = reduced(cpu, op, v, x);

    for (size_t i = 0; i < want.size / sizeof(float); i++) {
        const double a = (double)((float *)want.data)[i], b = (double)((float *)got.data)[i];

        if (isnan(a) ? isnan(b) : isinf(a) ? a == b : fabs(a - b) <= 1e-5 * (fabs(a) + 1e-30))
            continue;
        fail_msg("%s of %s of %g and %g (%s, from %d every %d): %s: expected %g, got %g",
                 ops[op].name, kiln_shape_text(shape, text, sizeof(text)), (double)fills[f].low,
                 (double)fills[f].high, rows ? "rows" : "elements", (int)fills[f].first,
                 (int)fills[f].every, how, a, b);
    }
    free(want.block);
    free(got.block);
    free(x);
}

static void test_joined_parts(void **unused)
{
    KilnBackend *ref = ref_new();

    (void)unused;
    for (size_t w = 0; w < cpu_variants_count; w++) {
        KilnBackend *cpu = cpu_variant_new(&cpu_variants[w]);

        for (size_t op = 0; op < KILN_COUNT(ops); op++)
            for (size_t v = 0; v < KILN_COUNT(views); v++)
                for (size_t f = 0; f < KILN_COUNT(fills); f++)
                    for (int rows = 0; rows < 2; rows++)
                        check_parts(ref, cpu, cpu_variants[w].name, op, v, f, rows != 0);
        kiln_backend_free(cpu);
    }
    kiln_backend_free(ref);
}

/* ---- Blocked layouts --------------------------------------------------------------- */

enum { IMAGES = 4, SIDE = 9, IN = 16, OUT = 20 /* no whole number of blocks */ };

/* A reduction over all of a convolution's result. */
static double of_image(KilnBackend *backend, KilnPrecision precision,
                       KilnTensor *(*all)(KilnTensor *))
{
    static float x[IMAGES * SIDE * SIDE * IN], weight[OUT * IN * 9];
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    for (int i = 0; i < IMAGES * SIDE * SIDE * IN; i++)
        x[i] = (float)(i % 7) * 0.25f;
    for (int i = 0; i < OUT * IN * 9; i++)
        weight[i] = (float)(i % 5) * 0.125f;
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_set_precision(graph, precision);
    kiln_graph_begin(graph);
    KilnTensor *y =
        all(kiln_conv2d(kiln_graph_input(graph, KILN_F32, KILN_SHAPE(IMAGES, SIDE, SIDE, IN), x),
                        kiln_graph_input(graph, KILN_F32, KILN_SHAPE(OUT, IN, 3, 3), weight), NULL,
                        (KilnConv) { .padding = 1 }));

    if (kiln_graph_run(graph, &y, 1, &err) != KILN_OK)
        fail_msg("%s", err.text);
    const double value = kiln_tensor_scalar(y);
    kiln_graph_free(graph);
    return value;
}

static void test_all_of_an_image(void **unused)
{
    KilnTensor *(*const all[])(KilnTensor *) = { kiln_sum, kiln_mean, kiln_l2_norm };
    KilnBackend *ref = ref_new();

    (void)unused;
    for (size_t w = 0; w < cpu_variants_count; w++)
        for (size_t i = 0; i < KILN_COUNT(all); i++) {
            KilnBackend *cpu = cpu_variant_new(&cpu_variants[w]);
            const double want = of_image(ref, KILN_PRECISION_32, all[i]);

            for (int precision = KILN_PRECISION_32; precision <= KILN_BF16_MIXED; precision++) {
                const double got = of_image(cpu, (KilnPrecision)precision, all[i]);

                if (fabs(got - want) > 1e-2 * want)
                    fail_msg("%s, %s, reduction %d: expected %g, got %g", cpu_variants[w].name,
                             precision == KILN_BF16_MIXED ? "bf16" : "f32", (int)i, want, got);
            }
            kiln_backend_free(cpu);
        }
    kiln_backend_free(ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_joined_parts),
                                        cmocka_unit_test(test_all_of_an_image) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
