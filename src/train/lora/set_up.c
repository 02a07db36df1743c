/* Declares the adapters that the option lora asks for. */
#include "train/lora/adapters.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/compose.h"
#include "config/yaml/yaml_reader.h"
#include "nn/parameter_groups.h"
#include "train/checkpoint/checkpoint.h"
#include "train/report/run_messages.h"

/* ---- Patterns -------------------------------------------------------------------------------- */

typedef struct Patterns {
    const char *option;
    char **list;
    size_t n;
    bool linear; /* they select weights of linear layers, else any parameter */
} Patterns;

static bool fits(const Patterns *patterns, const KilnParam *param)
{
    for (size_t i = 0; i < patterns->n; i++)
        if (fnmatch(patterns->list[i], param->name, 0) == 0)
            return true;
    return false;
}

/* Whether the patterns may select it. */
static bool is_candidate(const Patterns *patterns, const KilnParam *param)
{
    return patterns->linear ? param->linear : param->trained && !param->is_adapter;
}

static KilnStatus no_match(const Patterns *patterns, const char *pattern, const KilnParams *params,
                           KilnError *err)
{
    const char **names = calloc(params->count + 1, sizeof(*names));
    size_t n = 0;

    if (names == NULL)
        return kiln_error_nomem(err, params->count * sizeof(*names));
    for (size_t i = 0; i < params->count; i++)
        if (is_candidate(patterns, params->items[i]))
            names[n++] = params->items[i]->name;
    const KilnStatus status = kiln_no_such_parameter(
        patterns->option, pattern, patterns->linear ? "weight of a linear layer" : "parameter",
        names, n, err);
    free(names);
    return status;
}

static KilnStatus check_patterns(const Patterns *patterns, const KilnParams *params, KilnError *err)
{
    for (size_t i = 0; i < patterns->n; i++) {
        bool any = false;

        for (size_t p = 0; p < params->count && !any; p++)
            any = is_candidate(patterns, params->items[p]) &&
                  fnmatch(patterns->list[i], params->items[p]->name, 0) == 0;
        if (!any)
            return no_match(patterns, patterns->list[i], params, err);
    }
    return KILN_OK;
}

/* ---- The source ------------------------------------------------------------------------------ */

static bool has_adapters(const char *folder)
{
    char *path = kiln_path_join(folder, KILN_ADAPTER_CONFIG);
    const bool has = path != NULL && kiln_is_file(path);

    free(path);
    return has;
}

/* Whether the checkpoint's run had the same lora.weights: then its adapters come from there. */
static bool started_from(const char *checkpoint, const char *weights)
{
    char *path = kiln_path_join(checkpoint, KILN_CHECKPOINT_CONFIG);
    KilnArena arena = { 0 };
    KilnConfigNode *root = NULL, *node = NULL;

    if (path != NULL && kiln_yaml_read_file(&arena, path, &root, NULL) >= 0 && root != NULL)
        node = kiln_node_find(root, "lora.weights");
    const bool same = node != NULL && node->kind == KILN_NODE_SCALAR && node->text != NULL &&
                      strcmp(node->text, weights) == 0;
    free(path);
    kiln_arena_release(&arena);
    return same;
}

/* The folder with adapters that a path names: itself, or a checkpoint. */
static KilnStatus find_folder(const char *weights, char **ret, KilnError *err)
{
    if (has_adapters(weights)) {
        *ret = kiln_strdup(weights);
        return *ret != NULL ? KILN_OK : kiln_error_nomem(err, strlen(weights));
    }
    KilnStatus status = kiln_checkpoint_resolve(weights, "outputs", ret, err);
    if (status >= 0 && !has_adapters(*ret))
        status = kiln_error_set(err, KILN_E_MISSING,
                                "%s has no %s: it was trained without lora; name a folder with "
                                "%s, or a run that has adapters",
                                *ret, KILN_ADAPTER_CONFIG, KILN_ADAPTER_CONFIG);
    return status;
}

static KilnStatus find_source(KilnAdapters *adapters, const KilnLoraOptions *options,
                              const char *checkpoint, KilnError *err)
{
    adapters->is_saved = checkpoint != NULL && has_adapters(checkpoint);
    if (options->weights == NULL)
        return KILN_OK;
    if (options->targets_count > 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "lora.targets: lora.weights says which layers have adapters; remove "
                              "one of them");
    if (adapters->is_saved && !started_from(checkpoint, options->weights))
        return kiln_error_set(err, KILN_E_RANGE,
                              "lora.weights: %s has adapters of its own; give those of %s to a "
                              "checkpoint of the base model",
                              kiln_path_near(checkpoint), options->weights);
    KilnStatus status = find_folder(adapters->is_saved ? checkpoint : options->weights,
                                    &adapters->source, err);
    if (status < 0)
        (void)kiln_error_prefix(err, "lora.weights: ");
    return status;
}

/* ---- Declaring ------------------------------------------------------------------------------- */

/* Rank, alpha and dropout: the options', or else the folder's, or else peft's defaults. */
static KilnStatus read_spec(const KilnAdapters *adapters, const KilnLoraOptions *options,
                            KilnAdapterConfig *ret, KilnError *err)
{
    KilnAdapterConfig config = { .r = 8, .alpha = 8.0 };
    KilnStatus status = adapters->source != NULL
                            ? kiln_adapter_config_read(adapters->source, &config, err)
                            : KILN_OK;

    if (status < 0)
        return status;
    if (adapters->source != NULL && options->r != NULL && *options->r != config.r)
        return kiln_error_set(err, KILN_E_RANGE,
                              "lora.r: the adapters in %s have rank %lld, got %lld; remove lora.r, "
                              "or train new ones without lora.weights",
                              kiln_path_near(adapters->source), (long long)config.r,
                              (long long)*options->r);
    config.r = options->r != NULL ? *options->r : config.r;
    config.alpha = options->alpha != NULL ? *options->alpha : config.alpha;
    config.dropout = options->dropout;
    *ret = config;
    return KILN_OK;
}

static KilnStatus declare(KilnAdapters *adapters, KilnParam *weight, KilnLoraSpec spec,
                          KilnError *err)
{
    const int64_t out = weight->shape.dim[0], in = weight->shape.dim[1];

    if (spec.r > in || spec.r > out)
        return kiln_error_set(err, KILN_E_RANGE,
                              "lora.r: %s is [%lld, %lld], so an adapter of rank %lld is larger "
                              "than the weight; expected at most %lld",
                              weight->name, (long long)out, (long long)in, (long long)spec.r,
                              (long long)(in < out ? in : out));
    adapters->layers++;
    return kiln_lora_declare(weight, spec, err);
}

/* Declare the adapters that the source has. */
static KilnStatus declare_source(KilnAdapters *adapters, KilnParams *params, KilnLoraSpec spec,
                                 const KilnSafetensors *file, KilnError *err)
{
    const size_t n = params->count;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++) {
        KilnAdapterPart parts[KILN_ADAPTER_PARTS];

        if (params->items[i]->linear && kiln_adapter_find(file, params->items[i], parts) > 0)
            status = declare(adapters, params->items[i], spec, err);
    }
    if (status >= 0 && adapters->layers == 0)
        status = kiln_error_set(
            err, KILN_E_FORMAT,
            "lora.weights: %s holds adapters of another model: it has %s, and "
            "no linear layer here has that name",
            kiln_path_near(adapters->source),
            kiln_safetensors_count(file) > 0 ? kiln_safetensors_at(file, 0)->name : "no tensors");
    return status;
}

static KilnStatus declare_targets(KilnAdapters *adapters, KilnParams *params, KilnLoraSpec spec,
                                  const Patterns *targets, KilnError *err)
{
    const size_t n = params->count;
    KilnStatus status = check_patterns(targets, params, err);

    for (size_t i = 0; i < n && status >= 0; i++)
        if (params->items[i]->linear && fits(targets, params->items[i]))
            status = declare(adapters, params->items[i], spec, err);
    return status;
}

/* What trains besides adapters. */
typedef struct Trains {
    const Patterns *patterns;
    const KilnSafetensors *file; /* NULL: none */
} Trains;

static bool trains(void *ctx, const KilnParam *param)
{
    const Trains *which = ctx;

    return fits(which->patterns, param) ||
           (which->file != NULL && kiln_adapter_find_whole(which->file, param) != NULL);
}

static KilnStatus set_up(KilnAdapters *adapters, const KilnLoraOptions *options, KilnParams *params,
                         KilnError *err)
{
    const Patterns targets = { "lora.targets", options->targets, options->targets_count, true };
    const Patterns train = { "lora.train", options->train, options->train_count, false };
    KilnAdapterConfig config;
    KilnSafetensors *file = NULL;
    KilnStatus status = read_spec(adapters, options, &config, err);

    if (status >= 0 && adapters->source != NULL) {
        char *path = kiln_path_join(adapters->source, KILN_ADAPTER_MODEL);

        status = path != NULL ? kiln_safetensors_open(path, &file, err) : kiln_error_nomem(err, 1);
        free(path);
    }
    if (status < 0)
        return status;
    const KilnLoraSpec spec = { config.r, config.alpha / (double)config.r, config.dropout };
    Trains which = { &train, file };
    adapters->r = config.r;
    status = check_patterns(&train, params, err);
    if (status >= 0)
        status = file != NULL ? declare_source(adapters, params, spec, file, err)
                              : declare_targets(adapters, params, spec, &targets, err);
    if (status >= 0) {
        kiln_params_fix(params, trains, &which);
        status = kiln_adapters_describe(adapters, params, config, err);
    }
    kiln_safetensors_close(file);
    return status;
}

KilnStatus kiln_adapters_set_up(const KilnLoraOptions *options, const char *checkpoint,
                                KilnParams *params, KilnAdapters **ret, KilnError *err)
{
    if (options->targets_count == 0 && options->weights == NULL) {
        if (options->train_count == 0 && options->r == NULL && options->alpha == NULL)
            return KILN_OK;
        return kiln_error_set(err, KILN_E_MISSING,
                              "lora.targets: expected patterns of the weights that get adapters, "
                              "such as ['*.qkv.weight']; the list is empty");
    }
    KilnAdapters *adapters = calloc(1, sizeof(*adapters));
    if (adapters == NULL)
        return kiln_error_nomem(err, sizeof(*adapters));
    KilnStatus status = find_source(adapters, options, checkpoint, err);
    if (status >= 0)
        status = set_up(adapters, options, params, err);
    if (status < 0)
        kiln_adapters_free(adapters);
    else
        *ret = adapters;
    return status;
}

KilnStatus kiln_adapters_check_used(const KilnParams *params, KilnError *err)
{
    for (size_t i = 0; i < params->count; i++)
        if (params->items[i]->lora != NULL && !params->items[i]->lora->used)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "lora.targets: the model computes with %s itself and would "
                                  "ignore its adapter; leave it out (a model of yours calls "
                                  "kiln_nn_linear or kiln_nn_linear_rows)",
                                  params->items[i]->name);
    return KILN_OK;
}

void kiln_adapters_free(KilnAdapters *adapters)
{
    if (adapters == NULL)
        return;
    free(adapters->tensors);
    free(adapters->config);
    free(adapters->source);
    kiln_arena_release(&adapters->arena);
    free(adapters);
}
