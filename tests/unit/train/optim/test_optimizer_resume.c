/* Optimizers, stateful schedules, clipping and averaged weights in whole runs: results of an
 * interrupted and resumed run, and rejected options. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/system/file.h"
#include "tensor/safetensors.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

static void assert_same_end(const char *a, const char *b)
{
    static const char *const files[] = { "checkpoints/last/model.safetensors",
                                         "checkpoints/last/trainer.safetensors" };

    for (size_t i = 0; i < KILN_COUNT(files); i++) {
        char x[128], y[128];

        snprintf(x, sizeof(x), "%s/%s", a, files[i]);
        snprintf(y, sizeof(y), "%s/%s", b, files[i]);
        assert_same_file(x, y);
    }
    assert_same_rows(a, b);
}

enum { HIDDEN = 12 };

/* hidden.weight of a run's last checkpoint, from one of its files. */
static void read_hidden(const char *run, const char *file, const char *name, float *ret)
{
    char path[256];
    KilnSafetensors *tensors = NULL;
    KilnError err = { 0 };

    snprintf(path, sizeof(path), "%s/%s/checkpoints/last/%s", work, run, file);
    if (kiln_safetensors_open(path, &tensors, &err) < 0)
        fail_msg("%s", err.text);
    const KilnStEntry *entry = kiln_safetensors_find(tensors, name);
    assert_non_null(entry);
    assert_int_equal(kiln_shape_count(&entry->shape), HIDDEN);
    assert_int_equal(kiln_safetensors_read(tensors, entry, KILN_F32, ret, &err), KILN_OK);
    kiln_safetensors_close(tensors);
}

/* Cut after the first step, within an epoch, at its end, and before the last step. */
static void check_resume(const char *name, const char *overrides)
{
    static const int cuts[] = { 1, 7, 10, 14 };

    fit_well(name, overrides, "finished");
    for (size_t i = 0; i < KILN_COUNT(cuts); i++) {
        char cut[32], on[512];

        snprintf(cut, sizeof(cut), "%s-%d", name, cuts[i]);
        recorder.stop_at = cuts[i];
        fit_well(cut, overrides, "interrupted");
        recorder.stop_at = 0;
        snprintf(on, sizeof(on), "%s ckpt_path=%s/%s", overrides, work, cut);
        fit_well(cut, on, "finished");
        assert_same_end(name, cut);
    }
}

static void test_resume_is_exact(void **unused)
{
    static const char *const optimizers[] = {
        "{_target_:sgd,lr:0.1,momentum:0.9,dampening:0.1}",
        "{_target_:adam,lr:0.02,amsgrad:true}",
        "{_target_:adamw,lr:0.02,no_decay_norms:true}",
        "{_target_:rmsprop,lr:0.01,centered:true}",
        "{_target_:adagrad,lr:0.1,lr_decay:0.1,initial_accumulator_value:0.1}",
        "{_target_:lamb,lr:0.02}",
        "{_target_:lion,lr:0.003,weight_decay:0.1}",
        "{_target_:adan,lr:0.02,groups:{a:{params:[hidden.*],lr_scale:0.5}}}",
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(optimizers); i++) {
        char overrides[256], name[16];

        snprintf(name, sizeof(name), "run%zu", i);
        snprintf(overrides, sizeof(overrides),
                 "task.optimizer=%s trainer.gradient_clip_val=0.3 trainer.track_grad_norm=true",
                 optimizers[i]);
        check_resume(name, overrides);
    }
}

static void test_resume_with_state(void **unused)
{
    float fallen[HIDDEN], plain[HIDDEN];

    (void)unused;
    check_resume("plateau",
                 "task.scheduler={_target_:plateau,monitor:val/loss,patience:0,threshold:0.3} "
                 "trainer.max_epochs=6");
    fit_well("plain", "task.scheduler=null trainer.max_epochs=6", "finished");
    read_hidden("plateau", "model.safetensors", "hidden.weight", fallen);
    read_hidden("plain", "model.safetensors", "hidden.weight", plain);
    assert_memory_not_equal(fallen, plain, sizeof(plain));
    check_resume("averaged", "+callbacks.ema={_target_:ema,decay:0.8} "
                             "callbacks.model_checkpoint.every_n_train_steps=1");
}

/* ---- Averaged weights ---------------------------------------------------------------- */

static void test_average(void **unused)
{
    float weights[3][HIDDEN], average[HIDDEN], beside[HIDDEN];

    (void)unused;
    for (int steps = 1; steps <= 3; steps++) {
        char overrides[128];

        snprintf(overrides, sizeof(overrides), "task.scheduler=null trainer.max_steps=%d", steps);
        fit_well("plain", overrides, "finished");
        read_hidden("plain", "model.safetensors", "hidden.weight", weights[steps - 1]);
        assert_int_equal(kiln_path_remove(work, NULL), KILN_OK);
        assert_int_equal(kiln_dir_make(work, NULL), KILN_OK);
    }
    fit_well("averaged",
             "task.scheduler=null trainer.max_steps=3 +callbacks.ema={_target_:ema,decay:0.75}",
             "finished");
    read_hidden("averaged", "model.safetensors", "hidden.weight", average);
    read_hidden("averaged", "trainer.safetensors", "weights.hidden.weight", beside);
    assert_memory_equal(beside, weights[2], sizeof(beside));
    for (int i = 0; i < HIDDEN; i++) {
        double want = (double)weights[0][i];

        want += 0.25 * ((double)weights[1][i] - want);
        want += 0.25 * ((double)weights[2][i] - want);
        if (fabs((double)average[i] - want) > 1e-6)
            fail_msg("element %d: %.9g, want %.9g", i, (double)average[i], want);
    }
}

static double metric_of(const char *run, const char *name)
{
    json_t *summary = summary_of(run);
    json_t *metric = json_object_get(json_object_get(summary, "metrics"), name);
    json_t *last = json_object_get(json_object_get(metric, "last"), "value");
    double value = json_number_value(last);

    assert_true(json_is_number(last));
    json_decref(summary);
    return value;
}

/* Validation and test see the average: with a share of 1 after the first step, they
 * see the weights of that step for ever. */
static void test_validation_sees_the_average(void **unused)
{
    (void)unused;
    fit_well("first", "task.scheduler=null trainer.max_steps=1", "finished");
    fit_well("averaged", "task.scheduler=null +callbacks.ema={_target_:ema,decay:1.0}", "finished");
    fit_well("plain", "task.scheduler=null", "finished");
    assert_true(metric_of("averaged", "val/loss") == metric_of("first", "val/loss"));
    assert_true(metric_of("averaged", "test/loss") == metric_of("first", "test/loss"));
    assert_true(metric_of("averaged", "val/loss") != metric_of("plain", "val/loss"));
    assert_true(metric_of("averaged", "train/loss_epoch") ==
                metric_of("plain", "train/loss_epoch"));
}

/* An average can begin in a run that had none, and end: training continues from the
 * weights, not from the average. */
static void test_average_comes_and_goes(void **unused)
{
    const char *none = "task.scheduler=null";
    char on[512];

    (void)unused;
    fit_well("whole", none, "finished");
    recorder.stop_at = 7;
    fit_well("cut", "task.scheduler=null +callbacks.ema={_target_:ema,decay:0.8}", "interrupted");
    recorder.stop_at = 0;
    snprintf(on, sizeof(on), "%s ckpt_path=%s/cut", none, work);
    fit_well("cut", on, "finished");
    assert_same_file("whole/checkpoints/last/model.safetensors",
                     "cut/checkpoints/last/model.safetensors");
    recorder.stop_at = 7;
    fit_well("other", none, "interrupted");
    recorder.stop_at = 0;
    snprintf(on, sizeof(on), "%s +callbacks.ema={_target_:ema,decay:0.8} ckpt_path=%s/other", none,
             work);
    fit_well("other", on, "finished");
    float weights[HIDDEN], beside[HIDDEN];
    read_hidden("whole", "model.safetensors", "hidden.weight", weights);
    read_hidden("other", "trainer.safetensors", "weights.hidden.weight", beside);
    assert_memory_equal(weights, beside, sizeof(weights));
}

/* ---- Clipping -------------------------------------------------------------------------- */

/* One step of plain sgd moves the weights by the clipped gradient. */
static void test_clipping(void **unused)
{
    static const struct {
        const char *options;
        double limit; /* of one element of the step, which is the gradient */
    } cases[] = {
        { "trainer.gradient_clip_val=0.001", 0.001 },
        { "trainer.gradient_clip_val=0.0001 trainer.gradient_clip_algorithm=value", 0.0001 },
    };
    const char *plain = "task.scheduler=null task.optimizer={_target_:sgd,lr:1.0} "
                        "trainer.max_steps=1";
    float start[HIDDEN], free_step[HIDDEN], step[HIDDEN];

    (void)unused;
    fit_well("start",
             "task.scheduler=null task.optimizer={_target_:sgd,lr:1e-30} trainer.max_steps=1",
             "finished");
    fit_well("free", plain, "finished");
    read_hidden("start", "model.safetensors", "hidden.weight", start);
    read_hidden("free", "model.safetensors", "hidden.weight", free_step);
    for (size_t k = 0; k < KILN_COUNT(cases); k++) {
        char overrides[256], name[16];
        double largest = 0.0;

        snprintf(overrides, sizeof(overrides), "%s %s", plain, cases[k].options);
        snprintf(name, sizeof(name), "clip%zu", k);
        fit_well(name, overrides, "finished");
        read_hidden(name, "model.safetensors", "hidden.weight", step);
        for (int i = 0; i < HIDDEN; i++) {
            double moved = fabs((double)step[i] - (double)start[i]);

            assert_true(moved <= fabs((double)free_step[i] - (double)start[i]) + 1e-7);
            largest = fmax(largest, moved);
        }
        assert_true(largest > 0.0 && largest <= cases[k].limit + 1e-7);
    }
}

/* ---- What is refused -------------------------------------------------------------------- */

static void test_refused(void **unused)
{
    static const struct {
        const char *overrides, *want;
    } cases[] = {
        { "task.scheduler={_target_:plateau,monitor:val/los}",
          "task.scheduler.monitor=val/los: this run logs no such metric; did you mean val/loss?" },
        { "task.scheduler={_target_:linear,warmup_epochs:3}",
          "task.scheduler: warmup_epochs: the warmup takes 15 steps and the whole run 15" },
        { "task.optimizer={_target_:sgd,groups:{a:{params:[hiden.weight]}}}",
          "task.optimizer.groups.a.params: \"hiden.weight\" matches no trained parameter; did you "
          "mean "
          "hidden.weight?" },
        { "+callbacks.a={_target_:ema} +callbacks.b={_target_:ema}",
          "callbacks.b: another callback averages the weights already" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnRunResult result;
        KilnError err = { 0 };

        if (fit("run", cases[i].overrides, &result, &err) >= 0)
            fail_msg("case %zu is not refused", i);
        if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].want, err.text);
        assert_false(exists("run"));
    }
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, make_work, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(test_resume_is_exact),
        RUN_TEST(test_resume_with_state),
        RUN_TEST(test_average),
        RUN_TEST(test_validation_sees_the_average),
        RUN_TEST(test_average_comes_and_goes),
        RUN_TEST(test_clipping),
        RUN_TEST(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
