/* Reads recorded trials from the folder of a sweep: the metrics.csv of each finished job. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/parse.h"
#include "kiln/files/text_records.h"
#include "sweep/report/sweep_report.h"
#include "sweep/simulate/curves.h"

/* The values of a job, by epoch. */
typedef struct Values {
    double *items;
    size_t count, capacity;
    bool whole; /* there is one for each epoch from the first on */
} Values;

enum { EPOCH, METRIC, COLUMNS };

/* Add the value of a row; rows without one are those of steps. */
static KilnStatus add_value(const KilnRecord *record, KilnArena *arena, Values *values,
                            KilnError *err)
{
    char text[2][64];
    int64_t epoch;
    double value;

    for (int i = 0; i < COLUMNS; i++)
        snprintf(text[i], sizeof(text[i]), "%.*s",
                 (int)(record->fields[i].length < 63 ? record->fields[i].length : 63),
                 record->fields[i].data);
    if (text[METRIC][0] == '\0')
        return KILN_OK;
    if (kiln_parse_i64(text[EPOCH], &epoch, NULL) < 0 ||
        kiln_parse_f64(text[METRIC], &value, NULL) < 0 || epoch < 0 ||
        (size_t)epoch > values->count) {
        values->whole = false;
        return KILN_OK;
    }
    if (!KILN_ARENA_RESERVE(arena, values->items, values->capacity, (size_t)epoch + 1))
        return kiln_error_nomem(err, (size_t)epoch);
    values->items[epoch] = value; /* the last of several in an epoch */
    if ((size_t)epoch == values->count)
        values->count++;
    return KILN_OK;
}

static KilnStatus read_rows(const KilnRecords *records, const size_t columns[COLUMNS],
                            KilnArena *arena, Values *values, KilnError *err)
{
    KilnRecord record = { .fields = NULL };
    KilnStatus status = KILN_OK;

    for (int64_t row = 0; row < kiln_records_count(records) && status >= 0; row++) {
        status = kiln_records_read(records, row, columns, COLUMNS, &record, err);
        if (status >= 0)
            status = add_value(&record, arena, values, err);
    }
    kiln_record_release(&record);
    return status;
}

static KilnStatus read_metrics(const char *path, const char *metric, KilnArena *arena,
                               Values *values, KilnError *err)
{
    const KilnRecordsSpec spec = { .paths = &path, .n_paths = 1, .format = KILN_RECORDS_CSV };
    size_t columns[COLUMNS] = { 0 };
    KilnRecords *records = NULL;
    KilnStatus status = kiln_records_open(&spec, &records, err);

    if (status >= 0)
        status = kiln_records_column(records, "epoch", &columns[EPOCH], err);
    if (status >= 0)
        status = kiln_records_column(records, metric, &columns[METRIC], err);
    if (status >= 0)
        status = read_rows(records, columns, arena, values, err);
    kiln_records_close(records);
    return status;
}

/* "job #3 lr=0.1": with the values of what the sweep varies. NULL: memory is out. */
static const char *name_of(KilnCurves *curves, size_t number, const KilnJob *job,
                           const KilnAxisValue *point)
{
    KilnText text = { 0 };
    size_t n = 0;

    kiln_text_printf(&text, "job #%zu", number);
    for (size_t i = 0; i < curves->space.count; i++) {
        if (!kiln_axis_is_active(&curves->space, i, point))
            continue;
        if (curves->space.axes[i]->count != 1)
            kiln_text_printf(&text, " %s", job->overrides[n]);
        n++;
    }
    const char *name = text.failed ? NULL : kiln_arena_strdup(&curves->arena, text.data);
    kiln_text_release(&text);
    return name;
}

/* Add the curve of a job, if it is a point of the space that trained from its first epoch on. */
static KilnStatus add_job(KilnCurves *curves, const KilnSweep *sweep, const KilnJob *job,
                          KilnError *err)
{
    KilnAxisValue *point = kiln_arena_alloc(&curves->arena,
                                            (curves->space.count + 1) * sizeof(*point));
    char *path = kiln_sweep_job_path(sweep, job, "metrics.csv");
    Values values = { .whole = true };
    KilnStatus status = KILN_OK;

    if (point == NULL || path == NULL)
        status = kiln_error_nomem(err, curves->space.count);
    if (status >= 0)
        status = read_metrics(path, curves->objective.metric, &curves->arena, &values, err);
    free(path);
    if (status < 0)
        return status;
    if (!values.whole || values.count == 0 ||
        !kiln_space_locate(&curves->space, job->overrides, point)) {
        curves->left_out++;
        return KILN_OK;
    }
    KilnCurve *curve = kiln_curves_add(curves);
    if (curve == NULL)
        return kiln_error_nomem(err, curves->count);
    *curve = (KilnCurve) {
        .name = name_of(curves, (size_t)(job - sweep->jobs.items), job, point),
        .point = point,
        .values = values.items,
        .n_epochs = (int64_t)values.count,
        .seconds = fmax(job->seconds / (double)values.count, 1e-6),
    };
    return curve->name != NULL ? KILN_OK : kiln_error_nomem(err, 1);
}

/* Is a larger value of the metric better? As configured, or as the jobs declare. */
static KilnMode mode_of(const KilnSweep *sweep, const char *metric, KilnMode configured)
{
    if (configured != KILN_MODE_AUTO)
        return configured;
    for (size_t i = 0; i < sweep->jobs.count; i++) {
        const KilnJobMetric *of = kiln_job_metric(&sweep->jobs.items[i], metric);

        if (of != NULL && of->mode != KILN_MODE_AUTO)
            return of->mode;
    }
    return KILN_MODE_MIN;
}

static KilnStatus read_jobs(const KilnSweepReport *report, const KilnObjective *objective,
                            KilnCurves *ret, KilnError *err)
{
    const KilnSweep *sweep = &report->sweep;
    const char *metric = objective->metric != NULL ? objective->metric : sweep->metric;
    const KilnMode configured = objective->metric != NULL || objective->mode != KILN_MODE_AUTO
                                    ? objective->mode
                                    : report->mode;
    KilnStatus status = KILN_OK;

    ret->objective.metric = kiln_arena_strdup(&ret->arena, metric);
    ret->objective.mode = mode_of(sweep, metric, configured);
    if (ret->objective.metric == NULL)
        return kiln_error_nomem(err, 1);
    for (size_t i = 0; i < sweep->jobs.count && status >= 0; i++) {
        const KilnJob *job = &sweep->jobs.items[i];

        if (job->status == KILN_JOB_OK && job->dir != NULL && job->first_run == 0 &&
            job->parent == 0)
            status = add_job(ret, sweep, job, err);
        else
            ret->left_out++;
    }
    if (status >= 0 && ret->count == 0)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "%s: none of its %zu jobs ran from its first epoch to its end at a "
                                "point of the sweep's space",
                                sweep->dir, sweep->jobs.count);
    return status;
}

KilnStatus kiln_curves_read_sweep(const char *dir, const KilnObjective *objective, KilnCurves *ret,
                                  KilnError *err)
{
    KilnSweepReport report = { .mode = KILN_MODE_AUTO };
    KilnStatus status = kiln_sweep_report_read(dir, &report, err);

    /* The space outlives the report. */
    ret->arena = report.arena;
    ret->space = report.space;
    report.arena = (KilnArena) { .first = NULL };
    if (status >= 0)
        status = read_jobs(&report, objective, ret, err);
    kiln_sweep_report_release(&report);
    return status;
}
