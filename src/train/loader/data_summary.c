/* Writes the data summary as text and JSON, from what the datamodule declares. */
#include "train/loader/data_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/call.h"
#include "base/json.h"
#include "base/text.h"
#include "kiln/tools/clock.h"

/* ---- What was left out --------------------------------------------------------------- */

enum { MAX_OMISSIONS = 32 }; /* kinds and reasons that are listed */

typedef struct Omissions {
    KilnOmission list[MAX_OMISSIONS];
    size_t n;
    KilnArena arena; /* owns their texts */
} Omissions;

static void add_omission(void *ctx, const KilnOmission *more)
{
    Omissions *all = ctx;

    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->list[i].what, more->what) == 0 &&
            strcmp(all->list[i].reason, more->reason) == 0) {
            all->list[i].count += more->count;
            return;
        }
    const KilnOmission own = {
        .count = more->count,
        .what = kiln_arena_strdup(&all->arena, more->what),
        .example = kiln_arena_strdup(&all->arena, more->example),
        .reason = kiln_arena_strdup(&all->arena, more->reason),
    };
    if (all->n < MAX_OMISSIONS && own.what != NULL && own.example != NULL && own.reason != NULL)
        all->list[all->n++] = own;
}

/* What the input and the datamodule left out. The caller releases the arena. */
static Omissions read_omissions(const KilnTrainer *trainer)
{
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    const KilnRawInput *input = &trainer->data.input.raw;
    Omissions all = { 0 };

    for (size_t i = 0; i < input->n_left_out; i++)
        add_omission(&all, &input->left_out[i]);
    for (size_t i = 0; i < trainer->data.skipped.n; i++)
        add_omission(&all, &trainer->data.skipped.list[i]);
    if (ops->left_out == NULL)
        return all;
    kiln_call_enter(trainer->datamodule, "left_out");
    ops->left_out(trainer->datamodule, add_omission, &all);
    kiln_call_leave();
    return all;
}

/* "3 .gif files such as data/train/cat/a.gif: only .png files are read". */
static void put_omission(KilnText *text, const KilnOmission *omission)
{
    char count[KILN_UNIT_TEXT];

    if (omission->count > 1)
        kiln_text_printf(text, "%s %s such as ", kiln_commas_text(omission->count, count),
                         omission->what);
    kiln_text_printf(text, "%s: %s", omission->example, omission->reason);
}

/* ---- Texts --------------------------------------------------------------------------- */

/* "train 9,000, val 1,000, val/night 200". */
static void put_samples(KilnText *text, const KilnTrainer *trainer)
{
    char count[KILN_UNIT_TEXT];

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const KilnSplitSets *sets = &trainer->data.sets[split];

        for (size_t i = 0; i < sets->n && sets->opened; i++) {
            const char *set = sets->list[i].name;

            kiln_text_printf(text, "%s%s%s%s %s", text->length > 0 ? ", " : "",
                             kiln_split_name((KilnSplit)split), set[0] != '\0' ? "/" : "", set,
                             kiln_commas_text(sets->list[i].dataset.count, count));
        }
    }
}

enum { NAMES_WIDTH = 56 }; /* bytes of class names on a line */

/* "3: cat, dog, horse", or as many as fit on a line: "1,000: tench, ..., toilet tissue". */
static void put_classes(KilnText *text, const KilnDataSpec *spec)
{
    const int64_t n = spec->n_classes;
    const char *last = spec->class_names[n - 1];
    size_t left = NAMES_WIDTH;
    char count[KILN_UNIT_TEXT];
    int64_t shown = 0;

    for (; shown < n && strlen(spec->class_names[shown]) + 2 <= left; shown++)
        left -= strlen(spec->class_names[shown]) + 2;
    kiln_text_printf(text, "%s:", kiln_commas_text(n, count));
    for (int64_t i = 0; i < shown; i++)
        kiln_text_printf(text, "%s %s", i > 0 ? "," : "", spec->class_names[i]);
    if (shown < n)
        kiln_text_printf(text, "%s%s %s", shown > 0 ? "," : "", shown + 1 < n ? " ...," : "", last);
}

static const char *type_of(const KilnFeature *feature)
{
    return feature->content == KILN_TEXT ? "text" : kiln_dtype_name(feature->dtype);
}

/* "image f32 [28, 28, 1], label i32". */
static void put_features(KilnText *text, const KilnDataSpec *spec)
{
    char shape[KILN_SHAPE_TEXT];

    for (size_t i = 0; i < spec->n_features; i++) {
        const KilnFeature *feature = &spec->features[i];

        kiln_text_printf(text, "%s%s %s", i > 0 ? ", " : "", feature->name, type_of(feature));
        if (feature->shape.rank > 0)
            kiln_text_printf(text, " %s", kiln_shape_text(&feature->shape, shape, sizeof(shape)));
    }
}

/* Emit `text` as a line unless it is empty, and clear it. */
static void emit(void (*line)(void *ctx, const char *name, const char *text), void *ctx,
                 const char *name, KilnText *text)
{
    if (text->length > 0)
        line(ctx, name, text->data);
    kiln_text_clear(text);
}

/* Where lines of KilnDataModuleOps.files and .columns go. */
typedef struct NamedLines {
    const char *name;
    void (*line)(void *ctx, const char *name, const char *text);
    void *ctx;
} NamedLines;

static void add_line(void *ctx, const char *text)
{
    const NamedLines *lines = ctx;

    lines->line(lines->ctx, lines->name, text);
}

void kiln_data_summary_lines(const KilnTrainer *trainer,
                             void (*line)(void *ctx, const char *name, const char *text), void *ctx)
{
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    const KilnDataSpec *spec = &trainer->data.spec;
    KilnText text = { 0 };

    put_samples(&text, trainer);
    emit(line, ctx, "samples", &text);
    if (spec->n_classes > 0)
        put_classes(&text, spec);
    emit(line, ctx, "classes", &text);
    put_features(&text, spec);
    emit(line, ctx, "a sample", &text);
    if (ops->columns != NULL) {
        kiln_call_enter(trainer->datamodule, "columns");
        ops->columns(trainer->datamodule, add_line,
                     &(NamedLines) { KILN_DATA_COLUMN_LINE, line, ctx });
        kiln_call_leave();
    }
    if (ops->files != NULL) {
        kiln_call_enter(trainer->datamodule, "files");
        ops->files(trainer->datamodule, add_line, &(NamedLines) { "files", line, ctx });
        kiln_call_leave();
    }
    kiln_text_release(&text);
    kiln_data_summary_left_out(trainer, line, ctx);
}

void kiln_data_summary_left_out(const KilnTrainer *trainer,
                                void (*line)(void *ctx, const char *name, const char *text),
                                void *ctx)
{
    Omissions left_out = read_omissions(trainer);
    KilnText text = { 0 };

    for (size_t i = 0; i < left_out.n; i++) {
        put_omission(&text, &left_out.list[i]);
        emit(line, ctx, "left out", &text);
    }
    kiln_text_release(&text);
    kiln_arena_release(&left_out.arena);
}

static void warn(KilnTrainer *trainer, const KilnOmission *omission)
{
    KilnText text = { 0 };

    put_omission(&text, omission);
    if (text.length > 0)
        kiln_output_print(&trainer->output, "warning: left out: %s", text.data);
    kiln_text_release(&text);
}

void kiln_data_summary_warn(KilnTrainer *trainer)
{
    Omissions left_out = read_omissions(trainer);

    for (size_t i = 0; i < left_out.n; i++)
        warn(trainer, &left_out.list[i]);
    kiln_arena_release(&left_out.arena);
}

void kiln_data_summary_warn_skipped(KilnTrainer *trainer)
{
    const KilnLeftOut *skipped = &trainer->data.skipped;

    for (size_t i = 0; i < skipped->n; i++)
        if (skipped->list[i].count > 1)
            warn(trainer, &skipped->list[i]);
}

/* ---- JSON ---------------------------------------------------------------------------- */

static json_t *samples_json(const KilnTrainer *trainer)
{
    json_t *all = json_object();

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        const KilnSplitSets *sets = &trainer->data.sets[split];

        for (size_t i = 0; i < sets->n && sets->opened; i++) {
            KilnText name = { 0 };

            kiln_text_printf(&name, "%s%s%s", kiln_split_name((KilnSplit)split),
                             sets->list[i].name[0] != '\0' ? "/" : "", sets->list[i].name);
            if (name.data != NULL)
                kiln_json_put(&all, name.data,
                              json_integer((json_int_t)sets->list[i].dataset.count));
            kiln_text_release(&name);
        }
    }
    return all;
}

static json_t *features_json(const KilnDataSpec *spec)
{
    json_t *all = json_object();

    for (size_t i = 0; i < spec->n_features; i++) {
        const KilnFeature *feature = &spec->features[i];
        json_t *shape = json_array();

        for (int axis = 0; axis < feature->shape.rank; axis++)
            kiln_json_add(&shape, json_integer((json_int_t)feature->shape.dim[axis]));
        kiln_json_put(&all, feature->name,
                      json_pack("{s:s, s:o}", "type", type_of(feature), "shape", shape));
    }
    return all;
}

json_t *kiln_data_summary_json(const KilnTrainer *trainer)
{
    const KilnDataSpec *spec = &trainer->data.spec;
    json_t *classes = json_array(), *omitted = json_array();
    Omissions left_out = read_omissions(trainer);

    for (int64_t i = 0; i < spec->n_classes; i++)
        kiln_json_add(&classes, kiln_json_text(spec->class_names[i]));
    for (size_t i = 0; i < left_out.n; i++)
        kiln_json_add(&omitted,
                      json_pack("{s:I, s:s, s:o, s:s}", "count", (json_int_t)left_out.list[i].count,
                                "what", left_out.list[i].what, "example",
                                kiln_json_text(left_out.list[i].example), "reason",
                                left_out.list[i].reason));
    kiln_arena_release(&left_out.arena);
    return json_pack("{s:o, s:o, s:o, s:o}", "samples", samples_json(trainer), "classes", classes,
                     "features", features_json(spec), "left_out", omitted);
}
