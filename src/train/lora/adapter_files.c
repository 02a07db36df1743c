/* adapter_config.json and adapter_model.safetensors, as peft writes and reads them. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "train/lora/adapters.h"

#define PREFIX "base_model.model."

/* ---- Reading the config ---------------------------------------------------------------------- */

static bool is_off(const json_t *value)
{
    return value == NULL || json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && json_object_size(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_string(value) && strcmp(json_string_value(value), "none") == 0);
}

static KilnStatus check_config(const json_t *config, const char *path, KilnError *err)
{
    static const char *const unsupported[] = {
        "use_dora",
        "use_rslora",
        "use_qalora",
        "use_bdlora",
        "bias",
        "lora_bias",
        "rank_pattern",
        "alpha_pattern",
        "megatron_config",
        "layer_replication",
        "target_parameters",
        "trainable_token_indices",
        "alora_invocation_tokens",
    };
    const char *type = json_string_value(json_object_get(config, "peft_type"));

    if (type == NULL || strcmp(type, "LORA") != 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: peft_type must be LORA, got %s", path,
                              type != NULL ? type : "none");
    for (size_t i = 0; i < KILN_COUNT(unsupported); i++)
        if (!is_off(json_object_get(config, unsupported[i])))
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: %s is not supported; merge the adapter into its model with "
                                  "peft and give that as weights",
                                  path, unsupported[i]);
    return KILN_OK;
}

KilnStatus kiln_adapter_config_read(const char *folder, KilnAdapterConfig *ret, KilnError *err)
{
    char *path = kiln_path_join(folder, KILN_ADAPTER_CONFIG);
    json_t *config = NULL;
    KilnStatus status = path != NULL ? kiln_json_read(path, &config, err)
                                     : kiln_error_nomem(err, strlen(folder));

    if (status >= 0)
        status = check_config(config, path, err);
    const json_t *r = json_object_get(config, "r"), *alpha = json_object_get(config, "lora_alpha");
    if (status >= 0 && (!json_is_integer(r) || json_integer_value(r) < 1 || !json_is_number(alpha)))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: r must be a positive integer and lora_alpha a number", path);
    if (status >= 0)
        *ret = (KilnAdapterConfig) {
            .r = json_integer_value(r),
            .alpha = json_number_value(alpha),
            .dropout = json_number_value(json_object_get(config, "lora_dropout")),
        };
    json_decref(config);
    free(path);
    return status;
}

/* ---- Names ----------------------------------------------------------------------------------- */

typedef struct Description {
    KilnAdapters *adapters;
    json_t *targets, *saved; /* names of modules */
    bool transposed;
    bool failed; /* memory is out */
} Description;

static void add_tensor(Description *to, const KilnParam *param, int64_t row, int64_t rows,
                       const char *name)
{
    KilnAdapters *adapters = to->adapters;

    to->failed = to->failed || name == NULL;
    adapters->tensors[adapters->n_tensors++] =
        (KilnAdapterTensor) { .name = name, .param = param->index, .row = row, .rows = rows };
}

/* The tensors of another program that together are the parameter, by ascending rows; 0: none are.
 */
static size_t foreign_parts(const KilnParam *param, const KilnForeignName *ret[KILN_ADAPTER_PARTS])
{
    int64_t filled = 0;
    size_t n = 0;

    for (const KilnForeignName *at = param->foreign; at != NULL && n < KILN_ADAPTER_PARTS;
         at = at->next) {
        if (at->part.rows == 0 || at->part.row != filled)
            continue;
        ret[n++] = at;
        filled += at->part.rows;
        if (filled == param->shape.dim[0])
            return n;
    }
    return 0;
}

/* The name of the module that a tensor "MODULE.weight" belongs to. */
static char *module_of(KilnArena *arena, const char *tensor)
{
    const char *dot = strrchr(tensor, '.');

    return kiln_arena_printf(arena, "%.*s", dot != NULL ? (int)(dot - tensor) : 0, tensor);
}

/* Rows of a layer's adapter; A is that of all rows. */
static void add_layer(Description *to, const KilnLora *lora, int64_t row, int64_t rows,
                      const char *layer)
{
    KilnArena *arena = &to->adapters->arena;
    const char *dot = layer != NULL && layer[0] != '\0' ? "." : "";

    if (layer == NULL || json_array_append_new(to->targets, json_string(layer)) != 0) {
        to->failed = true;
        return;
    }
    add_tensor(to, lora->a, 0, lora->a->shape.dim[0],
               kiln_arena_printf(arena, PREFIX "%s%slora_A.weight", layer, dot));
    add_tensor(to, lora->b, row, rows,
               kiln_arena_printf(arena, PREFIX "%s%slora_B.weight", layer, dot));
}

static void describe_adapter(Description *to, const KilnParam *weight)
{
    const KilnForeignName *parts[KILN_ADAPTER_PARTS];
    const size_t n = foreign_parts(weight, parts);
    char layer[300];

    for (size_t i = 0; i < n; i++) {
        to->transposed = to->transposed || parts[i]->part.transposed;
        add_layer(to, weight->lora, parts[i]->part.row, parts[i]->part.rows,
                  module_of(&to->adapters->arena, parts[i]->name));
    }
    if (n == 0)
        add_layer(
            to, weight->lora, 0, weight->shape.dim[0],
            kiln_arena_strdup(&to->adapters->arena, kiln_lora_layer(weight, layer, sizeof(layer))));
}

/* A parameter that trains besides adapters: one of peft's modules_to_save. */
static void describe_whole(Description *to, const KilnParam *param)
{
    const KilnForeignName *parts[KILN_ADAPTER_PARTS];
    const size_t n = foreign_parts(param, parts);
    const bool foreign = n == 1 && !parts[0]->part.transposed;
    const char *name = foreign ? parts[0]->name : param->name;
    const char *module = module_of(&to->adapters->arena, name);
    size_t i = 0;

    add_tensor(to, param, 0, param->shape.rank > 0 ? param->shape.dim[0] : 1,
               kiln_arena_printf(&to->adapters->arena, PREFIX "%s", name));
    while (module != NULL && i < json_array_size(to->saved) &&
           strcmp(json_string_value(json_array_get(to->saved, i)), module) != 0)
        i++;
    if (module == NULL || (i == json_array_size(to->saved) &&
                           json_array_append_new(to->saved, json_string(module)) != 0))
        to->failed = true;
}

static char *config_text(const Description *of, KilnAdapterConfig config)
{
    const bool whole = config.alpha <= 1e15 && (double)(json_int_t)config.alpha >= config.alpha;
    json_t *alpha = whole ? json_integer((json_int_t)config.alpha) : json_real(config.alpha);
    json_t *json = json_pack("{s:s, s:n, s:n, s:n, s:s, s:b, s:b, s:b, s:o, s:f, s:o, s:I, s:o, "
                             "s:b, s:b}",
                             "peft_type", "LORA", "task_type", "auto_mapping",
                             "base_model_name_or_path", "bias", "none", "fan_in_fan_out",
                             of->transposed, "inference_mode", 1, "init_lora_weights", 1,
                             "lora_alpha", alpha, "lora_dropout", config.dropout, "modules_to_save",
                             json_array_size(of->saved) > 0 ? json_incref(of->saved) : json_null(),
                             "r", (json_int_t)config.r, "target_modules", json_incref(of->targets),
                             "use_dora", 0, "use_rslora", 0);
    char *text = json != NULL ? kiln_json_dump(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17))
                              : NULL;

    json_decref(json);
    return text;
}

KilnStatus kiln_adapters_describe(KilnAdapters *adapters, const KilnParams *params,
                                  KilnAdapterConfig config, KilnError *err)
{
    const size_t most = 2 * KILN_ADAPTER_PARTS * adapters->layers + params->count;
    Description to = { .adapters = adapters, .targets = json_array(), .saved = json_array() };

    adapters->tensors = calloc(most, sizeof(*adapters->tensors));
    to.failed = adapters->tensors == NULL || to.targets == NULL || to.saved == NULL;
    for (size_t i = 0; i < params->count && !to.failed; i++) {
        const KilnParam *param = params->items[i];

        if (param->lora != NULL)
            describe_adapter(&to, param);
        if (param->trained && !param->is_adapter)
            describe_whole(&to, param);
    }
    adapters->config = !to.failed ? config_text(&to, config) : NULL;
    json_decref(to.targets);
    json_decref(to.saved);
    return adapters->config != NULL ? KILN_OK : kiln_error_nomem(err, 1);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static KilnStatus write_tensors(const KilnAdapters *adapters, const KilnStView *views,
                                const char *folder, KilnError *err)
{
    char *path = kiln_path_join(folder, KILN_ADAPTER_MODEL);
    KilnStView *own = calloc(adapters->n_tensors + 1, sizeof(*own));
    KilnStatus status = path != NULL && own != NULL ? KILN_OK : kiln_error_nomem(err, 1);

    for (size_t i = 0; i < adapters->n_tensors && status >= 0; i++) {
        const KilnAdapterTensor *tensor = &adapters->tensors[i];
        const KilnStView *from = &views[tensor->param];
        const int64_t rows = from->shape.rank > 0 ? from->shape.dim[0] : 1;
        const size_t row = (size_t)(kiln_shape_count(&from->shape) / rows) *
                           kiln_dtype_size(from->dtype);

        own[i] = *from;
        own[i].name = tensor->name;
        own[i].data = (const char *)from->data + (size_t)tensor->row * row;
        if (own[i].shape.rank > 0)
            own[i].shape.dim[0] = tensor->rows;
    }
    if (status >= 0)
        status = kiln_safetensors_write(path, own, adapters->n_tensors, NULL, 0, err);
    free(own);
    free(path);
    return status;
}

KilnStatus kiln_adapters_write(const KilnAdapters *adapters, const KilnStView *views,
                               const char *folder, KilnError *err)
{
    KilnStatus status = write_tensors(adapters, views, folder, err);
    char *path = kiln_path_join(folder, KILN_ADAPTER_CONFIG);

    if (status >= 0)
        status = path != NULL
                     ? kiln_file_write(path, adapters->config, strlen(adapters->config), err)
                     : kiln_error_nomem(err, 1);
    free(path);
    return status;
}
