/* Metrics: declared names with running sums, tallies, and the values they lead to. */
#include "train/metrics/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "train/checkpoint/component_state.h"

/* A name that steps log. */
typedef struct Declared {
    char *name;
    KilnPhase phase;
    unsigned flags;
    double sum, weight; /* of the epoch so far; with KILN_LOG_MIN or MAX `sum` is that value */
    size_t step_at, epoch_at; /* places of its values in the list; NOWHERE: not looked up yet */
} Declared;

#define NOWHERE SIZE_MAX

/* What is known of a value in the list. */
typedef struct Mark {
    bool fresh; /* not yet taken for the loggers */
} Mark;

struct KilnMetrics {
    Declared *declared;
    size_t n_declared;
    size_t
        next; /* the declared name behind the one that was found last: steps repeat their order */
    /* Arrays of the same length: what was logged, in order of first logging. */
    KilnMetric *list;
    KilnMetricBest *best;
    Mark *marks;
    KilnMetric *taken; /* scratch of take */
    size_t n, capacity;
    KilnMetricStates states;
};

enum { LONGEST_NAME = 256 };

KilnStatus kiln_metrics_new(KilnMetrics **ret, KilnError *err)
{
    KilnMetrics *metrics = calloc(1, sizeof(*metrics));

    if (metrics == NULL)
        return kiln_error_nomem(err, sizeof(*metrics));
    *ret = metrics;
    return KILN_OK;
}

void kiln_metrics_free(KilnMetrics *metrics)
{
    if (metrics == NULL)
        return;
    for (size_t i = 0; i < metrics->n_declared; i++)
        free(metrics->declared[i].name);
    for (size_t i = 0; i < metrics->n; i++)
        free((char *)metrics->list[i].name);
    kiln_metric_states_release(&metrics->states);
    free(metrics->declared);
    free(metrics->list);
    free(metrics->best);
    free(metrics->marks);
    free(metrics->taken);
    free(metrics);
}

/* ---- Declared names --------------------------------------------------------- */

unsigned kiln_log_flags(KilnPhase phase, unsigned flags)
{
    if ((flags & (KILN_LOG_STEP | KILN_LOG_EPOCH)) == 0)
        flags |= phase == KILN_PHASE_FIT ? KILN_LOG_STEP : KILN_LOG_EPOCH;
    return flags;
}

/* The number of a declared name; -1: there is none. */
static int find_declared(KilnMetrics *metrics, KilnPhase phase, const char *name)
{
    const size_t n = metrics->n_declared;

    for (size_t i = 0; i < n; i++) {
        const size_t at = (metrics->next + i) % n;
        const Declared *declared = &metrics->declared[at];

        if (declared->phase == phase && strcmp(declared->name, name) == 0) {
            metrics->next = at + 1;
            return (int)at;
        }
    }
    return -1;
}

static void change_flags(Declared *declared, unsigned flags)
{
    if (declared->flags != flags)
        declared->step_at = declared->epoch_at = NOWHERE;
    declared->flags = flags;
}

int kiln_metrics_declare(KilnMetrics *metrics, KilnPhase phase, const char *name, unsigned flags)
{
    const int found = find_declared(metrics, phase, name);
    size_t n = metrics->n_declared;

    if (found >= 0) {
        change_flags(&metrics->declared[found], flags);
        return found;
    }
    Declared *more = realloc(metrics->declared, (n + 1) * sizeof(*more));
    if (more == NULL)
        return -1;
    metrics->declared = more;
    more[n] = (Declared) { .name = kiln_strdup(name), .phase = phase, .flags = flags };
    more[n].step_at = more[n].epoch_at = NOWHERE;
    if (more[n].name == NULL)
        return -1;
    metrics->n_declared++;
    return (int)n;
}

static bool is_forked(const Declared *declared)
{
    return (declared->flags & KILN_LOG_STEP) != 0 && (declared->flags & KILN_LOG_EPOCH) != 0;
}

/* "loss" when it is logged in one way; else "loss_step" and "loss_epoch". */
static const char *full_name(const Declared *declared, unsigned way, char buf[LONGEST_NAME])
{
    snprintf(buf, LONGEST_NAME, "%s%s", declared->name,
             !is_forked(declared)   ? ""
             : way == KILN_LOG_STEP ? "_step"
                                    : "_epoch");
    return buf;
}

/* Is it declared under this name, with _step or _epoch or without? */
static bool has_name(const Declared *declared, const char *name)
{
    char buf[LONGEST_NAME];

    return strcmp(declared->name, name) == 0 ||
           strcmp(full_name(declared, KILN_LOG_STEP, buf), name) == 0 ||
           strcmp(full_name(declared, KILN_LOG_EPOCH, buf), name) == 0;
}

bool kiln_metrics_declared(const KilnMetrics *metrics, KilnPhase phase, const char *name)
{
    for (size_t i = 0; i < metrics->n_declared; i++)
        if (metrics->declared[i].phase == phase && has_name(&metrics->declared[i], name))
            return true;
    return false;
}

KilnMode kiln_log_mode(unsigned flags)
{
    if ((flags & KILN_LOG_HIGHER_IS_BETTER) != 0)
        return KILN_MODE_MAX;
    return (flags & KILN_LOG_LOWER_IS_BETTER) != 0 ? KILN_MODE_MIN : KILN_MODE_AUTO;
}

KilnMode kiln_metrics_mode(const KilnMetrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->n_declared; i++)
        if (has_name(&metrics->declared[i], name))
            return kiln_log_mode(metrics->declared[i].flags);
    return KILN_MODE_AUTO;
}

const char *kiln_metrics_declared_at(const KilnMetrics *metrics, size_t i)
{
    return i < metrics->n_declared ? metrics->declared[i].name : NULL;
}

/* ---- Values -------------------------------------------------------------------- */

static KilnMetric *find(const KilnMetrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->n; i++)
        if (strcmp(metrics->list[i].name, name) == 0)
            return &metrics->list[i];
    return NULL;
}

static KilnStatus grow(KilnMetrics *metrics, KilnError *err)
{
    size_t capacity = metrics->capacity > 0 ? 2 * metrics->capacity : 16;
    KilnMetric *list = realloc(metrics->list, capacity * sizeof(*list));

    if (list != NULL)
        metrics->list = list;
    KilnMetricBest *best = realloc(metrics->best, capacity * sizeof(*best));
    if (best != NULL)
        metrics->best = best;
    Mark *marks = realloc(metrics->marks, capacity * sizeof(*marks));
    if (marks != NULL)
        metrics->marks = marks;
    KilnMetric *taken = realloc(metrics->taken, capacity * sizeof(*taken));
    if (taken != NULL)
        metrics->taken = taken;
    if (list == NULL || best == NULL || marks == NULL || taken == NULL)
        return kiln_error_nomem(err, capacity * sizeof(*list));
    metrics->capacity = capacity;
    return KILN_OK;
}

/* The metric of that name, made when it is new. */
static KilnStatus get(KilnMetrics *metrics, const char *name, size_t *ret, KilnError *err)
{
    const KilnMetric *found = find(metrics, name);

    if (found != NULL) {
        *ret = (size_t)(found - metrics->list);
        return KILN_OK;
    }
    if (metrics->n == metrics->capacity) {
        KilnStatus status = grow(metrics, err);

        if (status < 0)
            return status;
    }
    char *copy = kiln_strdup(name);
    if (copy == NULL)
        return kiln_error_nomem(err, strlen(name) + 1);
    *ret = metrics->n++;
    metrics->list[*ret] = (KilnMetric) { .name = copy };
    metrics->best[*ret] = (KilnMetricBest) { .value = (double)NAN };
    metrics->marks[*ret] = (Mark) { 0 };
    return KILN_OK;
}

static void put(KilnMetrics *metrics, size_t i, double value, unsigned flags, int64_t epoch,
                int64_t step)
{
    KilnMetric *metric = &metrics->list[i];
    KilnMetricBest *best = &metrics->best[i];
    const KilnMode mode = kiln_log_mode(flags);

    metric->value = value;
    metric->flags = flags;
    metric->epoch = epoch;
    metric->step = step;
    metrics->marks[i].fresh = true;
    if (mode == KILN_MODE_AUTO)
        best->value = (double)NAN;
    else if ((mode == KILN_MODE_MAX ? value > best->value : value < best->value) ||
             (isnan(best->value) && !isnan(value)))
        *best = (KilnMetricBest) { .value = value, .epoch = epoch, .step = step };
}

KilnStatus kiln_metrics_set(KilnMetrics *metrics, const char *name, double value, unsigned flags,
                            int64_t epoch, int64_t step, KilnError *err)
{
    size_t i;
    KilnStatus status = get(metrics, name, &i, err);

    if (status >= 0)
        put(metrics, i, value, flags, epoch, step);
    return status;
}

/* The value of a declared name that is logged in this way; its place is looked up once. */
static KilnStatus put_declared(KilnMetrics *metrics, Declared *declared, unsigned way, double value,
                               int64_t epoch, int64_t step, KilnError *err)
{
    size_t *at = way == KILN_LOG_STEP ? &declared->step_at : &declared->epoch_at;
    const unsigned kept = declared->flags &
                          (KILN_LOG_PROG_BAR | KILN_LOG_MEASURED | KILN_LOG_NO_LOGGER |
                           KILN_LOG_HIGHER_IS_BETTER | KILN_LOG_LOWER_IS_BETTER);
    KilnStatus status = KILN_OK;
    char name[LONGEST_NAME];

    if (*at == NOWHERE)
        status = get(metrics, full_name(declared, way, name), at, err);
    if (status >= 0)
        put(metrics, *at, value, way | kept | (is_forked(declared) ? KILN_LOG_FORKED : 0u), epoch,
            step);
    return status;
}

/* Take a value into the epoch's. */
static void gather(Declared *to, double value, double weight)
{
    const bool first = !(to->weight > 0.0);

    if ((to->flags & KILN_LOG_SUM) != 0)
        to->sum += value;
    else if ((to->flags & KILN_LOG_MIN) != 0)
        to->sum = first || value < to->sum || isnan(value) ? value : to->sum;
    else if ((to->flags & KILN_LOG_MAX) != 0)
        to->sum = first || value > to->sum || isnan(value) ? value : to->sum;
    else
        to->sum += value * weight;
    to->weight += weight;
}

/* The value of the epoch. */
static double gathered(const Declared *from)
{
    const bool mean = (from->flags & (KILN_LOG_MIN | KILN_LOG_MAX | KILN_LOG_SUM)) == 0;

    return mean ? from->sum / from->weight : from->sum;
}

KilnStatus kiln_metrics_add(KilnMetrics *metrics, int declared, double value, double weight,
                            int64_t epoch, int64_t step, KilnError *err)
{
    Declared *to = &metrics->declared[declared];

    if ((to->flags & KILN_LOG_EPOCH) != 0)
        gather(to, value, weight);
    if ((to->flags & KILN_LOG_STEP) == 0)
        return KILN_OK;
    return put_declared(metrics, to, KILN_LOG_STEP, value, epoch, step, err);
}

/* ---- Tallies ---------------------------------------------------------------------- */

/* "val/f1", "val/f1/cat" */
static const char *value_name(const KilnCounted *counted, const KilnMetricStateValue *value,
                              char buf[LONGEST_NAME])
{
    bool own = value->name[0] == '\0';

    snprintf(buf, LONGEST_NAME, "%s%s%s", counted->name, own ? "" : "/", value->name);
    return buf;
}

static unsigned flags_of(const KilnCounted *counted)
{
    const KilnMetricOps *ops = kiln_instance_component(counted->metric)->ops.metric;

    return KILN_LOG_EPOCH | (ops->mode == KILN_MODE_MAX ? KILN_LOG_HIGHER_IS_BETTER : 0) |
           (ops->mode == KILN_MODE_MIN ? KILN_LOG_LOWER_IS_BETTER : 0) |
           (ops->is_matrix ? KILN_LOG_CELL : 0);
}

KilnMetricStates *kiln_metrics_tallies(KilnMetrics *metrics)
{
    return &metrics->states;
}

KilnStatus kiln_metrics_tally(KilnMetrics *metrics, KilnPhase phase, KilnInstance *metric,
                              const char *name, unsigned flags, const KilnMetricForm *form,
                              size_t *ret, KilnError *err)
{
    const KilnMetricStateValue *values = NULL;
    size_t before = metrics->states.n, n = 0;
    KilnStatus status = kiln_metric_states_get(&metrics->states, (int)phase, metric, name, flags,
                                               form, ret, err);

    if (status < 0 || metrics->states.n == before)
        return status;
    const KilnCounted *counted = &metrics->states.list[*ret];
    status = kiln_metric_state_compute(counted->state, &values, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        char full[LONGEST_NAME];

        if (kiln_metrics_declare(metrics, phase, value_name(counted, &values[i], full),
                                 flags_of(counted)) < 0)
            status = kiln_error_nomem(err, sizeof(full));
    }
    return status;
}

static KilnStatus end_tally(KilnMetrics *metrics, const KilnCounted *counted, int64_t epoch,
                            int64_t step, KilnError *err)
{
    const KilnMetricStateValue *values = NULL;
    size_t n = 0;
    const unsigned flags = flags_of(counted);
    KilnStatus status = kiln_metric_state_compute(counted->state, &values, &n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        bool own = values[i].name[0] == '\0';
        char full[LONGEST_NAME];

        status = kiln_metrics_set(metrics, value_name(counted, &values[i], full), values[i].value,
                                  flags | (own ? counted->flags & KILN_LOG_PROG_BAR : 0), epoch,
                                  step, err);
    }
    return status;
}

KilnStatus kiln_metrics_end_epoch(KilnMetrics *metrics, KilnPhase phase, int64_t epoch,
                                  int64_t step, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < metrics->n_declared && status >= 0; i++) {
        Declared *from = &metrics->declared[i];

        if (from->phase == phase && from->weight > 0.0)
            status = put_declared(metrics, from, KILN_LOG_EPOCH, gathered(from), epoch, step, err);
    }
    for (size_t i = 0; i < metrics->states.n && status >= 0; i++) {
        const KilnCounted *counted = &metrics->states.list[i];

        if (counted->phase == (int)phase && kiln_metric_state_rows(counted->state) > 0)
            status = end_tally(metrics, counted, epoch, step, err);
    }
    if (status >=
        0) /* else what was counted is saved, and the run ends the epoch when it resumes */
        kiln_metrics_clear(metrics, phase);
    return status;
}

void kiln_metrics_clear(KilnMetrics *metrics, KilnPhase phase)
{
    for (size_t i = 0; i < metrics->n_declared; i++)
        if (metrics->declared[i].phase == phase)
            metrics->declared[i].sum = metrics->declared[i].weight = 0.0;
    kiln_metric_states_reset(&metrics->states, (int)phase);
}

const KilnMetric *kiln_metrics_find(const KilnMetrics *metrics, const char *name)
{
    char of_step[LONGEST_NAME], of_epoch[LONGEST_NAME];
    const KilnMetric *exact = find(metrics, name);

    if (exact != NULL)
        return exact;
    snprintf(of_step, sizeof(of_step), "%s_step", name);
    snprintf(of_epoch, sizeof(of_epoch), "%s_epoch", name);
    const KilnMetric *step = find(metrics, of_step), *mean = find(metrics, of_epoch);
    if (step == NULL || mean == NULL)
        return step != NULL ? step : mean;
    const bool later = step->epoch > mean->epoch ||
                       (step->epoch == mean->epoch && step->step > mean->step);
    return later ? step : mean;
}

bool kiln_metrics_has_mean(const KilnMetrics *metrics, const KilnMetric *metric)
{
    static const char ending[] = "_step";
    const size_t length = strlen(metric->name);
    char mean[LONGEST_NAME];

    if ((metric->flags & KILN_LOG_FORKED) == 0 || (metric->flags & KILN_LOG_STEP) == 0 ||
        length < sizeof(ending))
        return false;
    snprintf(mean, sizeof(mean), "%.*s_epoch", (int)(length - strlen(ending)), metric->name);
    return find(metrics, mean) != NULL;
}

size_t kiln_metrics_list(const KilnMetrics *metrics, const KilnMetric **ret)
{
    *ret = metrics->list;
    return metrics->n;
}

const KilnMetricBest *kiln_metrics_best(const KilnMetrics *metrics)
{
    return metrics->best;
}

size_t kiln_metrics_take(KilnMetrics *metrics, bool epoch_values, int64_t step,
                         const KilnMetric **ret)
{
    size_t count = 0;

    for (size_t i = 0; i < metrics->n; i++) {
        const KilnMetric *metric = &metrics->list[i];
        bool of_epoch = (metric->flags & KILN_LOG_EPOCH) != 0;

        if (!metrics->marks[i].fresh || of_epoch != epoch_values)
            continue;
        metrics->marks[i].fresh = false;
        if ((epoch_values || metric->step == step) && (metric->flags & KILN_LOG_NO_LOGGER) == 0)
            metrics->taken[count++] = *metric;
    }
    *ret = metrics->taken;
    return count;
}

/* ---- In a checkpoint -------------------------------------------------------------- */

/* Append `item` to `array` (both may be NULL for lack of memory). */
static bool append(json_t *array, json_t *item)
{
    return array != NULL && item != NULL && json_array_append_new(array, item) == 0;
}

/* Sums and weights to the bit, so that an epoch that was cut in two has the
 * same means as a whole one. Measured values stay out: checkpoints of equal runs are equal. */
json_t *kiln_metrics_save(const KilnMetrics *metrics)
{
    json_t *values = json_array(), *sums = json_array();
    bool ok = values != NULL && sums != NULL;

    for (size_t i = 0; i < metrics->n && ok; i++) {
        const KilnMetric *m = &metrics->list[i];
        const KilnMetricBest *best = &metrics->best[i];

        if ((m->flags & KILN_LOG_MEASURED) != 0)
            continue;
        ok = append(values,
                    json_pack("{s:s, s:o, s:i, s:I, s:I, s:o, s:I, s:I, s:b}", "name", m->name,
                              "value", kiln_json_f64(m->value), "flags", (int)m->flags, "epoch",
                              (json_int_t)m->epoch, "step", (json_int_t)m->step, "best",
                              kiln_json_f64(best->value), "best_epoch", (json_int_t)best->epoch,
                              "best_step", (json_int_t)best->step, "fresh",
                              metrics->marks[i].fresh ? 1 : 0));
    }
    for (size_t i = 0; i < metrics->n_declared && ok; i++) {
        const Declared *d = &metrics->declared[i];

        if (d->weight > 0.0 && (d->flags & KILN_LOG_MEASURED) == 0)
            ok = append(sums, json_pack("{s:s, s:i, s:i, s:o, s:o}", "name", d->name, "phase",
                                        (int)d->phase, "flags", (int)d->flags, "sum",
                                        kiln_json_f64(d->sum), "weight", kiln_json_f64(d->weight)));
    }
    if (!ok) {
        json_decref(values);
        json_decref(sums);
        return NULL;
    }
    return json_pack("{s:o, s:o}", "values", values, "sums", sums);
}

/* Do steps log the name in both ways? */
static bool is_forked_now(const KilnMetrics *metrics, const char *name)
{
    for (size_t i = 0; i < metrics->n_declared; i++)
        if (is_forked(&metrics->declared[i]) && strcmp(metrics->declared[i].name, name) == 0)
            return true;
    return false;
}

static KilnStatus load_value(KilnMetrics *metrics, const json_t *saved, KilnError *err)
{
    const char *name = json_string_value(json_object_get(saved, "name"));
    double value, best;
    size_t i;

    if (name == NULL || !kiln_json_get_f64(json_object_get(saved, "value"), &value) ||
        !kiln_json_get_f64(json_object_get(saved, "best"), &best))
        return kiln_error_set(err, KILN_E_FORMAT, "a metric without name, value or best");
    if (is_forked_now(metrics, name))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "the checkpoint has one %s where this program logs %s_step and "
                              "%s_epoch: another version of the program or the task saved it; "
                              "start a new run from its weights (weights=PATH)",
                              name, name, name);
    KilnStatus status = get(metrics, name, &i, err);
    if (status < 0)
        return status;
    metrics->list[i].value = value;
    metrics->list[i].flags = (unsigned)json_integer_value(json_object_get(saved, "flags"));
    metrics->list[i].epoch = json_integer_value(json_object_get(saved, "epoch"));
    metrics->list[i].step = json_integer_value(json_object_get(saved, "step"));
    metrics->best[i] = (KilnMetricBest) {
        .value = best,
        .epoch = json_integer_value(json_object_get(saved, "best_epoch")),
        .step = json_integer_value(json_object_get(saved, "best_step")),
    };
    metrics->marks[i] = (Mark) { .fresh = json_is_true(json_object_get(saved, "fresh")) };
    return KILN_OK;
}

static KilnStatus load_sum(KilnMetrics *metrics, const json_t *saved, KilnError *err)
{
    const char *name = json_string_value(json_object_get(saved, "name"));
    json_int_t phase = json_integer_value(json_object_get(saved, "phase"));
    json_int_t flags = json_integer_value(json_object_get(saved, "flags"));
    double sum, weight;

    if (name == NULL || phase < KILN_PHASE_FIT || phase > KILN_PHASE_TEST || flags < 1 ||
        (flags & ~(json_int_t)KILN_LOG_ALL) != 0 ||
        !kiln_json_get_f64(json_object_get(saved, "sum"), &sum) ||
        !kiln_json_get_f64(json_object_get(saved, "weight"), &weight))
        return kiln_error_set(err, KILN_E_FORMAT, "a metric's sum without name, sum or weight");
    int i = kiln_metrics_declare(metrics, (KilnPhase)phase, name, (unsigned)flags);
    if (i < 0)
        return kiln_error_nomem(err, strlen(name) + 1);
    metrics->declared[i].sum = sum;
    metrics->declared[i].weight = weight;
    return KILN_OK;
}

KilnStatus kiln_metrics_load(KilnMetrics *metrics, const json_t *saved, KilnError *err)
{
    const json_t *values = json_object_get(saved, "values");
    const json_t *sums = json_object_get(saved, "sums");
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < json_array_size(values) && status >= 0; i++)
        status = load_value(metrics, json_array_get(values, i), err);
    for (size_t i = 0; i < json_array_size(sums) && status >= 0; i++)
        status = load_sum(metrics, json_array_get(sums, i), err);
    return status;
}
