/* Errors and configs for callers that know no structs: kiln/flat/config.h. */
#include "kiln/flat/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/override/override.h"
#include "config/provenance/origin.h"
#include "config/provenance/origins_file.h"
#include "config/yaml/output.h"
#include "kiln/embed/run.h"
#include "registry/outputs.h"
#include "train/run/checkpoint_config.h"
#include "train/run/run_config.h"

const char *kiln_flat_version(void)
{
    return KILN_VERSION;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

KilnError *kiln_flat_error_new(void)
{
    return calloc(1, sizeof(KilnError));
}

void kiln_flat_error_free(KilnError *err)
{
    free(err);
}

const char *kiln_flat_error_text(const KilnError *err)
{
    return err->text;
}

KilnStatus kiln_flat_error_set(KilnError *err, KilnStatus status, const char *text)
{
    return kiln_error_set(err, status, "%s", text);
}

/* ---- Composing ------------------------------------------------------------------------------- */

static KilnStatus compose(const KilnComposeRequest *request, const char *run, KilnConfig **ret,
                          KilnErrors *errors)
{
    KilnConfig *config = NULL;
    KilnStatus status = kiln_compose(request, &config, errors);

    if (status >= 0 && request->registry != NULL)
        status = kiln_config_check(config, request->registry, errors);
    if (status >= 0 && run != NULL)
        status = kiln_config_confine(config, request->registry, run, errors);
    if (status >= 0)
        *ret = config;
    else
        kiln_config_free(config);
    return status;
}

KilnStatus kiln_flat_compose(const KilnRegistry *registry, const char *config_path,
                             const char *config_name, const char *const *config_dirs,
                             const char *const *overrides, KilnConfig **ret, KilnErrors *errors)
{
    const KilnComposeRequest request = {
        .config_path = config_path,
        .config_name = config_name,
        .config_dirs = config_dirs,
        .overrides = overrides,
        .registry = registry,
        .sections = registry != NULL ? kiln_run_sections() : NULL,
    };

    return compose(&request, NULL, ret, errors);
}

KilnStatus kiln_flat_compose_resumed(const KilnRegistry *registry, const char *run,
                                     const char *const *overrides, KilnConfig **ret,
                                     KilnErrors *errors)
{
    KilnText folder = { 0 }, dir = { 0 };
    size_t n = 0;

    while (overrides != NULL && overrides[n] != NULL)
        n++;
    const char **all = calloc(n + 2, sizeof(*all));
    kiln_text_printf(&folder, "%s/.kiln", run);
    kiln_override_quote(&dir, "kiln.run.dir", run);
    KilnStatus status = KILN_E_NOMEM;
    if (all != NULL && !folder.failed && !dir.failed) {
        const KilnComposeRequest request = {
            .config_path = folder.data,
            .config_name = KILN_JOB_CONFIG,
            .overrides = all,
            .registry = registry,
            .sections = kiln_run_sections(),
        };

        if (n > 0)
            memcpy(all, overrides, n * sizeof(*all));
        all[n] = dir.data;
        status = compose(&request, run, ret, errors);
    }
    kiln_text_release(&folder);
    kiln_text_release(&dir);
    free(all);
    return status;
}

KilnStatus kiln_flat_compose_checkpoint(const KilnRegistry *registry, const char *checkpoint,
                                        const char *const *overrides, KilnConfig **ret,
                                        KilnError *err)
{
    return kiln_checkpoint_config_compose(checkpoint, registry, overrides, ret, err);
}

KilnStatus kiln_flat_explain_run(const char *run, const char *key, char **ret, KilnError *err)
{
    return kiln_run_explain(run, key, ret, err);
}

char *kiln_flat_override(const char *key, const char *value)
{
    KilnText text = { 0 };

    kiln_override_quote(&text, key, value);
    return kiln_text_take(&text);
}

/* ---- Values and origins as JSON -------------------------------------------------------------- */

static void write_number(KilnText *text, const char *number)
{
    const char *digits = number + strspn(number, "+-.");

    if (*digits == 'n' || *digits == 'N')
        kiln_text_append(text, "NaN");
    else if (*digits == 'i' || *digits == 'I')
        kiln_text_append(text, *number == '-' ? "-Infinity" : "Infinity");
    else
        kiln_text_json_number(text, strtod(number, NULL));
}

static void write_scalar(KilnText *text, const KilnConfigNode *node)
{
    switch (node->scalar) {
    case KILN_SCALAR_NULL:
        kiln_text_append(text, "null");
        break;
    case KILN_SCALAR_BOOL:
    case KILN_SCALAR_INT:
        kiln_text_append(text, node->text + (node->text[0] == '+'));
        break;
    case KILN_SCALAR_FLOAT:
        write_number(text, node->text);
        break;
    default:
        kiln_text_json_string(text, node->text);
    }
}

static KilnStatus write_node(const KilnConfig *config, const KilnConfigNode *node, KilnText *text,
                             KilnError *err)
{
    KilnStatus status = kiln_config_resolve(config, node, &node, err);

    if (status < 0)
        return status;
    if (node->kind == KILN_NODE_SCALAR) {
        write_scalar(text, node);
        return KILN_OK;
    }
    const bool is_map = node->kind == KILN_NODE_MAP, is_root = node == kiln_config_root(config);
    bool first = true;
    kiln_text_char(text, is_map ? '{' : '[');
    for (size_t i = 0; i < node->count && status >= 0; i++) {
        const KilnEntry *entry = &node->entries[i];

        if (is_root && kiln_config_hides(config, entry->key))
            continue;
        kiln_text_append(text, first ? "" : ", ");
        first = false;
        if (is_map) {
            kiln_text_json_string(text, entry->key);
            kiln_text_append(text, ": ");
        }
        status = write_node(config, entry->value, text, err);
    }
    kiln_text_char(text, is_map ? '}' : ']');
    return status;
}

KilnStatus kiln_flat_config_json(const KilnConfig *config, char **ret, KilnError *err)
{
    KilnText text = { 0 };

    return kiln_text_finish(&text, write_node(config, kiln_config_root(config), &text, err), ret,
                            err);
}

/* Of all values in a mapping. */
static void write_origins(const KilnConfig *config, const KilnConfigNode *map, KilnText *text)
{
    for (size_t i = 0; i < map->count; i++) {
        const KilnConfigNode *node = map->entries[i].value;

        if (map->parent == NULL && kiln_config_hides(config, map->entries[i].key))
            continue;
        if (node->kind == KILN_NODE_MAP) {
            write_origins(config, node, text);
            continue;
        }
        KilnText origin = { 0 };
        const char *path = kiln_node_path(config, node);
        kiln_origin_write(&origin, &node->origin);
        text->failed |= origin.failed || path == NULL;
        if (!text->failed) {
            kiln_text_append(text, text->length > 1 ? ", " : "");
            kiln_text_json_string(text, path);
            kiln_text_append(text, ": ");
            kiln_text_json_string(text, origin.data);
        }
        kiln_text_release(&origin);
    }
}

KilnStatus kiln_flat_config_origins(const KilnConfig *config, char **ret, KilnError *err)
{
    KilnText text = { 0 };

    kiln_text_char(&text, '{');
    write_origins(config, kiln_config_root(config), &text);
    kiln_text_char(&text, '}');
    return kiln_text_finish(&text, KILN_OK, ret, err);
}
