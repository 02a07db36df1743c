/* Draws metrics.csv as pictures in plots/ when a run ends: one for each kind of metric, with the
 * curves of training and validation. */
#include "kiln.h"
#include "kiln/plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_LINES = 8, NAME = 256 };

typedef struct Opts {
    int64_t width, height;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, width, "800", 100, 8192, "width of a picture in pixels"),
    KILN_FIELD_I64(Opts, height, "500", 100, 8192, "height of a picture in pixels"),
    KILN_FIELD_END,
};

/* The columns of metrics.csv as numbers. */
typedef struct Table {
    char *text;
    char **names; /* into text */
    size_t n_columns, n_rows;
    double *cells; /* by column; NAN: empty cell */
    bool *test;    /* rows of the final test */
} Table;

/* ---- Reading ------------------------------------------------------------------------------ */

static void table_release(Table *table)
{
    free(table->text);
    free(table->names);
    free(table->cells);
    free(table->test);
}

/* NULL: the file is missing or empty, or `err` has the reason. */
static char *read_file(const char *path, KilnError *err)
{
    FILE *file = fopen(path, "rbe");
    char *text = NULL;
    size_t length = 0, capacity = 0;

    if (file == NULL) {
        if (errno != ENOENT)
            kiln_error_errno(err, path);
        return NULL;
    }
    ssize_t got = getdelim(&text, &capacity, '\0', file);
    if (got > 0)
        length = (size_t)got;
    else if (!feof(file))
        kiln_error_errno(err, path);
    fclose(file);
    if (length == 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The next cell, unquoted in place; *at moves past it and its comma or line end. */
static char *next_cell(char **at, bool *ends_line)
{
    char *from = *at, *cell = from, *to = from;
    bool quoted = *from == '"';

    for (from += quoted; *from != '\0'; from++) {
        if (quoted && *from == '"' && *++from != '"')
            quoted = false;
        if (!quoted && (*from == ',' || *from == '\n' || *from == '\0'))
            break;
        *to++ = *from;
    }
    *ends_line = *from != ',';
    *at = from + (*from != '\0');
    *to = '\0';
    return cell;
}

static bool read_names(Table *table, char **at)
{
    bool last = false;

    while (!last) {
        char *name = next_cell(at, &last);
        char **names = realloc(table->names, (table->n_columns + 1) * sizeof(*names));

        if (names == NULL)
            return false;
        table->names = names;
        names[table->n_columns++] = name;
    }
    return true;
}

static bool read_rows(Table *table, char *at)
{
    size_t most = 0;

    for (const char *p = at; *p != '\0'; p++)
        most += *p == '\n';
    table->cells = malloc((most * table->n_columns + 1) * sizeof(*table->cells));
    table->test = malloc(most + 1);
    if (table->cells == NULL || table->test == NULL)
        return false;
    for (; *at != '\0' && table->n_rows < most; table->n_rows++) {
        bool last = false;

        for (size_t i = 0; i < table->n_columns; i++) {
            char *cell = last ? "" : next_cell(&at, &last), *end;
            double value = strtod(cell, &end);

            table->cells[i * most + table->n_rows] = end != cell ? value : (double)NAN;
            if (i == 0)
                table->test[table->n_rows] = strcmp(cell, "test") == 0;
        }
        while (!last)
            (void)next_cell(&at, &last);
    }
    /* Columns are `most` apart, the number of rows if no line is torn. */
    return table->n_rows == most;
}

/* False when there is nothing to draw. */
static bool table_read(const char *path, Table *table, KilnError *err)
{
    char *at;

    *table = (Table) { .text = read_file(path, err) };
    if (table->text == NULL)
        return false;
    at = table->text;
    return read_names(table, &at) && read_rows(table, at);
}

/* ---- Drawing -------------------------------------------------------------------------------- */

/* The kind of "train/loss_step" and "val/loss": "loss". */
static void kind_of(const char *name, char kind[NAME])
{
    const char *slash = strchr(name, '/');
    size_t length;

    snprintf(kind, NAME, "%s", slash != NULL ? slash + 1 : name);
    length = strlen(kind);
    if (length > 5 && strcmp(kind + length - 5, "_step") == 0)
        kind[length - 5] = '\0';
    else if (length > 6 && strcmp(kind + length - 6, "_epoch") == 0)
        kind[length - 6] = '\0';
}

/* The points of a column, in x and y (n_rows each). */
static size_t points_of(const Table *table, size_t column, size_t step, double *x, double *y)
{
    size_t n = 0;

    for (size_t row = 0; row < table->n_rows; row++) {
        double value = table->cells[column * table->n_rows + row];

        if (isnan(value) || table->test[row])
            continue;
        x[n] = table->cells[step * table->n_rows + row];
        y[n++] = value;
    }
    return n;
}

/* Which values of that column are better: 1 higher, -1 lower, 0: unknown, or values of steps or of
 * training. */
static int better_of(const KilnTrainer *trainer, const char *name)
{
    const KilnMetric *metrics;
    const size_t n = kiln_trainer_metrics(trainer, &metrics);

    for (size_t i = 0; i < n; i++)
        if (strcmp(metrics[i].name, name) == 0 && (metrics[i].flags & KILN_LOG_EPOCH) != 0 &&
            strncmp(name, "train/", strlen("train/")) != 0)
            return (metrics[i].flags & KILN_LOG_HIGHER_IS_BETTER) != 0  ? 1
                   : (metrics[i].flags & KILN_LOG_LOWER_IS_BETTER) != 0 ? -1
                                                                        : 0;
    return 0;
}

/* Mark the best point, and name its epoch in the legend. */
static void mark_best(const Table *table, size_t column, int better, KilnPlotLine *line,
                      char label[NAME])
{
    size_t row = 0, seen = 0, epoch = 0;

    if (better == 0)
        return;
    for (size_t i = 1; i < line->n; i++)
        if ((line->y[i] - line->y[line->mark]) * better > 0.0)
            line->mark = i;
    while (epoch < table->n_columns && strcmp(table->names[epoch], "epoch") != 0)
        epoch++;
    for (; row < table->n_rows; row++)
        if (!isnan(table->cells[column * table->n_rows + row]) && !table->test[row] &&
            seen++ == line->mark)
            break;
    if (epoch == table->n_columns || row == table->n_rows)
        return;
    line->marks = true;
    snprintf(label, NAME, "%.200s, best in epoch %.0f", table->names[column],
             table->cells[epoch * table->n_rows + row]);
    line->label = label;
}

static KilnStatus draw(const char *kind, const KilnPlotLine *lines, size_t n, const Opts *opts,
                       const char *dir, KilnError *err)
{
    char path[4096 + NAME + 16], file[NAME];
    const KilnChart chart = {
        .title = kind,
        .x_label = "step",
        .lines = lines,
        .n_lines = n,
        .width = (int)opts->width,
        .height = (int)opts->height,
    };

    snprintf(file, sizeof(file), "%s", kind);
    for (char *p = file; *p != '\0'; p++)
        if (*p == '/' || *p == ' ' || (*p == '.' && p == file))
            *p = '_';
    snprintf(path, sizeof(path), "%s/plots/%s.png", dir, file);
    return kiln_plot_chart(path, &chart, err);
}

/* Draw all columns of the same kind as `first`. */
static KilnStatus draw_kind(const KilnTrainer *trainer, const Table *table, size_t first,
                            size_t step, const Opts *opts, size_t *drawn, KilnError *err)
{
    KilnPlotLine lines[MOST_LINES];
    char kind[NAME], other[NAME], labels[MOST_LINES][NAME];
    size_t n = 0, rows = table->n_rows;
    double *points = malloc((2 * MOST_LINES * rows + 1) * sizeof(*points));
    KilnStatus status = KILN_OK;

    if (points == NULL)
        return kiln_error_nomem(err, 2 * MOST_LINES * rows * sizeof(*points));
    kind_of(table->names[first], kind);
    for (size_t i = first; i < table->n_columns && n < MOST_LINES; i++) {
        double *x = points + 2 * n * rows, *y = x + rows;

        kind_of(table->names[i], other);
        if (strcmp(kind, other) != 0)
            continue;
        lines[n] = (KilnPlotLine) { .label = table->names[i], .x = x, .y = y };
        lines[n].n = points_of(table, i, step, x, y);
        mark_best(table, i, better_of(trainer, table->names[i]), &lines[n], labels[n]);
        n += lines[n].n > 0;
    }
    if (n > 0) {
        status = draw(kind, lines, n, opts, kiln_trainer_run_dir(trainer), err);
        ++*drawn;
    }
    free(points);
    return status;
}

/* Whether it is a cell of a matrix ("val/confusion/cat/dog"), not a curve. */
static bool is_cell(const char *name)
{
    int slashes = 0;

    for (; *name != '\0'; name++)
        slashes += *name == '/';
    return slashes >= 3;
}

/* Whether an earlier column is of the same kind. */
static bool drawn_before(const Table *table, size_t from, size_t column)
{
    char kind[NAME], other[NAME];

    kind_of(table->names[column], kind);
    for (size_t i = from; i < column; i++) {
        kind_of(table->names[i], other);
        if (strcmp(kind, other) == 0)
            return true;
    }
    return false;
}

static KilnStatus draw_all(const KilnTrainer *trainer, const Table *table, const Opts *opts,
                           size_t *drawn, KilnError *err)
{
    KilnStatus status = KILN_OK;
    size_t step = 0, first = 0;

    while (step < table->n_columns && strcmp(table->names[step], "step") != 0)
        step++;
    while (first < table->n_columns && strcmp(table->names[first], "wall_time") != 0)
        first++;
    for (size_t i = first + 1; i < table->n_columns && step < first && status >= 0; i++)
        if (!is_cell(table->names[i]) && !drawn_before(table, first + 1, i))
            status = draw_kind(trainer, table, i, step, opts, drawn, err);
    return status;
}

/* ---- Hooks -------------------------------------------------------------------------- */

static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    KilnError why = { 0 };

    (void)self;
    (void)err;
    if (kiln_trainer_run_dir(trainer)[0] != '\0' && kiln_plot_supported(&why) < 0)
        kiln_trainer_print(trainer, "no plots: %s", why.text);
    return KILN_OK;
}

/* A picture that cannot be drawn does not fail the run. */
static KilnStatus teardown(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const char *dir = kiln_trainer_run_dir(trainer);
    char path[4096 + 16];
    KilnError why = { 0 };
    Table table;
    size_t drawn = 0;

    (void)err;
    if (kiln_plot_supported(NULL) < 0 || dir[0] == '\0' || strlen(dir) >= 4096)
        return KILN_OK;
    snprintf(path, sizeof(path), "%s/metrics.csv", dir);
    if (table_read(path, &table, &why)) {
        snprintf(path, sizeof(path), "%s/plots", dir);
        if ((mkdir(path, 0777) != 0 && errno != EEXIST && kiln_error_errno(&why, path) < 0) ||
            draw_all(trainer, &table, kiln_opts(self), &drawn, &why) < 0)
            why.status = KILN_E_IO;
    }
    if (why.status < 0)
        kiln_trainer_print(trainer, "warning: plots are incomplete: %s", why.text);
    table_release(&table);
    return KILN_OK;
}

/* For cairo, its fonts, and a picture. */
static int64_t memory(const KilnInstance *self, KilnTrainer *trainer)
{
    const Opts *opts = kiln_opts(self);

    (void)trainer;
    return kiln_plot_supported(NULL) >= 0 ? (3 << 20) + 4 * opts->width * opts->height : 0;
}

static const KilnCallbackOps ops = { .on_fit_start = on_fit_start,
                                     .teardown = teardown,
                                     .memory = memory };

const KilnComponent kiln_callback_plots = {
    .kind = KILN_KIND_CALLBACK,
    .name = "plots",
    .summary = "Draw the curves of metrics.csv to plots/ when the run ends",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_plots, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
