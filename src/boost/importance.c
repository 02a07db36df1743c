/* How much each column of a booster matters, as a table and a picture. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "kiln/plot.h"
#include "kiln/tools/boost_task.h"

enum { GAIN, COVER, WEIGHT, TYPES, MOST_BARS = 30 };
static const char *const types[TYPES] = { [GAIN] = "gain", [COVER] = "cover", [WEIGHT] = "weight" };

typedef struct Column {
    const char *name;
    double value[TYPES];
    int64_t number;
} Column;

/* The largest gain first; columns without splits in their own order. */
static int compare(const void *a, const void *b)
{
    const Column *x = a, *y = b;

    if (x->value[GAIN] != y->value[GAIN])
        return x->value[GAIN] < y->value[GAIN] ? 1 : -1;
    return x->number < y->number ? -1 : 1;
}

static KilnStatus read_columns(KilnBooster *booster, const KilnBoostColumns *columns, Column *list,
                               double *values, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int type = 0; type < TYPES && status >= 0; type++) {
        status = kiln_booster_importance(booster, types[type], columns->n, values, err);
        for (int64_t i = 0; i < columns->n && status >= 0; i++) {
            list[i].name = columns->names[i];
            list[i].number = i;
            list[i].value[type] = values[i];
        }
    }
    qsort(list, (size_t)columns->n, sizeof(*list), compare);
    return status;
}

/* A cell, quoted as CSV needs it. */
static void put_name(KilnText *text, const char *name)
{
    if (strpbrk(name, ",\"\n\r") == NULL) {
        kiln_text_append(text, name);
        return;
    }
    kiln_text_char(text, '"');
    for (; *name != '\0'; name++) {
        kiln_text_char(text, *name);
        if (*name == '"')
            kiln_text_char(text, '"');
    }
    kiln_text_char(text, '"');
}

static KilnStatus write_table(const Column *list, int64_t n, const char *path, KilnError *err)
{
    KilnText text = { 0 };
    FILE *file = kiln_file_open(path, "w");

    kiln_text_append(&text, "column,gain,cover,weight\n");
    for (int64_t i = 0; i < n; i++) {
        put_name(&text, list[i].name);
        kiln_text_printf(&text, ",%.9g,%.9g,%.0f\n", list[i].value[GAIN], list[i].value[COVER],
                         list[i].value[WEIGHT]);
    }
    bool good = file != NULL && !text.failed && fputs(text.data, file) != EOF;
    KilnStatus status = good ? KILN_OK : kiln_error_errno(err, path);
    if (file != NULL && fclose(file) != 0 && good)
        status = kiln_error_errno(err, path);
    kiln_text_release(&text);
    return status;
}

static KilnStatus draw(const Column *list, int64_t n, const char *path, KilnError *err)
{
    KilnPlotBar bars[MOST_BARS];
    size_t n_bars = 0;

    for (int64_t i = 0; i < n && n_bars < MOST_BARS && list[i].value[GAIN] > 0.0; i++)
        bars[n_bars++] = (KilnPlotBar) { .label = list[i].name, .value = list[i].value[GAIN] };
    return kiln_plot_bars(
        path,
        &(KilnPlotBars) { .title = "mean gain of a column's splits", .bars = bars, .n = n_bars },
        err);
}

/* DIR/NAME; NULL when memory is out. */
static char *path_in(const char *dir, const char *name)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/%s", dir, name);
    return kiln_text_take(&path);
}

static KilnStatus write_files(const Column *list, int64_t n, const char *dir, KilnError *err)
{
    char *table = path_in(dir, "importance.csv"), *plots = path_in(dir, "plots");
    char *picture = path_in(dir, "plots/importance.png");
    KilnStatus status = table != NULL && plots != NULL && picture != NULL
                            ? write_table(list, n, table, err)
                            : kiln_error_nomem(err, strlen(dir));

    if (status >= 0 && kiln_plot_supported(NULL) >= 0) {
        if (mkdir(plots, 0777) != 0 && errno != EEXIST)
            status = kiln_error_errno(err, plots);
        if (status >= 0)
            status = draw(list, n, picture, err);
    }
    free(table);
    free(plots);
    free(picture);
    return status;
}

KilnStatus kiln_boost_write_importance(KilnBooster *booster, const KilnBoostColumns *columns,
                                       const char *dir, KilnError *err)
{
    Column *list = calloc((size_t)columns->n, sizeof(*list));
    double *values = calloc((size_t)columns->n, sizeof(*values));
    KilnStatus status = list != NULL && values != NULL
                            ? read_columns(booster, columns, list, values, err)
                            : kiln_error_nomem(err, (size_t)columns->n * sizeof(*list));

    if (status >= 0)
        status = write_files(list, columns->n, dir, err);
    free(list);
    free(values);
    return status;
}
