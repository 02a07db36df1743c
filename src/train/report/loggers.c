/* Calls the loggers of a run. */
#include "train/report/loggers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/call.h"
#include "base/system/file.h"
#include "base/json.h"
#include "train/analysis/hparams.h"
#include "train/report/run_messages.h"
#include "train/checkpoint/component_state.h"
#include "train/trainer.h"

static const KilnLoggerOps *ops_of(const KilnInstance *logger)
{
    return kiln_instance_component(logger)->ops.logger;
}

/* Prefix an error with the logger's path; returns the status. */
static KilnStatus name_logger(const KilnInstance *logger, KilnStatus status, KilnError *err)
{
    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(logger));
    return status;
}

/* ---- Open and close ----------------------------------------------------------------------- */

/* List the names of metrics that the recorded steps declared. */
static KilnStatus collect_names(KilnTrainer *trainer, KilnLogRun *run, KilnError *err)
{
    size_t n = 0;

    while (kiln_metrics_declared_at(trainer->metrics, n) != NULL)
        n++;
    const char **names = kiln_arena_alloc(&trainer->loggers.arena, (n + 1) * sizeof(*names));
    if (names == NULL)
        return kiln_error_nomem(err, n * sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = kiln_metrics_declared_at(trainer->metrics, i);
    run->metrics = names;
    run->n_metrics = n;
    return KILN_OK;
}

static KilnStatus describe(KilnTrainer *trainer, KilnLogRun *run, KilnError *err)
{
    *run = (KilnLogRun) {
        .dir = trainer->run_dir,
        .resumed = trainer->resumed_from != NULL,
        .step = trainer->at.step,
        .config = trainer->config_yaml,
    };
    KilnStatus status = collect_names(trainer, run, err);
    if (status >= 0 && trainer->config != NULL)
        status = kiln_hparams_collect(trainer->config, trainer->origins, &trainer->loggers.arena,
                                      &run->hparams, &run->n_hparams, err);
    return status;
}

/* The first file that both write; NULL: none. */
static const char *common_file(const KilnInstance *a, const KilnInstance *b)
{
    for (const char *const *x = ops_of(a)->files; x != NULL && *x != NULL; x++)
        for (const char *const *y = ops_of(b)->files; y != NULL && *y != NULL; y++)
            if (strcmp(*x, *y) == 0)
                return *x;
    return NULL;
}

KilnStatus kiln_loggers_check(const KilnLoggers *loggers, KilnError *err)
{
    for (size_t i = 1; i < loggers->n; i++)
        for (size_t j = 0; j < i; j++) {
            const char *file = common_file(loggers->list[i], loggers->list[j]);

            if (file != NULL)
                return kiln_error_set(err, KILN_E_RANGE,
                                      "%s and %s both write %s in the run folder: remove one of "
                                      "them",
                                      kiln_instance_path(loggers->list[j]),
                                      kiln_instance_path(loggers->list[i]), file);
        }
    return KILN_OK;
}

KilnStatus kiln_loggers_open(KilnTrainer *trainer, const json_t *saved, KilnError *err)
{
    KilnLoggers *loggers = &trainer->loggers;
    KilnLogRun run;
    KilnStatus status = describe(trainer, &run, err);

    loggers->runs = calloc(loggers->n + 1, sizeof(*loggers->runs));
    loggers->states = calloc(loggers->n + 1, sizeof(*loggers->states));
    if (status >= 0 && (loggers->runs == NULL || loggers->states == NULL))
        status = kiln_error_nomem(err, loggers->n * sizeof(*loggers->runs));
    for (size_t i = 0; i < loggers->n && status >= 0; i++) {
        json_t *state = json_object_get(saved, kiln_instance_path(loggers->list[i]));

        loggers->runs[i] = run;
        if (json_is_object(state)) {
            loggers->states[i].object = json_incref(state);
            loggers->runs[i].state = &loggers->states[i];
        }
        status = name_logger(
            loggers->list[i],
            KILN_CALLED(loggers->list[i], "open",
                        ops_of(loggers->list[i])->open(loggers->list[i], &loggers->runs[i], err),
                        err),
            err);
    }
    loggers->opened = status >= 0;
    return status;
}

/* Warn once when a logger's file was removed: its rows are lost. */
static void warn_of_removal(KilnTrainer *trainer)
{
    for (size_t i = 0; i < trainer->loggers.n; i++) {
        const char *const *files = ops_of(trainer->loggers.list[i])->files;

        for (; files != NULL && *files != NULL && !trainer->loggers.removal_reported; files++) {
            char *path = kiln_path_join(trainer->run_dir, *files);

            if (path != NULL && access(path, F_OK) != 0 && errno == ENOENT) {
                trainer->loggers.removal_reported = true;
                kiln_output_print(&trainer->output,
                                  "warning: %s was removed while the run was writing to it: its "
                                  "rows are lost",
                                  kiln_path_near(path));
            }
            free(path);
        }
    }
}

KilnStatus kiln_loggers_flush(KilnTrainer *trainer, KilnError *err)
{
    const KilnLoggers *loggers = &trainer->loggers;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < loggers->n && status >= 0; i++)
        if (ops_of(loggers->list[i])->flush != NULL)
            status = name_logger(loggers->list[i],
                                 KILN_CALLED(loggers->list[i], "flush",
                                             ops_of(loggers->list[i])->flush(loggers->list[i], err),
                                             err),
                                 err);
    if (status >= 0 && loggers->opened)
        warn_of_removal(trainer);
    return status;
}

/* Flush the loggers' files to disk. */
static KilnStatus sync_files(const KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->loggers.n; i++) {
        const char *const *files = ops_of(trainer->loggers.list[i])->files;

        for (; files != NULL && *files != NULL && status >= 0; files++) {
            char *path = kiln_path_join(trainer->run_dir, *files);

            if (path == NULL)
                status = kiln_error_nomem(err, 1);
            else if (kiln_is_file(path))
                status = kiln_path_sync(path, err);
            free(path);
        }
    }
    return status;
}

KilnStatus kiln_loggers_close(KilnTrainer *trainer, const char *status, KilnError *err)
{
    KilnLoggers *loggers = &trainer->loggers;
    const KilnMetric *metrics;
    size_t n = kiln_metrics_list(trainer->metrics, &metrics);
    KilnStatus result = KILN_OK;

    if (!loggers->opened || loggers->closed)
        return KILN_OK;
    loggers->closed = true;
    for (size_t i = 0; i < loggers->n && result >= 0; i++)
        if (ops_of(loggers->list[i])->close != NULL)
            result = name_logger(
                loggers->list[i],
                KILN_CALLED(
                    loggers->list[i], "close",
                    ops_of(loggers->list[i])->close(loggers->list[i], status, metrics, n, err),
                    err),
                err);
    if (result >= 0)
        result = kiln_loggers_flush(trainer, err);
    return result >= 0 ? sync_files(trainer, err) : result;
}

void kiln_loggers_release(KilnLoggers *loggers)
{
    kiln_instances_free(loggers->list, loggers->n);
    for (size_t i = 0; loggers->states != NULL && i < loggers->n; i++)
        json_decref(loggers->states[i].object);
    free(loggers->states);
    free(loggers->runs);
    kiln_arena_release(&loggers->arena);
    *loggers = (KilnLoggers) { 0 };
}

json_t *kiln_loggers_state(const KilnTrainer *trainer, bool *failed)
{
    const KilnLoggers *loggers = &trainer->loggers;
    json_t *all = json_object();

    for (size_t i = 0; i < loggers->n; i++) {
        KilnState state = { .path = kiln_instance_path(loggers->list[i]), .object = json_object() };

        kiln_call_enter(loggers->list[i], "state_dict");
        if (ops_of(loggers->list[i])->state_dict != NULL && state.object != NULL)
            ops_of(loggers->list[i])->state_dict(loggers->list[i], &state);
        kiln_call_leave();
        *failed = *failed || state.failed || state.object == NULL;
        kiln_state_release(&state);
        kiln_json_put(&all, kiln_instance_path(loggers->list[i]), state.object);
    }
    return all;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static double wall_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The row for the current position, without metrics. Epoch values of a validation belong to the
 * fit, in one row with those of its epoch. */
static KilnLogRow current_row(const KilnTrainer *trainer, bool epoch_values)
{
    const bool validates = trainer->phase == KILN_PHASE_VALIDATE && epoch_values;
    const bool fits = trainer->phase == KILN_PHASE_FIT || validates;

    return (KilnLogRow) {
        .phase = validates ? "fit" : kiln_trainer_phase(trainer),
        .epoch = trainer->at.epoch,
        .step = trainer->at.step,
        .batch = fits ? trainer->at.batch : trainer->eval.batch,
        .samples = kiln_trainer_samples(trainer),
        .wall_time = wall_time(),
    };
}

KilnStatus kiln_loggers_send(KilnTrainer *trainer, bool epoch_values, KilnError *err)
{
    const KilnLoggers *loggers = &trainer->loggers;
    const KilnRunEnv *env = trainer->env;
    KilnLogRow row = current_row(trainer, epoch_values);
    KilnStatus status = KILN_OK;

    row.n = kiln_metrics_take(trainer->metrics, epoch_values, trainer->at.step, &row.metrics);
    if (row.n > 0 && env->log_row != NULL && kiln_trainer_rank(trainer) == 0)
        env->log_row(env->ctx, &row);
    for (size_t i = 0; row.n > 0 && i < loggers->n && status >= 0; i++)
        status = name_logger(
            loggers->list[i],
            KILN_CALLED(loggers->list[i], "log_metrics",
                        ops_of(loggers->list[i])->log_metrics(loggers->list[i], &row, err), err),
            err);
    return status;
}

void kiln_loggers_discard_steps(KilnTrainer *trainer)
{
    const KilnMetric *discarded;

    (void)kiln_metrics_take(trainer->metrics, false, trainer->at.step, &discarded);
}

/* ---- What components log -------------------------------------------------------------------- */

KilnStatus kiln_trainer_log_histogram(KilnTrainer *trainer, const char *name,
                                      const KilnHistogram *histogram, KilnError *err)
{
    const KilnLoggers *loggers = &trainer->loggers;
    const KilnLogRow at = current_row(trainer, false);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < loggers->n && status >= 0; i++)
        if (ops_of(loggers->list[i])->log_histogram != NULL)
            status = name_logger(
                loggers->list[i],
                KILN_CALLED(loggers->list[i], "log_histogram",
                            ops_of(loggers->list[i])
                                ->log_histogram(loggers->list[i], &at, name, histogram, err),
                            err),
                err);
    return status;
}

KilnStatus kiln_trainer_log_image(KilnTrainer *trainer, const char *name, const KilnPixels *pixels,
                                  KilnError *err)
{
    const KilnLoggers *loggers = &trainer->loggers;
    const KilnLogRow at = current_row(trainer, false);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < loggers->n && status >= 0; i++)
        if (ops_of(loggers->list[i])->log_image != NULL)
            status = name_logger(
                loggers->list[i],
                KILN_CALLED(
                    loggers->list[i], "log_image",
                    ops_of(loggers->list[i])->log_image(loggers->list[i], &at, name, pixels, err),
                    err),
                err);
    return status;
}

KilnStatus kiln_trainer_log_text(KilnTrainer *trainer, const char *name, const char *text,
                                 KilnError *err)
{
    const KilnLoggers *loggers = &trainer->loggers;
    const KilnLogRow at = current_row(trainer, false);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < loggers->n && status >= 0; i++)
        if (ops_of(loggers->list[i])->log_text != NULL)
            status = name_logger(
                loggers->list[i],
                KILN_CALLED(
                    loggers->list[i], "log_text",
                    ops_of(loggers->list[i])->log_text(loggers->list[i], &at, name, text, err),
                    err),
                err);
    return status;
}

bool kiln_trainer_takes(const KilnTrainer *trainer, KilnLogKind kind)
{
    for (size_t i = 0; i < trainer->loggers.n; i++) {
        const KilnLoggerOps *ops = ops_of(trainer->loggers.list[i]);

        if ((kind == KILN_LOG_HISTOGRAMS && ops->log_histogram != NULL) ||
            (kind == KILN_LOG_IMAGES && ops->log_image != NULL) ||
            (kind == KILN_LOG_TEXTS && ops->log_text != NULL))
            return true;
    }
    return false;
}
