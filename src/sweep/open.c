/* Opens a sweep, new or resumed: its config, options, sweeper and launcher, and its space of
 * points. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/system/file.h"
#include "config/provenance/error_list.h"
#include "registry/registry.h"
#include "schema/bind.h"
#include "kiln/usage.h"
#include "sweep/requests/requests.h"
#include "sweep/sweep_state.h"

/* ---- A resumed sweep ------------------------------------------------------------------ */

/* Has the job saved the checkpoint with which the sweeper stopped it? */
static bool reached_stop(const KilnSweep *sweep, const KilnJob *job)
{
    char *path = job->dir != NULL ? kiln_sweep_job_path(sweep, job, "checkpoints/last/state.json")
                                  : NULL;
    json_t *state = NULL;
    bool reached = false;

    if (path != NULL && job->n_reports > 0 && kiln_json_read(path, &state, NULL) >= 0)
        reached = json_integer_value(json_object_get(state, "step")) >=
                  job->reports[job->n_reports - 1]->step;
    json_decref(state);
    free(path);
    return reached;
}

/* Jobs whose launcher was killed between a decision to stop and the end. One that has saved reports
 * again when it resumes, and gets that decision; one that has not trains to its report again. One
 * that a request stops does not run for the rest of the way. */
static void end_stopped(KilnSweep *sweep)
{
    for (size_t i = 0; i < sweep->jobs.count; i++) {
        KilnJob *job = &sweep->jobs.items[i];

        if (job->status != KILN_JOB_INTERRUPTED)
            continue;
        if (job->halted != NULL) {
            job->status = KILN_JOB_STOPPED;
            job->reason = KILN_ON_REQUEST;
        } else if (job->queue == NULL && !reached_stop(sweep, job)) {
            job->stopping = NULL;
        }
    }
}

static KilnStatus replay(KilnSweep *sweep, KilnError *err)
{
    KilnReplay replayed = { .jobs = &sweep->jobs };
    size_t skipped = 0;
    KilnStatus status = sweep->journal != NULL
                            ? kiln_journal_replay(sweep->journal, kiln_replay_record, &replayed,
                                                  &skipped, err)
                            : kiln_journal_read(sweep->path, kiln_replay_record, &replayed, err);

    if (status >= 0 && !replayed.started)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: its journal does not say how the sweep began; start it again",
                                sweep->path);
    if (sweep->journal != NULL) {
        kiln_replay_end(&replayed);
        end_stopped(sweep);
    }
    sweep->start = replayed.start;
    sweep->complete = replayed.complete;
    sweep->division = replayed.division;
    sweep->n_old = sweep->jobs.count;
    for (size_t i = 0; i < replayed.n_variables && status >= 0; i++)
        status = kiln_sweep_add_variable(sweep, replayed.variables[i], err);
    sweep->n_recorded = sweep->n_variables;
    free(replayed.variables);
    return status;
}

/* Append more arguments (NULL: none) to those in the journal. */
static KilnStatus join_arguments(KilnSweep *sweep, const char *const *more, KilnError *err)
{
    const char **all;
    size_t n = 0, m = 0;

    while (sweep->start.arguments[n] != NULL)
        n++;
    while (more != NULL && more[m] != NULL)
        m++;
    all = kiln_arena_alloc(&sweep->arena, (n + m + 1) * sizeof(*all));
    if (all == NULL)
        return kiln_error_nomem(err, n + m);
    for (size_t i = 0; i < n + m; i++)
        all[i] = i < n ? sweep->start.arguments[i] : more[i - n];
    sweep->compose.overrides = all;
    sweep->start.arguments = all;
    return KILN_OK;
}

/* kiln.sweeper.n_trials, and the trials that request->extend adds. */
static KilnStatus more_trials(KilnSweep *sweep, int64_t *ret, KilnError *err)
{
    const int64_t more = sweep->request->extend;
    char *text = NULL;
    KilnStatus status = KILN_E_KEY;

    if (kiln_config_text(sweep->config, "kiln.sweeper.n_trials", &text, NULL) >= 0)
        status = kiln_parse_i64(text, ret, NULL);
    free(text);
    if (status < 0)
        return kiln_error_set(err, KILN_E_USAGE,
                              "--extend %lld: this sweeper has no option n_trials that could be "
                              "raised; add values instead: train -m --resume DIR lr=0.1,0.2",
                              (long long)more);
    if (*ret > INT64_MAX - more)
        return kiln_error_set(err, KILN_E_RANGE, "--extend %lld: too many trials", (long long)more);
    *ret += more;
    return KILN_OK;
}

/* Make the raised number an argument of the sweep, so that a later resume has it, too. */
static KilnStatus extend(KilnSweep *sweep, KilnError *err)
{
    int64_t n_trials = 0;
    KilnStatus status = more_trials(sweep, &n_trials, err);
    const char *argument = kiln_arena_printf(&sweep->arena, "kiln.sweeper.n_trials=%lld",
                                             (long long)n_trials);
    const char *const more[] = { argument, NULL };

    if (status < 0)
        return status;
    return argument != NULL ? join_arguments(sweep, more, err) : kiln_error_nomem(err, 1);
}

const char *kiln_sweep_shown_path(const char *path)
{
    char cwd[PATH_MAX];
    size_t n = getcwd(cwd, sizeof(cwd)) != NULL ? strlen(cwd) : 0;

    return n > 0 && strncmp(path, cwd, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

KilnStatus kiln_sweep_reopen(KilnSweep *sweep, KilnError *err)
{
    const char *dir = sweep->request->resume;
    char *journal = kiln_path_join(dir, KILN_JOURNAL_FILE);
    KilnStatus status = KILN_OK;

    sweep->dir = kiln_strdup(kiln_sweep_shown_path(dir));
    sweep->path = kiln_strdup(dir);
    sweep->top = kiln_strdup(dir);
    if (journal == NULL || sweep->dir == NULL || sweep->path == NULL || sweep->top == NULL)
        status = kiln_error_nomem(err, strlen(dir));
    else if (!kiln_is_file(journal))
        status = kiln_sweep_not_there(dir, err);
    if (status >= 0 && !sweep->request->reads)
        status = kiln_journal_open(dir, &sweep->journal, err);
    if (status >= 0 && !sweep->request->reads)
        status = kiln_dir_prune(dir, err);
    if (status >= 0)
        status = replay(sweep, err);
    if (status >= 0)
        status = join_arguments(sweep, sweep->request->compose.overrides, err);
    if (status >= 0)
        status = kiln_sweep_use_copies(sweep, err);
    free(journal);
    return status;
}

/* ---- A new sweep ------------------------------------------------------------------------- */

static const char *absolute(KilnArena *arena, const char *path)
{
    char *real = realpath(path, NULL);
    const char *copy = kiln_arena_strdup(arena, real != NULL ? real : path);

    free(real);
    return copy;
}

/* Record the folders of config files, for a resume with other values. */
static KilnStatus record_dirs(KilnSweep *sweep, KilnError *err)
{
    const KilnComposeRequest *compose = &sweep->compose;
    const char **dirs;
    size_t n = 0;

    while (compose->config_dirs != NULL && compose->config_dirs[n] != NULL)
        n++;
    dirs = kiln_arena_alloc(&sweep->arena, (n + 2) * sizeof(*dirs));
    if (dirs == NULL)
        return kiln_error_nomem(err, n);
    sweep->start.config_dirs = dirs;
    const char *first = compose->config_path != NULL ? compose->config_path : "conf";
    if (kiln_is_dir(first))
        *dirs++ = absolute(&sweep->arena, first);
    for (size_t i = 0; i < n; i++)
        *dirs++ = absolute(&sweep->arena, compose->config_dirs[i]);
    return KILN_OK;
}

static KilnStatus begin(KilnSweep *sweep, KilnError *err)
{
    static const char *const none[] = { NULL };
    char cwd[PATH_MAX];
    KilnStatus status = record_dirs(sweep, err);

    if (status < 0)
        return status;
    if (getcwd(cwd, sizeof(cwd)) == NULL)
        return kiln_error_errno(err, "the current folder");
    sweep->start.cwd = kiln_arena_strdup(&sweep->arena, cwd);
    sweep->start.config_name = sweep->compose.config_name != NULL ? sweep->compose.config_name
                                                                  : "config";
    sweep->start.plugins = none; /* the journal gets those of the registry */
    sweep->start.arguments = sweep->compose.overrides != NULL ? sweep->compose.overrides : none;
    return sweep->start.cwd != NULL ? KILN_OK : kiln_error_nomem(err, strlen(cwd));
}

/* ---- Options and components ----------------------------------------------------------------- */

static bool has_pruner(const KilnConfig *config)
{
    const KilnConfigNode *node = NULL;

    return kiln_config_at(config, "kiln.pruner", &node, NULL) >= 0 && !kiln_node_is_null(node);
}

static KilnStatus read_options(KilnSweep *sweep, KilnError *err)
{
    const KilnRegistry *registry = sweep->compose.registry;
    void *options = NULL;
    KilnStatus status = kiln_config_options(sweep->config, "kiln.sweep", kiln_sweep_fields,
                                            sizeof(KilnSweepOptions), &options, err);

    if (status >= 0) {
        sweep->options = options;
        status = kiln_config_options(sweep->config, "kiln.sweeper", kiln_rank_fields,
                                     sizeof(KilnRankOptions), &options, err);
    }
    if (status >= 0) {
        sweep->rank = options;
        status = kiln_config_build(sweep->config, "kiln.launcher", registry, KILN_KIND_LAUNCHER,
                                   &sweep->launcher, err);
    }
    if (status >= 0)
        status = kiln_config_build(sweep->config, "kiln.sweeper", registry, KILN_KIND_SWEEPER,
                                   &sweep->sweeper, err);
    if (status >= 0) {
        sweep->processors = kiln_processors();
        sweep->n_jobs =
            kiln_instance_component(sweep->launcher)->ops.launcher->n_jobs(sweep->launcher);
    }
    return status >= 0 && has_pruner(sweep->config)
               ? kiln_config_build(sweep->config, "kiln.pruner", registry, KILN_KIND_PRUNER,
                                   &sweep->pruner, err)
               : status;
}

bool kiln_sweep_runs(const KilnSweep *sweep, const KilnJob *job)
{
    return job->status == KILN_JOB_WAITING || job->status == KILN_JOB_INTERRUPTED ||
           job->status == KILN_JOB_KILLED || (sweep->request->retry_failed && kiln_job_failed(job));
}

/* ---- Opening and closing ----------------------------------------------------------------------
 */

/* Compose the sweep; with request->extend, again with the raised number of trials. */
static KilnStatus compose(KilnSweep *sweep, KilnErrors *errors)
{
    KilnError err = { 0 };
    KilnStatus status = kiln_compose_sweep(&sweep->compose, &sweep->config, &sweep->arguments,
                                           errors);

    if (status < 0 || sweep->request->extend == 0)
        return status;
    if (extend(sweep, &err) < 0)
        return kiln_errors_add(errors, &err);
    kiln_config_free(sweep->config);
    sweep->config = NULL;
    return kiln_compose_sweep(&sweep->compose, &sweep->config, &sweep->arguments, errors);
}

/* Refuse a job that runs, or waits to run, at another launcher: it would run twice. */
static KilnStatus check_queues(const KilnSweep *sweep, KilnError *err)
{
    const char *launcher = kiln_instance_name(sweep->launcher);

    for (size_t i = 0; i < sweep->jobs.count && !sweep->request->reads; i++) {
        const char *queue = sweep->jobs.items[i].queue;

        if (queue != NULL && strcmp(queue, launcher) != 0)
            return kiln_error_set(err, KILN_E_USAGE,
                                  "job #%zu may still run with kiln/launcher=%s, and would run "
                                  "twice; resume with that launcher first, and stop it with Ctrl-C "
                                  "to take the jobs back",
                                  i, queue);
    }
    return KILN_OK;
}

/* Take the space of request->space in place of that of the arguments. */
static KilnStatus use_space(KilnSweep *sweep, KilnError *err)
{
    KilnSpace *space = &sweep->arguments.space;

    for (size_t i = 0; i < space->count && sweep->request->space != NULL; i++)
        if (space->axes[i]->count != 1)
            return kiln_error_set(err, KILN_E_USAGE,
                                  "%s: takes no values here: they are those of the recorded trials",
                                  space->axes[i]->key);
    if (sweep->request->space != NULL) {
        *space = *sweep->request->space;
        sweep->arguments.sources = NULL;
    }
    return KILN_OK;
}

KilnStatus kiln_sweep_open(const KilnSweepRequest *request, KilnSweep *ret, KilnErrors *errors)
{
    KilnError err = { 0 };
    KilnStatus status;

    *ret = (KilnSweep) { .request = request, .compose = request->compose };
    status = request->resume != NULL ? kiln_sweep_reopen(ret, &err) : begin(ret, &err);
    if (status < 0)
        return kiln_errors_add(errors, &err);
    status = compose(ret, errors);
    if (status < 0)
        return status;
    status = kiln_config_check_own(ret->config, request->compose.registry, errors);
    if (status < 0)
        return status;
    status = use_space(ret, &err);
    if (status >= 0)
        status = read_options(ret, &err);
    if (status >= 0)
        status = check_queues(ret, &err);
    if (status >= 0)
        status = kiln_sweep_choose_metric(ret, &err);
    if (status >= 0)
        status = kiln_sweep_check_axes(ret, &err);
    if (status >= 0)
        status = kiln_sweep_read_forbidden(ret, &err);
    if (status >= 0)
        status = kiln_sweep_check_repeats(ret, &err);
    if (status >= 0)
        status = kiln_sweep_count(ret, &err);
    return status < 0 ? kiln_errors_add(errors, &err) : KILN_OK;
}

void kiln_sweep_close(KilnSweep *sweep)
{
    kiln_optuna_free(sweep->optuna);
    free(sweep->copies);
    free(sweep->trials);
    kiln_instance_free(sweep->sweeper);
    kiln_instance_free(sweep->launcher);
    kiln_instance_free(sweep->pruner);
    kiln_options_free(kiln_sweep_fields, sizeof(KilnSweepOptions), sweep->options);
    kiln_options_free(kiln_rank_fields, sizeof(KilnRankOptions), sweep->rank);
    kiln_config_free(sweep->config);
    kiln_journal_close(sweep->journal);
    kiln_jobs_release(&sweep->jobs);
    kiln_arena_release(&sweep->arena);
    free(sweep->dir);
    free(sweep->path);
    free(sweep->top);
    *sweep = (KilnSweep) { .request = NULL };
}
