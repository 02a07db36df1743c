/* What rows of columns are: a table, texts with labels, words with tags, translations, images. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/new/rows.h"
#include "cli/new/text.h"
#include "data/records/records_internal.h"

/* A text has so many words on average; what has fewer is a category or a name, except in a column
 * of short texts. */
#define TEXT_WORDS 3.5
#define SHORT_TEXT_WORDS 1.2

/* ---- Texts ----------------------------------------------------------------------------------- */

static bool is_text_name(const char *name)
{
    static const char *const names[] = { "body",     "comment", "content",   "document",
                                         "headline", "message", "phrase",    "query",
                                         "question", "review",  "sentence",  "text",
                                         "title",    "tweet",   "utterance", NULL };

    return kiln_new_is_named(name, names);
}

/* Few words that differ from row to row, in a column that is named as texts are, or beside nothing
 * but the label. */
static bool is_short_text(const KilnNewRows *rows, size_t c)
{
    const KilnColumnFacts *facts = &rows->table->plan.columns[c].facts;

    return (is_text_name(rows->names[c]) || rows->n_columns == 2) &&
           rows->columns[c].words >= SHORT_TEXT_WORDS && facts->texts > facts->dates &&
           facts->distinct > facts->texts / 2;
}

static bool is_text(const KilnNewRows *rows, size_t c)
{
    return rows->columns[c].words >= TEXT_WORDS || is_short_text(rows, c);
}

/* A name of a language, or source and target. */
static bool is_side(const char *name)
{
    static const char *const sides[] = { "source", "target",   "src",    "tgt", "input",
                                         "output", "question", "answer", NULL };

    return strlen(name) == 2 || kiln_new_is_named(name, sides);
}

/* The texts of the rows: the longest one first. */
typedef struct Texts {
    size_t first, second, n, others, named;
} Texts;

static Texts find_texts(const KilnNewRows *rows)
{
    Texts texts = { .first = rows->n_columns, .second = rows->n_columns };

    for (size_t c = 0; c < rows->n_columns; c++) {
        const KilnTableColumn *column = &rows->table->plan.columns[c];

        if (!is_text(rows, c)) {
            texts.others += column->kind == KILN_COLUMN_NUMBER ||
                            column->kind == KILN_COLUMN_CATEGORY ||
                            column->kind == KILN_COLUMN_DATE;
            continue;
        }
        texts.named += is_side(column->name);
        texts.n++;
        if (texts.first == rows->n_columns ||
            rows->columns[c].words > rows->columns[texts.first].words) {
            texts.second = texts.first;
            texts.first = c;
        } else if (texts.second == rows->n_columns) {
            texts.second = c;
        }
    }
    return texts;
}

static KilnStatus new_texts(KilnNewRows *rows, const Texts *texts, KilnError *err)
{
    bool *out = calloc(rows->n_columns, sizeof(*out));
    size_t label = 0;
    KilnStatus status = out != NULL ? KILN_OK : kiln_error_nomem(err, rows->n_columns);

    for (size_t c = 0; c < rows->n_columns && status >= 0; c++)
        out[c] = is_text(rows, c);
    if (status >= 0)
        status = kiln_new_choose_target(rows, out, &label, err);
    free(out);
    if (status < 0)
        return status;
    if (!kiln_new_is_class(rows, label)) {
        kiln_new_text_numbers(rows, texts->first, label, texts->others > 1);
        return KILN_OK;
    }
    const size_t first = texts->second < texts->first ? texts->second : texts->first;
    const size_t second = texts->second < texts->first ? texts->first : texts->second;
    return kiln_new_text_rows(rows, texts->n == 2 ? first : texts->first,
                              texts->n == 2 ? second : rows->n_columns, label, err);
}

/* ---- Words with tags ------------------------------------------------------------------------- */

/* Whether two columns are lists, one of words and one of tags. */
static bool find_tags(const KilnNewRows *rows, size_t *ret_words, size_t *ret_tags)
{
    static const char *const words[] = { "tokens", "words", "text", NULL };
    static const char *const tags[] = { "tags", "ner_tags", "labels", "pos_tags", NULL };
    bool has_words = false, has_tags = false;

    for (size_t c = 0; c < rows->n_columns; c++) {
        if (rows->columns[c].lists <= 0.5)
            continue;
        if (kiln_new_is_named(rows->names[c], words)) {
            *ret_words = c;
            has_words = true;
        } else if (!has_tags && kiln_new_is_named(rows->names[c], tags)) {
            *ret_tags = c;
            has_tags = true;
        }
    }
    return has_words && has_tags;
}

/* Texts with a list of labels each: not read as a table, whose values are no lists. */
static bool find_labels(const KilnNewRows *rows, size_t *ret_text, size_t *ret_labels)
{
    bool has_text = false, has_labels = false;

    for (size_t c = 0; c < rows->n_columns; c++) {
        if (rows->columns[c].lists > 0.1) {
            *ret_labels = c;
            has_labels = true;
        } else if (!has_text || rows->columns[c].words > rows->columns[*ret_text].words) {
            *ret_text = c;
            has_text = true;
        }
    }
    return has_text && has_labels;
}

/* ---- The kind -------------------------------------------------------------------------------- */

static KilnStatus by_columns(KilnNewRows *rows, KilnError *err)
{
    size_t a = 0, b = 0;

    for (size_t c = 0; c < rows->n_columns; c++)
        if (rows->columns[c].images > 0.9 && rows->columns[c].present > 0)
            return kiln_new_image_rows(rows, c, err);
    if (find_tags(rows, &a, &b)) {
        kiln_new_tagged_rows(rows, a, b);
        return KILN_OK;
    }
    if (find_labels(rows, &a, &b))
        return kiln_new_text_rows(rows, a, rows->n_columns, b, err);
    KilnStatus status = kiln_new_rows_read(rows, NULL, err);
    if (status < 0)
        return status;
    const Texts texts = find_texts(rows);
    if (texts.n == 2 && texts.others == 0 && texts.named > 0) {
        const bool in_order = texts.first < texts.second;

        kiln_new_translation_rows(rows, in_order ? texts.first : texts.second,
                                  in_order ? texts.second : texts.first);
        return KILN_OK;
    }
    if (texts.n > 0 && texts.others == 0)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: texts without a column to predict; a language model learns from "
                              "plain text (.txt), not from a column",
                              rows->files->list[KILN_TRAIN][0]);
    if (texts.n > 0 && texts.n <= 2 && texts.others <= 2)
        return new_texts(rows, &texts, err);
    return kiln_new_table(rows, err);
}

KilnStatus kiln_new_rows(KilnNewConfig *config, const KilnNewFiles *files, KilnRecordFormat format,
                         KilnError *err)
{
    const KilnRecordFormat ending = kiln_records_format_of_path(files->list[KILN_TRAIN][0]);
    KilnNewRows rows = { .config = config,
                         .files = files,
                         .format = format != KILN_RECORDS_AUTO ? format : ending,
                         .says_format = ending == KILN_RECORDS_AUTO };
    KilnStatus status = kiln_new_rows_open(&rows, err);

    if (status >= 0)
        status = by_columns(&rows, err);
    kiln_new_rows_close(&rows);
    return status;
}
