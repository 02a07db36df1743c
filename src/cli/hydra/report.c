/* Prints what was found, what changed, what has no counterpart, and the command that trains. */
#include "cli/hydra/report.h"

#include <string.h>

#include "base/text_table.h"

enum { PLACE = 36 /* the column of texts */ };

/* Where users read more about writing a component of each kind. */
static const char *const advice[] = {
    [KILN_IMPORT_OPTIMIZER] = "an optimizer is one C file: docs/components/training.md",
    [KILN_IMPORT_SCHEDULER] = "a scheduler is one C file: docs/components/training.md",
    [KILN_IMPORT_LOSS] = "a loss is one C file: docs/components/models.md",
    [KILN_IMPORT_METRICS] = "a metric is one C file: docs/components/models.md",
    [KILN_IMPORT_MODEL] = "your network: one of `kiln show model`, or one C file: "
                          "docs/components/models.md",
    [KILN_IMPORT_DATA] = "your data: `kiln new FILE` writes a datamodule for usual formats; "
                         "others are one C file: docs/components/data.md",
    [KILN_IMPORT_TRANSFORM] = "a transform is one C file: docs/components/data.md",
    [KILN_IMPORT_CALLBACK] = "a callback is one C file: docs/components/training.md",
    [KILN_IMPORT_LOGGER] = "a logger is one C file: docs/components/training.md",
    [KILN_IMPORT_TASK] = "your training step: a task of kiln stands in (`kiln show task`); another "
                         "is one C file: docs/components/models.md",
    [KILN_IMPORT_OTHER] = "left out: kiln knows no such class",
};

static void place_text(const KilnOrigin *origin, char *ret, size_t size)
{
    snprintf(ret, size, "%s:%d", origin->source != NULL ? origin->source : "", origin->line);
}

static bool has_component(const KilnImportPlace *place)
{
    return place->type != NULL &&
           (place->type->component != NULL || place->kind == KILN_IMPORT_TRAINER ||
            place->kind == KILN_IMPORT_WRAPPER ||
            (place->type->options != NULL && place->kind == KILN_IMPORT_DATA));
}

static void component_text(const KilnImportPlace *place, char *ret, size_t size)
{
    if (place->type->component != NULL)
        snprintf(ret, size, "%s", place->type->component);
    else if (place->kind == KILN_IMPORT_TRAINER)
        snprintf(ret, size, "trainer");
    else
        snprintf(ret, size, "its %s", place->kind == KILN_IMPORT_WRAPPER ? "items" : "data set");
}

static void add_found(KilnPage *page, const KilnImportPlaces *places)
{
    KilnTextTable table = { .n = 3,
                            .columns = { { "place", KILN_TABLE_KEPT, false, false, 0 },
                                         { "class", KILN_TABLE_KEPT, false, false, 0 },
                                         { "kiln", KILN_TABLE_KEPT, false, false, 0 } } };
    KilnTextCells cells;

    for (int put = 0; put < 2; put++) {
        if (put == 1) {
            kiln_text_table_fit(&table, page->width - 2);
            kiln_page_heading(page, "components");
        }
        for (size_t i = 0; i < places->n; i++) {
            const KilnImportPlace *place = &places->places[i];

            if (place->target == NULL || place->second || !has_component(place))
                continue;
            place_text(&place->origin, cells[0], sizeof(cells[0]));
            const char *dot = strrchr(place->target, '.');
            snprintf(cells[1], sizeof(cells[1]), "%s (%s)", dot + 1, place->type->library);
            component_text(place, cells[2], sizeof(cells[2]));
            if (put == 0) {
                kiln_text_table_measure(&table, cells);
            } else {
                kiln_text_append(&page->text, "  ");
                kiln_text_table_put(&table, &page->text, cells);
            }
        }
    }
}

static void add_line(KilnPage *page, const KilnOrigin *origin, const char *what, const char *text)
{
    char place[512];

    place_text(origin, place, sizeof(place));
    kiln_page_pair(page, PLACE, place, "%s: %s", what, text);
}

static void add_changes(KilnPage *page, const KilnImportOutputs *outputs)
{
    const KilnImportChanges *changes = &outputs->changes;

    if (changes->n > 0)
        kiln_page_heading(page, "options that changed");
    for (size_t i = 0; i < changes->n; i++)
        add_line(page, &changes->items[i].origin, changes->items[i].what, changes->items[i].text);
    for (size_t i = 0; i < outputs->places->n; i++) {
        const KilnImportPlace *place = &outputs->places->places[i];

        if (place->target != NULL && has_component(place) && !place->second &&
            place->type->note != NULL)
            add_line(page, &place->origin, place->type->name, place->type->note);
    }
    for (size_t i = 0; i < changes->n_metrics; i++)
        if (changes->metrics[i].component == NULL)
            add_line(page, &changes->metrics[i].origin, changes->metrics[i].whole,
                     "no metric of kiln has this name; give one: task.metrics.NAME=metric/...");
}

static void add_missing(KilnPage *page, const KilnImportPlaces *places)
{
    bool heading = false;

    for (size_t i = 0; i < places->n; i++) {
        const KilnImportPlace *place = &places->places[i];
        const char *text = place->type != NULL && place->type->note != NULL ? place->type->note
                                                                            : advice[place->kind];

        if (place->target == NULL || (!place->second && has_component(place)))
            continue;
        if (place->second)
            text = place->kind == KILN_IMPORT_OPTIMIZER
                       ? "kiln's task has one optimizer; several are manual optimization: "
                         "docs/lightning.md"
                       : "kiln has one of them, and the file has another one before it";
        if (!heading)
            kiln_page_heading(page, "without a counterpart");
        heading = true;
        add_line(page, &place->origin, place->target, text != NULL ? text : "");
    }
}

static void add_assumed(KilnPage *page, const KilnImportOutputs *outputs)
{
    kiln_page_heading(page, "assumed");
    for (size_t i = 0; i < outputs->n_assumed; i++)
        kiln_page_pair(page, 12, outputs->assumed[i].what, "%s", outputs->assumed[i].text);
    for (size_t i = 0; i < outputs->changes.n_metrics; i++) {
        const KilnImportMetric *metric = &outputs->changes.metrics[i];

        if (metric->component != NULL)
            kiln_page_pair(page, 12, metric->whole, "%s, as task.metrics.%s", metric->component,
                           metric->name);
    }
}

/* "train -cp DIR -cn NAME". */
static void append_command(KilnText *text, const KilnImportOutputs *outputs,
                           const KilnImportTrial *trial)
{
    kiln_text_append(text, "train");
    if (strcmp(trial->path, "conf") != 0) {
        kiln_text_append(text, " -cp ");
        kiln_text_shell_word(text, trial->path);
    }
    if (strcmp(outputs->primary, "config") != 0)
        kiln_text_printf(text, " -cn %s", outputs->primary);
    kiln_text_append(text, trial->stand_ins);
}

static void add_next(KilnPage *page, const KilnImportOutputs *outputs, const KilnImportTrial *trial)
{
    KilnText command = { 0 };

    if (outputs->primary == NULL) {
        kiln_page_heading(page, "next");
        kiln_page_words(page, 2,
                        "  No file beside the groups selects a trainer, data and a model, "
                        "so there is no config to train: write one (docs/config.md).");
        kiln_page_end(page);
        return;
    }
    append_command(&command, outputs, trial);
    page->text.failed = page->text.failed || command.failed;
    if (kiln_errors_count(trial->errors) > 0)
        kiln_page_heading(page, "still wrong");
    for (size_t i = 0; i < kiln_errors_count(trial->errors); i++) {
        kiln_text_append(&page->text, "  ");
        kiln_page_words(page, 4, kiln_errors_text(trial->errors, i));
        kiln_page_end(page);
    }
    kiln_page_heading(page, "next");
    if (trial->stand_ins[0] != '\0')
        kiln_page_pair(page, 4, "",
                       "kiln's own%s: in place of your code, until there is a component for it",
                       trial->stand_ins);
    kiln_page_line(page, 2, command.data != NULL ? command.data : "train");
    kiln_text_release(&command);
}

void kiln_import_report(KilnPage *page, const KilnImportOutputs *outputs,
                        const KilnImportTrial *trial)
{
    add_found(page, outputs->places);
    add_changes(page, outputs);
    add_missing(page, outputs->places);
    add_assumed(page, outputs);
    kiln_page_heading(page, "wrote %s: %zu files from %zu", trial->path, outputs->n,
                      outputs->source->n_files);
    add_next(page, outputs, trial);
}

/* ---- The tables ------------------------------------------------------------------------------ */

static void add_option(KilnPage *page, const KilnImportOption *option)
{
    const char *to = option->to;

    if (to == NULL)
        to = option->rule == KILN_IMPORT_NEEDLESS ? "(needless)"
             : option->rule == KILN_IMPORT_INSIDE ? "(its options)"
                                                  : "(left out)";
    kiln_text_printf(&page->text, "  %s", option->from);
    kiln_page_beside(page, 38, "%s%s%s", to, option->note != NULL ? "; " : "",
                     option->note != NULL ? option->note : "");
}

void kiln_import_report_classes(KilnPage *page)
{
    const KilnImportClass *type;

    for (size_t i = 0; (type = kiln_import_class_at(i)) != NULL; i++) {
        kiln_page_heading(page, "%s.%s: %s%s%s", type->library, type->name,
                          type->component != NULL ? type->component : "-",
                          type->extra != NULL ? ", " : "", type->extra != NULL ? type->extra : "");
        if (type->note != NULL) {
            kiln_text_append(&page->text, "  ");
            kiln_page_words(page, 2, type->note);
            kiln_page_end(page);
        }
        for (const KilnImportOption *o = type->options; o != NULL && o->from != NULL; o++)
            add_option(page, o);
    }
}
