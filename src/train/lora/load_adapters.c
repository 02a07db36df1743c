/* Finds and loads the adapters of a folder in peft's format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "train/checkpoint/read_tensor.h"
#include "train/lora/adapters.h"

enum { LONGEST_NAME = 320 };

/* ---- Finding --------------------------------------------------------------------------------- */

static const KilnStEntry *find(const KilnSafetensors *file, const char *layer, size_t length,
                               const char *part)
{
    char name[2 * LONGEST_NAME];

    snprintf(name, sizeof(name), "base_model.model.%.*s%s%s", (int)length, layer,
             length > 0 ? "." : "", part);
    return kiln_safetensors_find(file, name);
}

static bool find_layer(const KilnSafetensors *file, const char *layer, size_t length,
                       KilnAdapterPart *ret)
{
    ret->a = find(file, layer, length, "lora_A.weight");
    ret->b = find(file, layer, length, "lora_B.weight");
    return ret->a != NULL && ret->b != NULL;
}

size_t kiln_adapter_find(const KilnSafetensors *file, const KilnParam *weight,
                         KilnAdapterPart ret[KILN_ADAPTER_PARTS])
{
    const int64_t rows = weight->shape.dim[0];
    char layer[LONGEST_NAME];
    int64_t filled = 0;
    size_t n = 0;

    kiln_lora_layer(weight, layer, sizeof(layer));
    ret[0] = (KilnAdapterPart) { .rows = rows };
    if (find_layer(file, layer, strlen(layer), &ret[0]))
        return 1;
    for (const KilnForeignName *at = weight->foreign; at != NULL && n < KILN_ADAPTER_PARTS;
         at = at->next) {
        const char *dot = strrchr(at->name, '.');

        ret[n] = (KilnAdapterPart) { .row = at->part.row, .rows = at->part.rows };
        if (at->part.rows == 0 || at->part.row != filled || dot == NULL ||
            !find_layer(file, at->name, (size_t)(dot - at->name), &ret[n]))
            continue;
        n++;
        filled += at->part.rows;
    }
    return filled == rows ? n : 0;
}

const KilnStEntry *kiln_adapter_find_whole(const KilnSafetensors *file, const KilnParam *param)
{
    const KilnStEntry *entry = find(file, "", 0, param->name);

    for (const KilnForeignName *at = param->foreign; at != NULL && entry == NULL; at = at->next)
        if (at->part.rows == param->shape.dim[0] && !at->part.transposed)
            entry = find(file, "", 0, at->name);
    return entry;
}

/* ---- Loading --------------------------------------------------------------------------------- */

typedef struct Load {
    const KilnSafetensors *file;
    const char *path;
    size_t loaded; /* tensors of the file */
} Load;

static KilnStatus load_rows(Load *load, const KilnStEntry *entry, KilnParam *param, int64_t row,
                            int64_t rows, KilnError *err)
{
    char here[KILN_SHAPE_TEXT], there[KILN_SHAPE_TEXT];
    KilnShape want = param->shape;
    KilnLocation to = kiln_param_location(param);

    if (want.rank > 0)
        want.dim[0] = rows;
    if (!kiln_shape_equal(&want, &entry->shape))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %s has shape %s, and %s of this network needs %s: it is of "
                              "another model",
                              load->path, entry->name,
                              kiln_shape_text(&entry->shape, there, sizeof(there)), param->name,
                              kiln_shape_text(&want, here, sizeof(here)));
    if (row > 0)
        to.offset += (size_t)(row * (param->count / param->shape.dim[0])) *
                     kiln_dtype_size(kiln_param_dtype(param));
    load->loaded++;
    return kiln_read_tensor(load->file, entry, kiln_param_dtype(param), to, err);
}

/* Parts of one layer share its A. */
static KilnStatus check_same_a(const Load *load, const KilnAdapterPart *parts, size_t n,
                               KilnError *err)
{
    uint64_t first = 0, other = 0;

    for (size_t i = 1; i < n; i++)
        if (!kiln_safetensors_hash(load->file, parts[0].a, &first) ||
            !kiln_safetensors_hash(load->file, parts[i].a, &other) || first != other)
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: %s and %s differ, but both are of one layer here, whose "
                                  "parts share A; merge the adapter into its model with peft and "
                                  "give that as weights",
                                  load->path, parts[0].a->name, parts[i].a->name);
    return KILN_OK;
}

static KilnStatus load_adapter(Load *load, const KilnParam *weight, KilnError *err)
{
    KilnAdapterPart parts[KILN_ADAPTER_PARTS];
    const size_t n = kiln_adapter_find(load->file, weight, parts);
    KilnParam *a = weight->lora->a, *b = weight->lora->b;
    KilnStatus status = check_same_a(load, parts, n, err);

    for (size_t i = 0; i < n && status >= 0; i++) {
        status = load_rows(load, parts[i].a, a, 0, a->shape.dim[0], err);
        if (status >= 0)
            status = load_rows(load, parts[i].b, b, parts[i].row, parts[i].rows, err);
    }
    return status;
}

static KilnStatus load_param(Load *load, KilnParam *param, KilnError *err)
{
    const KilnStEntry *entry;

    if (param->lora != NULL) {
        KilnStatus status = load_adapter(load, param, err);

        if (status < 0)
            return status;
    }
    if (!param->trained || param->is_adapter)
        return KILN_OK;
    entry = kiln_adapter_find_whole(load->file, param);
    return entry == NULL ? KILN_OK
                         : load_rows(load, entry, param, 0,
                                     param->shape.rank > 0 ? param->shape.dim[0] : 1, err);
}

KilnStatus kiln_adapters_load(const KilnAdapters *adapters, KilnParams *params, KilnError *err)
{
    char *path = kiln_path_join(adapters->source, KILN_ADAPTER_MODEL);
    KilnSafetensors *file = NULL;
    KilnStatus status = path != NULL ? kiln_safetensors_open(path, &file, err)
                                     : kiln_error_nomem(err, 1);
    Load load = { .file = file, .path = path };

    for (size_t i = 0; i < params->count && status >= 0; i++)
        status = load_param(&load, params->items[i], err);
    if (status >= 0 && load.loaded < kiln_safetensors_count(file))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: %zu of its %zu tensors fit this network, so it is of another "
                                "model",
                                path, load.loaded, kiln_safetensors_count(file));
    if (status < 0)
        (void)kiln_error_prefix(err, "lora.weights: ");
    kiln_safetensors_close(file);
    free(path);
    return status;
}
