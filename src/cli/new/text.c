/* Configs for texts: with labels, with tags, with translations, and plain. */
#include "cli/new/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#include "kiln/array.h"
#include "kiln/tools/name_list.h"
#include "kiln/tools/row_labels.h"

/* ---- Texts with a class ------------------------------------------------------------------------
 */

/* How often each class occurs. */
typedef struct Classes {
    KilnNameList names;
    int64_t *counts;
    size_t capacity;
    int64_t rows, bad;
} Classes;

static KilnStatus count_class(Classes *classes, KilnString label, KilnError *err)
{
    const size_t before = classes->names.n;
    KilnStatus status = kiln_name_list_add(&classes->names, label, err);

    if (status < 0)
        return status;
    if (classes->names.n > before) {
        if (!KILN_RESERVE(classes->counts, classes->capacity, classes->names.n))
            return kiln_error_nomem(err, classes->names.n * sizeof(*classes->counts));
        classes->counts[classes->names.n - 1] = 0;
    }
    classes->counts[kiln_name_list_find(&classes->names, label)]++;
    return KILN_OK;
}

/* Count the labels of the training rows; several labels of a row count each. */
static KilnStatus count_classes(KilnNewConfig *config, const KilnRecordsSpec *spec,
                                const char *column, const char *label_end, Classes *ret,
                                KilnError *err)
{
    enum { MOST = 5000 };
    KilnRecords *records = NULL;
    KilnRecord record = { 0 };
    size_t at = 0;
    KilnStatus status = kiln_records_open(spec, &records, err);

    if (status >= 0)
        status = kiln_records_column(records, column, &at, err);
    ret->rows = status >= 0 ? kiln_records_count(records) : 0;
    for (int64_t i = 0; i < ret->rows && status >= 0 && ret->names.n < MOST; i++) {
        const KilnLabelFormat format = { .end = label_end };
        KilnString label;

        status = kiln_poll_check(config->poll, "counting classes", i, ret->rows, err);
        if (status >= 0 && kiln_records_read(records, i, &at, 1, &record, NULL) < 0) {
            ret->bad++;
            continue;
        }
        KilnRowLabels labels = kiln_row_labels(&format, record.fields);
        while (status >= 0 && kiln_row_labels_next(&labels, &label))
            status = count_class(ret, label, err);
    }
    kiln_record_release(&record);
    kiln_records_close(records);
    return status;
}

static void classes_release(Classes *classes)
{
    kiln_name_list_release(&classes->names);
    free(classes->counts);
}

static KilnStatus check_classes(const char *path, const Classes *classes, KilnError *err)
{
    if (classes->names.n < 2)
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s: texts of one class only (\"%s\"); there is nothing to tell apart", path,
            classes->names.n > 0 ? classes->names.names[0] : "");
    return (int64_t)classes->names.n * 2 <= classes->rows
               ? KILN_OK
               : kiln_error_set(
                     err, KILN_E_FORMAT,
                     "%s: %zu different labels in %lld texts, which are no classes; name "
                     "the column: --target=COLUMN",
                     path, classes->names.n, (long long)classes->rows);
}

/* fastText's classifier: the strongest small model of texts, and the fastest. */
static void set_bag_model(KilnNewConfig *config, int64_t n)
{
    config->datamodule = "labeled_text";
    config->model = "bag_of_ngrams";
    config->optimizer = "adagrad";
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.2");
    kiln_new_set_length(config, n, 32, 5000, 15);
    kiln_new_set(config, KILN_NEW_DATA, "bag",
                 "{_target_: tokenizer/ngrams, word_ngrams: 2, buckets: %d}",
                 n < 5000 ? 200000 : 2000000);
    kiln_new_set(config, KILN_NEW_OPTIMIZER, "sparse", "true");
    kiln_new_say(config, "model",
                 "bag_of_ngrams: a mean of word and word-pair vectors, as "
                 "fastText's; then try model=text_cnn, text_lstm");
}

static void set_val_fraction(KilnNewConfig *config, const KilnNewFiles *files, int64_t n)
{
    const double fraction = n < 1000 ? 0.2 : 0.1;

    if (files->n[KILN_VAL] == 0)
        kiln_new_set(config, KILN_NEW_DATA, "val_fraction", "%g", fraction);
    kiln_new_say_splits(config, files, fraction, 0.0);
}

static void set_labeled(KilnNewConfig *config, const KilnNewFiles *files, const Classes *classes,
                        bool several)
{
    config->task = several ? "multilabel_classification" : "classification";
    kiln_new_say(config, "task",
                 several ? "multilabel_classification: any number of %zu labels"
                         : "classification: %zu classes",
                 classes->names.n);
    set_bag_model(config, classes->rows);
    set_val_fraction(config, files, classes->rows);
    if (several)
        kiln_new_set(config, KILN_NEW_DATA, "multilabel", "true");
    if (classes->bad > 0) {
        kiln_new_say_odd(config, "%lld rows can't be read; they are left out",
                         (long long)classes->bad);
        kiln_new_set(config, KILN_NEW_DATA, "on_error", "skip  # leave bad rows out");
    }
    kiln_new_say_classes(config, "texts", classes->counts,
                         (const char *const *)classes->names.names, classes->names.n);
}

/* Whether a row of `__label__` words has several. */
static bool have_several(const KilnRecordsSpec *spec)
{
    enum { LOOKED = 2000 };
    KilnRecords *records = NULL;
    KilnRecord record = { 0 };
    size_t at = 0;
    bool several = false;

    if (kiln_records_open(spec, &records, NULL) >= 0 &&
        kiln_records_column(records, "label", &at, NULL) >= 0)
        for (int64_t i = 0; i < kiln_records_count(records) && i < LOOKED && !several; i++) {
            KilnString rest, item;
            int n = 0;

            if (kiln_records_read(records, i, &at, 1, &record, NULL) < 0)
                continue;
            rest = record.fields[0];
            while (kiln_record_next_item(&rest, &item))
                n++;
            several = n > 1;
        }
    kiln_record_release(&record);
    kiln_records_close(records);
    return several;
}

KilnStatus kiln_new_labeled(KilnNewConfig *config, const KilnNewFiles *files,
                            KilnRecordFormat format, KilnError *err)
{
    const char *end = format == KILN_RECORDS_LABEL_FIRST ? ":" : NULL;
    const KilnRecordsSpec spec = { .paths = files->list[KILN_TRAIN],
                                   .n_paths = files->n[KILN_TRAIN],
                                   .format = format,
                                   .encoding = KILN_UTF8_OR_LATIN1,
                                   .label_end = end,
                                   .poll = config->poll };
    Classes classes = { 0 };
    KilnStatus status = count_classes(config, &spec, "label", end, &classes, err);

    if (status >= 0)
        status = check_classes(files->list[KILN_TRAIN][0], &classes, err);
    if (status >= 0) {
        kiln_new_say(config, "data", "%lld texts, %s", (long long)classes.rows,
                     format == KILN_RECORDS_FOLDERS   ? "in a folder per class"
                     : format == KILN_RECORDS_LABELED ? "lines that begin with __label__NAME"
                                                      : "lines that begin with their label");
        kiln_new_set_files(config, files);
        kiln_new_set(config, KILN_NEW_DATA, "format", "%s", kiln_record_formats[format].name);
        kiln_new_set(config, KILN_NEW_DATA, "encoding", "utf-8-or-latin-1");
        if (end != NULL) {
            kiln_new_set_text(config, KILN_NEW_DATA, "label_end", end);
            kiln_new_say(config, "target",
                         "a label ends before its first \":\": DESC of "
                         "DESC:manner; all of it: datamodule.label_end=null");
        }
        set_labeled(config, files, &classes, format == KILN_RECORDS_LABELED && have_several(&spec));
    }
    classes_release(&classes);
    return status;
}

/* Rows with a column of texts, and one of labels. */
KilnStatus kiln_new_text_rows(KilnNewRows *rows, size_t text, size_t pair, size_t label,
                              KilnError *err)
{
    KilnNewConfig *config = rows->config;
    const bool named = rows->format != KILN_RECORDS_JSONL && !rows->has_header;
    const KilnRecordsSpec spec = { .paths = rows->files->list[KILN_TRAIN],
                                   .n_paths = rows->files->n[KILN_TRAIN],
                                   .format = rows->format,
                                   .columns = named ? rows->names : NULL,
                                   .n_columns = named ? rows->n_columns : 0,
                                   .delimiter = rows->delimiter,
                                   .encoding = rows->encoding,
                                   .poll = config->poll };
    Classes classes = { 0 };
    KilnStatus status = count_classes(config, &spec, rows->names[label], NULL, &classes, err);

    if (status >= 0)
        status = check_classes(rows->files->list[KILN_TRAIN][0], &classes, err);
    if (status >= 0) {
        kiln_new_say(config, "data", "%lld texts (column %s) with a label (column %s)%s%s",
                     (long long)classes.rows, rows->names[text], rows->names[label],
                     pair < rows->n_columns ? "; second text: " : "",
                     pair < rows->n_columns ? rows->names[pair] : "");
        kiln_new_set_files(config, rows->files);
        kiln_new_rows_set(rows, "columns");
        kiln_new_set_text(config, KILN_NEW_DATA, "text", rows->names[text]);
        if (pair < rows->n_columns)
            kiln_new_set_text(config, KILN_NEW_DATA, "pair", rows->names[pair]);
        kiln_new_set_text(config, KILN_NEW_DATA, "label", rows->names[label]);
        set_labeled(config, rows->files, &classes, rows->columns[label].lists > 0.0);
    }
    classes_release(&classes);
    return status;
}

/* ---- Words with tags ------------------------------------------------------------------------- */

static void set_tagger(KilnNewConfig *config, int64_t n)
{
    config->task = "tagging";
    config->datamodule = "tagged_text";
    config->model = "text_lstm";
    config->optimizer = "adamw";
    kiln_new_say(config, "task", "tagging: a tag of each word");
    kiln_new_say(config, "model", "text_lstm with a CRF: a BiLSTM over words and their characters");
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.003");
    kiln_new_set_length(config, n, 16, 3000, 15);
    kiln_new_set(config, KILN_NEW_DATA, "on_error",
                 "skip  # leave sentences out that are too long");
    kiln_new_set(config, KILN_NEW_DATA, "unknown", "keep  # tags that training lacks");
    kiln_new_set(config, KILN_NEW_DATA, "encoding", "utf-8-or-latin-1");
    kiln_new_set(config, KILN_NEW_DATA, "tokenizer",
                 "{_target_: tokenizer/words, split: white_space, digits: true, min_frequency: %d}",
                 n < 1000 ? 1 : 2);
    kiln_new_set(config, KILN_NEW_DATA, "characters", "tokenizer/characters");
    kiln_new_set(config, KILN_NEW_MODEL, "width", "100");
    kiln_new_set(config, KILN_NEW_MODEL, "hidden", "128");
    kiln_new_set(config, KILN_NEW_MODEL, "dropout", "0.5");
    kiln_new_set(config, KILN_NEW_TASK, "crf", "true");
}

KilnStatus kiln_new_tagged(KilnNewConfig *config, const KilnNewFiles *files,
                           KilnRecordFormat format, KilnError *err)
{
    const KilnRecordsSpec spec = { .paths = files->list[KILN_TRAIN],
                                   .n_paths = files->n[KILN_TRAIN],
                                   .format = format,
                                   .encoding = KILN_UTF8_OR_LATIN1,
                                   .poll = config->poll };
    KilnRecords *records = NULL;
    const char *const *columns;
    KilnStatus status = kiln_records_open(&spec, &records, err);

    if (status < 0)
        return status;
    const int64_t n = kiln_records_count(records);
    const size_t n_columns = kiln_records_columns(records, &columns);
    kiln_records_close(records);
    if (n < 4 || n_columns < 2)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %lld sentences with %zu columns; expected a word and its tag on "
                              "each line, and a blank line after each sentence",
                              files->list[KILN_TRAIN][0], (long long)n, n_columns);
    kiln_new_set_files(config, files);
    if (format == KILN_RECORDS_CONLL) {
        kiln_new_set(config, KILN_NEW_DATA, "format", "conll");
        kiln_new_say(config, "data", "%lld sentences, a word and its tag on each line",
                     (long long)n);
        kiln_new_say(config, "target",
                     "the tags in the last of %zu columns; the words in the first", n_columns);
    } else {
        kiln_new_say(config, "data",
                     "%lld sentences, the words in one file and the tags in another", (long long)n);
        if (n_columns > 2) {
            kiln_new_set(config, KILN_NEW_DATA, "label", "label");
            kiln_new_say(config, "target",
                         "a tag of each word, and the class of the sentence "
                         "(its intent)");
        }
    }
    set_tagger(config, n);
    set_val_fraction(config, files, n);
    return KILN_OK;
}

void kiln_new_tagged_rows(KilnNewRows *rows, size_t words, size_t tags)
{
    KilnNewConfig *config = rows->config;

    kiln_new_set_files(config, rows->files);
    kiln_new_set_text(config, KILN_NEW_DATA, "text", rows->names[words]);
    kiln_new_set_text(config, KILN_NEW_DATA, "tags", rows->names[tags]);
    kiln_new_say(config, "data", "%lld sentences: lists of words (%s) and of their tags (%s)",
                 (long long)rows->n, rows->names[words], rows->names[tags]);
    set_tagger(config, rows->n);
    set_val_fraction(config, rows->files, rows->n);
}

/* ---- Translations ---------------------------------------------------------------------------- */

static void set_translation(KilnNewConfig *config, const KilnNewFiles *files, int64_t n)
{
    config->task = "translation";
    config->datamodule = "parallel_text";
    config->model = "encoder_decoder";
    config->optimizer = "adam";
    kiln_new_say(config, "task", "translation of the first text into the second");
    kiln_new_say(config, "model",
                 "encoder_decoder: a small transformer from scratch; this takes "
                 "10,000 pairs and more, and minutes per epoch");
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.001");
    kiln_new_set_length(config, n, 64, 3000, 20);
    kiln_new_set(config, KILN_NEW_DATA, "tokenizer", "{vocab_size: %d}", n < 10000 ? 2000 : 8000);
    kiln_new_set(config, KILN_NEW_MODEL, "dropout", "0.1");
    set_val_fraction(config, files, n);
}

KilnStatus kiln_new_parallel(KilnNewConfig *config, const KilnNewFiles *files, KilnError *err)
{
    const KilnRecordsSpec spec = { .paths = files->list[KILN_TRAIN],
                                   .n_paths = files->n[KILN_TRAIN],
                                   .format = KILN_RECORDS_PARALLEL,
                                   .poll = config->poll };
    KilnRecords *records = NULL;
    const char *const *columns;
    KilnStatus status = kiln_records_open(&spec, &records, err);

    if (status < 0)
        return status;
    const int64_t n = kiln_records_count(records);
    if (kiln_records_columns(records, &columns) == 2)
        kiln_new_say(config, "data", "%lld lines of two files that belong together: %s and %s",
                     (long long)n, columns[0], columns[1]);
    kiln_records_close(records);
    if (n < 4)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %lld lines are too few to train and validate on",
                              files->list[KILN_TRAIN][0], (long long)n);
    kiln_new_set_files(config, files);
    set_translation(config, files, n);
    return KILN_OK;
}

void kiln_new_translation_rows(KilnNewRows *rows, size_t source, size_t target)
{
    KilnNewConfig *config = rows->config;

    kiln_new_say(config, "data", "%lld pairs of texts: %s and %s", (long long)rows->n,
                 rows->names[source], rows->names[target]);
    kiln_new_set_files(config, rows->files);
    kiln_new_rows_set(rows, "columns");
    kiln_new_set_text(config, KILN_NEW_DATA, "source", rows->names[source]);
    kiln_new_set_text(config, KILN_NEW_DATA, "target", rows->names[target]);
    set_translation(config, rows->files, rows->n);
}
