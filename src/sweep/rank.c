/* Ranks jobs: selects the metric, and sorts the jobs by it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/tree/node.h"
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

KilnStatus kiln_sweep_choose_metric(KilnSweep *sweep, KilnError *err)
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
    sweep->objective = (KilnObjective) { .metric = sweep->metric, .mode = sweep->metric_mode };
    sweep->objectives[0] = &sweep->objective;
    return sweep->metric != NULL ? KILN_OK : kiln_error_nomem(err, strlen(name));
}

/* ---- The order ---------------------------------------------------------------------------- */

double kiln_sweep_score(const KilnSweep *sweep, const KilnJob *job, KilnMode *ret_mode)
{
    const KilnJobMetric *metric = kiln_job_metric(job, sweep->metric);

    *ret_mode = sweep->metric_mode;
    if (metric == NULL)
        return (double)NAN;
    if (*ret_mode == KILN_MODE_AUTO)
        *ret_mode = metric->mode;
    /* A run records a best value only for a metric that declares its mode. */
    return metric->mode != KILN_MODE_AUTO && *ret_mode == metric->mode ? metric->best
                                                                       : metric->last;
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

        if (job->status != KILN_JOB_OK || mode == KILN_MODE_AUTO || !(loss < least))
            continue;
        least = loss;
        best = job;
    }
    return best;
}

typedef struct Ranked {
    size_t number;
    double score; /* larger is better */
} Ranked;

static int compare_ranked(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

size_t kiln_sweep_rank(const KilnSweep *sweep, size_t *ret)
{
    Ranked *ranked = calloc(sweep->jobs.count + 1, sizeof(*ranked));
    size_t n = 0;

    for (size_t i = 0; ranked != NULL && i < sweep->jobs.count; i++) {
        KilnMode mode;
        double score = kiln_sweep_score(sweep, &sweep->jobs.items[i], &mode);

        if (sweep->jobs.items[i].status == KILN_JOB_OK && !isnan(score) && mode != KILN_MODE_AUTO)
            ranked[n++] = (Ranked) { .number = i, .score = mode == KILN_MODE_MAX ? score : -score };
    }
    if (n > 0)
        qsort(ranked, n, sizeof(*ranked), compare_ranked);
    for (size_t i = 0; i < n; i++)
        ret[i] = ranked[i].number;
    free(ranked);
    return n;
}
