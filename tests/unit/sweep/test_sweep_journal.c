/* The journal of a sweep: torn and foreign lines, its owner, jobs read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/file.h"
#include "sweep/records.h"
#include "base/system/journal.h"

static char dir[64];

static int make_dir(void **unused)
{
    (void)unused;
    snprintf(dir, sizeof(dir), "/tmp/kiln-journal-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **unused)
{
    (void)unused;
    return kiln_path_remove(dir, NULL) < 0;
}

static void write_journal(const char *text)
{
    char *path = kiln_path_join(dir, KILN_JOURNAL_FILE);

    assert_int_equal(kiln_file_write(path, text, strlen(text), NULL), KILN_OK);
    free(path);
}

static KilnJournal *open_journal(void)
{
    KilnJournal *journal = NULL;
    KilnError err = { 0 };

    if (kiln_journal_open(dir, &journal, &err) < 0)
        fail_msg("%s", err.text);
    return journal;
}

/* The jobs in the journal. */
static KilnReplay replay(KilnJobs *jobs, size_t *skipped, KilnStatus want)
{
    KilnJournal *journal = open_journal();
    KilnReplay replayed = { .jobs = jobs };
    KilnError err = { 0 };

    assert_int_equal(kiln_journal_replay(journal, kiln_replay_record, &replayed, skipped, &err),
                     want);
    kiln_replay_end(&replayed);
    kiln_journal_close(journal);
    return replayed;
}

#define BEGUN                                                                                      \
    "{\"event\":\"begun\",\"cwd\":\"/x\",\"config_name\":\"c\",\"arguments\":[\"lr=1,2\"]}\n"
#define SUBMITTED(n, lr)                                                                           \
    "{\"event\":\"submitted\",\"job\":" n ",\"dir\":\"" n "\",\"overrides\":[\"lr=" lr "\"]}\n"
#define STARTED(n) "{\"event\":\"started\",\"job\":" n "}\n"
#define ENDED(n, status)                                                                           \
    "{\"event\":\"ended\",\"job\":" n ",\"status\":\"" status "\",\"reason\":\"r\",\"seconds\":2," \
    "\"metrics\":{\"val/loss\":{\"last\":null,\"best\":0.5,\"mode\":\"min\"}}}\n"

static void jobs_come_back(void **unused)
{
    KilnJobs jobs = { .items = NULL };
    size_t skipped;

    (void)unused;
    write_journal(BEGUN SUBMITTED("0", "1") SUBMITTED("1", "2") SUBMITTED("2", "3") STARTED("0")
                      ENDED("0", "failed") STARTED("0") ENDED("0", "ok") STARTED("1"));
    KilnReplay replayed = replay(&jobs, &skipped, KILN_OK);
    assert_true(replayed.started);
    assert_string_equal(replayed.start.cwd, "/x");
    assert_string_equal(replayed.start.arguments[0], "lr=1,2");
    assert_int_equal(skipped, 0);
    assert_int_equal(jobs.count, 3);
    assert_int_equal(jobs.items[0].status, KILN_JOB_OK);
    assert_true(jobs.items[0].seconds == 4.0);
    assert_true(kiln_job_metric(&jobs.items[0], "val/loss")->best == 0.5);
    assert_true(kiln_job_metric(&jobs.items[0], "val/loss")->last !=
                kiln_job_metric(&jobs.items[0], "val/loss")->last); /* NaN */
    assert_int_equal(jobs.items[1].status, KILN_JOB_INTERRUPTED);
    assert_int_equal(jobs.items[2].status, KILN_JOB_WAITING);
    kiln_jobs_release(&jobs);
}

static void torn_and_foreign_lines(void **unused)
{
    KilnJobs jobs = { .items = NULL };
    size_t skipped, size;
    char *path = kiln_path_join(dir, KILN_JOURNAL_FILE), *text;

    (void)unused;
    write_journal(
        BEGUN SUBMITTED("0", "1") "{\"event\":\"danced\",\"job\":0}\n"
                                  "no JSON at all\n[1, 2]\n{\"half\":\n"
                                  "{\"event\":7}\n" ENDED("0", "sideways") ENDED("9", "ok")
                                      ENDED("0", "ok") "{\"event\":\"ended\",\"job\":0,\"sta");
    (void)replay(&jobs, &skipped, KILN_OK);
    assert_int_equal(skipped, 3);
    assert_int_equal(jobs.count, 1);
    assert_int_equal(jobs.items[0].status, KILN_JOB_OK);
    kiln_jobs_release(&jobs);

    /* The torn line is gone, so that the next one is whole. */
    KilnJournal *journal = open_journal();
    KilnError err = { 0 };
    assert_int_equal(kiln_journal_append(journal, kiln_record_plain("finished"), &err), KILN_OK);
    assert_int_equal(kiln_journal_sync(journal, &err), KILN_OK);
    kiln_journal_close(journal);
    assert_int_equal(kiln_file_read(path, 1 << 20, &text, &size, NULL), KILN_OK);
    assert_null(strstr(text, "\"sta{"));
    assert_non_null(strstr(text, "\n{\"event\":\"finished\""));
    assert_int_equal(text[size - 1], '\n');
    free(text);
    free(path);
}

static void a_journal_that_lacks_jobs(void **unused)
{
    KilnJobs jobs = { .items = NULL };
    size_t skipped;

    (void)unused;
    write_journal(BEGUN SUBMITTED("0", "1") SUBMITTED("2", "3"));
    (void)replay(&jobs, &skipped, KILN_E_FORMAT);
    kiln_jobs_release(&jobs);
}

static void only_one_process_owns_it(void **unused)
{
    KilnJournal *other = NULL;
    KilnError err = { 0 };
    int ends[2];
    char byte = 0;

    (void)unused;
    write_journal(BEGUN);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        KilnJournal *journal = NULL;
        bool ok = kiln_journal_open(dir, &journal, NULL) >= 0;

        (void)!write(ends[1], &byte, ok);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(kiln_journal_open(dir, &other, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "another process"));
    assert_true(kiln_journal_is_owned(dir));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    close(ends[1]);
    assert_false(kiln_journal_is_owned(dir));
    other = open_journal(); /* looking did not lock it */
    assert_true(kiln_journal_is_owned(dir));
    kiln_journal_close(other);
}

static KilnStatus count_record(void *ctx, const json_t *line, KilnError *err)
{
    (void)line;
    (void)err;
    ++*(int *)ctx;
    return KILN_OK;
}

static void it_is_read_while_another_process_writes(void **unused)
{
    int count = 0;

    (void)unused;
    write_journal("{\"event\":\"complete\"}\nno record\n{\"event\":\"complete\"}\n{\"event\"");
    KilnJournal *owner = open_journal(); /* which cuts the torn line off */
    write_journal("{\"event\":\"complete\"}\nno record\n{\"event\":\"complete\"}\n{\"event\"");
    assert_int_equal(kiln_journal_read(dir, count_record, &count, NULL), KILN_OK);
    assert_int_equal(count, 2);
    write_journal("{\"event\"");
    assert_int_equal(kiln_journal_read(dir, count_record, &count, NULL), KILN_OK);
    assert_int_equal(count, 2);
    assert_int_equal(kiln_journal_read("/nowhere", count_record, &count, NULL), KILN_E_IO);
    kiln_journal_close(owner);
}

static void what_is_written_reads_back(void **unused)
{
    static const char *const overrides[] = { "lr=0.1", "name='a b'", NULL };
    static const char *const arguments[] = { "lr=0.1,0.2", NULL };
    KilnJobs made = { .items = NULL }, read = { .items = NULL };
    KilnJobMetric metric = {
        .name = "val/accuracy", .last = 0.1, .best = 1.0 / 3.0, .mode = KILN_MODE_MAX
    };
    KilnSweepStart begin = { .cwd = "/here", .config_name = "config", .arguments = arguments };
    KilnSpace space = { .axes = NULL };
    KilnObjective objective = { .metric = "val/loss", .mode = KILN_MODE_MIN };
    KilnTrialReport report = { .epoch = 2, .step = 8, .values = (const double[]) { 0.5 } };
    const char *const variables[] = { "RATE=0.1", "UNSET", NULL };
    KilnError err = { 0 };
    size_t skipped;

    (void)unused;
    write_journal("");
    KilnJob *job = kiln_jobs_add(&made, overrides, 2, "a/0");
    assert_non_null(job);
    *job = (KilnJob) { .overrides = job->overrides,
                       .dir = job->dir,
                       .status = KILN_JOB_TIMEOUT,
                       .reason = "timeout after 90s",
                       .stopping = "why",
                       .halted = "1.json",
                       .metrics = &metric,
                       .n_metrics = 1 };
    KilnJournal *journal = open_journal();
    assert_int_equal(
        kiln_journal_append(journal,
                            kiln_record_begun(&begin,
                                              json_pack("[s, {s:s}]", "/old.so", "path", "/new.so"),
                                              &space, &objective, false),
                            &err),
        KILN_OK);
    assert_int_equal(kiln_journal_append(journal, kiln_record_submitted(0, job), &err), KILN_OK);
    assert_int_equal(kiln_journal_append(journal, kiln_record_started(0, job, 77), &err), KILN_OK);
    assert_int_equal(kiln_journal_append(
                         journal,
                         kiln_record_reported(0, &report, (const KilnMode[]) { KILN_MODE_MIN }, 1),
                         &err),
                     KILN_OK);
    assert_int_equal(kiln_journal_append(journal, kiln_record_stopping(0, job), &err), KILN_OK);
    assert_int_equal(kiln_journal_append(journal, kiln_record_ended(0, job, 1.25), &err), KILN_OK);
    assert_int_equal(kiln_journal_append(journal, kiln_record_environment(variables), &err),
                     KILN_OK);
    job->parent = 1;
    job->added = "2.json";
    assert_int_equal(kiln_journal_append(journal, kiln_record_submitted(1, job), &err), KILN_OK);
    kiln_journal_close(journal);

    KilnReplay replayed = replay(&read, &skipped, KILN_OK);
    assert_int_equal(skipped, 0);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.items[0].n_reports, 1);
    assert_int_equal(read.items[0].reports[0]->epoch, 2);
    assert_int_equal(read.items[0].reports[0]->step, 8);
    assert_true(read.items[0].reports[0]->values[0] == 0.5);
    assert_int_equal(read.items[0].modes[0], KILN_MODE_MIN);
    assert_null(read.items[0].stopping); /* carried out */
    assert_string_equal(read.items[0].halted, "1.json");
    assert_null(read.items[0].added);
    assert_int_equal(read.items[1].parent, 1);
    assert_string_equal(read.items[1].added, "2.json");
    assert_non_null(read.items[0].began);
    assert_non_null(read.items[0].finished);
    assert_string_equal(replayed.start.plugins[0], "/old.so"); /* of an earlier version */
    assert_string_equal(replayed.start.plugins[1], "/new.so");
    assert_null(replayed.start.plugins[2]);
    assert_int_equal(replayed.n_variables, 2);
    assert_string_equal(replayed.variables[0], "RATE=0.1");
    free(replayed.variables);
    assert_string_equal(read.items[0].line, "lr=0.1 name='a b'");
    assert_string_equal(read.items[0].dir, "a/0");
    assert_int_equal(read.items[0].status, KILN_JOB_TIMEOUT);
    assert_string_equal(read.items[0].reason, "timeout after 90s");
    assert_true(read.items[0].metrics[0].best == 1.0 / 3.0 &&
                read.items[0].metrics[0].mode == KILN_MODE_MAX);
    kiln_jobs_release(&made);
    kiln_jobs_release(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_come_back),
        cmocka_unit_test(torn_and_foreign_lines),
        cmocka_unit_test(a_journal_that_lacks_jobs),
        cmocka_unit_test(only_one_process_owns_it),
        cmocka_unit_test(it_is_read_while_another_process_writes),
        cmocka_unit_test(what_is_written_reads_back),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
