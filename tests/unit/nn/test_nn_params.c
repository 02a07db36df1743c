/* The parameter store: names, order, initial values, leaves, comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kiln.h"
#include "nn/params.h"
#include "tests/support/param_memory.h"

static const KilnInit zero = { .kind = KILN_INIT_CONSTANT, .a = 0.0 };

static KilnParams *store(uint64_t seed)
{
    KilnParams *params = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_params_new(seed, &params, &err), KILN_OK);
    return params;
}

static KilnParam *add(const KilnScope *scope, const char *name, KilnShape shape, KilnInit init)
{
    KilnParam *param = NULL;
    KilnError err = { 0 };

    if (kiln_param_new(scope, name, shape, init, &param, &err) < 0)
        fail_msg("%s", err.text);
    return param;
}

static void seal(KilnParams *params)
{
    KilnError err = { 0 };

    assert_int_equal(kiln_params_seal(params, store_backend(), &err), KILN_OK);
}

static void test_names_and_places(void **unused)
{
    KilnParams *params = store(1);
    KilnScope root = kiln_params_root(params);
    KilnScope layer = kiln_scope(&root, "layer%d.%d", 1, 0);
    KilnScope conv = kiln_scope(&layer, "conv1");
    KilnError err = { 0 };
    KilnParam *mean = NULL, *count = NULL;

    (void)unused;
    KilnParam *weight = add(&conv, "weight", KILN_SHAPE(4, 3), zero);
    assert_int_equal(
        kiln_register_buffer(&layer, "mean", KILN_F32, KILN_SHAPE(4), 0.5, &mean, &err), KILN_OK);
    assert_int_equal(
        kiln_register_buffer(&layer, "count", KILN_I64, KILN_SCALAR, 7.0, &count, &err), KILN_OK);
    KilnParam *bias = add(&root, "bias", KILN_SHAPE(5), zero);
    assert_null(param_data(weight));
    seal(params);
    assert_string_equal(kiln_param_name(weight), "layer1.0.conv1.weight");
    assert_string_equal(kiln_param_name(bias), "bias");
    assert_int_equal(kiln_params_count(params), 4);
    assert_int_equal(kiln_params_size(params), 17);
    assert_ptr_equal(kiln_params_at(params, 1), mean);
    assert_null(kiln_params_at(params, 4));
    assert_ptr_equal(kiln_params_find(params, "layer1.0.mean"), mean);
    assert_null(kiln_params_find(params, "mean"));
    assert_true(kiln_param_trained(weight) && !kiln_param_trained(mean));
    assert_int_equal(kiln_param_offset(bias), 12);
    assert_ptr_equal(param_data(bias), params_values(params) + 12);
    assert_int_equal((uintptr_t)params_values(params) % 64, 0);
    assert_true(((const float *)param_data(mean))[3] == 0.5f);
    assert_int_equal(*(const int64_t *)param_data(count), 7);
    assert_int_equal(kiln_param_dtype(count), KILN_I64);
    for (int64_t i = 0; i < 17; i++)
        assert_true(params_gradients(params)[i] == 0.0f);
    kiln_params_free(params);
}

static void expect(KilnStatus got, KilnStatus want, const KilnError *err, const char *part)
{
    assert_int_equal(got, want);
    if (strstr(err->text, part) == NULL)
        fail_msg("'%s' is not in: %s", part, err->text);
}

static void test_refused(void **unused)
{
    KilnParams *params = store(1);
    KilnScope root = kiln_params_root(params);
    KilnScope deep = root;
    KilnParam *param = NULL;
    KilnError err = { 0 };

    (void)unused;
    add(&root, "w", KILN_SHAPE(2), zero);
    expect(kiln_param_new(&root, "w", KILN_SHAPE(3), zero, &param, &err), KILN_E_KEY, &err,
           "parameter w is declared twice");
    expect(kiln_register_buffer(&root, "w", KILN_F32, KILN_SHAPE(3), 0, &param, &err), KILN_E_KEY,
           &err, "declared twice");
    expect(kiln_param_new(&root, "none", KILN_SHAPE(3, 0), zero, &param, &err), KILN_E_SHAPE, &err,
           "[3, 0]");
    expect(kiln_param_new(&root, "huge", KILN_SHAPE(INT64_MAX / 2), zero, &param, &err),
           KILN_E_RANGE, &err, "too large");
    expect(kiln_register_buffer(&root, "b", KILN_U8, KILN_SHAPE(3), 0, &param, &err), KILN_E_TYPE,
           &err, "u8");
    assert_null(param);
    for (int i = 0; i < 40; i++)
        deep = kiln_scope(&deep, "block%d", i);
    expect(kiln_param_new(&deep, "w", KILN_SHAPE(3), zero, &param, &err), KILN_E_RANGE, &err,
           "too long");
    kiln_params_free(params);

    params = store(1);
    root = kiln_params_root(params);
    seal(params);
    expect(kiln_param_new(&root, "late", KILN_SHAPE(3), zero, &param, &err), KILN_E_INTERNAL, &err,
           "after the store was sealed");
    expect(kiln_params_seal(params, store_backend(), &err), KILN_E_INTERNAL, &err,
           "already sealed");
    kiln_params_free(params);
    kiln_params_free(NULL);
}

static void test_distributions(void **unused)
{
    enum { N = 40000 };
    KilnParams *params = store(3);
    KilnScope root = kiln_params_root(params);
    KilnParam *uniform = add(&root, "u", KILN_SHAPE(N),
                             (KilnInit) { .kind = KILN_INIT_UNIFORM, .a = 0.25 });
    KilnParam *normal = add(&root, "n", KILN_SHAPE(N),
                            (KilnInit) { .kind = KILN_INIT_NORMAL, .a = 2.0 });
    KilnParam *one = add(&root, "c", KILN_SHAPE(3),
                         (KilnInit) { .kind = KILN_INIT_UNIFORM, .a = 1.0 });
    double sum[2] = { 0 }, square[2] = { 0 }, most = 0.0;

    (void)unused;
    kiln_param_set_init(one, (KilnInit) { .kind = KILN_INIT_CONSTANT, .a = -4.0 });
    seal(params);
    for (int i = 0; i < N; i++) {
        double u = (double)((const float *)param_data(uniform))[i];
        double v = (double)((const float *)param_data(normal))[i];

        assert_true(u >= -0.25 && u < 0.25);
        most = fmax(most, fabs(u));
        sum[0] += u;
        square[0] += u * u;
        sum[1] += v;
        square[1] += v * v;
    }
    assert_true(most > 0.249);
    /* Five standard errors of the means and of the variances. */
    assert_true(fabs(sum[0] / N) < 5 * 0.25 / sqrt(3.0 * N));
    assert_true(fabs(square[0] / N - 0.25 * 0.25 / 3) < 5 * 0.3 * 0.25 * 0.25 / sqrt(N));
    assert_true(fabs(sum[1] / N) < 5 * 2.0 / sqrt(N));
    assert_true(fabs(square[1] / N - 4.0) < 5 * 4.0 * sqrt(2.0 / N));
    assert_true(((const float *)param_data(one))[2] == -4.0f);
    kiln_params_free(params);
}

/* The value of "b.w" does not depend on its neighbours, only on seed and name. */
static void test_order_and_seed(void **unused)
{
    const KilnInit init = { .kind = KILN_INIT_UNIFORM, .a = 1.0 };
    KilnParams *all[3] = { store(5), store(5), store(6) };
    const float *value[3];

    (void)unused;
    for (int i = 0; i < 3; i++) {
        KilnScope root = kiln_params_root(all[i]), b = kiln_scope(&root, "b");

        if (i == 1)
            add(&root, "a", KILN_SHAPE(11), init);
        KilnParam *w = add(&b, "w", KILN_SHAPE(6), init);
        if (i == 0)
            add(&root, "w", KILN_SHAPE(6), init);
        seal(all[i]);
        value[i] = param_data(w);
    }
    assert_memory_equal(value[0], value[1], 6 * sizeof(float));
    assert_memory_not_equal(value[0], value[2], 6 * sizeof(float));
    const float *other = param_data(kiln_params_find(all[0], "w"));
    assert_memory_not_equal(value[0], other, 6 * sizeof(float));
    for (int i = 0; i < 3; i++)
        kiln_params_free(all[i]);
}

static void test_one_leaf_a_step(void **unused)
{
    KilnParams *params = store(1);
    KilnScope root = kiln_params_root(params);
    KilnParam *a = add(&root, "a", KILN_SHAPE(2), zero), *b = add(&root, "b", KILN_SHAPE(2), zero);
    KilnBackend *backend = NULL;
    KilnGraph *graph[2] = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_backend_ref_new(&backend, &err), KILN_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(kiln_graph_new(backend, &graph[i], &err), KILN_OK);
    assert_true(kiln_tensor_poisoned(kiln_param_tensor(a, graph[0])));
    expect(kiln_graph_check(graph[0], &err), KILN_E_SHAPE, &err, "before its store is sealed");
    seal(params);

    kiln_graph_begin(graph[0]);
    KilnTensor *leaf = kiln_param_tensor(a, graph[0]);
    assert_ptr_equal(kiln_param_tensor(a, graph[0]), leaf);
    assert_ptr_not_equal(kiln_param_tensor(b, graph[0]), leaf);
    assert_ptr_equal(kiln_tensor_graph(leaf), graph[0]);

    /* The next step reuses the memory: b now may stand where a stood. */
    kiln_graph_begin(graph[0]);
    KilnTensor *first = kiln_param_tensor(b, graph[0]), *second = kiln_param_tensor(a, graph[0]);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(kiln_param_tensor(b, graph[0]), first);
    assert_ptr_equal(kiln_param_tensor(a, graph[0]), second);

    kiln_graph_begin(graph[1]);
    assert_ptr_equal(kiln_tensor_graph(kiln_param_tensor(a, graph[1])), graph[1]);
    for (int i = 0; i < 2; i++)
        kiln_graph_free(graph[i]);
    kiln_backend_free(backend);
    kiln_params_free(params);
}

/* loss = sum(a * a): the gradient lands in the flat buffer. */
static void test_gradient_place(void **unused)
{
    KilnParams *params = store(1);
    KilnScope root = kiln_params_root(params);
    KilnParam *a = add(&root, "a", KILN_SHAPE(3),
                       (KilnInit) { .kind = KILN_INIT_CONSTANT, .a = 1.5 });
    KilnParam *b = add(&root, "b", KILN_SHAPE(2),
                       (KilnInit) { .kind = KILN_INIT_CONSTANT, .a = -2.0 });
    KilnBackend *backend = NULL;
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    (void)unused;
    seal(params);
    assert_int_equal(kiln_backend_ref_new(&backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnTensor *x = kiln_param_tensor(a, graph), *y = kiln_param_tensor(b, graph);
    KilnTensor *loss = kiln_add(kiln_sum(kiln_mul(x, x)), kiln_sum(kiln_mul(y, y)));
    kiln_graph_backward(graph, loss);
    if (kiln_graph_run(graph, &loss, 1, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++)
        assert_true(params_gradients(params)[i] == 3.0f);
    for (int i = 3; i < 5; i++)
        assert_true(params_gradients(params)[i] == -4.0f);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
    kiln_params_free(params);
}

/* Values go through f32 or as they are stored; a gradient from outside names all sparse rows. */
static void test_read_and_write(void **unused)
{
    const float values[] = { 1.0f, 1.0f + 1.0f / 4096.0f, -3.0f };

    (void)unused;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        KilnParams *params = store(1);
        const KilnScope root = kiln_params_root(params);
        KilnParam *param = add(&root, "a", KILN_SHAPE(3), zero), *count = NULL;
        KilnError err = { 0 };
        float got[3];
        int64_t number = 0;
        uint16_t stored[3];

        kiln_params_set_dtype(params, bf16 ? KILN_BF16 : KILN_F32);
        assert_int_equal(
            kiln_register_buffer(&root, "count", KILN_I64, KILN_SCALAR, 7.0, &count, &err),
            KILN_OK);
        kiln_param_add_sparse_rows(param, 3);
        seal(params);
        kiln_param_write(param, KILN_F32, values);
        kiln_param_read(param, KILN_F32, got);
        for (int i = 0; i < 3; i++)
            assert_true(got[i] == (bf16 && i == 1 ? 1.0f : values[i]));
        kiln_param_read(count, KILN_I64, &number);
        assert_int_equal(number, 7);
        if (bf16) {
            kiln_param_read(param, KILN_BF16, stored);
            assert_int_equal(stored[2], 0xC040);
        }
        const int32_t *rows = location_data(kiln_param_sparse_rows_location(param));
        assert_int_equal(rows[0], 0);
        kiln_param_gradient_written(param);
        assert_int_equal(rows[0], -1);
        kiln_params_free(params);
    }
}

static void test_compare(void **unused)
{
    KilnParams *params = store(1);
    KilnScope root = kiln_params_root(params);
    KilnParam *count = NULL;
    KilnError err = { 0 };
    KilnParamForm forms[] = {
        { "count", KILN_I64, KILN_SCALAR },
        { "b", KILN_F32, KILN_SHAPE(2) },
        { "a", KILN_F32, KILN_SHAPE(3, 4) },
    };

    (void)unused;
    add(&root, "a", KILN_SHAPE(3, 4), zero);
    add(&root, "b", KILN_SHAPE(2), zero);
    assert_int_equal(kiln_register_buffer(&root, "count", KILN_I64, KILN_SCALAR, 0, &count, &err),
                     KILN_OK);
    seal(params);
    assert_int_equal(kiln_params_compare(params, forms, 3, "x/model.safetensors", &err), KILN_OK);

    expect(kiln_params_compare(params, forms, 2, "x/model.safetensors", &err), KILN_E_FORMAT, &err,
           "x/model.safetensors does not fit the model:\n  missing in the file: a\n");
    forms[1].name = "c";
    expect(kiln_params_compare(params, forms, 3, "f", &err), KILN_E_FORMAT, &err,
           "\n  missing in the file: b\n  not in the model: c\n");
    forms[1].name = "b";
    forms[1].shape = KILN_SHAPE(5);
    expect(kiln_params_compare(params, forms, 3, "f", &err), KILN_E_FORMAT, &err,
           "of another form: b (f32 [5] in the file, f32 [2] in the model)\n");
    forms[1].shape = KILN_SHAPE(2);
    forms[0].dtype = KILN_F32;
    expect(kiln_params_compare(params, forms, 3, "f", &err), KILN_E_FORMAT, &err,
           "count (f32 [] in the file, i64 [] in the model)");
    kiln_params_free(params);
}

static void test_compare_counts(void **unused)
{
    KilnParams *params = store(1);
    KilnScope root = kiln_params_root(params);
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < 9; i++) {
        KilnScope own = kiln_scope(&root, "layer%d", i);

        add(&own, "w", KILN_SHAPE(2), zero);
    }
    seal(params);
    expect(kiln_params_compare(params, NULL, 0, "f", &err), KILN_E_FORMAT, &err,
           "layer3.w, layer4.w and 4 more\n");
    kiln_params_free(params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_places), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_distributions),    cmocka_unit_test(test_order_and_seed),
        cmocka_unit_test(test_one_leaf_a_step),  cmocka_unit_test(test_gradient_place),
        cmocka_unit_test(test_read_and_write),   cmocka_unit_test(test_compare),
        cmocka_unit_test(test_compare_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
