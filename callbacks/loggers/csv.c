/* Writes metrics.csv: a row per logging step, a column per metric. Measured values, which differ
 * between runs, go to measured.csv, so that metrics.csv of a resumed run equals that of an
 * uninterrupted one, except for wall_time. */
#include "kiln.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CELL = 32, MOMENT = 6 };

/* The columns before the metrics. */
static const char moment_header[] = "phase,epoch,step,batch,samples,wall_time";

typedef struct Table {
    char path[4096 + 16], tmp[4096 + 32];
    FILE *file;
    char **columns;              /* after the fixed columns */
    size_t n_columns, n_written; /* those in the file's header come first */
    int64_t rows;                /* in the file, without `last` */
    /* The last row, kept back since its values may arrive in parts. */
    char moment[MOMENT][CELL];
    char (*cells)[CELL]; /* n_columns; "" is an empty cell */
    bool has_row, dirty; /* dirty: the file has an older version */
    long row_at;         /* its offset in the file */
} Table;

typedef struct State {
    const KilnLogRun *run;
    Table exact;
    Table measured; /* opened at the first value */
} State;

/* ---- Lines ------------------------------------------------------------------------------ */

/* A name as a cell, quoted if necessary (RFC 4180). */
static bool put_name(const char *name, FILE *file)
{
    bool quoted = strpbrk(name, ",\"") != NULL;
    bool ok = !quoted || fputc('"', file) != EOF;

    for (; *name != '\0' && ok; name++)
        ok = fputc(*name, file) != EOF && (*name != '"' || fputc('"', file) != EOF);
    return ok && (!quoted || fputc('"', file) != EOF);
}

static bool put_header(const Table *table, FILE *file)
{
    bool ok = fputs(moment_header, file) != EOF;

    for (size_t i = 0; i < table->n_columns && ok; i++)
        ok = fputc(',', file) != EOF && put_name(table->columns[i], file);
    return ok && fputc('\n', file) != EOF;
}

static bool put_row(const Table *table, FILE *file)
{
    bool ok = true;

    for (size_t i = 0; i < MOMENT + table->n_columns && ok; i++)
        ok = fprintf(file, "%s%s", i > 0 ? "," : "",
                     i < MOMENT ? table->moment[i] : table->cells[i - MOMENT]) >= 0;
    return ok && fputc('\n', file) != EOF;
}

/* The shortest digits that parse to the same double. */
static void format_cell(double value, char cell[CELL])
{
    if (isfinite(value))
        snprintf(cell, CELL, "%.17g", value);
    else
        snprintf(cell, CELL, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

/* ---- The whole file ------------------------------------------------------------------------ */

/* The whole text of the open file, owned by the caller. */
static KilnStatus read_all(const Table *table, FILE *file, char **ret, KilnError *err)
{
    char *text = NULL;
    long size = 0;

    errno = EIO;
    if (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
        return kiln_error_errno(err, table->path);
    if ((text = malloc((size_t)size + 1)) == NULL)
        return kiln_error_nomem(err, (size_t)size + 1);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) {
        free(text);
        return kiln_error_errno(err, table->path);
    }
    text[size] = '\0';
    *ret = text;
    return KILN_OK;
}

/* A row with as many cells as there are columns. */
static bool copy_row(const Table *table, const char *line, size_t length, FILE *file)
{
    size_t cells = 1, used = 0;
    bool ok;

    for (; used < length && !(line[used] == ',' && cells == MOMENT + table->n_columns); used++)
        cells += line[used] == ',';
    ok = fwrite(line, 1, used, file) == used;
    for (; cells < MOMENT + table->n_columns && ok; cells++)
        ok = fputc(',', file) != EOF;
    return ok && fputc('\n', file) != EOF;
}

/* Open the file, also after an earlier failure. */
static KilnStatus reopen(Table *table, KilnError *err)
{
    if (table->file == NULL && (table->file = kiln_file_open(table->path, "r+")) == NULL)
        return kiln_error_errno(err, table->path);
    return KILN_OK;
}

/* Write header, `rows` (whole lines) and the last row to a temporary file, rename it to the file,
 * and open it. A kill at any time loses nothing. */
static KilnStatus replace(Table *table, const char *rows, KilnError *err)
{
    FILE *file = kiln_file_open(table->tmp, "w");
    bool ok = file != NULL && put_header(table, file);
    int64_t n = 0;
    long row_at = 0;

    for (const char *line = rows; ok && *line != '\0'; n++) {
        size_t length = strcspn(line, "\n");

        ok = copy_row(table, line, length, file);
        line += length + (line[length] == '\n');
    }
    if (ok) {
        row_at = ftell(file);
        ok = row_at >= 0 && (!table->has_row || put_row(table, file));
    }
    if (ok && n > 0) /* a power cut must not lose the old rows */
        ok = fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (file != NULL && fclose(file) != 0)
        ok = false;
    if (!ok || rename(table->tmp, table->path) != 0) {
        KilnStatus status = kiln_error_errno(err, table->path);

        unlink(table->tmp);
        return status;
    }
    if (table->file != NULL)
        fclose(table->file);
    table->file = NULL;
    table->rows = n;
    table->row_at = row_at;
    table->n_written = table->n_columns;
    table->dirty = false;
    return reopen(table, err);
}

static KilnStatus add_column(Table *table, const char *name, size_t length, KilnError *err)
{
    size_t n = table->n_columns;
    char **columns = realloc(table->columns, (n + 1) * sizeof(*columns));

    if (columns != NULL)
        table->columns = columns;
    char(*cells)[CELL] = realloc(table->cells, (n + 1) * sizeof(*cells));
    if (cells != NULL)
        table->cells = cells;
    char *copy = malloc(length + 1);
    if (columns == NULL || cells == NULL || copy == NULL) {
        free(copy);
        return kiln_error_nomem(err, (n + 1) * sizeof(*cells));
    }
    memcpy(copy, name, length);
    copy[length] = '\0';
    columns[n] = copy;
    cells[n][0] = '\0';
    table->n_columns++;
    return KILN_OK;
}

/* Rewrite the file with a header of all columns and the current last row. */
static KilnStatus rewrite(Table *table, KilnError *err)
{
    char *text = NULL;
    KilnStatus status = fflush(table->file) == 0 ? read_all(table, table->file, &text, err)
                                                 : kiln_error_errno(err, table->path);

    if (status >= 0) {
        char *rows = text + strcspn(text, "\n");

        if (table->row_at < (long)strlen(text))
            text[table->row_at] = '\0';
        status = replace(table, *rows == '\n' ? rows + 1 : rows, err);
    }
    free(text);
    return status;
}

/* Whether somebody removed or replaced the file. */
static bool is_gone(const Table *table)
{
    struct stat open, there;

    if (fstat(fileno(table->file), &open) != 0)
        return false;
    if (stat(table->path, &there) != 0)
        return errno == ENOENT;
    return open.st_ino != there.st_ino || open.st_dev != there.st_dev;
}

/* Update the file's last row, write what failed before, and restore a removed file with all its
 * rows. */
static KilnStatus write_row(Table *table, KilnError *err)
{
    KilnStatus status = reopen(table, err);

    if (status < 0)
        return status;
    if (table->n_columns > table->n_written || is_gone(table))
        return rewrite(table, err);
    if (!table->has_row || !table->dirty)
        return KILN_OK;
    errno = EIO;
    if (fseek(table->file, table->row_at, SEEK_SET) != 0 || !put_row(table, table->file) ||
        fflush(table->file) != 0 || ftruncate(fileno(table->file), ftell(table->file)) != 0)
        return kiln_error_errno(err, table->path);
    table->dirty = false;
    return KILN_OK;
}

/* ---- Resuming ------------------------------------------------------------------------------- */

/* The next cell of a header line, unquoted in place; *at moves past it, to NULL at the end. */
static char *next_name(char **at)
{
    char *name = *at, *to = name, *from = name;
    bool quoted = *from == '"';

    for (from += quoted; *from != '\0' && (quoted || *from != ','); from++) {
        if (quoted && *from == '"' && *++from != '"')
            break;
        *to++ = *from;
    }
    *at = *from == ',' ? from + 1 : NULL;
    *to = '\0';
    return name;
}

/* The columns of a header line, which is modified. */
static KilnStatus read_header(Table *table, char *line, KilnError *err)
{
    size_t length = strlen(moment_header);
    KilnStatus status = KILN_OK;

    if (strncmp(line, moment_header, length) != 0)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s does not begin with %s, so another program or version wrote it; move it away",
            table->path, moment_header);
    for (char *at = line[length] == ',' ? line + length + 1 : NULL; at != NULL && status >= 0;) {
        const char *name = next_name(&at);

        status = add_column(table, name, strlen(name), err);
    }
    return status;
}

/* The number in the third cell of a line; -1: none. */
static int64_t step_of(const char *line)
{
    int64_t step = 0;

    for (int i = 0; i < 2; i++) {
        line = strchr(line, ',');
        if (line == NULL || line[1] < '0' || line[1] > '9')
            return -1;
        line++;
    }
    for (; *line >= '0' && *line <= '9' && step < INT64_MAX / 16; line++)
        step = step * 10 + (*line - '0');
    return *line == ',' ? step : -1;
}

/* Keep only the rows at the time of the checkpoint, in place: the first `count`, or, if unknown
 * (-1), those up to `step`. Drops a torn last line. */
static void keep_rows(char *rows, int64_t count, int64_t step)
{
    char *to = rows;

    for (const char *line = rows, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        size_t length = (size_t)(end + 1 - line);
        int64_t of = step_of(line);

        if (of < 0 || (count >= 0 ? count-- <= 0 : of > step))
            continue;
        memmove(to, line, length);
        to += length;
    }
    *to = '\0';
}

/* Take the last of `rows` back as the incomplete last row. */
static void take_last_row(Table *table, char *rows)
{
    size_t length = strlen(rows);
    char *line;

    if (length == 0)
        return;
    rows[length - 1] = '\0'; /* the last \n */
    line = strrchr(rows, '\n');
    line = line != NULL ? line + 1 : rows;
    const char *p = line;
    for (size_t i = 0; i < MOMENT + table->n_columns; i++) {
        size_t n = strcspn(p, ",");

        snprintf(i < MOMENT ? table->moment[i] : table->cells[i - MOMENT], CELL, "%.*s", (int)n, p);
        p += n + (p[n] == ',');
    }
    table->has_row = table->dirty = true;
    *line = '\0';
}

/* Columns are only appended, so those of the checkpoint come first. */
static KilnStatus drop_columns(Table *table, const KilnState *saved, KilnError *err)
{
    int64_t known = 0;

    if (!kiln_state_get_i64(saved, "columns", &known))
        return KILN_OK;
    if (known < 0 || (size_t)known > table->n_columns)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s has %zu metrics, but the checkpoint has %lld, so it is not the "
                              "file of that run; move it away",
                              table->path, table->n_columns, (long long)known);
    while (table->n_columns > (size_t)known)
        free(table->columns[--table->n_columns]);
    table->n_written = table->n_columns;
    return KILN_OK;
}

/* `saved`: the checkpoint's state of the file; NULL: none. */
static KilnStatus go_on(Table *table, char *text, const KilnState *saved, int64_t step,
                        KilnError *err)
{
    char *rows = text + strcspn(text, "\n");
    int64_t count = -1;
    KilnStatus status;

    if (*rows == '\n')
        *rows++ = '\0';
    status = read_header(table, text, err);
    if (status >= 0 && saved != NULL) {
        status = drop_columns(table, saved, err);
        (void)kiln_state_get_i64(saved, "rows", &count);
    }
    if (status < 0)
        return status;
    keep_rows(rows, count, step);
    take_last_row(table, rows);
    return replace(table, rows, err);
}

/* The content that an earlier process left; NULL: none. */
static KilnStatus read_left(const Table *table, char **ret, KilnError *err)
{
    FILE *file = fopen(table->path, "rbe");

    *ret = NULL;
    if (file == NULL)
        return errno == ENOENT ? KILN_OK : kiln_error_errno(err, table->path);
    KilnStatus status = read_all(table, file, ret, err);
    fclose(file);
    return status;
}

static KilnStatus open_table(Table *table, const char *name, const KilnLogRun *run,
                             const KilnState *saved, KilnError *err)
{
    char *text = NULL;
    KilnStatus status = KILN_OK;

    if (strlen(run->dir) >= 4096)
        return kiln_error_set(err, KILN_E_RANGE, "%s: the path is too long", run->dir);
    snprintf(table->path, sizeof(table->path), "%s/%s", run->dir, name);
    snprintf(table->tmp, sizeof(table->tmp), "%s/.%s.tmp", run->dir, name);
    if (run->resumed)
        status = read_left(table, &text, err);
    if (status >= 0)
        status = text != NULL && text[0] != '\0' ? go_on(table, text, saved, run->step, err)
                                                 : replace(table, "", err);
    free(text);
    return status;
}

static KilnStatus open_file(KilnInstance *self, const KilnLogRun *run, KilnError *err)
{
    State *state = kiln_state(self);

    state->run = run;
    return open_table(&state->exact, "metrics.csv", run, run->state, err);
}

/* ---- Logging -------------------------------------------------------------------------------- */

/* The column of `name`, which is added if it is new. */
static KilnStatus column_of(Table *table, const char *name, size_t *ret, KilnError *err)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (strcmp(table->columns[i], name) == 0) {
            *ret = i;
            return KILN_OK;
        }
    if (strpbrk(name, "\r\n") != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "metric \"%s\" cannot name a column: it has more than one line",
                              name);
    *ret = table->n_columns;
    return add_column(table, name, strlen(name), err);
}

static void format_moment(const KilnLogRow *row, char moment[MOMENT][CELL])
{
    const int64_t numbers[] = { row->epoch, row->step, row->batch, row->samples };

    snprintf(moment[0], CELL, "%s", row->phase);
    for (size_t i = 0; i < KILN_COUNT(numbers); i++)
        snprintf(moment[i + 1], CELL, "%lld", (long long)numbers[i]);
    snprintf(moment[MOMENT - 1], CELL, "%.3f", row->wall_time);
}

/* Whether the last row has the same position, except for wall_time. */
static bool same_moment(const Table *table, char moment[MOMENT][CELL])
{
    for (int i = 0; i < MOMENT - 1; i++)
        if (strcmp(table->moment[i], moment[i]) != 0)
            return false;
    return true;
}

/* Finish the last row and start a new one. */
static KilnStatus next_row(Table *table, KilnError *err)
{
    KilnStatus status = write_row(table, err);

    if (status < 0)
        return status;
    if (fseek(table->file, 0, SEEK_END) != 0)
        return kiln_error_errno(err, table->path);
    table->row_at = ftell(table->file);
    table->has_row = false;
    table->rows++;
    for (size_t i = 0; i < table->n_columns; i++)
        table->cells[i][0] = '\0';
    return KILN_OK;
}

/* Add a row's measured values, or the others, to their table. */
static KilnStatus log_values(Table *table, const KilnLogRow *row, bool measured, KilnError *err)
{
    char moment[MOMENT][CELL];
    KilnStatus status = KILN_OK;

    format_moment(row, moment);
    if (table->has_row && !same_moment(table, moment))
        status = next_row(table, err);
    if (status < 0)
        return status; /* the row that could not be written is still the last */
    for (size_t i = 0; i < row->n && status >= 0; i++) {
        size_t column = 0;

        if (((row->metrics[i].flags & KILN_LOG_MEASURED) != 0) != measured)
            continue;
        status = column_of(table, row->metrics[i].name, &column, err);
        if (status >= 0)
            format_cell(row->metrics[i].value, table->cells[column]);
    }
    memcpy(table->moment, moment, sizeof(moment));
    table->has_row = table->dirty = true;
    return status >= 0 && table->n_columns > table->n_written ? write_row(table, err) : status;
}

static KilnStatus log_metrics(KilnInstance *self, const KilnLogRow *row, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;
    size_t measured = 0;

    for (size_t i = 0; i < row->n; i++)
        measured += (row->metrics[i].flags & KILN_LOG_MEASURED) != 0;
    if (measured < row->n)
        status = log_values(&state->exact, row, false, err);
    if (status < 0 || measured == 0)
        return status;
    if (state->measured.path[0] == '\0')
        status = open_table(&state->measured, "measured.csv", state->run, NULL, err);
    return status >= 0 ? log_values(&state->measured, row, true, err) : status;
}

static KilnStatus flush_table(Table *table, KilnError *err)
{
    if (table->path[0] == '\0')
        return KILN_OK; /* not opened */
    KilnStatus status = write_row(table, err);
    if (status >= 0 && fflush(table->file) != 0)
        status = kiln_error_errno(err, table->path);
    return status;
}

static KilnStatus flush(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = flush_table(&state->exact, err);

    return status >= 0 ? flush_table(&state->measured, err) : status;
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const Table *table = &((State *)kiln_state(self))->exact;

    kiln_state_set_i64(saved, "rows", table->rows + (table->has_row ? 1 : 0));
    kiln_state_set_i64(saved, "columns", (int64_t)table->n_written);
}

static void release_table(Table *table)
{
    if (table->file != NULL)
        fclose(table->file);
    for (size_t i = 0; i < table->n_columns; i++)
        free(table->columns[i]);
    free(table->columns);
    free(table->cells);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    release_table(&state->exact);
    release_table(&state->measured);
}

static const char *const files[] = { "metrics.csv", NULL };

static const KilnLoggerOps ops = {
    .open = open_file,
    .log_metrics = log_metrics,
    .flush = flush,
    .state_dict = state_dict,
    .files = files,
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
