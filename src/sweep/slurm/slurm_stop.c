/* Stops jobs: those that wait leave the queue, those that run save and end. */
#include "kiln/tools/clock.h"
#include "kiln/slurm/slurm_tasks.h"

static const double longest_s = 60.0, shortest_grace_s = 30.0;

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
