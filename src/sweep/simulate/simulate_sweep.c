/* Simulates a sweep over recorded trials. */
#include "sweep/simulate/simulate_sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "base/text.h"
#include "config/provenance/error_list.h"
#include "kiln/array.h"
#include "kiln/search/history.h"
#include "registry/registry.h"
#include "sweep/sweep_state.h"

/* ---- Trials over curves ---------------------------------------------------------------------- */

/* Which curve each trial of a run has. */
typedef struct Trials {
    const KilnCurves *curves;
    size_t *taken; /* by trial */
    size_t n_taken, capacity;
    bool *used; /* by curve */
    bool failed;
} Trials;

static bool begin(void *ctx, size_t trial, size_t parent, KilnAxisValue *point)
{
    Trials *trials = ctx;
    const KilnCurves *curves = trials->curves;
    const bool fresh = parent == KILN_NO_TRIAL;
    const size_t curve = kiln_curves_nearest(curves, point, fresh ? trials->used : NULL);

    if (curve == SIZE_MAX)
        return false;
    if (!KILN_RESERVE(trials->taken, trials->capacity, trial + 1)) {
        trials->failed = true;
        return false;
    }
    trials->taken[trial] = curve;
    trials->n_taken = trial + 1;
    trials->used[curve] = true;
    if (fresh)
        memcpy(point, curves->curves[curve].point, curves->space.count * sizeof(*point));
    return true;
}

static KilnSimulatedEpoch train(void *ctx, size_t trial, const KilnAxisValue *point, int64_t epoch)
{
    const Trials *trials = ctx;
    const KilnCurve *curve = &trials->curves->curves[trials->taken[trial]];

    (void)point;
    /* One that continues from another trial may have fewer epochs than that one. */
    const int64_t at = epoch <= curve->n_epochs ? epoch : curve->n_epochs;
    return (KilnSimulatedEpoch) { .value = curve->values[at - 1],
                                  .seconds = curve->seconds,
                                  .last = epoch >= curve->n_epochs };
}

/* ---- A run ----------------------------------------------------------------------------------- */

static void summarize(const KilnCurves *curves, const bool *used, KilnSimulatedRun *run)
{
    const KilnSimulated *simulated = run->simulated;

    run->best = run->tried = (double)INFINITY;
    if (simulated->best != KILN_NO_TRIAL)
        run->best = kiln_objective_loss(&curves->objective,
                                        simulated->history.trials[simulated->best]->values[0]);
    for (size_t i = 0; i < curves->count; i++) {
        if (!used[i])
            continue;
        run->tried = fmin(run->tried, kiln_curves_loss(curves, i));
        run->whole_epochs += curves->curves[i].n_epochs;
        run->whole_seconds += (double)curves->curves[i].n_epochs * curves->curves[i].seconds;
    }
}

static KilnStatus simulate(const KilnSweep *sweep, const KilnSimulateRequest *request,
                           const KilnCurves *curves, size_t workers, KilnSimulatedRun *ret,
                           KilnError *err)
{
    Trials trials = { .curves = curves, .used = calloc(curves->count, sizeof(bool)) };
    const KilnSimulation simulation = {
        .space = &curves->space,
        .objective = &curves->objective,
        .sweeper = sweep->sweeper,
        .pruner = sweep->pruner,
        .workers = workers,
        .timeout = sweep->options->timeout,
        .straggle = request->straggle,
        .seed = (uint64_t)ret->seed,
        .ctx = &trials,
        .begin = begin,
        .train = train,
    };
    KilnStatus status = trials.used != NULL ? kiln_simulate(&simulation, &ret->simulated, err)
                                            : kiln_error_nomem(err, curves->count);

    if (status >= 0 && trials.failed)
        status = kiln_error_nomem(err, trials.n_taken);
    if (status >= 0)
        summarize(curves, trials.used, ret);
    ret->curves = trials.taken;
    free(trials.used);
    return status;
}

/* kiln.sweeper.seed; false: the sweeper has none. */
static bool read_seed(const KilnConfig *config, int64_t *ret)
{
    char *text = NULL;
    const bool has = kiln_config_text(config, "kiln.sweeper.seed", &text, NULL) >= 0 &&
                     kiln_parse_i64(text, ret, NULL) >= 0;

    free(text);
    return has;
}

/* Open the sweep over the space of the curves, with its seed raised by `index`. */
static KilnStatus open_run(const KilnSimulateRequest *request, const KilnCurves *curves,
                           int64_t seed, size_t index, KilnSweep *ret, KilnErrors *errors)
{
    KilnSweepRequest sweep = { .compose = request->compose, .space = &curves->space };
    size_t n = 0;
    char raised[64];

    while (request->compose.overrides != NULL && request->compose.overrides[n] != NULL)
        n++;
    const char **overrides = calloc(n + 2, sizeof(*overrides));
    if (overrides == NULL)
        return KILN_E_NOMEM;
    for (size_t i = 0; i < n; i++)
        overrides[i] = request->compose.overrides[i];
    snprintf(raised, sizeof(raised), "kiln.sweeper.seed=%lld", (long long)seed + (long long)index);
    if (index > 0)
        overrides[n] = raised;
    sweep.compose.overrides = overrides;
    KilnStatus status = kiln_sweep_open(&sweep, ret, errors);
    free(overrides);
    return status;
}

/* What all runs have in common. */
static KilnStatus name(KilnSimulatedSweep *simulated, const KilnSweep *sweep, KilnError *err)
{
    simulated->workers = sweep->n_jobs > 0 ? sweep->n_jobs : sweep->processors;
    simulated->sweeper = kiln_strdup(kiln_instance_name(sweep->sweeper));
    if (sweep->pruner != NULL)
        simulated->pruner = kiln_strdup(kiln_instance_name(sweep->pruner));
    if (simulated->sweeper == NULL || (sweep->pruner != NULL && simulated->pruner == NULL))
        return kiln_error_nomem(err, 1);
    return KILN_OK;
}

static KilnStatus add_run(KilnSimulatedSweep *simulated, const KilnSimulateRequest *request,
                          size_t index, KilnErrors *errors)
{
    KilnSimulatedRun *run = &simulated->runs[index];
    KilnSweep sweep;
    KilnError err = { 0 };
    KilnStatus status = open_run(request, &simulated->curves, simulated->runs[0].seed, index,
                                 &sweep, errors);

    if (status < 0) {
        kiln_sweep_close(&sweep);
        return status;
    }
    if (!read_seed(sweep.config, &run->seed) && request->runs > 1)
        status =
            kiln_error_set(&err, KILN_E_USAGE,
                           "--runs %zu: sweeper/%s has no seed, and all runs would be the same",
                           request->runs, kiln_instance_name(sweep.sweeper));
    if (status >= 0 && index == 0)
        status = name(simulated, &sweep, &err);
    if (status >= 0)
        status = simulate(&sweep, request, &simulated->curves, simulated->workers, run, &err);
    kiln_sweep_close(&sweep);
    return status < 0 ? kiln_errors_add(errors, &err) : KILN_OK;
}

/* ---- The simulation -------------------------------------------------------------------------- */

/* A sweeper that accepts no intervals has the recorded trials to choose from. */
static KilnStatus fit_space(const KilnSimulateRequest *request, const char *target,
                            KilnCurves *curves, KilnError *err)
{
    const char *slash = strchr(target, '/');
    const KilnComponent *sweeper = kiln_registry_find(request->compose.registry, KILN_KIND_SWEEPER,
                                                      slash != NULL ? slash + 1 : target);
    const KilnSpace *space = &curves->space;

    for (size_t i = 0; sweeper != NULL && i < space->count; i++)
        if (kiln_axis_is_interval(space->axes[i]) &&
            (sweeper->ops.sweeper->axes & space->axes[i]->kind) == 0)
            return kiln_curves_list(curves, err);
    return KILN_OK;
}

/* The metric and its mode, as kiln.sweeper has them. */
static KilnStatus read_curves(const KilnSimulateRequest *request, KilnCurves *ret,
                              KilnErrors *errors)
{
    KilnSweepArguments arguments;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    void *options = NULL;
    KilnStatus status = kiln_compose_sweep(&request->compose, &config, &arguments, errors);

    if (status < 0)
        return status;
    status = kiln_config_options(config, "kiln.sweeper", kiln_rank_fields, sizeof(KilnRankOptions),
                                 &options, &err);
    if (status >= 0) {
        const KilnRankOptions *rank = options;
        const KilnObjective objective = { .metric = rank->metric, .mode = (KilnMode)rank->mode };

        status = kiln_is_dir(request->source)
                     ? kiln_curves_read_sweep(request->source, &objective, ret, &err)
                     : kiln_curves_read_csv(request->source, &objective, ret, &err);
        if (status >= 0)
            status = fit_space(request, rank->_target_, ret, &err);
    }
    kiln_options_free(kiln_rank_fields, sizeof(KilnRankOptions), options);
    kiln_config_free(config);
    return status < 0 ? kiln_errors_add(errors, &err) : KILN_OK;
}

KilnStatus kiln_sweep_simulate(const KilnSimulateRequest *request, KilnSimulatedSweep *ret,
                               KilnErrors *errors)
{
    *ret = (KilnSimulatedSweep) { .least = (double)INFINITY };
    KilnStatus status = read_curves(request, &ret->curves, errors);

    if (status < 0)
        return status;
    for (size_t i = 0; i < ret->curves.count; i++)
        ret->least = fmin(ret->least, kiln_curves_loss(&ret->curves, i));
    ret->runs = calloc(request->runs, sizeof(*ret->runs));
    if (ret->runs == NULL)
        return KILN_E_NOMEM;
    for (; ret->n_runs < request->runs && status >= 0; ret->n_runs++)
        status = add_run(ret, request, ret->n_runs, errors);
    return status;
}

void kiln_simulated_sweep_release(KilnSimulatedSweep *simulated)
{
    for (size_t i = 0; i < simulated->n_runs; i++) {
        kiln_simulated_free(simulated->runs[i].simulated);
        free(simulated->runs[i].curves);
    }
    free(simulated->runs);
    free(simulated->sweeper);
    free(simulated->pruner);
    kiln_curves_release(&simulated->curves);
    *simulated = (KilnSimulatedSweep) { .n_runs = 0 };
}
