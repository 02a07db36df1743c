/* metrics.csv: rows that come in parts, columns that come late, going on after
 * a resume, failing disks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "kiln.h"
#include "registry/instance.h"

extern const KilnComponent kiln_logger_csv;

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

/* A logger without a config. */
static KilnInstance logger_new(int64_t resumed_step)
{
    KilnInstance self = {
        .component = &kiln_logger_csv,
        .state = calloc(1, kiln_logger_csv.state_size),
    };
    KilnError err = { 0 };

    assert_non_null(self.state);
    if (kiln_logger_csv.ops.logger->open(&self, dir, resumed_step, &err) < 0)
        fail_msg("%s", err.text);
    return self;
}

static void logger_free(KilnInstance *self)
{
    kiln_logger_csv.release(self);
    free(self->state);
}

static void log_one(KilnInstance *self, const char *name, double value, int64_t epoch, int64_t step)
{
    KilnMetric metric = { .name = name, .value = value };
    KilnError err = { 0 };

    if (kiln_logger_csv.ops.logger->log_metrics(self, &metric, 1, epoch, step, &err) < 0)
        fail_msg("%s", err.text);
}

static void expect(KilnInstance *self, const char *want)
{
    char path[128], *text = NULL;
    size_t size;

    assert_int_equal(kiln_logger_csv.ops.logger->flush(self, NULL), KILN_OK);
    snprintf(path, sizeof(path), "%s/metrics.csv", dir);
    assert_int_equal(kiln_file_read(path, 1 << 20, &text, &size, NULL), KILN_OK);
    assert_string_equal(text, want);
    free(text);
}

static void test_rows_and_columns(void **unused)
{
    KilnInstance self = logger_new(0);

    (void)unused;
    expect(&self, "epoch,step\n");
    log_one(&self, "a", 0.5, 0, 10);
    expect(&self, "epoch,step,a\n0,10,0.5\n");
    log_one(&self, "a", 0.25, 0, 20);
    log_one(&self, "b", 1.0, 0, 20); /* the same moment, a new column */
    expect(&self, "epoch,step,a,b\n0,10,0.5,\n0,20,0.25,1\n");
    log_one(&self, "b", 2.0, 1, 30);
    log_one(&self, "c", 1.0 / 3.0, 1, 30);
    log_one(&self, "a", -1e300, 1, 40);
    expect(&self, "epoch,step,a,b,c\n0,10,0.5,,\n0,20,0.25,1,\n"
                  "1,30,,2,0.33333333333333331\n1,40,-1.0000000000000001e+300,,\n");
    /* A row that was flushed may still grow, and shrink. */
    log_one(&self, "a", 1, 1, 40);
    expect(&self, "epoch,step,a,b,c\n0,10,0.5,,\n0,20,0.25,1,\n"
                  "1,30,,2,0.33333333333333331\n1,40,1,,\n");
    logger_free(&self);
}

/* The file after a kill and a resume at step 20 is that of a run without. */
static void test_goes_on(void **unused)
{
    KilnInstance self = logger_new(0);

    (void)unused;
    log_one(&self, "a", 1, 0, 10);
    log_one(&self, "a", 2, 0, 20);
    log_one(&self, "b", 3, 0, 20);
    log_one(&self, "a", 9, 1, 30);
    log_one(&self, "late", 9, 1, 30);
    expect(&self, "epoch,step,a,b,late\n0,10,1,,\n0,20,2,3,\n1,30,9,,9\n");
    logger_free(&self);
    self = logger_new(20);
    expect(&self, "epoch,step,a,b,late\n0,10,1,,\n0,20,2,3,\n");
    log_one(&self, "b", 4, 0, 20); /* what the killed run had written already */
    log_one(&self, "a", 5, 1, 30);
    expect(&self, "epoch,step,a,b,late\n0,10,1,,\n0,20,2,4,\n1,30,5,,\n");
    logger_free(&self);
    self = logger_new(0);
    expect(&self, "epoch,step,a,b,late\n");
    logger_free(&self);
}

static void write_file(const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/metrics.csv", dir);
    assert_int_equal(kiln_file_write(path, text, strlen(text), NULL), KILN_OK);
}

static void test_torn_last_line(void **unused)
{
    KilnInstance self;

    (void)unused;
    write_file("epoch,step,a\n0,10,1\n0,20,2\n0,3");
    self = logger_new(1000);
    expect(&self, "epoch,step,a\n0,10,1\n0,20,2\n");
    logger_free(&self);
    write_file("epoch,step,a\nnonsense\n,,\n0,x,1\n0,20,2\n");
    self = logger_new(1000);
    expect(&self, "epoch,step,a\n0,20,2\n");
    logger_free(&self);
}

static void test_refusals(void **unused)
{
    KilnInstance self = { .component = &kiln_logger_csv };
    const KilnLoggerOps *ops = kiln_logger_csv.ops.logger;
    KilnMetric metric = { .name = "a,b", .value = 1.0 };
    KilnError err = { 0 };

    (void)unused;
    write_file("something else\n");
    self.state = calloc(1, kiln_logger_csv.state_size);
    assert_int_equal(ops->open(&self, dir, 0, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "metrics.csv"));
    logger_free(&self);
    self.state = calloc(1, kiln_logger_csv.state_size);
    assert_int_equal(ops->open(&self, "/nonexistent/run", 0, &err), KILN_E_IO);
    logger_free(&self);
    write_file("");
    self = logger_new(0);
    assert_int_equal(ops->log_metrics(&self, &metric, 1, 0, 1, &err), KILN_E_RANGE);
    logger_free(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_and_columns, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_goes_on, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_torn_last_line, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_refusals, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
