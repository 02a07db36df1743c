/* Ranks jobs: selects the metric, and sorts the jobs by it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/tree/node.h"
#include "kiln/search/pareto.h"
#include "sweep/sweep_state.h"

/* ---- The metric ------------------------------------------------------------------------- */

/* The text at `key` of a mapping, resolved; NULL when there is none. */
static const char *text_at(const KilnConfig *config, const KilnConfigNode *map, const char *key)
{
    const KilnConfigNode *written = kiln_node_get(map, key), *node = NULL;

    if (written == NULL || kiln_config_resolve(config, written, &node, NULL) < 0 || node == NULL ||
        node->kind != KILN_NODE_SCALAR || node->scalar == KILN_SCALAR_NULL)
        return NULL;
    return node->text;
}

/* The first model_checkpoint that monitors something. */
static const KilnConfigNode *find_monitor(const KilnConfig *config)
{
    const KilnConfigNode *written = kiln_node_get(kiln_config_root(config), "callbacks");
    const KilnConfigNode *callbacks = NULL, *node;

    if (written == NULL || kiln_config_resolve(config, written, &callbacks, NULL) < 0 ||
        callbacks == NULL || callbacks->kind != KILN_NODE_MAP)
        return NULL;
    for (size_t i = 0; i < callbacks->count; i++) {
        if (kiln_config_resolve(config, callbacks->entries[i].value, &node, NULL) < 0 ||
            node == NULL || node->kind != KILN_NODE_MAP)
            continue;
        const char *target = text_at(config, node, "_target_");
        if (target != NULL && kiln_ends_with(target, "model_checkpoint") &&
            text_at(config, node, "monitor") != NULL)
            return node;
    }
    return NULL;
}

/* Several objectives. */
static KilnStatus choose_metrics(KilnSweep *sweep, KilnError *err)
{
    const KilnRankOptions *rank = sweep->rank;
    const size_t n = rank->metrics_count;

    if (rank->metric != NULL || rank->mode != KILN_MODE_AUTO)
        return kiln_error_set(err, KILN_E_RANGE,
                              "kiln.sweeper.metrics: kiln.sweeper.metric and mode are for a single "
                              "one; remove them, and write kiln.sweeper.modes if needed");
    if (n > KILN_MAX_OBJECTIVES)
        return kiln_error_set(err, KILN_E_RANGE, "kiln.sweeper.metrics: %zu of them; at most %d", n,
                              KILN_MAX_OBJECTIVES);
    if (rank->modes != NULL && rank->modes_count != n)
        return kiln_error_set(err, KILN_E_RANGE,
                              "kiln.sweeper.modes: %zu of them for %zu metrics; write one for each",
                              rank->modes_count, n);
    sweep->more = kiln_arena_alloc(&sweep->arena, n * sizeof(*sweep->more));
    if (sweep->more == NULL)
        return kiln_error_nomem(err, n);
    for (size_t i = 1; i < n; i++)
        sweep->more[sweep->n_more++] = (KilnObjective) {
            .metric = rank->metrics[i],
            .mode = rank->modes != NULL ? (KilnMode)rank->modes[i] : KILN_MODE_AUTO,
        };
    sweep->metric = rank->metrics[0];
    sweep->metric_mode = rank->modes != NULL ? (KilnMode)rank->modes[0] : KILN_MODE_AUTO;
    return KILN_OK;
}

static KilnStatus choose_one(KilnSweep *sweep, KilnError *err)
{
    const KilnConfig *config = sweep->config;
    const KilnConfigNode *monitor = find_monitor(config);
    const char *monitored = monitor != NULL ? text_at(config, monitor, "monitor") : NULL;
    const char *mode = monitor != NULL ? text_at(config, monitor, "mode") : NULL;
    const char *name = sweep->rank->metric != NULL ? sweep->rank->metric
                       : monitored != NULL         ? monitored
                                                   : "val/loss";

    sweep->metric_mode = (KilnMode)sweep->rank->mode;
    if (sweep->metric_mode == KILN_MODE_AUTO && monitored != NULL && strcmp(monitored, name) == 0)
        sweep->metric_mode = kiln_mode_of(mode);
    sweep->metric = kiln_arena_strdup(&sweep->arena, name);
    return sweep->metric != NULL ? KILN_OK : kiln_error_nomem(err, strlen(name));
}

/* The configured mode. */
static KilnMode mode_of(const KilnSweep *sweep, size_t objective)
{
    return objective == 0 ? sweep->metric_mode : sweep->more[objective - 1].mode;
}

KilnStatus kiln_sweep_choose_metric(KilnSweep *sweep, KilnError *err)
{
    const bool several = sweep->rank->metrics_count > 0;
    KilnStatus status = several ? choose_metrics(sweep, err) : choose_one(sweep, err);

    for (size_t i = 0; i <= sweep->n_more && status >= 0; i++) {
        sweep->declared[i] = (KilnObjective) { .metric = kiln_sweep_metric(sweep, i),
                                               .mode = mode_of(sweep, i) };
        sweep->objectives[i] = &sweep->declared[i];
    }
    return status;
}

KilnStatus kiln_sweep_check_logged(const KilnSweep *sweep, const KilnJob *job, KilnError *err)
{
    const bool several = sweep->rank->metrics_count > 0;
    const char **names = calloc(job->n_metrics + 1, sizeof(*names)), *missing = NULL;
    KilnText list = { 0 };

    for (size_t i = 0; i <= sweep->n_more && missing == NULL; i++)
        if (kiln_job_metric(job, kiln_sweep_metric(sweep, i)) == NULL)
            missing = kiln_sweep_metric(sweep, i);
    if (missing == NULL || names == NULL || (!several && sweep->rank->metric == NULL)) {
        free(names);
        return KILN_OK;
    }
    for (size_t i = 0; i < job->n_metrics; i++) {
        names[i] = job->metrics[i].name;
        kiln_text_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    const char *near = kiln_nearest(missing, names, job->n_metrics);
    kiln_error_set(err, KILN_E_KEY,
                   "kiln.sweeper.metric%s: job #%zu has ended, and logs no %s%s%s%s; it logs %s. "
                   "Continue with: train -m --resume %s kiln.sweeper.metric%s=...",
                   several ? "s" : "", (size_t)(job - sweep->jobs.items), missing,
                   near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?)" : "", list.data != NULL ? list.data : "nothing", sweep->dir,
                   several ? "s" : "");
    kiln_text_release(&list);
    free(names);
    return err->status;
}

/* ---- The order ---------------------------------------------------------------------------- */

const char *kiln_sweep_metric(const KilnSweep *sweep, size_t objective)
{
    return objective == 0 ? sweep->metric : sweep->more[objective - 1].metric;
}

double kiln_job_value_of(const KilnSweep *sweep, const KilnJob *job, size_t objective,
                         KilnMode *ret_mode)
{
    const KilnJobMetric *metric = kiln_job_metric(job, kiln_sweep_metric(sweep, objective));

    *ret_mode = mode_of(sweep, objective);
    if (metric == NULL)
        return (double)NAN;
    if (*ret_mode == KILN_MODE_AUTO)
        *ret_mode = metric->mode;
    /* A run records a best value only for a metric that declares its mode. */
    return metric->mode != KILN_MODE_AUTO && *ret_mode == metric->mode ? metric->best
                                                                       : metric->last;
}

double kiln_sweep_value(const KilnSweep *sweep, const KilnJob *job, size_t objective,
                        KilnMode *ret_mode)
{
    if (job->next_run == 0)
        return kiln_job_value_of(sweep, job, objective, ret_mode);
    const KilnRuns runs = kiln_sweep_runs_of(sweep, job, objective);

    *ret_mode = runs.mode;
    return runs.value;
}

double kiln_sweep_score(const KilnSweep *sweep, const KilnJob *job, KilnMode *ret_mode)
{
    return kiln_sweep_value(sweep, job, 0, ret_mode);
}

const KilnJob *kiln_sweep_best(const KilnSweep *sweep)
{
    const KilnJob *best = NULL;
    double least = (double)INFINITY;

    for (size_t i = 0; i < sweep->jobs.count; i++) {
        const KilnJob *job = &sweep->jobs.items[i];
        KilnMode mode;
        const double score = kiln_sweep_score(sweep, job, &mode);
        const double loss = mode == KILN_MODE_MAX ? -score : score;

        if (job->status != KILN_JOB_OK || job->first_run > 0 || mode == KILN_MODE_AUTO ||
            !(loss < least))
            continue;
        least = loss;
        best = job;
    }
    return best;
}

/* The value as a loss, of which less is better; NaN: it has none, or no known mode. */
static double loss_of(const KilnSweep *sweep, size_t number, size_t objective)
{
    KilnMode mode;
    const double value = kiln_sweep_value(sweep, &sweep->jobs.items[number], objective, &mode);

    return mode == KILN_MODE_AUTO ? (double)NAN : mode == KILN_MODE_MAX ? -value : value;
}

static bool can_be_ranked(const KilnSweep *sweep, size_t number)
{
    const KilnJob *job = &sweep->jobs.items[number];
    bool can = job->status == KILN_JOB_OK && job->first_run == 0;

    for (size_t i = 0; i <= sweep->n_more; i++)
        can &= !isnan(loss_of(sweep, number, i));
    return can;
}

typedef struct Ranked {
    size_t number, rank;
    double loss; /* of the first objective */
} Ranked;

static int compare_ranked(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->loss != y->loss)
        return x->loss < y->loss ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* The front of each of `n` jobs; all 0 when memory is out. */
static void put_fronts(const KilnSweep *sweep, const size_t *numbers, size_t n, size_t *ret)
{
    const size_t width = sweep->n_more + 1;
    double *losses = calloc(n * width + 1, sizeof(*losses));

    memset(ret, 0, n * sizeof(*ret));
    for (size_t i = 0; losses != NULL && i < n; i++)
        for (size_t k = 0; k < width; k++)
            losses[i * width + k] = loss_of(sweep, numbers[i], k);
    if (losses != NULL)
        (void)!kiln_pareto_ranks(losses, n, width, ret, NULL);
    free(losses);
}

void kiln_sweep_ranks(const KilnSweep *sweep, const size_t *order, size_t n, size_t *ret)
{
    if (sweep->n_more > 0)
        put_fronts(sweep, order, n, ret);
    for (size_t i = 0; i < n && sweep->n_more == 0; i++)
        ret[i] = i + 1;
}

size_t kiln_sweep_rank(const KilnSweep *sweep, size_t *ret)
{
    Ranked *ranked = calloc(sweep->jobs.count + 1, sizeof(*ranked));
    size_t *fronts = calloc(sweep->jobs.count + 1, sizeof(*fronts)), n = 0;

    for (size_t i = 0; ranked != NULL && fronts != NULL && i < sweep->jobs.count; i++)
        if (can_be_ranked(sweep, i))
            ret[n++] = i;
    if (n > 0 && sweep->n_more > 0)
        put_fronts(sweep, ret, n, fronts);
    for (size_t i = 0; i < n; i++)
        ranked[i] = (Ranked) { ret[i], fronts[i], loss_of(sweep, ret[i], 0) };
    if (n > 0)
        qsort(ranked, n, sizeof(*ranked), compare_ranked);
    for (size_t i = 0; i < n; i++)
        ret[i] = ranked[i].number;
    free(ranked);
    free(fronts);
    return n;
}
