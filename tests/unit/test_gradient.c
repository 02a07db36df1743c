/* Every operation's gradient against finite differences, in f64 on the
 * reference backend. The samples are found by the operation's name from the
 * table of operations: a missing one does not compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "graph/backend.h"
#include "graph/gradcheck.h"
#include "kiln/rng.h"

enum { MOST_VALUES = 4096 };

/* ---- Turning a result into a scalar ---------------------------------------------- */

/* A weighted sum with fixed, unequal weights, so that every element's gradient
 * differs and an error in their order shows. */
static KilnTensor *weigh(KilnGraph *graph, KilnTensor *y)
{
    static double weights[MOST_VALUES];
    KilnRng rng;

    if (kiln_tensor_poisoned(y))
        return y;
    kiln_rng_init(&rng, 7, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < MOST_VALUES; i++)
        weights[i] = (double)kiln_rng_range(&rng, 0.5f, 1.5f) * (i % 3 == 0 ? -1.0 : 1.0);
    assert_true(kiln_shape_count(kiln_tensor_shape(y)) <= MOST_VALUES);
    return kiln_sum(kiln_mul(y, kiln_graph_input(graph, KILN_F64, *kiln_tensor_shape(y), weights)));
}

static KilnTensor *labels(KilnGraph *graph, int64_t n)
{
    static const int32_t values[] = { 2, 0, 1, 2, 1, 0 };

    assert_true(n <= (int64_t)KILN_COUNT(values));
    return kiln_graph_input(graph, KILN_I32, KILN_SHAPE(n), values);
}

/* ---- Functions ------------------------------------------------------------------- */

typedef struct Sample {
    KilnGradFunction *function;
    KilnShape shapes[5];
    int64_t arg[3]; /* whatever the function makes of them */
} Sample;

#define FUNCTION(name) static KilnTensor *name(KilnGraph *graph, KilnTensor *const *x, void *ctx)

FUNCTION(f_add)
{
    (void)ctx;
    return weigh(graph, kiln_add(x[0], x[1]));
}

/* One tensor used twice: its gradients are summed. */
FUNCTION(f_add_self)
{
    (void)ctx;
    return weigh(graph, kiln_add(kiln_add(x[0], x[0]), kiln_relu(x[0])));
}

FUNCTION(f_mul)
{
    (void)ctx;
    return weigh(graph, kiln_mul(x[0], x[1]));
}

FUNCTION(f_square)
{
    (void)ctx;
    return weigh(graph, kiln_mul(x[0], x[0]));
}

FUNCTION(f_scale)
{
    (void)ctx;
    return weigh(graph, kiln_scale(x[0], -2.5));
}

FUNCTION(f_relu)
{
    (void)ctx;
    return weigh(graph, kiln_relu(x[0]));
}

FUNCTION(f_reshape)
{
    (void)ctx;
    return weigh(graph, kiln_reshape(x[0], KILN_SHAPE(4, -1)));
}

FUNCTION(f_permute)
{
    static const int orders[][KILN_MAX_RANK] = { { 1, 0 }, { 0, 3, 1, 2 }, { 2, 0, 3, 1 } };
    const Sample *sample = ctx;

    return weigh(graph, kiln_permute(x[0], orders[sample->arg[0]]));
}

FUNCTION(f_flatten)
{
    (void)ctx;
    return weigh(graph, kiln_flatten(x[0]));
}

FUNCTION(f_dropout)
{
    static const int32_t key[] = { 17, -4 };

    (void)ctx;
    return weigh(graph,
                 kiln_dropout(x[0], 0.4, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(2), key), 3));
}

FUNCTION(f_sum)
{
    (void)ctx;
    return kiln_scale(kiln_sum(kiln_mul(x[0], x[0])), graph != NULL ? 0.5 : 0.0);
}

FUNCTION(f_mean)
{
    (void)ctx;
    (void)graph;
    return kiln_mean(kiln_mul(x[0], x[0]));
}

/* The gradient of a sum is a broadcast; its own is reached through the table. */
FUNCTION(f_broadcast)
{
    static double grid[6] = { 1, -2, 3, -4, 5, -6 };
    KilnShapeAttrs attrs = { .shape = KILN_SHAPE(2, 3) };

    (void)ctx;
    KilnTensor *y = kiln_graph_record(graph, &kiln_op_broadcast, x, 1, &attrs);
    return kiln_sum(
        kiln_mul(kiln_mul(y, y), kiln_graph_input(graph, KILN_F64, KILN_SHAPE(2, 3), grid)));
}

FUNCTION(f_broadcast_rows)
{
    KilnShapeAttrs attrs = { .shape = KILN_SHAPE(2, 2, 3) };

    (void)ctx;
    return weigh(graph, kiln_graph_record(graph, &kiln_op_broadcast_rows, x, 1, &attrs));
}

FUNCTION(f_sum_rows)
{
    (void)ctx;
    return weigh(graph, kiln_sum_rows(x[0]));
}

FUNCTION(f_matmul)
{
    const Sample *sample = ctx;

    return weigh(graph, kiln_matmul(x[0], x[1], sample->arg[0] != 0, sample->arg[1] != 0));
}

FUNCTION(f_linear)
{
    const Sample *sample = ctx;

    return weigh(graph, kiln_linear(x[0], x[1], sample->arg[0] != 0 ? x[2] : NULL));
}

FUNCTION(f_conv2d)
{
    const Sample *sample = ctx;
    KilnConv conv = { .stride = sample->arg[0], .padding = sample->arg[1] };

    return weigh(graph, kiln_conv2d(x[0], x[1], sample->arg[2] != 0 ? x[2] : NULL, conv));
}

FUNCTION(f_max_pool2d)
{
    const Sample *sample = ctx;
    KilnPool pool = { .kernel = sample->arg[0],
                      .stride = sample->arg[1],
                      .padding = sample->arg[2] };

    return weigh(graph, kiln_max_pool2d(x[0], pool));
}

FUNCTION(f_global_avg_pool2d)
{
    (void)ctx;
    return weigh(graph, kiln_global_avg_pool2d(x[0]));
}

FUNCTION(f_batch_norm)
{
    static double mean[8], var[8];
    KilnShape channels = *kiln_tensor_shape(x[1]);
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = true };

    (void)ctx;
    return weigh(graph,
                 kiln_batch_norm(x[0], x[1], x[2],
                                 kiln_graph_variable(graph, KILN_F64, channels, mean, false, NULL),
                                 kiln_graph_variable(graph, KILN_F64, channels, var, false, NULL),
                                 norm));
}

FUNCTION(f_batch_norm_eval)
{
    static double mean[] = { 0.5, -0.25, 0.125 }, var[] = { 2.0, 0.5, 1.25 };
    const KilnBatchNorm norm = { .eps = 1e-3, .momentum = 0.1, .training = false };

    (void)ctx;
    return weigh(graph,
                 kiln_batch_norm(x[0], x[1], x[2],
                                 kiln_graph_input(graph, KILN_F64, KILN_SHAPE(3), mean),
                                 kiln_graph_input(graph, KILN_F64, KILN_SHAPE(3), var), norm));
}

FUNCTION(f_softmax)
{
    (void)ctx;
    return weigh(graph, kiln_softmax(x[0]));
}

FUNCTION(f_cross_entropy)
{
    const Sample *sample = ctx;
    int64_t n = kiln_tensor_dim(x[0], 0);

    return kiln_scale(kiln_cross_entropy(x[0], labels(graph, n), (double)sample->arg[0] / 10.0),
                      3.0);
}

/* ---- Samples: one array per operation -------------------------------------------- */

/* An operation without a gradient has an empty sample. */
#define NONE                                                                                       \
    {                                                                                              \
        {                                                                                          \
            .function = NULL                                                                       \
        }                                                                                          \
    }

static const Sample samples_add[] = {
    { .function = f_add, .shapes = { KILN_SHAPE(2, 3), KILN_SHAPE(2, 3) } },
    { .function = f_add_self, .shapes = { KILN_SHAPE(7) } },
};
static const Sample samples_mul[] = {
    { .function = f_mul, .shapes = { KILN_SHAPE(3, 2), KILN_SHAPE(3, 2) } },
    { .function = f_square, .shapes = { KILN_SHAPE(5) } },
};
static const Sample samples_scale[] = { { .function = f_scale,
                                          .shapes = { KILN_SHAPE(2, 1, 3) } } };
static const Sample samples_fill[] = NONE;
static const Sample samples_relu[] = { { .function = f_relu, .shapes = { KILN_SHAPE(4, 5) } } };
static const Sample samples_relu_grad[] = NONE;
static const Sample samples_reshape[] = {
    { .function = f_reshape, .shapes = { KILN_SHAPE(2, 6) } },
    { .function = f_flatten, .shapes = { KILN_SHAPE(2, 3, 1, 2) } },
    { .function = f_flatten, .shapes = { KILN_SHAPE(2, 3, 2, 1) } },
};
static const Sample samples_permute[] = {
    { .function = f_permute, .shapes = { KILN_SHAPE(2, 3) } },
    { .function = f_permute, .shapes = { KILN_SHAPE(2, 3, 4, 2) }, .arg = { 1 } },
    { .function = f_permute, .shapes = { KILN_SHAPE(2, 3, 4, 2) }, .arg = { 2 } },
};
static const Sample samples_dropout[] = { { .function = f_dropout,
                                            .shapes = { KILN_SHAPE(6, 5) } } };
static const Sample samples_dropout_grad[] = NONE;
static const Sample samples_sum[] = { { .function = f_sum, .shapes = { KILN_SHAPE(2, 3) } } };
static const Sample samples_mean[] = { { .function = f_mean, .shapes = { KILN_SHAPE(2, 3) } } };
static const Sample samples_broadcast[] = { { .function = f_broadcast,
                                              .shapes = { KILN_SCALAR } } };
static const Sample samples_sum_rows[] = {
    { .function = f_sum_rows, .shapes = { KILN_SHAPE(2, 2, 3) } },
    { .function = f_sum_rows, .shapes = { KILN_SHAPE(4) } },
};
static const Sample samples_broadcast_rows[] = { { .function = f_broadcast_rows,
                                                   .shapes = { KILN_SHAPE(3) } } };
static const Sample samples_argmax[] = NONE;
static const Sample samples_equal[] = NONE;
static const Sample samples_matmul[] = {
    { .function = f_matmul, .shapes = { KILN_SHAPE(2, 3), KILN_SHAPE(3, 4) }, .arg = { 0, 0 } },
    { .function = f_matmul, .shapes = { KILN_SHAPE(3, 2), KILN_SHAPE(3, 4) }, .arg = { 1, 0 } },
    { .function = f_matmul, .shapes = { KILN_SHAPE(2, 3), KILN_SHAPE(4, 3) }, .arg = { 0, 1 } },
    { .function = f_matmul, .shapes = { KILN_SHAPE(3, 2), KILN_SHAPE(4, 3) }, .arg = { 1, 1 } },
};
static const Sample samples_linear[] = {
    { .function = f_linear,
      .shapes = { KILN_SHAPE(3, 4), KILN_SHAPE(2, 4), KILN_SHAPE(2) },
      .arg = { 1 } },
    { .function = f_linear, .shapes = { KILN_SHAPE(3, 4), KILN_SHAPE(2, 4) }, .arg = { 0 } },
};
static const Sample samples_conv2d[] = {
    { .function = f_conv2d,
      .shapes = { KILN_SHAPE(2, 4, 5, 2), KILN_SHAPE(3, 2, 3, 3), KILN_SHAPE(3) },
      .arg = { 1, 1, 1 } },
    { .function = f_conv2d,
      .shapes = { KILN_SHAPE(2, 6, 5, 2), KILN_SHAPE(3, 2, 3, 3) },
      .arg = { 2, 1, 0 } },
    { .function = f_conv2d,
      .shapes = { KILN_SHAPE(1, 4, 4, 3), KILN_SHAPE(2, 3, 1, 1) },
      .arg = { 2, 0, 0 } },
    { .function = f_conv2d,
      .shapes = { KILN_SHAPE(1, 7, 7, 1), KILN_SHAPE(2, 1, 2, 3), KILN_SHAPE(2) },
      .arg = { 3, 2, 1 } },
};
static const Sample samples_conv2d_grad_input[] = NONE;
static const Sample samples_conv2d_grad_weight[] = NONE;
static const Sample samples_max_pool2d[] = {
    { .function = f_max_pool2d, .shapes = { KILN_SHAPE(2, 4, 6, 2) }, .arg = { 2, 0, 0 } },
    { .function = f_max_pool2d, .shapes = { KILN_SHAPE(1, 7, 5, 2) }, .arg = { 3, 2, 1 } },
};
static const Sample samples_max_pool2d_grad[] = NONE;
static const Sample samples_global_avg_pool2d[] = { { .function = f_global_avg_pool2d,
                                                      .shapes = { KILN_SHAPE(2, 3, 4, 2) } } };
static const Sample samples_global_avg_pool2d_grad[] = NONE;
static const Sample samples_batch_norm[] = {
    { .function = f_batch_norm,
      .shapes = { KILN_SHAPE(3, 2, 2, 3), KILN_SHAPE(3), KILN_SHAPE(3) } },
    { .function = f_batch_norm, .shapes = { KILN_SHAPE(6, 2), KILN_SHAPE(2), KILN_SHAPE(2) } },
};
static const Sample samples_batch_norm_grad[] = NONE;
static const Sample samples_batch_norm_eval[] = { { .function = f_batch_norm_eval,
                                                    .shapes = { KILN_SHAPE(2, 2, 3), KILN_SHAPE(3),
                                                                KILN_SHAPE(3) } } };
static const Sample samples_softmax[] = { { .function = f_softmax,
                                            .shapes = { KILN_SHAPE(3, 4) } } };
static const Sample samples_softmax_grad[] = NONE;
static const Sample samples_cross_entropy[] = {
    { .function = f_cross_entropy, .shapes = { KILN_SHAPE(4, 3) }, .arg = { 0 } },
    { .function = f_cross_entropy, .shapes = { KILN_SHAPE(5, 3) }, .arg = { 2 } },
};
static const Sample samples_cross_entropy_grad[] = NONE;
static const Sample samples_ema_update[] = NONE;
static const Sample samples_increment[] = NONE;
static const Sample samples_sgd_update[] = NONE;
static const Sample samples_adam_update[] = NONE;

static const struct {
    const KilnOp *op;
    const Sample *samples;
    size_t count;
} all[] = {
#define ROW(name) { &kiln_op_##name, samples_##name, KILN_COUNT(samples_##name) },
    KILN_OP_TABLE(ROW)
#undef ROW
};

/* ---- Tests ----------------------------------------------------------------------- */

static void check(KilnBackend *backend, const char *name, size_t number, const Sample *sample)
{
    static double values[KILN_COUNT(sample->shapes)][MOST_VALUES];
    KilnGradVariable variables[KILN_COUNT(sample->shapes)];
    KilnGradWorst worst;
    KilnError err;
    KilnRng rng;
    size_t n = 0;

    kiln_rng_init(&rng, 3, KILN_RNG_USER, 1, number);
    for (; n < KILN_COUNT(sample->shapes); n++) {
        if (sample->shapes[n].rank == 0 && n > 0)
            break;
        variables[n] = (KilnGradVariable) { sample->shapes[n], values[n] };
        for (int64_t k = 0; k < kiln_shape_count(&sample->shapes[n]); k++)
            values[n][k] = (double)kiln_rng_range(&rng, -1.0f, 1.0f);
    }
    if (kiln_gradcheck(backend, sample->function, (void *)sample, variables, n, 1e-5, &worst,
                       &err) < 0)
        fail_msg("%s, sample %zu: %s", name, number, err.text);
    if (!(worst.error < 1e-7))
        fail_msg(
            "%s, sample %zu: gradient of input %zu, element %lld: %.10g, differences say %.10g",
            name, number, worst.variable, (long long)worst.element, worst.gradient,
            worst.difference);
}

static void test_every_operation(void **unused)
{
    KilnBackend *backend;
    KilnError err;

    (void)unused;
    assert_int_equal(KILN_COUNT(all), kiln_ops_count);
    if (kiln_backend_ref_f64_new(&backend, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < KILN_COUNT(all); i++) {
        bool has_sample = all[i].samples[0].function != NULL;

        assert_ptr_equal(all[i].op, kiln_ops[i]);
        if (has_sample != (all[i].op->gradient != NULL))
            fail_msg("%s: has %s gradient and %s sample", all[i].op->name,
                     all[i].op->gradient != NULL ? "a" : "no", has_sample ? "a" : "no");
        for (size_t s = 0; s < all[i].count && has_sample; s++)
            check(backend, all[i].op->name, s, &all[i].samples[s]);
    }
    kiln_backend_free(backend);
}

/* A whole network: convolution, normalization, a residual sum, pooling, a
 * linear layer and the loss. */
static KilnTensor *network(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    static double mean[3], var[3];
    const KilnConv conv = { .stride = 1, .padding = 1 };
    const KilnBatchNorm norm = { .eps = 1e-5, .momentum = 0.1, .training = true };
    KilnShape channels = KILN_SHAPE(3);

    (void)ctx;
    KilnTensor *y = kiln_conv2d(x[0], x[1], NULL, conv);
    y = kiln_batch_norm(y, x[2], x[3],
                        kiln_graph_variable(graph, KILN_F64, channels, mean, false, NULL),
                        kiln_graph_variable(graph, KILN_F64, channels, var, false, NULL), norm);
    y = kiln_relu(kiln_add(y, x[0]));
    y = kiln_flatten(kiln_max_pool2d(y, (KilnPool) { .kernel = 2 }));
    return kiln_cross_entropy(kiln_linear(y, x[4], x[5]), labels(graph, 2), 0.1);
}

static void test_network(void **unused)
{
    static double values[6][MOST_VALUES];
    const KilnShape shapes[6] = { KILN_SHAPE(2, 4, 4, 3), KILN_SHAPE(3, 3, 3, 3), KILN_SHAPE(3),
                                  KILN_SHAPE(3),          KILN_SHAPE(3, 12),      KILN_SHAPE(3) };
    KilnGradVariable variables[6];
    KilnGradWorst worst;
    KilnBackend *backend;
    KilnError err;
    KilnRng rng;

    (void)unused;
    kiln_rng_init(&rng, 5, KILN_RNG_USER, 2, 0);
    for (size_t i = 0; i < 6; i++) {
        variables[i] = (KilnGradVariable) { shapes[i], values[i] };
        for (int64_t k = 0; k < kiln_shape_count(&shapes[i]); k++)
            values[i][k] = (double)kiln_rng_range(&rng, -0.7f, 0.7f);
    }
    assert_int_equal(kiln_backend_ref_f64_new(&backend, &err), KILN_OK);
    if (kiln_gradcheck(backend, network, NULL, variables, 6, 1e-6, &worst, &err) < 0)
        fail_msg("%s", err.text);
    if (!(worst.error < 1e-7))
        fail_msg("input %zu, element %lld: %.10g, differences say %.10g", worst.variable,
                 (long long)worst.element, worst.gradient, worst.difference);
    kiln_backend_free(backend);
}

/* The check itself must notice a wrong gradient: here of a function whose
 * recorded form does not depend on the variable as its value does. */
static KilnTensor *dishonest(KilnGraph *graph, KilnTensor *const *x, void *ctx)
{
    const double *values = ctx;
    KilnTensor *hidden = kiln_graph_input(graph, KILN_F64, KILN_SHAPE(3), values);

    return kiln_sum(kiln_mul(x[0], hidden));
}

static void test_check_notices(void **unused)
{
    double values[3] = { 0.5, -0.25, 1.0 };
    KilnGradVariable variable = { KILN_SHAPE(3), values };
    KilnGradWorst worst;
    KilnBackend *backend;
    KilnError err;

    (void)unused;
    assert_int_equal(kiln_backend_ref_f64_new(&backend, &err), KILN_OK);
    assert_int_equal(kiln_gradcheck(backend, dishonest, values, &variable, 1, 1e-5, &worst, &err),
                     KILN_OK);
    assert_true(worst.error > 0.2);
    assert_true(values[0] == 0.5 && values[1] == -0.25 && values[2] == 1.0);
    kiln_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_check_notices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
