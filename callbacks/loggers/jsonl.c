/* Writes metrics.jsonl: a line of hyperparameters, a line per logging step, and a line with the end
 * of the run. Measured values have separate lines. */
#include "kiln.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct State {
    char path[4096 + 16];
    FILE *file;
    int64_t lines; /* without those of measured values, which differ between runs */
} State;

/* Write and consume `line`; NULL: memory ran out. */
static KilnStatus put(State *state, json_t *line, KilnError *err)
{
    char *text = line != NULL ? json_dumps(line, JSON_REAL_PRECISION(17)) : NULL;
    KilnStatus status = text != NULL ? KILN_OK : kiln_error_nomem(err, 1);

    json_decref(line);
    errno = EIO;
    if (text != NULL && fprintf(state->file, "%s\n", text) < 0)
        status = kiln_error_errno(err, state->path);
    free(text);
    state->lines++;
    return status;
}

/* JSON has no NaN or infinity: write texts that every language can parse as numbers. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value)
                           : json_string(isnan(value) ? "nan"
                                         : value > 0  ? "inf"
                                                      : "-inf");
}

/* ---- The beginning ----------------------------------------------------------------------- */

static json_t *hparams_line(const KilnLogRun *run)
{
    json_t *all = json_object();

    for (size_t i = 0; i < run->n_hparams; i++) {
        const KilnHparam *h = &run->hparams[i];

        json_object_set_new(all, h->name,
                            h->kind == KILN_HPARAM_TEXT        ? json_string(h->value)
                            : h->kind == KILN_HPARAM_BOOL      ? json_boolean(h->number != 0.0)
                            : strpbrk(h->value, ".en") == NULL ? json_integer((json_int_t)h->number)
                                                               : number(h->number));
    }
    return json_pack("{s:o}", "hparams", all);
}

/* The kind of a line. */
typedef struct Line {
    bool measured, early; /* early: before the end of the checkpoint's step */
} Line;

static Line look_at(const char *line, size_t length, int64_t step)
{
    json_t *row = json_loadb(line, length, 0, NULL);
    const json_t *of = json_object_get(row, "step");
    Line seen = {
        .measured = json_object_get(row, "measured") != NULL,
        .early = json_object_get(row, "hparams") != NULL ||
                 (json_is_integer(of) && json_integer_value(of) <= step),
    };

    json_decref(row);
    return seen;
}

/* The size of the file at the checkpoint: up to its line `lines`, or, if unknown (-1), lines up to
 * `step`; and measured lines of its step. */
static KilnStatus find_end(State *state, int64_t lines, int64_t step, long *ret, KilnError *err)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    long end = 0;

    while ((length = getline(&line, &capacity, state->file)) > 0 && line[length - 1] == '\n') {
        const Line seen = look_at(line, (size_t)length, step);

        if (lines < 0 || seen.measured ? !seen.early : state->lines == lines)
            break;
        state->lines += seen.measured ? 0 : 1;
        end += length;
    }
    free(line);
    if (ferror(state->file))
        return kiln_error_errno(err, state->path);
    *ret = end;
    return KILN_OK;
}

static KilnStatus open_file(KilnInstance *self, const KilnLogRun *run, KilnError *err)
{
    State *state = kiln_state(self);
    int64_t lines = -1;
    long end = 0;
    KilnStatus status = KILN_OK;

    if (strlen(run->dir) >= 4096)
        return kiln_error_set(err, KILN_E_RANGE, "%s: the path is too long", run->dir);
    snprintf(state->path, sizeof(state->path), "%s/metrics.jsonl", run->dir);
    state->file = run->resumed ? kiln_file_open(state->path, "r+") : NULL;
    if (state->file == NULL)
        state->file = kiln_file_open(state->path, "w+");
    if (state->file == NULL)
        return kiln_error_errno(err, state->path);
    if (run->state != NULL)
        (void)kiln_state_get_i64(run->state, "lines", &lines);
    status = find_end(state, lines, run->step, &end, err);
    if (status >= 0 &&
        (fseek(state->file, end, SEEK_SET) != 0 || ftruncate(fileno(state->file), end) != 0))
        status = kiln_error_errno(err, state->path);
    return status >= 0 && state->lines == 0 ? put(state, hparams_line(run), err) : status;
}

/* ---- Rows -------------------------------------------------------------------------------- */

/* Separate measured values; returns their number. */
static size_t split(const KilnLogRow *row, json_t *values, json_t *measured)
{
    size_t n = 0;

    for (size_t i = 0; i < row->n; i++) {
        const KilnMetric *metric = &row->metrics[i];
        const bool apart = (metric->flags & KILN_LOG_MEASURED) != 0;

        json_object_set_new(apart ? measured : values, metric->name, number(metric->value));
        n += apart;
    }
    return n;
}

/* A line with `values` (consumed) under `key`. */
static json_t *row_line(const KilnLogRow *row, const char *key, json_t *values)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:o}", "phase", row->phase, "epoch",
                     (json_int_t)row->epoch, "step", (json_int_t)row->step, "batch",
                     (json_int_t)row->batch, "samples", (json_int_t)row->samples, "wall_time",
                     row->wall_time, key, values);
}

static KilnStatus log_metrics(KilnInstance *self, const KilnLogRow *row, KilnError *err)
{
    State *state = kiln_state(self);
    json_t *values = json_object(), *measured = json_object();
    const size_t n_measured = split(row, values, measured);
    KilnStatus status = KILN_OK;

    if (n_measured < row->n)
        status = put(state, row_line(row, "metrics", json_incref(values)), err);
    if (status >= 0 && n_measured > 0) {
        status = put(state, row_line(row, "measured", json_incref(measured)), err);
        state->lines--;
    }
    json_decref(values);
    json_decref(measured);
    return status;
}

static KilnStatus flush(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    if (state->file != NULL && fflush(state->file) != 0)
        return kiln_error_errno(err, state->path);
    return KILN_OK;
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);

    kiln_state_set_i64(saved, "lines", state->lines);
}

static KilnStatus close_file(KilnInstance *self, const char *status, const KilnMetric *metrics,
                             size_t n, KilnError *err)
{
    State *state = kiln_state(self);

    (void)metrics;
    (void)n;
    return state->file != NULL ? put(state, json_pack("{s:s}", "status", status), err) : KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    if (state->file != NULL)
        fclose(state->file);
}

static const char *const files[] = { "metrics.jsonl", NULL };

static const KilnLoggerOps ops = {
    .open = open_file,
    .log_metrics = log_metrics,
    .flush = flush,
    .state_dict = state_dict,
    .close = close_file,
    .files = files,
};

const KilnComponent kiln_logger_jsonl = {
    .kind = KILN_KIND_LOGGER,
    .name = "jsonl",
    .summary = "Write metrics to metrics.jsonl in the run folder, one JSON object per line",
    .state_size = sizeof(State),
    .release = release,
    .ops.logger = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_logger_jsonl, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
