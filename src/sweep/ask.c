/* Asks the sweeper for trials, and makes jobs of them. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/call.h"
#include "registry/registry.h"
#include "sweep/sweep_state.h"

static const KilnSweeperOps *ops_of(const KilnSweep *sweep)
{
    return kiln_instance_component(sweep->sweeper)->ops.sweeper;
}

/* ---- The space that a sweeper accepts ---------------------------------------------------- */

static const char *const kind_names[] = { "a choice", "range()", "interval()", "int(interval())" };

/* "kiln/sweeper=random, kiln/sweeper=tpe": the sweepers that accept axes of this kind. */
static void append_sweepers(KilnText *text, const KilnRegistry *registry, unsigned kind)
{
    size_t n = 0;

    for (size_t i = 0; i < kiln_registry_count(registry); i++) {
        const KilnComponent *component = kiln_registry_at(registry, i);

        if (component->kind == KILN_KIND_SWEEPER && (component->ops.sweeper->axes & kind) != 0)
            kiln_text_printf(text, "%skiln/sweeper=%s", n++ > 0 ? ", " : "", component->name);
    }
    if (n == 0)
        kiln_text_append(text, "none is built in; a plugin may have one, see "
                               "examples/plugin/random_search.c");
}

static KilnStatus refuse_axis(const KilnSweep *sweep, const KilnAxis *axis, KilnError *err)
{
    KilnText sweepers = { 0 };

    append_sweepers(&sweepers, sweep->compose.registry, axis->kind);
    if (sweepers.failed)
        return kiln_error_nomem(err, 1);
    kiln_error_set(
        err, KILN_E_TYPE, "%s: sweeper/%s does not accept %s%s; select a sweeper that does (%s)",
        axis->key, kiln_instance_name(sweep->sweeper), kind_names[__builtin_ctz(axis->kind)],
        kiln_axis_is_interval(axis)
            ? ", which has no end of values; write range(start,stop,step) or the "
              "values with commas, or"
            : "",
        sweepers.data);
    kiln_text_release(&sweepers);
    return err->status;
}

KilnStatus kiln_sweep_check_axes(const KilnSweep *sweep, KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;

    for (size_t i = 0; i < space->count; i++)
        if (space->axes[i].count != 1 && (ops_of(sweep)->axes & space->axes[i].kind) == 0)
            return refuse_axis(sweep, &space->axes[i], err);
    return KILN_OK;
}

KilnStatus kiln_sweep_count(KilnSweep *sweep, KilnError *err)
{
    const size_t most = (size_t)sweep->options->max_jobs;

    kiln_call_enter(sweep->sweeper, "count");
    sweep->n_points = ops_of(sweep)->count(sweep->sweeper, &sweep->arguments.space);
    kiln_call_leave();
    if (sweep->n_points <= most)
        return KILN_OK;
    if (sweep->n_points == SIZE_MAX)
        return kiln_error_set(err, KILN_E_RANGE,
                              "this sweep has more jobs than can be counted; %zu are allowed "
                              "(kiln.sweep.max_jobs)",
                              most);
    return kiln_error_set(err, KILN_E_RANGE,
                          "this sweep has %zu jobs, and %zu are allowed; if that many are meant, "
                          "add kiln.sweep.max_jobs=%zu",
                          sweep->n_points, most, sweep->n_points);
}

/* ---- Asking ------------------------------------------------------------------------------- */

/* Check the suggested point, and let each axis of a zip() follow its leader. */
static KilnStatus complete_point(const KilnSweep *sweep, KilnAxisValue *point, KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;

    for (size_t i = 0; i < space->count; i++) {
        point[i] = point[space->axes[i].leader];
        if (!kiln_axis_accepts(&space->axes[i], point[i]))
            return kiln_error_set(err, KILN_E_PLUGIN,
                                  "sweeper/%s: its trial %zu has a value of %s that the space does "
                                  "not have",
                                  kiln_instance_name(sweep->sweeper), sweep->n_trials,
                                  space->axes[i].key);
    }
    return KILN_OK;
}

static KilnStatus add_trial(KilnSweep *sweep, KilnAxisValue *point, KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;
    const char **overrides = kiln_arena_alloc(&sweep->arena, (space->count + 1) * sizeof(char *));
    KilnStatus status = complete_point(sweep, point, err);

    if (status < 0)
        return status;
    for (size_t i = 0; overrides != NULL && i < space->count; i++) {
        overrides[i] = kiln_axis_override(&space->axes[i], point[i], &sweep->arena);
        if (overrides[i] == NULL)
            return kiln_error_nomem(err, 1);
    }
    if (overrides == NULL ||
        !KILN_RESERVE(sweep->trials, sweep->trials_capacity, sweep->n_trials + 1) ||
        kiln_jobs_claim(&sweep->jobs, overrides, space->count) == NULL)
        return kiln_error_nomem(err, space->count);
    sweep->trials[sweep->n_trials++] = (KilnTrial) { .point = point };
    return KILN_OK;
}

KilnStatus kiln_sweep_ask(KilnSweep *sweep, KilnAdvice *ret, KilnError *err)
{
    const KilnSpace *space = &sweep->arguments.space;
    const KilnHistory history = { .space = space,
                                  .trials = sweep->trials,
                                  .count = sweep->n_trials };
    KilnSuggestion suggestion = { .advice = KILN_ADVICE_DONE };

    suggestion.point = kiln_arena_alloc(&sweep->arena, (space->count + 1) * sizeof(KilnAxisValue));
    if (suggestion.point == NULL)
        return kiln_error_nomem(err, space->count);
    KilnStatus status = KILN_CALLED(
        sweep->sweeper, "ask", ops_of(sweep)->ask(sweep->sweeper, &history, &suggestion, err), err);
    if (status >= 0 && suggestion.advice == KILN_ADVICE_TRIAL)
        status = add_trial(sweep, suggestion.point, err);
    if (status >= 0)
        *ret = suggestion.advice;
    return status;
}

KilnStatus kiln_sweep_ask_all(KilnSweep *sweep, KilnError *err)
{
    KilnAdvice advice = KILN_ADVICE_TRIAL;
    KilnStatus status = KILN_OK;

    while (status >= 0 && advice == KILN_ADVICE_TRIAL && sweep->n_trials < sweep->n_points)
        status = kiln_sweep_ask(sweep, &advice, err);
    return status;
}
