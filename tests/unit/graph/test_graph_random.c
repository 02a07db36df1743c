/* Random steps through the planner, on the mock backend, against the same steps computed at
 * once: sharing, converting and removing must not change results. */
#include <stdio.h>
#include <string.h>

#include "kiln/rng.h"
#include "tests/support/cmocka.h"
#include "tests/support/mock_backend.h"

enum { STEPS = 600, NODES = 40, SIZE = 6, VARIABLES = 3 };

typedef struct Step {
    KilnRng rng;
    KilnGraph *graph;
    KilnTensor *tensors[NODES + 8];
    float values[NODES + 8][SIZE]; /* what each tensor must hold */
    bool variable[NODES + 8];
    size_t n;
    float memory[VARIABLES][SIZE];   /* the variables' bytes */
    float expected[VARIABLES][SIZE]; /* what they must hold after the run */
    KilnTensor *leaves[VARIABLES];
    float places[NODES][SIZE];
    size_t placed[NODES], n_placed;
} Step;

static size_t pick(Step *step)
{
    return kiln_rng_below(&step->rng, (uint32_t)step->n);
}

/* Append a tensor; returns where its expected value goes. */
static float *append(Step *step, KilnTensor *tensor, bool is_variable)
{
    assert_false(kiln_tensor_poisoned(tensor));
    step->tensors[step->n] = tensor;
    step->variable[step->n] = is_variable;
    return step->values[step->n++];
}

static void start(Step *step, const float *data)
{
    kiln_graph_begin(step->graph);
    step->n = step->n_placed = 0;
    memcpy(append(step, kiln_graph_input(step->graph, KILN_F32, KILN_SHAPE(SIZE), data), false),
           data, sizeof(step->values[0]));
    for (int v = 0; v < VARIABLES; v++) {
        memcpy(step->expected[v], step->memory[v], sizeof(step->expected[v]));
        step->leaves[v] = kiln_graph_variable(step->graph, KILN_F32, KILN_SHAPE(SIZE),
                                              step->memory[v], false, NULL);
        memcpy(append(step, step->leaves[v], true), step->memory[v], sizeof(step->values[0]));
    }
}

/* A leaf read after an update has the new value. */
static const float *current(const Step *step, size_t i)
{
    for (int v = 0; v < VARIABLES; v++) {
        if (step->tensors[i] == step->leaves[v])
            return step->expected[v];
    }
    return step->values[i];
}

static void update(Step *step, size_t a)
{
    const uint32_t v = kiln_rng_below(&step->rng, VARIABLES);
    const float *x = current(step, a);

    KilnTensor *flat = kiln_reshape(step->tensors[a], KILN_SHAPE(SIZE));
    kiln_ema_update(step->leaves[v], flat, 0.25);
    for (int i = 0; i < SIZE; i++)
        step->expected[v][i] = 0.75f * step->expected[v][i] + 0.25f * x[i];
}

static void record_one(Step *step)
{
    size_t a = pick(step), b = pick(step);
    KilnTensor *x = kiln_reshape(step->tensors[a], KILN_SHAPE(SIZE)), *y;
    const float *p, *q = current(step, b);
    uint32_t kind = kiln_rng_below(&step->rng, 8);
    float *to;

    if (kind == 7) {
        update(step, a);
        return;
    }
    /* The reshapes are recorded now, so they read what is there now. */
    y = kind < 2 ? kiln_reshape(step->tensors[b], KILN_SHAPE(SIZE)) : NULL;
    p = current(step, a);
    if (kind == 0)
        to = append(step, kiln_add(x, y), false);
    else if (kind == 1)
        to = append(step, kiln_mul(kiln_scale(x, 0.5), y), false);
    else if (kind == 2)
        to = append(step, kiln_scale(x, -1.5), false);
    else if (kind == 3)
        to = append(step, kiln_relu(x), false);
    else if (kind == 4) /* of a leaf itself: converted to the order that relu wants */
        to = append(step, kiln_relu(step->tensors[a]), false);
    else if (kind == 5)
        to = append(step, kiln_reshape(x, KILN_SHAPE(2, SIZE / 2)), false);
    else
        to = append(step, kiln_graph_full(step->graph, KILN_SHAPE(SIZE), 1.25), false);
    for (int i = 0; i < SIZE; i++) {
        const float results[] = { p[i] + q[i],
                                  p[i] * 0.5f * q[i],
                                  p[i] * -1.5f,
                                  p[i] > 0 ? p[i] : 0,
                                  p[i] > 0 ? p[i] : 0,
                                  p[i],
                                  1.25f };

        to[i] = results[kind];
    }
}

/* Some results get a place, as gradients do. */
static void place_some(Step *step)
{
    for (size_t i = VARIABLES + 1; i < step->n && step->n_placed < 4; i++) {
        if (kiln_rng_below(&step->rng, 8) != 0)
            continue;
        step->tensors[i]->dest.host = step->places[step->n_placed];
        step->placed[step->n_placed++] = i;
    }
}

static void compare(const char *what, int number, size_t i, const float *got, const float *want)
{
    for (int k = 0; k < SIZE; k++) {
        if (got[k] != want[k])
            fail_msg("step %d: %s %zu: element %d is %g, want %g", number, what, i, k,
                     (double)got[k], (double)want[k]);
    }
}

static void run_and_compare(Step *step, int number)
{
    KilnTensor *outputs[6];
    size_t chosen[6], n = 1 + kiln_rng_below(&step->rng, 5);
    KilnError err;

    for (size_t i = 0; i < n; i++) {
        /* Not a variable: its bytes are what the last update made of them. */
        do
            chosen[i] = pick(step);
        while (step->variable[chosen[i]]);
        outputs[i] = step->tensors[chosen[i]];
    }
    if (kiln_graph_run(step->graph, outputs, n, &err) < 0)
        fail_msg("step %d: %s", number, err.text);
    for (size_t i = 0; i < n; i++)
        compare("tensor", number, chosen[i], kiln_tensor_data(outputs[i]), step->values[chosen[i]]);
    for (size_t i = 0; i < VARIABLES; i++)
        compare("variable", number, i, step->memory[i], step->expected[i]);
    for (size_t i = 0; i < step->n_placed; i++)
        compare("place", number, step->placed[i], step->places[i], step->values[step->placed[i]]);
}

static void test_random_steps(void **unused)
{
    static Step step;
    static Mock mock;
    float data[SIZE] = { 0.5f, -1, 2, -0.25f, 1, -3 };
    KilnError err;

    (void)unused;
    mock = (Mock) { .base = { .ops = &mock_ops, .float_type = KILN_F32, .threads = 1 } };
    assert_int_equal(kiln_graph_new(&mock.base, &step.graph, &err), KILN_OK);
    for (int number = 0; number < STEPS; number++) {
        kiln_rng_init(&step.rng, 11, KILN_RNG_USER, 0, (uint64_t)number);
        for (int v = 0; v < VARIABLES; v++) {
            for (int i = 0; i < SIZE; i++)
                step.memory[v][i] = kiln_rng_range(&step.rng, -1.0f, 1.0f);
        }
        start(&step, data);
        while (step.n < NODES && step.graph->n_nodes < 4 * NODES)
            record_one(&step);
        place_some(&step);
        run_and_compare(&step, number);
    }
    kiln_graph_free(step.graph);
    assert_int_equal(mock.prepared, mock.released);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_steps) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
