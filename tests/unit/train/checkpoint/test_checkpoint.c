/* Checkpoints: exact resume from every step, atomic saves, damaged folders, other models, which
 * ones are kept, and lookup. */
#define _XOPEN_SOURCE 700 /* utimes */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "kiln/embed/run.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

enum { STEPS = 15 }; /* three epochs of five batches, the last of which is small */

/* ---- Resume ---------------------------------------------------------------------------------- */

static void assert_same_run(const char *a, const char *b)
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

/* The metrics of both summaries, bests included. */
static void assert_same_metrics(const char *a, const char *b)
{
    json_t *x = summary_of(a), *y = summary_of(b);

    if (!json_equal(json_object_get(x, "metrics"), json_object_get(y, "metrics")))
        fail_msg("the metrics of %s and %s differ", a, b);
    json_decref(x);
    json_decref(y);
}

static void test_resume_is_exact(void **unused)
{
    static const char *const optimizers[] = {
        "",
        "task.optimizer=${momentum}",
        "task.optimizer=${sgd}",
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(optimizers); i++) {
        char whole[32];

        snprintf(whole, sizeof(whole), "whole%zu", i);
        fit_well(whole, optimizers[i], "finished");
        for (int step = 1; step <= STEPS; step++) {
            char name[32], overrides[256];

            snprintf(name, sizeof(name), "cut%zu-%d", i, step);
            recorder.stop_at = step;
            fit_well(name, optimizers[i], "interrupted");
            assert_null(strstr(recorder.hooks, "train_end"));
            recorder.stop_at = 0;
            snprintf(overrides, sizeof(overrides), "%s ckpt_path=%s/%s", optimizers[i], work, name);
            fit_well(name, overrides[0] == ' ' ? overrides + 1 : overrides, "finished");
            assert_same_run(whole, name);
            assert_same_metrics(whole, name);
            assert_same_rows(whole, name);
        }
    }
}

/* Between the batches of a step, and between a batch and its validation. */
static void test_resume_in_a_group(void **unused)
{
    static const char *const options[] = {
        "trainer.accumulate_grad_batches=3 trainer.val_check_interval=2",
        "trainer.accumulate_grad_batches=4 trainer.val_check_interval=3 "
        "trainer.check_val_every_n_epoch=null trainer.precision=bf16-true",
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(options); i++) {
        char whole[32];

        snprintf(whole, sizeof(whole), "whole%zu", i);
        fit_well(whole, options[i], "finished");
        for (int batch = 1; batch <= STEPS; batch++) {
            char name[32], overrides[256];

            snprintf(name, sizeof(name), "cut%zu-%d", i, batch);
            recorder.stop_at_batch = batch;
            fit_well(name, options[i], "interrupted");
            recorder.stop_at_batch = 0;
            snprintf(overrides, sizeof(overrides), "%s ckpt_path=%s/%s", options[i], work, name);
            fit_well(name, overrides, "finished");
            assert_same_run(whole, name);
            assert_same_metrics(whole, name);
            assert_same_rows(whole, name);
        }
    }
}

/* Make a checkpoint one of format 1, which said less of the position. */
static void write_format_1(const char *name)
{
    static const char *const later[] = { "batches",        "samples",      "in_group",
                                         "last_val_batch", "epoch_begun",  "should_stop",
                                         "stop_reason",    "name",         "saved_by",
                                         "machine",        "weights_only", "xxh3",
                                         "tensors",        "optimizers" };
    char path[256], full[512];
    size_t size;

    snprintf(path, sizeof(path), "%s/checkpoints/last/state.json", name);
    snprintf(full, sizeof(full), "%s/%s", work, path);
    char *text = read_work(path, &size);
    json_t *state = json_loads(text, 0, NULL);
    assert_non_null(state);
    const json_t *optimizer = json_array_get(json_object_get(state, "optimizers"), 0);
    json_object_set(state, "scheduler", json_object_get(optimizer, "scheduler"));
    for (size_t i = 0; i < KILN_COUNT(later); i++)
        assert_int_equal(json_object_del(state, later[i]), 0);
    json_object_set_new(state, "format", json_integer(1));
    assert_int_equal(json_dump_file(state, full, JSON_INDENT(1)), 0);
    json_decref(state);
    free(text);
}

static void test_format_1_goes_on(void **unused)
{
    (void)unused;
    fit_well("whole", "", "finished");
    for (int step = 1; step < STEPS; step += 3) {
        char name[32], overrides[256];

        snprintf(name, sizeof(name), "cut%d", step);
        recorder.stop_at = step;
        fit_well(name, "", "interrupted");
        recorder.stop_at = 0;
        write_format_1(name);
        snprintf(overrides, sizeof(overrides), "ckpt_path=%s/%s", work, name);
        fit_well(name, overrides, "finished");
        assert_same_run("whole", name);
        assert_same_metrics("whole", name);
    }
}

/* A run that was asked to stop, and is killed before it is over, does not train on. */
static void test_resume_remembers_a_stop(void **unused)
{
    const char *options = "++callbacks.early={_target_:callback/early_stopping,monitor:val/loss,"
                          "patience:1,min_delta:100} trainer.max_epochs=9";
    char overrides[256];

    (void)unused;
    fit_well("run", options, "stopped");
    snprintf(overrides, sizeof(overrides), "%s ckpt_path=%s/run", options, work);
    fit_well("run", overrides, "stopped");
    json_t *summary = summary_of("run");
    assert_int_equal(json_integer_value(json_object_get(summary, "epochs")), 2);
    assert_non_null(strstr(json_string_value(json_object_get(summary, "reason")), "val/loss"));
    json_decref(summary);
}

/* The best checkpoint until then comes along into a new run folder. */
static void test_resume_into_another_folder(void **unused)
{
    char overrides[256];

    (void)unused;
    fit_well("whole", "optimizer.lr=0.3 trainer.max_epochs=6", "finished");
    for (int step = 3; step <= 28; step += 5) {
        char name[32], on[32];

        snprintf(name, sizeof(name), "cut%d", step);
        snprintf(on, sizeof(on), "on%d", step);
        recorder.stop_at = step;
        fit_well(name, "optimizer.lr=0.3 trainer.max_epochs=6", "interrupted");
        recorder.stop_at = 0;
        snprintf(overrides, sizeof(overrides),
                 "optimizer.lr=0.3 trainer.max_epochs=6 ckpt_path=%s/%s", work, name);
        fit_well(on, overrides, "finished");
        assert_same_run("whole", on);
        assert_same_metrics("whole", on);
        snprintf(overrides, sizeof(overrides), "%s/checkpoints/best/model.safetensors", on);
        assert_same_file("whole/checkpoints/best/model.safetensors", overrides);
        assert_non_null(strstr(recorder.printed, "resuming from"));
    }
}

static void test_more_epochs(void **unused)
{
    char overrides[256];

    (void)unused;
    fit_well("whole", "task.scheduler=null", "finished");
    fit_well("part", "task.scheduler=null trainer.max_epochs=1", "finished");
    snprintf(overrides, sizeof(overrides), "task.scheduler=null ckpt_path=%s/part", work);
    fit_well("part", overrides, "finished");
    assert_same_run("whole", "part");
    recorder.printed[0] = '\0';
    snprintf(overrides, sizeof(overrides), "task.scheduler=null ckpt_path=%s/part seed=2", work);
    fit_well("other", overrides, "finished");
    assert_non_null(strstr(recorder.printed, "warning: seed was 1"));
}

/* ---- Saving fails ------------------------------------------------------------------- */

static void test_disk_full(void **unused)
{
    const char *every_step = "callbacks.model_checkpoint.every_n_train_steps=1";
    KilnRunResult result;
    KilnError err = { 0 };
    char target[256], path[256], overrides[256];

    (void)unused;
    signal(SIGXFSZ, SIG_IGN);
    for (int step = 2; step <= 11; step += 3) {
        char name[32];

        snprintf(name, sizeof(name), "run%d", step);
        recorder.disk_full_at = step;
        KilnStatus status = fit(name, every_step, &result, &err);
        limit_files(RLIM_INFINITY);
        recorder.disk_full_at = 0;
        assert_int_equal(status, KILN_E_IO);
        assert_non_null(strstr(err.text, "was not saved"));
        snprintf(path, sizeof(path), "%s/%s/checkpoints/last", work, name);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        assert_true(n > 0);
        target[n] = '\0';
        snprintf(path, sizeof(path), "epoch=%03d-step=%d", (step - 2) / 5, step - 1);
        assert_string_equal(target, path);
        snprintf(path, sizeof(path), "%s/checkpoints/.saving", name);
        assert_false(exists(path));
        /* The old one is good: the run can go on from it. */
        snprintf(overrides, sizeof(overrides), "%s ckpt_path=%s/%s", every_step, work, name);
        fit_well(name, overrides, "finished");
    }
    fit_well("whole", every_step, "finished");
    assert_same_run("whole", "run8");
}

/* ---- Damage ------------------------------------------------------------------------- */

static void copy_run(const char *from, const char *to)
{
    static const char *const files[] = { "model.safetensors", "trainer.safetensors", "config.yaml",
                                         "state.json" };
    char path[512], dir[256];

    snprintf(dir, sizeof(dir), "%s/%s", work, to);
    assert_int_equal(kiln_path_remove(dir, NULL), KILN_OK);
    assert_int_equal(kiln_dir_make(dir, NULL), KILN_OK);
    for (size_t i = 0; i < KILN_COUNT(files); i++) {
        size_t size;
        char *data;

        snprintf(path, sizeof(path), "%s/checkpoints/last/%s", from, files[i]);
        data = read_work(path, &size);
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        assert_int_equal(kiln_file_write(path, data, size, NULL), KILN_OK);
        free(data);
    }
}

static void expect_refusal(KilnStatus want, const char *text)
{
    char overrides[256];
    KilnRunResult result;
    KilnError err = { 0 };

    snprintf(overrides, sizeof(overrides), "ckpt_path=%s/copy", work);
    KilnStatus status = fit("new", overrides, &result, &err);
    if (status != want || strstr(err.text, text) == NULL)
        fail_msg("status %d instead of %d with \"%s\": %s", status, want, text, err.text);
    assert_false(exists("new"));
}

static void test_truncated(void **unused)
{
    static const char *const files[] = { "model.safetensors", "trainer.safetensors", "state.json" };

    (void)unused;
    fit_well("run", "trainer.max_epochs=1", "finished");
    for (size_t i = 0; i < KILN_COUNT(files); i++)
        for (int part = 0; part < 8; part++) {
            char path[256];
            size_t size;

            copy_run("run", "copy");
            snprintf(path, sizeof(path), "copy/%s", files[i]);
            free(read_work(path, &size));
            snprintf(path, sizeof(path), "%s/copy/%s", work, files[i]);
            assert_int_equal(truncate(path, (off_t)(size * (size_t)part / 8)), 0);
            expect_refusal(KILN_E_FORMAT, files[i]);
            assert_int_equal(unlink(path), 0);
            expect_refusal(i == 2 ? KILN_E_FORMAT : KILN_E_IO, files[i]);
        }
}

static void test_flipped_bytes(void **unused)
{
    static const char *const files[] = { "model.safetensors", "trainer.safetensors", "config.yaml",
                                         "state.json" };

    (void)unused;
    fit_well("run", "trainer.max_epochs=1", "finished");
    for (size_t i = 0; i < KILN_COUNT(files); i++)
        for (int part = 0; part < 9; part++) {
            char path[256];
            size_t size;

            copy_run("run", "copy");
            snprintf(path, sizeof(path), "copy/%s", files[i]);
            char *data = read_work(path, &size);
            data[size * (size_t)part / 9] ^= 1;
            snprintf(path, sizeof(path), "%s/copy/%s", work, files[i]);
            assert_int_equal(kiln_file_write(path, data, size, NULL), KILN_OK);
            free(data);
            expect_refusal(KILN_E_FORMAT, "damaged");
        }
}

/* state.json with any one member gone or of another kind is an error or does
 * not matter; it never crashes. */
static void test_mangled_state(void **unused)
{
    static const char *const must[] = { "format", "epoch", "step", "batch", "files" };
    const char *key;
    json_t *value;
    size_t size;

    (void)unused;
    fit_well("run", "trainer.max_epochs=1", "finished");
    char *text = read_work("run/checkpoints/last/state.json", &size);
    json_t *state = json_loads(text, 0, NULL);
    free(text);
    json_object_del(state, "xxh3"); /* as before there were checksums of it */
    json_object_set_new(state, "format", json_integer(2));
    json_object_foreach(state, key, value)
    {
        for (int kind = 0; kind < 3; kind++) {
            json_t *copy = json_copy(state);
            char path[256], overrides[256];
            KilnRunResult result;
            KilnError err = { 0 };
            bool needed = false;

            if (kind == 0)
                json_object_del(copy, key);
            else
                json_object_set_new(copy, key, kind == 1 ? json_integer(-7) : json_string("x"));
            copy_run("run", "copy");
            text = json_dumps(copy, JSON_REAL_PRECISION(17));
            snprintf(path, sizeof(path), "%s/copy/state.json", work);
            assert_int_equal(kiln_file_write(path, text, strlen(text), NULL), KILN_OK);
            free(text);
            json_decref(copy);
            snprintf(overrides, sizeof(overrides), "ckpt_path=%s/copy trainer.max_epochs=1", work);
            KilnStatus status = fit("new", overrides, &result, &err);
            for (size_t i = 0; i < KILN_COUNT(must); i++)
                needed = needed || strcmp(key, must[i]) == 0;
            if (needed && status != KILN_E_FORMAT)
                fail_msg("%s of kind %d: status %d: %s", key, kind, status, err.text);
            snprintf(path, sizeof(path), "%s/new", work);
            assert_int_equal(kiln_path_remove(path, NULL), KILN_OK);
        }
    }
    json_decref(state);
}

static void test_another_model(void **unused)
{
    static const struct {
        const char *overrides, *text;
    } cases[] = {
        { "task.hidden=7", "hidden.weight (f32 [6, 2]" },
        { "task.optimizer=${momentum}", "another optimizer" },
    };
    KilnRunResult result;
    KilnError err = { 0 };
    char overrides[256];

    (void)unused;
    fit_well("run", "trainer.max_epochs=1", "finished");
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        snprintf(overrides, sizeof(overrides), "ckpt_path=%s/run %s", work, cases[i].overrides);
        KilnStatus status = fit("new", overrides, &result, &err);
        if (status != KILN_E_FORMAT || strstr(err.text, cases[i].text) == NULL)
            fail_msg("%s: status %d: %s", cases[i].overrides, status, err.text);
        assert_false(exists("new"));
    }
}

/* ---- Which are kept ----------------------------------------------------------------- */

/* Folders below checkpoints/, links left out. */
static size_t count_folders(const char *run)
{
    char path[256], **names = NULL;
    size_t n = 0, folders = 0;

    snprintf(path, sizeof(path), "%s/%s/checkpoints", work, run);
    assert_int_equal(kiln_dir_list(path, &names, &n, NULL), KILN_OK);
    for (size_t i = 0; i < n; i++)
        folders += strncmp(names[i], "epoch=", 6) == 0;
    kiln_names_free(names, n);
    return folders;
}

static void test_which_are_kept(void **unused)
{
    static const struct {
        const char *overrides;
        size_t most, least;
        bool best;
    } cases[] = {
        { "", 2, 1, true },
        { "callbacks.model_checkpoint.save_top_k=2", 3, 2, true },
        { "callbacks.model_checkpoint.save_top_k=-1", 6, 6, true },
        { "callbacks.model_checkpoint.save_top_k=0", 1, 1, false },
        { "callbacks.model_checkpoint.monitor=null", 1, 1, true },
        { "callbacks.model_checkpoint.monitor=train/loss callbacks.model_checkpoint.mode=min", 2, 1,
          true },
        { "callbacks.model_checkpoint.every_n_epochs=0 "
          "callbacks.model_checkpoint.every_n_train_steps=4",
          2, 1, true },
        { "callbacks.model_checkpoint.every_n_epochs=4", 2, 2, true },
        { "~callbacks.model_checkpoint", 1, 1, false },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char name[32], overrides[256], best[128];

        snprintf(name, sizeof(name), "run%zu", i);
        snprintf(overrides, sizeof(overrides), "trainer.max_epochs=6%s%s",
                 cases[i].overrides[0] != '\0' ? " " : "", cases[i].overrides);
        fit_well(name, overrides, "finished");
        size_t n = count_folders(name);
        if (n < cases[i].least || n > cases[i].most)
            fail_msg("%s: %zu checkpoints are left", cases[i].overrides, n);
        snprintf(best, sizeof(best), "%s/checkpoints/best/state.json", name);
        assert_int_equal(exists(best), cases[i].best);
        snprintf(best, sizeof(best), "%s/checkpoints/last/state.json", name);
        assert_true(exists(best));
        snprintf(best, sizeof(best), "%s/checkpoints/epoch=005-step=30/state.json", name);
        assert_true(exists(best));
    }
}

/* ---- Finding ------------------------------------------------------------------------ */

static void make_checkpoint(const char *path, time_t when)
{
    char full[512];
    struct timeval times[2] = { { .tv_sec = when }, { .tv_sec = when } };

    snprintf(full, sizeof(full), "%s/%s", work, path);
    assert_int_equal(kiln_dir_make(full, NULL), KILN_OK);
    snprintf(full, sizeof(full), "%s/%s/state.json", work, path);
    assert_int_equal(kiln_file_write(full, "{}", 2, NULL), KILN_OK);
    snprintf(full, sizeof(full), "%s/%s", work, path);
    assert_int_equal(utimes(full, times), 0);
}

static void test_finding(void **unused)
{
    static const struct {
        const char *ckpt_path; /* below work when it has a slash */
        const char *runs;
        const char *want;
        KilnStatus status;
    } cases[] = {
        { "last", "outputs", "outputs/1/b/checkpoints/e2", KILN_OK },
        { "best", "outputs", "outputs/1/a/checkpoints/e1", KILN_OK },
        { "outputs/1/a", "outputs", "outputs/1/a/checkpoints/e1", KILN_OK },
        { "outputs/1/a/checkpoints", "x", "outputs/1/a/checkpoints/e1", KILN_OK },
        { "outputs/1/a/checkpoints/last", "x", "outputs/1/a/checkpoints/e1", KILN_OK },
        { "outputs/1/b/checkpoints/e2", "x", "outputs/1/b/checkpoints/e2", KILN_OK },
        { "last", "nothing", "there is no run folder below", KILN_E_IO },
        { "best", "outputs/1/b", "none of the 1 run folders", KILN_E_IO },
        { "outputs/1", "outputs", "is neither a checkpoint", KILN_E_FORMAT },
        { "outputs/1/d", "outputs", "this run has saved no checkpoint", KILN_E_MISSING },
        { "outputs/2", "outputs", "there is no such folder", KILN_E_IO },
        { "outputs/1/a/checkpoints/e1/state.json", "outputs", "is a file", KILN_E_FORMAT },
    };
    char link[256];

    (void)unused;
    make_checkpoint("outputs/1/a/checkpoints/e1", 1000);
    make_checkpoint("outputs/1/b/checkpoints/e2", 2000);
    make_checkpoint("outputs/1/c/checkpoints/e3", 3000); /* has no links: never published */
    snprintf(link, sizeof(link), "%s/outputs/1/d/.kiln", work);
    assert_int_equal(kiln_dir_make(link, NULL), KILN_OK);
    snprintf(link, sizeof(link), "%s/outputs/1/a/checkpoints/last", work);
    assert_int_equal(symlink("e1", link), 0);
    snprintf(link, sizeof(link), "%s/outputs/1/a/checkpoints/best", work);
    assert_int_equal(symlink("e1", link), 0);
    snprintf(link, sizeof(link), "%s/outputs/1/b/checkpoints/last", work);
    assert_int_equal(symlink("e2", link), 0);
    snprintf(link, sizeof(link), "%s/outputs/1/b/checkpoints/best", work);
    assert_int_equal(symlink("gone", link), 0);
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char path[256], runs[256], want[256], *found = NULL;
        KilnError err = { 0 };

        snprintf(path, sizeof(path), "%s%s%s", strchr(cases[i].ckpt_path, '/') ? work : "",
                 strchr(cases[i].ckpt_path, '/') ? "/" : "", cases[i].ckpt_path);
        snprintf(runs, sizeof(runs), "%s/%s", work, cases[i].runs);
        KilnStatus status = kiln_checkpoint_resolve(path, runs, &found, &err);
        assert_int_equal(status, cases[i].status);
        snprintf(want, sizeof(want), "%s/%s", work, cases[i].want);
        if (status >= 0)
            assert_string_equal(found, want);
        else if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("%s: %s", cases[i].ckpt_path, err.text);
        free(found);
    }
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, make_work, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(test_resume_is_exact),
        RUN_TEST(test_resume_in_a_group),
        RUN_TEST(test_resume_remembers_a_stop),
        RUN_TEST(test_format_1_goes_on),
        RUN_TEST(test_resume_into_another_folder),
        RUN_TEST(test_more_epochs),
        RUN_TEST(test_disk_full),
        RUN_TEST(test_truncated),
        RUN_TEST(test_flipped_bytes),
        RUN_TEST(test_mangled_state),
        RUN_TEST(test_another_model),
        RUN_TEST(test_which_are_kept),
        RUN_TEST(test_finding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
