/* Fits that a program drives batch by batch (kiln/embed/fit.h): the bytes of kiln_run_fit, what it
 * may do between two batches, ending early, and errors. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

/* Begin a fit in work/NAME with one more override. */
static KilnFit *begin(Composed *composed, const char *name, const char *override)
{
    static char dir[192];
    static const char *overrides[3];
    KilnFit *ret = NULL;
    KilnError err = { 0 };

    snprintf(dir, sizeof(dir), "kiln.run.dir=%s/%s", work, name);
    overrides[0] = dir;
    overrides[1] = override;
    compose(composed, overrides);
    if (kiln_fit_open(composed->config, &composed->env, &ret, &err) < 0)
        fail_msg("%s", err.text);
    return ret;
}

static bool step(KilnFit *fit)
{
    KilnError err = { 0 };
    bool more = false;

    if (kiln_fit_step(fit, &more, &err) < 0)
        fail_msg("%s", err.text);
    return more;
}

static void end(KilnFit *fit, Composed *composed, const char *status)
{
    KilnRunResult result = { 0 };
    KilnError err = { 0 };

    if (kiln_fit_close(fit, &result, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(result.status, status);
    composed_free(composed);
}

static void assert_same_run(const char *a, const char *b)
{
    static const char *const files[] = { "model.safetensors", "trainer.safetensors" };
    char paths[2][128];

    for (size_t i = 0; i < KILN_COUNT(files); i++) {
        snprintf(paths[0], sizeof(paths[0]), "%s/checkpoints/last/%s", a, files[i]);
        snprintf(paths[1], sizeof(paths[1]), "%s/checkpoints/last/%s", b, files[i]);
        assert_same_file(paths[0], paths[1]);
    }
    assert_same_rows(a, b);
}

/* One batch per step; `more` is false with the last one, whatever ends training. */
static void test_same_bytes(void **unused)
{
    static const struct {
        const char *override;
        int steps;
        const char *status;
    } cases[] = {
        { "trainer.max_epochs=3", 15, "finished" },
        { "trainer.max_steps=7", 7, "finished" },
        { "trainer.limit_train_batches=2", 6, "finished" },
        { "trainer.val_check_interval=2", 15, "finished" },
        { "trainer.accumulate_grad_batches=2", 15, "finished" },
        { "++callbacks.early={_target_:callback/early_stopping,patience:1,min_delta:9}", 10,
          "stopped" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char whole[16], stepped[16];
        Composed composed;
        int steps = 1;

        snprintf(whole, sizeof(whole), "whole%zu", i);
        snprintf(stepped, sizeof(stepped), "steps%zu", i);
        fit_well(whole, cases[i].override, cases[i].status);
        KilnFit *fit = begin(&composed, stepped, cases[i].override);
        for (; step(fit); steps++)
            assert_int_equal(kiln_trainer_batches_done(kiln_fit_trainer(fit)), steps);
        if (steps != cases[i].steps)
            fail_msg("%s: %d steps", cases[i].override, steps);
        assert_false(step(fit));
        end(fit, &composed, cases[i].status);
        assert_same_run(whole, stepped);
    }
}

/* After the last batch of an epoch its validation is done. */
static void test_between_steps(void **unused)
{
    Composed composed;
    double loss = 0.0;

    (void)unused;
    KilnFit *fit = begin(&composed, "run", "trainer.max_epochs=2");
    KilnTrainer *trainer = kiln_fit_trainer(fit);
    for (int i = 1; i <= 5; i++) {
        assert_false(kiln_trainer_metric(trainer, "val/loss", &loss));
        assert_true(step(fit));
        assert_true(kiln_trainer_loss(trainer, &loss) && isfinite(loss));
    }
    assert_true(kiln_trainer_metric(trainer, "val/loss", &loss));
    kiln_trainer_set_learning_rate(trainer, 0.0);
    assert_int_equal(kiln_trainer_save(trainer, kiln_trainer_module(trainer), "mine", 0, NULL),
                     KILN_OK);
    assert_true(step(fit));
    assert_true(kiln_trainer_learning_rate(trainer) == 0.0);
    kiln_trainer_stop(trainer, "enough");
    assert_false(step(fit));
    end(fit, &composed, "stopped");
    assert_true(exists("run/checkpoints/mine/model.safetensors"));
    json_t *summary = summary_of("run");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), "enough");
    json_decref(summary);
}

/* A fit that is closed early resumes to the bytes of one that never stopped. */
static void test_closed_early(void **unused)
{
    char resume[512];
    Composed composed;

    (void)unused;
    fit_well("whole", "trainer.max_epochs=3", "finished");
    for (int stop = 0; stop <= 12; stop += 4) {
        char name[32];

        snprintf(name, sizeof(name), "early%d", stop);
        KilnFit *fit = begin(&composed, name, "trainer.max_epochs=3");
        for (int i = 0; i < stop; i++)
            assert_true(step(fit));
        end(fit, &composed, "interrupted");
        snprintf(resume, sizeof(resume), "trainer.max_epochs=3 ckpt_path=%s/%s/checkpoints/last",
                 work, name);
        snprintf(name, sizeof(name), "later%d", stop);
        fit_well(name, resume, "finished");
        snprintf(resume, sizeof(resume), "%s/checkpoints/last/model.safetensors", name);
        assert_same_file("whole/checkpoints/last/model.safetensors", resume);
    }
}

/* A step that fails ends the run; further calls return the same error. */
static void test_failing_step(void **unused)
{
    Composed composed;
    KilnRunResult result = { 0 };
    KilnError first = { 0 }, again = { 0 }, last = { 0 };
    bool more = true;
    KilnStatus status = KILN_OK;

    (void)unused;
    KilnFit *fit = begin(&composed, "run", "datamodule.nan_at=35");
    while (status >= 0)
        status = kiln_fit_step(fit, &more, &first);
    assert_int_equal(status, KILN_E_NUMERIC);
    assert_int_equal(kiln_fit_step(fit, &more, &again), KILN_E_NUMERIC);
    assert_int_equal(kiln_fit_close(fit, &result, &last), KILN_E_NUMERIC);
    assert_string_equal(again.text, first.text);
    assert_string_equal(last.text, first.text);
    assert_string_equal(result.status, "failed");
    composed_free(&composed);
    assert_int_equal(kiln_fit_close(NULL, NULL, NULL), KILN_OK);
}

/* Rows go to the program as to the loggers. */
static int n_rows;
static void count_row(void *ctx, const KilnLogRow *row)
{
    (void)ctx;
    assert_true(row->n > 0);
    n_rows++;
}

static void test_rows(void **unused)
{
    static char dir[192];
    static const char *const overrides[] = { dir, "trainer.log_every_n_steps=1", "test=false",
                                             NULL };
    Composed composed;
    KilnRunResult result;
    KilnError err = { 0 };

    (void)unused;
    snprintf(dir, sizeof(dir), "kiln.run.dir=%s/run", work);
    compose(&composed, overrides);
    composed.env.log_row = count_row;
    n_rows = 0;
    if (kiln_run_fit(composed.config, &composed.env, &result, &err) < 0)
        fail_msg("%s", err.text);
    composed_free(&composed);
    assert_int_equal(n_rows, 15 + 3);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, make_work, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(test_same_bytes),   RUN_TEST(test_between_steps), RUN_TEST(test_closed_early),
        RUN_TEST(test_failing_step), RUN_TEST(test_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
