/* Runs jobs as job arrays of Slurm. What it does with one: jobs wait in the queue, and the files of
 * a job say when its process begins and ends (KilnLaunch.collect); of those that end without a word
 * the queue says why. The queue is asked for all jobs at once. */
#include "kiln.h"
#include "kiln/slurm/slurm_tasks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICK_MS = 100, MAX_AT_ONCE = 100000 };
static const double collect_s = 0.5, queue_s = 4.0, hurried_queue_s = 1.0;

static const KilnField fields[] = {
    KILN_FIELD_I64_OPT(KilnSlurmOptions, timeout_min, "60", 1, 1e7,
                       "time limit in minutes; a job that reaches it is requeued"),
    KILN_FIELD_I64_OPT(KilnSlurmOptions, cpus_per_task, "null", 1, 1e6,
                       "processors of a job, and its threads with trainer.threads=0; null: one"),
    KILN_FIELD_I64_OPT(KilnSlurmOptions, gpus_per_node, "null", 0, 1e6, "GPUs of each node"),
    KILN_FIELD_F64_OPT(KilnSlurmOptions, mem_gb, "null", 0.001, 1e9, "memory of each node, in GB"),
    KILN_FIELD_STR_OPT(KilnSlurmOptions, partition, "null", "partition, or several with commas"),
    KILN_FIELD_STR_OPT(KilnSlurmOptions, qos, "null", "quality of service"),
    KILN_FIELD_STR_OPT(KilnSlurmOptions, account, "null", "account that is charged"),
    KILN_FIELD_STR_OPT(KilnSlurmOptions, constraint, "null", "features that a node must have"),
    KILN_FIELD_STR_OPT(KilnSlurmOptions, exclude, "null", "nodes that are not used"),
    KILN_FIELD_STR_OPT(KilnSlurmOptions, gres, "null", "generic resources: gpu:a100:2"),
    KILN_FIELD_I64(KilnSlurmOptions, nodes, "1", 1, 1e6, "nodes of a job"),
    KILN_FIELD_I64(KilnSlurmOptions, tasks_per_node, "1", 1, 1e6,
                   "processes of a job on each node: ranks, for trainer.strategy"),
    KILN_FIELD_STR(KilnSlurmOptions, name, "kiln", "name of the jobs in the queue"),
    KILN_FIELD_STR_OPT(KilnSlurmOptions, comment, "null", "comment of the jobs"),
    KILN_FIELD_I64(KilnSlurmOptions, array_parallelism, "256", 1, MAX_AT_ONCE,
                   "jobs that run at a time"),
    KILN_FIELD_I64(KilnSlurmOptions, signal_delay_s, "120", 0, 65535,
                   "seconds before the time limit at which a job saves and is requeued"),
    KILN_FIELD_I64(KilnSlurmOptions, max_num_timeout, "10", 0, 1000000,
                   "how often a job that reaches its time limit is requeued"),
    KILN_FIELD_STR_LIST_OPT(KilnSlurmOptions, setup, "[]",
                            "lines of shell that run before a job: [module load gcc]"),
    KILN_FIELD_STR_LIST_OPT(KilnSlurmOptions, srun_args, "[]", "more arguments of srun"),
    KILN_FIELD_STR_MAP_OPT(KilnSlurmOptions, additional_parameters, "{}",
                           "more options of sbatch: {mail_type: FAIL, exclusive: 'true'}"),
    KILN_FIELD_END,
};

static bool is_option_name(const char *name)
{
    return name[0] >= 'a' && name[0] <= 'z' &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static KilnStatus check(const void *opts, const char **ret_option, KilnError *err)
{
    const KilnSlurmOptions *options = opts;

    for (size_t i = 0; i < options->additional_parameters_count; i++) {
        if (is_option_name(options->additional_parameters[i].key))
            continue;
        *ret_option = "additional_parameters";
        return kiln_error_set(err, KILN_E_TYPE, "'%s' is no name of an option of sbatch",
                              options->additional_parameters[i].key);
    }
    return KILN_OK;
}

static size_t n_jobs(const KilnInstance *self)
{
    const KilnSlurmOptions *options = kiln_opts(self);

    return (size_t)options->array_parallelism;
}

static size_t processors(const KilnInstance *self)
{
    const KilnSlurmOptions *options = kiln_opts(self);

    return options->cpus_per_task != NULL ? (size_t)*options->cpus_per_task : 1;
}

static KilnStatus ready(KilnInstance *self, KilnError *err)
{
    static const char *const programs[] = { "sbatch", "squeue", "scancel" };

    (void)self;
    for (size_t i = 0; i < KILN_COUNT(programs); i++)
        if (!kiln_program_exists(programs[i]))
            return kiln_error_set(err, KILN_E_IO,
                                  "%s is not on the PATH; kiln/launcher=slurm runs on a machine "
                                  "that submits to Slurm, kiln/launcher=local on any",
                                  programs[i]);
    return KILN_OK;
}

/* ---- Taking jobs ------------------------------------------------------------------------ */

/* The job's process of an earlier launcher is in the queue, or has written something. */
static KilnStatus attach(KilnSlurm *slurm, KilnSlurmTask *task, int64_t submission, KilnError *err)
{
    int64_t array = 0;
    KilnJobNews news;
    KilnStatus status = kiln_slurm_find_array(slurm, submission, &array, err);

    task->array = array != 0 ? array : -1;
    if (status >= 0)
        status = slurm->launch->attach(slurm->launch->ctx, task->job, err);
    if (status >= 0)
        status = kiln_slurm_collect(slurm, task, &news, err);
    if (status >= 0 && !task->ended && array == 0 && !news.begun)
        task->array = 0; /* it was not submitted */
    return status;
}

static KilnStatus add_task(KilnSlurm *slurm, size_t job, KilnError *err)
{
    const int64_t submission = kiln_slurm_record_find(&slurm->record, job);

    if (!KILN_RESERVE(slurm->tasks, slurm->capacity, slurm->n + 1))
        return kiln_error_nomem(err, slurm->n);
    slurm->tasks[slurm->n++] = (KilnSlurmTask) { .job = job };
    return submission > 0 ? attach(slurm, &slurm->tasks[slurm->n - 1], submission, err) : KILN_OK;
}

/* Of a sweep that depends on results, as many jobs as run at a time; else a block of jobs once half
 * of them could run at once. */
static size_t room(const KilnSlurm *slurm)
{
    const size_t most = (size_t)slurm->options->array_parallelism;

    if (slurm->launch->follows)
        return slurm->n < most ? most - slurm->n : 0;
    return slurm->n <= most / 2 ? KILN_SLURM_BLOCK : 0;
}

static void remove_ended(KilnSlurm *slurm)
{
    size_t kept = 0;

    for (size_t i = 0; i < slurm->n; i++)
        if (!slurm->tasks[i].ended)
            slurm->tasks[kept++] = slurm->tasks[i];
    slurm->n = kept;
}

static KilnStatus take_jobs(KilnSlurm *slurm, KilnError *err)
{
    KilnNextJob next = KILN_NEXT_JOB;
    KilnStatus status = KILN_OK;

    for (size_t n = room(slurm); n > 0 && status >= 0; n--) {
        size_t job = 0;

        status = slurm->launch->next(slurm->launch->ctx, &next, &job, err);
        if (status < 0 || next != KILN_NEXT_JOB)
            break;
        status = add_task(slurm, job, err);
    }
    remove_ended(slurm);
    return status >= 0 ? kiln_slurm_submit_tasks(slurm, err) : status;
}

/* ---- The loop --------------------------------------------------------------------------- */

/* Read the queue; false if it is not time, or squeue fails, which may pass. */
static bool read_queue(KilnSlurm *slurm)
{
    KilnError why = { 0 };

    if (kiln_clock() - slurm->asked < (slurm->hurry ? hurried_queue_s : queue_s))
        return false;
    KilnStatus status = kiln_slurm_queue_read(&slurm->queue, &why);
    slurm->asked = kiln_clock();
    slurm->hurry = false;
    if (status < 0 && !slurm->silent)
        slurm->launch->print(slurm->launch->ctx, why.text);
    slurm->silent = status < 0;
    return status >= 0;
}

static void keep_first(KilnError *first, const KilnError *err)
{
    if (first->status >= 0 && err->status < 0)
        *first = *err;
}

/* Look at all jobs; an error with one leaves out none. */
static KilnStatus follow(KilnSlurm *slurm, KilnError *err)
{
    KilnError first = { 0 };
    bool read = false;

    for (size_t i = 0; i < slurm->n; i++) {
        KilnJobNews news;
        KilnError why = { 0 };

        if (slurm->tasks[i].array != 0 &&
            kiln_slurm_collect(slurm, &slurm->tasks[i], &news, &why) < 0)
            keep_first(&first, &why);
    }
    remove_ended(slurm);
    slurm->hurry = slurm->hurry || slurm->n == 0;
    if (slurm->n > 0 || slurm->n_left > 0)
        read = read_queue(slurm);
    kiln_slurm_clear_left(slurm, read);
    for (size_t i = 0; i < slurm->n && read; i++) {
        KilnError why = { 0 };

        if (slurm->tasks[i].array != 0 && kiln_slurm_judge(slurm, &slurm->tasks[i], &why) < 0)
            keep_first(&first, &why);
    }
    remove_ended(slurm);
    if (read && !slurm->stops)
        kiln_slurm_stop_unwanted(slurm);
    if (first.status < 0)
        return kiln_error_set(err, first.status, "%s", first.text);
    if (!slurm->stops || (!read && kiln_slurm_in_queue(slurm) > 0))
        return KILN_OK;
    KilnStatus status = kiln_slurm_stop_tasks(slurm, err);
    remove_ended(slurm);
    slurm->hurry = true;
    return status;
}

static void pause_for(int ms)
{
    const struct timespec pause = { .tv_nsec = ms * 1000000L };

    nanosleep(&pause, NULL);
}

static KilnStatus run(KilnSlurm *slurm, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnError later = { 0 };

    for (;;) {
        slurm->stops = status < 0 || *slurm->launch->stop != 0;

        if (kiln_clock() - slurm->collected >= collect_s) {
            KilnStatus now = follow(slurm, status < 0 ? &later : err);

            if (!slurm->stops && now >= 0)
                now = take_jobs(slurm, err);
            slurm->collected = kiln_clock();
            status = status < 0 ? status : now;
            if (slurm->n == 0 && slurm->n_left == 0)
                return status;
        }
        slurm->launch->tick(slurm->launch->ctx);
        pause_for(TICK_MS);
    }
}

static KilnStatus launch_jobs(KilnInstance *self, const KilnLaunch *launch, KilnError *err)
{
    KilnSlurm *slurm = kiln_state(self);

    slurm->options = kiln_opts(self);
    slurm->launch = launch;
    KilnStatus status = kiln_slurm_record_open(launch->dir, &slurm->record, err);
    /* Finds the jobs that an earlier launcher submitted. */
    if (status >= 0 && slurm->record.n_submissions > 0)
        status = kiln_slurm_queue_read(&slurm->queue, err);
    return status >= 0 ? run(slurm, err) : status;
}

/* ---- --plan ----------------------------------------------------------------------------- */

static KilnStatus plan(KilnInstance *self, const KilnLaunch *launch, const size_t *jobs, size_t n,
                       KilnText *ret, KilnError *err)
{
    const KilnSlurmOptions *options = kiln_opts(self);
    KilnSlurmBatch batch = { .jobs = jobs, .at_once = options->array_parallelism };
    KilnText dir = { 0 };
    KilnArgv words = { .items = NULL };
    KilnStatus status = launch->command(launch->ctx, jobs[0], &batch.command, err);

    while (batch.count < n && jobs[batch.count] / KILN_SLURM_BLOCK == jobs[0] / KILN_SLURM_BLOCK)
        batch.count++;
    kiln_text_printf(&dir, "%s/.kiln/slurm", launch->dir);
    kiln_argv_add(&words, "%s/1.sh", dir.failed ? "" : dir.data);
    if (status >= 0 && !dir.failed && !words.failed) {
        KilnArgv line = { .items = NULL };

        batch.dir = dir.data;
        batch.script = words.items[0];
        kiln_slurm_line(options, &batch, &line);
        kiln_text_char(ret, '\n');
        kiln_argv_write(&line, ret);
        kiln_text_printf(ret, "\n\n# %s\n", batch.script);
        kiln_slurm_script(options, &batch, ret);
        kiln_argv_release(&line);
    }
    ret->failed = ret->failed || dir.failed || words.failed;
    kiln_argv_release(&words);
    kiln_text_release(&dir);
    return status;
}

static void release(KilnInstance *self)
{
    KilnSlurm *slurm = kiln_state(self);

    free(slurm->tasks);
    free(slurm->left);
    kiln_slurm_record_close(&slurm->record);
    kiln_slurm_queue_release(&slurm->queue);
}

static const KilnLauncherOps ops = {
    .n_jobs = n_jobs,
    .launch = launch_jobs,
    .processors = processors,
    .ready = ready,
    .plan = plan,
};

const KilnComponent kiln_launcher_slurm = {
    .kind = KILN_KIND_LAUNCHER,
    .name = "slurm",
    .summary = "Job arrays of Slurm, requeued at their time limit and after a preemption",
    KILN_FIELDS(fields),
    .opts_size = sizeof(KilnSlurmOptions),
    .state_size = sizeof(KilnSlurm),
    .check = check,
    .release = release,
    .ops.launcher = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_launcher_slurm, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
