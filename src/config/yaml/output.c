/* Finds nodes for output and writes configs, or parts of them, as YAML. */
#include "config/yaml/output.h"

#include <string.h>

#include "config/composed.h"
#include "config/interpolate/interpolate.h"
#include "config/override/override.h"
#include "config/provenance/origin.h"
#include "config/tree/tree.h"
#include "config/yaml/yaml_writer.h"

bool kiln_config_hides(const KilnConfig *config, const char *key)
{
    if (strcmp(key, "kiln") == 0)
        return true;
    for (const KilnSection *s = config->sections; s != NULL && s->key != NULL; s++)
        if (s->hidden && strcmp(s->key, key) == 0)
            return true;
    return false;
}

bool kiln_config_hides_path(const KilnConfig *config, const char *path)
{
    char key[KILN_PATH_PART];

    return kiln_path_next(&path, key) && kiln_config_hides(config, key);
}

/* ---- Nodes ------------------------------------------------------------------------------ */

static KilnStatus no_such_key(const KilnConfig *config, const char *key, KilnError *err)
{
    const KilnRemoved *removed = kiln_removal_find(config, key);

    kiln_resolve_missing(config->root, key, err);
    if (removed != NULL) {
        KilnText text = { 0 };

        kiln_text_printf(&text, "'%s' was ", key);
        if (removed->why != NULL)
            kiln_text_printf(&text, "dropped: %s at ", removed->why);
        else
            kiln_text_append(&text, "removed by ");
        kiln_origin_write(&text, &removed->origin);
        kiln_text_to_error(&text, KILN_E_KEY, err);
    }
    return KILN_E_KEY;
}

KilnStatus kiln_config_find(const KilnConfig *config, const char *key, const KilnConfigNode **ret,
                            KilnError *err)
{
    KilnError local = { 0 };
    KilnResolution resolving = { .config = config,
                                 .root = config->root,
                                 .err = err != NULL ? err : &local };
    char last[KILN_PATH_PART] = "";
    const char *rest = key, *before = key;
    const KilnConfigNode *parent = config->root;

    if (key == NULL || *key == '\0') {
        *ret = config->root;
        return KILN_OK;
    }
    /* Only what precedes the last part is resolved. */
    for (const char *p = key; kiln_path_next(&p, last); rest = p)
        before = rest;
    if (before != key) {
        const char *path = kiln_arena_strndup(config->arena, key, (size_t)(before - key));
        KilnStatus status = path != NULL
                                ? kiln_resolve_path(&resolving, config->root, path, &parent)
                                : kiln_error_nomem(err, strlen(key));
        if (status < 0)
            return status;
    }
    const KilnEntry *entry = parent != NULL && *rest == '\0' ? kiln_node_entry(parent, last) : NULL;
    if (entry == NULL && parent == config->root && kiln_is_foreign_node(last, strlen(last)))
        entry = kiln_node_entry(parent, "kiln");
    if (entry == NULL)
        return no_such_key(config, key, resolving.err);
    *ret = entry->value;
    return KILN_OK;
}

/* ---- Writing ----------------------------------------------------------------------------- */

static bool is_not_own(const KilnConfig *config, const char *key)
{
    (void)config;
    return strcmp(key, "kiln") != 0;
}

static KilnStatus write_part(KilnYamlWriter *writer, KilnConfigPart part, const char *key,
                             KilnError *err)
{
    static bool (*const hidden[])(const KilnConfig *, const char *) = {
        [KILN_CONFIG_JOB] = kiln_config_hides,
        [KILN_CONFIG_OWN] = is_not_own,
        [KILN_CONFIG_ALL] = NULL,
    };
    const KilnConfigNode *node = NULL;
    KilnStatus status = kiln_config_find(writer->config, key, &node, err);
    const char *own = key != NULL ? kiln_own_path(writer->config->arena, key) : NULL;
    char first[KILN_PATH_PART];

    if (status >= 0 && part == KILN_CONFIG_OWN && own != NULL &&
        !(kiln_path_next(&own, first) && strcmp(first, "kiln") == 0))
        status = kiln_error_set(err, KILN_E_KEY,
                                "'%s' is not in the node kiln; --cfg job or --cfg all has it", key);
    if (status < 0)
        return status;
    writer->hidden = node == writer->config->root ? hidden[part] : NULL;
    return kiln_write_node(writer, node, err);
}

KilnStatus kiln_config_part_yaml(const KilnConfig *config, KilnConfigPart part, const char *key,
                                 bool resolve, bool origins, char **ret, KilnError *err)
{
    KilnText text = { 0 };
    KilnYamlWriter writer = {
        .text = &text, .config = config, .resolve = resolve, .origins = origins
    };
    KilnStatus status = write_part(&writer, part, key, err);

    if (origins && status >= 0)
        kiln_origin_comments_align(&text);
    return kiln_text_finish(&text, status, ret, err);
}

KilnStatus kiln_config_yaml(const KilnConfig *config, const char *key, bool resolve, char **ret,
                            KilnError *err)
{
    return kiln_config_part_yaml(config, KILN_CONFIG_JOB, key, resolve, false, ret, err);
}

KilnStatus kiln_config_overrides_yaml(const KilnConfig *config, char **ret, KilnError *err)
{
    KilnText text = { 0 };

    for (size_t i = 0; i < config->n_overrides; i++) {
        kiln_text_append(&text, "- ");
        kiln_write_string(&text, config->overrides[i].text);
        kiln_text_char(&text, '\n');
    }
    if (config->n_overrides == 0)
        kiln_text_append(&text, "[]\n");
    return kiln_text_finish(&text, KILN_OK, ret, err);
}

KilnStatus kiln_config_job_yaml(const KilnConfig *config, char **ret, KilnError *err)
{
    KilnText text = { 0 };
    KilnYamlWriter writer = { .text = &text,
                              .config = config,
                              .resolve = true,
                              .references = true,
                              .hidden = kiln_config_hides };

    return kiln_text_finish(&text, kiln_write_node(&writer, config->root, err), ret, err);
}

KilnStatus kiln_config_own_yaml(const KilnConfig *config, char **ret, KilnError *err)
{
    return kiln_config_part_yaml(config, KILN_CONFIG_OWN, NULL, false, false, ret, err);
}

KilnStatus kiln_config_text(const KilnConfig *config, const char *key, char **ret, KilnError *err)
{
    const KilnConfigNode *written = NULL, *node = NULL;
    KilnText text = { 0 };
    KilnStatus status = kiln_config_find(config, key, &written, err);

    if (status >= 0)
        status = kiln_config_resolve(config, written, &node, err);
    if (status < 0)
        return status;
    if (node->kind != KILN_NODE_SCALAR) {
        kiln_error_set(err, KILN_E_TYPE, "%s: expected one value, got %s", key,
                       kiln_node_kind_name(node));
        return kiln_error_at(err, &node->origin);
    }
    if (node->scalar == KILN_SCALAR_MISSING) {
        kiln_error_set(err, KILN_E_MISSING, "%s: no value is given (?\?\?); give one: %s=VALUE",
                       key, key);
        return kiln_error_at(err, &node->origin);
    }
    kiln_text_append(&text, node->text);
    return kiln_text_finish(&text, KILN_OK, ret, err);
}
