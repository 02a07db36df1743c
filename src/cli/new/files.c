/* Files that are no folders: what kind of data they have, by their endings and first lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/system/file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/new/rows.h"
#include "cli/new/text.h"
#include "data/records/mapped_file.h"
#include "data/records/records_internal.h"
#include "image/read.h"
#include "kiln/files/libsvm.h"

enum { LOOKED = 400 /* lines */ };

/* ---- First lines ----------------------------------------------------------------------------- */

/* What the first lines of a text file have in common. */
typedef struct Lines {
    int64_t n, blank;
    int64_t labeled;     /* begin with __label__ */
    int64_t label_first; /* the first word has a ":" inside, and others follow */
    int64_t tagged;      /* words, the last of which is a tag: O, B-x, I-x, ... */
    int64_t sparse;      /* LABEL INDEX:VALUE ... */
    int64_t queries;     /* of those with qid: */
    int64_t numbers;     /* numbers between tabs, commas or semicolons */
    int64_t images;      /* begin with the name of an image, and a tab, a comma or a blank */
    int64_t delimiters;  /* have as many tabs (or commas) as the first one */
    char delimiter;      /* of the first line; 0: it has neither */
    size_t n_delimiters;
} Lines;

static bool begins_with(KilnString line, const char *prefix)
{
    return line.length >= strlen(prefix) && memcmp(line.data, prefix, strlen(prefix)) == 0;
}

static bool is_tag(KilnString word)
{
    return (word.length == 1 && word.data[0] == 'O') ||
           (word.length > 2 && strchr("BIESLU", word.data[0]) != NULL &&
            (word.data[1] == '-' || word.data[1] == '_'));
}

static bool is_tagged(KilnString line)
{
    size_t begin = line.length;

    while (begin > 0 && strchr(" \t", line.data[begin - 1]) == NULL)
        begin--;
    return begin > 0 && is_tag((KilnString) { line.data + begin, line.length - begin });
}

static bool is_label_first(KilnString line)
{
    size_t word = 0;

    while (word < line.length && strchr(" \t", line.data[word]) == NULL)
        word++;
    const char *colon = memchr(line.data, ':', word);
    return word < line.length && colon != NULL && colon > line.data && colon < line.data + word - 1;
}

/* Whether a line begins with an image's name, which ends with a character of `ends`. */
static bool begins_with_image(KilnString line, const char *ends)
{
    char name[256];
    size_t n = 0;

    while (n < line.length && strchr(ends, line.data[n]) == NULL)
        n++;
    snprintf(name, sizeof(name), "%.*s", (int)(n < 255 ? n : 255), line.data);
    return n > 0 && n < line.length && n < 255 && kiln_is_image_name(name);
}

static size_t count_of(KilnString line, char c)
{
    size_t n = 0;

    for (size_t i = 0; i < line.length; i++)
        n += line.data[i] == c;
    return n;
}

static bool has_only(KilnString line, const char *characters)
{
    for (size_t i = 0; i < line.length; i++)
        if (strchr(characters, line.data[i]) == NULL)
            return false;
    return true;
}

static void look_at_line(Lines *lines, KilnString line, KilnLibsvmRow *row)
{
    lines->n++;
    lines->labeled += begins_with(line, KILN_LABEL_PREFIX);
    lines->label_first += is_label_first(line);
    lines->tagged += is_tagged(line);
    if (kiln_libsvm_parse(line, row, NULL) >= 0 && row->has_label && row->n > 0) {
        lines->sparse++;
        lines->queries += row->has_query;
    }
    if (lines->n == 1) {
        lines->delimiter = count_of(line, '\t') > 0  ? '\t'
                           : count_of(line, ',') > 0 ? ','
                           : count_of(line, ';') > 0 ? ';'
                                                     : '\0';
        lines->n_delimiters = lines->delimiter != 0 ? count_of(line, lines->delimiter) : 0;
    }
    lines->delimiters += lines->n_delimiters > 0 &&
                         count_of(line, lines->delimiter) == lines->n_delimiters;
    lines->images += begins_with_image(line, "\t,") || begins_with_image(line, " ");
    lines->numbers += has_only(line, "0123456789.,;eE+- \t");
}

static void look_at_lines(KilnString text, Lines *lines)
{
    KilnLibsvmRow row = { 0 };

    *lines = (Lines) { 0 };
    while (text.length > 0 && lines->n + lines->blank < LOOKED) {
        const char *end = memchr(text.data, '\n', text.length);
        KilnString line = { text.data, end != NULL ? (size_t)(end - text.data) : text.length };

        text.data += line.length;
        text.length -= line.length;
        if (end != NULL)
            text = (KilnString) { text.data + 1, text.length - 1 };
        while (line.length > 0 && strchr(" \t\r", line.data[line.length - 1]) != NULL)
            line.length--;
        if (line.length == 0)
            lines->blank++;
        else if (line.data[0] != '#' || lines->tagged > 0) /* a comment of sparse rows, or a word */
            look_at_line(lines, line, &row);
    }
    kiln_libsvm_row_release(&row);
}

/* ---- Sparse rows ----------------------------------------------------------------------------- */

static void set_trees(KilnNewConfig *config, const KilnNewFiles *files, bool ranks)
{
    config->task = "trees";
    config->datamodule = "libsvm";
    kiln_new_say(config, "data", "sparse rows (LibSVM)%s", ranks ? " with queries" : "");
    kiln_new_say(config, "task",
                 ranks ? "trees: a ranking of each query's rows"
                       : "trees: classes, or numbers if the labels are more than 20 "
                         "different ones");
    kiln_new_say(config, "model", "gradient-boosted trees, by XGBoost");
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.1  # of networks; the trees have task.eta");
    kiln_new_set(config, KILN_NEW_ROOT, "batch_size",
                 "64  # of the other splits; trees train on all rows at once");
    kiln_new_set_files(config, files);
    kiln_new_set(config, KILN_NEW_TASK, "rounds_per_epoch", "10");
    kiln_new_set(config, KILN_NEW_TASK, "eta", "0.1");
    kiln_new_set(config, KILN_NEW_TRAINER, "max_epochs", "15");
    kiln_new_say_splits(config, files, 0.1, 0.0);
}

/* Whether the labels are classes as datamodule libsvm has them: at most 20 whole numbers. */
static KilnStatus count_labels(const KilnLibsvm *rows, int *ret_n, bool *ret_whole)
{
    enum { MOST = 20 };
    float seen[MOST + 1];
    int n = 0;

    *ret_whole = true;
    for (int64_t i = 0; i < rows->n && n <= MOST; i++) {
        int k = 0;

        *ret_whole = *ret_whole && rows->labels[i] == (float)(int64_t)rows->labels[i];
        while (k < n && seen[k] != rows->labels[i])
            k++;
        if (k == n)
            seen[n++] = rows->labels[i];
    }
    *ret_n = n;
    return KILN_OK;
}

static KilnStatus new_sparse(KilnNewConfig *config, const KilnNewFiles *files, KilnError *err)
{
    const KilnLibsvmSpec spec = { .paths = files->list[KILN_TRAIN],
                                  .n_paths = files->n[KILN_TRAIN],
                                  .on_error = KILN_ON_ERROR_SKIP,
                                  .poll = config->poll };
    KilnLibsvm rows = { 0 };
    int n = 0;
    bool whole = true;
    KilnStatus status = kiln_libsvm_read(&spec, &rows, err);

    if (status >= 0)
        status = count_labels(&rows, &n, &whole);
    if (status >= 0 && n < 2)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: all rows have one label; there is nothing to tell apart",
                                files->list[KILN_TRAIN][0]);
    if (status >= 0) {
        const bool ranks = rows.queries != NULL, classes = !ranks && whole && n <= 20;
        const char *metric = ranks ? "ndcg@5" : !classes ? "rmse" : n == 2 ? "logloss" : "mlogloss";

        set_trees(config, files, ranks);
        kiln_new_set(config, KILN_NEW_TASK, "eval_metric", "[%s]", metric);
        kiln_new_set(config, KILN_NEW_TASK, "monitor", "val/%s", metric);
        if (rows.n_skipped > 0) {
            kiln_new_set(config, KILN_NEW_DATA, "on_error", "skip  # leave bad rows out");
            kiln_new_say_odd(config, "%lld rows such as %s: %s", (long long)rows.n_skipped,
                             rows.example, rows.reason);
        }
    }
    kiln_libsvm_release(&rows);
    return status;
}

/* ---- Plain text ------------------------------------------------------------------------------ */

KilnStatus kiln_new_plain_text(KilnNewConfig *config, const KilnNewFiles *files, KilnError *err)
{
    static const char *const keys[] = { "files", "val_files", "test_files" };
    enum { SMALL = 2 << 20, LEAST = 2000 };
    int64_t bytes = 0;

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        KilnText list = { 0 };

        for (size_t i = 0; i < files->n[split]; i++) {
            KilnMappedFile file = { 0 };

            if (kiln_mapped_file_open(&file, files->list[split][i], NULL, config->poll, err) < 0) {
                kiln_mapped_file_close(&file);
                kiln_text_release(&list);
                return err->status;
            }
            bytes += split == KILN_TRAIN ? (int64_t)file.size : 0;
            kiln_mapped_file_close(&file);
            kiln_text_append(&list, i > 0 ? ", " : "");
            kiln_new_put_text(&list, files->list[split][i]);
        }
        if (files->n[split] > 0)
            kiln_new_set(config, KILN_NEW_DATA, keys[split], "[%s]",
                         list.data != NULL ? list.data : "");
        kiln_text_release(&list);
    }
    if (bytes < LEAST)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %lld bytes of plain text are too few for a language model (the "
                              "lines have no labels, tags or columns that `kiln new` knows)",
                              files->list[KILN_TRAIN][0], (long long)bytes);
    config->task = "language_model";
    config->datamodule = "text_blocks";
    config->model = "gpt";
    config->optimizer = "adamw";
    kiln_new_say(config, "data", "plain text: %.3g MB", (double)bytes / 1e6);
    kiln_new_say(config, "task", "language_model: the next token from those before it");
    kiln_new_say(config, "model", "gpt: 4 layers of width 128 over %s",
                 bytes < SMALL ? "characters" : "4,000 pieces of words (BPE)");
    kiln_new_say(config, "split", "train: %zu file%s; val: %s; test: %s", files->n[KILN_TRAIN],
                 files->n[KILN_TRAIN] > 1 ? "s" : "",
                 files->n[KILN_VAL] > 0 ? files->list[KILN_VAL][0] : "the last 10 % of the text",
                 files->n[KILN_TEST] > 0 ? files->list[KILN_TEST][0] : "none");
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.002");
    kiln_new_set(config, KILN_NEW_ROOT, "batch_size", "12");
    kiln_new_set(config, KILN_NEW_DATA, "tokenizer",
                 bytes < SMALL ? "{_target_: tokenizer/characters, special_tokens: [\"<unk>\"]}"
                               : "{_target_: tokenizer/bpe, vocab_size: 4000}");
    kiln_new_set(config, KILN_NEW_DATA, "context", "%d", bytes < 20000 ? 32 : 64);
    kiln_new_set(config, KILN_NEW_MODEL, "width", "128");
    kiln_new_set(config, KILN_NEW_MODEL, "layers", "4");
    kiln_new_set(config, KILN_NEW_MODEL, "heads", "4");
    kiln_new_set(config, KILN_NEW_OPTIMIZER, "weight_decay", "0.1");
    kiln_new_set(config, KILN_NEW_OPTIMIZER, "no_decay_norms", "true");
    kiln_new_set(config, KILN_NEW_TRAINER, "max_steps", "2000");
    kiln_new_set(config, KILN_NEW_TRAINER, "gradient_clip_val", "1.0");
    return KILN_OK;
}

/* ---- The kind -------------------------------------------------------------------------------- */

/* An image and its text or class in each line. */
static KilnStatus listed_images(KilnNewConfig *config, const KilnNewFiles *files,
                                const Lines *lines, KilnError *err)
{
    if (lines->delimiter == 0 || lines->delimiter == ';')
        return kiln_error_set(
            err, KILN_E_FORMAT,
            "%s: an image and a text in each line, with a blank between them; put "
            "a tab there: sed 's/ /\\t/' %s >FILE.tsv",
            files->list[KILN_TRAIN][0], files->list[KILN_TRAIN][0]);
    return kiln_new_rows(config, files,
                         lines->delimiter == '\t' ? KILN_RECORDS_TSV : KILN_RECORDS_CSV, err);
}

bool kiln_new_lists_images(const char *path)
{
    KilnMappedFile file = { 0 };
    Lines lines = { 0 };

    if (kiln_mapped_file_open(&file, path, NULL, NULL, NULL) >= 0)
        look_at_lines((KilnString) { file.data + file.begin, file.size - file.begin }, &lines);
    kiln_mapped_file_close(&file);
    return lines.images > 0 && lines.images + 1 >= lines.n;
}

static KilnStatus by_lines(KilnNewConfig *config, const KilnNewFiles *files, const Lines *lines,
                           KilnError *err)
{
    const int64_t most = lines->n - lines->n / 50; /* nearly all */

    if (lines->n > 0 && lines->images + 1 >= lines->n && lines->images > 0)
        return listed_images(config, files, lines, err);
    if (lines->labeled == lines->n)
        return kiln_new_labeled(config, files, KILN_RECORDS_LABELED, err);
    if (lines->sparse >= most)
        return new_sparse(config, files, err);
    if (lines->tagged >= most && lines->blank > 0)
        return kiln_new_tagged(config, files, KILN_RECORDS_CONLL, err);
    if (lines->numbers == lines->n && lines->delimiters == lines->n)
        return kiln_new_rows(config, files,
                             lines->delimiter == '\t' ? KILN_RECORDS_TSV : KILN_RECORDS_CSV, err);
    if (lines->label_first == lines->n && lines->n >= 4)
        return kiln_new_labeled(config, files, KILN_RECORDS_LABEL_FIRST, err);
    if (lines->delimiters == lines->n && lines->n >= 4 &&
        (lines->delimiter == '\t' || lines->n_delimiters >= 2))
        return kiln_new_rows(config, files,
                             lines->delimiter == '\t' ? KILN_RECORDS_TSV : KILN_RECORDS_CSV, err);
    return kiln_new_plain_text(config, files, err);
}

static KilnStatus by_content(KilnNewConfig *config, const KilnNewFiles *files, KilnError *err)
{
    static const char sqlite[] = "SQLite format 3", parquet[] = "PAR1";
    const char *path = files->list[KILN_TRAIN][0];
    KilnMappedFile file = { 0 };
    Lines lines = { 0 };
    KilnStatus status = kiln_mapped_file_open(&file, path, NULL, config->poll, err);

    if (status < 0) {
        kiln_mapped_file_close(&file);
        return status;
    }
    const KilnString text = { file.data + file.begin, file.size - file.begin };
    const size_t looked = text.length < 65536 ? text.length : 65536;
    const bool is_sqlite = begins_with(text, sqlite), is_parquet = begins_with(text, parquet);
    if (kiln_is_tar(path))
        status =
            kiln_error_set(err, KILN_E_FORMAT,
                           "%s: a tar with a folder of images for each class is given by itself: "
                           "`kiln new %s`; webdataset's archives are read by "
                           "datamodule=image_shards",
                           path, path);
    else if (!is_sqlite && !is_parquet && text.length > 0 &&
             memchr(text.data, '\0', looked) != NULL)
        status =
            kiln_error_set(err, KILN_E_FORMAT,
                           "%s: has NUL bytes, so it is no text; `kiln new --help` lists what it "
                           "reads",
                           path);
    else if (!is_sqlite && !is_parquet)
        look_at_lines(text, &lines);
    kiln_mapped_file_close(&file);
    if (status < 0)
        return status;
    if (is_sqlite)
        return kiln_new_database(config, path, err);
    if (is_parquet)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: is a Parquet file; call it FILE.parquet",
                              path);
    return by_lines(config, files, &lines, err);
}

KilnStatus kiln_new_files(KilnNewConfig *config, const KilnNewFiles *files, KilnError *err)
{
    const char *path = files->list[KILN_TRAIN][0];
    const KilnRecordFormat format = kiln_records_format_of_path(path);

    if (kiln_is_image_name(path))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: is one image; give the folder that has a folder for each class",
                              path);
    if (format == KILN_RECORDS_CONLL)
        return kiln_new_tagged(config, files, format, err);
    if (format == KILN_RECORDS_CSV || format == KILN_RECORDS_TSV || format == KILN_RECORDS_JSONL)
        return kiln_new_rows(config, files, KILN_RECORDS_AUTO, err);
    return by_content(config, files, err);
}
