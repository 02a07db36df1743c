/* A config, or a part of it, as text. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/interpolate/interpolate.h"
#include "config/yaml/output.h"
#include "config/composed.h"
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

static void say_removed(const KilnRemoved *removed, KilnError *err)
{
    const KilnOrigin *at = &removed->origin;
    char place[64] = "";

    if (at->line > 0)
        snprintf(place, sizeof(place), ":%d:%d", at->line, at->column);
    if (removed->why != NULL)
        kiln_error_set(err, KILN_E_KEY, "'%s' was dropped: %s at %s%s", removed->path, removed->why,
                       at->source, place);
    else
        kiln_error_set(err, KILN_E_KEY, "'%s' was removed by %s%s", removed->path, at->source,
                       place);
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
    KilnStatus status;

    if (key == NULL || *key == '\0') {
        *ret = config->root;
        return KILN_OK;
    }
    /* The last part as it is written, what is in front of it through interpolations. */
    for (const char *p = key; kiln_path_next(&p, last); rest = p)
        before = rest;
    if (before != key) {
        const char *path = kiln_arena_strndup(config->arena, key, (size_t)(before - key));

        if (path == NULL)
            return kiln_error_nomem(err, strlen(key));
        status = kiln_resolve_path(&resolving, config->root, path, &parent);
        if (status < 0)
            return status;
    }
    const KilnEntry *entry = parent != NULL && *rest == '\0' ? kiln_node_entry(parent, last) : NULL;
    if (entry == NULL && parent == config->root && kiln_is_foreign_node(last, strlen(last)))
        entry = kiln_node_entry(parent, "kiln");
    if (entry == NULL) {
        kiln_resolve_missing(config->root, key, resolving.err);
        for (size_t i = 0; i < config->n_removed; i++)
            if (strcmp(config->removed[i].path, key) == 0)
                say_removed(&config->removed[i], resolving.err);
        return KILN_E_KEY;
    }
    *ret = entry->value;
    return KILN_OK;
}

static KilnStatus take(KilnText *text, KilnStatus status, char **ret, KilnError *err)
{
    char *taken = status >= 0 ? kiln_text_take(text) : NULL;

    if (status >= 0 && taken == NULL)
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        *ret = taken;
    else
        kiln_text_release(text);
    return status;
}

static bool hides_own(const char *key)
{
    size_t n = strcspn(key, ".[");

    return !(n == strlen("kiln") && strncmp(key, "kiln", n) == 0) && !kiln_is_foreign_node(key, n);
}

static bool hides_job(const KilnConfig *config, const char *key)
{
    (void)config;
    return strcmp(key, "kiln") != 0;
}

KilnStatus kiln_config_yaml(const KilnConfig *config, const char *key, bool resolve, char **ret,
                            KilnError *err)
{
    return kiln_config_part_yaml(config, KILN_CONFIG_JOB, key, resolve, ret, err);
}

static KilnStatus write_part(KilnYamlWriter *writer, KilnConfigPart part, const char *key,
                             KilnError *err)
{
    static bool (*const hidden[])(const KilnConfig *, const char *) = {
        [KILN_CONFIG_JOB] = kiln_config_hides,
        [KILN_CONFIG_OWN] = hides_job,
        [KILN_CONFIG_ALL] = NULL,
    };
    const KilnConfigNode *node = NULL;
    KilnStatus status = kiln_config_find(writer->config, key, &node, err);

    if (status >= 0 && part == KILN_CONFIG_OWN && key != NULL && hides_own(key))
        status = kiln_error_set(err, KILN_E_KEY,
                                "'%s' is not in the node kiln; --cfg job or --cfg all has it", key);
    if (status < 0)
        return status;
    writer->hidden = node == writer->config->root ? hidden[part] : NULL;
    return kiln_write_node(writer, node, err);
}

KilnStatus kiln_config_part_yaml(const KilnConfig *config, KilnConfigPart part, const char *key,
                                 bool resolve, char **ret, KilnError *err)
{
    KilnText text = { 0 };
    KilnYamlWriter writer = { .text = &text, .config = config, .resolve = resolve };

    return take(&text, write_part(&writer, part, key, err), ret, err);
}

KilnStatus kiln_config_origins_part(const KilnConfig *config, KilnConfigPart part, const char *key,
                                    bool resolve, char **ret, KilnError *err)
{
    KilnText text = { 0 }, remarked = { 0 };
    KilnOriginComments comments = { 0 };
    KilnYamlWriter writer = {
        .text = &text, .config = config, .resolve = resolve, .comments = &comments
    };
    KilnStatus status = write_part(&writer, part, key, err);

    if (status >= 0)
        kiln_origin_comments_write(&comments, &text, &remarked);
    kiln_origin_comments_release(&comments);
    kiln_text_release(&text);
    return take(&remarked, status, ret, err);
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
    return take(&text, KILN_OK, ret, err);
}
