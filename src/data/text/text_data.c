/* Rows of text for all splits: opened, checked once, and held out. */
#include "data/text/text_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const KilnField kiln_text_files_fields[4] = {
    KILN_FIELD_PATH_LIST(KilnTextFiles, train, "[]", "training files"),
    KILN_FIELD_PATH_LIST(KilnTextFiles, val, "[]",
                         "validation files; empty: val_fraction of the training rows"),
    KILN_FIELD_PATH_LIST(KilnTextFiles, test, "[]", "test files"),
    KILN_FIELD_END,
};

const KilnChoice kiln_on_error_choices[3] = {
    { "stop", KILN_ON_ERROR_STOP },
    { "skip", KILN_ON_ERROR_SKIP },
    { 0 },
};

/* ---- Opening ----------------------------------------------------------------------------------
 */

/* What makes a row bad; any other failure is one of the run. */
static const KilnStatus bad[] = { KILN_E_FORMAT, KILN_E_TYPE, KILN_E_MISSING, KILN_E_KEY,
                                  KILN_E_RANGE };
_Static_assert(KILN_COUNT(bad) == KILN_COUNT(((KilnTextData *)0)->skipped[0]), "one each");

/* Where wanted column i is without a name; false: that is not known. */
static bool unnamed_column(const KilnRecords *records, const KilnTextWanted *wanted, size_t i,
                           size_t *ret)
{
    const char *const *names = NULL;
    const size_t n = kiln_records_columns(records, &names);
    const KilnRecordFormat format = kiln_records_format(records);

    if (!wanted->in_order || (format != KILN_RECORDS_PARALLEL && format != KILN_RECORDS_CONLL))
        return false;
    *ret = format == KILN_RECORDS_CONLL && i == 1 ? n - 1 : i;
    return *ret < n && (format == KILN_RECORDS_PARALLEL || i < 2) && (i == 0) == (*ret == 0);
}

/* What the user can do about a column that is not there. */
static void put_advice(const KilnRecords *records, const KilnTextSource *source, KilnError *err)
{
    const KilnRecordFormat format = kiln_records_format(records);
    KilnText text = { 0 };

    kiln_text_append(&text, err->text);
    if ((format == KILN_RECORDS_CSV || format == KILN_RECORDS_TSV) && source->n_columns == 0)
        kiln_text_append(&text, "; this option takes another name, and columns=[...] the names of "
                                "the columns if the first row is no header");
    else if (source->format == KILN_RECORDS_AUTO && format == KILN_RECORDS_LINES)
        kiln_text_append(&text, "; nothing tells the format of the file, so each line is a text: "
                                "set format (label_first: a line begins with its label)");
    if (!text.failed)
        (void)kiln_text_to_error(&text, err->status, err);
    else
        kiln_text_release(&text);
}

static KilnStatus find_columns(const KilnRecords *records, const KilnTextWanted *wanted,
                               const KilnTextSource *source, size_t *ret, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < wanted->n_columns && status >= 0; i++) {
        status = kiln_records_column(records, wanted->columns[i], &ret[i], err);
        if (status < 0 && source->n_columns == 0 && unnamed_column(records, wanted, i, &ret[i]))
            status = KILN_OK;
        if (status < 0)
            put_advice(records, source, err);
        if (status < 0 && wanted->options != NULL)
            (void)kiln_error_prefix(err, "%s: ", wanted->options[i]);
    }
    return status;
}

/* The one character of the option; "\t" is written as such in YAML. */
static KilnStatus delimiter_of(const KilnTextSource *source, char *ret, KilnError *err)
{
    if (source->delimiter != NULL && strlen(source->delimiter) != 1)
        return kiln_error_set(err, KILN_E_RANGE, "delimiter: \"%s\" is not one character of ASCII",
                              source->delimiter);
    *ret = source->delimiter != NULL ? source->delimiter[0] : '\0';
    return KILN_OK;
}

static KilnStatus open_split(KilnTextData *data, const KilnTextSource *source, KilnSplit split,
                             char **paths, size_t n, const KilnPoll *poll, KilnError *err)
{
    KilnTextRows *rows = &data->rows[split];
    KilnRecordsSpec spec = {
        .paths = (const char *const *)paths,
        .n_paths = n,
        .format = source->format,
        .columns = source->n_columns > 0 ? source->columns : NULL,
        .n_columns = source->n_columns,
        .encoding = source->encoding,
        .cache = source->cache,
        .poll = poll,
        .label_end = source->label_end,
        .fallback = source->fallback,
    };
    KilnStatus status = delimiter_of(source, &spec.delimiter, err);

    rows->columns = calloc(data->wanted.n_columns + 1, sizeof(*rows->columns));
    if (rows->columns == NULL)
        return kiln_error_nomem(err, data->wanted.n_columns * sizeof(*rows->columns));
    if (status >= 0 && (status = kiln_records_open(&spec, &data->owned[split], err)) < 0)
        return kiln_error_prefix(err, "files.%s: ", kiln_split_name(split));
    if (status >= 0)
        status = find_columns(data->owned[split], &data->wanted, source, rows->columns, err);
    rows->records = data->owned[split];
    return status;
}

/* ---- Checking ---------------------------------------------------------------------------------
 */

/* Count a row that is left out; the first one of a kind is the example. */
static void count_skipped(KilnTextData *data, KilnSplit split, int64_t row, const KilnError *why)
{
    for (size_t i = 0; i < KILN_COUNT(bad); i++) {
        KilnTextSkipped *skipped = &data->skipped[split][i];
        const char *text = why->text;

        if (bad[i] != why->status || skipped->count++ > 0)
            continue;
        kiln_records_location(data->rows[split].records, row, skipped->example,
                              sizeof(skipped->example));
        const size_t n = strlen(skipped->example);
        if (strncmp(text, skipped->example, n) == 0 && strncmp(text + n, ": ", 2) == 0)
            text += n + 2;
        snprintf(skipped->reason, sizeof(skipped->reason), "%.*s", (int)sizeof(skipped->reason) - 1,
                 text);
    }
}

static bool is_bad(KilnStatus status)
{
    for (size_t i = 0; i < KILN_COUNT(bad); i++)
        if (bad[i] == status)
            return true;
    return false;
}

/* What a row is checked with once it is read. */
typedef struct RowCheck {
    KilnRowCheck *check; /* NULL: reading it is all */
    void *ctx;
} RowCheck;

static KilnStatus check_row(const KilnTextData *data, KilnSplit split, int64_t row, RowCheck with,
                            KilnRecord *record, KilnError *err)
{
    const KilnTextRows *rows = &data->rows[split];
    char place[512];
    KilnStatus status = kiln_records_read(rows->records, row, rows->columns, data->wanted.n_columns,
                                          record, err);

    if (status < 0 || with.check == NULL)
        return status;
    status = with.check(with.ctx, split, record, err);
    return status >= 0
               ? status
               : kiln_error_prefix(
                     err, "%s: ", kiln_records_location(rows->records, row, place, sizeof(place)));
}

/* Keep the rows of the list that are good. */
static KilnStatus keep_good(KilnTextData *data, KilnSplit split, RowCheck with,
                            const KilnPoll *poll, KilnError *err)
{
    KilnTextRows *rows = &data->rows[split];
    const int64_t n = rows->count;
    KilnError *why = malloc(sizeof(*why));
    KilnRecord record = { 0 };
    KilnStatus status = why != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*why));

    rows->count = 0;
    for (int64_t i = 0; i < n && status >= 0; i++) {
        const int64_t row = rows->list[i];

        status = kiln_poll_check(poll, "checking rows", i, n, err);
        const KilnStatus found = status >= 0 ? check_row(data, split, row, with, &record, why)
                                             : status;
        if (status < 0)
            break;
        if (found >= 0) {
            rows->list[rows->count++] = row;
        } else if (data->on_error == KILN_ON_ERROR_SKIP && is_bad(found)) {
            count_skipped(data, split, row, why);
        } else {
            status = kiln_error_set(err, found, "%s%s", why->text,
                                    is_bad(found) ? " (on_error=skip leaves such rows out)" : "");
        }
    }
    free(why);
    kiln_record_release(&record);
    if (status >= 0 && rows->count == 0)
        status = kiln_error_set(err, KILN_E_MISSING, "files.%s: no row can be used",
                                kiln_split_name(split));
    return status;
}

/* List the rows of a file that are good. */
static KilnStatus check_rows(KilnTextData *data, KilnSplit split, const KilnPoll *poll,
                             KilnError *err)
{
    KilnTextRows *rows = &data->rows[split];
    const int64_t n = kiln_records_count(rows->records);

    rows->list = malloc((size_t)n * sizeof(*rows->list) + 1);
    if (rows->list == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*rows->list));
    for (rows->count = 0; rows->count < n; rows->count++)
        rows->list[rows->count] = rows->count;
    return keep_good(data, split, (RowCheck) { data->wanted.check, data->wanted.ctx }, poll, err);
}

KilnStatus kiln_text_data_recheck(KilnTextData *data, KilnSplit split, KilnRowCheck *check,
                                  void *ctx, const KilnPoll *poll, KilnError *err)
{
    return data->rows[split].count > 0
               ? keep_good(data, split, (RowCheck) { check, ctx }, poll, err)
               : KILN_OK;
}

/* ---- Holding out --------------------------------------------------------------------------------
 */

static KilnStatus hold_out(KilnTextData *data, double fraction, uint64_t seed, KilnError *err)
{
    KilnTextRows *train = &data->rows[KILN_TRAIN], *val = &data->rows[KILN_VAL];
    const int64_t n = train->count, held = llround((double)n * fraction);

    if (held == 0)
        return KILN_OK;
    if (held >= n)
        return kiln_error_set(err, KILN_E_RANGE,
                              "val_fraction: %g of %lld rows leaves none to train on", fraction,
                              (long long)n);
    int32_t *order = malloc((size_t)n * sizeof(*order));
    int64_t *list = malloc((size_t)n * sizeof(*list));
    val->list = malloc((size_t)held * sizeof(*val->list));
    KilnStatus status = order != NULL && list != NULL && val->list != NULL
                            ? kiln_hold_out(n, held, seed, order, err)
                            : kiln_error_nomem(err, (size_t)n * sizeof(*list));
    if (status >= 0) {
        for (int64_t i = 0; i < n; i++)
            list[i] = train->list[order[i]];
        memcpy(val->list, list + (n - held), (size_t)held * sizeof(*list));
        memcpy(train->list, list, (size_t)(n - held) * sizeof(*list));
        val->records = train->records;
        val->columns = train->columns;
        val->count = held;
        train->count = n - held;
    }
    free(order);
    free(list);
    return status;
}

/* The splits that a stage needs; validation rows may be a part of the training files. */
static bool needs(KilnStage stage, KilnSplit split)
{
    switch (stage) {
    case KILN_STAGE_FIT:
        return true;
    case KILN_STAGE_TEST:
        return split == KILN_TEST;
    case KILN_STAGE_VALIDATE:
        return split != KILN_TEST;
    default:
        return false;
    }
}

static KilnStatus open_splits(KilnTextData *data, const KilnTextSource *source,
                              const KilnDataContext *context, KilnError *err)
{
    const KilnTextFiles *files = source->files;
    char **const paths[] = { files->train, files->val, files->test };
    const size_t n[] = { files->train_count, files->val_count, files->test_count };
    const bool training = context->stage == KILN_STAGE_FIT && context->fitted == NULL;
    KilnStatus status = KILN_OK;

    if (training && n[KILN_TRAIN] == 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "files.train: no files; set datamodule.files.train=[FILE]");
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        if (n[split] == 0 || !needs(context->stage, (KilnSplit)split))
            continue;
        status = open_split(data, source, (KilnSplit)split, paths[split], n[split], context->poll,
                            err);
        if (status >= 0)
            status = check_rows(data, (KilnSplit)split, context->poll, err);
    }
    if (status >= 0 && data->rows[KILN_TRAIN].count > 0 && n[KILN_VAL] == 0)
        status = hold_out(data, source->val_fraction, context->seed, err);
    return status;
}

KilnStatus kiln_text_data_open(const KilnTextSource *source, const KilnTextWanted *wanted,
                               const KilnDataContext *context, KilnTextData **ret, KilnError *err)
{
    KilnTextData *data = calloc(1, sizeof(*data));

    if (data == NULL)
        return kiln_error_nomem(err, sizeof(*data));
    data->wanted = *wanted;
    data->on_error = source->on_error;
    data->inferred = source->format == KILN_RECORDS_AUTO;
    const KilnStatus status = open_splits(data, source, context, err);
    data->wanted.columns = data->wanted.options = NULL;
    if (status < 0)
        kiln_text_data_free(data);
    else
        *ret = data;
    return status;
}

void kiln_text_data_free(KilnTextData *data)
{
    if (data == NULL)
        return;
    if (data->rows[KILN_VAL].columns == data->rows[KILN_TRAIN].columns)
        data->rows[KILN_VAL].columns = NULL;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        free(data->rows[split].list);
        free(data->rows[split].columns);
        kiln_records_close(data->owned[split]);
    }
    free(data);
}

/* ---- Reading ------------------------------------------------------------------------------------
 */

int64_t kiln_text_data_count(const KilnTextData *data, KilnSplit split)
{
    return data->rows[split].count;
}

KilnStatus kiln_text_data_read(const KilnTextData *data, KilnSplit split, int64_t i,
                               KilnRecord *ret, KilnError *err)
{
    const KilnTextRows *rows = &data->rows[split];

    return kiln_records_read(rows->records, rows->list[i], rows->columns, data->wanted.n_columns,
                             ret, err);
}

const char *kiln_text_data_location(const KilnTextData *data, KilnSplit split, int64_t i, char *ret,
                                    size_t size)
{
    const KilnTextRows *rows = &data->rows[split];

    return kiln_records_location(rows->records, rows->list[i], ret, size);
}

void kiln_text_data_left_out(const KilnTextData *data,
                             void (*add)(void *ctx, const KilnOmission *omission), void *ctx)
{
    for (int split = 0; split < KILN_SPLIT_COUNT && data != NULL; split++)
        for (size_t i = 0; i < KILN_COUNT(bad); i++) {
            const KilnTextSkipped *skipped = &data->skipped[split][i];
            char what[32];

            snprintf(what, sizeof(what), "%s rows", kiln_split_name((KilnSplit)split));
            if (skipped->count > 0)
                add(ctx, &(KilnOmission) { .count = skipped->count,
                                           .what = what,
                                           .example = skipped->example,
                                           .reason = skipped->reason });
        }
}

/* Cut the end of a path off, from the last `at` on. */
static void cut(char *path, char at)
{
    char *end = strrchr(path, at);

    if (end != NULL)
        *end = '\0';
}

/* "train.csv: format csv, columns text, label, named in the first row" of a split. */
static void describe(const KilnTextData *data, KilnSplit split, KilnText *ret)
{
    const KilnRecords *records = data->owned[split];
    const KilnTextRows *rows = &data->rows[split];
    const KilnRecordFormat format = kiln_records_format(records);
    const bool folders = format == KILN_RECORDS_FOLDERS;
    const char *const *names = NULL;
    char place[512];

    (void)kiln_records_columns(records, &names);
    kiln_records_location(records, rows->list[0], place, sizeof(place));
    cut(place, folders ? '/' : ':');
    if (folders)
        cut(place, '/');
    kiln_text_printf(ret, "%s: format %s, columns ", place, kiln_record_formats[format].name);
    for (size_t i = 0; i < data->wanted.n_columns; i++)
        kiln_text_printf(ret, "%s%s", i > 0 ? ", " : "", names[rows->columns[i]]);
    if (format == KILN_RECORDS_CSV || format == KILN_RECORDS_TSV)
        kiln_text_append(ret, kiln_records_has_header(records) ? ", named in the first row"
                                                               : ", without a header");
}

void kiln_text_data_files(const KilnTextData *data, void (*add)(void *ctx, const char *text),
                          void *ctx)
{
    for (int split = 0; data != NULL && data->inferred && split < KILN_SPLIT_COUNT; split++) {
        KilnText text = { 0 };

        if (data->owned[split] == NULL || data->rows[split].count == 0)
            continue;
        describe(data, (KilnSplit)split, &text);
        if (!text.failed)
            add(ctx, text.data);
        kiln_text_release(&text);
    }
}

bool kiln_text_is_blank(KilnString text)
{
    for (size_t i = 0; i < text.length; i++)
        if (strchr(" \t\r\n\v\f", text.data[i]) == NULL)
            return false;
    return true;
}
