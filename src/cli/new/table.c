/* Configs for tables: which column is predicted, and by what. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/new/rows.h"
#include "data/table/table_data.h"

/* ---- The target ------------------------------------------------------------------------------ */

enum { MOST_CLASS_NUMBERS = 20 };

/* What speaks for a column. */
typedef struct Guess {
    double points;
    const char *why;
} Guess;

/* How a column is called. */
static Guess guess_by_name(const char *name)
{
    static const char *const usual[] = {
        "target",  "label",     "labels",    "class",     "y",        "outcome", "survived",
        "species", "response",  "diagnosis", "churn",     "churned",  "income",  "quality",
        "rating",  "sentiment", "category",  "intent",    "is_fraud", "fraud",   "default",
        "result",  "score",     "price",     "saleprice", "output",   NULL
    };
    static const char *const ends[] = { "_label", "_class", "_target", "_price",
                                        "_value", " label", " target", NULL };

    if (kiln_new_is_named(name, usual))
        return (Guess) { 3.0, "by its name" };
    for (const char *const *end = ends; *end != NULL; end++)
        if (kiln_ends_with(name, *end))
            return (Guess) { 2.5, "by its name" };
    return (Guess) { 0.0, NULL };
}

static bool has_whole_numbers(const KilnTableColumn *column)
{
    return column->kind == KILN_COLUMN_NUMBER && column->facts.whole && column->facts.texts == 0 &&
           column->facts.distinct <= MOST_CLASS_NUMBERS;
}

/* Numbers that are classes: each occurs several times. */
static bool has_few_numbers(const KilnTableColumn *column)
{
    return has_whole_numbers(column) && column->facts.distinct * 4 <= column->facts.numbers;
}

bool kiln_new_is_class(const KilnNewRows *rows, size_t c)
{
    const KilnTableColumn *column = &rows->table->plan.columns[c];

    return column->kind == KILN_COLUMN_CATEGORY || has_few_numbers(column);
}

static bool can_be_target(const KilnTableColumn *column)
{
    return column->kind == KILN_COLUMN_CATEGORY || column->kind == KILN_COLUMN_NUMBER;
}

static Guess guess_of(const KilnNewRows *rows, const bool *out, size_t c)
{
    const KilnTablePlan *plan = &rows->table->plan;
    const KilnTableColumn *column = &plan->columns[c];
    Guess guess = guess_by_name(column->name);
    size_t others = 0, others_few = 0;

    for (size_t k = 0; k < plan->n_columns; k++) {
        if (k == c || out[k])
            continue;
        others += plan->columns[k].kind == KILN_COLUMN_CATEGORY;
        others_few += kiln_new_is_class(rows, k);
    }
    guess.points += c + 1 == plan->n_columns ? 1.5 : c == 0 ? 0.5 : 0.0;
    if (kiln_new_is_class(rows, c))
        guess.points += 0.5;
    if (column->kind == KILN_COLUMN_CATEGORY && others == 0) {
        guess.points += 1.0;
        guess.why = guess.why != NULL ? guess.why : "it is the only one of texts";
    } else if (has_few_numbers(column) && others_few == 0) {
        guess.points += 1.5;
        guess.why = guess.why != NULL ? guess.why : "it is the only one with few different values";
    }
    if (guess.why == NULL)
        guess.why = c + 1 == plan->n_columns ? "it is the last one" : "it could be a class";
    return guess;
}

/* The columns that could be predicted, with the guess first. */
static KilnStatus unclear(const KilnNewRows *rows, const bool *out, size_t best, const Guess *guess,
                          KilnError *err)
{
    enum { LISTED = 12 };
    const KilnTablePlan *plan = &rows->table->plan;
    KilnText text = { 0 };
    size_t n = 0;

    kiln_text_printf(
        &text, "which column is to be predicted? A guess: --target=\"%s\" (%s); also possible:",
        plan->columns[best].name, guess->why);
    for (size_t c = 0; c < plan->n_columns; c++) {
        if (out[c] || c == best || !can_be_target(&plan->columns[c]))
            continue;
        if (n < LISTED)
            kiln_text_printf(&text, "%s %s", n > 0 ? "," : "", plan->columns[c].name);
        n++;
    }
    if (n > LISTED)
        kiln_text_printf(&text, ", and %zu more", n - LISTED);
    return kiln_text_to_error(&text, KILN_E_USAGE, err);
}

static KilnStatus find_given(const KilnNewRows *rows, size_t *ret, KilnError *err)
{
    const KilnTablePlan *plan = &rows->table->plan;
    const char *target = rows->config->target;
    const int64_t at = kiln_table_plan_find(plan, target);
    KilnText text = { 0 };

    if (at >= 0) {
        *ret = (size_t)at;
        return KILN_OK;
    }
    kiln_text_printf(&text, "--target=%s: there is no such column; columns:", target);
    for (size_t c = 0; c < plan->n_columns; c++)
        kiln_text_printf(&text, "%s %s", c > 0 ? "," : "", plan->columns[c].name);
    return kiln_text_to_error(&text, KILN_E_USAGE, err);
}

KilnStatus kiln_new_choose_target(const KilnNewRows *rows, const bool *out, size_t *ret,
                                  KilnError *err)
{
    const KilnTablePlan *plan = &rows->table->plan;
    Guess first = { -1.0, NULL }, second = { -1.0, NULL };
    size_t best = 0;

    if (rows->config->target != NULL) {
        kiln_new_say(rows->config, "target", "%s, as --target says", rows->config->target);
        return find_given(rows, ret, err);
    }
    for (size_t c = 0; c < plan->n_columns; c++) {
        if (out[c] || !can_be_target(&plan->columns[c]))
            continue;
        const Guess guess = guess_of(rows, out, c);

        if (guess.points > first.points) {
            second = first;
            first = guess;
            best = c;
        } else if (guess.points > second.points) {
            second = guess;
        }
    }
    if (first.why == NULL)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: no column can be predicted: none has classes or numbers",
                              rows->files->list[KILN_TRAIN][0]);
    if (second.why == NULL)
        first = (Guess) { 2.0, "no other column can be predicted" };
    if (first.points < 2.0 || first.points - second.points < 1.0)
        return unclear(rows, out, best, &first, err);
    kiln_new_say(rows->config, "target", "%s: %s; if it is another one: --target=COLUMN",
                 plan->columns[best].name, first.why);
    *ret = best;
    return KILN_OK;
}

/* ---- What is odd ----------------------------------------------------------------------------- */

static void say_columns(const KilnNewRows *rows)
{
    const KilnTablePlan *plan = &rows->table->plan;

    for (size_t c = 0; c < plan->n_columns; c++) {
        const KilnTableColumn *column = &plan->columns[c];
        const double missing = (double)column->facts.missing / (double)rows->table->splits[0].n;

        if ((int64_t)c == plan->target)
            continue;
        if (column->kind == KILN_COLUMN_IGNORED && column->why != NULL)
            kiln_new_say_odd(rows->config, "column %s is left out: %s", column->name, column->why);
        else if (column->kind == KILN_COLUMN_TEXT)
            kiln_new_say_odd(
                rows->config,
                "column %s is left out: free text; model=fusion can use it: docs/tables.md",
                column->name);
        else if (missing >= 0.3)
            kiln_new_say_odd(rows->config, "column %s: %.0f %% of the values are missing",
                             column->name, 100.0 * missing);
    }
}

/* Rows that can't be read are left out. */
static void say_skipped(const KilnNewRows *rows, bool *ret_any)
{
    for (int reason = 0; reason < KILN_SKIP_REASONS; reason++) {
        const KilnTableSkipped *skipped = &rows->table->skipped[KILN_TRAIN][reason];

        if (skipped->count == 0)
            continue;
        *ret_any = true;
        kiln_new_say_odd(rows->config, "%lld row%s such as %s: %s", (long long)skipped->count,
                         skipped->count > 1 ? "s" : "", skipped->example, skipped->reason);
    }
    for (size_t i = 0; i < rows->table->n_notes; i++)
        kiln_new_say_odd(rows->config, "%s", rows->table->notes[i]);
}

static KilnStatus say_class_counts(const KilnNewRows *rows, KilnError *err)
{
    const KilnTablePlan *plan = &rows->table->plan;
    const KilnTableRows *train = &rows->table->splits[KILN_TRAIN];
    int64_t *counts = calloc(plan->n_classes + 1, sizeof(*counts));

    if (counts == NULL)
        return kiln_error_nomem(err, plan->n_classes * sizeof(*counts));
    for (int64_t i = 0; i < train->n; i++)
        if (train->labels != NULL && train->labels[i] >= 0)
            counts[train->labels[i]]++;
    kiln_new_say_classes(rows->config, "rows", counts, (const char *const *)plan->class_names,
                         plan->n_classes);
    free(counts);
    return KILN_OK;
}

/* ---- The config ------------------------------------------------------------------------------ */

static KilnStatus check_target(const KilnNewRows *rows, KilnError *err)
{
    enum { MOST_CLASSES = 1000 };
    const KilnTablePlan *plan = &rows->table->plan;
    const char *name = plan->columns[plan->target].name;

    if (plan->classes && plan->n_classes < 2)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "column %s has one class only (\"%s\"); there is nothing to tell "
                              "apart; give another one: --target=COLUMN",
                              name, plan->n_classes > 0 ? plan->class_names[0] : "");
    if (plan->classes &&
        (plan->n_classes > MOST_CLASSES || (int64_t)plan->n_classes * 2 > rows->table->splits[0].n))
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "column %s has %zu different texts in %lld rows, which are no classes; "
            "give another one: --target=COLUMN",
            name, plan->n_classes, (long long)rows->table->splits[0].n);
    return plan->n_numbers + plan->n_categories > 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_FORMAT,
                                "no column is left to predict %s from: each is free text, constant "
                                "or an id; +datamodule.columns.NAME=category keeps one",
                                name);
}

/* Classes of validation and test that training lacks. */
typedef struct Unknown {
    int64_t rows, with_dot; /* of them, those that are known without the full stop at their end */
    char example[64];
    const char *path;
} Unknown;

static void look_at_class(const KilnNewRows *rows, KilnString class, Unknown *unknown)
{
    const KilnTablePlan *plan = &rows->table->plan;

    while (class.length > 0 && strchr(" \r", class.data[class.length - 1]) != NULL)
        class.length--;
    while (class.length > 0 && class.data[0] == ' ')
        class = (KilnString) { class.data + 1, class.length - 1 };
    if (class.length == 0 || kiln_names_find(plan->class_names, plan->n_classes, class) >= 0)
        return;
    const KilnString cut = { class.data, class.length - 1 };
    unknown->with_dot += class.data[class.length - 1] == '.' &&
                         kiln_names_find(plan->class_names, plan->n_classes, cut) >= 0;
    if (unknown->rows++ == 0)
        snprintf(unknown->example, sizeof(unknown->example), "%.*s", (int)class.length, class.data);
}

static KilnRecordsSpec spec_of(const KilnNewRows *rows, const char *const *path)
{
    const bool named = rows->format != KILN_RECORDS_JSONL && !rows->has_header;

    return (KilnRecordsSpec) { .paths = path,
                               .n_paths = 1,
                               .format = rows->format,
                               .columns = named ? rows->names : NULL,
                               .n_columns = named ? rows->n_columns : 0,
                               .delimiter = rows->delimiter,
                               .encoding = rows->encoding };
}

static void look_at_classes(const KilnNewRows *rows, const char *path, const char *target,
                            Unknown *unknown)
{
    const KilnRecordsSpec spec = spec_of(rows, &path);
    const int64_t before = unknown->rows;
    KilnRecords *records = NULL;
    KilnRecord record = { 0 };
    size_t column;

    if (kiln_records_open(&spec, &records, NULL) >= 0 &&
        kiln_records_column(records, target, &column, NULL) >= 0)
        for (int64_t i = 0; i < kiln_records_count(records); i++)
            if (kiln_records_read(records, i, &column, 1, &record, NULL) >= 0)
                look_at_class(rows, record.fields[0], unknown);
    if (before == 0 && unknown->rows > 0)
        unknown->path = path;
    kiln_record_release(&record);
    kiln_records_close(records);
}

/* Of the files of validation and test. */
static void set_unknown_classes(const KilnNewRows *rows, const char *target, bool *ret_skips)
{
    Unknown unknown = { 0 };

    for (int split = KILN_VAL; split < KILN_SPLIT_COUNT && rows->table->plan.classes; split++)
        for (size_t i = 0; i < rows->files->n[split]; i++)
            look_at_classes(rows, rows->files->list[split][i], target, &unknown);
    if (unknown.rows == 0)
        return;
    if (unknown.with_dot == unknown.rows) {
        kiln_new_set(rows->config, KILN_NEW_DATA, "target_end", "\".\"  # classes end before it");
        kiln_new_say_odd(rows->config, "classes of %s end with a full stop (\"%s\"), which is cut",
                         unknown.path, unknown.example);
        return;
    }
    *ret_skips = true;
    kiln_new_say_odd(rows->config,
                     "%lld rows of %s and other files have classes that training lacks, such as "
                     "\"%s\"; they are left out",
                     (long long)unknown.rows, unknown.path, unknown.example);
}

/* Whether a file of a split has the target; a test file may lack it. */
static bool has_target(const KilnNewRows *rows, const char *path, const char *target)
{
    const KilnRecordsSpec spec = spec_of(rows, &path);
    KilnRecords *records = NULL;
    size_t column;
    const bool has = kiln_records_open(&spec, &records, NULL) >= 0 &&
                     kiln_records_column(records, target, &column, NULL) >= 0;

    kiln_records_close(records);
    return has;
}

/* The parts that are held out where there are no files. */
static void set_splits(KilnNewRows *rows, const char *target)
{
    KilnNewConfig *config = rows->config;
    KilnNewFiles files = *rows->files;
    const int64_t n = rows->table->splits[KILN_TRAIN].n;
    const double fraction = n < 1000 ? 0.2 : 0.1;
    const bool has_val = files.n[KILN_VAL] > 0;

    if (files.n[KILN_TEST] > 0 && !has_target(rows, files.list[KILN_TEST][0], target)) {
        kiln_new_say_odd(config,
                         "%s lacks the target, so it can't be tested on; `kiln predict RUN %s` "
                         "predicts it",
                         files.list[KILN_TEST][0], files.list[KILN_TEST][0]);
        files.n[KILN_TEST] = 0;
    }
    const bool has_test = files.n[KILN_TEST] > 0;
    kiln_new_set_files(config, &files);
    if (!has_val)
        kiln_new_set(config, KILN_NEW_DATA, "val_fraction", "%g", fraction);
    if (!has_test)
        kiln_new_set(config, KILN_NEW_DATA, "test_fraction", "%g", fraction);
    kiln_new_say_splits(config, &files, fraction, fraction);
}

static void set_model(KilnNewRows *rows)
{
    KilnNewConfig *config = rows->config;
    const KilnTablePlan *plan = &rows->table->plan;
    const int64_t n = rows->table->splits[KILN_TRAIN].n;
    const bool has_numbers = plan->n_numbers > 0;

    config->task = plan->classes ? "classification" : "regression";
    config->datamodule = "table";
    config->model = has_numbers ? "mlp" : "ft_transformer";
    config->optimizer = "adamw";
    if (plan->classes)
        kiln_new_say(config, "task", "classification: %zu classes of %s", plan->n_classes,
                     plan->columns[plan->target].name);
    else
        kiln_new_say(config, "task", "regression: the number %s", plan->columns[plan->target].name);
    kiln_new_say(config, "model",
                 has_numbers
                     ? "mlp: layers over the numbers and a vector of each category; boosted "
                       "trees are as good on many tables: docs/tables.md, docs/trees.md"
                     : "ft_transformer: a small transformer over the categories");
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.003");
    kiln_new_set_length(config, n, n < 2000 ? 32 : n < 20000 ? 64 : 256, 3000, 100);
    kiln_new_set(config, KILN_NEW_DATA, "scaling", n < 1000 ? "standard" : "quantile");
    if (has_numbers) {
        kiln_new_set(config, KILN_NEW_MODEL, "hidden", "[128, 128]");
        kiln_new_set(config, KILN_NEW_MODEL, "dropout", "0.1");
    } else {
        kiln_new_set(config, KILN_NEW_MODEL, "width", "32");
        kiln_new_set(config, KILN_NEW_MODEL, "mlp_dim", "64");
    }
    kiln_new_set(config, KILN_NEW_OPTIMIZER, "weight_decay", "1.0e-4");
}

static bool is_used(const KilnTableColumn *column)
{
    return column->kind == KILN_COLUMN_NUMBER || column->kind == KILN_COLUMN_CATEGORY ||
           column->kind == KILN_COLUMN_DATE;
}

/* Years or steps of a series look like row numbers; where nothing else is left they are kept. */
static KilnStatus keep_numbers(KilnNewRows *rows, size_t target, KilnError *err)
{
    KilnNewConfig *config = rows->config;
    const KilnTablePlan *plan = &rows->table->plan;
    KilnPairI64 *kinds = kiln_arena_alloc(&config->arena, plan->n_columns * sizeof(*kinds));
    KilnText text = { 0 };
    size_t n = 0;

    for (size_t c = 0; c < plan->n_columns && kinds != NULL; c++) {
        const KilnTableColumn *column = &plan->columns[c];

        if (c != target && is_used(column))
            return KILN_OK;
        if (c == target || column->kind != KILN_COLUMN_IGNORED || !column->facts.unique)
            continue;
        kinds[n].key = kiln_arena_strdup(&config->arena, column->name);
        kinds[n].value = KILN_COLUMN_NUMBER;
        if (kinds[n++].key == NULL)
            kinds = NULL;
    }
    if (kinds == NULL)
        return kiln_error_nomem(err, plan->n_columns * sizeof(*kinds));
    if (n == 0)
        return KILN_OK;
    rows->kinds = kinds;
    rows->n_kinds = n;
    for (size_t i = 0; i < n; i++) {
        kiln_text_append(&text, i > 0 ? ", " : "");
        kiln_new_put_text(&text, kinds[i].key);
        kiln_text_append(&text, ": number");
    }
    kiln_new_set(config, KILN_NEW_DATA, "columns", "{%s}", text.data != NULL ? text.data : "");
    kiln_new_say(config, "kept", "%s looks like row numbers, but is all there is to learn from",
                 kinds[0].key);
    kiln_text_release(&text);
    return KILN_OK;
}

KilnStatus kiln_new_table(KilnNewRows *rows, KilnError *err)
{
    KilnNewConfig *config = rows->config;
    bool *out, skips = false;
    size_t target = 0;

    if (rows->table->plan.n_columns < 2)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s: one column only (\"%s\"); expected columns to learn from, and one "
            "to predict",
            rows->files->list[KILN_TRAIN][0], rows->table->plan.columns[0].name);
    out = calloc(rows->table->plan.n_columns + 1, sizeof(*out));
    KilnStatus status = out != NULL ? kiln_new_choose_target(rows, out, &target, err)
                                    : kiln_error_nomem(err, rows->table->plan.n_columns);

    free(out);
    if (status < 0)
        return status;
    const KilnTableColumn *column = &rows->table->plan.columns[target];
    const char *name = kiln_arena_strdup(&config->arena, column->name);
    if (has_whole_numbers(column) && !has_few_numbers(column)) {
        rows->target_type = KILN_TARGET_NUMBER;
        kiln_new_set(config, KILN_NEW_DATA, "target_type", "number  # not classes");
    }
    status = name != NULL ? keep_numbers(rows, target, err) : kiln_error_nomem(err, 64);
    if (status >= 0)
        status = kiln_new_rows_read(rows, name, err);
    if (status >= 0)
        status = check_target(rows, err);
    if (status >= 0)
        status = say_class_counts(rows, err);
    if (status < 0)
        return status;
    kiln_new_say(config, "data",
                 "a table of %lld rows: %zu columns, %zu numbers and %zu categories "
                 "of them are used",
                 (long long)rows->table->splits[KILN_TRAIN].n, rows->table->plan.n_columns,
                 rows->table->plan.n_numbers, rows->table->plan.n_categories);
    set_splits(rows, name);
    kiln_new_rows_set(rows, "names");
    kiln_new_set_text(config, KILN_NEW_DATA, "target", name);
    say_columns(rows);
    say_skipped(rows, &skips);
    set_unknown_classes(rows, name, &skips);
    if (skips)
        kiln_new_set(config, KILN_NEW_DATA, "on_error", "skip  # leave bad rows out");
    set_model(rows);
    return KILN_OK;
}

/* ---- A number from texts --------------------------------------------------------------------- */

/* Rows without a number are left out, as those are that can't be read. */
static void say_bad_numbers(const KilnNewRows *rows, size_t target, bool *ret_any)
{
    const KilnColumnFacts *facts = &rows->table->plan.columns[target].facts;
    const int64_t n = facts->missing + facts->texts;

    if (n == 0)
        return;
    *ret_any = true;
    kiln_new_say_odd(rows->config, "%lld row%s without a number in column %s; they are left out",
                     (long long)n, n > 1 ? "s" : "", rows->names[target]);
}

/* Few words, each text another one, look like names of rows, which a table leaves out. */
static void keep_text(const KilnNewRows *rows, size_t text)
{
    KilnText name = { 0 };

    if (rows->table->plan.columns[text].kind == KILN_COLUMN_TEXT)
        return;
    kiln_new_put_text(&name, rows->names[text]);
    kiln_new_set(rows->config, KILN_NEW_DATA, "columns", "{%s: text}",
                 name.data != NULL ? name.data : "");
    kiln_text_release(&name);
}

static void set_text_model(KilnNewConfig *config, bool beside)
{
    config->model = beside ? "fusion" : "bag_of_tokens";
    kiln_new_say(config, "model",
                 beside ? "fusion of a bag of words and an encoder of the other columns"
                        : "bag_of_tokens: a mean of the words' vectors");
    if (!beside)
        return;
    kiln_new_set(config, KILN_NEW_MODEL, "image_encoder", "null");
    kiln_new_set(config, KILN_NEW_MODEL, "text_encoder", "{_target_: model/bag_of_tokens}");
    kiln_new_set(config, KILN_NEW_MODEL, "row_encoder", "{_target_: model/row_encoder}");
    kiln_new_set(config, KILN_NEW_MODEL, "width", "32");
    kiln_new_set(config, KILN_NEW_MODEL, "hidden", "[64]");
}

void kiln_new_text_numbers(KilnNewRows *rows, size_t text, size_t target, bool beside)
{
    KilnNewConfig *config = rows->config;
    const int64_t n = rows->table->splits[KILN_TRAIN].n;
    bool skips = false;

    config->task = "regression";
    config->datamodule = "table";
    config->optimizer = "adamw";
    kiln_new_say(config, "data", "%lld texts (column %s) with a number (column %s)%s", (long long)n,
                 rows->names[text], rows->names[target], beside ? ", and other columns" : "");
    kiln_new_say(config, "task", "regression: the number %s", rows->names[target]);
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.003");
    kiln_new_set_length(config, n, n < 2000 ? 32 : 64, 3000, 50);
    set_splits(rows, rows->names[target]);
    kiln_new_rows_set(rows, "names");
    kiln_new_set_text(config, KILN_NEW_DATA, "target", rows->names[target]);
    kiln_new_set(config, KILN_NEW_DATA, "target_type", "number");
    keep_text(rows, text);
    kiln_new_set(config, KILN_NEW_DATA, "tokenizer", "{_target_: tokenizer/words, vocab_size: %d}",
                 n < 2000 ? 2000 : 20000);
    say_skipped(rows, &skips);
    say_bad_numbers(rows, target, &skips);
    if (skips)
        kiln_new_set(config, KILN_NEW_DATA, "on_error", "skip  # leave bad rows out");
    set_text_model(config, beside);
}
