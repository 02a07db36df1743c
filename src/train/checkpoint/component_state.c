/* Implements KilnState with jansson and safetensors. */
#include "train/checkpoint/component_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "kiln/array.h"

json_t *kiln_json_f64(double value)
{
    if (isfinite(value))
        return json_real(value);
    return json_pack("{s:s}", "f64", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

bool kiln_json_get_f64(const json_t *value, double *ret)
{
    const char *name;

    if (json_is_real(value)) {
        *ret = json_real_value(value);
        return true;
    }
    name = json_string_value(json_object_get(value, "f64"));
    if (name == NULL)
        return false;
    if (strcmp(name, "nan") == 0)
        *ret = (double)NAN;
    else if (strcmp(name, "inf") == 0)
        *ret = (double)INFINITY;
    else if (strcmp(name, "-inf") == 0)
        *ret = -(double)INFINITY;
    else
        return false;
    return true;
}

static void set(KilnState *state, const char *name, json_t *value)
{
    if (value == NULL || json_object_set_new(state->object, name, value) != 0)
        state->failed = true;
}

void kiln_state_set_i64(KilnState *state, const char *name, int64_t value)
{
    set(state, name, json_integer(value));
}

void kiln_state_set_f64(KilnState *state, const char *name, double value)
{
    set(state, name, kiln_json_f64(value));
}

void kiln_state_set_str(KilnState *state, const char *name, const char *value)
{
    set(state, name, value != NULL ? json_string(value) : json_null());
}

bool kiln_state_get_i64(const KilnState *state, const char *name, int64_t *ret)
{
    const json_t *value = json_object_get(state->object, name);

    if (!json_is_integer(value))
        return false;
    *ret = json_integer_value(value);
    return true;
}

bool kiln_state_get_f64(const KilnState *state, const char *name, double *ret)
{
    return kiln_json_get_f64(json_object_get(state->object, name), ret);
}

bool kiln_state_get_str(const KilnState *state, const char *name, const char **ret)
{
    const json_t *value = json_object_get(state->object, name);

    if (!json_is_string(value) && !json_is_null(value))
        return false;
    *ret = json_string_value(value);
    return true;
}

/* ---- Tensors ------------------------------------------------------------------------ */

/* The tensor's name in trainer.safetensors, owned by the caller; NULL when memory runs out. */
static char *full_name(const KilnState *state, const char *name)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "state.%s.%s", state->path, name);
    return kiln_text_take(&text);
}

void kiln_state_set_tensor(KilnState *state, const char *name, KilnDType dtype,
                           const KilnShape *shape, const void *data)
{
    const size_t bytes = (size_t)kiln_shape_count(shape) * kiln_dtype_size(dtype);
    KilnStateTensor tensor = { .dtype = dtype, .shape = *shape };

    tensor.name = full_name(state, name);
    tensor.data = malloc(bytes + 1);
    if (tensor.name == NULL || tensor.data == NULL ||
        !KILN_RESERVE(state->tensors, state->tensors_capacity, state->n_tensors + 1)) {
        free(tensor.name);
        free(tensor.data);
        state->failed = true;
        return;
    }
    if (bytes > 0)
        memcpy(tensor.data, data, bytes);
    state->tensors[state->n_tensors++] = tensor;
}

void kiln_state_release(KilnState *state)
{
    for (size_t i = 0; i < state->n_tensors; i++) {
        free(state->tensors[i].name);
        free(state->tensors[i].data);
    }
    free(state->tensors);
    state->tensors = NULL;
    state->n_tensors = state->tensors_capacity = 0;
}

static const KilnStEntry *entry_of(const KilnState *state, const char *name, KilnDType *ret)
{
    static const KilnDType all[] = { KILN_F32, KILN_F64, KILN_BF16, KILN_I32, KILN_I64, KILN_U8 };
    char *full = state->file != NULL ? full_name(state, name) : NULL;
    const KilnStEntry *entry = full != NULL ? kiln_safetensors_find(state->file, full) : NULL;

    free(full);
    for (size_t i = 0; entry != NULL && i < KILN_COUNT(all); i++)
        if (strcmp(kiln_safetensors_name(all[i]), entry->dtype) == 0) {
            *ret = all[i];
            return entry;
        }
    return NULL;
}

bool kiln_state_find_tensor(const KilnState *state, const char *name, KilnDType *ret_dtype,
                            KilnShape *ret_shape)
{
    KilnDType dtype = KILN_F32;
    const KilnStEntry *entry = entry_of(state, name, &dtype);

    if (entry == NULL)
        return false;
    *ret_dtype = dtype;
    *ret_shape = entry->shape;
    return true;
}

bool kiln_state_get_tensor(const KilnState *state, const char *name, KilnDType dtype,
                           const KilnShape *shape, void *data)
{
    KilnDType saved = KILN_F32;
    const KilnStEntry *entry = entry_of(state, name, &saved);

    return entry != NULL && saved == dtype && kiln_shape_equal(&entry->shape, shape) &&
           kiln_safetensors_read(state->file, entry, dtype, data, NULL) >= 0;
}
