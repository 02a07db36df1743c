/* Stops jobs: those that wait leave the queue, those that run save and end, and what is left of
 * ended ones is cancelled. */
#include "kiln/array.h"
#include "kiln/tools/clock.h"
#include "kiln/slurm/slurm_tasks.h"

static const double longest_s = 60.0, shortest_grace_s = 30.0;
/* How long the task of an ended job is followed at most. */
static const double longest_leave_s = 120.0;

/* Is it time to end the task so? */
typedef bool Selects(const KilnSlurmTask *task, KilnSlurmPhase phase, double overdue);

static bool waits(const KilnSlurmTask *task, KilnSlurmPhase phase, double overdue)
{
    (void)task;
    (void)overdue;
    return phase == KILN_SLURM_WAITS;
}

static bool runs(const KilnSlurmTask *task, KilnSlurmPhase phase, double overdue)
{
    (void)overdue;
    return phase == KILN_SLURM_RUNS && task->stopping == 0.0;
}

static bool waits_unwanted(const KilnSlurmTask *task, KilnSlurmPhase phase, double overdue)
{
    return task->unwanted && waits(task, phase, overdue);
}

static bool runs_unwanted(const KilnSlurmTask *task, KilnSlurmPhase phase, double overdue)
{
    return task->unwanted && runs(task, phase, overdue);
}

static bool hangs(const KilnSlurmTask *task, KilnSlurmPhase phase, double overdue)
{
    return phase == KILN_SLURM_RUNS && task->stopping > 0.0 && task->stopping < overdue;
}

/* scancel with a flag those that are selected. A failure is no error: the next try may succeed. */
static void cancel(const KilnSlurm *slurm, const char *flag, Selects *selects, double overdue)
{
    KilnArgv words = { .items = NULL };
    KilnProgramEnd end = { .status = 0 };
    size_t n = 0;

    kiln_argv_add(&words, "scancel");
    kiln_argv_add(&words, "%s", flag);
    for (size_t i = 0; i < slurm->n; i++) {
        KilnSlurmTask *task = &slurm->tasks[i];

        if (task->array <= 0 ||
            !selects(task, kiln_slurm_phase(kiln_slurm_entry(slurm, task)), overdue))
            continue;
        kiln_argv_add(&words, "%lld_%zu", (long long)task->array, task->job % KILN_SLURM_BLOCK);
        if (selects == runs || selects == runs_unwanted)
            task->stopping = kiln_clock();
        n++;
    }
    if (n > 0)
        (void)!kiln_program_run(&words, longest_s, &end, NULL);
    kiln_program_release(&end);
    kiln_argv_release(&words);
}

/* Seconds that a task has to save and end. */
static double grace_of(const KilnSlurm *slurm)
{
    const double delay = (double)slurm->options->signal_delay_s;

    return delay > shortest_grace_s ? delay : shortest_grace_s;
}

void kiln_slurm_stop_unwanted(KilnSlurm *slurm)
{
    bool any = false;

    for (size_t i = 0; i < slurm->n; i++) {
        KilnSlurmTask *task = &slurm->tasks[i];

        task->unwanted = slurm->launch->stops(slurm->launch->ctx, task->job);
        any |= task->unwanted;
    }
    if (!any)
        return;
    /* With --state=PENDING, scancel (22.05) cancels all waiting tasks of the array. */
    cancel(slurm, "--quiet", waits_unwanted, 0.0);
    cancel(slurm, "--signal=TERM", runs_unwanted, 0.0);
    cancel(slurm, "--quiet", hangs, kiln_clock() - grace_of(slurm));
    slurm->hurry = true;
}

KilnStatus kiln_slurm_stop_tasks(KilnSlurm *slurm, KilnError *err)
{
    KilnStatus status = KILN_OK;

    cancel(slurm, "--state=PENDING", waits, 0.0);
    cancel(slurm, "--signal=TERM", runs, 0.0);
    cancel(slurm, "--quiet", hangs, kiln_clock() - grace_of(slurm));
    for (size_t i = 0; i < slurm->n && status >= 0; i++)
        if (slurm->tasks[i].array == 0)
            status = kiln_slurm_drop(slurm, &slurm->tasks[i], err);
    slurm->hurry = true;
    return status;
}

/* ---- Tasks of ended jobs --------------------------------------------------------------------- */

KilnStatus kiln_slurm_leave(KilnSlurm *slurm, const KilnSlurmTask *task, KilnError *err)
{
    if (task->array <= 0)
        return KILN_OK;
    if (!KILN_RESERVE(slurm->left, slurm->left_capacity, slurm->n_left + 1))
        return kiln_error_nomem(err, slurm->n_left);
    slurm->left[slurm->n_left++] = (KilnSlurmLeft) {
        .job = task->job,
        .array = task->array,
        .since = kiln_clock(),
    };
    return KILN_OK;
}

/* A task that waits would start a job that has ended or is submitted again. Without its slurmstepd
 * a task stays in the queue, and blocks processors, until its time limit. */
void kiln_slurm_clear_left(KilnSlurm *slurm, bool read)
{
    KilnArgv words = { .items = NULL };
    KilnProgramEnd end = { .status = 0 };
    size_t kept = 0;

    kiln_argv_add(&words, "scancel");
    kiln_argv_add(&words, "--quiet");
    for (size_t i = 0; i < slurm->n_left; i++) {
        const KilnSlurmLeft *left = &slurm->left[i];
        const size_t index = left->job % KILN_SLURM_BLOCK;
        const KilnSlurmEntry *entry = kiln_slurm_queue_find(&slurm->queue, left->array,
                                                            (int64_t)index);
        const KilnSlurmPhase phase = kiln_slurm_phase(entry);
        const double passed = kiln_clock() - left->since;

        const bool waits = phase == KILN_SLURM_WAITS, runs = phase == KILN_SLURM_RUNS;

        if (read && (waits || (runs && passed > kiln_slurm_leave_s)))
            kiln_argv_add(&words, "%lld_%zu", (long long)left->array, index);
        if ((waits || runs || !read) && passed < longest_leave_s)
            slurm->left[kept++] = *left;
    }
    slurm->n_left = kept;
    if (words.count > 2)
        (void)!kiln_program_run(&words, longest_s, &end, NULL);
    kiln_program_release(&end);
    kiln_argv_release(&words);
}
