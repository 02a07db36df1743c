/* Follows a job in the queue: what its files and the state of its task together mean. */
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/clock.h"
#include "kiln/slurm/slurm_tasks.h"

enum { MAX_LOST = 3 /* how often a job is submitted again that Slurm lost */ };

static KilnStatus finish(KilnSlurm *slurm, KilnSlurmTask *task, const KilnJobEnd *end,
                         KilnError *err)
{
    task->ended = true;
    KilnStatus status = slurm->launch->ended(slurm->launch->ctx, task->job, end, err);
    return status >= 0 ? kiln_slurm_record_end(&slurm->record, task->job, err) : status;
}

KilnStatus kiln_slurm_drop(KilnSlurm *slurm, KilnSlurmTask *task, KilnError *err)
{
    task->ended = true;
    return kiln_slurm_record_end(&slurm->record, task->job, err);
}

/* "Slurm job 12_3 ...": how it ended, in Slurm's words. */
static KilnJobEnd end_as(const KilnSlurmTask *task, KilnJobStatus status, const char *what)
{
    KilnJobEnd end = { .status = status };

    if (task->array > 0)
        snprintf(end.reason, sizeof(end.reason), "Slurm job %lld_%zu %s", (long long)task->array,
                 task->job % KILN_SLURM_BLOCK, what);
    else
        snprintf(end.reason, sizeof(end.reason), "its Slurm job %s", what);
    return end;
}

/* Submit it again, unless it is to end. */
static KilnStatus again(KilnSlurm *slurm, KilnSlurmTask *task, const KilnJobEnd *why,
                        KilnError *err)
{
    if (slurm->stops || task->unwanted)
        return finish(slurm, task, why, err);
    KilnStatus status = slurm->launch->requeued(slurm->launch->ctx, task->job, why, err);

    task->array = 0;
    task->begun = false;
    task->missing = 0;
    task->over = 0.0;
    return status;
}

/* The same of one that was lost, as `end` says, unless that has happened too often. */
static KilnStatus again_if_rare(KilnSlurm *slurm, KilnSlurmTask *task, KilnJobEnd *end,
                                KilnError *err)
{
    const size_t n = strlen(end->reason);

    if (++task->lost <= MAX_LOST)
        return again(slurm, task, end, err);
    snprintf(end->reason + n, sizeof(end->reason) - n, ", and %d times before", MAX_LOST);
    return finish(slurm, task, end, err);
}

/* Slurm ended it at the time limit, before it was requeued. */
static KilnStatus end_at_limit(KilnSlurm *slurm, KilnSlurmTask *task, KilnError *err)
{
    const KilnSlurmOptions *options = slurm->options;
    KilnJobEnd end = { .status = KILN_JOB_TIMEOUT };
    const bool more = ++task->timeouts <= options->max_num_timeout;
    char limit[64];

    snprintf(end.reason, sizeof(end.reason), "%s%s", kiln_slurm_limit(options, limit),
             more ? ": submitted again" : "");
    if (!more)
        return finish(slurm, task, &end, err);
    end.status = KILN_JOB_INTERRUPTED;
    return again(slurm, task, &end, err);
}

/* The end of what the script wrote, in one line; "" when it is silent. */
static void read_output(const KilnSlurm *slurm, const KilnSlurmTask *task, char *ret, size_t size)
{
    KilnText path = { 0 };
    FILE *file = NULL;
    char line[160];

    ret[0] = '\0';
    kiln_text_printf(&path, "%s/%lld_%zu.out", slurm->record.dir, (long long)task->array,
                     task->job % KILN_SLURM_BLOCK);
    if (!path.failed)
        file = kiln_file_open(path.data, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (line[0] != '\n')
            snprintf(ret, size, ": %.*s", (int)strcspn(line, "\n"), line);
    if (file != NULL)
        fclose(file);
    kiln_text_release(&path);
}

/* The script has ended, and no process of the job began: a line of `setup` failed, or the program
 * is not on the node. Once others have begun it is rather the node or Slurm that failed. */
static KilnStatus end_before_job(KilnSlurm *slurm, KilnSlurmTask *task, KilnError *err)
{
    KilnJobEnd end = end_as(task, KILN_JOB_FAILED, "ended before the job began");
    const size_t n = strlen(end.reason);

    read_output(slurm, task, end.reason + n, sizeof(end.reason) - n);
    return slurm->any_begun ? again_if_rare(slurm, task, &end, err)
                            : finish(slurm, task, &end, err);
}

/* Slurm's word for why a task is gone is enough to know how the job ended. */
static KilnStatus end_as_slurm_says(KilnSlurm *slurm, KilnSlurmTask *task, const char *state,
                                    bool *ret_known, KilnError *err)
{
    static const struct {
        const char *state;
        KilnJobStatus status;
        const char *what;
    } ends[] = {
        { "CANCELLED", KILN_JOB_INTERRUPTED, "was cancelled" },
        { "DEADLINE", KILN_JOB_TIMEOUT, "reached its deadline" },
        { "OUT_OF_MEMORY", KILN_JOB_FAILED, "ran out of memory (kiln.launcher.mem_gb)" },
        { "NODE_FAIL", KILN_JOB_KILLED, "was lost: its node failed" },
        { "BOOT_FAIL", KILN_JOB_KILLED, "was lost: its node did not boot" },
        { "PREEMPTED", KILN_JOB_KILLED, "was preempted" },
    };

    *ret_known = true;
    if (strcmp(state, "TIMEOUT") == 0)
        return end_at_limit(slurm, task, err);
    for (size_t i = 0; i < KILN_COUNT(ends); i++) {
        KilnJobEnd end = end_as(task, ends[i].status, ends[i].what);

        if (strcmp(state, ends[i].state) == 0)
            return end.status == KILN_JOB_KILLED ? again_if_rare(slurm, task, &end, err)
                                                 : finish(slurm, task, &end, err);
    }
    *ret_known = false;
    return KILN_OK;
}

/* The process has ended by a signal from outside, and Slurm does not run it again. One that was
 * asked to stop has a checkpoint and waits for a resume; one that was killed runs again. */
static KilnStatus end_over(KilnSlurm *slurm, KilnSlurmTask *task, const KilnJobNews *news,
                           KilnError *err)
{
    KilnJobEnd end = news->end;

    return end.status == KILN_JOB_KILLED ? again_if_rare(slurm, task, &end, err)
                                         : finish(slurm, task, &end, err);
}

/* The same, while the task still runs: without its slurmstepd its script does not end. */
static KilnStatus end_stuck(KilnSlurm *slurm, KilnSlurmTask *task, const KilnJobNews *news,
                            KilnError *err)
{
    if (task->over == 0.0)
        task->over = kiln_clock();
    if (kiln_clock() - task->over < kiln_slurm_leave_s)
        return KILN_OK;
    KilnStatus status = kiln_slurm_leave(slurm, task, err);
    return status >= 0 ? end_over(slurm, task, news, err) : status;
}

/* The task waits for an administrator: submit the job again in its place. */
static KilnStatus end_held(KilnSlurm *slurm, KilnSlurmTask *task, KilnError *err)
{
    KilnJobEnd end = end_as(task, KILN_JOB_KILLED, "is held, as Slurm could not launch it");
    KilnStatus status = kiln_slurm_leave(slurm, task, err);

    return status >= 0 ? again_if_rare(slurm, task, &end, err) : status;
}

/* The task is gone: Slurm will not run the job again. */
static KilnStatus end_gone(KilnSlurm *slurm, KilnSlurmTask *task, const char *state,
                           const KilnJobNews *news, KilnError *err)
{
    const bool ended = strcmp(state, "FAILED") == 0 || strcmp(state, "COMPLETED") == 0;
    bool known = false;

    if (slurm->stops && !news->begun)
        return kiln_slurm_drop(slurm, task, err);
    if (slurm->stops && news->over)
        return finish(slurm, task, &news->end, err);
    KilnStatus status = end_as_slurm_says(slurm, task, state, &known, err);
    if (known)
        return status;
    if (news->over)
        return end_over(slurm, task, news, err);
    /* What the job wrote may need a moment to be seen here. */
    if (++task->missing < 2)
        return KILN_OK;
    if (ended && !news->begun)
        return end_before_job(slurm, task, err);
    KilnJobEnd end = end_as(task, KILN_JOB_KILLED,
                            ended ? "ended, and the job wrote no end"
                                  : "is not in the queue any more");
    return again_if_rare(slurm, task, &end, err);
}

/* ---- Following a job ------------------------------------------------------------------------- */

const KilnSlurmEntry *kiln_slurm_entry(const KilnSlurm *slurm, const KilnSlurmTask *task)
{
    return kiln_slurm_queue_find(&slurm->queue, task->array,
                                 (int64_t)(task->job % KILN_SLURM_BLOCK));
}

/* Of a job that a signal from outside ended, the queue says whether it runs again. */
KilnStatus kiln_slurm_collect(KilnSlurm *slurm, KilnSlurmTask *task, KilnJobNews *ret,
                              KilnError *err)
{
    KilnStatus status = slurm->launch->collect(slurm->launch->ctx, task->job, ret, err);

    slurm->any_begun = slurm->any_begun || (status >= 0 && ret->begun);
    if (status < 0 || !ret->over)
        return status;
    if (ret->end.status == KILN_JOB_INTERRUPTED || ret->end.status == KILN_JOB_KILLED) {
        slurm->hurry = true;
        return KILN_OK;
    }
    status = kiln_slurm_leave(slurm, task, err);
    return status >= 0 ? finish(slurm, task, &ret->end, err) : status;
}

/* Slurm has put a job back into the queue, of which the last process is over or gone. */
static KilnStatus note_requeue(const KilnSlurm *slurm, KilnSlurmTask *task, const KilnJobNews *news,
                               KilnError *err)
{
    KilnJobEnd end = end_as(task, KILN_JOB_KILLED, "was requeued by Slurm");

    if (news->over && news->end.status == KILN_JOB_INTERRUPTED)
        end = end_as(task, KILN_JOB_INTERRUPTED,
                     "stopped with a checkpoint and was requeued by Slurm");
    task->begun = false;
    return slurm->launch->requeued(slurm->launch->ctx, task->job, &end, err);
}

KilnStatus kiln_slurm_judge(KilnSlurm *slurm, KilnSlurmTask *task, KilnError *err)
{
    const bool begun_before = task->begun;
    const KilnSlurmEntry *entry = kiln_slurm_entry(slurm, task);
    const KilnSlurmPhase phase = kiln_slurm_phase(entry);
    KilnJobNews news;
    KilnStatus status = kiln_slurm_collect(slurm, task, &news, err);

    if (status < 0 && phase == KILN_SLURM_GONE)
        task->ended = true; /* or the launcher would wait for it without end */
    if (status < 0 || task->ended)
        return status;
    task->begun = news.begun;
    if (phase == KILN_SLURM_GONE)
        return end_gone(slurm, task, entry != NULL ? entry->state : "", &news, err);
    task->missing = 0;
    if (phase == KILN_SLURM_WAITS && entry->held)
        return end_held(slurm, task, err);
    if (phase == KILN_SLURM_RUNS && news.over)
        return end_stuck(slurm, task, &news, err);
    task->over = 0.0;
    /* A process that began after the queue was read is not the one that Slurm requeued. */
    return phase == KILN_SLURM_WAITS && news.begun && (begun_before || news.over)
               ? note_requeue(slurm, task, &news, err)
               : KILN_OK;
}
