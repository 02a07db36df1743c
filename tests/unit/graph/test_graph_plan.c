/* Planning and execution on a mock backend: plan reuse, dead code, liveness, in-place work,
 * aliases, layouts, order of updates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/layers.h"
#include "graph/passes/pass_list.h"
#include "graph/plan/profile.h"
#include "tests/support/cmocka.h"
#include "tests/support/mock_backend.h"

/* All passes but those of planning. */
static const unsigned rewriting = (1u << KILN_PASS_layouts) - 1;
static Mock mock;

static KilnGraph *graph_new(void)
{
    KilnGraph *graph = NULL;
    KilnError err;

    mock = (Mock) { .base = { .ops = &mock_ops, .float_type = KILN_F32, .threads = 1 } };
    assert_int_equal(kiln_graph_new(&mock.base, &graph, &err), KILN_OK);
    graph->passes_off = rewriting & ~1u; /* these are about planning: calls are what was recorded */
    return graph;
}

static void run(KilnGraph *graph, KilnTensor *const *outputs, size_t n)
{
    KilnError err;

    mock.n = 0;
    if (kiln_graph_run(graph, outputs, n, &err) < 0)
        fail_msg("run: %s", err.text);
}

static void run_one(KilnGraph *graph, KilnTensor *output)
{
    run(graph, &output, 1);
}

static KilnTensor *input(KilnGraph *graph, int64_t n, const float *data)
{
    return kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n), data);
}

static KilnTensor *variable(KilnGraph *graph, int64_t n, float *data)
{
    return kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(n), data, false, NULL);
}

static float value(const KilnTensor *tensor, int64_t i)
{
    const float *data = kiln_tensor_data(tensor);

    assert_non_null(data);
    return data[i];
}

/* ---- Plans ----------------------------------------------------------------------- */

static void test_reuse(void **unused)
{
    static float data[4][8];
    KilnGraph *graph = graph_new();
    const struct {
        int64_t n;
        int which;
        double factor;
        size_t plans;
    } steps[] = {
        { 4, 0, 2.0, 1 }, { 4, 1, 2.0, 1 }, /* other bytes */
        { 8, 2, 2.0, 2 },                   /* another size */
        { 4, 3, 2.0, 2 },                   /* the first again */
        { 4, 0, 3.0, 3 },                   /* another attribute */
        { 8, 1, 2.0, 3 },
    };

    (void)unused;
    for (size_t s = 0; s < KILN_COUNT(steps); s++) {
        data[steps[s].which][1] = (float)s + 1;
        kiln_graph_begin(graph);
        KilnTensor *y = kiln_scale(input(graph, steps[s].n, data[steps[s].which]), steps[s].factor);
        run_one(graph, y);
        assert_true(value(y, 1) == (float)steps[s].factor * ((float)s + 1));
        assert_int_equal(kiln_graph_plans(graph), steps[s].plans);
    }
    kiln_graph_free(graph);
}

/* The requested outputs and their destinations are part of the plan key. */
/* The reshaped values of `v` before `w` is written, where w's bytes are those of v from
 * `offset` on; -1: others. Equal steps but for that. */
static void check_overlap(KilnGraph *graph, int offset, size_t plans)
{
    static const float ones[4] = { 1.0f, 1.0f, 1.0f, 1.0f };
    float v[8] = { 5.0f, 6.0f, 7.0f, 8.0f }, other[4];

    kiln_graph_begin(graph);
    KilnTensor *old = kiln_reshape(variable(graph, 4, v), KILN_SHAPE(2, 2));
    KilnTensor *w = variable(graph, 4, offset < 0 ? other : v + offset);

    kiln_ema_update(w, input(graph, 4, ones), 1.0);
    run_one(graph, old);
    for (int i = 0; i < 4; i++)
        if (value(old, i) != 5.0f + (float)i)
            fail_msg("offset %d: value %d is %g, after the update", offset, i,
                     (double)value(old, i));
    assert_int_equal(graph->plan_cache.made, plans);
}

static void test_overlaps_decide(void **unused)
{
    KilnGraph *graph = graph_new();

    (void)unused;
    check_overlap(graph, -1, 1);
    check_overlap(graph, 0, 2);
    check_overlap(graph, 2, 2); /* how much they overlap does not matter */
    check_overlap(graph, 4, 2); /* side by side */
    check_overlap(graph, -1, 2);
    kiln_graph_free(graph);
}

static void test_outputs_decide(void **unused)
{
    float data[4] = { 1, 2, 3, 4 }, grad[4];
    KilnGraph *graph = graph_new();

    (void)unused;
    for (int s = 0; s < 6; s++) {
        kiln_graph_begin(graph);
        KilnTensor *x = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(4), data, true,
                                            s >= 4 ? grad : NULL);
        KilnTensor *a = kiln_scale(x, 2.0), *b = kiln_sum(a);
        kiln_graph_backward(graph, b);
        run_one(graph, s % 2 == 0 ? a : b);
        assert_true(s % 2 == 0 ? value(a, 3) == 8 : value(b, 0) == 20);
        assert_true((s % 2 == 0 ? kiln_tensor_data(b) : kiln_tensor_data(a)) == NULL);
    }
    assert_int_equal(kiln_graph_plans(graph), 4);
    assert_true(grad[2] == 2);
    kiln_graph_free(graph);
}

/* x * factor, summed with itself; the result is checked. Every factor has a plan of its own. */
static void run_scaled(KilnGraph *graph, float *data, int factor)
{
    kiln_graph_begin(graph);
    KilnTensor *scaled = kiln_scale(input(graph, 4, data), factor);

    KilnTensor *sum = kiln_add(scaled, scaled);
    run_one(graph, sum);
    assert_true(value(sum, 3) == 2 * data[3] * (float)factor);
}

static void test_plans_within_limit(void **unused)
{
    float data[4] = { 1, 2, 3, 4 };
    KilnGraph *graph = graph_new();
    const KilnPlanCache *cache = &graph->plan_cache;

    (void)unused;
    run_scaled(graph, data, 0);
    graph->plan_cache.limit = 8 * cache->bytes;
    for (int s = 1; s < 80; s++)
        run_scaled(graph, data, s);
    assert_int_equal(cache->made, 80);
    assert_int_equal(cache->kept, 8);
    assert_true(cache->bytes <= cache->limit);
    run_scaled(graph, data, 72); /* still there */
    assert_int_equal(cache->made, 80);
    run_scaled(graph, data, 0); /* dropped */
    assert_int_equal(cache->made, 81);
    run_scaled(graph, data, 72); /* used since the others */
    assert_int_equal(cache->made, 81);
    kiln_graph_free(graph);
}

/* Alternating steps of one variable, whose plans never fit together. */
static void test_tiny_limit(void **unused)
{
    float data[4] = { 1, 2, 3, 4 };
    KilnGraph *graph = graph_new();

    (void)unused;
    graph->plan_cache.limit = 0;
    for (int s = 0; s < 6; s++) {
        kiln_graph_begin(graph);
        KilnTensor *x = variable(graph, 4, data);
        KilnTensor *before = kiln_scale(x, s % 2 == 0 ? 2 : 4);
        const float ones[4] = { 1, 1, 1, 1 };

        kiln_ema_update(x, input(graph, 4, (float *)ones), 0.5);
        const float was = data[3];
        run_one(graph, before);
        assert_true(value(before, 3) == was * (s % 2 == 0 ? 2 : 4));
        assert_true(data[3] == was + 0.5F * (1 - was));
        assert_int_equal(graph->plan_cache.kept, 1);
    }
    assert_int_equal(graph->plan_cache.made, 6);
    kiln_graph_free(graph);
}

/* A dropped plan would take the times of its calls with it. */
static void test_profile_keeps_plans(void **unused)
{
    float data[4] = { 1, 2, 3, 4 };
    KilnGraph *graph = graph_new();

    (void)unused;
    graph->plan_cache.limit = 0;
    graph->profile = true;
    for (int s = 0; s < 6; s++)
        run_scaled(graph, data, s);
    assert_int_equal(graph->plan_cache.kept, 6);
    graph->profile = false;
    run_scaled(graph, data, 5);
    assert_int_equal(graph->plan_cache.kept, 1);
    kiln_graph_free(graph);
}

static void test_dead_code(void **unused)
{
    float data[4] = { -1, 2, -3, 4 };
    KilnGraph *graph = graph_new();

    (void)unused;
    KilnTensor *x = input(graph, 4, data);
    KilnTensor *unused_product = kiln_mul(x, x);
    KilnTensor *y = kiln_scale(x, 2.0);
    kiln_sum(unused_product);
    run_one(graph, y);
    assert_int_equal(mock.n, 1);
    assert_ptr_equal(mock.log[0], &kiln_op_scale);
    assert_null(kiln_tensor_data(unused_product));
    /* The same step with another output. */
    run_one(graph, unused_product);
    assert_true(value(unused_product, 2) == 9);
    assert_null(kiln_tensor_data(y));
    kiln_graph_free(graph);
}

/* ---- Memory ---------------------------------------------------------------------- */

enum { LARGE = 1 << 16 }; /* elements: 256 KiB a value */

static void test_liveness(void **unused)
{
    float *data = calloc(LARGE, sizeof(float));
    KilnGraph *graph = graph_new();

    (void)unused;
    KilnTensor *x = input(graph, LARGE, data);
    for (int i = 0; i < 20; i++)
        x = kiln_mul(x, x);
    run_one(graph, x);
    /* Two values and one workspace at a time, not twenty. */
    assert_in_range(kiln_graph_bytes(graph), 2 * LARGE * 4, 2 * LARGE * 4 + MOCK_WORKSPACE);
    kiln_graph_free(graph);
    free(data);
}

static void test_in_place(void **unused)
{
    float *data = calloc(LARGE, sizeof(float));
    KilnGraph *graph = graph_new();

    (void)unused;
    data[3] = 1;
    KilnTensor *x = input(graph, LARGE, data), *y = x;
    for (int i = 0; i < 10; i++)
        y = kiln_scale(y, 2.0);
    run_one(graph, y);
    assert_int_equal(kiln_graph_bytes(graph), LARGE * 4);
    assert_true(value(y, 3) == 1024 && data[3] == 1);

    /* Not over outputs, nor over what is read later. */
    kiln_graph_begin(graph);
    KilnTensor *a = kiln_scale(input(graph, LARGE, data), 2.0);
    KilnTensor *b = kiln_scale(a, 3.0);
    KilnTensor *c = kiln_scale(b, 5.0);
    KilnTensor *d = kiln_add(c, b);
    run(graph, (KilnTensor *[]) { a, d }, 2);
    assert_true(value(a, 3) == 2 && value(d, 3) == 36);
    kiln_graph_free(graph);
    free(data);
}

/* ---- Aliases and updates --------------------------------------------------------- */

static void test_alias(void **unused)
{
    float data[4] = { 1, 2, 3, 4 };
    KilnGraph *graph = graph_new();

    (void)unused;
    KilnTensor *x = input(graph, 4, data);
    KilnTensor *same = kiln_reshape(x, KILN_SHAPE(2, 2));
    KilnTensor *y = kiln_reshape(kiln_scale(x, 2.0), KILN_SHAPE(2, 2));
    KilnTensor *z = kiln_scale(kiln_reshape(y, KILN_SHAPE(4, 1)), 3.0);
    run(graph, (KilnTensor *[]) { same, y, z }, 3);
    assert_ptr_equal(kiln_tensor_data(same), data);
    assert_true(value(y, 3) == 8 && value(z, 3) == 24);
    assert_int_equal(mock_runs(&mock, &kiln_op_reshape), 0);
    assert_int_equal(mock_runs(&mock, NULL), 0);
    kiln_graph_free(graph);
}

static void test_order_of_updates(void **unused)
{
    float data[2] = { 1, 2 }, ten[2] = { 10, 10 };
    KilnGraph *graph = graph_new();

    (void)unused;
    KilnTensor *v = variable(graph, 2, data);
    KilnTensor *alias = kiln_reshape(v, KILN_SHAPE(2, 1));
    KilnTensor *twice_alias = kiln_reshape(alias, KILN_SHAPE(1, 2));
    KilnTensor *before = kiln_scale(v, 1.0);
    KilnTensor *reversed = kiln_relu(v);
    kiln_ema_update(v, input(graph, 2, ten), 0.5);
    KilnTensor *after = kiln_scale(v, 1.0);
    KilnTensor *reversed_after = kiln_relu(v);
    KilnTensor *late = kiln_scale(twice_alias, 1.0);
    KilnTensor *outputs[] = { before, after, late, reversed, reversed_after, v };
    run(graph, outputs, KILN_COUNT(outputs));
    assert_true(value(before, 0) == 1 && value(before, 1) == 2);
    assert_true(value(late, 0) == 1 && value(late, 1) == 2);
    assert_true(value(reversed, 0) == 1 && value(reversed, 1) == 2);
    assert_true(value(after, 0) == 5.5f && value(after, 1) == 6);
    assert_true(value(reversed_after, 0) == 5.5f && value(reversed_after, 1) == 6);
    assert_true(value(v, 0) == 5.5f && data[1] == 6);
    kiln_graph_free(graph);
}

/* An optimizer updates the flat buffer that a parameter is a part of. */
static void test_update_through_flat(void **unused)
{
    float flat[6] = { 1, 2, 3, 4, 5, 6 }, zero[6] = { 0 };
    KilnGraph *graph = graph_new();

    (void)unused;
    KilnTensor *param = variable(graph, 2, flat + 2);
    KilnTensor *alias = kiln_reshape(param, KILN_SHAPE(2, 1));
    KilnTensor *reversed = kiln_relu(param);
    kiln_ema_update(variable(graph, 6, flat), input(graph, 6, zero), 0.5);
    KilnTensor *late = kiln_scale(alias, 1.0), *fresh = kiln_relu(param);
    run(graph, (KilnTensor *[]) { late, reversed, fresh, alias }, 4);
    assert_true(value(late, 0) == 3 && value(alias, 1) == 4 && value(reversed, 0) == 3);
    assert_true(value(fresh, 0) == 1.5f && flat[3] == 2 && flat[0] == 0.5f);
    kiln_graph_free(graph);
}

/* ---- Layouts --------------------------------------------------------------------- */

static void test_layouts(void **unused)
{
    float data[4] = { -1, 2, -3, 4 };
    KilnGraph *graph = graph_new();

    (void)unused;
    graph->passes_off = rewriting; /* planning alone: equal nodes stay two */
    KilnTensor *x = input(graph, 4, data);
    KilnTensor *a = kiln_relu(x);       /* x is converted once */
    KilnTensor *b = kiln_relu(x);       /* and not again */
    KilnTensor *c = kiln_scale(a, 2.0); /* stays reversed */
    KilnTensor *d = kiln_relu(c);
    KilnTensor *e = kiln_add(d, b); /* both back to plain */
    KilnTensor *f = kiln_add(e, d); /* d is plain by now */
    run(graph, (KilnTensor *[]) { f, a }, 2);
    assert_true(value(f, 0) == 0 && value(f, 1) == 10 && value(f, 3) == 20);
    assert_true(value(a, 0) == 0 && value(a, 3) == 4);
    /* x; a is an output and therefore plain, so c is converted for d; d, b. */
    assert_int_equal(mock_runs(&mock, NULL), 4);
    kiln_graph_free(graph);
}

/* ---- Planning left out ------------------------------------------------------------- */

typedef struct Planned {
    int conversions;
    size_t bytes;
    float result[4];
} Planned;

/* A chain in which relu wants another order, and each result is read once. */
static Planned planned_without(unsigned off)
{
    float data[4] = { -1, 2, -3, 4 };
    KilnGraph *graph = graph_new();
    Planned ret;

    graph->passes_off |= off;
    KilnTensor *x = input(graph, 4, data);
    for (int i = 0; i < 3; i++)
        x = kiln_relu(kiln_scale(kiln_relu(x), 2.0));
    run(graph, &x, 1);
    for (int i = 0; i < 4; i++)
        ret.result[i] = value(x, i);
    ret.conversions = mock_runs(&mock, NULL);
    ret.bytes = kiln_graph_bytes(graph);
    kiln_graph_free(graph);
    return ret;
}

static void test_left_out(void **unused)
{
    const Planned all = planned_without(0);
    const Planned apart = planned_without(1u << KILN_PASS_in_place);
    const Planned alone = planned_without(1u << KILN_PASS_share_memory);
    const Planned both = planned_without(1u << KILN_PASS_in_place | 1u << KILN_PASS_share_memory);
    const Planned plain = planned_without(1u << KILN_PASS_layouts);

    (void)unused;
    assert_true(all.result[0] == 0 && all.result[1] == 16 && all.result[3] == 32);
    assert_memory_equal(apart.result, all.result, sizeof(all.result));
    assert_memory_equal(alone.result, all.result, sizeof(all.result));
    assert_memory_equal(both.result, all.result, sizeof(all.result));
    assert_memory_equal(plain.result, all.result, sizeof(all.result));
    assert_true(all.bytes < both.bytes && apart.bytes < both.bytes && alone.bytes < both.bytes);
    assert_true(plain.conversions != all.conversions);
}

/* ---- Gradients with a place ------------------------------------------------------ */

static void test_places(void **unused)
{
    float a[4] = { 1, 2, 3, 4 }, b[4] = { 5, 6, 7, 8 }, c[4] = { 0 };
    float ga[4] = { 9, 9, 9, 9 }, gb[4] = { 9, 9, 9, 9 }, gc[4] = { 9, 9, 9, 9 }, hyper[4] = { 0 };
    KilnGraph *graph = graph_new();
    const KilnShape shape = KILN_SHAPE(4);

    (void)unused;
    KilnTensor *va = kiln_graph_variable(graph, KILN_F32, shape, a, true, ga);
    KilnTensor *vb = kiln_graph_variable(graph, KILN_F32, shape, b, true, gb);
    KilnTensor *vc = kiln_graph_variable(graph, KILN_F32, shape, c, true, gc);
    /* The sum's gradient is one tensor for both, and comes through an alias. */
    KilnTensor *sum = kiln_reshape(kiln_add(va, vb), KILN_SHAPE(2, 2));
    KilnTensor *loss = kiln_sum(kiln_scale(sum, 3.0));
    kiln_graph_backward(graph, loss);
    assert_null(kiln_tensor_grad(vc));
    /* What reads the places afterwards, as an optimizer does, sees them. */
    KilnTensor *h = variable(graph, 4, hyper);
    kiln_ema_update(h, input(graph, 4, ga), 1.0);
    run_one(graph, loss);
    assert_true(value(loss, 0) == 108);
    for (int i = 0; i < 4; i++)
        assert_true(ga[i] == 3 && gb[i] == 3 && gc[i] == 0 && hyper[i] == 3);
    kiln_graph_free(graph);
}

/* A gradient that is itself the reshape of a value someone else needs. */
static void test_place_of_alias(void **unused)
{
    float a[4] = { 1, 2, 3, 4 }, ga[4] = { 9, 9, 9, 9 };
    KilnGraph *graph = graph_new();

    (void)unused;
    KilnTensor *v = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(4), a, true, ga);
    KilnTensor *loss = kiln_sum(kiln_reshape(v, KILN_SHAPE(2, 2)));
    kiln_graph_backward(graph, loss);
    KilnTensor *grad = kiln_tensor_grad(v);
    run(graph, (KilnTensor *[]) { loss, grad }, 2);
    assert_true(value(loss, 0) == 10);
    assert_ptr_equal(kiln_tensor_data(grad), ga);
    assert_true(ga[0] == 1 && ga[3] == 1);
    kiln_graph_free(graph);
}

/* ---- Errors ---------------------------------------------------------------------- */

static void expect_error(KilnGraph *graph, KilnTensor *output, KilnStatus status, const char *text)
{
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_run(graph, &output, 1, &err), status);
    if (strcmp(err.text, text) != 0)
        fail_msg("got \"%s\", want \"%s\"", err.text, text);
}

static void test_errors(void **unused)
{
    float data[4] = { 1, 2, 3, 4 };
    KilnGraph *graph = graph_new();
    KilnTensor *old;

    (void)unused;
    expect_error(graph, kiln_scale(input(graph, 4, NULL), 2.0), KILN_E_MISSING,
                 "a leaf of shape [4] has no data: the step was recorded for its shapes only and "
                 "cannot run");
    kiln_graph_begin(graph);
    expect_error(graph, kiln_softmax(input(graph, 4, data), -1), KILN_E_INTERNAL,
                 "the mock backend has no kernel for softmax");
    kiln_graph_begin(graph);
    kiln_graph_layer(graph, "layer1.0");
    mock.fail_prepare = true;
    old = kiln_mul(kiln_mul(input(graph, 4, data), input(graph, 4, data)), input(graph, 4, data));
    expect_error(graph, old, KILN_E_INTERNAL, "layer1.0: mul: the mock refuses");
    mock.fail_prepare = false;
    kiln_graph_begin(graph);
    expect_error(graph, old, KILN_E_INTERNAL, "output 0 is not a tensor of this step");
    /* After an error the graph is as good as new. */
    kiln_graph_begin(graph);
    KilnTensor *x = input(graph, 4, data), *y = kiln_mul(x, x);
    run_one(graph, y);
    assert_true(value(y, 3) == 16);
    kiln_graph_free(graph);
    assert_true(mock.prepared > 0);
    assert_int_equal(mock.prepared, mock.released);
}

/* ---- Profile and layers ---------------------------------------------------------- */

static void test_profile(void **unused)
{
    float data[4] = { 1, 2, 3, 4 };
    KilnGraph *graph = graph_new();
    KilnProfileRow row;

    (void)unused;
    graph->profile = true;
    for (int s = 0; s < 3; s++) {
        kiln_graph_begin(graph);
        KilnTensor *x = input(graph, 4, data);
        kiln_graph_layer(graph, "first");
        KilnTensor *y = kiln_relu(x);
        kiln_graph_layer(graph, NULL);
        run_one(graph, kiln_sum(y));
    }
    static const char *const want[][2] = {
        { "first", "reorder" }, { "first", "relu" }, { "", "reorder" }, { "", "sum" }
    };
    for (size_t i = 0; i < KILN_COUNT(want); i++) {
        assert_true(kiln_graph_profile(graph, i, &row));
        assert_string_equal(row.layer, want[i][0]);
        assert_string_equal(row.op, want[i][1]);
        assert_int_equal(row.runs, 3);
        assert_true(row.seconds >= 0);
    }
    assert_false(kiln_graph_profile(graph, KILN_COUNT(want), &row));
    kiln_graph_free(graph);
}

static void test_layers(void **unused)
{
    KilnGraph *graph = graph_new();
    char path[] = "b"; /* the same path in other bytes */
    KilnLayerRow rows[4];
    float grad[4];

    (void)unused;
    KilnTensor *x = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(4), NULL, true, grad);
    x = kiln_scale(x, 1.0);
    kiln_graph_layer(graph, "a");
    x = kiln_relu(x);
    kiln_graph_layer(graph, "b");
    x = kiln_scale(x, 1.0);
    kiln_graph_layer(graph, "a");
    x = kiln_reshape(x, KILN_SHAPE(2, 2));
    kiln_graph_layer(graph, path);
    x = kiln_sum(x);
    assert_int_equal(kiln_graph_layers(graph, NULL, 0), 2);
    kiln_graph_backward(graph, x);
    assert_int_equal(kiln_graph_layers(graph, rows, 4), 2);
    assert_string_equal(rows[0].path, "a");
    assert_string_equal(rows[0].op, "reshape");
    assert_int_equal(rows[0].output.rank, 2);
    assert_string_equal(rows[1].path, "b");
    assert_string_equal(rows[1].op, "sum");
    assert_int_equal(rows[1].output.rank, 0);
    kiln_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_overlaps_decide),
        cmocka_unit_test(test_outputs_decide),
        cmocka_unit_test(test_plans_within_limit),
        cmocka_unit_test(test_tiny_limit),
        cmocka_unit_test(test_profile_keeps_plans),
        cmocka_unit_test(test_dead_code),
        cmocka_unit_test(test_liveness),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_alias),
        cmocka_unit_test(test_order_of_updates),
        cmocka_unit_test(test_update_through_flat),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_place_of_alias),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
