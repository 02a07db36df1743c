/* Optimizers and schedulers against PyTorch's recorded curves, and the options
 * that they refuse. */
#include "nn_support.h"

/* ---- Optimizers ---------------------------------------------------------------- */

enum { MOST = 16 };

/* A small parameter vector with its gradient and the optimizer's state. */
typedef struct Descent {
    Built built;
    const KilnOptimizerOps *ops;
    KilnBackend *backend;
    KilnGraph *graph;
    int64_t n;
    size_t slots;
    float value[MOST], gradient[MOST], state[KILN_MAX_SLOTS][MOST];
} Descent;

static void descent_open(Descent *d, const Record *record)
{
    const char *names[KILN_MAX_SLOTS] = { 0 };
    KilnError err = { 0 };

    *d = (Descent) { .n = record_i64(record, 2) };
    assert_true(d->n <= MOST);
    if (build(&d->built, KILN_KIND_OPTIMIZER, record->word[1], record->word + 3, record->words - 3,
              &err) < 0)
        fail_msg("%s", err.text);
    d->ops = kiln_instance_component(d->built.self)->ops.optimizer;
    d->slots = d->ops->slots(d->built.self, names);
    for (size_t i = 0; i < d->slots; i++)
        assert_non_null(names[i]);
    assert_int_equal(kiln_backend_ref_new(&d->backend, &err), KILN_OK);
    assert_int_equal(kiln_graph_new(d->backend, &d->graph, &err), KILN_OK);
    for (uint32_t i = 0; i < (uint32_t)d->n; i++)
        d->value[i] = (float)pattern(1, i);
}

static void descent_close(Descent *d)
{
    kiln_graph_free(d->graph);
    kiln_backend_free(d->backend);
    built_free(&d->built);
}

/* The gradient of the recording, then one update. */
static void descent_step(Descent *d, int64_t step)
{
    KilnShape shape = KILN_SHAPE(d->n);
    KilnTensor *slots[KILN_MAX_SLOTS] = { 0 };
    float numbers[KILN_MAX_HYPER] = { 0 };
    KilnError err = { 0 };

    for (uint32_t i = 0; i < (uint32_t)d->n; i++)
        d->gradient[i] = (float)((1.0 + 0.5 * pattern(2, i)) * (double)d->value[i] - pattern(3, i) +
                                 0.1 * sin((double)step));
    size_t n = d->ops->hyper(d->built.self, d->ops->learning_rate(d->built.self), step + 1,
                             numbers);
    kiln_graph_begin(d->graph);
    KilnTensor *param = kiln_graph_variable(d->graph, KILN_F32, shape, d->value, false, NULL);
    KilnTensor *grad = kiln_graph_input(d->graph, KILN_F32, shape, d->gradient);
    KilnTensor *hyper = kiln_graph_input(d->graph, KILN_F32, KILN_SHAPE((int64_t)n), numbers);
    for (size_t i = 0; i < d->slots; i++)
        slots[i] = kiln_graph_variable(d->graph, KILN_F32, shape, d->state[i], false, NULL);
    d->ops->update(d->built.self, param, grad, slots, hyper);
    if (kiln_graph_run(d->graph, NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
}

static void test_optimizer_curves(void **unused)
{
    Record record;
    size_t cases = 0;

    (void)unused;
    record_open(&record, "optimizers.txt");
    while (record_line(&record)) {
        Descent d;

        assert_true(record_is(&record, "optimizer"));
        const char *name = record.word[1];
        descent_open(&d, &record);
        for (int64_t step = 0; record_line(&record) && record_is(&record, "step"); step++) {
            descent_step(&d, step);
            for (int64_t i = 0; i < d.n; i++)
                if (fabs((double)d.value[i] - record_f64(&record, (size_t)i + 1)) > 2e-6)
                    fail_msg("case %zu (%s), step %d, element %d: %.9g, want %s", cases, name,
                             (int)step, (int)i, (double)d.value[i], record.word[i + 1]);
        }
        descent_close(&d);
        cases++;
    }
    assert_int_equal(cases, 7);
    record_close(&record);
}

/* ---- Schedulers ------------------------------------------------------------------ */

static void test_scheduler_curves(void **unused)
{
    Record record;
    size_t cases = 0;

    (void)unused;
    record_open(&record, "schedulers.txt");
    while (record_line(&record)) {
        Built built;
        KilnError err = { 0 };

        assert_true(record_is(&record, "scheduler"));
        const char *name = record.word[1];
        if (build(&built, KILN_KIND_SCHEDULER, name, record.word + 2, record.words - 2, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(record_line(&record) && record_is(&record, "factors"));
        for (int64_t step = 0; step < 20; step++) {
            KilnProgress at = {
                .step = step,
                .epoch = step / 4,
                .steps_per_epoch = 4,
                .total_steps = 20,
                .total_epochs = 5,
            };
            double got =
                kiln_instance_component(built.self)->ops.scheduler->factor(built.self, &at);

            if (fabs(got - record_f64(&record, (size_t)step + 1)) > 1e-9)
                fail_msg("case %zu (%s), step %d: %.12g, want %s", cases, name, (int)step, got,
                         record.word[step + 1]);
        }
        assert_true(record_line(&record) && record_is(&record, "end"));
        built_free(&built);
        cases++;
    }
    assert_int_equal(cases, 8);
    record_close(&record);
}

/* Beyond the plan, without a plan, and with a warmup longer than the plan. */
static void test_scheduler_edges(void **unused)
{
    static const struct {
        const char *name, *option;
        KilnProgress at;
        double want;
    } cases[] = {
        { "cosine", "min_factor=0.2", { .step = 25, .total_steps = 20 }, 0.2 },
        { "cosine", "min_factor=0.2", { .step = 20, .total_steps = 20 }, 0.2 },
        { "cosine", "min_factor=0.2", { .step = 1000, .total_steps = -1 }, 1.0 },
        { "cosine", "warmup_steps=50", { .step = 24, .total_steps = 20 }, 0.5 },
        { "cosine", "warmup_steps=20", { .step = 20, .total_steps = 20 }, 0.0 },
        { "cosine",
          "warmup_epochs=0.5",
          { .step = 0, .steps_per_epoch = 8, .total_steps = 80 },
          0.25 },
        { "constant", "warmup_steps=0", { .step = 0 }, 1.0 },
        { "step", "gamma=0.5", { .epoch = 35 }, 0.125 },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char option[64];
        char *const options[] = { option };
        Built built;
        KilnError err = { 0 };

        snprintf(option, sizeof(option), "%s", cases[i].option);
        if (build(&built, KILN_KIND_SCHEDULER, cases[i].name, options, 1, &err) < 0)
            fail_msg("%s", err.text);
        double got =
            kiln_instance_component(built.self)->ops.scheduler->factor(built.self, &cases[i].at);
        if (fabs(got - cases[i].want) > 1e-12)
            fail_msg("case %zu: %g, want %g", i, got, cases[i].want);
        built_free(&built);
    }
}

/* ---- Refused options --------------------------------------------------------------- */

static void test_refused_options(void **unused)
{
    static const struct {
        KilnKind kind;
        const char *name, *first, *second, *part;
    } cases[] = {
        { KILN_KIND_OPTIMIZER, "sgd", "nesterov=true", NULL,
          "nesterov: true needs a momentum above 0" },
        { KILN_KIND_OPTIMIZER, "sgd", "lr=-0.1", NULL, "lr" },
        { KILN_KIND_OPTIMIZER, "sgd", "lr=fast", NULL, "fast" },
        { KILN_KIND_OPTIMIZER, "sgd", "momentum=1.5", NULL, "momentum" },
        { KILN_KIND_OPTIMIZER, "adam", "betas=[0.9]", NULL,
          "betas: expected two numbers, such as [0.9, 0.999], got 1" },
        { KILN_KIND_OPTIMIZER, "adamw", "betas=[0.9,1.0]", NULL,
          "betas[1]: expected a number from 0 to below 1, got 1" },
        { KILN_KIND_OPTIMIZER, "adam", "beta=0.9", NULL, "betas" },
        { KILN_KIND_SCHEDULER, "cosine", "warmup_steps=5", "warmup_epochs=1",
          "warmup_epochs: 1, and warmup_steps is 5: one of both must be 0" },
        { KILN_KIND_SCHEDULER, "step", "step_size=0", NULL, "step_size" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char first[64], second[64];
        char *const options[] = { first, second };
        Built built;
        KilnError err = { 0 };

        snprintf(first, sizeof(first), "%s", cases[i].first);
        snprintf(second, sizeof(second), "%s", cases[i].second != NULL ? cases[i].second : "");
        if (build(&built, cases[i].kind, cases[i].name, options, cases[i].second != NULL ? 2 : 1,
                  &err) >= 0)
            fail_msg("case %zu is not refused", i);
        if (strstr(err.text, cases[i].part) == NULL)
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].part, err.text);
        built_free(&built);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizer_curves),
        cmocka_unit_test(test_scheduler_curves),
        cmocka_unit_test(test_scheduler_edges),
        cmocka_unit_test(test_refused_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
