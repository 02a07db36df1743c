/* The order of all hooks, as in Lightning 2.6 except for what docs/lightning.md lists: a trace
 * of a plain callback (C), the module (M), one that monitors (W) and one that saves (K). */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"
#include "train/trainer.h"

/* ---- The trace -------------------------------------------------------------------------- */

/* "fit_start" if all four were called in this order; "fit_start:CK" if only these. */
static struct Trace {
    char text[8192];
    char hook[32], who[8];
    int64_t fail_at; /* C fails in on_train_batch_end after this batch; 0: never */
    int64_t stop_at; /* C interrupts the run there */
    int64_t skip_at; /* C skips the rest of the first epoch before this batch; 0: no */
    KilnError why;   /* of on_exception */
} trace;

static void flush(void)
{
    size_t used = strlen(trace.text);
    bool all = strcmp(trace.who, "CMWK") == 0;

    if (trace.hook[0] != '\0')
        snprintf(trace.text + used, sizeof(trace.text) - used, "%s%s%s%s", used > 0 ? " " : "",
                 trace.hook, all ? "" : ":", all ? "" : trace.who);
    trace.hook[0] = trace.who[0] = '\0';
}

/* What is recorded on shapes alone, before setup, is not in the trace. */
static void note(const char *who, const char *hook)
{
    if (strcmp(trace.hook, hook) != 0 || strchr(trace.who, who[0]) != NULL)
        flush();
    if (strcmp(hook, "setup") == 0 && strcmp(who, "C") == 0)
        trace.text[0] = '\0';
    snprintf(trace.hook, sizeof(trace.hook), "%s", hook);
    strncat(trace.who, who, sizeof(trace.who) - strlen(trace.who) - 1);
}

/* C before a batch. */
static void disturb(const char *who, const char *hook, KilnTrainer *trainer)
{
    if (strcmp(who, "C") == 0 && strcmp(hook, "on_train_batch_start") == 0 && trace.skip_at > 0 &&
        kiln_trainer_epoch(trainer) == 0 && kiln_trainer_batches_done(trainer) + 1 == trace.skip_at)
        kiln_trainer_skip_epoch(trainer);
}

#define PLAIN_HOOKS(X, who)                                                                        \
    X(who, setup)                                                                                  \
    X(who, on_fit_start)                                                                           \
    X(who, on_sanity_check_start)                                                                  \
    X(who, on_sanity_check_end)                                                                    \
    X(who, on_train_start)                                                                         \
    X(who, on_train_epoch_start)                                                                   \
    X(who, on_train_batch_start)                                                                   \
    X(who, on_train_epoch_end)                                                                     \
    X(who, on_validation_start)                                                                    \
    X(who, on_validation_epoch_start)                                                              \
    X(who, on_validation_batch_start)                                                              \
    X(who, on_validation_batch_end)                                                                \
    X(who, on_validation_epoch_end)                                                                \
    X(who, on_validation_end)                                                                      \
    X(who, on_train_end)                                                                           \
    X(who, on_fit_end)                                                                             \
    X(who, on_test_start)                                                                          \
    X(who, on_test_epoch_start)                                                                    \
    X(who, on_test_batch_start)                                                                    \
    X(who, on_test_batch_end)                                                                      \
    X(who, on_test_epoch_end)                                                                      \
    X(who, on_test_end)                                                                            \
    X(who, on_predict_start)                                                                       \
    X(who, on_predict_epoch_start)                                                                 \
    X(who, on_predict_batch_start)                                                                 \
    X(who, on_predict_batch_end)                                                                   \
    X(who, on_predict_epoch_end)                                                                   \
    X(who, on_predict_end)                                                                         \
    X(who, teardown)

#define RECORDING_HOOKS(X, who)                                                                    \
    X(who, on_before_zero_grad)                                                                    \
    X(who, on_before_backward)                                                                     \
    X(who, on_after_backward)                                                                      \
    X(who, on_before_optimizer_step)                                                               \
    X(who, record_update)

static const char *short_name(const char *hook)
{
    return strncmp(hook, "on_", 3) == 0 ? hook + 3 : hook;
}

#define PLAIN(who, name)                                                                           \
    static KilnStatus who##_##name(KilnInstance *self, KilnTrainer *trainer, KilnError *err)       \
    {                                                                                              \
        (void)self;                                                                                \
        (void)err;                                                                                 \
        disturb(#who, #name, trainer);                                                             \
        note(#who, short_name(#name));                                                             \
        return KILN_OK;                                                                            \
    }
#define RECORDING(who, name)                                                                       \
    static void who##_##name(KilnInstance *self, KilnTrainer *trainer, const KilnRecording *at)    \
    {                                                                                              \
        (void)self;                                                                                \
        (void)trainer;                                                                             \
        check(at, short_name(#name));                                                              \
        note(#who, short_name(#name));                                                             \
    }
#define SLOT(who, name) .name = who##_##name,
#define HOOKS_OF(who, rank_)                                                                       \
    PLAIN_HOOKS(PLAIN, who)                                                                        \
    RECORDING_HOOKS(RECORDING, who)                                                                \
    static KilnStatus who##_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)    \
    {                                                                                              \
        (void)self;                                                                                \
        return batch_end(#who, trainer, err);                                                      \
    }                                                                                              \
    static void who##_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)    \
    {                                                                                              \
        (void)self;                                                                                \
        (void)trainer;                                                                             \
        trace.why = *why;                                                                          \
        note(#who, "exception");                                                                   \
    }                                                                                              \
    static const KilnCallbackOps who##_ops = {                                                     \
        PLAIN_HOOKS(SLOT, who) RECORDING_HOOKS(SLOT, who).on_train_batch_end = who##_batch_end,    \
        .on_exception = who##_exception, .rank = rank_                                             \
    };

/* Checks that the arguments of a recording hook fit its position. */
static void check(const KilnRecording *at, const char *hook)
{
    const bool gradients = strcmp(hook, "before_zero_grad") != 0 &&
                           strcmp(hook, "before_backward") != 0;

    assert_non_null(at->step);
    assert_true(at->loss != NULL || strcmp(hook, "before_optimizer_step") == 0 ||
                strcmp(hook, "record_update") == 0);
    assert_int_equal(at->gradients != NULL, gradients);
    if (strcmp(hook, "before_optimizer_step") == 0)
        assert_true(at->steps);
}

static KilnStatus batch_end(const char *who, KilnTrainer *trainer, KilnError *err)
{
    const int64_t batch = kiln_trainer_batches_done(trainer);

    note(who, "train_batch_end");
    if (batch == trace.stop_at)
        recorder.stop = 1;
    if (batch == trace.fail_at && strcmp(who, "C") == 0)
        return kiln_error_set(err, KILN_E_RANGE, "no more");
    return KILN_OK;
}

HOOKS_OF(C, KILN_RANK_PLAIN)
HOOKS_OF(M, KILN_RANK_PLAIN)
HOOKS_OF(W, KILN_RANK_MONITOR)
HOOKS_OF(K, KILN_RANK_SAVES)

#define CALLBACK(who, name_)                                                                       \
    static const KilnComponent who##_component = {                                                 \
        .kind = KILN_KIND_CALLBACK, .name = name_, .summary = "Trace", .ops.callback = &who##_ops  \
    };
CALLBACK(C, "test_c")
CALLBACK(W, "test_w")
CALLBACK(K, "test_k")

static const KilnModuleOps traced_ops = {
    .setup = plane_setup,
    .training_step = plane_train,
    .validation_step = plane_validate,
    .test_step = plane_test,
    .predict_step = plane_predict,
    .configure_optimizers = plane_optimizers,
    .hooks = &M_ops,
};

static const KilnComponent traced_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_traced",
    .summary = "The plane, with hooks",
    KILN_FIELDS(plane_fields),
    .opts_size = sizeof(PlaneOpts),
    .state_size = sizeof(PlaneState),
    .ops.module = &traced_ops,
};

static const KilnComponent *const traced[] = { &C_component, &W_component, &K_component,
                                               &traced_component, NULL };

/* The callbacks are given in the wrong order. */
#define TRACED                                                                                     \
    "task._target_=module/test_traced task.optimizer=${optimizer} task.scheduler=${scheduler} "    \
    "++callbacks.k={_target_:callback/test_k} "                                                    \
    "++callbacks.w={_target_:callback/test_w} ++callbacks.c={_target_:callback/test_c} "           \
    "trainer.limit_val_batches=1 trainer.limit_test_batches=1 trainer.num_sanity_val_steps=1 "

static void assert_trace(const char *want)
{
    flush();
    assert_string_equal(trace.text, want);
}

#define VALIDATION                                                                                 \
    "validation_start validation_epoch_start validation_batch_start validation_batch_end "         \
    "validation_epoch_end validation_end "
#define FIRST "train_batch_start before_zero_grad before_backward after_backward train_batch_end "
#define LAST                                                                                       \
    "train_batch_start before_backward after_backward before_optimizer_step record_update "        \
    "train_batch_end "
#define ONLY                                                                                       \
    "train_batch_start before_zero_grad before_backward after_backward before_optimizer_step "     \
    "record_update train_batch_end "
#define TEST "test_start test_epoch_start test_batch_start test_batch_end test_epoch_end test_end "
#define SANITY "sanity_check_start " VALIDATION "sanity_check_end "

/* ---- Traces ------------------------------------------------------------------------------ */

static int start(void **state)
{
    memset(&trace, 0, sizeof(trace));
    extra_components = traced;
    return make_work(state);
}

/* Five batches, two a step, validation after three. */
static void test_fit(void **unused)
{
    (void)unused;
    fit_well("run",
             TRACED "trainer.max_epochs=1 trainer.accumulate_grad_batches=2 "
                    "trainer.val_check_interval=3",
             "finished");
    assert_trace("setup fit_start " SANITY
                 "train_start train_epoch_start " FIRST LAST FIRST VALIDATION LAST ONLY
                 "train_epoch_end train_end fit_end " TEST "teardown");
}

static void test_two_epochs(void **unused)
{
    (void)unused;
    fit_well("run",
             TRACED "trainer.max_epochs=2 trainer.limit_train_batches=1 "
                    "trainer.check_val_every_n_epoch=2 trainer.num_sanity_val_steps=0 test=false",
             "finished");
    assert_trace("setup fit_start train_start train_epoch_start " ONLY
                 "train_epoch_end train_epoch_start " ONLY VALIDATION
                 "train_epoch_end train_end fit_end teardown");
}

/* The rest of the first epoch is skipped before its fourth batch: no end of that batch, no
 * validation, the epoch ends, and what waited for its group makes a step. */
static void test_skip_epoch(void **unused)
{
    (void)unused;
    trace.skip_at = 4;
    fit_well("run",
             TRACED "trainer.max_epochs=2 trainer.accumulate_grad_batches=2 "
                    "trainer.num_sanity_val_steps=0 test=false",
             "finished");
    assert_trace("setup fit_start train_start train_epoch_start " FIRST LAST FIRST
                 "train_batch_start before_optimizer_step record_update train_epoch_end "
                 "train_epoch_start " FIRST LAST FIRST LAST ONLY VALIDATION
                 "train_epoch_end train_end fit_end teardown");
    json_t *summary = summary_of("run");
    assert_int_equal(json_integer_value(json_object_get(summary, "steps")), 5);
    assert_int_equal(json_integer_value(json_object_get(summary, "epochs")), 2);
    json_decref(summary);
    trace.skip_at = 1;
    fit_well("none", TRACED "trainer.max_epochs=1 trainer.num_sanity_val_steps=0 test=false",
             "finished");
    assert_trace("setup fit_start train_start train_epoch_start train_batch_start train_epoch_end "
                 "train_end fit_end teardown");
}

/* An interrupt after batch 3, where validation is due; then what is left, with that validation
 * first, and neither a sanity check nor a second start of the epoch. */
static void test_interrupt_and_resume(void **unused)
{
    const char *options = TRACED "trainer.max_epochs=1 trainer.accumulate_grad_batches=2 "
                                 "trainer.val_check_interval=3 test=false";
    char overrides[1024];

    (void)unused;
    trace.stop_at = 3;
    fit_well("run", options, "interrupted");
    assert_trace("setup fit_start " SANITY "train_start train_epoch_start " FIRST LAST FIRST
                 "exception teardown");
    assert_non_null(strstr(trace.why.text, "interrupted"));
    trace.stop_at = 0;
    snprintf(overrides, sizeof(overrides), "%s ckpt_path=%s/run", options, work);
    fit_well("run", overrides, "finished");
    assert_trace("setup fit_start train_start " VALIDATION LAST ONLY
                 "train_epoch_end train_end fit_end teardown");
}

/* Nothing is left to train. */
static void test_nothing_left(void **unused)
{
    (void)unused;
    fit_well("run", TRACED "trainer.max_epochs=0 test=false", "finished");
    assert_trace("setup fit_start fit_end teardown");
}

static void test_failure(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };

    (void)unused;
    trace.fail_at = 1;
    assert_int_equal(fit("run", TRACED "trainer.num_sanity_val_steps=0", &result, &err),
                     KILN_E_RANGE);
    assert_trace("setup fit_start train_start train_epoch_start train_batch_start before_zero_grad "
                 "before_backward after_backward before_optimizer_step record_update "
                 "train_batch_end:C exception teardown");
    assert_string_equal(trace.why.text, "callbacks.c: no more");
    assert_non_null(strstr(err.text, trace.why.text)); /* and what was saved */
}

static void test_test_and_predict(void **unused)
{
    char path[128];
    const char *overrides[] = {
        path,
        "task._target_=module/test_traced",
        "task.optimizer=${optimizer}",
        "++callbacks.k={_target_:callback/test_k}",
        "++callbacks.w={_target_:callback/test_w}",
        "++callbacks.c={_target_:callback/test_c}",
        "trainer.limit_test_batches=1",
        "trainer.limit_predict_batches=2",
        NULL,
    };
    KilnError err = { 0 };
    Composed composed;

    (void)unused;
    fit_well("run", TRACED "trainer.max_epochs=1 test=false", "finished");
    snprintf(path, sizeof(path), "ckpt_path=%s/run", work);
    compose(&composed, overrides);
    if (kiln_run_eval(composed.config, &composed.env, KILN_TEST, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_trace("setup " TEST "teardown");
    if (kiln_run_predict(composed.config, &composed.env, KILN_TEST, "points", &err) < 0)
        fail_msg("%s", err.text);
    assert_trace("setup predict_start predict_epoch_start predict_batch_start predict_batch_end "
                 "predict_batch_start predict_batch_end predict_epoch_end predict_end teardown");
    composed_free(&composed);
}

#define TRACE_TEST(name) cmocka_unit_test_setup_teardown(name, start, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(test_fit),
        TRACE_TEST(test_two_epochs),
        TRACE_TEST(test_skip_epoch),
        TRACE_TEST(test_interrupt_and_resume),
        TRACE_TEST(test_nothing_left),
        TRACE_TEST(test_failure),
        TRACE_TEST(test_test_and_predict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
