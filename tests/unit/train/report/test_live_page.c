/* The live page: what one process publishes, another reads whole, whatever happens to the file. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "kiln/tools/clock.h"
#include "train/report/live_page.h"

static char dir[64], page_path[128];

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/kiln-live-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(page_path, sizeof(page_path), "%s/.kiln", dir);
    assert_int_equal(mkdir(page_path, 0777), 0);
    snprintf(page_path, sizeof(page_path), "%s/.kiln/live", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return kiln_path_remove(dir, NULL) >= 0 ? 0 : -1;
}

static KilnLivePage *open_page(void)
{
    const KilnLiveRun run = { .started = 5.0, .max_epochs = 3, .max_steps = -1, .label = "lr=1" };
    KilnLivePage *page = NULL;
    KilnError err = { 0 };

    if (kiln_live_page_open(dir, &run, &page, &err) < 0)
        fail_msg("%s", err.text);
    return page;
}

static void test_what_is_told_is_seen(void **state)
{
    KilnLivePage *page = open_page();
    const KilnLivePosition at = { .phase = KILN_LIVE_VALIDATE,
                                  .in_group = 2,
                                  .accumulate = 4,
                                  .epoch = 1,
                                  .step = 17,
                                  .batch = 70,
                                  .batches = 100,
                                  .eval_batch = 3,
                                  .evals = 9 };
    KilnLiveRates rates = { .samples_per_s = 1e4, .left_s = 90.0, .loss = 0.5, .n_metrics = 1 };
    KilnLiveSnapshot live;
    KilnError err = { 0 };

    (void)state;
    assert_int_equal(kiln_live_page_read(dir, &live, &err), KILN_OK);
    assert_int_equal(live.at.phase, KILN_LIVE_STARTING);
    assert_true(isnan(live.rates.loss));
    snprintf(rates.metrics[0].name, KILN_LIVE_NAME, "val/acc");
    rates.metrics[0].value = 0.75;
    kiln_live_page_write_position(page, &at);
    kiln_live_page_write_rates(page, &rates);
    kiln_live_page_saving(page, true);
    assert_int_equal(kiln_live_page_read(dir, &live, &err), KILN_OK);
    assert_memory_equal(&live.at, &at, sizeof(at));
    assert_string_equal(live.rates.metrics[0].name, "val/acc");
    assert_true(live.rates.metrics[0].value == 0.75);
    assert_int_equal(live.saving, 1);
    assert_int_equal(live.run.pid, getpid());
    assert_int_equal(live.run.max_epochs, 3);
    assert_string_equal(live.run.label, "lr=1");
    assert_true(kiln_live_alive(&live));
    kiln_live_page_saving(page, false);
    assert_int_equal(kiln_live_page_read(dir, &live, &err), KILN_OK);
    assert_int_equal(live.saving, 0);
    kiln_live_page_close(page);
    assert_int_equal(access(page_path, F_OK), -1);
    assert_int_equal(kiln_live_page_read(dir, &live, &err), KILN_E_IO);
    assert_string_equal(kiln_live_phase_name(KILN_LIVE_SANITY), "sanity");
}

/* A process that was killed leaves its page; nobody is there, not even when the pid is used
 * again. */
static void test_a_killed_run_is_dead(void **state)
{
    KilnLiveSnapshot live;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)open_page();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(kiln_live_page_read(dir, &live, NULL), KILN_OK);
    assert_int_equal(live.run.pid, pid);
    assert_false(kiln_live_alive(&live));
    live.run.pid = 1; /* some other process, that began at another time */
    assert_false(kiln_live_alive(&live));
}

typedef struct Writer {
    KilnLivePage *page;
    volatile bool stop;
} Writer;

/* Every member of a page that it tells is the same number. It rests between two tellings, as a
 * run does that has a batch to compute. */
static void *tell_numbers(void *ctx)
{
    Writer *writer = ctx;

    for (int64_t i = 1; !writer->stop; i++) {
        const KilnLivePosition at = {
            .epoch = i, .step = i, .batch = i, .batches = i, .eval_batch = i, .evals = i
        };
        KilnLiveRates rates = { .samples_per_s = (double)i, .samples = i };

        kiln_live_page_write_position(writer->page, &at);
        kiln_live_page_write_rates(writer->page, &rates);
        for (volatile int rest = 0; rest < 5000; rest++)
            ;
    }
    return NULL;
}

static void test_no_look_is_torn(void **state)
{
    Writer writer = { .page = open_page() };
    pthread_t thread;
    int64_t last = 0, seen = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, tell_numbers, &writer), 0);
    const double start = kiln_clock();

    for (int i = 0; i < 20000 || (seen <= 100 && kiln_clock() - start < 30.0); i++) {
        KilnLiveSnapshot live;

        if (kiln_live_page_read(dir, &live, NULL) < 0)
            continue;
        assert_int_equal(live.at.epoch, live.at.step);
        assert_int_equal(live.at.epoch, live.at.evals);
        assert_int_equal(live.at.batch, live.at.batches);
        assert_int_equal((int64_t)live.rates.samples_per_s, live.rates.samples);
        assert_true(live.at.epoch - live.rates.samples <= 1);
        assert_true(live.at.epoch >= last);
        seen += live.at.epoch > last;
        last = live.at.epoch;
    }
    writer.stop = true;
    pthread_join(thread, NULL);
    kiln_live_page_close(writer.page);
    assert_true(seen > 100);
}

static void write_page(const void *bytes, size_t size)
{
    int fd = open(page_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

/* Cut short anywhere, any byte changed, something else in its place: an error or a page that is
 * sound, never more. */
static void test_damaged_pages(void **state)
{
    unsigned char bytes[4096], changed[4096];
    KilnLivePage *page = open_page();
    KilnLiveSnapshot live;
    int fd = open(page_path, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof(bytes));

    (void)state;
    assert_true(size > 100);
    close(fd);
    kiln_live_page_close(page);
    for (ssize_t n = 0; n < size; n += 7) {
        write_page(bytes, (size_t)n);
        assert_true(kiln_live_page_read(dir, &live, NULL) < 0);
    }
    for (ssize_t i = 0; i < size; i++) {
        memcpy(changed, bytes, (size_t)size);
        changed[i] = (unsigned char)(changed[i] ^ 0x81);
        write_page(changed, (size_t)size);
        if (kiln_live_page_read(dir, &live, NULL) < 0)
            continue;
        assert_in_range(live.rates.n_metrics, 0, KILN_LIVE_METRICS);
        assert_true(strlen(live.run.label) < KILN_LIVE_LABEL);
        (void)kiln_live_alive(&live);
    }
    write_page(bytes, (size_t)size);
    assert_int_equal(kiln_live_page_read(dir, &live, NULL), KILN_OK);
    assert_int_equal(unlink(page_path), 0);
    assert_int_equal(mkfifo(page_path, 0666), 0);
    assert_true(kiln_live_page_read(dir, &live, NULL) < 0);
    assert_int_equal(unlink(page_path), 0);
    assert_int_equal(symlink("/etc/passwd", page_path), 0);
    assert_true(kiln_live_page_read(dir, &live, NULL) < 0);
}

/* Of this thread alone: what else the machine does is not counted. */
static double processor_seconds(void)
{
    struct timespec at;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at), 0);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Telling is for every batch. */
static void test_telling_is_cheap(void **state)
{
    enum { ROUNDS = 20, TIMES = 20000 };
    KilnLivePage *page = open_page();
    KilnLivePosition at = { 0 };
    double each = 1.0; /* in the round that was disturbed least */

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        double start = processor_seconds();

        for (int i = 0; i < TIMES; i++) {
            at.batch = i;
            kiln_live_page_write_position(page, &at);
        }
        each = fmin(each, (processor_seconds() - start) / TIMES);
    }
    kiln_live_page_close(page);
    print_message("a telling takes %.1f ns\n", 1e9 * each);
    assert_true(each < 1e-6);
    kiln_live_page_write_position(NULL, &at);
    kiln_live_page_saving(NULL, true);
    kiln_live_page_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_told_is_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_killed_run_is_dead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_look_is_torn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_telling_is_cheap, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
