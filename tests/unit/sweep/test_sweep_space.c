/* Points of a grid, jobs by their overrides, ranking, results, reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system/file.h"
#include "config/override/override.h"
#include "sweep/jobs/job_report.h"
#include "sweep/sweep_state.h"

extern const KilnComponent kiln_sweeper_grid;

static const char *const lr[] = { "lr=1", "lr=2" };
static const char *const seed[] = { "seed=1", "seed=2", "seed=3" };
static const char *const model[] = { "model=mlp" };

/* ---- The grid -------------------------------------------------------------------------- */

static void check_points(const KilnAxis axes[4], size_t n, const char *want)
{
    const KilnSweeperOps *ops = kiln_sweeper_grid.ops.sweeper;
    const KilnAxis *list[] = { &axes[0], &axes[1], &axes[2], &axes[3] };
    KilnSpace space = { .axes = list, .count = n };
    KilnHistory history = { .space = &space };
    KilnAxisValue point[4];
    KilnSuggestion suggestion = { .point = point };
    KilnText text = { 0 };

    kiln_text_append(&text, "");
    for (;; history.count++) {
        memset(point, 0, sizeof(point));
        assert_int_equal(ops->ask(NULL, &history, &suggestion, NULL), KILN_OK);
        if (suggestion.advice == KILN_ADVICE_DONE)
            break;
        for (size_t i = 0; i < n; i++)
            kiln_text_printf(&text, "%zu", point[axes[i].leader].index);
        kiln_text_char(&text, ' ');
    }
    assert_int_equal(history.count, ops->count(NULL, &space));
    assert_string_equal(text.data != NULL ? text.data : "", want);
    kiln_text_release(&text);
}

static KilnAxis choice(const char *const *overrides, size_t count, size_t leader)
{
    return (KilnAxis) {
        .kind = KILN_AXIS_CHOICE, .overrides = overrides, .count = count, .leader = leader
    };
}

static void the_last_axis_is_the_fastest(void **unused)
{
    KilnAxis axes[4] = { choice(lr, 2, 0), choice(model, 1, 1), choice(seed, 3, 2) };

    (void)unused;
    check_points(axes, 3, "000 001 002 100 101 102 ");
    check_points(axes, 1, "0 1 ");
    check_points(axes, 0, " ");
    axes[1].count = 0;
    check_points(axes, 3, "");
}

static void zipped_axes_vary_together(void **unused)
{
    KilnAxis axes[] = { choice(lr, 2, 0), choice(seed, 3, 1), choice(lr, 2, 0),
                        choice(seed, 3, 1) };

    (void)unused;
    check_points(axes, 4, "0000 0101 0202 1010 1111 1212 ");
}

/* The second axis has values for lr=2, the last one for seed=1 and seed=3. */
static void inactive_axes_have_one_value(void **unused)
{
    static const bool for_lr_2[] = { false, true }, for_odd_seeds[] = { true, false, true };
    KilnAxis axes[4] = { choice(lr, 2, 0), choice(seed, 3, 1), choice(lr, 2, 2), choice(lr, 2, 3) };

    (void)unused;
    axes[1].active_for = for_lr_2;
    check_points(axes, 2, "00 10 11 12 ");
    check_points(axes, 3, "000 001 100 101 110 111 120 121 ");
    axes[3].active_for = for_odd_seeds;
    axes[3].parent = 1;
    check_points(axes, 4, "0000 0010 1000 1001 1010 1011 1100 1110 1200 1201 1210 1211 ");
    axes[1].count = 0;
    check_points(axes, 2, "00 ");
}

static void a_space_too_large_to_count(void **unused)
{
    KilnAxis axes[5];
    const KilnAxis *list[5];
    const KilnSpace space = { .axes = list, .count = 5 };

    (void)unused;
    for (size_t i = 0; i < 5; i++) {
        axes[i] = choice(NULL, (size_t)1 << 16, i);
        list[i] = &axes[i];
    }
    assert_true(kiln_sweeper_grid.ops.sweeper->count(NULL, &space) == SIZE_MAX);
}

/* ---- Axes ----------------------------------------------------------------------------------- */

/* Values at 0, 1/4, 1/2, 3/4 and just below 1, as overrides. */
static void check_axis(const KilnAxis *axis, const char *want)
{
    static const double at[] = { 0.0, 0.25, 0.5, 0.75, 1.0 - 0x1p-53 };
    const KilnSpace space = { .axes = &axis, .count = 1 };
    const char *override[1];
    size_t n;
    KilnArena arena = { 0 };
    KilnText text = { 0 };

    for (size_t i = 0; i < KILN_COUNT(at); i++) {
        KilnAxisValue value = kiln_axis_value(axis, at[i]);

        assert_true(kiln_axis_accepts(axis, value));
        assert_true(kiln_space_overrides(&space, &value, &arena, override, &n));
        assert_int_equal(n, 1);
        kiln_text_printf(&text, "%s%s", i > 0 ? " " : "", override[0]);
    }
    assert_string_equal(text.data, want);
    kiln_text_release(&text);
    kiln_arena_release(&arena);
}

static void axes_have_values(void **unused)
{
    const KilnAxis choices = choice(seed, 3, 0);
    KilnAxis axis = { .key = "k", .kind = KILN_AXIS_FLOAT, .low = -1, .high = 3 };

    (void)unused;
    check_axis(&choices, "seed=1 seed=1 seed=2 seed=3 seed=3");
    check_axis(&axis, "k=-1.0 k=0.0 k=1.0 k=2.0 k=2.9999999999999996");
    axis = (KilnAxis) { .key = "k", .kind = KILN_AXIS_FLOAT, .low = 1, .high = 16, .log = true };
    check_axis(&axis, "k=1.0 k=2.0 k=4.0 k=8.0 k=15.999999999999995");
    axis = (KilnAxis) { .key = "k", .kind = KILN_AXIS_INT, .low = 1, .high = 4 };
    check_axis(&axis, "k=1 k=2 k=3 k=4 k=4");
    axis.log = true; /* each has the share of its magnitudes: 0.5 to 1.5 is half of 0.5 to 4.5 */
    check_axis(&axis, "k=1 k=1 k=2 k=3 k=4");
}

static void axes_refuse_other_values(void **unused)
{
    const KilnAxis choices = choice(seed, 3, 0);
    KilnAxis axis = { .key = "k", .kind = KILN_AXIS_INT, .low = 1, .high = 4 };

    (void)unused;
    assert_false(kiln_axis_accepts(&choices, (KilnAxisValue) { .index = 3 }));
    assert_false(kiln_axis_accepts(&axis, (KilnAxisValue) { .number = 5 }));
    assert_false(kiln_axis_accepts(&axis, (KilnAxisValue) { .number = 1.5 }));
    assert_false(kiln_axis_accepts(&axis, (KilnAxisValue) { .number = (double)NAN }));
}

static void overrides_are_located(void **unused)
{
    KilnAxis axes[] = {
        choice(seed, 3, 0),
        { .key = "lr", .kind = KILN_AXIS_FLOAT, .low = 0.1, .high = 3, .leader = 1 }
    };
    const KilnSpace space = { .axes = (const KilnAxis *[]) { &axes[0], &axes[1] }, .count = 2 };
    KilnAxisValue point[2];

    (void)unused;
    assert_true(kiln_space_locate(&space, (const char *[]) { "seed=2", "lr=0.25", NULL }, point));
    assert_int_equal(point[0].index, 1);
    assert_true(point[1].number == 0.25);
    assert_false(kiln_space_locate(&space, (const char *[]) { "seed=4", "lr=0.25", NULL }, point));
    assert_false(kiln_space_locate(&space, (const char *[]) { "seed=2", "lr=9", NULL }, point));
    assert_false(kiln_space_locate(&space, (const char *[]) { "seed=2", "wd=1", NULL }, point));
    assert_false(kiln_space_locate(&space, (const char *[]) { "seed=2", NULL }, point));
    assert_false(
        kiln_space_locate(&space, (const char *[]) { "seed=2", "lr=1", "x=1", NULL }, point));
}

static void overrides_of_inactive_axes_are_left_out(void **unused)
{
    static const bool for_seed_2[] = { false, true, false };
    KilnAxis axes[] = { choice(seed, 3, 0), choice(lr, 2, 1), choice(model, 1, 2) };
    const KilnSpace space = { .axes = (const KilnAxis *[]) { &axes[0], &axes[1], &axes[2] },
                              .count = 3 };
    KilnAxisValue point[3] = { { .index = 1 }, { .index = 1 }, { .index = 0 } };
    KilnArena arena = { 0 };
    const char *overrides[4];
    size_t n;

    (void)unused;
    axes[1].active_for = for_seed_2;
    assert_true(kiln_space_overrides(&space, point, &arena, overrides, &n));
    assert_int_equal(n, 3);
    assert_string_equal(overrides[1], "lr=2");
    point[0].index = 2;
    assert_true(kiln_space_overrides(&space, point, &arena, overrides, &n));
    assert_int_equal(n, 2);
    assert_string_equal(overrides[1], "model=mlp");
    assert_true(
        kiln_space_locate(&space, (const char *[]) { "seed=2", "lr=2", "model=mlp", NULL }, point));
    assert_int_equal(point[1].index, 1);
    assert_true(kiln_space_locate(&space, (const char *[]) { "seed=3", "model=mlp", NULL }, point));
    assert_false(
        kiln_space_locate(&space, (const char *[]) { "seed=3", "lr=2", "model=mlp", NULL }, point));
    assert_false(
        kiln_space_locate(&space, (const char *[]) { "seed=2", "model=mlp", NULL }, point));
    kiln_arena_release(&arena);
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

static void points_claim_jobs_once(void **unused)
{
    KilnJobs jobs = { .items = NULL };
    char text[32];
    const char *override[] = { text };

    (void)unused;
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "seed=%d", i % 500);
        assert_non_null(kiln_jobs_add(&jobs, override, 1, "x"));
    }
    snprintf(text, sizeof(text), "seed=%d", 7);
    assert_ptr_equal(kiln_jobs_claim(&jobs, override, 1), &jobs.items[7]);
    assert_ptr_equal(kiln_jobs_claim(&jobs, override, 1), &jobs.items[507]);
    assert_int_equal(jobs.count, 1000);
    KilnJob *fresh = kiln_jobs_claim(&jobs, override, 1);
    assert_ptr_equal(fresh, &jobs.items[1000]);
    assert_int_equal(jobs.count, 1001);
    assert_null(fresh->dir);
    kiln_jobs_release(&jobs);
}

static void overrides_are_split(void **unused)
{
    const char *key, *value;

    (void)unused;
    assert_int_equal(kiln_override_split("++model.depth=3=4", &key, &value), strlen("model.depth"));
    assert_true(strncmp(key, "model.depth=", 12) == 0);
    assert_string_equal(value, "3=4");
    assert_int_equal(kiln_override_split("~norm", &key, &value), 5);
    assert_string_equal(value, "");
}

static void values_are_quoted(void **unused)
{
    static const char *const cases[][2] = {
        { "plain", "k='plain'" },     { "it's", "k='it\\'s'" }, { "a\\b", "k='a\\b'" },
        { "end\\", "k='end\\\\'" },   { "", "k=''" },           { "\\'", "k='\\\\\\''" },
        { "a b,c=d", "k='a b,c=d'" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnText text = { 0 };

        kiln_override_quote(&text, "k", cases[i][0]);
        assert_string_equal(text.data, cases[i][1]);
        kiln_text_release(&text);
    }
}

/* ---- Results ------------------------------------------------------------------------ */

/* Four jobs: two good ones, one without the metric, one that failed. */
static void fill(KilnSweep *sweep, KilnJobMetric metrics[4])
{
    static const char *const overrides[4][3] = {
        { "lr=1", "name='a,b'" }, { "lr=2", "name=c" }, { "lr=3", "name=c" }, { "lr=4", "name=c" }
    };
    static const double best[4] = { 0.25, 0.75, NAN, 0.9 };

    *sweep = (KilnSweep) { .metric = "val/accuracy" };
    for (size_t i = 0; i < 4; i++) {
        KilnJob *job = kiln_jobs_add(&sweep->jobs, overrides[i], 2, "x");

        assert_non_null(job);
        metrics[i] = (KilnJobMetric) {
            .name = "val/accuracy", .last = 0.1, .best = best[i], .mode = KILN_MODE_MAX
        };
        job->status = i == 3 ? KILN_JOB_FAILED : KILN_JOB_OK;
        job->reason = i == 3 ? "exit status 1" : "";
        job->metrics = &metrics[i];
        job->n_metrics = i == 2 ? 0 : 1;
    }
}

static void jobs_are_ranked(void **unused)
{
    KilnSweep sweep;
    KilnJobMetric metrics[4];
    size_t order[4];

    (void)unused;
    fill(&sweep, metrics);
    assert_int_equal(kiln_sweep_rank(&sweep, order), 2);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    /* Asked for the other direction: only the last values are known. */
    sweep.metric_mode = KILN_MODE_MIN;
    metrics[0].last = 0.2;
    assert_int_equal(kiln_sweep_rank(&sweep, order), 2);
    assert_int_equal(order[0], 1);
    /* Of a metric that declares no direction nothing is best, unless the sweep says. */
    for (size_t i = 0; i < 4; i++)
        metrics[i].mode = KILN_MODE_AUTO;
    assert_int_equal(kiln_sweep_rank(&sweep, order), 2);
    assert_int_equal(order[0], 1);
    sweep.metric_mode = KILN_MODE_AUTO;
    assert_int_equal(kiln_sweep_rank(&sweep, order), 0);
    kiln_jobs_release(&sweep.jobs);
}

static void results_are_written(void **unused)
{
    char dir[] = "/tmp/kiln-results-XXXXXX", *text;
    KilnSweep sweep;
    KilnJobMetric metrics[4];
    KilnError err = { 0 };
    size_t size;

    (void)unused;
    fill(&sweep, metrics);
    sweep.path = mkdtemp(dir);
    assert_int_equal(kiln_results_write(&sweep, &err), KILN_OK);
    char *path = kiln_path_join(dir, "results.csv");
    assert_int_equal(kiln_file_read(path, 1 << 20, &text, &size, NULL), KILN_OK);
    assert_string_equal(text, "job,status,seconds,rank,reason,repeats,lr,name,val/accuracy,"
                              "val/accuracy_best\n"
                              "0,ok,0.000,2,,,1,\"'a,b'\",0.1,0.25\n"
                              "1,ok,0.000,1,,,2,c,0.1,0.75\n"
                              "2,ok,0.000,,,,3,c,,\n"
                              "3,failed,0.000,,exit status 1,,4,c,0.1,0.9\n");
    free(text);
    free(path);
    path = kiln_path_join(dir, "results.json");
    assert_true(kiln_is_file(path));
    free(path);
    assert_int_equal(kiln_path_remove(dir, NULL), KILN_OK);
    kiln_jobs_release(&sweep.jobs);
}

/* ---- Reports ------------------------------------------------------------------------ */

static void reports_come_in_pieces(void **unused)
{
    const char report[] =
        "{\"epoch\":1,\"step\":4,\"max_epochs\":4,\"done\":0.25,\"metric\":\"val/"
        "loss\",\"value\":2}\n"
        "rubbish\n{\"error\":\"broken\"}\n"
        "{\"epoch\":3,\"step\":12,\"asks\":true,\"metric\":\"val/loss\",\"mode\":\"min\"}\n"
        "{\"epoch\":3,\"step\":12,\"metric\":\"val/loss\",\"value\":7}\n{\"half";
    KilnJobs jobs = { .items = NULL };
    KilnJob *job = kiln_jobs_add(&jobs, lr, 1, "0");
    int asked = 0;

    (void)unused;
    assert_non_null(job);
    for (size_t i = 0; i < strlen(report); i++) {
        asked += kiln_report_read(&jobs.arena, job, report + i, 1);
        if (i == 90) {
            assert_int_equal(job->progress.max_epochs, 4);
            assert_string_equal(job->progress.metric, "val/loss 2");
            assert_true(job->progress.done == 0.25);
        }
    }
    assert_int_equal(asked, 1);
    assert_int_equal(job->progress.epoch, 3);
    assert_true(isnan(job->progress.done));
    assert_string_equal(job->error, "broken");
    /* Values by rising steps: what a resumed job repeats is left out. */
    assert_int_equal(job->n_reports, 2);
    assert_int_equal(job->reports[0]->step, 4);
    assert_true(job->reports[0]->values[0] == 2.0);
    assert_true(isnan(job->reports[1]->values[0]));
    kiln_jobs_release(&jobs);
}

static void reports_fit_the_pipe(void **unused)
{
    char text[3000], got[8192];
    int ends[2];
    KilnReporter reporter = { .metric = "val/loss" };
    KilnMetric metrics[] = {
        { .name = "val/loss_epoch", .value = 0.5, .flags = KILN_LOG_LOWER_IS_BETTER }
    };
    KilnRunProgress progress = { .epoch = 2, .max_epochs = -1, .metrics = metrics, .n_metrics = 1 };
    KilnJobs jobs = { .items = NULL };
    KilnJob *job = kiln_jobs_add(&jobs, lr, 1, "0");

    (void)unused;
    assert_int_equal(pipe(ends), 0);
    reporter.fd = ends[1];
    memset(text, '\n', sizeof(text));
    memcpy(text + 998, "\xc3\xa4", 2);
    memcpy(text + 999, "\xc3\xa4", 2); /* half a character where the text is cut */
    text[998] = 'x';
    text[sizeof(text) - 1] = '\0';
    kiln_report_error(&reporter, text);
    assert_false(kiln_report_progress(&reporter, &progress, (double)NAN));
    close(ends[1]);
    ssize_t n = read(ends[0], got, sizeof(got));
    assert_true(n > 0);
    close(ends[0]);
    assert_false(kiln_report_read(&jobs.arena, job, got, (size_t)n));
    assert_int_equal(strlen(job->error), 999);
    assert_string_equal(job->progress.metric, "val/loss 0.5");
    assert_int_equal(job->progress.epoch, 2);
    assert_int_equal(job->modes[0], KILN_MODE_MIN);
    kiln_jobs_release(&jobs);
}

/* The answer to a report that asks. */
static void check_reply(const char *reply, bool want)
{
    int ends[2];
    KilnRunProgress progress = { .epoch = 1, .max_epochs = 2 };

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    KilnReporter reporter = { .fd = ends[1], .metric = "val/loss", .asks = true };
    if (reply != NULL)
        assert_int_equal(write(ends[0], reply, strlen(reply)), strlen(reply));
    else
        shutdown(ends[0], SHUT_WR); /* the launcher has ended */
    assert_int_equal(kiln_report_progress(&reporter, &progress, 0.5), want);
    close(ends[0]);
    close(ends[1]);
}

static void reports_have_replies(void **unused)
{
    (void)unused;
    check_reply(KILN_REPLY_STOP, true);
    check_reply(KILN_REPLY_CONTINUE, false);
    check_reply(NULL, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_axis_is_the_fastest),
        cmocka_unit_test(zipped_axes_vary_together),
        cmocka_unit_test(inactive_axes_have_one_value),
        cmocka_unit_test(a_space_too_large_to_count),
        cmocka_unit_test(axes_have_values),
        cmocka_unit_test(axes_refuse_other_values),
        cmocka_unit_test(overrides_are_located),
        cmocka_unit_test(overrides_of_inactive_axes_are_left_out),
        cmocka_unit_test(points_claim_jobs_once),
        cmocka_unit_test(overrides_are_split),
        cmocka_unit_test(values_are_quoted),
        cmocka_unit_test(jobs_are_ranked),
        cmocka_unit_test(results_are_written),
        cmocka_unit_test(reports_come_in_pieces),
        cmocka_unit_test(reports_fit_the_pipe),
        cmocka_unit_test(reports_have_replies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
