/* The parameters of a sweep: axes that vary, their values in order, and the jobs as points. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "sweep/report/sweep_report.h"

/* ---- Values ------------------------------------------------------------------------------- */

/* A value of a list, to be sorted. */
typedef struct Value {
    double number;
    const char *text;
    size_t index; /* of the axis */
} Value;

static int compare_values(const void *a, const void *b)
{
    const Value *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Do positive numbers grow by factors, as 0.001, 0.01, 0.1 and 16, 32, 64 do? */
static bool grows_by_factors(const double *numbers, size_t n)
{
    double smallest = (double)INFINITY, largest = 0.0;

    for (size_t i = 1; i < n; i++) {
        if (!(numbers[i - 1] > 0.0))
            return false;
        smallest = fmin(smallest, numbers[i] / numbers[i - 1]);
        largest = fmax(largest, numbers[i] / numbers[i - 1]);
    }
    return n > 2 ? smallest >= 1.5 : largest >= 4.0;
}

/* Texts after "=", sorted if all are numbers. */
static bool list_values(const KilnAxis *axis, KilnArena *arena, KilnParameter *ret)
{
    const size_t n = axis->count;
    Value *values = kiln_arena_alloc(arena, n * sizeof(*values));

    ret->texts = kiln_arena_alloc(arena, (n + 1) * sizeof(*ret->texts));
    ret->numbers = kiln_arena_alloc(arena, n * sizeof(*ret->numbers));
    ret->place = kiln_arena_alloc(arena, n * sizeof(*ret->place));
    if (values == NULL || ret->texts == NULL || ret->numbers == NULL || ret->place == NULL)
        return false;
    ret->n_values = n;
    ret->ordered = true;
    for (size_t i = 0; i < n; i++) {
        const char *key;

        values[i].index = i;
        (void)kiln_override_split(axis->overrides[i], &key, &values[i].text);
        ret->ordered &= kiln_parse_f64(values[i].text, &values[i].number, NULL) >= 0 &&
                        isfinite(values[i].number);
    }
    if (ret->ordered)
        qsort(values, n, sizeof(*values), compare_values);
    for (size_t i = 0; i < n; i++) {
        ret->texts[i] = values[i].text;
        ret->numbers[i] = values[i].number;
        ret->place[values[i].index] = i;
    }
    ret->log = ret->ordered && grows_by_factors(ret->numbers, n);
    if (!ret->ordered)
        ret->numbers = NULL;
    ret->ordered |= n > KILN_TREE_CATEGORIES; /* more than a set of categories can have */
    return true;
}

/* The share of the space in which a condition leaves the axis out. */
static double inactive_share(const KilnSpace *space, const KilnAxis *axis)
{
    size_t active = 0;

    if (axis->active_for == NULL)
        return 0.0;
    const KilnAxis *parent = space->axes[axis->parent];
    for (size_t i = 0; i < parent->count; i++)
        active += axis->active_for[i];
    const double share = (double)active / (double)parent->count;
    return 1.0 - share * (1.0 - inactive_share(space, parent));
}

/* ---- Names -------------------------------------------------------------------------------- */

static bool has_same_key(const KilnSpace *space, size_t axis)
{
    for (size_t i = 0; i < space->count; i++)
        if (i != axis && strcmp(space->axes[i]->key, space->axes[axis]->key) == 0)
            return true;
    return false;
}

/* Append the values of the parent for which the axis is active: " (model=resnet)". */
static void append_condition(const KilnSpace *space, const KilnAxis *axis, KilnText *text)
{
    const KilnAxis *parent = space->axes[axis->parent];
    bool first = true;

    for (size_t i = 0; i < parent->count; i++) {
        const char *key, *value;
        const size_t n = kiln_override_split(parent->overrides[i], &key, &value);

        if (!axis->active_for[i])
            continue;
        if (first)
            kiln_text_printf(text, " (%.*s=", (int)n, key);
        kiln_text_printf(text, "%s%s", first ? "" : ",", value);
        first = false;
    }
    if (!first)
        kiln_text_char(text, ')');
}

static const char *label_of(const KilnSpace *space, size_t axis, KilnArena *arena)
{
    KilnText text = { 0 };

    kiln_text_append(&text, space->axes[axis]->key + strspn(space->axes[axis]->key, "+"));
    for (size_t i = axis + 1; i < space->count; i++)
        if (space->axes[i]->leader == axis)
            kiln_text_printf(&text, ", %s", space->axes[i]->key + strspn(space->axes[i]->key, "+"));
    if (space->axes[axis]->active_for != NULL && has_same_key(space, axis))
        append_condition(space, space->axes[axis], &text);
    return kiln_text_to_arena(&text, arena);
}

/* ---- Points ------------------------------------------------------------------------------- */

static KilnStatus find_points(KilnSweepReport *report, KilnError *err)
{
    const KilnJobs *jobs = &report->sweep.jobs;
    KilnArena *arena = &report->arena;

    report->points = kiln_arena_alloc(arena, report->n_ranked * sizeof(*report->points));
    bool *has_value = kiln_arena_alloc(arena, (jobs->count + 1) * sizeof(*has_value));
    if (report->points == NULL || has_value == NULL)
        return kiln_error_nomem(err, jobs->count);
    for (size_t i = 0; i < report->n_ranked; i++)
        has_value[report->ranked[i]] = true;
    for (size_t i = 0; i < jobs->count; i++) {
        if (!has_value[i])
            continue;
        KilnAxisValue *value = kiln_arena_alloc(arena, (report->space.count + 1) * sizeof(*value));

        if (value == NULL)
            return kiln_error_nomem(err, report->space.count * sizeof(*value));
        if (kiln_space_locate(&report->space, jobs->items[i].overrides, value))
            report->points[report->n_points++] = (KilnReportPoint) { .job = i, .value = value };
    }
    return KILN_OK;
}

static size_t count_tried(const KilnSweepReport *report, size_t parameter)
{
    size_t n = 0;

    for (size_t i = 0; i < report->n_points; i++) {
        const double value = kiln_sweep_report_number(report, i, parameter);
        bool seen = isnan(value);

        for (size_t k = 0; k < i && !seen; k++)
            seen = kiln_sweep_report_number(report, k, parameter) == value;
        n += !seen;
    }
    return n;
}

double kiln_sweep_report_number(const KilnSweepReport *report, size_t point, size_t parameter)
{
    const KilnParameter *of = &report->parameters[parameter];
    const KilnAxisValue *value = report->points[point].value;

    if (!kiln_axis_is_active(&report->space, of->axis, value))
        return (double)NAN;
    if (of->n_values == 0)
        return value[of->axis].number;
    return (double)of->place[value[of->axis].index];
}

const char *kiln_sweep_report_text(const KilnSweepReport *report, size_t job, size_t parameter)
{
    /* Where it is inactive, another parameter may have the same key. */
    for (size_t i = 0; i < report->n_points; i++)
        if (report->points[i].job == job && isnan(kiln_sweep_report_number(report, i, parameter)))
            return NULL;
    return kiln_job_value(&report->sweep.jobs.items[job], report->parameters[parameter].key);
}

KilnStatus kiln_sweep_report_find_parameters(KilnSweepReport *report, KilnError *err)
{
    const KilnSpace *space = &report->space;
    KilnArena *arena = &report->arena;

    report->parameters = kiln_arena_alloc(arena, (space->count + 1) * sizeof(KilnParameter));
    if (report->parameters == NULL)
        return kiln_error_nomem(err, space->count * sizeof(KilnParameter));
    for (size_t i = 0; i < space->count; i++) {
        const KilnAxis *axis = space->axes[i];
        KilnParameter parameter = { .axis = i,
                                    .key = axis->key + strspn(axis->key, "+"),
                                    .ordered = true,
                                    .log = axis->log,
                                    .inactive = inactive_share(space, axis),
                                    .importance = (double)NAN,
                                    .with_pairs = (double)NAN };

        if (axis->leader != i || (!kiln_axis_is_interval(axis) && axis->count < 2))
            continue;
        parameter.label = label_of(space, i, arena);
        if (parameter.label == NULL ||
            (!kiln_axis_is_interval(axis) && !list_values(axis, arena, &parameter)))
            return kiln_error_nomem(err, axis->count);
        report->parameters[report->n_parameters++] = parameter;
    }
    KilnStatus status = find_points(report, err);
    for (size_t i = 0; i < report->n_parameters && status >= 0; i++)
        report->parameters[i].tried = count_tried(report, i);
    return status;
}
