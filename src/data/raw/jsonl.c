/* Raw samples that are JSON objects whose members are the values of fields, and .jsonl files of
 * them. */
#include "data/raw/raw_input.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/text.h"
#include "data/raw/line_index.h"
#include "data/raw/raw_text.h"

typedef struct Jsonl {
    KilnLineIndex lines;
    KilnRawJson json;
    char *folder;
} Jsonl;

/* A sample in memory; KilnRawSample.values points to `values`. */
typedef struct Sample {
    json_t *root; /* owns the texts */
    KilnArena arena;
    KilnRawValue values[];
} Sample;

/* ---- Arrays --------------------------------------------------------------------------------- */

/* A list of numbers, or of lists of one length, while it is read. */
typedef struct Numbers {
    KilnShape shape;
    int64_t n;
    bool integers; /* all fit i32 */
    double *values;
} Numbers;

/* Take the shape of the first element of each list. */
static bool find_shape(const json_t *list, KilnShape *shape)
{
    while (json_is_array(list)) {
        if (shape->rank == KILN_MAX_RANK)
            return false;
        shape->dim[shape->rank++] = (int64_t)json_array_size(list);
        list = json_array_get(list, 0);
    }
    return true;
}

/* Append the numbers of `list`, whose shape begins at `axis`; false: it has another shape, or an
 * element is no number. */
static bool append_numbers(const json_t *list, int axis, Numbers *ret)
{
    if (axis == ret->shape.rank) {
        const double value = json_number_value(list);

        if (!json_is_number(list))
            return false;
        ret->integers = ret->integers && json_is_integer(list) && value >= (double)INT32_MIN &&
                        value <= (double)INT32_MAX;
        ret->values[ret->n++] = value;
        return true;
    }
    if (!json_is_array(list) || (int64_t)json_array_size(list) != ret->shape.dim[axis])
        return false;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!append_numbers(json_array_get(list, i), axis + 1, ret))
            return false;
    return true;
}

/* Store the numbers as i32 or f32. */
static const void *store(KilnArena *arena, const Numbers *numbers)
{
    int32_t *integers = kiln_arena_alloc(arena, (size_t)numbers->n * sizeof(*integers) + 1);
    float *floats = (float *)(void *)integers;

    for (int64_t i = 0; i < numbers->n && integers != NULL; i++) {
        if (numbers->integers)
            integers[i] = (int32_t)numbers->values[i];
        else
            floats[i] = (float)numbers->values[i];
    }
    return integers;
}

static KilnStatus read_list(const json_t *list, KilnArena *arena, KilnRawValue *ret, KilnError *err)
{
    Numbers numbers = { .integers = true };
    const bool good = find_shape(list, &numbers.shape);
    const int64_t count = good ? kiln_shape_count(&numbers.shape) : -1;

    if (count >= 0)
        numbers.values = malloc((size_t)count * sizeof(*numbers.values) + 1);
    if (count >= 0 && numbers.values == NULL)
        return kiln_error_nomem(err, (size_t)count * sizeof(*numbers.values));
    if (count < 0 || !append_numbers(list, 0, &numbers)) {
        free(numbers.values);
        return kiln_error_set(err, KILN_E_TYPE,
                              "%s: expected a list of numbers, or of lists of one length, at most "
                              "%d deep",
                              ret->name, KILN_MAX_RANK);
    }
    ret->type = KILN_RAW_ARRAY;
    ret->dtype = numbers.integers ? KILN_I32 : KILN_F32;
    ret->shape = numbers.shape;
    ret->data = store(arena, &numbers);
    free(numbers.values);
    return ret->data != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)count * sizeof(float));
}

/* ---- Values --------------------------------------------------------------------------------- */

/* A string is a text where the field takes one, else a path, relative to the file's folder. */
static KilnStatus read_string(const KilnRawJson *self, const KilnRawField *field, const char *text,
                              KilnArena *arena, KilnRawValue *ret, KilnError *err)
{
    const bool is_path = (field->types & KILN_RAW_TEXT) == 0 && (field->types & KILN_RAW_PATH) != 0;

    ret->type = is_path ? KILN_RAW_PATH : KILN_RAW_TEXT;
    ret->text = is_path && self->folder != NULL && text[0] != '/'
                    ? kiln_arena_printf(arena, "%s/%s", self->folder, text)
                    : text;
    return ret->text != NULL ? KILN_OK : kiln_error_nomem(err, strlen(text));
}

static KilnStatus read_value(const KilnRawJson *self, const KilnRawField *field, const json_t *json,
                             KilnArena *arena, KilnRawValue *ret, KilnError *err)
{
    *ret = (KilnRawValue) { .name = field->name };
    if (json_is_string(json))
        return read_string(self, field, json_string_value(json), arena, ret, err);
    if (json_is_array(json))
        return read_list(json, arena, ret, err);
    if (json_is_object(json)) {
        KilnText types = { 0 };

        kiln_raw_types_text(field->types, &types);
        kiln_error_set(err, KILN_E_TYPE, "%s: a JSON object; expected %s", field->name,
                       types.data != NULL ? types.data : "a value");
        kiln_text_release(&types);
        return KILN_E_TYPE;
    }
    ret->type = KILN_RAW_NUMBER;
    ret->number = json_is_number(json) ? json_number_value(json) : json_is_true(json) ? 1.0 : 0.0;
    return KILN_OK;
}

/* Read the members that are fields; others, and those that are null, are left out. */
static KilnStatus read_members(const KilnRawJson *self, Sample *sample, size_t *ret_n,
                               KilnError *err)
{
    KilnStatus status = KILN_OK;
    size_t n = 0;

    for (size_t i = 0; i < self->n_fields && status >= 0; i++) {
        const json_t *json = json_object_get(sample->root, self->fields[i].name);

        if (json != NULL && !json_is_null(json))
            status = read_value(self, &self->fields[i], json, &sample->arena, &sample->values[n++],
                                err);
    }
    *ret_n = n;
    return status;
}

/* ---- Samples -------------------------------------------------------------------------------- */

static void free_sample(Sample *sample)
{
    if (sample == NULL)
        return;
    json_decref(sample->root);
    kiln_arena_release(&sample->arena);
    free(sample);
}

KilnStatus kiln_raw_json_parse(const KilnRawJson *self, const char *text, size_t length,
                               KilnRawSample *ret, KilnError *err)
{
    const size_t bytes = sizeof(Sample) + self->n_fields * sizeof(KilnRawValue);
    Sample *sample = calloc(1, bytes);
    KilnStatus status = KILN_OK;
    json_error_t why;
    size_t n = 0;

    if (sample == NULL)
        return kiln_error_nomem(err, bytes);
    sample->root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (sample->root == NULL)
        status = kiln_error_set(err, KILN_E_FORMAT, "not JSON: %s, in column %d", why.text,
                                why.column);
    else if (!json_is_object(sample->root))
        status = kiln_error_set(err, KILN_E_FORMAT, "not a JSON object; expected {\"%s\": ...}",
                                self->n_fields > 0 ? self->fields[0].name : "");
    if (status >= 0)
        status = read_members(self, sample, &n, err);
    if (status < 0) {
        free_sample(sample);
        return status;
    }
    *ret = (KilnRawSample) { .values = sample->values, .n_values = n };
    return KILN_OK;
}

void kiln_raw_json_release(KilnRawSample *sample)
{
    free_sample((Sample *)((char *)sample->values - offsetof(Sample, values)));
}

static KilnStatus jsonl_get(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    const Jsonl *self = ctx;
    const char *name = self->lines.lines[index].name;
    char *text = NULL;
    size_t length = 0;
    KilnStatus status = kiln_line_index_read(&self->lines, index, &text, &length, err);

    if (status >= 0)
        status = kiln_raw_json_parse(&self->json, text, length, ret, err);
    free(text);
    if (status < 0 && err != NULL && strstr(err->text, name) == NULL)
        (void)kiln_error_prefix(err, "%s: ", name);
    return status;
}

static void jsonl_done(void *ctx, KilnRawSample *sample)
{
    (void)ctx;
    kiln_raw_json_release(sample);
}

static const char *jsonl_name(void *ctx, int64_t index)
{
    return ((const Jsonl *)ctx)->lines.lines[index].name;
}

static void jsonl_release(void *ctx)
{
    Jsonl *self = ctx;

    kiln_line_index_close(&self->lines);
    free(self->folder);
    free(self);
}

KilnStatus kiln_raw_jsonl_open(const char *path, const KilnRawField *fields, size_t n_fields,
                               const KilnPoll *poll, KilnRawInput *ret, KilnError *err)
{
    Jsonl *self = calloc(1, sizeof(*self));
    const char *slash = strrchr(path, '/');

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    self->json = (KilnRawJson) { .fields = fields, .n_fields = n_fields };
    KilnStatus status = kiln_line_index_open(&self->lines, path, poll, err);
    if (status >= 0 && slash != NULL) {
        self->folder = kiln_strdup(path);
        if (self->folder == NULL)
            status = kiln_error_nomem(err, strlen(path));
        else
            self->folder[slash - path] = '\0';
        self->json.folder = self->folder;
    }
    if (status < 0) {
        jsonl_release(self);
        return status;
    }
    *ret = (KilnRawInput) {
        .set = { .count = (int64_t)self->lines.count,
                 .ctx = self,
                 .get = jsonl_get,
                 .done = jsonl_done,
                 .name = jsonl_name },
        .release = jsonl_release,
    };
    return KILN_OK;
}
