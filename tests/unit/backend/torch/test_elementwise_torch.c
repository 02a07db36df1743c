/* Elementwise operations and reductions of both backends against values and gradients recorded
 * from PyTorch (tests/record/elementwise.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "graph/backend.h"
#include "tests/data/ops/elementwise.h"

enum { COUNT = 24 };
static const double tolerance = 1e-5;

/* ---- What is recorded -------------------------------------------------------------- */

typedef KilnTensor *One(KilnTensor *x);
typedef KilnTensor *Two(KilnTensor *a, KilnTensor *b);
typedef KilnTensor *Reduce(KilnTensor *x, const int *axes, int n);

static KilnTensor *where_larger(KilnTensor *a, KilnTensor *b)
{
    return kiln_where(kiln_gt(a, b), a, b);
}

#define ONE(name, ...)                                                                             \
    static KilnTensor *name(KilnTensor *x)                                                         \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
ONE(clamp, kiln_clamp(x, -0.5, 1.0))
ONE(pow_3, kiln_pow(x, 3.0))
ONE(pow_negative, kiln_pow(x, -1.5))
ONE(leaky_relu, kiln_leaky_relu(x, 0.1))
ONE(elu, kiln_elu(x, 0.7))
ONE(gelu, kiln_gelu(x, KILN_GELU_ERF))
ONE(gelu_tanh, kiln_gelu(x, KILN_GELU_TANH))
ONE(hard_swish, kiln_hard_swish(kiln_scale(x, 3.0)))
ONE(hard_sigmoid, kiln_hard_sigmoid(kiln_scale(x, 3.0)))
ONE(softplus, kiln_softplus(x, 1.5, 2.0))

#define REDUCE(name, ...)                                                                          \
    static KilnTensor *name(KilnTensor *x, const int *axes, int n)                                 \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
REDUCE(sum, kiln_sum_axes(x, axes, n, false))
REDUCE(mean, kiln_mean_axes(x, axes, n, false))
REDUCE(max, kiln_max_axes(x, axes, n, false))
REDUCE(min, kiln_min_axes(x, axes, n, false))
REDUCE(prod, kiln_prod_axes(x, axes, n, false))
REDUCE(logsumexp, kiln_logsumexp(x, axes, n, false))
REDUCE(var, kiln_var(x, axes, n, 1.0, false))
REDUCE(std, kiln_std(x, axes, n, 0.0, false))
REDUCE(argmax, kiln_to_float(kiln_argmax_axis(x, n > 0 ? axes[0] : 0, false)))

static const struct {
    const char *name;
    Two *function;
} twos[] = {
    { "add", kiln_add },       { "sub", kiln_sub },         { "mul", kiln_mul },
    { "div", kiln_div },       { "minimum", kiln_minimum }, { "maximum", kiln_maximum },
    { "eq", kiln_eq },         { "ne", kiln_ne },           { "lt", kiln_lt },
    { "le", kiln_le },         { "gt", kiln_gt },           { "ge", kiln_ge },
    { "where", where_larger }, { "power", kiln_power },     { "atan2", kiln_atan2 },
};
static const struct {
    const char *name;
    One *function;
} ones[] = {
    { "clamp", clamp },
    { "exp", kiln_exp },
    { "abs", kiln_abs },
    { "sign", kiln_sign },
    { "floor", kiln_floor },
    { "round", kiln_round },
    { "square", kiln_square },
    { "erf", kiln_erf },
    { "sin", kiln_sin },
    { "cos", kiln_cos },
    { "pow_3", pow_3 },
    { "relu", kiln_relu },
    { "leaky_relu", leaky_relu },
    { "elu", elu },
    { "gelu", gelu },
    { "gelu_tanh", gelu_tanh },
    { "silu", kiln_silu },
    { "hard_swish", hard_swish },
    { "hard_sigmoid", hard_sigmoid },
    { "softplus", softplus },
    { "sigmoid", kiln_sigmoid },
    { "tanh", kiln_tanh },
    { "log", kiln_log },
    { "log1p", kiln_log1p },
    { "sqrt", kiln_sqrt },
    { "rsqrt", kiln_rsqrt },
    { "reciprocal", kiln_reciprocal },
    { "pow", pow_negative },
};
static const struct {
    const char *name;
    Reduce *function;
} reductions[] = {
    { "sum", sum }, { "mean", mean },           { "max", max },
    { "min", min }, { "logsumexp", logsumexp }, { "var", var },
    { "std", std }, { "argmax", argmax },       { "prod", prod },
};
static const struct {
    const char *name;
    int axes[2], n;
} where_to[] = {
    { "all", { 0 }, 0 },     { "first", { 0 }, 1 }, { "middle", { 1 }, 1 }, { "last", { -1 }, 1 },
    { "ends", { 2, 0 }, 2 }, { "0", { 0 }, 1 },     { "1", { 1 }, 1 },      { "2", { 2 }, 1 },
};

/* The result of the record's operation, and how many inputs it took; NULL: nobody knows it. */
static KilnTensor *build(const char *name, KilnTensor *x, KilnTensor *row, int *inputs)
{
    const char *end = strrchr(name, '_');

    *inputs = 2;
    for (size_t i = 0; i < KILN_COUNT(twos); i++)
        if (strcmp(twos[i].name, name) == 0)
            return twos[i].function(x, row);
    *inputs = 1;
    for (size_t i = 0; i < KILN_COUNT(ones); i++)
        if (strcmp(ones[i].name, name) == 0)
            return ones[i].function(x);
    for (size_t i = 0; i < KILN_COUNT(reductions) && end != NULL; i++)
        for (size_t k = 0; k < KILN_COUNT(where_to); k++)
            if (strlen(reductions[i].name) == (size_t)(end - name) &&
                strncmp(reductions[i].name, name, (size_t)(end - name)) == 0 &&
                strcmp(where_to[k].name, end + 1) == 0)
                return reductions[i].function(x, where_to[k].axes, where_to[k].n);
    return NULL;
}

/* ---- Comparing --------------------------------------------------------------------------- */

static void check(const char *backend, const char *name, const char *what, const float *got,
                  const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double difference = fabs((double)got[i] - (double)want[i]);

        if (!(difference <= tolerance * fmax(1.0, fabs((double)want[i]))) && got[i] != want[i])
            fail_msg("%s on %s: %s %d is %.9g, want %.9g", name, backend, what, (int)i,
                     (double)got[i], (double)want[i]);
    }
}

static void check_record(KilnBackend *backend, const struct Record *record)
{
    float x[COUNT], row[4], dx[COUNT] = { 0 }, drow[4] = { 0 };
    const char *on = backend->ops->name;
    KilnGraph *graph = NULL;
    KilnError err;
    int inputs;

    memcpy(x, record->values[0], sizeof(x));
    memcpy(row, record->values[1], sizeof(row));
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    KilnTensor *a = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(2, 3, 4), x, true, dx);
    KilnTensor *b = kiln_graph_variable(graph, KILN_F32, KILN_SHAPE(4), row, true, drow);
    KilnTensor *y = build(record->name, a, b, &inputs);

    if (y == NULL)
        fail_msg("nobody knows %s", record->name);
    const float(*after)[COUNT] = record->values + inputs; /* y, dy, gradients */
    const int64_t n = kiln_shape_count(kiln_tensor_shape(y));
    KilnTensor *dy = kiln_graph_input(graph, KILN_F32, *kiln_tensor_shape(y), after[1]);

    if (y->wants_grad)
        kiln_graph_backward(graph, kiln_sum(kiln_mul(y, dy)));
    if (kiln_graph_run(graph, &y, 1, &err) < 0)
        fail_msg("%s on %s: %s", record->name, on, err.text);
    check(on, record->name, "result", kiln_tensor_data(y), after[0], n);
    check(on, record->name, "gradient", dx, after[2], COUNT);
    if (inputs == 2)
        check(on, record->name, "gradient of the row", drow, after[3], 4);
    kiln_graph_free(graph);
}

static void test_records(void **unused)
{
    KilnBackend *backends[2];
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_backend_ref_new(&backends[0], &err), KILN_OK);
    assert_int_equal(kiln_backend_cpu_new(2, &backends[1], &err), KILN_OK);
    for (size_t k = 0; k < KILN_COUNT(backends); k++) {
        for (size_t i = 0; i < KILN_COUNT(records); i++)
            check_record(backends[k], &records[i]);
        kiln_backend_free(backends[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_records) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
