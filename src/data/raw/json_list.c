/* Raw samples in a file that is one JSON list of objects. */
#include "data/raw/raw_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/records/row_scan.h"

typedef struct List {
    KilnMappedFile file;
    KilnRowIndex items;
    char **names; /* of the samples: "questions.json:7" */
    KilnRawJson json;
    char *folder;
} List;

static KilnStatus get(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    const List *self = ctx;
    const int64_t *starts = self->items.starts;
    const KilnString row = { self->file.data + starts[index],
                             (size_t)(starts[index + 1] - starts[index]) };
    const KilnString text = kiln_item_text(row);
    const KilnStatus status = kiln_raw_json_parse(&self->json, text.data, text.length, ret, err);

    return status >= 0 ? status : kiln_error_prefix(err, "%s: ", self->names[index]);
}

static void done(void *ctx, KilnRawSample *sample)
{
    (void)ctx;
    kiln_raw_json_release(sample);
}

static const char *name(void *ctx, int64_t index)
{
    return ((const List *)ctx)->names[index];
}

static void release(void *ctx)
{
    List *self = ctx;

    for (int64_t i = 0; i < self->items.count && self->names != NULL; i++)
        free(self->names[i]);
    free(self->names);
    free(self->folder);
    kiln_row_index_release(&self->items);
    kiln_mapped_file_close(&self->file);
    free(self);
}

/* The names of the samples, and the folder that paths are relative to. */
static KilnStatus add_names(List *self, const char *path, KilnError *err)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    const size_t room = strlen(base) + 24;

    self->names = calloc((size_t)self->items.count + 1, sizeof(*self->names));
    self->folder = slash != NULL ? kiln_strdup(path) : NULL;
    if (self->names == NULL || (slash != NULL && self->folder == NULL))
        return kiln_error_nomem(err, strlen(path));
    if (slash != NULL)
        self->folder[slash - path] = '\0';
    self->json.folder = self->folder;
    for (int64_t i = 0; i < self->items.count; i++) {
        if ((self->names[i] = malloc(room)) == NULL)
            return kiln_error_nomem(err, room);
        snprintf(self->names[i], room, "%s:%lld", base,
                 (long long)kiln_row_index_line(&self->items, &self->file, i));
    }
    return KILN_OK;
}

KilnStatus kiln_raw_json_list_open(const char *path, const KilnRawField *fields, size_t n_fields,
                                   const KilnPoll *poll, bool *ret_list, KilnRawInput *ret,
                                   KilnError *err)
{
    List *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    self->json = (KilnRawJson) { .fields = fields, .n_fields = n_fields };
    KilnStatus status = kiln_mapped_file_open(&self->file, path, NULL, poll, err);
    *ret_list = status >= 0 && kiln_is_json_list(&self->file);
    if (*ret_list)
        status = kiln_row_index_open(&self->items, &self->file, KILN_ROW_ITEM, '\0', NULL, poll,
                                     err);
    if (*ret_list && status >= 0)
        status = add_names(self, path, err);
    if (*ret_list && status >= 0)
        *ret = (KilnRawInput) { .set = { .count = self->items.count,
                                         .ctx = self,
                                         .get = get,
                                         .done = done,
                                         .name = name },
                                .release = release };
    else
        release(self);
    return status;
}
