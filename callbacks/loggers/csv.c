/* Writes metrics.csv: one row for each (epoch, step), a column for each metric. */
#include "kiln.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CELL = 32 };

typedef struct State {
    char path[4096 + 16], tmp[4096 + 32];
    FILE *file;
    char **columns; /* behind epoch and step */
    size_t n_columns;
    /* The last row: kept back, for values of the same moment come in parts. */
    char (*cells)[CELL]; /* n_columns; "" is an empty cell */
    int64_t epoch, step;
    bool has_row, dirty; /* dirty: the file does not have it as it is */
    long row_at;         /* where it begins, or will begin, in the file */
} State;

/* ---- Lines ------------------------------------------------------------------------------ */

static bool put_header(const State *state, FILE *file)
{
    bool ok = fputs("epoch,step", file) != EOF;

    for (size_t i = 0; i < state->n_columns && ok; i++)
        ok = fprintf(file, ",%s", state->columns[i]) > 0;
    return ok && fputc('\n', file) != EOF;
}

static bool put_row(const State *state, FILE *file)
{
    bool ok = fprintf(file, "%lld,%lld", (long long)state->epoch, (long long)state->step) > 0;

    for (size_t i = 0; i < state->n_columns && ok; i++)
        ok = fprintf(file, ",%s", state->cells[i]) > 0;
    return ok && fputc('\n', file) != EOF;
}

/* Digits that read back as the same double. */
static void format_cell(double value, char cell[CELL])
{
    if (isfinite(value))
        snprintf(cell, CELL, "%.17g", value);
    else
        snprintf(cell, CELL, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

/* Bring the file's last row up to date. */
static KilnStatus write_row(State *state, KilnError *err)
{
    if (!state->has_row || !state->dirty)
        return KILN_OK;
    errno = EIO;
    if (fseek(state->file, state->row_at, SEEK_SET) != 0 || !put_row(state, state->file) ||
        fflush(state->file) != 0 || ftruncate(fileno(state->file), ftell(state->file)) != 0)
        return kiln_error_errno(err, state->path);
    state->dirty = false;
    return KILN_OK;
}

/* ---- The whole file ------------------------------------------------------------------------ */

/* The text of the file, owned by the caller; NULL with KILN_OK when there is none. */
static KilnStatus read_all(const State *state, char **ret, KilnError *err)
{
    FILE *file = fopen(state->path, "rb");
    char *text = NULL;
    long size = 0;

    *ret = NULL;
    if (file == NULL)
        return errno == ENOENT ? KILN_OK : kiln_error_errno(err, state->path);
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
        text = malloc((size_t)size + 1);
    if (text != NULL && fread(text, 1, (size_t)size, file) != (size_t)size) {
        free(text);
        text = NULL;
    }
    fclose(file);
    if (text == NULL)
        return kiln_error_set(err, KILN_E_IO, "%s: can't be read", state->path);
    text[size] = '\0';
    *ret = text;
    return KILN_OK;
}

/* Write header and `rows` (whole lines, padded to all columns) under a
 * temporary name, put it in the place of the file, and open it. */
static KilnStatus replace(State *state, const char *rows, KilnError *err)
{
    FILE *file = fopen(state->tmp, "wbe");
    bool ok = file != NULL && put_header(state, file);

    for (const char *line = rows; ok && *line != '\0';) {
        size_t length = strcspn(line, "\n"), commas = 0;

        for (size_t i = 0; i < length; i++)
            commas += line[i] == ',';
        ok = fwrite(line, 1, length, file) == length;
        for (; commas < state->n_columns + 1 && ok; commas++)
            ok = fputc(',', file) != EOF;
        ok = ok && fputc('\n', file) != EOF;
        line += length + (line[length] == '\n');
    }
    if (file != NULL && fclose(file) != 0)
        ok = false;
    if (!ok || rename(state->tmp, state->path) != 0) {
        KilnStatus status = kiln_error_errno(err, state->path);

        unlink(state->tmp);
        return status;
    }
    if (state->file != NULL)
        fclose(state->file);
    state->file = fopen(state->path, "r+be");
    if (state->file == NULL || fseek(state->file, 0, SEEK_END) != 0)
        return kiln_error_errno(err, state->path);
    state->row_at = ftell(state->file);
    return KILN_OK;
}

static KilnStatus add_column(State *state, const char *name, size_t length, KilnError *err)
{
    size_t n = state->n_columns;
    char **columns = realloc(state->columns, (n + 1) * sizeof(*columns));

    if (columns != NULL)
        state->columns = columns;
    char(*cells)[CELL] = realloc(state->cells, (n + 1) * sizeof(*cells));
    if (cells != NULL)
        state->cells = cells;
    char *copy = malloc(length + 1);
    if (columns == NULL || cells == NULL || copy == NULL) {
        free(copy);
        return kiln_error_nomem(err, (n + 1) * sizeof(*cells));
    }
    memcpy(copy, name, length);
    copy[length] = '\0';
    columns[n] = copy;
    cells[n][0] = '\0';
    state->n_columns++;
    return KILN_OK;
}

/* A new column in a file that has rows: rewrite it with the wider header. The
 * last row is not in it; it is written again. */
static KilnStatus widen(State *state, KilnError *err)
{
    char *text = NULL;
    KilnStatus status = KILN_OK;

    if (fflush(state->file) != 0)
        return kiln_error_errno(err, state->path);
    status = read_all(state, &text, err);
    if (status >= 0 && text != NULL) {
        char *rows = text + strcspn(text, "\n");

        if (state->row_at < (long)strlen(text))
            text[state->row_at] = '\0';
        status = replace(state, *rows == '\n' ? rows + 1 : rows, err);
        state->dirty = state->has_row;
    }
    free(text);
    return status;
}

/* ---- Going on in a file ------------------------------------------------------------------------
 */

/* The number in the second cell of a line; -1 when there is none. */
static int64_t step_of(const char *line)
{
    const char *p = strchr(line, ',');
    int64_t step = 0;

    if (p == NULL || p[1] < '0' || p[1] > '9')
        return -1;
    for (p++; *p >= '0' && *p <= '9' && step < INT64_MAX / 16; p++)
        step = step * 10 + (*p - '0');
    return *p == ',' || *p == '\n' || *p == '\0' ? step : -1;
}

static KilnStatus read_header(State *state, const char *text, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (strncmp(text, "epoch,step", 10) != 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: does not begin with epoch,step",
                              state->path);
    for (const char *p = text + 10; *p == ',' && status >= 0;) {
        size_t length = strcspn(++p, ",\n");

        status = add_column(state, p, length, err);
        p += length;
    }
    return status;
}

/* Rows up to `step`, moved together in place; a torn last line is dropped. */
static void keep_rows(char *rows, int64_t step)
{
    char *to = rows;

    for (const char *line = rows; strchr(line, '\n') != NULL;) {
        size_t length = strcspn(line, "\n") + 1;
        int64_t of = step_of(line);

        if (of >= 0 && of <= step) {
            memmove(to, line, length);
            to += length;
        }
        line += length;
    }
    *to = '\0';
}

/* Take the last of `rows` back as the row that may still grow. */
static void take_last_row(State *state, char *rows)
{
    size_t length = strlen(rows);
    char *line;

    if (length == 0)
        return;
    rows[length - 1] = '\0'; /* the last \n */
    line = strrchr(rows, '\n');
    line = line != NULL ? line + 1 : rows;
    state->epoch = 0;
    for (const char *p = line; *p >= '0' && *p <= '9'; p++)
        state->epoch = state->epoch * 10 + (*p - '0');
    state->step = step_of(line);
    const char *p = strchr(line, ',') + 1;
    p += strcspn(p, ",");
    for (size_t i = 0; i < state->n_columns && *p == ','; i++) {
        size_t n = strcspn(++p, ",");

        if (n < CELL) {
            memcpy(state->cells[i], p, n);
            state->cells[i][n] = '\0';
        }
        p += n;
    }
    state->has_row = state->dirty = true;
    *line = '\0';
}

static KilnStatus open_file(KilnInstance *self, const char *run_dir, int64_t resumed_step,
                            KilnError *err)
{
    State *state = kiln_state(self);
    char *text = NULL;

    if (strlen(run_dir) >= 4096)
        return kiln_error_set(err, KILN_E_RANGE, "%s: the path is too long", run_dir);
    snprintf(state->path, sizeof(state->path), "%s/metrics.csv", run_dir);
    snprintf(state->tmp, sizeof(state->tmp), "%s/.metrics.csv.tmp", run_dir);
    KilnStatus status = read_all(state, &text, err);
    if (status >= 0 && text != NULL && text[0] != '\0') {
        char *rows = text + strcspn(text, "\n");

        rows += *rows == '\n';
        status = read_header(state, text, err);
        if (status >= 0) {
            keep_rows(rows, resumed_step);
            take_last_row(state, rows);
            status = replace(state, rows, err);
        }
    } else if (status >= 0) {
        status = replace(state, "", err);
    }
    free(text);
    return status;
}

/* ---- Logging
 * --------------------------------------------------------------------------------------- */

/* The column of `name`, made when it is new. */
static KilnStatus column_of(State *state, const char *name, size_t *ret, bool *made, KilnError *err)
{
    for (size_t i = 0; i < state->n_columns; i++)
        if (strcmp(state->columns[i], name) == 0) {
            *ret = i;
            return KILN_OK;
        }
    if (strpbrk(name, ",\"\n") != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "metric \"%s\" can't name a column; leave out commas and quotes",
                              name);
    *ret = state->n_columns;
    *made = true;
    return add_column(state, name, strlen(name), err);
}

static KilnStatus log_metrics(KilnInstance *self, const KilnMetric *metrics, size_t n,
                              int64_t epoch, int64_t step, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;
    bool wider = false;

    if (state->has_row && (state->epoch != epoch || state->step != step)) {
        status = write_row(state, err);
        if (status < 0)
            return status;
        if (fseek(state->file, 0, SEEK_END) != 0)
            return kiln_error_errno(err, state->path);
        state->row_at = ftell(state->file);
        state->has_row = false;
        for (size_t i = 0; i < state->n_columns; i++)
            state->cells[i][0] = '\0';
    }
    for (size_t i = 0; i < n && status >= 0; i++) {
        size_t column = 0;

        status = column_of(state, metrics[i].name, &column, &wider, err);
        if (status >= 0)
            format_cell(metrics[i].value, state->cells[column]);
    }
    state->epoch = epoch;
    state->step = step;
    state->has_row = state->dirty = true;
    return status >= 0 && wider ? widen(state, err) : status;
}

static KilnStatus flush(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    if (state->file == NULL)
        return KILN_OK;
    KilnStatus status = write_row(state, err);
    if (status >= 0 && (fflush(state->file) != 0 || fsync(fileno(state->file)) != 0))
        status = kiln_error_errno(err, state->path);
    return status;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    if (state->file != NULL)
        fclose(state->file);
    for (size_t i = 0; i < state->n_columns; i++)
        free(state->columns[i]);
    free(state->columns);
    free(state->cells);
}

static const KilnLoggerOps ops = {
    .open = open_file,
    .log_metrics = log_metrics,
    .flush = flush,
};

const KilnComponent kiln_logger_csv = {
    .kind = KILN_KIND_LOGGER,
    .name = "csv",
    .summary = "Write metrics to metrics.csv in the run folder",
    .state_size = sizeof(State),
    .release = release,
    .ops.logger = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_logger_csv, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
