/* A user's file of rows, read as the training files were. */
#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/text.h"
#include "data/table/table_data.h"

typedef struct Input {
    KilnOpenSource source;
    char *path;
    const KilnTableData *data;
    size_t *columns; /* [fields]: their numbers in the file */
    bool *has;       /* [fields] */
    pthread_mutex_t mutex;
    char **names; /* [rows], made when they are wanted, under the mutex */
} Input;

/* A sample in memory; KilnRawSample.values points to `values`. */
typedef struct Sample {
    KilnRecord record; /* has the texts */
    KilnRawValue values[];
} Sample;

static void done(void *ctx, KilnRawSample *raw)
{
    Sample *sample = (Sample *)((char *)raw->values - offsetof(Sample, values));

    (void)ctx;
    kiln_record_release(&sample->record);
    free(sample);
}

/* Fields of a record lie one after the other without an end, so each text gets a copy. */
static KilnStatus read_row(const Input *input, int64_t index, Sample *sample, size_t *ret_n,
                           KilnError *err)
{
    const KilnTableData *data = input->data;
    KilnText texts = { 0 };
    size_t n = 0;
    KilnStatus status = kiln_records_read(input->source.records, index, input->columns,
                                          data->n_fields, &sample->record, err);

    for (size_t i = 0; i < data->n_fields && status >= 0; i++) {
        if (!input->has[i])
            continue;
        sample->values[n++] = (KilnRawValue) { .name = data->fields[i].name,
                                               .type = KILN_RAW_TEXT,
                                               .text = (const char *)(uintptr_t)texts.length };
        kiln_text_append_n(&texts, sample->record.fields[i].data, sample->record.fields[i].length);
        kiln_text_append_n(&texts, "", 1);
    }
    if (status >= 0 && texts.failed)
        status = kiln_error_nomem(err, texts.capacity);
    for (size_t i = 0; i < n && status >= 0; i++)
        sample->values[i].text = texts.data + (uintptr_t)sample->values[i].text;
    kiln_text_release(&sample->record.text); /* the copies take its place */
    sample->record.text = texts;
    *ret_n = n;
    return status;
}

static KilnStatus get(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    const Input *input = ctx;
    const size_t bytes = sizeof(Sample) + (input->data->n_fields + 1) * sizeof(KilnRawValue);
    Sample *sample = calloc(1, bytes);
    size_t n = 0;

    if (sample == NULL)
        return kiln_error_nomem(err, bytes);
    KilnStatus status = read_row(input, index, sample, &n, err);
    if (status < 0) {
        done(NULL, &(KilnRawSample) { .values = sample->values });
        return status;
    }
    *ret = (KilnRawSample) { .values = sample->values, .n_values = n };
    return KILN_OK;
}

static const char *name(void *ctx, int64_t index)
{
    Input *input = ctx;
    char place[512];

    pthread_mutex_lock(&input->mutex);
    if (input->names[index] == NULL) {
        kiln_source_place(&input->source, index, place, sizeof(place));
        const char *slash = strrchr(place, '/');
        input->names[index] = kiln_strdup(slash != NULL ? slash + 1 : place);
    }
    const char *ret = input->names[index];
    pthread_mutex_unlock(&input->mutex);
    return ret;
}

static void release(void *ctx)
{
    Input *input = ctx;
    const int64_t n = input->source.records != NULL ? kiln_records_count(input->source.records) : 0;

    for (int64_t i = 0; i < n && input->names != NULL; i++)
        free(input->names[i]);
    kiln_source_close(&input->source);
    pthread_mutex_destroy(&input->mutex);
    free(input->names);
    free(input->columns);
    free(input->has);
    free(input->path);
    free(input);
}

/* Column 0 stands for those that may be absent and are. */
static KilnStatus find_columns(Input *input, KilnError *err)
{
    const KilnTableData *data = input->data;
    KilnStatus status = KILN_OK;

    input->columns = calloc(data->n_fields + 1, sizeof(*input->columns));
    input->has = calloc(data->n_fields + 1, sizeof(*input->has));
    if (input->columns == NULL || input->has == NULL)
        return kiln_error_nomem(err, data->n_fields * sizeof(*input->columns));
    for (size_t i = 0; i < data->n_fields && status >= 0; i++) {
        const bool optional = data->fields[i].optional;
        const KilnStatus found = kiln_records_column(input->source.records, data->fields[i].name,
                                                     &input->columns[i], optional ? NULL : err);

        input->has[i] = found >= 0;
        if (found < 0 && !optional)
            status = found;
    }
    return status;
}

static KilnStatus open_rows(KilnTableData *data, Input *input, const char *path, KilnError *err)
{
    KilnTableSource source = data->source;

    source.query = NULL;
    input->path = kiln_strdup(path);
    if (input->path == NULL)
        return kiln_error_nomem(err, strlen(path));
    KilnStatus status = kiln_source_open(&source, &input->path, 1, data->poll, &input->source, err);
    if (status >= 0)
        status = find_columns(input, err);
    if (status < 0)
        return status;
    input->names = calloc((size_t)kiln_records_count(input->source.records) + 1,
                          sizeof(*input->names));
    return input->names != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*input->names));
}

static bool is_jsonl(const KilnTableData *data, const char *path)
{
    return data->source.format == KILN_RECORDS_JSONL ||
           (data->source.format == KILN_RECORDS_AUTO &&
            (kiln_ends_with(path, ".jsonl") || kiln_ends_with(path, ".json")));
}

KilnStatus kiln_table_data_open_input(KilnTableData *data, const char *path, KilnRawSet *ret,
                                      KilnError *err)
{
    KilnStatus status;

    kiln_raw_input_release(&data->input);
    if (is_jsonl(data, path)) {
        status = kiln_raw_input_open(path, data->fields, data->n_fields, data->poll, &data->input,
                                     err);
        if (status >= 0)
            *ret = data->input.set;
        return status;
    }
    Input *input = calloc(1, sizeof(*input));
    if (input == NULL)
        return kiln_error_nomem(err, sizeof(*input));
    input->data = data;
    pthread_mutex_init(&input->mutex, NULL);
    status = open_rows(data, input, path, err);
    if (status < 0) {
        release(input);
        return status;
    }
    data->input = (KilnRawInput) {
        .set = { .count = kiln_records_count(input->source.records),
                 .ctx = input,
                 .get = get,
                 .done = done,
                 .name = name },
        .release = release,
    };
    *ret = data->input.set;
    return KILN_OK;
}
