/* How many jobs the local launcher runs at a time, by what they need and say that they will take.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kiln.h"
#include "kiln/usage.h"
#include "tests/support/components/built_component.h"

enum { JOBS = 4 };

/* Jobs that say "built", and end when a line comes from `release`. */
typedef struct Jobs {
    size_t next, running, most;
    int64_t declared, found, shared; /* memory of each: before it starts, once it is built */
    bool built[JOBS];
    size_t awaited; /* jobs end once so many are built at a time */
    int release[2];
} Jobs;

static KilnStatus next(void *ctx, KilnNextJob *ret, size_t *ret_job, KilnError *err)
{
    Jobs *jobs = ctx;

    (void)err;
    *ret = jobs->next < JOBS ? KILN_NEXT_JOB : KILN_NEXT_NONE;
    *ret_job = jobs->next;
    jobs->next += jobs->next < JOBS;
    return KILN_OK;
}

static int run(void *ctx, size_t job, int report)
{
    Jobs *jobs = ctx;
    char byte;

    (void)job;
    if (write(report, "built", 5) != 5)
        return 1;
    return read(jobs->release[0], &byte, 1) == 1 ? KILN_JOB_EXIT_OK : 1;
}

static KilnStatus started(void *ctx, size_t job, int64_t pid, KilnError *err)
{
    Jobs *jobs = ctx;

    (void)job;
    (void)pid;
    (void)err;
    if (++jobs->running > jobs->most)
        jobs->most = jobs->running;
    return KILN_OK;
}

static KilnStatus reported(void *ctx, size_t job, const char *bytes, size_t size,
                           const char **ret_reply, KilnError *err)
{
    Jobs *jobs = ctx;
    size_t built = 0;

    (void)bytes;
    (void)size;
    (void)ret_reply;
    (void)err;
    jobs->built[job] = true;
    for (size_t i = 0; i < JOBS; i++)
        built += jobs->built[i];
    if (built == jobs->awaited) /* all that will run at a time */
        for (size_t i = 0; i < JOBS; i++)
            assert_int_equal(write(jobs->release[1], "x", 1), 1);
    return KILN_OK;
}

static KilnStatus ended(void *ctx, size_t job, const KilnJobEnd *end, KilnError *err)
{
    Jobs *jobs = ctx;

    (void)job;
    (void)err;
    assert_int_equal(end->status, KILN_JOB_OK);
    jobs->running--;
    return KILN_OK;
}

static KilnJobNeeds needs(void *ctx, size_t job)
{
    const Jobs *jobs = ctx;

    return (KilnJobNeeds) { .memory = jobs->built[job] ? jobs->found : jobs->declared };
}

static void tick(void *ctx)
{
    (void)ctx;
}

static bool no(void *ctx, size_t job)
{
    (void)ctx;
    (void)job;
    return false;
}

static KilnStatus fork_loaded(void *ctx, size_t job, const int ends[2], int64_t *ret_pid,
                              KilnError *err)
{
    (void)ctx;
    (void)job;
    (void)ends;
    (void)err;
    *ret_pid = 0;
    return KILN_OK;
}

static int64_t shared(void *ctx, size_t job)
{
    (void)job;
    return ((const Jobs *)ctx)->shared;
}

static int64_t held(void *ctx)
{
    return ((const Jobs *)ctx)->shared;
}

/* The most jobs that ran at a time. */
static size_t launch(Jobs *jobs)
{
    static const volatile int stop = 0;
    char *const options[] = { "n_jobs=4" };
    const KilnLaunch with = {
        .ctx = jobs,
        .next = next,
        .run = run,
        .started = started,
        .reported = reported,
        .ended = ended,
        .tick = tick,
        .stop = &stop,
        .needs = needs,
        .stops = no,
        .n_jobs = 4,
        .loading = no,
        .fork_loaded = fork_loaded,
        .shared = shared,
        .held = held,
    };
    KilnError err = { 0 };
    Built built;

    assert_int_equal(pipe(jobs->release), 0);
    if (build_words(&built, KILN_KIND_LAUNCHER, "local", options, 1, &err) < 0)
        fail_msg("%s", err.text);
    const KilnLauncherOps *ops = kiln_instance_component(built.instance)->ops.launcher;
    alarm(60); /* jobs that wait for each other */
    if (ops->launch(built.instance, &with, &err) < 0)
        fail_msg("%s", err.text);
    alarm(0);
    built_free(&built);
    close(jobs->release[0]);
    close(jobs->release[1]);
    return jobs->most;
}

static void test_declared(void **state)
{
    const int64_t each = kiln_usage_now().available / 5 * 2;
    Jobs jobs = { .declared = each, .found = each, .awaited = 2 };

    (void)state;
    assert_int_equal(launch(&jobs), 2);
}

/* The second job waits until the first one says what it will take. */
static void test_found(void **state)
{
    Jobs large = { .found = kiln_usage_now().available / 3 * 2, .awaited = 1 };
    Jobs small = { .found = 1, .awaited = JOBS };

    (void)state;
    assert_int_equal(launch(&large), 1);
    assert_int_equal(launch(&small), JOBS);
}

/* What is shared counts once. */
static void test_shared(void **state)
{
    const int64_t all = kiln_usage_now().available;
    Jobs jobs = { .found = all / 2, .shared = all / 2 - 1, .awaited = JOBS };
    Jobs alone = { .found = all / 2 + all / 8, .shared = 1, .awaited = 1 };

    (void)state;
    assert_int_equal(launch(&jobs), JOBS);
    assert_int_equal(launch(&alone), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared),
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
