/* The pictures of a report: values by trial and over parameters, parallel coordinates, importance.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "kiln/plot.h"
#include "sweep/report/sweep_report.h"

enum { MOST_SHOWN = 12 /* parameters in a picture, the most important ones */ };

typedef struct Drawing {
    const KilnSweepReport *report;
    KilnArena arena;
    size_t n;               /* points */
    double *values;         /* [n], of the metric */
    double *shades;         /* [n] */
    size_t best;            /* the point of the best job; n: it is none */
    size_t *shown, n_shown; /* parameters */
} Drawing;

/* ---- Points --------------------------------------------------------------------------------- */

/* Shades by rank: values far from the others don't take all colours for themselves. */
static KilnStatus prepare(Drawing *drawing, KilnError *err)
{
    const KilnSweepReport *report = drawing->report;
    KilnArena *arena = &drawing->arena;
    size_t *rank = kiln_arena_alloc(arena, (report->sweep.jobs.count + 1) * sizeof(*rank));

    drawing->n = drawing->best = report->n_points;
    drawing->values = kiln_arena_alloc(arena, (drawing->n + 1) * sizeof(double));
    drawing->shades = kiln_arena_alloc(arena, (drawing->n + 1) * sizeof(double));
    drawing->shown = kiln_arena_alloc(arena, (report->n_parameters + 1) * sizeof(size_t));
    if (arena->failed)
        return kiln_error_nomem(err, drawing->n * sizeof(double));
    for (size_t i = 0; i < report->n_ranked; i++)
        rank[report->ranked[i]] = i;
    for (size_t i = 0; i < drawing->n; i++) {
        const size_t job = report->points[i].job;

        drawing->values[i] = kiln_sweep_report_value(report, job);
        drawing->shades[i] = report->n_ranked > 1
                                 ? (double)rank[job] / (double)(report->n_ranked - 1)
                                 : 0.0;
        if (job == report->ranked[0])
            drawing->best = i;
    }
    kiln_sweep_report_order(report, drawing->shown);
    drawing->n_shown = report->n_parameters < MOST_SHOWN ? report->n_parameters : MOST_SHOWN;
    return KILN_OK;
}

/* A parameter as a scale; NULL values: memory is out. */
static KilnPlotScale scale_of(Drawing *drawing, size_t parameter)
{
    const KilnParameter *of = &drawing->report->parameters[parameter];
    double *values = kiln_arena_alloc(&drawing->arena, (drawing->n + 1) * sizeof(*values));
    KilnPlotScale scale = { .label = of->label, .values = values };

    if (values == NULL)
        return scale;
    for (size_t i = 0; i < drawing->n; i++)
        values[i] = kiln_sweep_report_number(drawing->report, i, parameter);
    if (of->n_values > 0) { /* numbers of a list, too: each has its tick */
        scale.names = of->texts;
        scale.n_names = of->n_values;
        return scale;
    }
    scale.log = of->log;
    scale.whole = !of->log && drawing->report->space.axes[of->axis]->kind == KILN_AXIS_INT;
    return scale;
}

/* The shown parameters; NULL: memory is out. */
static KilnPlotScale *scales_of(Drawing *drawing, size_t more)
{
    KilnPlotScale *scales = kiln_arena_alloc(&drawing->arena,
                                             (drawing->n_shown + more) * sizeof(*scales));

    for (size_t i = 0; scales != NULL && i < drawing->n_shown; i++)
        scales[i] = scale_of(drawing, drawing->shown[i]);
    return scales;
}

/* ---- Pictures ----------------------------------------------------------------------------------
 */

static KilnStatus draw_history(Drawing *drawing, const char *path, KilnError *err)
{
    const KilnSweepReport *report = drawing->report;
    const size_t jobs = report->sweep.jobs.count;
    double *number = kiln_arena_alloc(&drawing->arena, (jobs + 1) * sizeof(*number));
    double *value = kiln_arena_alloc(&drawing->arena, (jobs + 1) * sizeof(*value));
    double *best = kiln_arena_alloc(&drawing->arena, (jobs + 1) * sizeof(*best));
    double best_loss = (double)INFINITY;
    const char *title = kiln_arena_printf(&drawing->arena, "%s by job", report->sweep.metric);
    KilnPlotScale x = { .label = "job", .whole = true, .values = number };
    KilnPlotPanels panels = { .title = title,
                              .xs = &x,
                              .n_panels = 1,
                              .steps_label = "best so far",
                              .y = { .label = report->sweep.metric, .values = value } };

    if (drawing->arena.failed)
        return kiln_error_nomem(err, jobs * sizeof(*number));
    panels.steps = best;
    panels.mark = jobs;
    for (size_t i = 0; i < jobs; i++) {
        const double loss = kiln_sweep_report_loss(report, i);

        if (report->sweep.jobs.items[i].status != KILN_JOB_OK || !isfinite(loss))
            continue;
        if (loss < best_loss) {
            best_loss = loss;
            panels.mark = panels.n;
        }
        number[panels.n] = (double)i;
        value[panels.n] = kiln_sweep_report_value(report, i);
        best[panels.n++] = report->mode == KILN_MODE_MAX ? -best_loss : best_loss;
    }
    return kiln_plot_panels(path, &panels, err);
}

static KilnStatus draw_slice(Drawing *drawing, const char *path, KilnError *err)
{
    const KilnSweepReport *report = drawing->report;
    const KilnPlotPanels panels = {
        .title = kiln_arena_printf(&drawing->arena, "%s over each parameter", report->sweep.metric),
        .y = { .label = report->sweep.metric, .values = drawing->values },
        .xs = scales_of(drawing, 0),
        .n_panels = drawing->n_shown,
        .n = drawing->n,
        .shades = drawing->shades,
        .mark = drawing->best,
    };

    if (drawing->arena.failed)
        return kiln_error_nomem(err, drawing->n * sizeof(double));
    return kiln_plot_panels(path, &panels, err);
}

static KilnStatus draw_parallel(Drawing *drawing, const char *path, KilnError *err)
{
    KilnPlotScale *scales = scales_of(drawing, 1);
    const KilnPlotParallel parallel = {
        .title = "A line for each job, the best ones darkest",
        .scales = scales,
        .n_scales = drawing->n_shown + 1,
        .n = drawing->n,
        .shades = drawing->shades,
    };

    if (drawing->arena.failed)
        return kiln_error_nomem(err, drawing->n * sizeof(double));
    scales[drawing->n_shown] = (KilnPlotScale) { .label = drawing->report->sweep.metric,
                                                 .values = drawing->values };
    return kiln_plot_parallel(path, &parallel, err);
}

static KilnStatus draw_importance(Drawing *drawing, const char *path, KilnError *err)
{
    const KilnSweepReport *report = drawing->report;
    const size_t most = drawing->n_shown + report->n_interactions;
    KilnPlotBar *bars = kiln_arena_alloc(&drawing->arena, (most + 1) * sizeof(*bars));
    KilnPlotBars what = { .title = kiln_arena_printf(&drawing->arena, "Share of the variance of %s",
                                                     report->sweep.metric),
                          .bars = bars };

    if (drawing->arena.failed)
        return kiln_error_nomem(err, most * sizeof(*bars));
    for (size_t i = 0; i < drawing->n_shown; i++) {
        const KilnParameter *parameter = &report->parameters[drawing->shown[i]];

        bars[what.n++] = (KilnPlotBar) { .label = parameter->label,
                                         .value = parameter->importance };
    }
    for (size_t i = 0; i < report->n_interactions && i < MOST_SHOWN; i++) {
        const KilnInteraction *pair = &report->interactions[i];
        const char *label = kiln_arena_printf(&drawing->arena, "%s × %s",
                                              report->parameters[pair->first].label,
                                              report->parameters[pair->second].label);

        if (label == NULL)
            return kiln_error_nomem(err, 1);
        bars[what.n++] = (KilnPlotBar) { .label = label, .value = pair->importance };
    }
    return kiln_plot_bars(path, &what, err);
}

/* Draw one picture, or remove the one of an earlier report that this one has not. */
static KilnStatus draw_one(Drawing *drawing, const char *name, bool has,
                           KilnStatus (*draw)(Drawing *drawing, const char *path, KilnError *err),
                           KilnError *err)
{
    char *path = kiln_sweep_report_path(drawing->report, name);
    KilnStatus status = KILN_OK;

    if (path == NULL)
        status = kiln_error_nomem(err, strlen(name));
    else
        status = has ? draw(drawing, path, err) : kiln_path_remove(path, err);
    free(path);
    return status;
}

KilnStatus kiln_sweep_report_draw(const KilnSweepReport *report, KilnError *err)
{
    Drawing drawing = { .report = report };
    const bool has_points = report->n_parameters > 0 && report->n_points > 0;
    KilnStatus status = kiln_plot_supported(err);

    if (status >= 0)
        status = prepare(&drawing, err);
    if (status >= 0)
        status = draw_one(&drawing, "history.png", true, draw_history, err);
    if (status >= 0)
        status = draw_one(&drawing, "parallel.png", has_points, draw_parallel, err);
    if (status >= 0)
        status = draw_one(&drawing, "slice.png", has_points, draw_slice, err);
    if (status >= 0)
        status = draw_one(&drawing, "importance.png", report->fanova.single != NULL,
                          draw_importance, err);
    kiln_arena_release(&drawing.arena);
    return status;
}
