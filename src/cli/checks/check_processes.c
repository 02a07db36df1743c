/* Checks components that run or connect processes: a launcher by jobs that do nothing, a strategy
 * that finds itself alone. */
#include <string.h>

#include "base/call.h"
#include "cli/checks/checks.h"
#include "kiln/strategy.h"
#include "kiln/sweep.h"

/* ---- Launchers ------------------------------------------------------------------------------- */

enum { JOBS = 4, FAILING = 2 };

typedef struct Jobs {
    size_t next;
    int started[JOBS], ended[JOBS];
    KilnJobStatus status[JOBS];
    bool elsewhere; /* it asked for a command, for another machine */
} Jobs;

static KilnStatus next(void *ctx, KilnNextJob *ret, size_t *ret_job, KilnError *err)
{
    Jobs *jobs = ctx;

    (void)err;
    *ret = jobs->next < JOBS ? KILN_NEXT_JOB : KILN_NEXT_NONE;
    if (jobs->next < JOBS)
        *ret_job = jobs->next++;
    return KILN_OK;
}

static int run(void *ctx, size_t job, int report)
{
    (void)ctx, (void)report;
    kiln_call_clear(); /* the launcher's `launch` */
    return job == FAILING ? KILN_JOB_EXIT_FAILED : KILN_JOB_EXIT_OK;
}

static KilnStatus started(void *ctx, size_t job, int64_t pid, KilnError *err)
{
    (void)pid, (void)err;
    if (job < JOBS)
        ((Jobs *)ctx)->started[job]++;
    return KILN_OK;
}

static KilnStatus reported(void *ctx, size_t job, const char *bytes, size_t size,
                           const char **ret_reply, KilnError *err)
{
    (void)ctx, (void)job, (void)bytes, (void)size, (void)err;
    *ret_reply = "";
    return KILN_OK;
}

static KilnStatus ended(void *ctx, size_t job, const KilnJobEnd *end, KilnError *err)
{
    Jobs *jobs = ctx;

    (void)err;
    if (job < JOBS) {
        jobs->ended[job]++;
        jobs->status[job] = end->status;
    }
    return KILN_OK;
}

static void tick(void *ctx)
{
    (void)ctx;
}

static KilnJobNeeds needs(void *ctx, size_t job)
{
    (void)ctx, (void)job;
    return (KilnJobNeeds) { 0 };
}

static bool no(void *ctx, size_t job)
{
    (void)ctx, (void)job;
    return false;
}

/* No job has data to share. */
static KilnStatus fork_loaded(void *ctx, size_t job, const int ends[2], int64_t *ret_pid,
                              KilnError *err)
{
    (void)ctx, (void)job, (void)ends, (void)err;
    *ret_pid = 0;
    return KILN_OK;
}

static int64_t shared(void *ctx, size_t job)
{
    (void)ctx, (void)job;
    return 0;
}

static int64_t held(void *ctx)
{
    (void)ctx;
    return 0;
}

static KilnStatus refuse(Jobs *jobs, KilnError *err)
{
    jobs->elsewhere = true;
    return kiln_error_set(err, KILN_E_MISSING, "jobs on other machines are not checked");
}

static KilnStatus command(void *ctx, size_t job, const char *const **ret_argv, KilnError *err)
{
    (void)job, (void)ret_argv;
    return refuse(ctx, err);
}

static KilnStatus attach(void *ctx, size_t job, KilnError *err)
{
    (void)job;
    return refuse(ctx, err);
}

static KilnStatus collect(void *ctx, size_t job, KilnJobNews *ret, KilnError *err)
{
    (void)job, (void)ret;
    return refuse(ctx, err);
}

static void print(void *ctx, const char *line)
{
    (void)ctx, (void)line;
}

static void check_ends(KilnCase *self, const Jobs *jobs)
{
    for (int i = 0; i < JOBS; i++) {
        const KilnJobStatus want = i == FAILING ? KILN_JOB_FAILED : KILN_JOB_OK;

        if (jobs->started[i] != 1 || jobs->ended[i] != 1)
            return kiln_case_fail(self, "call started() and ended() once for each job",
                                  "job %d was started %d and ended %d times", i, jobs->started[i],
                                  jobs->ended[i]);
        if (jobs->status[i] != want)
            return kiln_case_fail(self, "end with the status that the exit status means",
                                  "job %d ended with exit status %d and has status %d", i,
                                  i == FAILING ? KILN_JOB_EXIT_FAILED : KILN_JOB_EXIT_OK,
                                  (int)jobs->status[i]);
    }
}

void kiln_contract_jobs(KilnCase *self)
{
    const KilnLauncherOps *ops = self->component->ops.launcher;
    Jobs jobs = { .next = 0 };
    KilnLaunch launch = {
        .ctx = &jobs,
        .next = next,
        .run = run,
        .started = started,
        .reported = reported,
        .ended = ended,
        .tick = tick,
        .stop = self->request->stop,
        .needs = needs,
        .stops = no,
        .command = command,
        .attach = attach,
        .collect = collect,
        .print = print,
        .dir = self->folder,
        .loading = no,
        .fork_loaded = fork_loaded,
        .shared = shared,
        .held = held,
    };
    KilnCaseInstance built;
    KilnError err = { 0 };

    if (!kiln_case_open(self, &built))
        return;
    const KilnInstance *launcher = built.instance;
    if (ops->ready != NULL &&
        KILN_CALLED(launcher, "ready", ops->ready(built.instance, &err), &err) < 0) {
        kiln_case_skip(self, "", "it is not ready here: %s", err.text);
        return kiln_case_close(&built);
    }
    launch.n_jobs = ops->n_jobs(launcher);
    if (launch.n_jobs == 0)
        launch.n_jobs = 2; /* as a measurement might say */
    if (KILN_CALLED(launcher, "launch", ops->launch(built.instance, &launch, &err), &err) < 0)
        jobs.elsewhere ? kiln_case_skip(self, "", "its jobs run on other machines")
                       : kiln_case_fail_with(self, &err);
    else
        check_ends(self, &jobs);
    if (!jobs.elsewhere)
        kiln_case_pass(self, "%d jobs, one of which fails", JOBS);
    kiln_case_close(&built);
}

/* ---- Strategies ------------------------------------------------------------------------------ */

void kiln_contract_ranks(KilnCase *self)
{
    const KilnStrategyOps *ops = self->component->ops.strategy;
    KilnCaseInstance built;
    KilnError err = { 0 };
    int rank = -1, world = -1;

    if (!kiln_case_open(self, &built))
        return;
    const KilnStatus status = KILN_CALLED(built.instance, "setup",
                                          ops->setup(built.instance, &rank, &world, &err), &err);
    if (ops->teardown != NULL) {
        kiln_call_enter(built.instance, "teardown");
        ops->teardown(built.instance);
        kiln_call_leave();
    }
    if (status < 0)
        kiln_case_skip(self, "add trainer.strategy.OPTION=VALUE to the command",
                       "it does not connect here: %s", err.text);
    else if (world < 1 || rank < 0 || rank >= world)
        kiln_case_fail(self, "ranks are from 0 to the world's size - 1", "rank %d of %d", rank,
                       world);
    else if (world > 1 && (ops->teardown == NULL || ops->all_reduce == NULL ||
                           ops->all_gather == NULL || ops->broadcast == NULL))
        kiln_case_fail(self, "", "several ranks need all functions of its table");
    else
        kiln_case_pass(self, "rank %d of %d", rank, world);
    kiln_case_close(&built);
}
