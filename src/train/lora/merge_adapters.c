/* Merges the adapters of a checkpoint into its weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/lora/adapters.h"

static const char a_end[] = "lora_A.weight", b_end[] = "lora_B.weight";

/* The length of a layer's path, with its dot, if the tensor is its A or B; else -1. */
static long layer_length(const char *name, const char *end)
{
    const size_t length = strlen(name), n = strlen(end);

    return length >= n && strcmp(name + length - n, end) == 0 ? (long)(length - n) : -1;
}

/* The tensors to write. */
typedef struct Merge {
    const KilnSafetensors *file;
    KilnStView *views;
    void **data; /* of each view, owned */
    size_t n;
    double scale;
    size_t layers; /* merged */
} Merge;

/* The weight that the adapter of a layer changes: kiln_lora_layer() the other way round. */
static KilnStView *find_weight(const Merge *merge, const char *name, size_t layer)
{
    char names[3][320];

    snprintf(names[0], sizeof(names[0]), "%.*sweight", (int)layer, name);
    snprintf(names[1], sizeof(names[1]), "%.*sin_proj_weight", (int)layer, name);
    snprintf(names[2], sizeof(names[2]), "%.*s_weight", (int)(layer > 0 ? layer - 1 : 0), name);
    for (size_t k = 0; k < KILN_COUNT(names); k++)
        for (size_t i = 0; i < merge->n; i++)
            if (strcmp(merge->views[i].name, names[k]) == 0)
                return &merge->views[i];
    return NULL;
}

static KilnStatus read_f64(const KilnSafetensors *file, const KilnStEntry *entry, double **ret,
                           KilnError *err)
{
    const size_t bytes = (size_t)kiln_shape_count(&entry->shape) * sizeof(double);

    *ret = malloc(bytes);
    return *ret != NULL ? kiln_safetensors_read(file, entry, KILN_F64, *ret, err)
                        : kiln_error_nomem(err, bytes);
}

/* w += scale * b a, rounded once to the weight's type. */
static void add_product(KilnStView *view, void *data, const double *a, const double *b, int64_t r,
                        double scale)
{
    const int64_t out = view->shape.dim[0], in = view->shape.dim[1];
    float *f32 = data;
    double *f64 = data;

    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            double sum = 0.0;

            for (int64_t k = 0; k < r; k++)
                sum += b[o * r + k] * a[k * in + i];
            if (view->dtype == KILN_F64)
                f64[o * in + i] += scale * sum;
            else
                f32[o * in + i] = (float)((double)f32[o * in + i] + scale * sum);
        }
}

static KilnStatus merge_layer(Merge *merge, const KilnStEntry *a, size_t layer, KilnError *err)
{
    char name[320];
    double *a_values = NULL, *b_values = NULL;
    KilnStView *weight = find_weight(merge, a->name, layer);

    snprintf(name, sizeof(name), "%.*s%s", (int)layer, a->name, b_end);
    const KilnStEntry *b = kiln_safetensors_find(merge->file, name);
    const bool fits = weight != NULL && b != NULL && weight->shape.rank == 2 &&
                      a->shape.rank == 2 && b->shape.rank == 2 &&
                      a->shape.dim[1] == weight->shape.dim[1] &&
                      b->shape.dim[0] == weight->shape.dim[0] && a->shape.dim[0] == b->shape.dim[1];
    if (!fits)
        return kiln_error_set(err, KILN_E_FORMAT, "%s has no weight and %s of fitting shapes",
                              a->name, name);
    KilnStatus status = read_f64(merge->file, a, &a_values, err);
    if (status >= 0)
        status = read_f64(merge->file, b, &b_values, err);
    if (status >= 0)
        add_product(weight, merge->data[weight - merge->views], a_values, b_values, a->shape.dim[0],
                    merge->scale);
    merge->layers++;
    free(a_values);
    free(b_values);
    return status;
}

/* Read all tensors but adapters. Floats become f32, or f64 where the file has it. */
static KilnStatus read_weights(Merge *merge, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < kiln_safetensors_count(merge->file) && status >= 0; i++) {
        const KilnStEntry *entry = kiln_safetensors_at(merge->file, i);
        KilnStView *view = &merge->views[merge->n];
        KilnDType dtype;

        if (layer_length(entry->name, a_end) >= 0 || layer_length(entry->name, b_end) >= 0)
            continue;
        if (!kiln_safetensors_dtype(entry, &dtype))
            return kiln_error_set(err, KILN_E_FORMAT, "%s has type %s, which kiln does not support",
                                  entry->name, entry->dtype);
        if (strcmp(entry->dtype, "F64") == 0)
            dtype = KILN_F64;
        const size_t bytes = (size_t)kiln_shape_count(&entry->shape) * kiln_dtype_size(dtype);
        void *data = malloc(bytes);
        if (data == NULL)
            return kiln_error_nomem(err, bytes);
        merge->data[merge->n++] = data;
        *view = (KilnStView) {
            .name = entry->name, .dtype = dtype, .shape = entry->shape, .data = data
        };
        status = kiln_safetensors_read(merge->file, entry, dtype, data, err);
    }
    return status;
}

static KilnStatus merge_file(Merge *merge, const char *output, KilnError *err)
{
    const size_t n = kiln_safetensors_count(merge->file);

    merge->views = calloc(n + 1, sizeof(*merge->views));
    merge->data = calloc(n + 1, sizeof(*merge->data));
    KilnStatus status = merge->views != NULL && merge->data != NULL ? read_weights(merge, err)
                                                                    : kiln_error_nomem(err, n);
    for (size_t i = 0; i < n && status >= 0; i++) {
        const KilnStEntry *entry = kiln_safetensors_at(merge->file, i);
        const long layer = layer_length(entry->name, a_end);

        if (layer >= 0)
            status = merge_layer(merge, entry, (size_t)layer, err);
    }
    if (status >= 0)
        status = kiln_safetensors_write(output, merge->views, merge->n, NULL, 0, err);
    for (size_t i = 0; merge->data != NULL && i < merge->n; i++)
        free(merge->data[i]);
    free(merge->views);
    free(merge->data);
    return status;
}

KilnStatus kiln_adapters_merge(const char *path, const char *output, size_t *ret_layers,
                               KilnError *err)
{
    KilnCheckpoint checkpoint = { 0 };
    KilnSafetensors *file = NULL;
    KilnAdapterConfig config = { 0 };
    char *model = NULL, *adapter = kiln_path_join(path, KILN_ADAPTER_CONFIG);
    KilnStatus status = adapter != NULL ? kiln_checkpoint_open(path, false, &checkpoint, err)
                                        : kiln_error_nomem(err, strlen(path));

    if (status >= 0 && !kiln_is_file(adapter))
        status = kiln_error_set(err, KILN_E_MISSING,
                                "%s has no adapters: its run had no lora.targets", path);
    if (status >= 0)
        status = kiln_adapter_config_read(path, &config, err);
    if (status >= 0)
        status = kiln_checkpoint_tensors(&checkpoint, KILN_CHECKPOINT_MODEL, &file, &model, err);
    Merge merge = { .file = file, .scale = config.alpha / (double)(config.r > 0 ? config.r : 1) };
    if (status >= 0)
        status = merge_file(&merge, output, err);
    *ret_layers = merge.layers;
    kiln_safetensors_close(file);
    kiln_checkpoint_close(&checkpoint);
    free(model);
    free(adapter);
    return status;
}
