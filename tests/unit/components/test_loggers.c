/* metrics.csv and metrics.jsonl: partial rows, late columns, resuming at a checkpoint, damaged
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kiln.h"
#include "registry/instance.h"
#include "train/checkpoint/component_state.h"

extern const KilnComponent kiln_logger_csv, kiln_logger_jsonl;

static char dir[64];

static int make_dir(void **unused)
{
    (void)unused;
    snprintf(dir, sizeof(dir), "/tmp/kiln-csv-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **unused)
{
    (void)unused;
    return kiln_path_remove(dir, NULL) < 0;
}

/* A logger without a config, in a run that resumes from `state` at `step` (-1: a new run). */
static KilnInstance logger_new(const KilnComponent *component, const KilnState *state, int64_t step)
{
    static const KilnHparam hparams[] = {
        { .name = "lr", .value = "0.5", .kind = KILN_HPARAM_NUMBER, .number = 0.5 },
        { .name = "model", .value = "model/mlp" },
    };
    static KilnLogRun run;
    KilnInstance self = { .component = component, .state = calloc(1, component->state_size) };
    KilnError err = { 0 };

    run = (KilnLogRun) {
        .dir = dir,
        .resumed = step >= 0,
        .step = step >= 0 ? step : 0,
        .state = state,
        .hparams = hparams,
        .n_hparams = KILN_COUNT(hparams),
    };
    assert_non_null(self.state);
    if (component->ops.logger->open(&self, &run, &err) < 0)
        fail_msg("%s", err.text);
    return self;
}

static void logger_free(KilnInstance *self)
{
    self->component->release(self);
    free(self->state);
}

static void log_one(KilnInstance *self, const char *name, double value, int64_t epoch, int64_t step)
{
    KilnMetric metric = { .name = name, .value = value };
    KilnLogRow row = {
        .phase = "fit",
        .epoch = epoch,
        .step = step,
        .batch = step % 25,
        .samples = step * 4,
        .wall_time = 1.5,
        .metrics = &metric,
        .n = 1,
    };
    KilnError err = { 0 };

    if (self->component->ops.logger->log_metrics(self, &row, &err) < 0)
        fail_msg("%s", err.text);
}

/* What a checkpoint taken now would keep. */
static KilnState save(KilnInstance *self)
{
    KilnState state = { .object = json_object() };

    assert_int_equal(self->component->ops.logger->flush(self, NULL), KILN_OK);
    self->component->ops.logger->state_dict(self, &state);
    assert_false(state.failed);
    return state;
}

static void expect_file(KilnInstance *self, const char *name, const char *want)
{
    char path[128], *text = NULL;
    size_t size;

    assert_int_equal(self->component->ops.logger->flush(self, NULL), KILN_OK);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(kiln_file_read(path, 1 << 20, &text, &size, NULL), KILN_OK);
    assert_string_equal(text, want);
    free(text);
}

#define MOMENT "phase,epoch,step,batch,samples,wall_time"

/* A run that resumes and is killed before it logs anything leaves all rows to the next. */
static void test_killed_again(void **unused)
{
    KilnInstance self = logger_new(&kiln_logger_csv, NULL, -1);
    char path[128], *text = NULL;
    size_t size;

    (void)unused;
    log_one(&self, "a", 0.5, 0, 10);
    log_one(&self, "a", 0.25, 0, 20);
    KilnState state = save(&self);
    logger_free(&self);
    self = logger_new(&kiln_logger_csv, &state, 20);
    snprintf(path, sizeof(path), "%s/metrics.csv", dir);
    assert_int_equal(kiln_file_read(path, 1 << 20, &text, &size, NULL), KILN_OK);
    assert_string_equal(text, MOMENT ",a\nfit,0,10,10,40,1.500,0.5\nfit,0,20,20,80,1.500,0.25\n");
    free(text);
    json_decref(state.object);
    logger_free(&self);
}

static void expect(KilnInstance *self, const char *want)
{
    expect_file(self, "metrics.csv", want);
}

static void test_rows_and_columns(void **unused)
{
    KilnInstance self = logger_new(&kiln_logger_csv, NULL, -1);

    (void)unused;
    expect(&self, MOMENT "\n");
    log_one(&self, "a", 0.5, 0, 10);
    expect(&self, MOMENT ",a\nfit,0,10,10,40,1.500,0.5\n");
    log_one(&self, "a", 0.25, 0, 20);
    log_one(&self, "b", 1.0, 0, 20); /* the same moment, a new column */
    expect(&self, MOMENT ",a,b\nfit,0,10,10,40,1.500,0.5,\nfit,0,20,20,80,1.500,0.25,1\n");
    log_one(&self, "b", 2.0, 1, 30);
    log_one(&self, "c", 1.0 / 3.0, 1, 30);
    log_one(&self, "a", -1e300, 1, 40);
    expect(&self, MOMENT ",a,b,c\nfit,0,10,10,40,1.500,0.5,,\nfit,0,20,20,80,1.500,0.25,1,\n"
                         "fit,1,30,5,120,1.500,,2,0.33333333333333331\n"
                         "fit,1,40,15,160,1.500,-1.0000000000000001e+300,,\n");
    /* A row that was flushed may still grow, and shrink. */
    log_one(&self, "a", 1, 1, 40);
    expect(&self, MOMENT ",a,b,c\nfit,0,10,10,40,1.500,0.5,,\nfit,0,20,20,80,1.500,0.25,1,\n"
                         "fit,1,30,5,120,1.500,,2,0.33333333333333331\n"
                         "fit,1,40,15,160,1.500,1,,\n");
    logger_free(&self);
}

static void test_names_are_quoted(void **unused)
{
    KilnInstance self = logger_new(&kiln_logger_csv, NULL, -1);
    KilnState state;

    (void)unused;
    log_one(&self, "a,b", 1, 0, 1);
    log_one(&self, "say \"x\"", 2, 0, 1);
    expect(&self, MOMENT ",\"a,b\",\"say \"\"x\"\"\"\nfit,0,1,1,4,1.500,1,2\n");
    state = save(&self);
    logger_free(&self);
    self = logger_new(&kiln_logger_csv, &state, 1); /* reads them back */
    log_one(&self, "a,b", 3, 0, 2);
    log_one(&self, "say \"x\"", 4, 0, 2);
    expect(&self, MOMENT ",\"a,b\",\"say \"\"x\"\"\"\nfit,0,1,1,4,1.500,1,2\n"
                         "fit,0,2,2,8,1.500,3,4\n");
    json_decref(state.object);
    logger_free(&self);
}

/* A kill and a resume leave the file of an undisturbed run: rows after the checkpoint are removed,
 * and columns that they introduced, because these may now come in another order. */
static void test_goes_on(void **unused)
{
    KilnInstance self = logger_new(&kiln_logger_csv, NULL, -1);
    KilnState state;

    (void)unused;
    log_one(&self, "a", 1, 0, 10);
    log_one(&self, "a", 2, 0, 20);
    log_one(&self, "b", 3, 0, 20);
    state = save(&self);
    log_one(&self, "a", 9, 1, 20); /* the next row has the same step */
    log_one(&self, "late", 9, 1, 30);
    log_one(&self, "later", 9, 1, 30);
    expect(&self, MOMENT ",a,b,late,later\nfit,0,10,10,40,1.500,1,,,\n"
                         "fit,0,20,20,80,1.500,2,3,,\nfit,1,20,20,80,1.500,9,,,\n"
                         "fit,1,30,5,120,1.500,,,9,9\n");
    logger_free(&self);
    self = logger_new(&kiln_logger_csv, &state, 20);
    expect(&self, MOMENT ",a,b\nfit,0,10,10,40,1.500,1,\nfit,0,20,20,80,1.500,2,3\n");
    log_one(&self, "b", 4, 0, 20); /* what the killed run had written already */
    log_one(&self, "later", 6, 1, 30);
    log_one(&self, "late", 5, 1, 30);
    expect(&self, MOMENT ",a,b,later,late\nfit,0,10,10,40,1.500,1,,,\n"
                         "fit,0,20,20,80,1.500,2,4,,\nfit,1,30,5,120,1.500,,,6,5\n");
    logger_free(&self);
    json_decref(state.object);
    self = logger_new(&kiln_logger_csv, NULL, -1); /* a new run */
    expect(&self, MOMENT "\n");
    logger_free(&self);
}

static void write_file(const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(kiln_file_write(path, text, strlen(text), NULL), KILN_OK);
}

/* A checkpoint that knows nothing of the logger: steps decide. */
static void test_torn_last_line(void **unused)
{
    KilnInstance self;

    (void)unused;
    write_file("metrics.csv", MOMENT ",a\nfit,0,10,0,0,1,1\nfit,0,20,0,0,1,2\nfit,0,3");
    self = logger_new(&kiln_logger_csv, NULL, 1000);
    expect(&self, MOMENT ",a\nfit,0,10,0,0,1,1\nfit,0,20,0,0,1,2\n");
    logger_free(&self);
    write_file("metrics.csv", MOMENT ",a\nnonsense\n,,\nfit,0,x,1\nfit,0,20,0,0,1,2\nfit,0,30\n");
    self = logger_new(&kiln_logger_csv, NULL, 20);
    expect(&self, MOMENT ",a\nfit,0,20,0,0,1,2\n");
    logger_free(&self);
}

static void test_refusals(void **unused)
{
    KilnInstance self = { .component = &kiln_logger_csv };
    const KilnLoggerOps *ops = kiln_logger_csv.ops.logger;
    KilnLogRun run = { .dir = dir, .resumed = true };
    KilnState state = { .object = json_object() };
    KilnMetric metric = { .name = "a\nb", .value = 1.0 };
    KilnLogRow row = { .phase = "fit", .metrics = &metric, .n = 1 };
    KilnError err = { 0 };

    (void)unused;
    write_file("metrics.csv", "something else\n");
    self.state = calloc(1, kiln_logger_csv.state_size);
    assert_int_equal(ops->open(&self, &run, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "metrics.csv"));
    logger_free(&self);
    write_file("metrics.csv", MOMENT ",a\n");
    kiln_state_set_i64(&state, "columns", 2);
    run.state = &state;
    self.state = calloc(1, kiln_logger_csv.state_size);
    assert_int_equal(ops->open(&self, &run, &err), KILN_E_FORMAT);
    logger_free(&self);
    json_decref(state.object);
    run = (KilnLogRun) { .dir = "/nonexistent/run" };
    self.state = calloc(1, kiln_logger_csv.state_size);
    assert_int_equal(ops->open(&self, &run, &err), KILN_E_IO);
    logger_free(&self);
    self = logger_new(&kiln_logger_csv, NULL, -1);
    assert_int_equal(ops->log_metrics(&self, &row, &err), KILN_E_RANGE);
    logger_free(&self);
}

#define HPARAMS "{\"hparams\": {\"lr\": 0.5, \"model\": \"model/mlp\"}}\n"
#define LINE(epoch, step, batch, samples, metrics)                                                 \
    "{\"phase\": \"fit\", \"epoch\": " #epoch ", \"step\": " #step ", \"batch\": " #batch          \
    ", \"samples\": " #samples ", \"wall_time\": 1.5, \"metrics\": {" metrics "}}\n"

#define MEASURED(step)                                                                             \
    "{\"phase\": \"fit\", \"epoch\": 0, \"step\": " #step ", \"batch\": 0, \"samples\": 0, "       \
    "\"wall_time\": 1.5, \"measured\": {\"rate\": 7.0}}\n"

static void test_jsonl(void **unused)
{
    const KilnLoggerOps *ops = kiln_logger_jsonl.ops.logger;
    KilnInstance self = logger_new(&kiln_logger_jsonl, NULL, -1);
    KilnMetric measured = { .name = "rate", .value = 7, .flags = KILN_LOG_MEASURED };
    KilnLogRow row = { .phase = "test", .wall_time = 1.5, .metrics = &measured, .n = 1 };
    KilnState state;

    (void)unused;
    log_one(&self, "a", 0.5, 0, 10);
    log_one(&self, "b", (double)NAN, 0, 20);
    state = save(&self);
    log_one(&self, "a", 9, 0, 30);
    assert_int_equal(ops->close(&self, "failed", NULL, 0, NULL), KILN_OK);
    expect_file(&self, "metrics.jsonl",
                HPARAMS LINE(0, 10, 10, 40, "\"a\": 0.5") LINE(0, 20, 20, 80, "\"b\": \"nan\"")
                    LINE(0, 30, 5, 120, "\"a\": 9.0") "{\"status\": \"failed\"}\n");
    logger_free(&self);
    self = logger_new(&kiln_logger_jsonl, &state, 20);
    log_one(&self, "a", -(double)INFINITY, 0, 30);
    assert_int_equal(ops->log_metrics(&self, &row, NULL), KILN_OK);
    expect_file(
        &self, "metrics.jsonl",
        HPARAMS LINE(0, 10, 10, 40, "\"a\": 0.5") LINE(0, 20, 20, 80, "\"b\": \"nan\"") LINE(
            0, 30, 5, 120,
            "\"a\": \"-inf\"") "{\"phase\": \"test\", \"epoch\": 0, \"step\": 0, \"batch\": 0, "
                               "\"samples\": 0, \"wall_time\": 1.5, \"measured\": {\"rate\": "
                               "7.0}}\n");
    logger_free(&self);
    json_decref(state.object);
    /* Without a position: lines up to the step, but none that is torn. */
    write_file("metrics.jsonl", HPARAMS LINE(0, 10, 10, 40, "\"a\": 0.5") "{\"phase\": \"f");
    self = logger_new(&kiln_logger_jsonl, NULL, 10);
    expect_file(&self, "metrics.jsonl", HPARAMS LINE(0, 10, 10, 40, "\"a\": 0.5"));
    logger_free(&self);
}

/* Measured values have a file, or lines, of their own, and are in no position that a
 * checkpoint keeps. */
static void test_measured_apart(void **unused)
{
    KilnMetric both[] = {
        { .name = "rate", .value = 7, .flags = KILN_LOG_MEASURED },
        { .name = "a", .value = 0.5 },
    };
    KilnLogRow row = { .phase = "fit", .step = 10, .wall_time = 1.5, .metrics = both };
    const KilnComponent *const loggers[] = { &kiln_logger_csv, &kiln_logger_jsonl };
    static const char *const positions[] = { "rows", "lines" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(loggers); i++) {
        KilnInstance self = logger_new(loggers[i], NULL, -1);
        const KilnLoggerOps *ops = loggers[i]->ops.logger;
        int64_t before = 0, after = 0;

        row.n = 2;
        assert_int_equal(ops->log_metrics(&self, &row, NULL), KILN_OK);
        KilnState state = save(&self);
        assert_true(kiln_state_get_i64(&state, positions[i], &before));
        row.n = 1;
        row.step = 20;
        assert_int_equal(ops->log_metrics(&self, &row, NULL), KILN_OK);
        KilnState later = save(&self);
        assert_true(kiln_state_get_i64(&later, positions[i], &after));
        assert_int_equal(before, after);
        json_decref(later.object);
        logger_free(&self);
        self = logger_new(loggers[i], &state, 10);
        row.n = 2;
        assert_int_equal(ops->log_metrics(&self, &row, NULL), KILN_OK);
        if (i == 0)
            expect_file(&self, "measured.csv",
                        MOMENT ",rate\nfit,0,10,0,0,1.500,7\nfit,0,20,0,0,1.500,7\n");
        expect_file(&self, i == 0 ? "metrics.csv" : "metrics.jsonl",
                    i == 0 ? MOMENT ",a\nfit,0,10,0,0,1.500,0.5\nfit,0,20,0,0,1.500,0.5\n"
                           : HPARAMS LINE(0, 10, 0, 0, "\"a\": 0.5") MEASURED(10)
                                 LINE(0, 20, 0, 0, "\"a\": 0.5") MEASURED(20));
        logger_free(&self);
        json_decref(state.object);
        row.step = 10;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_and_columns, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_killed_again, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_names_are_quoted, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_goes_on, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_torn_last_line, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_refusals, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_jsonl, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_measured_apart, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
