/* Several data sets in a split, and data that is reloaded during a run. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

/* ---- Data ---------------------------------------------------------------------------------- */

enum { FURTHER = 5, BATCH = 8 };

/* What the datamodule is asked, and what it answers. */
static struct Asked {
    char text[1024];      /* "reload 2 dataset train 0 ..." */
    const char *names[3]; /* of the validation sets */
    size_t n;
    int64_t loaded; /* the epoch of the last reload */
} asked;

static void note(const char *format, ...)
{
    size_t used = strlen(asked.text);
    va_list args;

    va_start(args, format);
    vsnprintf(asked.text + used, sizeof(asked.text) - used, format, args);
    va_end(args);
}

/* The same points, others after each reload, and others in each set. */
static KilnStatus moved_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                            KilnError *err)
{
    return points_get(ctx, index + 1000 * asked.loaded, rng, sample, err);
}

static KilnStatus far_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                          KilnError *err)
{
    KilnStatus status = points_get(ctx, index + 500, rng, sample, err);

    ((float *)sample->data[0])[0] += 3.0f;
    return status;
}

static KilnStatus sets_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    (void)self, (void)context, (void)err;
    asked.loaded = 0;
    return KILN_OK;
}

static size_t sets_sets(KilnInstance *self, KilnSplit split, const char *const **ret_names)
{
    static const char *const one[] = { "" };

    (void)self;
    *ret_names = split == KILN_VAL ? asked.names : one;
    return split == KILN_VAL ? asked.n : 1;
}

static KilnStatus sets_dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                               KilnError *err)
{
    KilnStatus status = points_dataset(self, split, set, ret, err);

    note("%s %zu ", kiln_split_name(split), set);
    ret->get = set > 0 ? far_get : moved_get;
    ret->count = set > 0 ? FURTHER : ret->count + (split == KILN_TRAIN ? BATCH * asked.loaded : 0);
    return status;
}

static KilnStatus sets_reload(KilnInstance *self, int64_t epoch, KilnError *err)
{
    (void)self, (void)err;
    note("reload %d ", (int)epoch);
    asked.loaded = epoch;
    return KILN_OK;
}

static const KilnDataModuleOps sets_ops = {
    .setup = sets_setup,
    .spec = points_spec,
    .sets = sets_sets,
    .dataset = sets_dataset,
    .reload = sets_reload,
    .loading = points_loading,
};
static const KilnComponent sets_component = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "test_sets",
    .summary = "Points in several sets",
    KILN_FIELDS(points_fields),
    .opts_size = sizeof(PointsOpts),
    .ops.datamodule = &sets_ops,
};

/* ---- A callback that notes which set runs ------------------------------------------------- */

static char seen[1024];

static KilnStatus see(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    size_t used = strlen(seen);

    (void)self, (void)err;
    snprintf(seen + used, sizeof(seen) - used, "%d%s:%d/%d ", (int)kiln_trainer_dataloader(trainer),
             kiln_trainer_dataloader_name(trainer), (int)kiln_trainer_batch(trainer),
             (int)kiln_trainer_batches(trainer));
    return KILN_OK;
}

static const KilnCallbackOps see_ops = { .on_validation_batch_end = see,
                                         .on_predict_batch_end = see,
                                         .on_train_epoch_end = see };
static const KilnComponent see_component = {
    .kind = KILN_KIND_CALLBACK, .name = "test_see", .summary = "See sets", .ops.callback = &see_ops
};

static int start(void **state)
{
    static const KilnComponent *const own[] = { &sets_component, &see_component, NULL };

    extra_components = own;
    asked = (struct Asked) { .names = { "", "far", "more" }, .n = 2 };
    seen[0] = '\0';
    return make_work(state);
}

#define SETS "datamodule._target_=datamodule/test_sets "

/* ---- Several sets --------------------------------------------------------------------------- */

static double metric_of(const char *run, const char *name)
{
    json_t *summary = summary_of(run);
    json_t *metric = json_object_get(json_object_get(summary, "metrics"), name);
    double value = json_number_value(json_object_get(json_object_get(metric, "last"), "value"));

    if (metric == NULL)
        fail_msg("%s is not logged", name);
    json_decref(summary);
    return value;
}

/* 16 samples and 5 more in batches of 8: each set has values of its own, the first has those that
 * it has alone. */
static void test_metrics(void **unused)
{
    const char *more = SETS "trainer.max_epochs=1 test=false ++callbacks.see={_target_:test_see}";

    (void)unused;
    asked.n = 1;
    fit_well("alone", SETS "trainer.max_epochs=1 test=false", "finished");
    asked.n = 2;
    fit_well("both", more, "finished");
    assert_string_equal(seen, "0:1/3 0:2/3 1far:3/3 " /* sanity: two of each set */
                              "0:1/3 0:2/3 1far:3/3 0:5/5 ");
    assert_true(metric_of("alone", "val/loss") == metric_of("both", "val/loss"));
    assert_true(metric_of("alone", "val/area") == metric_of("both", "val/area"));
    assert_true(metric_of("both", "val/loss/far") != metric_of("both", "val/loss"));
    assert_true(metric_of("both", "val/accuracy/far") * FURTHER ==
                round(metric_of("both", "val/accuracy/far") * FURTHER));
}

/* Limits, and the batches of the sanity check, are for each set. */
static void test_limits(void **unused)
{
    (void)unused;
    fit_well("run",
             SETS "trainer.max_epochs=1 test=false ++callbacks.see={_target_:test_see} "
                  "trainer.num_sanity_val_steps=1 trainer.limit_val_batches=1",
             "finished");
    assert_string_equal(seen, "0:1/2 1far:2/2 0:1/2 1far:2/2 0:5/5 ");
}

/* What is monitored is a set's value, by its name. */
static void test_monitor(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };

    (void)unused;
    fit_well("run", SETS "callbacks.model_checkpoint.monitor=val/accuracy/far test=false",
             "finished");
    asked.names[0] = "near";
    assert_int_equal(fit("none", SETS "test=false", &result, &err), KILN_E_KEY);
    assert_non_null(strstr(err.text, "val/accuracy/near"));
}

/* Outside of a fit: all sets of a split are predicted; those to train on are a set of validation,
 * in order and whole. */
static void test_evaluated_and_predicted(void **unused)
{
    char path[128];
    const char *overrides[] = { path, "datamodule._target_=datamodule/test_sets",
                                "datamodule.drop_last=true",
                                "++callbacks.see={_target_:callback/test_see}", NULL };
    KilnError err = { 0 };
    Composed composed;
    char *text = NULL;

    (void)unused;
    fit_well("run", SETS "trainer.max_epochs=1 test=false", "finished");
    snprintf(path, sizeof(path), "ckpt_path=%s/run", work);
    compose(&composed, overrides);
    asked.text[0] = '\0';
    if (kiln_run_predict(composed.config, &composed.env, KILN_VAL, NULL, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(seen, "0:1/3 0:2/3 1far:3/3 ");
    assert_string_equal(asked.text, "val 0 val 1 ");
    seen[0] = asked.text[0] = '\0';
    if (kiln_run_eval(composed.config, &composed.env, KILN_TRAIN, &text, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(seen, "0train:1/5 0train:2/5 0train:3/5 0train:4/5 0train:5/5 ");
    assert_string_equal(asked.text, "train 0 ");
    assert_non_null(strstr(text, "\"val/loss/train\""));
    free(text);
    composed_free(&composed);
}

static void test_names_refused(void **unused)
{
    static const struct {
        const char *first, *second;
    } cases[] = { { "", "" }, { "a", "a" }, { "a", "a/b" }, { "a b", "c" } };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnRunResult result;
        KilnError err = { 0 };

        asked.names[0] = cases[i].first;
        asked.names[1] = cases[i].second;
        assert_int_equal(fit("run", SETS, &result, &err), KILN_E_RANGE);
        assert_non_null(strstr(err.text, "expected a unique name"));
    }
    asked.n = KILN_MAX_SETS + 1;
    KilnRunResult result;
    KilnError err = { 0 };
    assert_int_equal(fit("run", SETS, &result, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "1 to 8 are possible"));
}

/* ---- Reloading ---------------------------------------------------------------------------- */

#define RELOADS                                                                                    \
    SETS "trainer.reload_dataloaders_every_n_epochs=2 trainer.max_epochs=4 test=false "            \
         "trainer.num_sanity_val_steps=0 "

static void test_reload(void **unused)
{
    (void)unused;
    fit_well("run", RELOADS, "finished");
    assert_string_equal(asked.text, "train 0 val 0 val 1 reload 2 train 0 val 0 val 1 ");
    json_t *summary = summary_of("run");
    assert_int_equal(json_integer_value(json_object_get(summary, "steps")), 5 + 5 + 7 + 7);
    json_decref(summary);
}

/* A run that resumes at any batch sees the same data. */
static void test_reload_and_resume(void **unused)
{
    char on[512];

    (void)unused;
    fit_well("whole", RELOADS, "finished");
    for (int batch = 1; batch < 24; batch += 2) {
        char cut[32], path[96];

        snprintf(cut, sizeof(cut), "cut-%d", batch);
        recorder.stop_at_batch = batch;
        fit_well(cut, RELOADS, "interrupted");
        recorder.stop_at_batch = 0;
        asked.text[0] = '\0';
        snprintf(on, sizeof(on), RELOADS "ckpt_path=%s/%s", work, cut);
        fit_well(cut, on, "finished");
        assert_string_equal(asked.text, "train 0 val 0 val 1 reload 2 train 0 val 0 val 1 ");
        snprintf(path, sizeof(path), "%s/checkpoints/last/model.safetensors", cut);
        assert_same_file("whole/checkpoints/last/model.safetensors", path);
        assert_same_rows("whole", cut);
    }
}

static void test_reload_refused(void **unused)
{
    KilnRunResult result;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(fit("run", "trainer.reload_dataloaders_every_n_epochs=1", &result, &err),
                     KILN_E_RANGE);
    assert_non_null(strstr(err.text, "datamodule test_points can't reload its data"));
}

#define SETS_TEST(name) cmocka_unit_test_setup_teardown(name, start, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SETS_TEST(test_metrics),        SETS_TEST(test_limits),
        SETS_TEST(test_monitor),        SETS_TEST(test_names_refused),
        SETS_TEST(test_reload),         SETS_TEST(test_reload_and_resume),
        SETS_TEST(test_reload_refused), SETS_TEST(test_evaluated_and_predicted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
