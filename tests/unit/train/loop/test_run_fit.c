/* Whole runs: the run folder, stopping, failing, testing and predicting. Checkpoints are in
 * test_checkpoint.c. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

static void test_run_folder(void **unused)
{
    static const char *const files[] = {
        "run/.kiln/config.yaml",
        "run/.kiln/overrides.yaml",
        "run/.kiln/kiln.yaml",
        "run/.kiln/origins.yaml",
        "run/.kiln/job.yaml",
        "run/train.log",
        "run/metrics.csv",
        "run/summary.json",
        "run/checkpoints/best/model.safetensors",
        "run/checkpoints/last/model.safetensors",
        "run/checkpoints/last/config.yaml",
    };
    static const char *const names[] = {
        "status",        "metrics",        "parameters",     "epochs",    "steps", "wall_s",
        "samples_per_s", "step_ms_median", "peak_rss_bytes", "overrides", "seed",  "threads",
        "version",       "run_dir",        "checkpoints",    "reason",
    };
    json_t *summary;

    (void)unused;
    fit_well("run", "trainer.max_epochs=12", "finished");
    for (size_t i = 0; i < KILN_COUNT(files); i++)
        if (!exists(files[i]))
            fail_msg("there is no %s", files[i]);
    summary = summary_of("run");
    for (size_t i = 0; i < KILN_COUNT(names); i++)
        if (json_object_get(summary, names[i]) == NULL)
            fail_msg("summary.json has no %s", names[i]);
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "finished");
    assert_int_equal(json_integer_value(json_object_get(summary, "epochs")), 12);
    assert_int_equal(json_integer_value(json_object_get(summary, "steps")), 60);
    assert_int_equal(json_integer_value(json_object_get(summary, "parameters")), 2 * 6 + 6 + 14);
    json_t *accuracy = json_object_get(json_object_get(summary, "metrics"), "test/accuracy");
    assert_true(json_real_value(json_object_get(json_object_get(accuracy, "last"), "value")) > 0.8);
    json_t *best = json_object_get(json_object_get(summary, "metrics"), "train/loss_epoch");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(best, "last"), "epoch")),
                     11);
    assert_string_equal(json_string_value(json_object_get(best, "mode")), "min");
    json_decref(summary);
    assert_non_null(strstr(recorder.printed, "test/accuracy"));
    assert_non_null(strstr(recorder.printed, work));
}

static void test_same_twice(void **unused)
{
    (void)unused;
    fit_well("a", "", "finished");
    fit_well("b", "trainer.num_workers=3", "finished");
    fit_well("c", "trainer.num_workers=0", "finished");
    assert_same_file("a/checkpoints/last/model.safetensors",
                     "b/checkpoints/last/model.safetensors");
    assert_same_file("a/checkpoints/last/model.safetensors",
                     "c/checkpoints/last/model.safetensors");
    assert_same_rows("a", "b");
}

/* Nothing is written when something is wrong beforehand. */
static void test_refused_before_writing(void **unused)
{
    static const struct {
        const char *overrides;
        KilnStatus status;
        const char *text;
    } cases[] = {
        { "task.misfit=true", KILN_E_SHAPE, "training step" },
        { "datamodule.train_count=0", KILN_E_MISSING, "no training samples" },
        { "datamodule.drop_last=true datamodule.train_count=7", KILN_E_RANGE,
          "a batch 8; lower datamodule.batch_size" },
        { "datamodule.sampler={_target_:weighted,weights:[1,2,3]}", KILN_E_RANGE,
          "got 3 weights for 2 classes" },
        { "callbacks.model_checkpoint.monitor=val/acuracy", KILN_E_KEY, "mean val/accuracy?" },
        { "++callbacks.early={_target_:callback/early_stopping,monitor:loss}", KILN_E_KEY,
          "val/loss" },
        { "ckpt_path=/nonexistent", KILN_E_IO, "/nonexistent" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnRunResult result;
        KilnError err = { 0 };
        KilnStatus status = fit("run", cases[i].overrides, &result, &err);

        if (status != cases[i].status || strstr(err.text, cases[i].text) == NULL)
            fail_msg("%s: status %d: %s", cases[i].overrides, status, err.text);
        assert_false(exists("run"));
    }
}

static void test_folder_is_not_overwritten(void **unused)
{
    char overrides[256];
    KilnRunResult result;
    KilnError err = { 0 };

    (void)unused;
    fit_well("run", "trainer.max_epochs=1", "finished");
    assert_int_equal(fit("run", "trainer.max_epochs=1", &result, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "not empty"));
    /* A folder named after the time gets a number. */
    snprintf(overrides, sizeof(overrides), "trainer.max_epochs=1 kiln.run.dir='%s/${now:%%Y}'",
             work);
    for (int i = 0; i < 3; i++) {
        if (fit(NULL, overrides, &result, &err) < 0)
            fail_msg("%s", err.text);
        const char *dash = strrchr(result.run_dir, '/') + 5;
        char want[8] = "";
        if (i > 0)
            snprintf(want, sizeof(want), "-%d", i);
        assert_string_equal(dash, want);
    }
}

static void test_nan_stops(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };
    json_t *summary;

    (void)unused;
    assert_int_equal(fit("run",
                         "datamodule.nan_at=35 callbacks.model_checkpoint.every_n_train_steps=1",
                         &result, &err),
                     KILN_E_NUMERIC);
    assert_non_null(strstr(err.text, "the loss is NaN at epoch 0, step "));
    assert_non_null(strstr(err.text, "lower learning rate"));
    assert_non_null(strstr(recorder.hooks, "exception teardown"));
    summary = summary_of("run");
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "failed");
    assert_string_equal(json_string_value(json_object_get(summary, "reason")), err.text);
    json_decref(summary);
}

static void test_broken_and_left_out_samples(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };
    char *first;

    (void)unused;
    assert_int_equal(fit("broken", "datamodule.broken_at=7", &result, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "point 7 is broken"));
    fit_well("skipped", "datamodule.skip_at=7 trainer.max_epochs=2", "finished");
    first = strstr(recorder.printed, "warning: sample left out: point 7 is unreadable");
    assert_non_null(first);
}

static void test_early_stopping(void **unused)
{
    json_t *summary;

    (void)unused;
    fit_well("run",
             "++callbacks.early={_target_:callback/early_stopping,monitor:val/loss,patience:1,"
             "min_delta:100} trainer.max_epochs=9",
             "stopped");
    summary = summary_of("run");
    assert_int_equal(json_integer_value(json_object_get(summary, "epochs")), 2);
    assert_non_null(strstr(json_string_value(json_object_get(summary, "reason")), "val/loss"));
    json_decref(summary);
}

static void test_max_steps(void **unused)
{
    json_t *summary;

    (void)unused;
    fit_well("run", "trainer.max_epochs=-1 trainer.max_steps=7", "finished");
    summary = summary_of("run");
    assert_int_equal(json_integer_value(json_object_get(summary, "steps")), 7);
    assert_true(exists("run/checkpoints/epoch=001-step=7"));
    json_decref(summary);
    fit_well("none", "trainer.max_epochs=0", "finished");
    assert_true(exists("none/checkpoints/epoch=000-step=0"));
}

static void test_without_validation_and_test(void **unused)
{
    (void)unused;
    fit_well("run", "datamodule.val_count=0 datamodule.test_count=0", "finished");
    assert_non_null(strstr(recorder.printed, "does not validate"));
    assert_true(exists("run/checkpoints/last/state.json"));
    assert_false(exists("run/checkpoints/best"));
}

/* ---- Test and predict ------------------------------------------------------------------------ */

static KilnStatus keep_lines(void *ctx, const char *text, KilnError *err)
{
    (void)err;
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        json_t *json = json_loadb(text, length, 0, NULL);

        assert_non_null(json);
        json_array_append_new(ctx, json);
        text += length + 1;
    }
    return KILN_OK;
}

static void test_test_and_predict(void **unused)
{
    char path[128];
    const char *overrides[] = {
        path, "datamodule.broken_at=4",
        "+callbacks.prediction_writer={_target_:callback/prediction_writer}", NULL
    };
    const char *good[] = { path, NULL };
    char *text = NULL;
    KilnError err = { 0 };
    Composed composed;

    (void)unused;
    fit_well("run", "trainer.max_epochs=12", "finished");
    snprintf(path, sizeof(path), "ckpt_path=%s/run/checkpoints/best", work);
    compose(&composed, good);
    if (kiln_run_eval(composed.config, &composed.env, KILN_TEST, &text, &err) < 0)
        fail_msg("%s", err.text);
    json_t *summary = summary_of("run"), *json = json_loads(text, 0, NULL);
    double want = json_real_value(json_object_get(
        json_object_get(json_object_get(json_object_get(summary, "metrics"), "test/loss"), "last"),
        "value"));
    assert_true(json_real_value(json_object_get(json_object_get(json, "metrics"), "test/loss")) ==
                want);
    json_decref(summary);
    json_decref(json);
    free(text);
    composed_free(&composed);

    json_t *lines = json_array();
    compose(&composed, overrides);
    composed.env.output = keep_lines;
    composed.env.ctx = lines;
    assert_int_equal(kiln_run_predict(composed.config, &composed.env, KILN_TEST, "points", &err),
                     KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "1 of 19"));
    assert_int_equal(json_array_size(lines), 19);
    for (size_t i = 0; i < 19; i++) {
        json_t *line = json_array_get(lines, i);
        json_t *list = json_object_get(line, "probabilities");

        if (i == 4) {
            assert_string_equal(json_string_value(json_object_get(line, "error")),
                                "point 4 is broken");
            continue;
        }
        double below = json_real_value(json_array_get(list, 0));
        double above = json_real_value(json_array_get(list, 1));
        assert_true(fabs(below + above - 1.0) < 1e-6);
        assert_string_equal(json_string_value(json_object_get(line, "class")),
                            above > below ? "above" : "below");
    }
    json_decref(lines);
    composed_free(&composed);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, make_work, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(test_run_folder),
        RUN_TEST(test_same_twice),
        RUN_TEST(test_refused_before_writing),
        RUN_TEST(test_folder_is_not_overwritten),
        RUN_TEST(test_nan_stops),
        RUN_TEST(test_broken_and_left_out_samples),
        RUN_TEST(test_early_stopping),
        RUN_TEST(test_max_steps),
        RUN_TEST(test_without_validation_and_test),
        RUN_TEST(test_test_and_predict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
