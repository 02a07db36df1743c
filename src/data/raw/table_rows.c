/* Raw samples that are rows of a CSV or TSV file, whose columns are the values of fields. */
#include "data/raw/raw_input.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "base/text.h"
#include "kiln/files/text_records.h"

typedef struct Table {
    KilnRecords *records;
    const KilnRawField **fields; /* [n]: those that have a column */
    size_t *columns;             /* [n]: its number */
    size_t n;
    char *folder; /* that paths are relative to; NULL: the current one */
    pthread_mutex_t mutex;
    char **names; /* [rows] "reviews.csv:7", made when they are wanted, under the mutex */
} Table;

/* A sample in memory; KilnRawSample.values points to `values`. */
typedef struct Sample {
    KilnArena arena; /* has the texts */
    KilnRawValue values[];
} Sample;

/* A text where the field takes one, else a number or a path. */
static KilnStatus read_value(const Table *self, const KilnRawField *field, KilnString text,
                             KilnArena *arena, KilnRawValue *ret, KilnError *err)
{
    const char *copy = kiln_arena_printf(arena, "%.*s", (int)text.length, text.data);

    if (copy == NULL)
        return kiln_error_nomem(err, text.length);
    *ret = (KilnRawValue) { .name = field->name, .type = KILN_RAW_TEXT, .text = copy };
    if ((field->types & KILN_RAW_TEXT) != 0)
        return KILN_OK;
    if ((field->types & KILN_RAW_NUMBER) != 0) {
        ret->type = KILN_RAW_NUMBER;
        return kiln_parse_f64(copy, &ret->number, err) >= 0
                   ? KILN_OK
                   : kiln_error_prefix(err, "%s: ", field->name);
    }
    ret->type = KILN_RAW_PATH;
    if (self->folder != NULL && copy[0] != '/')
        ret->text = kiln_arena_printf(arena, "%s/%s", self->folder, copy);
    return ret->text != NULL ? KILN_OK : kiln_error_nomem(err, text.length);
}

static void free_sample(Sample *sample)
{
    if (sample == NULL)
        return;
    kiln_arena_release(&sample->arena);
    free(sample);
}

static KilnStatus read_row(const Table *self, const KilnRecord *record, Sample *sample,
                           size_t *ret_n, KilnError *err)
{
    KilnStatus status = KILN_OK;
    size_t n = 0;

    for (size_t i = 0; i < self->n && status >= 0; i++)
        if (record->fields[i].length > 0 || !self->fields[i]->optional)
            status = read_value(self, self->fields[i], record->fields[i], &sample->arena,
                                &sample->values[n++], err);
    *ret_n = n;
    return status;
}

static KilnStatus table_get(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    const Table *self = ctx;
    const size_t bytes = sizeof(Sample) + self->n * sizeof(KilnRawValue);
    Sample *sample = calloc(1, bytes);
    KilnRecord record = { 0 };
    KilnStatus status = KILN_OK;
    char place[512];
    size_t n = 0;

    if (sample == NULL)
        return kiln_error_nomem(err, bytes);
    status = kiln_records_read(self->records, index, self->columns, self->n, &record, err);
    if (status >= 0) {
        status = read_row(self, &record, sample, &n, err);
        if (status < 0)
            kiln_error_prefix(
                err, "%s: ", kiln_records_location(self->records, index, place, sizeof(place)));
    }
    kiln_record_release(&record);
    if (status < 0) {
        free_sample(sample);
        return status;
    }
    *ret = (KilnRawSample) { .values = sample->values, .n_values = n };
    return KILN_OK;
}

static void table_done(void *ctx, KilnRawSample *sample)
{
    (void)ctx;
    free_sample((Sample *)((char *)sample->values - offsetof(Sample, values)));
}

static const char *table_name(void *ctx, int64_t index)
{
    Table *self = ctx;
    char place[512];

    pthread_mutex_lock(&self->mutex);
    if (self->names[index] == NULL) {
        kiln_records_location(self->records, index, place, sizeof(place));
        const char *slash = strrchr(place, '/');
        self->names[index] = kiln_strdup(slash != NULL ? slash + 1 : place);
    }
    const char *name = self->names[index];
    pthread_mutex_unlock(&self->mutex);
    return name;
}

static void table_release(void *ctx)
{
    Table *self = ctx;

    for (int64_t i = 0; self->names != NULL && i < kiln_records_count(self->records); i++)
        free(self->names[i]);
    free(self->names);
    kiln_records_close(self->records);
    pthread_mutex_destroy(&self->mutex);
    free(self->folder);
    free(self->fields);
    free(self->columns);
    free(self);
}

/* Find the columns of fields; a required field must have one. */
static KilnStatus find_columns(Table *self, const KilnRawField *fields, size_t n, KilnError *err)
{
    self->fields = calloc(n + 1, sizeof(*self->fields));
    self->columns = calloc(n + 1, sizeof(*self->columns));
    if (self->fields == NULL || self->columns == NULL)
        return kiln_error_nomem(err, n * sizeof(*self->columns));
    for (size_t i = 0; i < n; i++) {
        const bool optional = fields[i].optional;
        const KilnStatus status = kiln_records_column(
            self->records, fields[i].name, &self->columns[self->n], optional ? NULL : err);

        if (status < 0 && !optional)
            return status;
        if (status >= 0)
            self->fields[self->n++] = &fields[i];
    }
    return KILN_OK;
}

static KilnStatus open_table(Table *self, const char *path, const KilnPoll *poll, KilnError *err)
{
    const KilnRecordsSpec spec = { .paths = &path, .n_paths = 1, .poll = poll };
    const char *slash = strrchr(path, '/');
    KilnStatus status = kiln_records_open(&spec, &self->records, err);

    if (status < 0)
        return status;
    self->names = calloc((size_t)kiln_records_count(self->records) + 1, sizeof(*self->names));
    self->folder = slash != NULL ? kiln_strdup(path) : NULL;
    if (self->names == NULL || (slash != NULL && self->folder == NULL))
        return kiln_error_nomem(err, strlen(path));
    if (slash != NULL)
        self->folder[slash - path] = '\0';
    return KILN_OK;
}

KilnStatus kiln_raw_table_open(const char *path, const KilnRawField *fields, size_t n_fields,
                               const KilnPoll *poll, KilnRawInput *ret, KilnError *err)
{
    Table *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    pthread_mutex_init(&self->mutex, NULL);
    KilnStatus status = open_table(self, path, poll, err);
    if (status >= 0)
        status = find_columns(self, fields, n_fields, err);
    if (status < 0) {
        table_release(self);
        return status;
    }
    *ret = (KilnRawInput) {
        .set = { .count = kiln_records_count(self->records),
                 .ctx = self,
                 .get = table_get,
                 .done = table_done,
                 .name = table_name },
        .release = table_release,
    };
    return KILN_OK;
}
