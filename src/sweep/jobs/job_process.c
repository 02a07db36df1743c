/* The process of a job: sets up its folder and its log, and runs the body. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "sweep/jobs/job_report.h"
#include "sweep/sweep_state.h"

/* Make the job's output its log. */
static bool redirect(const char *log)
{
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int out = kiln_fd_open(log, O_WRONLY | O_CREAT | O_APPEND);
    bool ok = in >= 0 && out >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
              dup2(out, STDERR_FILENO) >= 0;

    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return ok;
}

/* Remove everything but .kiln, for a job that starts again. */
static KilnStatus clean(const char *dir, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_dir_list(dir, &names, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        char *path = strcmp(names[i], ".kiln") != 0 ? kiln_path_join(dir, names[i]) : NULL;

        if (path != NULL)
            status = kiln_path_remove(path, err);
        free(path);
    }
    kiln_names_free(names, n);
    return status;
}

/* The path of something in the job's folder, if it is there as `is` says; NULL: it is not, or
 * memory is out, which *failed says. */
static char *existing(const char *dir, const char *name, bool (*is)(const char *path), bool *failed)
{
    char *path = kiln_path_join(dir, name);

    *failed |= path == NULL;
    if (path != NULL && !is(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

/* *ret_ckpt_path, owned by the caller: what the job resumes from, its own last checkpoint or that
 * of its parent; NULL: it starts from the beginning. A job that resumes loses the summary of its
 * interrupted run, any other all that it has written. Of several ranks the first one does that. */
static KilnStatus set_up_folder(const char *dir, bool first_rank, char **ret_ckpt_path,
                                bool *ret_begins, KilnError *err)
{
    bool failed = false;
    char *state = existing(dir, "checkpoints/last/state.json", kiln_is_file, &failed);
    char *start = existing(dir, ".kiln/start", kiln_is_dir, &failed);
    char *summary = existing(dir, "summary.json", kiln_is_file, &failed);
    KilnStatus status = failed ? kiln_error_nomem(err, strlen(dir)) : KILN_OK;

    if (status >= 0 && first_rank && state == NULL)
        status = clean(dir, err);
    else if (status >= 0 && first_rank && summary != NULL)
        status = kiln_path_remove(summary, err);
    *ret_begins = state == NULL;
    if (status >= 0 && state != NULL)
        *ret_ckpt_path = kiln_strdup(dir);
    else if (status >= 0 && start != NULL)
        *ret_ckpt_path = kiln_strdup(start);
    free(state);
    free(summary);
    free(start);
    return status;
}

int kiln_job_run(KilnSweepTask *task, bool first_rank,
                 int (*body)(void *ctx, const KilnSweepTask *task), void *ctx)
{
    char *log = kiln_path_join(task->dir, "train.log"), *ckpt_path = NULL;
    KilnError err = { 0 };
    int status = KILN_JOB_EXIT_FAILED;

    if (log == NULL)
        kiln_error_nomem(&err, 1);
    else if (set_up_folder(task->dir, first_rank, &ckpt_path, &task->begins, &err) >= 0 &&
             first_rank && !redirect(log))
        kiln_error_errno(&err, log);
    task->ckpt_path = ckpt_path;
    if (err.status < 0)
        kiln_report_error(task->report, err.text);
    else
        status = body(ctx, task);
    free(ckpt_path);
    free(log);
    return status;
}

int kiln_sweep_run_frozen(const KilnSweep *sweep, size_t number, const char *job_dir,
                          const char *const *overrides, int report)
{
    KilnReporter reporter = { .fd = report,
                              .metric = sweep->metric,
                              .more = sweep->more,
                              .n_more = sweep->n_more,
                              .asks = kiln_sweep_tells(sweep) };
    char *dir = kiln_path_join(sweep->path, job_dir);
    KilnSweepTask task = {
        .number = number,
        .dir = dir,
        .overrides = overrides,
        .metric = sweep->metric,
        .mode = sweep->n_more > 0 ? (int64_t)sweep->metric_mode : sweep->rank->mode,
        .report = &reporter,
    };
    int status = KILN_JOB_EXIT_FAILED;

    if (dir != NULL)
        status = kiln_job_run(&task, true, sweep->request->body, sweep->request->ctx);
    free(dir);
    return status;
}
