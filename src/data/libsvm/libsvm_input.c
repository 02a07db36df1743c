/* Rows of a user: the lines of a file. */
#include <stdlib.h>
#include <string.h>

#include "kiln/files/libsvm.h"

/* A line, which belongs to the sample. */
static KilnStatus get(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    static const size_t column = 0;
    KilnRecord record = { 0 };
    KilnRawValue *value = calloc(1, sizeof(*value));
    KilnStatus status = value != NULL ? kiln_records_read(ctx, index, &column, 1, &record, err)
                                      : kiln_error_nomem(err, sizeof(*value));
    char *text = status >= 0 ? strndup(record.fields[0].data, record.fields[0].length) : NULL;

    if (status >= 0 && text == NULL)
        status = kiln_error_nomem(err, record.fields[0].length);
    kiln_record_release(&record);
    if (status < 0) {
        free(value);
        return status;
    }
    *value = (KilnRawValue) { .type = KILN_RAW_TEXT, .text = text };
    *ret = (KilnRawSample) { .values = value, .n_values = 1 };
    return KILN_OK;
}

static void done(void *ctx, KilnRawSample *sample)
{
    (void)ctx;
    free((char *)sample->values[0].text);
    free((void *)sample->values);
}

KilnStatus kiln_libsvm_open_input(const char *path, KilnRecords **ret_lines, KilnRawSet *ret,
                                  KilnError *err)
{
    const KilnRecordsSpec spec = { .paths = &path, .n_paths = 1, .format = KILN_RECORDS_LINES };
    KilnStatus status = kiln_records_open(&spec, ret_lines, err);

    if (status >= 0)
        *ret = (KilnRawSet) {
            .count = kiln_records_count(*ret_lines), .ctx = *ret_lines, .get = get, .done = done
        };
    return status;
}
