/* The checkpoints of model_checkpoint, the stop of early_stopping and the averages of ema,
 * against Lightning's callbacks with the same options and metrics
 * (tests/record/lightning_callbacks.py). */
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"
#include "train/optim/averaged_weights.h"
#include "train/trainer.h"
#include "tests/support/param_memory.h"

/* ---- The script: metrics as recorded, and what is there at the ends of epochs ----------- */

static struct Script {
    double values[16];
    size_t n, validations;
    int64_t fail_at;  /* on_train_batch_end fails at this step; 0: never */
    json_t *listings; /* of checkpoints/, one an epoch */
    /* With `shares`: the sum of the weights after each step, with these shares; then how far the
     * average of the weights is from it at the end. */
    const json_t *shares;
    int64_t seen; /* steps */
    double sum[64], off;
    bool formats; /* look at names at the end */
} script;

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of checkpoints in order, without the links. */
static json_t *listing(const char *run)
{
    enum { MOST = 64 };
    char path[512], *names[MOST];
    size_t n = 0;
    json_t *list = json_array();

    snprintf(path, sizeof(path), "%s/checkpoints", run);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "best") == 0 ||
            strcmp(entry->d_name, "last") == 0)
            continue;
        assert_true(n < MOST);
        names[n++] = strdup(entry->d_name);
    }
    closedir(dir);
    qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, json_string(names[i]));
        free(names[i]);
    }
    return list;
}

/* At the end, after epoch 3 and step 28, where m is 0.2 and nothing was logged as "never". */
static void check_formats(const KilnTrainer *trainer)
{
    static const struct {
        const char *text, *want;
        bool plain;
    } cases[] = {
        { "{epoch}", "epoch=3", false },
        { "{epoch}-{step}", "epoch=3-step=28", false },
        { "e{epoch:03d}_{step:6d}", "e003_    28", true },
        { "{step:08.1f}", "step=000028.0", false },
        { "{m}", "m=0.2", false },
        { "{val/m:.3f}", "val_m=0.200", false },
        { "{val/m:.2e}", "2.00e-01", true },
        { "a/{monitor:.1f}", "a_m=0.2", false },
        { "{monitor:7.2f}|", "   0.20|", true },
        { "{never:.1f}", "nan", true },
        { "x}y", "x}y", false },
        { "{epoch:x}{", "{epoch:x}{", false },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const KilnNameFormat format = { cases[i].text, "m", !cases[i].plain };
        char buf[64], small[5];

        assert_string_equal(kiln_trainer_format(trainer, &format, buf, sizeof(buf)), cases[i].want);
        assert_memory_equal(kiln_trainer_format(trainer, &format, small, sizeof(small)), buf,
                            strlen(buf) < 4 ? strlen(buf) + 1 : 4);
        assert_true(strlen(small) < sizeof(small));
    }
}

/* ---- Averages of the weights ---- */

/* All trained values together are at most as many as script.sum has. */
static void add_weights(KilnTrainer *trainer)
{
    const int64_t step = kiln_trainer_global_step(trainer);
    KilnParams *params = kiln_trainer_params(trainer);
    size_t n = 0;

    if (script.shares == NULL || step == script.seen)
        return;
    assert_int_equal(step, ++script.seen);
    const double share = json_real_value(json_array_get(script.shares, (size_t)step - 1));
    for (size_t i = 0; i < kiln_params_count(params); i++) {
        KilnParam *param = kiln_params_at(params, i);
        const float *values = param_data(param);

        for (int64_t j = 0; j < kiln_shape_count(kiln_param_shape(param)); j++) {
            assert_true(n < sizeof(script.sum) / sizeof(script.sum[0]));
            script.sum[n++] += share * (double)values[j];
        }
    }
}

static void compare_average(const KilnTrainer *trainer)
{
    size_t n = 0;

    if (script.shares == NULL)
        return;
    for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);
        const float *values = location_data(kiln_averaged_location(trainer->averaged, param));

        for (int64_t j = 0; j < kiln_shape_count(kiln_param_shape(param)); j++)
            script.off = fmax(script.off, fabs((double)values[j] - script.sum[n++]));
    }
    assert_true(n > 0);
}

static KilnStatus script_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const int64_t step = kiln_trainer_global_step(trainer);

    (void)self;
    kiln_trainer_log(trainer, "a", (double)(5 * step % 7), 0);
    add_weights(trainer);
    return script.fail_at > 0 && step == script.fail_at ? kiln_error_set(err, KILN_E_IO, "as asked")
                                                        : KILN_OK;
}

static KilnStatus script_validation_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const double value = script.values[script.validations++ % script.n];

    (void)self;
    (void)err;
    kiln_trainer_log(trainer, "m", value, KILN_LOG_EPOCH);
    kiln_trainer_log(trainer, "val/m", value, KILN_LOG_EPOCH);
    return KILN_OK;
}

static KilnStatus script_epoch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self;
    if (kiln_trainer_epoch(trainer) == 0)
        return KILN_OK;
    KilnStatus status = kiln_save_requests_finish(trainer,
                                                  err); /* they are written in the background */
    if (status >= 0)
        json_array_append_new(script.listings, listing(kiln_trainer_run_dir(trainer)));
    return status;
}

static KilnStatus script_train_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self;
    KilnStatus status = kiln_save_requests_finish(trainer, err);
    json_array_append_new(script.listings, listing(kiln_trainer_run_dir(trainer)));
    compare_average(trainer);
    if (script.formats)
        check_formats(trainer);
    return status;
}

static const char *const script_logs[] = { "a", "m", "val/m", NULL };

static const KilnCallbackOps script_ops = {
    .on_train_batch_end = script_batch_end,
    .on_validation_end = script_validation_end,
    .on_train_epoch_start = script_epoch_start,
    .on_train_end = script_train_end,
    .logs = script_logs,
};

static const KilnComponent script_component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "test_script",
    .summary = "Log what was recorded",
    .ops.callback = &script_ops,
};

static const KilnComponent *const scripted[] = { &script_component, NULL };

/* Seven batches an epoch, two of validation. */
#define SCRIPTED                                                                                   \
    "+callbacks.script={_target_:callback/test_script} datamodule.train_count=56 test=false "      \
    "trainer.num_sanity_val_steps=0 trainer.max_epochs=4 "

/* ---- Recorded cases ------------------------------------------------------------------------ */

static json_t *recorded;

static int load_recorded(void **unused)
{
    (void)unused;
    recorded = json_load_file("tests/data/train/lightning.json", 0, NULL);
    extra_components = scripted;
    return recorded == NULL;
}

static int drop_recorded(void **unused)
{
    (void)unused;
    json_decref(recorded);
    return 0;
}

static const char *name_of(const json_t *item)
{
    return json_string_value(json_object_get(item, "name"));
}

static void begin(const json_t *item)
{
    const json_t *values = json_object_get(item, "script");

    script = (struct Script) {
        .n = json_array_size(values),
        .fail_at = json_integer_value(json_object_get(item, "fail_at")),
        .listings = json_array(),
        .shares = json_object_get(item, "shares"),
    };
    assert_true(script.n <= sizeof(script.values) / sizeof(script.values[0]));
    for (size_t i = 0; i < script.n; i++) {
        const json_t *value = json_array_get(values, i);

        script.values[i] = json_is_null(value) ? (double)NAN : json_real_value(value);
    }
}

/* `front`, then the case's overrides. */
static void overrides_of(const json_t *item, const char *front, char *buf, size_t size)
{
    const json_t *overrides = json_object_get(item, "overrides");

    snprintf(buf, size, "%s", front);
    for (size_t i = 0; i < json_array_size(overrides); i++) {
        size_t used = strlen(buf);

        snprintf(buf + used, size - used, "%s%s", i > 0 ? " " : "",
                 json_string_value(json_array_get(overrides, i)));
    }
}

/* ---- model_checkpoint ------------------------------------------------------------------------ */

/* What is otherwise on purpose; docs/lightning.md has the reasons. */
static const struct {
    const char *name, *files;
} differs[] = {
    /* Lightning ranks the weights of a step by the value of an older validation. */
    { "steps by a metric of validation",
      "[['epoch=0-step=7'], ['epoch=0-step=7', 'epoch=1-step=14'],"
      " ['epoch=0-step=7', 'epoch=1-step=14', 'epoch=2-step=21'],"
      " ['epoch=0-step=7', 'epoch=1-step=14', 'epoch=2-step=21', 'epoch=3-step=28']]" },
    { "steps that validation follows",
      "[['epoch=0-step=3', 'epoch=0-step=6'],"
      " ['epoch=0-step=3', 'epoch=0-step=6', 'epoch=1-step=10', 'epoch=1-step=13'],"
      " ['epoch=0-step=3', 'epoch=0-step=6', 'epoch=1-step=10', 'epoch=1-step=13',"
      " 'epoch=2-step=17', 'epoch=2-step=20'],"
      " ['epoch=0-step=3', 'epoch=0-step=6', 'epoch=1-step=10', 'epoch=1-step=13',"
      " 'epoch=2-step=17', 'epoch=2-step=20', 'epoch=3-step=24', 'epoch=3-step=27']]" },
    /* A run that fails leaves its own, with or without this callback. */
    { "exception, nothing asked", "[['epoch=0-step=7'], ['epoch=0-step=7', 'epoch=001-step=10']]" },
    /* A checkpoint is one folder, with the name that Lightning means. */
    { "slash in a name", "[['epoch=0-val_m=0.50'], ['epoch=0-val_m=0.50', 'epoch=1-val_m=0.30'],"
                         " ['epoch=0-val_m=0.50', 'epoch=1-val_m=0.30', 'epoch=2-val_m=0.40'],"
                         " ['epoch=0-val_m=0.50', 'epoch=1-val_m=0.30', 'epoch=2-val_m=0.40', "
                         "'epoch=3-val_m=0.20']]" },
};

static json_t *wanted_files(const json_t *item)
{
    char text[1024];

    for (size_t i = 0; i < sizeof(differs) / sizeof(differs[0]); i++) {
        if (strcmp(differs[i].name, name_of(item)) != 0)
            continue;
        snprintf(text, sizeof(text), "%s", differs[i].files);
        for (char *c = text; *c != '\0'; c++)
            *c = *c == '\'' ? '"' : *c;
        json_t *files = json_loads(text, 0, NULL);
        assert_non_null(files);
        assert_false(json_equal(files, json_object_get(item, "files")));
        return files;
    }
    return json_incref(json_object_get(item, "files"));
}

static void check_best(const json_t *item, const char *run)
{
    char path[512], target[256];
    const char *want = json_string_value(json_object_get(item, "best"));

    snprintf(path, sizeof(path), "%s/checkpoints/best", run);
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    assert_int_equal(length >= 0, want != NULL);
    if (want == NULL)
        return;
    target[length] = '\0';
    if (strcmp(target, want) != 0)
        fail_msg("%s: best is %s, Lightning's %s", name_of(item), target, want);
}

static void keep(const json_t *item)
{
    char overrides[1024], run[128];
    KilnRunResult result;
    KilnError err = { 0 };
    json_t *want = wanted_files(item);
    const bool as_recorded = json_equal(want, json_object_get(item, "files"));

    begin(item);
    overrides_of(item,
                 SCRIPTED "callbacks.model_checkpoint={monitor:null,mode:min,save_last:false} ",
                 overrides, sizeof(overrides));
    KilnStatus status = fit("run", overrides, &result, &err);
    snprintf(run, sizeof(run), "%s/run", work);
    if (status != (script.fail_at > 0 ? KILN_E_IO : KILN_OK))
        fail_msg("%s: %s", name_of(item), err.text);
    if (status < 0)
        json_array_append_new(script.listings, listing(run));
    if (!json_equal(script.listings, want)) {
        char *text = json_dumps(script.listings, 0);

        fail_msg("%s: %s", name_of(item), text);
    }
    if (as_recorded && script.fail_at == 0)
        check_best(item, run);
    json_decref(want);
    json_decref(script.listings);
    assert_true(kiln_path_remove(run, NULL) >= 0);
}

static void test_formats(void **unused)
{
    (void)unused;
    script = (struct Script) {
        .values = { 0.5, 0.3, 0.4, 0.2 }, .n = 4, .listings = json_array(), .formats = true
    };
    fit_well("run", SCRIPTED, "finished");
    json_decref(script.listings);
}

static void test_checkpoints(void **unused)
{
    const json_t *items = json_object_get(recorded, "checkpoints");

    (void)unused;
    assert_true(json_array_size(items) >= 12);
    for (size_t i = 0; i < json_array_size(items); i++)
        keep(json_array_get(items, i));
}

/* ---- early_stopping ----------------------------------------------------------------- */

static void stop(const json_t *item)
{
    char overrides[1024], run[128];
    const bool stopped = json_is_true(json_object_get(item, "stopped"));

    begin(item);
    overrides_of(item,
                 SCRIPTED "trainer.enable_checkpointing=false "
                          "+callbacks.early_stopping={_target_:callback/early_stopping,mode:min} ",
                 overrides, sizeof(overrides));
    fit_well("run", overrides, stopped ? "stopped" : "finished");
    json_t *summary = summary_of("run");
    const json_int_t steps = json_integer_value(json_object_get(summary, "steps"));
    const json_int_t want = json_integer_value(json_object_get(item, "steps"));
    if (steps != want ||
        (json_int_t)script.validations != json_integer_value(json_object_get(item, "validations")))
        fail_msg("%s: %lld steps and %zu validations, Lightning's %lld", name_of(item),
                 (long long)steps, script.validations, (long long)want);
    json_decref(summary);
    json_decref(script.listings);
    snprintf(run, sizeof(run), "%s/run", work);
    assert_true(kiln_path_remove(run, NULL) >= 0);
}

static void test_stopping(void **unused)
{
    const json_t *items = json_object_get(recorded, "stopping");

    (void)unused;
    assert_true(json_array_size(items) >= 12);
    for (size_t i = 0; i < json_array_size(items); i++)
        stop(json_array_get(items, i));
}

/* ---- ema ------------------------------------------------------------------------------------ */

static void average(const json_t *item)
{
    char overrides[1024], run[128];

    begin(item);
    overrides_of(item,
                 SCRIPTED "trainer.enable_checkpointing=false trainer.limit_val_batches=0 "
                          "+callbacks.ema={_target_:callback/ema} ",
                 overrides, sizeof(overrides));
    fit_well("run", overrides, "finished");
    assert_int_equal(script.seen, json_array_size(script.shares));
    if (script.off > 1e-5)
        fail_msg("%s: the average is off by %g", name_of(item), script.off);
    json_decref(script.listings);
    snprintf(run, sizeof(run), "%s/run", work);
    assert_true(kiln_path_remove(run, NULL) >= 0);
}

static void test_averages(void **unused)
{
    const json_t *items = json_object_get(recorded, "averages");

    (void)unused;
    assert_int_equal(json_array_size(items), 5);
    for (size_t i = 0; i < json_array_size(items); i++)
        average(json_array_get(items, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_formats, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_checkpoints, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_stopping, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_averages, make_work, remove_work),
    };

    return cmocka_run_group_tests(tests, load_recorded, drop_recorded);
}
