/* Resource usage of a process, from files of /proc that the test writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kiln.h"
#include "kiln/usage.h"

static char root[64];

static int make_root(void **unused)
{
    (void)unused;
    snprintf(root, sizeof(root), "/tmp/kiln-usage-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_root(void **unused)
{
    (void)unused;
    return kiln_path_remove(root, NULL) < 0;
}

static void put(const char *name, const char *text)
{
    char path[128];
    KilnError err = { 0 };

    snprintf(path, sizeof(path), "%s/proc", root);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/proc/self", root);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/%s", root, name);
    if (kiln_file_write_plain(path, text, &err) < 0)
        fail_msg("%s", err.text);
}

static void test_reads_what_the_kernel_says(void **unused)
{
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);

    (void)unused;
    /* A program's name may hold blanks and parentheses. */
    put("proc/self/stat", "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 1234 66 0 0 20 0 1 0\n");
    put("proc/stat", "cpu  100 20 30 400 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
    put("proc/self/status", "Name:\ta\nVmRSS:\t  2048 kB\n");
    put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 250 kB\n");
    put("proc/self/io", "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n"
                        "cancelled_write_bytes: 1\n");
    KilnUsage usage = kiln_usage_read(root);
    assert_true(usage.process_s == (double)(1234 + 66) * tick);
    assert_true(fabs(usage.all_s - 621 * tick) < 1e-9);
    assert_true(fabs(usage.busy_s - 171 * tick) < 1e-9);
    assert_int_equal(usage.resident, 2048 * 1024);
    assert_int_equal(usage.available, 250 * 1024);
    assert_int_equal(usage.limit, 1000 * 1024);
    assert_int_equal(usage.read, 4096);
    assert_int_equal(usage.written, 8192);
}

static void test_says_what_is_not_known(void **unused)
{
    (void)unused;
    put("proc/self/stat", "no parentheses");
    put("proc/stat", "intr 1\n");
    KilnUsage usage = kiln_usage_read(root);
    assert_true(usage.process_s < 0.0 && usage.all_s < 0.0 && usage.busy_s < 0.0);
    assert_true(usage.resident < 0 && usage.limit < 0 && usage.read < 0 && usage.written < 0);
}

static void test_counts_work(void **unused)
{
    KilnUsage before = kiln_usage_now(), after = before;
    volatile double x = 1.0;

    (void)unused;
    while (after.time - before.time < 5.0 && after.process_s - before.process_s < 0.05) {
        for (int i = 0; i < 1000000; i++)
            x = x * 1.0000001;
        after = kiln_usage_now();
    }
    assert_true(after.process_s > before.process_s);
    assert_true(after.processors >= 0.01 && after.resident > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_what_the_kernel_says, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_says_what_is_not_known, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_counts_work, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
