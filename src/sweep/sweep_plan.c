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

static bool is_first_of_zipped(const KilnSpace *space, size_t axis)
{
    for (size_t i = 0; space->axes[axis].zipped != 0 && i < axis; i++)
        if (space->axes[i].zipped == space->axes[axis].zipped)
            return false;
    return true;
}

/* Set the axis, and those zipped with it, to value `value`. */
static void set_axis(Planner *planner, size_t axis, size_t value)
{
    const KilnSpace *space = &planner->sweep->arguments.space;

    for (size_t i = axis; i < space->count; i++)
        if (i == axis ||
            (space->axes[axis].zipped != 0 && space->axes[i].zipped == space->axes[axis].zipped))
            planner->overrides[i] = space->axes[i].overrides[value];
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
static void check_axis(Planner *planner, size_t axis)
{
    size_t all = planner->sweep->arguments.space.axes[axis].count;
    size_t n = all < KILN_PLAN_VALUES ? all : KILN_PLAN_VALUES;

    for (size_t i = 1; i < n; i++) {
        set_axis(planner, axis, i * (all - 1) / (n - 1));
        (void)check_point(planner);
    }
    set_axis(planner, axis, 0);
    planner->left_out += all - n;
}

static KilnStatus check_values(Planner *planner)
{
    const KilnSpace *space = &planner->sweep->arguments.space;

    for (size_t i = 0; i < space->count; i++)
        if (is_first_of_zipped(space, i))
            set_axis(planner, i, 0);
    /* Errors of the first point would repeat for each value. */
    KilnStatus status = check_point(planner);
    for (size_t i = 0; status >= 0 && i < space->count; i++)
        if (is_first_of_zipped(space, i))
            check_axis(planner, i);
    return planner->job_errors.status;
}

static KilnStatus list_jobs(Planner *planner, void (*line)(void *ctx, const char *text), void *ctx,
                            KilnError *err)
{
    KilnSweep *sweep = planner->sweep;
    size_t n = sweep->arguments.space.count;
    KilnText text = { 0 };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < sweep->n_points && status >= 0; i++) {
        status = kiln_sweep_point(sweep, i, planner->overrides, err);
        if (status >= 0 && kiln_jobs_claim(&sweep->jobs, planner->overrides, n) == NULL)
            status = kiln_error_nomem(err, n);
    }
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
