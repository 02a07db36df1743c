/* Manual optimization: which optimizer updates what, with which plans; and exact resume. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "tensor/safetensors.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"
#include "train/trainer.h"

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
}

/* ---- A module with two parts ------------------------------------------------------------- */

/* What it does with a batch, and what it saw. */
static struct Ways {
    enum {
        BOTH,        /* the first part, then the second, each clipped in its own way */
        SECOND_RARE, /* the second part in every second batch */
        AS_A_STEP,   /* what training_step does, by the first optimizer */
        ASK,         /* a forward pass whose values are looked at, then a step */
        UNKNOWN,     /* of an optimizer that there is none of */
        NONE_NAMED,  /* a step of no optimizer */
    } way;
    bool one_optimizer, same_names, no_names;
    double clip_norm;
    int64_t batch, looked, plans[8];
    size_t n_plans;
    char hooks[4096];
} ways;

static KilnTensor *loss_of(KilnInstance *self, KilnStep *step, const char *name)
{
    KilnTensor *loss = kiln_cross_entropy(plane_forward(self, step), kiln_step_input(step, "label"),
                                          (KilnCrossEntropy) { 0 });

    kiln_step_log(step, name, loss, KILN_LOG_STEP | KILN_LOG_EPOCH);
    return loss;
}

static KilnStatus update(KilnInstance *self, KilnManual *manual, size_t optimizer, const char *name,
                         KilnError *err)
{
    KilnStep *step = kiln_manual_begin(manual, optimizer);
    KilnTensor *loss = ways.way == AS_A_STEP ? plane_train(self, step) : loss_of(self, step, name);

    if (optimizer == 0 && ways.way != AS_A_STEP)
        kiln_manual_clip_norm(manual, 0.05);
    else if (optimizer == 1)
        kiln_manual_clip_value(manual, 0.01);
    else if (ways.clip_norm > 0.0)
        kiln_manual_clip_norm(manual, ways.clip_norm);
    return kiln_manual_update(manual, loss, err);
}

/* The values of a forward pass can be read, and its metrics count. */
static KilnStatus look(KilnInstance *self, KilnManual *manual, KilnError *err)
{
    KilnStep *step = kiln_manual_begin(manual, KILN_NO_OPTIMIZER);
    KilnTensor *logits = plane_forward(self, step);
    KilnStatus status = kiln_manual_run(manual, &logits, 1, err);

    if (status < 0 || kiln_manual_planning(manual))
        return status;
    const float *values = kiln_tensor_data(logits);
    assert_true(isfinite(values[2 * kiln_manual_batch_size(manual) - 1]));
    assert_non_null(kiln_manual_feature(manual, "x"));
    ways.looked++;
    return KILN_OK;
}

static KilnStatus two_step(KilnInstance *self, KilnManual *manual, KilnError *err)
{
    const bool rare = kiln_manual_planning(manual) || ways.batch++ % 2 == 1;
    KilnStatus status = KILN_OK;

    if (ways.way == ASK)
        status = look(self, manual, err);
    if (ways.way == UNKNOWN)
        return update(self, manual, 2, "train/loss", err);
    if (ways.way == NONE_NAMED)
        return update(self, manual, KILN_NO_OPTIMIZER, "train/loss", err);
    if (status >= 0)
        status = update(self, manual, 0, "train/loss", err);
    if (status >= 0 && (ways.way == BOTH || (ways.way == SECOND_RARE && rare)))
        status = update(self, manual, 1, "train/second_loss", err);
    return status;
}

static KilnStatus two_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    static const char *const first[] = { "hidden.*", NULL }, *const second[] = { "out.*", NULL };
    const PlaneOpts *opts = kiln_opts(self);

    if (ways.one_optimizer)
        return plane_optimizers(self, ret, err);
    *ret = (KilnOptimizers) {
        .n = 2,
        .use = {
            { ways.no_names ? NULL : "first", opts->optimizer, opts->scheduler, first },
            { ways.same_names ? "first" : "second", opts->optimizer, NULL, second },
        },
    };
    return KILN_OK;
}

static KilnStatus note_plans(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self, (void)err;
    ways.plans[ways.n_plans++ % KILN_COUNT(ways.plans)] = (int64_t)trainer->graph->plan_cache.made;
    return KILN_OK;
}

static void note(const char *hook, const KilnRecording *at)
{
    size_t used = strlen(ways.hooks);

    assert_non_null(at->loss);
    assert_true(at->steps);
    snprintf(ways.hooks + used, sizeof(ways.hooks) - used, "%s%zu ", hook, at->optimizer);
}

#define NOTE(hook)                                                                                 \
    static void note_##hook(KilnInstance *self, KilnTrainer *trainer, const KilnRecording *at)     \
    {                                                                                              \
        (void)self, (void)trainer;                                                                 \
        note(#hook, at);                                                                           \
    }
NOTE(zero)
NOTE(before)
NOTE(after)
NOTE(step)
NOTE(update)

static KilnStatus forget_notes(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    ways.hooks[0] = '\0';
    return note_plans(self, trainer, err);
}

static const KilnCallbackOps two_hooks = {
    .on_train_start = forget_notes,
    .on_train_epoch_end = note_plans,
    .on_before_zero_grad = note_zero,
    .on_before_backward = note_before,
    .on_after_backward = note_after,
    .on_before_optimizer_step = note_step,
    .record_update = note_update,
};
static const KilnModuleOps two_ops = {
    .setup = plane_setup,
    .manual_step = two_step,
    .validation_step = plane_validate,
    .test_step = plane_test,
    .configure_optimizers = two_optimizers,
    .hooks = &two_hooks,
};
static const KilnComponent two_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_two",
    .summary = "The plane in two parts",
    KILN_FIELDS(plane_fields),
    .opts_size = sizeof(PlaneOpts),
    .state_size = sizeof(PlaneState),
    .ops.module = &two_ops,
};
/* It asks for two optimizers without driving its steps. */
static const KilnModuleOps wrong_ops = {
    .setup = plane_setup,
    .training_step = plane_train,
    .configure_optimizers = two_optimizers,
};
static const KilnComponent wrong_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_wrong",
    .summary = "The plane in two parts",
    KILN_FIELDS(plane_fields),
    .opts_size = sizeof(PlaneOpts),
    .state_size = sizeof(PlaneState),
    .ops.module = &wrong_ops,
};

#define TWO                                                                                        \
    "task._target_=module/test_two task.optimizer=${optimizer} task.scheduler=${scheduler} "       \
    "callbacks.model_checkpoint.monitor=val/accuracy test=false "

static int start(void **state)
{
    static const KilnComponent *const own[] = { &two_component, &wrong_component, NULL };

    extra_components = own;
    memset(&ways, 0, sizeof(ways));
    return make_work(state);
}

/* ---- Weights -------------------------------------------------------------------------------- */

/* A tensor of a run's last checkpoint; the number of its elements. */
static int64_t read_tensor(const char *run, const char *file, const char *name, float *ret)
{
    char path[256];
    KilnSafetensors *tensors = NULL;
    KilnError err = { 0 };

    snprintf(path, sizeof(path), "%s/%s/checkpoints/last/%s", work, run, file);
    if (kiln_safetensors_open(path, &tensors, &err) < 0)
        fail_msg("%s", err.text);
    const KilnStEntry *entry = kiln_safetensors_find(tensors, name);
    int64_t n = -1;
    if (entry != NULL) {
        n = kiln_shape_count(&entry->shape);
        assert_int_equal(kiln_safetensors_read(tensors, entry, KILN_F32, ret, &err), KILN_OK);
    }
    kiln_safetensors_close(tensors);
    return n;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

/* One optimizer, driven by hand as the loop drives it: the same bytes. */
static void test_equals_automatic(void **unused)
{
    (void)unused;
    ways.way = AS_A_STEP;
    ways.one_optimizer = true;
    ways.clip_norm = 0.3;
    fit_well("manual", TWO, "finished");
    fit_well("automatic", "trainer.gradient_clip_val=0.3 test=false", "finished");
    assert_same_end("automatic", "manual");
    assert_same_rows("automatic", "manual");
}

/* A step moves the parameters of its optimizer and no others, and clips what is its own. */
static void test_parts(void **unused)
{
    const char *one = TWO "task.optimizer={_target_:sgd,lr:1.0} trainer.max_steps=1 "
                          "task.scheduler=null";
    float drawn[4][16], moved[4][16];
    static const char *const names[] = { "hidden.weight", "hidden.bias", "out.weight", "out.bias" };
    char overrides[512];
    double norm = 0.0, largest = 0.0;

    (void)unused;
    snprintf(overrides, sizeof(overrides), "%s task.optimizer.lr=1e-30", one);
    fit_well("drawn", overrides, "finished");
    ways.batch = 0;
    ways.way = SECOND_RARE; /* the first batch is the first part's */
    fit_well("first", one, "finished");
    for (int i = 0; i < 4; i++) {
        int64_t n = read_tensor("drawn", "model.safetensors", names[i], drawn[i]);

        assert_int_equal(read_tensor("first", "model.safetensors", names[i], moved[i]), n);
        for (int64_t k = 0; k < n; k++)
            norm += i < 2 ? pow((double)moved[i][k] - (double)drawn[i][k], 2.0) : 0.0;
        if (i >= 2)
            assert_memory_equal(drawn[i], moved[i], (size_t)n * sizeof(float));
    }
    assert_true(fabs(sqrt(norm) - 0.05) < 1e-5);
    ways.way = BOTH;
    fit_well("both", one, "finished");
    for (int i = 0; i < 4; i++) {
        int64_t n = read_tensor("both", "model.safetensors", names[i], moved[i]);

        for (int64_t k = 0; k < n && i >= 2; k++)
            largest = fmax(largest, fabs((double)moved[i][k] - (double)drawn[i][k]));
    }
    assert_true(largest > 0.0 && largest <= 0.01 + 1e-6);
}

/* Each counts its own updates, and keeps the state of its own parameters alone. */
static void test_states(void **unused)
{
    float values[16];
    size_t size;

    (void)unused;
    ways.way = SECOND_RARE;
    fit_well("run", TWO, "finished");
    const char *file = "trainer.safetensors";
    assert_int_equal(read_tensor("run", file, "optimizer.first.exp_avg.hidden.weight", values), 12);
    assert_int_equal(read_tensor("run", file, "optimizer.second.exp_avg.out.bias", values), 2);
    assert_int_equal(read_tensor("run", file, "optimizer.first.exp_avg.out.bias", values), -1);
    assert_int_equal(read_tensor("run", file, "optimizer.exp_avg.out.bias", values), -1);
    char *text = read_work("run/checkpoints/last/state.json", &size);
    json_t *state = json_loads(text, 0, NULL), *all = json_object_get(state, "optimizers");
    assert_int_equal(json_integer_value(json_object_get(state, "step")), 15);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(all, 0), "updates")), 15);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(all, 1), "updates")), 7);
    json_decref(state);
    free(text);
}

static void check_resume(const char *overrides)
{
    char on[512];

    fit_well("whole", overrides, "finished");
    for (int batch = 1; batch < 15; batch++) {
        char cut[32];

        snprintf(cut, sizeof(cut), "cut-%d", batch);
        ways.batch = 0;
        recorder.stop_at_batch = batch;
        fit_well(cut, overrides, "interrupted");
        recorder.stop_at_batch = 0;
        ways.batch = batch; /* a real module would know from the trainer or its state */
        snprintf(on, sizeof(on), "%s ckpt_path=%s/%s", overrides, work, cut);
        fit_well(cut, on, "finished");
        assert_same_end("whole", cut);
        assert_same_rows("whole", cut);
    }
}

static void test_resume(void **unused)
{
    (void)unused;
    ways.way = BOTH;
    check_resume(TWO "trainer.log_every_n_steps=1 trainer.track_grad_norm=true");
}

static void test_resume_of_rare_steps(void **unused)
{
    (void)unused;
    ways.way = SECOND_RARE;
    check_resume(TWO "task.optimizer={_target_:sgd,lr:0.1,momentum:0.9} "
                     "+callbacks.ema={_target_:ema,decay:0.8} trainer.precision=bf16-true");
}

/* All plans are made before training, but for those of the smaller last batch, which the first
 * epoch makes: steps of either optimizer, and a look between them. */
static void test_plans(void **unused)
{
    (void)unused;
    for (int way = 0; way < 3; way++) {
        char name[32];

        ways.way = way == 0 ? BOTH : way == 1 ? SECOND_RARE : ASK;
        ways.n_plans = 0;
        snprintf(name, sizeof(name), "run%d", way);
        fit_well(name, TWO "datamodule.train_count=40 datamodule.val_count=40", "finished");
        assert_int_equal(ways.n_plans, 4);
        for (size_t i = 1; i < 4; i++)
            assert_int_equal(ways.plans[i], ways.plans[0]);
    }
    assert_int_equal(ways.looked, 15);
    ways.way = BOTH;
    ways.n_plans = 0;
    fit_well("uneven", TWO, "finished");
    assert_int_equal(ways.plans[1], ways.plans[0] + 2);
    assert_int_equal(ways.plans[3], ways.plans[1]);
}

static void test_hooks(void **unused)
{
    (void)unused;
    fit_well("run", TWO "trainer.max_steps=1", "finished");
    assert_string_equal(ways.hooks, "before0 after0 step0 update0 before1 after1 step1 update1 ");
}

static void test_refused(void **unused)
{
    static const struct {
        int way;
        bool same, none;
        const char *overrides, *want;
    } cases[] = {
        { UNKNOWN, false, false, TWO, "a step for optimizer 2, but the task has 2" },
        { NONE_NAMED, false, false, TWO, "kiln_manual_update: no optimizer was named" },
        { BOTH, true, false, TWO, "has two optimizers named \"first\"" },
        { BOTH, false, true, TWO, "optimizer 1 of 2 has no name" },
        { BOTH, false, false, TWO "trainer.accumulate_grad_batches=2",
          "trainer.accumulate_grad_batches: task test_two drives its own steps" },
        { BOTH, false, false, TWO "trainer.gradient_clip_val=1",
          "trainer.gradient_clip_val: task test_two drives its own steps" },
        { BOTH, false, false,
          "task._target_=module/test_wrong task.optimizer=${optimizer} "
          "task.scheduler=${scheduler}",
          "task test_wrong configures 2 optimizers" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnRunResult result;
        KilnError err = { 0 };

        ways = (struct Ways) { .same_names = cases[i].same, .no_names = cases[i].none };
        ways.way = cases[i].way;
        if (fit("run", cases[i].overrides, &result, &err) >= 0)
            fail_msg("case %zu is not refused", i);
        if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].want, err.text);
        assert_false(exists("run"));
    }
}

static void test_not_finite(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(fit("run", TWO "datamodule.nan_at=3", &result, &err), KILN_E_NUMERIC);
    assert_non_null(strstr(err.text, "the loss is NaN"));
}

#define MANUAL_TEST(name) cmocka_unit_test_setup_teardown(name, start, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MANUAL_TEST(test_equals_automatic),
        MANUAL_TEST(test_parts),
        MANUAL_TEST(test_states),
        MANUAL_TEST(test_resume),
        MANUAL_TEST(test_resume_of_rare_steps),
        MANUAL_TEST(test_plans),
        MANUAL_TEST(test_hooks),
        MANUAL_TEST(test_refused),
        MANUAL_TEST(test_not_finite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
