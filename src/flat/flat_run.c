/* Runs for callers that know no structs: kiln/flat/run.h. */
#include "kiln/flat/run.h"

#include <stdlib.h>
#include <string.h>

#include "flat/flat_data.h"
#include "flat/flat_env.h"

enum { MOST_COLUMNS = 256 }; /* of a row */

/* ---- Callbacks ------------------------------------------------------------------------------- */

static void write_text(void *ctx, const char *text)
{
    const KilnFlatEnv *env = ctx;

    env->write(env->ctx, text);
}

static void report_progress(void *ctx, const KilnRunProgress *at)
{
    const KilnFlatEnv *env = ctx;

    env->progress(env->ctx, at->epoch, at->max_epochs, at->step, at->max_steps);
}

static void report_row(void *ctx, const KilnLogRow *row)
{
    const KilnFlatEnv *env = ctx;
    const char *names[MOST_COLUMNS];
    double values[MOST_COLUMNS];

    for (size_t from = 0; from < row->n; from += MOST_COLUMNS) {
        const size_t n = row->n - from < MOST_COLUMNS ? row->n - from : MOST_COLUMNS;

        for (size_t i = 0; i < n; i++) {
            names[i] = row->metrics[from + i].name;
            values[i] = row->metrics[from + i].value;
        }
        env->row(env->ctx, row->phase, row->epoch, row->step, names, values, n);
    }
}

static KilnStatus give_output(void *ctx, const char *text, KilnError *err)
{
    const KilnFlatEnv *env = ctx;

    return env->output(env->ctx, text, err);
}

/* ---- The environment ------------------------------------------------------------------------- */

KilnFlatEnv *kiln_flat_env_new(const KilnRegistry *registry, void *ctx)
{
    KilnFlatEnv *env = calloc(1, sizeof(*env));

    if (env == NULL)
        return NULL;
    env->ctx = ctx;
    env->run = (KilnRunEnv) { .registry = registry, .stop = &env->stop, .ctx = env };
    return env;
}

void kiln_flat_env_free(KilnFlatEnv *env)
{
    if (env != NULL)
        kiln_arena_release(&env->arena);
    free(env);
}

KilnStatus kiln_flat_env_overrides(KilnFlatEnv *env, const char *const *overrides, KilnError *err)
{
    size_t n = 0;

    while (overrides[n] != NULL)
        n++;
    const char **copy = kiln_arena_alloc(&env->arena, (n + 1) * sizeof(*copy));
    for (size_t i = 0; i < n && copy != NULL; i++)
        copy[i] = kiln_arena_strdup(&env->arena, overrides[i]);
    if (env->arena.failed)
        return kiln_error_nomem(err, n * sizeof(*copy));
    copy[n] = NULL;
    env->run.overrides = copy;
    return KILN_OK;
}

void kiln_flat_env_console(KilnFlatEnv *env, KilnFlatWrite *write, bool terminal, bool colour,
                           bool utf8, int width)
{
    env->write = write;
    env->console = (KilnConsole) { .terminal = terminal,
                                   .colour = colour,
                                   .utf8 = utf8,
                                   .width = width,
                                   .ctx = env,
                                   .write = write_text };
    env->run.console = &env->console;
}

void kiln_flat_env_progress(KilnFlatEnv *env, KilnFlatProgress *progress)
{
    env->progress = progress;
    env->run.progress = report_progress;
}

void kiln_flat_env_rows(KilnFlatEnv *env, KilnFlatRow *row)
{
    env->row = row;
    env->run.log_row = report_row;
}

void kiln_flat_env_output(KilnFlatEnv *env, KilnFlatOutput *output)
{
    env->output = output;
    env->run.output = give_output;
}

void kiln_flat_env_data(KilnFlatEnv *env, const KilnFlatData *data)
{
    env->run.data = &data->memory;
}

KilnStatus kiln_flat_env_resume(KilnFlatEnv *env, const char *run, KilnError *err)
{
    env->run.resume = kiln_arena_strdup(&env->arena, run);
    return env->run.resume != NULL ? KILN_OK : kiln_error_nomem(err, strlen(run));
}

void kiln_flat_env_stop(KilnFlatEnv *env, int number)
{
    env->stop = number;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

KilnStatus kiln_flat_fit(KilnFlatEnv *env, KilnConfig *config, KilnError *err)
{
    env->result = (KilnRunResult) { 0 };
    return kiln_run_fit(config, &env->run, &env->result, err);
}

KilnStatus kiln_flat_fit_open(KilnFlatEnv *env, KilnConfig *config, KilnFit **ret, KilnError *err)
{
    env->result = (KilnRunResult) { 0 };
    return kiln_fit_open(config, &env->run, ret, err);
}

KilnStatus kiln_flat_fit_close(KilnFlatEnv *env, KilnFit *fit, KilnError *err)
{
    return kiln_fit_close(fit, &env->result, err);
}

const char *kiln_flat_run_dir(const KilnFlatEnv *env)
{
    return env->result.run_dir;
}

const char *kiln_flat_run_status(const KilnFlatEnv *env)
{
    return env->result.status;
}

KilnStatus kiln_flat_eval(KilnFlatEnv *env, KilnConfig *config, const char *split, char **ret_json,
                          KilnError *err)
{
    KilnSplit which = KILN_TRAIN;
    KilnStatus status = kiln_flat_split(split, &which, err);

    return status >= 0 ? kiln_run_eval(config, &env->run, which, ret_json, err) : status;
}

/* ---- In hooks -------------------------------------------------------------------------------- */

bool kiln_flat_metric(const KilnTrainer *trainer, size_t i, const char **ret_name,
                      double *ret_value)
{
    const KilnMetric *metrics;

    if (i >= kiln_trainer_metrics(trainer, &metrics))
        return false;
    *ret_name = metrics[i].name;
    *ret_value = metrics[i].value;
    return true;
}

const float *kiln_flat_output(const KilnTrainer *trainer, size_t i, const char **ret_name,
                              int *ret_rank, int64_t *ret_dims)
{
    KilnOutputView outputs[KILN_STEP_OUTPUTS];

    if (i >= kiln_trainer_outputs(trainer, outputs))
        return NULL;
    *ret_name = outputs[i].name;
    *ret_rank = outputs[i].shape.rank;
    memcpy(ret_dims, outputs[i].shape.dim, sizeof(outputs[i].shape.dim));
    return outputs[i].data;
}

const void *kiln_flat_feature(const KilnTrainer *trainer, const char *name, int *ret_dtype,
                              int *ret_rank, int64_t *ret_dims)
{
    const KilnFeature *feature = kiln_spec_feature(kiln_trainer_spec(trainer), name);
    int64_t n = 0;
    const void *data = feature != NULL && !feature->varies && feature->content != KILN_TEXT &&
                               feature->shape.rank < KILN_MAX_RANK
                           ? kiln_trainer_feature(trainer, name, &n)
                           : NULL;

    if (data == NULL)
        return NULL;
    *ret_dtype = (int)feature->dtype;
    *ret_rank = feature->shape.rank + 1;
    ret_dims[0] = n;
    memcpy(ret_dims + 1, feature->shape.dim, (size_t)feature->shape.rank * sizeof(*ret_dims));
    return data;
}

void kiln_flat_print(KilnTrainer *trainer, const char *text)
{
    kiln_trainer_print(trainer, "%s", text);
}

KilnStatus kiln_flat_save(KilnTrainer *trainer, const char *name, KilnError *err)
{
    return kiln_trainer_save(trainer, kiln_trainer_module(trainer), name, 0, err);
}
