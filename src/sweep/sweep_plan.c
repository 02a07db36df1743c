/* --plan: lists the jobs that would run, and checks every value once. */
#include <stdlib.h>

#include "config/provenance/error_list.h"
#include "sweep/sweep_state.h"

typedef struct Planner {
    KilnSweep *sweep;
    const char **overrides; /* of the current point */
    KilnJobErrors job_errors;
    size_t left_out;
} Planner;

/* An interval is checked at its two ends. */
static size_t n_values(const KilnAxis *axis)
{
    return kiln_axis_is_interval(axis) ? 2 : axis->count;
}

static KilnAxisValue value_at(const KilnAxis *axis, size_t i)
{
    if (kiln_axis_is_interval(axis))
        return (KilnAxisValue) { .number = i == 0 ? axis->low : axis->high };
    return (KilnAxisValue) { .index = i };
}

/* Set the axis, and those that follow it, to their value `value`. */
static KilnStatus set_axis(Planner *planner, size_t axis, size_t value)
{
    const KilnSpace *space = &planner->sweep->arguments.space;

    for (size_t i = axis; i < space->count; i++) {
        if (space->axes[i].leader != axis)
            continue;
        planner->overrides[i] = kiln_axis_override(
            &space->axes[i], value_at(&space->axes[i], value), &planner->sweep->arena);
        if (planner->overrides[i] == NULL)
            return KILN_E_NOMEM;
    }
    return KILN_OK;
}

static KilnStatus check_point(Planner *planner)
{
    size_t n = planner->sweep->arguments.space.count;
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    if (status < 0)
        return status;
    status = kiln_sweep_compose_job(planner->sweep, planner->overrides, n, 0, false, &config,
                                    errors);
    kiln_job_errors_add(&planner->job_errors, errors, status, 0);
    kiln_errors_free(errors);
    kiln_config_free(config);
    return status;
}

/* Check the values of one axis, with the other axes at their first. */
static KilnStatus check_axis(Planner *planner, size_t axis)
{
    size_t all = n_values(&planner->sweep->arguments.space.axes[axis]);
    size_t n = all < KILN_PLAN_VALUES ? all : KILN_PLAN_VALUES;
    KilnStatus status = KILN_OK;

    for (size_t i = 1; i < n && status >= 0; i++) {
        status = set_axis(planner, axis, i * (all - 1) / (n - 1));
        if (status >= 0)
            (void)check_point(planner);
    }
    planner->left_out += all - n;
    return status >= 0 ? set_axis(planner, axis, 0) : status;
}

static KilnStatus check_values(Planner *planner)
{
    const KilnSpace *space = &planner->sweep->arguments.space;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < space->count && status >= 0; i++)
        if (space->axes[i].leader == i)
            status = set_axis(planner, i, 0);
    /* Errors of the first point would repeat for each value. */
    if (status >= 0)
        status = check_point(planner);
    for (size_t i = 0; status >= 0 && i < space->count; i++)
        if (space->axes[i].leader == i)
            status = check_axis(planner, i);
    return status < 0 ? status : planner->job_errors.status;
}

static KilnStatus list_jobs(Planner *planner, void (*line)(void *ctx, const char *text), void *ctx,
                            KilnError *err)
{
    KilnSweep *sweep = planner->sweep;
    KilnText text = { 0 };
    KilnStatus status = kiln_sweep_ask_all(sweep, err);

    for (size_t i = 0; i < sweep->jobs.count && status >= 0; i++) {
        const KilnJob *job = &sweep->jobs.items[i];

        if (!kiln_sweep_runs(sweep, job))
            continue;
        kiln_text_clear(&text);
        kiln_text_printf(&text, "#%zu : %s", i, job->line);
        if (text.failed)
            status = kiln_error_nomem(err, 1);
        else
            line(ctx, text.data);
    }
    kiln_text_release(&text);
    return status;
}

KilnStatus kiln_sweep_plan(const KilnSweepRequest *request,
                           void (*line)(void *ctx, const char *text), void *ctx,
                           size_t *ret_left_out, KilnErrors *errors)
{
    KilnSweep sweep;
    Planner planner = { .sweep = &sweep };
    KilnError err = { 0 };
    KilnStatus status = kiln_sweep_open(request, &sweep, errors);

    if (status >= 0) {
        planner.overrides = calloc(sweep.arguments.space.count + 1, sizeof(char *));
        if (planner.overrides == NULL)
            status = kiln_errors_add(errors, (kiln_error_nomem(&err, 1), &err));
    }
    if (status >= 0 && sweep.n_points > 0)
        status = check_values(&planner);
    if (planner.job_errors.count > 0)
        (void)!kiln_job_errors_report(&planner.job_errors, 0, errors);
    if (status >= 0) {
        status = list_jobs(&planner, line, ctx, &err);
        if (status < 0)
            kiln_errors_add(errors, &err);
    }
    if (status >= 0)
        *ret_left_out = planner.left_out;
    kiln_job_errors_release(&planner.job_errors);
    free(planner.overrides);
    kiln_sweep_close(&sweep);
    return status;
}
