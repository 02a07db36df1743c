/* Analyses a sweep: reads it, and finds how important its parameters are. */
#include "sweep/report/sweep_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "config/yaml/yaml_reader.h"
#include "kiln/search/history.h"

double kiln_sweep_report_value(const KilnSweepReport *report, size_t job)
{
    KilnMode mode;

    return kiln_sweep_score(&report->sweep, &report->sweep.jobs.items[job], &mode);
}

double kiln_sweep_report_loss(const KilnSweepReport *report, size_t job)
{
    const KilnObjective objective = { .mode = report->mode };

    return kiln_objective_loss(&objective, kiln_sweep_report_value(report, job));
}

/* ---- Importance ----------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The losses of the points. Those far above the others, of runs that diverged, would be the whole
 * variance: they count as the third quartile plus three times the distance of the quartiles. */
static double *bounded_losses(KilnSweepReport *report)
{
    const size_t n = report->n_points;
    double *losses = kiln_arena_alloc(&report->arena, n * sizeof(*losses));
    double *sorted = kiln_arena_alloc(&report->arena, n * sizeof(*sorted));

    if (losses == NULL || sorted == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        losses[i] = sorted[i] = kiln_sweep_report_loss(report, report->points[i].job);
    qsort(sorted, n, sizeof(*sorted), compare_doubles);
    const double first = sorted[n / 4], third = sorted[3 * n / 4];
    for (size_t i = 0; i < n && third > first; i++)
        losses[i] = fmin(losses[i], third + 3.0 * (third - first));
    return losses;
}

/* Where a point is along a parameter. A place of its own, the first part of [0, 1) or the last
 * category, is for points at which it is inactive. */
static double coordinate_of(const KilnSweepReport *report, size_t point, size_t parameter)
{
    const KilnParameter *of = &report->parameters[parameter];
    const KilnAxis *axis = report->space.axes[of->axis];
    const KilnAxisValue *value = report->points[point].value;
    const bool active = kiln_axis_is_active(&report->space, of->axis, value);
    double share;

    if (!of->ordered)
        return active ? (double)of->place[value[of->axis].index] : (double)of->n_values;
    if (!active)
        return of->inactive / 2.0;
    if (of->n_values > 0)
        share = ((double)of->place[value[of->axis].index] + 0.5) / (double)of->n_values;
    else
        share = kiln_axis_share(axis, value[of->axis]);
    return fmin(of->inactive + (1.0 - of->inactive) * share, nextafter(1.0, 0.0));
}

/* Probabilities of the categories of a parameter. */
static double *weights_of(const KilnParameter *parameter, size_t categories, KilnArena *arena)
{
    double *weights = kiln_arena_alloc(arena, (categories + 1) * sizeof(*weights));

    for (size_t i = 0; weights != NULL && i < categories; i++)
        weights[i] = i < parameter->n_values
                         ? (1.0 - parameter->inactive) / (double)parameter->n_values
                         : parameter->inactive;
    return weights;
}

static KilnStatus analyse(KilnSweepReport *report, KilnError *err)
{
    const size_t n = report->n_points, dims = report->n_parameters;
    KilnArena *arena = &report->arena;
    double *x = kiln_arena_alloc(arena, n * dims * sizeof(*x));
    size_t *categories = kiln_arena_alloc(arena, dims * sizeof(*categories));
    const double **weights = kiln_arena_alloc(arena, dims * sizeof(*weights));
    KilnTreeData data = { .n = n, .dims = dims, .x = x, .categories = categories };

    data.y = bounded_losses(report);
    if (x == NULL || categories == NULL || weights == NULL || data.y == NULL)
        return kiln_error_nomem(err, n * dims * sizeof(*x));
    for (size_t i = 0; i < dims; i++) {
        const KilnParameter *parameter = &report->parameters[i];

        if (!parameter->ordered)
            categories[i] = parameter->n_values + (parameter->inactive > 0.0);
        if ((weights[i] = weights_of(parameter, categories[i], arena)) == NULL)
            return kiln_error_nomem(err, categories[i] * sizeof(double));
        for (size_t k = 0; k < n; k++)
            x[k * dims + i] = coordinate_of(report, k, i);
    }
    return kiln_fanova(&data, weights, arena, &report->fanova, err);
}

static int compare_interactions(const void *a, const void *b)
{
    const KilnInteraction *x = a, *y = b;

    if (x->importance != y->importance)
        return x->importance < y->importance ? 1 : -1;
    return (x->first > y->first) - (x->first < y->first);
}

KilnStatus kiln_sweep_report_find_importance(KilnSweepReport *report, KilnError *err)
{
    const size_t dims = report->n_parameters;

    if (report->n_points < KILN_REPORT_IMPORTANCE_JOBS || dims == 0)
        return KILN_OK;
    KilnStatus status = analyse(report, err);
    if (status < 0)
        return status;
    report->interactions = kiln_arena_alloc(&report->arena,
                                            dims * dims * sizeof(*report->interactions));
    if (report->interactions == NULL)
        return kiln_error_nomem(err, dims * dims * sizeof(*report->interactions));
    for (size_t i = 0; i < dims; i++) {
        KilnParameter *parameter = &report->parameters[i];

        parameter->importance = parameter->with_pairs = report->fanova.single[i];
        for (size_t k = 0; k < dims; k++) {
            const double both = report->fanova.pairs[i * dims + k];

            parameter->with_pairs += both;
            if (k > i && both >= KILN_REPORT_STRONG)
                report->interactions[report->n_interactions++] =
                    (KilnInteraction) { .first = i, .second = k, .importance = both };
        }
    }
    if (report->n_interactions > 0)
        qsort(report->interactions, report->n_interactions, sizeof(*report->interactions),
              compare_interactions);
    return KILN_OK;
}

void kiln_sweep_report_order(const KilnSweepReport *report, size_t *ret)
{
    for (size_t i = 0; i < report->n_parameters; i++) {
        size_t at = i;

        for (; at > 0 &&
               report->parameters[ret[at - 1]].importance < report->parameters[i].importance;
             at--)
            ret[at] = ret[at - 1];
        ret[at] = i;
    }
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* The frozen config of the best job; a folder that was removed is reported where it is needed. */
static void read_best(KilnSweepReport *report)
{
    const KilnJob *best = &report->sweep.jobs.items[report->ranked[0]];
    char *config = NULL, *own = NULL;

    if (best->dir != NULL) {
        config = kiln_sweep_job_path(&report->sweep, best, ".kiln/job.yaml");
        own = kiln_sweep_job_path(&report->sweep, best, ".kiln/kiln.yaml");
    }
    if (config == NULL || own == NULL ||
        kiln_yaml_read_file(&report->arena, config, &report->best_config, NULL) < 0 ||
        kiln_yaml_read_file(&report->arena, own, &report->best_own, NULL) < 0)
        report->best_config = report->best_own = NULL;
    free(config);
    free(own);
}

KilnStatus kiln_sweep_report_open(const char *dir, KilnSweepReport *report, KilnError *err)
{
    *report = (KilnSweepReport) { .mode = KILN_MODE_AUTO };
    KilnStatus status = kiln_sweep_report_read(dir, report, err);

    if (status >= 0) {
        read_best(report);
        status = kiln_sweep_report_find_parameters(report, err);
    }
    if (status >= 0)
        status = kiln_sweep_report_find_importance(report, err);
    if (status >= 0)
        status = kiln_sweep_report_find_commands(report, err);
    return status >= 0 ? kiln_sweep_report_suggest(report, err) : status;
}

void kiln_sweep_report_release(KilnSweepReport *report)
{
    kiln_jobs_release(&report->sweep.jobs);
    free(report->sweep.dir);
    free(report->sweep.path);
    kiln_arena_release(&report->arena);
}

char *kiln_sweep_report_path(const KilnSweepReport *report, const char *name)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s/report/%s", report->sweep.path, name);
    return kiln_text_take(&text);
}
