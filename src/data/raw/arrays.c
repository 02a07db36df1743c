/* Raw samples that are rows of the arrays in a .safetensors file. */
#include "data/raw/raw_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/raw/raw_text.h"
#include "kiln/array.h"
#include "tensor/safetensors.h"

/* The array of one field. */
typedef struct Column {
    const KilnRawField *field;
    KilnDType dtype;
    KilnShape shape; /* of a row */
    size_t bytes;    /* of a row */
    char *data;      /* owned */
} Column;

typedef struct Arrays {
    Column *columns;
    size_t n_columns, capacity;
    int64_t count;
    char (*names)[32]; /* "row 7" */
} Arrays;

/* ---- Opening ----------------------------------------------------------------------------------
 */

/* The array of a field: that of its name, or the only one where only one field is required. */
static const KilnStEntry *find_entry(const KilnSafetensors *file, const KilnRawField *fields,
                                     size_t n, size_t field)
{
    const KilnStEntry *entry = kiln_safetensors_find(file, fields[field].name);
    size_t required = 0;

    for (size_t i = 0; i < n; i++)
        required += !fields[i].optional;
    if (entry == NULL && kiln_safetensors_count(file) == 1 && required == 1 &&
        !fields[field].optional)
        return kiln_safetensors_at(file, 0);
    return entry;
}

static KilnStatus refuse(const char *path, const KilnSafetensors *file, const KilnRawField *fields,
                         size_t n, const char *missing, KilnError *err)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s: has no array \"%s\", only", path, missing);
    for (size_t i = 0; i < kiln_safetensors_count(file) && i < 8; i++)
        kiln_text_printf(&text, "%s %s", i > 0 ? "," : "", kiln_safetensors_at(file, i)->name);
    kiln_text_append(&text, kiln_safetensors_count(file) == 0 ? " nothing" : "");
    kiln_text_append(&text, "; expected arrays whose first axis is the samples: ");
    kiln_raw_fields_text(fields, n, &text);
    kiln_error_set(err, KILN_E_MISSING, "%s", text.data != NULL ? text.data : path);
    kiln_text_release(&text);
    return KILN_E_MISSING;
}

/* Read an array; its first axis must be as long as those before. */
static KilnStatus add_column(Arrays *self, const char *path, const KilnSafetensors *file,
                             const KilnRawField *field, const KilnStEntry *entry, KilnError *err)
{
    const KilnShape *shape = &entry->shape;
    char text[KILN_SHAPE_TEXT];
    KilnDType dtype;

    kiln_shape_text(shape, text, sizeof(text));
    if (!kiln_safetensors_dtype(entry, &dtype) || shape->rank < 1)
        return kiln_error_set(err, KILN_E_TYPE,
                              "%s: %s is %s %s; expected numbers with an axis for the samples",
                              path, entry->name, entry->dtype, text);
    if (self->n_columns > 0 && shape->dim[0] != self->count)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s: %s is %s, but %s has %lld samples; the first axes of all arrays "
                              "must be equal",
                              path, entry->name, text, self->columns[0].field->name,
                              (long long)self->count);
    if (!KILN_RESERVE(self->columns, self->capacity, self->n_columns + 1))
        return kiln_error_nomem(err, sizeof(Column));
    Column *column = &self->columns[self->n_columns++];
    *column = (Column) { .field = field, .dtype = dtype, .shape.rank = shape->rank - 1 };
    memcpy(column->shape.dim, shape->dim + 1, (size_t)column->shape.rank * sizeof(int64_t));
    column->bytes = (size_t)kiln_shape_count(&column->shape) * kiln_dtype_size(dtype);
    self->count = shape->dim[0];
    column->data = malloc(column->bytes * (size_t)self->count + 1);
    return column->data != NULL ? kiln_safetensors_read(file, entry, dtype, column->data, err)
                                : kiln_error_nomem(err, column->bytes * (size_t)self->count);
}

static KilnStatus read_file(Arrays *self, const char *path, const KilnRawField *fields, size_t n,
                            KilnError *err)
{
    KilnSafetensors *file = NULL;
    KilnStatus status = kiln_safetensors_open(path, &file, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        const KilnStEntry *entry = find_entry(file, fields, n, i);

        if (entry != NULL)
            status = add_column(self, path, file, &fields[i], entry, err);
        else if (!fields[i].optional)
            status = refuse(path, file, fields, n, fields[i].name, err);
    }
    kiln_safetensors_close(file);
    if (status >= 0 && self->count == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: its arrays have no samples", path);
    return status;
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

/* Element `index` of an array of numbers is a number where the field takes one. */
static KilnRawValue value_of(const Column *column, int64_t index)
{
    KilnRawValue value = {
        .name = column->field->name,
        .type = KILN_RAW_ARRAY,
        .data = column->data + (size_t)index * column->bytes,
        .dtype = column->dtype,
        .shape = column->shape,
    };

    if (column->shape.rank == 0 && (column->field->types & KILN_RAW_NUMBER) != 0) {
        value.number = kiln_raw_element(&value, 0);
        value.type = KILN_RAW_NUMBER;
    }
    return value;
}

static KilnStatus arrays_get(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err)
{
    const Arrays *self = ctx;
    KilnRawValue *values = malloc((self->n_columns + 1) * sizeof(*values));

    if (values == NULL)
        return kiln_error_nomem(err, self->n_columns * sizeof(*values));
    for (size_t i = 0; i < self->n_columns; i++)
        values[i] = value_of(&self->columns[i], index);
    *ret = (KilnRawSample) { .values = values, .n_values = self->n_columns };
    return KILN_OK;
}

static void arrays_done(void *ctx, KilnRawSample *sample)
{
    (void)ctx;
    free((void *)sample->values);
}

static const char *arrays_name(void *ctx, int64_t index)
{
    return ((const Arrays *)ctx)->names[index];
}

static void arrays_release(void *ctx)
{
    Arrays *self = ctx;

    for (size_t i = 0; i < self->n_columns; i++)
        free(self->columns[i].data);
    free(self->columns);
    free(self->names);
    free(self);
}

static KilnStatus name_rows(Arrays *self, KilnError *err)
{
    self->names = malloc((size_t)self->count * sizeof(*self->names));
    if (self->names == NULL)
        return kiln_error_nomem(err, (size_t)self->count * sizeof(*self->names));
    for (int64_t i = 0; i < self->count; i++)
        snprintf(self->names[i], sizeof(self->names[i]), "row %lld", (long long)i);
    return KILN_OK;
}

KilnStatus kiln_raw_arrays_open(const char *path, const KilnRawField *fields, size_t n_fields,
                                KilnRawInput *ret, KilnError *err)
{
    Arrays *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    KilnStatus status = read_file(self, path, fields, n_fields, err);
    if (status >= 0)
        status = name_rows(self, err);
    if (status < 0) {
        arrays_release(self);
        return status;
    }
    *ret = (KilnRawInput) {
        .set = { .count = self->count,
                 .ctx = self,
                 .get = arrays_get,
                 .done = arrays_done,
                 .name = arrays_name },
        .release = arrays_release,
    };
    return KILN_OK;
}
