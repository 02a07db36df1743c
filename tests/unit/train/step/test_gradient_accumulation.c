/* Which batches form an optimizer step: accumulated gradients against PyTorch's, batches that a
 * module skips, gradients pending at the end of an epoch. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

#include "tests/data/accumulation.h"
#include "tests/support/param_memory.h"

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

static int64_t steps_of(const char *run)
{
    json_t *summary = summary_of(run);
    int64_t steps = json_integer_value(json_object_get(summary, "steps"));

    json_decref(summary);
    return steps;
}

/* ---- Against PyTorch ------------------------------------------------------------------- */

enum { IN = 6, HIDDEN = 5, OUT = 3, BATCH = 32, STEPS = 3, PARAMETERS = 53 };

/* As tests/record/accumulation.py has it. */
static float pattern(int64_t k, int64_t i)
{
    return (float)((i * 37 + k * 11) % 64 - 32) / 32.0f;
}

static KilnStatus grid_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                           KilnError *err)
{
    float *x = sample->data[0];

    (void)ctx, (void)rng, (void)err;
    for (int64_t i = 0; i < IN; i++)
        x[i] = pattern(7, index * IN + i);
    *(int32_t *)sample->data[1] = (int32_t)((5 * index + 1) % OUT);
    return KILN_OK;
}

static KilnStatus grid_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const KilnFeature features[] = {
        { .name = "x",
          .content = KILN_VECTOR,
          .dtype = KILN_F32,
          .shape = { .rank = 1, .dim = { IN } } },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 }
    };
    static const char *const names[] = { "a", "b", "c" };

    (void)self, (void)err;
    *ret = (KilnDataSpec) {
        .features = features,
        .n_features = KILN_COUNT(features),
        .n_classes = OUT,
        .class_names = names,
    };
    return KILN_OK;
}

static KilnStatus grid_dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                               KilnError *err)
{
    (void)set, (void)err;
    *ret = (KilnDataset) { .count = split == KILN_TRAIN ? BATCH * STEPS : 0,
                           .ctx = self,
                           .get = grid_get };
    return KILN_OK;
}

static const KilnField grid_fields[] = { KILN_LOADING_FIELDS(PointsOpts, "8"), KILN_FIELD_END };

static const KilnDataModuleOps grid_ops = {
    .setup = points_setup,
    .spec = grid_spec,
    .dataset = grid_dataset,
    .loading = points_loading,
};

static const KilnComponent grid_component = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "test_grid",
    .summary = "Numbers that PyTorch was given",
    KILN_FIELDS(grid_fields),
    .opts_size = sizeof(PointsOpts),
    .ops.datamodule = &grid_ops,
};

/* What the run ended with, and the gradient of its first step. */
static float seen_gradient[PARAMETERS], seen_weights[PARAMETERS];

static KilnStatus net_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                            KilnError *err)
{
    PlaneState *state = kiln_state(self);
    KilnStatus status = kiln_nn_linear_init(&state->hidden, scope, "hidden", IN, HIDDEN, true, err);

    if (status >= 0)
        status = kiln_nn_linear_init(&state->out, scope, "out", HIDDEN, data->n_classes, true, err);
    return status;
}

static KilnTensor *net_step(KilnInstance *self, KilnStep *step)
{
    PlaneState *state = kiln_state(self);
    KilnTensor *x = kiln_tanh(kiln_nn_linear(&state->hidden, kiln_step_input(step, "x")));

    return kiln_cross_entropy(kiln_nn_linear(&state->out, x), kiln_step_input(step, "label"),
                              (KilnCrossEntropy) { 0 });
}

static KilnStatus net_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    KilnParams *params = kiln_trainer_params(trainer);

    (void)self, (void)err;
    assert_int_equal(kiln_params_size(params), PARAMETERS);
    for (size_t k = 0; k < kiln_params_count(params); k++) {
        KilnParam *param = kiln_params_at(params, k);

        for (int64_t i = 0; i < kiln_shape_count(kiln_param_shape(param)); i++)
            ((float *)param_data(param))[i] = pattern((int64_t)k, i);
    }
    return KILN_OK;
}

static KilnStatus net_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    KilnParams *params = kiln_trainer_params(trainer);

    (void)self, (void)err;
    if (kiln_trainer_samples(trainer) == BATCH)
        memcpy(seen_gradient, params_gradients(params), sizeof(seen_gradient));
    memcpy(seen_weights, params_values(params), sizeof(seen_weights));
    return KILN_OK;
}

static const KilnCallbackOps net_hooks = {
    .on_fit_start = net_fit_start,
    .on_train_batch_end = net_batch_end,
};
static const KilnModuleOps net_ops = {
    .setup = net_setup,
    .training_step = net_step,
    .configure_optimizers = plane_optimizers,
    .hooks = &net_hooks,
};

static const KilnComponent net_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_net",
    .summary = "The network that PyTorch trained",
    KILN_FIELDS(plane_fields),
    .opts_size = sizeof(PlaneOpts),
    .state_size = sizeof(PlaneState),
    .ops.module = &net_ops,
};

static void assert_close(const char *what, const float *got, const float *want)
{
    double largest = 0.0;

    for (int i = 0; i < PARAMETERS; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int i = 0; i < PARAMETERS; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-5 * largest))
            fail_msg("%s: element %d is %.9g, want %.9g", what, i, (double)got[i], (double)want[i]);
}

static void test_accumulation_equals_torch(void **unused)
{
    static const struct {
        const char *optimizer;
        const float *gradient, *weights;
    } cases[] = {
        { "{_target_:sgd,lr:0.5,momentum:0.9}", sgd_gradient, sgd_weights },
        { "{_target_:adamw,lr:0.02,weight_decay:0.1}", adamw_gradient, adamw_weights },
    };
    static const char *const ways[] = {
        "datamodule.batch_size=8 trainer.accumulate_grad_batches=4",
        "datamodule.batch_size=32",
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        for (size_t k = 0; k < KILN_COUNT(ways); k++) {
            char name[32], overrides[512];

            snprintf(name, sizeof(name), "run%zu-%zu", i, k);
            snprintf(overrides, sizeof(overrides),
                     "task={_target_:module/test_net,optimizer:%s} "
                     "datamodule._target_=datamodule/test_grid datamodule.sampler=sequential "
                     "%s trainer.max_epochs=1 ~callbacks.model_checkpoint test=false",
                     cases[i].optimizer, ways[k]);
            fit_well(name, overrides, "finished");
            assert_int_equal(steps_of(name), STEPS);
            assert_close("gradient", seen_gradient, cases[i].gradient);
            assert_close("weights", seen_weights, cases[i].weights);
        }
}

/* ---- The end of an epoch ---------------------------------------------------------------- */

/* The last batch can't be read: what waits makes a step without it, as it does where there is
 * no such batch. */
static void test_rest_of_an_epoch(void **unused)
{
    const char *options = "datamodule.batch_size=1 datamodule.sampler=sequential "
                          "trainer.accumulate_grad_batches=4 test=false";
    char overrides[512];

    (void)unused;
    snprintf(overrides, sizeof(overrides), "%s datamodule.train_count=5", options);
    fit_well("five", overrides, "finished");
    snprintf(overrides, sizeof(overrides), "%s datamodule.train_count=6 datamodule.skip_at=5",
             options);
    fit_well("six", overrides, "finished");
    assert_int_equal(steps_of("five"), 6);
    assert_int_equal(steps_of("six"), 6);
    assert_same_end("five", "six");
}

/* ---- Batches that are left out ------------------------------------------------------------ */

static int64_t current_batch;

static KilnStatus picky_batch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self, (void)err;
    current_batch = kiln_trainer_batch(trainer);
    return KILN_OK;
}

static int rows_due;

static KilnStatus picky_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self, (void)err;
    rows_due += kiln_trainer_row_is_due(trainer) ? 1 : 0;
    return KILN_OK;
}

/* Before the first batch there is none. */
static KilnStatus picky_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                              KilnError *err)
{
    current_batch = -1;
    rows_due = 0;
    return plane_setup(self, scope, data, err);
}

static KilnTensor *picky_train(KilnInstance *self, KilnStep *step)
{
    KilnTensor *loss = plane_train(self, step);

    return current_batch == 1 || current_batch == 4 ? NULL : loss;
}

/* Nor does it want any of them. */
static KilnTensor *refusing_train(KilnInstance *self, KilnStep *step)
{
    (void)self, (void)step;
    return NULL;
}

static const KilnCallbackOps picky_hooks = { .on_train_batch_start = picky_batch_start,
                                             .on_train_batch_end = picky_batch_end };
static const KilnModuleOps picky_ops = {
    .setup = picky_setup,
    .training_step = picky_train,
    .validation_step = plane_validate,
    .test_step = plane_test,
    .configure_optimizers = plane_optimizers,
    .hooks = &picky_hooks,
};
static const KilnComponent picky_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_picky",
    .summary = "The plane, without two batches of five",
    KILN_FIELDS(plane_fields),
    .opts_size = sizeof(PlaneOpts),
    .state_size = sizeof(PlaneState),
    .ops.module = &picky_ops,
};
static const KilnModuleOps refusing_ops = {
    .setup = plane_setup,
    .training_step = refusing_train,
    .configure_optimizers = plane_optimizers,
};
static const KilnComponent refusing_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_refusing",
    .summary = "The plane, without batches",
    KILN_FIELDS(plane_fields),
    .opts_size = sizeof(PlaneOpts),
    .state_size = sizeof(PlaneState),
    .ops.module = &refusing_ops,
};

#define PICKY                                                                                      \
    "task._target_=module/test_picky task.optimizer=${optimizer} task.scheduler=${scheduler} "     \
    "trainer.log_every_n_steps=1 "

/* Three batches of five make steps; with two a step, the third's gradients wait for no one. */
static void test_left_out(void **unused)
{
    static const struct {
        const char *accumulate;
        int64_t steps;
    } cases[] = { { "1", 9 }, { "2", 6 } };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char whole[32], options[256], on[512];

        snprintf(whole, sizeof(whole), "whole%zu", i);
        snprintf(options, sizeof(options), PICKY "trainer.accumulate_grad_batches=%s",
                 cases[i].accumulate);
        fit_well(whole, options, "finished");
        assert_int_equal(steps_of(whole), cases[i].steps);
        for (int batch = 1; batch < 15; batch++) {
            char cut[32];

            snprintf(cut, sizeof(cut), "cut%zu-%d", i, batch);
            recorder.stop_at_batch = batch;
            fit_well(cut, options, "interrupted");
            recorder.stop_at_batch = 0;
            snprintf(on, sizeof(on), "%s ckpt_path=%s/%s", options, work, cut);
            fit_well(cut, on, "finished");
            assert_same_end(whole, cut);
            assert_same_rows(whole, cut);
        }
    }
}

/* A row for each step, none for a batch without, and the epoch's own. */
static void test_rows_of_left_out(void **unused)
{
    size_t size = 0, rows = 0;

    (void)unused;
    fit_well("run",
             PICKY "trainer.max_epochs=1 trainer.limit_val_batches=0 "
                   "~callbacks.model_checkpoint test=false",
             "finished");
    char *text = read_work("run/metrics.csv", &size);
    for (const char *p = text; (p = strstr(p, "\nfit,")) != NULL; p++)
        rows++;
    if (rows != 3 + 1)
        fail_msg("%s", text);
    assert_int_equal(rows_due, 3);
    free(text);
}

/* Nor is the row lost of a step that is made at the end of an epoch, of a batch that waited. */
static void test_rows_of_what_waited(void **unused)
{
    char *lines;
    int column = 0, found = 0;
    size_t size = 0;

    (void)unused;
    fit_well("run",
             PICKY "trainer.max_epochs=1 trainer.limit_val_batches=0 "
                   "trainer.accumulate_grad_batches=2 trainer.track_grad_norm=true "
                   "~callbacks.model_checkpoint test=false",
             "finished");
    assert_int_equal(steps_of("run"), 2);
    char *text = read_work("run/metrics.csv", &size);
    char *header = strtok_r(text, "\n", &lines);
    const char *at = strstr(header, "train/grad_norm");
    assert_non_null(at);
    for (const char *p = header; p < at; p++)
        column += *p == ',' ? 1 : 0;
    for (char *line = strtok_r(NULL, "\n", &lines); line != NULL;
         line = strtok_r(NULL, "\n", &lines)) {
        const char *cell = line;

        for (int i = 0; i < column && cell != NULL; i++)
            cell = strchr(cell, ',') != NULL ? strchr(cell, ',') + 1 : NULL;
        found += cell != NULL && strtod(cell, NULL) > 0.0 ? 1 : 0;
    }
    assert_int_equal(found, 2);
    free(text);
}

static void test_no_loss_at_all(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(fit("run",
                         "task._target_=module/test_refusing task.optimizer=${optimizer} "
                         "~callbacks.model_checkpoint",
                         &result, &err),
                     KILN_E_SHAPE);
    assert_non_null(strstr(err.text, "returns no loss for a batch without data"));
}

/* ---- Groups that change from epoch to epoch ---------------------------------------------- */

/* Five batches an epoch: groups of 3, then of 2 and 2 batches, with a rest each. */
static void test_accumulation_changes(void **unused)
{
    const char *options = "trainer.max_epochs=3 trainer.gradient_clip_val=1.0 "
                          "++callbacks.acc={_target_:callback/gradient_accumulation_scheduler,"
                          "scheduling:{0:3,1:2}} trainer.log_every_n_steps=1";
    char on[512];

    (void)unused;
    fit_well("whole", options, "finished");
    assert_int_equal(steps_of("whole"), 2 + 3 + 3);
    for (int batch = 1; batch < 15; batch++) {
        char cut[32];

        snprintf(cut, sizeof(cut), "cut-%d", batch);
        recorder.stop_at_batch = batch;
        fit_well(cut, options, "interrupted");
        recorder.stop_at_batch = 0;
        snprintf(on, sizeof(on), "%s ckpt_path=%s/%s", options, work, cut);
        fit_well(cut, on, "finished");
        assert_same_end("whole", cut);
        assert_same_rows("whole", cut);
    }
}

/* Changes to what is always so change nothing. */
static void test_accumulation_that_stays(void **unused)
{
    (void)unused;
    fit_well("option", "trainer.accumulate_grad_batches=2", "finished");
    fit_well("callback",
             "++callbacks.acc={_target_:callback/gradient_accumulation_scheduler,"
             "scheduling:{2:2,0:2}}",
             "finished");
    assert_same_end("option", "callback");
}

static void test_accumulation_refused(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(fit("run",
                         "trainer.accumulate_grad_batches=2 ++callbacks.acc="
                         "{_target_:callback/gradient_accumulation_scheduler,scheduling:{0:3}}",
                         &result, &err),
                     KILN_E_RANGE);
    assert_non_null(strstr(err.text, "callbacks.acc sets how many batches make a step, and so does "
                                     "trainer.accumulate_grad_batches"));
}

static int start(void **state)
{
    static const KilnComponent *const own[] = { &grid_component, &net_component, &picky_component,
                                                &refusing_component, NULL };

    extra_components = own;
    current_batch = 0;
    return make_work(state);
}

#define STEPS_TEST(name) cmocka_unit_test_setup_teardown(name, start, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STEPS_TEST(test_accumulation_equals_torch),
        STEPS_TEST(test_rest_of_an_epoch),
        STEPS_TEST(test_left_out),
        STEPS_TEST(test_rows_of_left_out),
        STEPS_TEST(test_rows_of_what_waited),
        STEPS_TEST(test_no_loss_at_all),
        STEPS_TEST(test_accumulation_changes),
        STEPS_TEST(test_accumulation_that_stays),
        STEPS_TEST(test_accumulation_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
