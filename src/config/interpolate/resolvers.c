/* Resolvers: ${oc.env:X}, ${oc.select:key,default}, ${now:%Y}, ${kiln:run.dir}. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/interpolate/interpolate.h"
#include "config/yaml/output.h"
#include "config/yaml/scalar.h"
#include "config/composed.h"

typedef struct Call {
    KilnResolution *resolution;
    const KilnConfigNode *node; /* in whose text the call stands */
    const char *name;
    const KilnConfigNode *arguments;
    KilnMaker maker; /* of new nodes: they come from where the text is */
} Call;

typedef struct Resolver {
    const char *name;
    size_t least, most; /* arguments */
    const char *usage;
    KilnStatus (*run)(const Call *call, const KilnConfigNode **ret);
} Resolver;

static const KilnConfigNode *argument(const Call *call, size_t i)
{
    return i < call->arguments->count ? call->arguments->entries[i].value : NULL;
}

static bool is_null(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL;
}

/* A new node below the parent of the text, so that relative paths work in it. */
static KilnStatus give(const Call *call, KilnConfigNode *node, const KilnConfigNode **ret)
{
    if (node == NULL)
        return kiln_error_nomem(call->resolution->err, sizeof(*node));
    node->parent = call->node->parent;
    *ret = node;
    return KILN_OK;
}

static KilnStatus give_text(const Call *call, const char *text, const KilnConfigNode **ret)
{
    KilnConfigNode *node = kiln_node_string(&call->maker, text);

    if (node != NULL && node->scalar == KILN_SCALAR_INTERPOLATION)
        node->scalar = KILN_SCALAR_STR; /* what comes from outside is not resolved again */
    return give(call, node, ret);
}

/* Argument `i` as the text of a key or name; NULL, with the error set, when it is
 * no scalar. */
static const char *name_argument(const Call *call, size_t i)
{
    const KilnConfigNode *node = argument(call, i);

    if (node->kind == KILN_NODE_SCALAR && !is_null(node))
        return node->text;
    kiln_error_set(call->resolution->err, KILN_E_TYPE, "%s: argument %zu must be text, not %s",
                   call->name, i + 1, kiln_node_kind_name(node));
    return NULL;
}

static KilnStatus run_env(const Call *call, const KilnConfigNode **ret)
{
    const char *name = name_argument(call, 0), *value;
    const KilnConfigNode *other = argument(call, 1);
    KilnText text = { 0 };
    KilnStatus status;

    if (name == NULL)
        return KILN_E_TYPE;
    value = getenv(name);
    if (value != NULL)
        return give_text(call, value, ret);
    if (other == NULL)
        return kiln_error_set(call->resolution->err, KILN_E_KEY,
                              "the environment variable %s is not set; set it, or give a default: "
                              "${oc.env:%s,default}",
                              name, name);
    if (is_null(other)) {
        *ret = other;
        return KILN_OK;
    }
    status = kiln_resolve_text(call->resolution, other, &text); /* as a variable's value is */
    if (status >= 0)
        status = text.failed ? kiln_error_nomem(call->resolution->err, 1)
                             : give_text(call, text.data != NULL ? text.data : "", ret);
    kiln_text_release(&text);
    return status;
}

static KilnStatus run_select(const Call *call, const KilnConfigNode **ret)
{
    const char *path = name_argument(call, 0);
    KilnStatus status;

    if (path == NULL)
        return KILN_E_TYPE;
    status = kiln_resolve_path(call->resolution, call->node->parent, path, ret);
    if (status < 0)
        return status;
    if (*ret != NULL &&
        !((*ret)->kind == KILN_NODE_SCALAR && (*ret)->scalar == KILN_SCALAR_MISSING))
        return KILN_OK;
    if (argument(call, 1) == NULL)
        return give(call, kiln_node_scalar(&call->maker, KILN_SCALAR_NULL, "null"), ret);
    *ret = argument(call, 1);
    return KILN_OK;
}

static KilnStatus nested(void *ctx, KilnValueText *value, const KilnConfigNode **ret,
                         KilnError *err)
{
    const Call *call = ctx;

    (void)err; /* the same as resolution->err */
    return kiln_resolve_interpolation(call->resolution, call->node, value, ret);
}

static KilnStatus run_decode(const Call *call, const KilnConfigNode **ret)
{
    const KilnConfigNode *from = argument(call, 0);
    KilnConfigNode *node = NULL;
    KilnStatus status;

    if (is_null(from)) {
        *ret = from;
        return KILN_OK;
    }
    if (from->kind != KILN_NODE_SCALAR || from->scalar != KILN_SCALAR_STR)
        return kiln_error_set(call->resolution->err, KILN_E_TYPE,
                              "oc.decode: expected text or null, got %s",
                              kiln_node_kind_name(from));
    KilnValueText value = {
        .maker = call->maker, .text = from->text, .interpolate = nested, .ctx = (void *)call
    };
    kiln_value_skip_blanks(&value);
    status = kiln_value_element(&value, &node, call->resolution->err);
    if (status >= 0 && value.text[value.at] != '\0')
        status = kiln_value_fail(&value, value.at, call->resolution->err, "one value was expected");
    if (status < 0)
        return kiln_error_prefix(call->resolution->err, "oc.decode: in '%s': ", from->text);
    if (node->parent == NULL)
        node->parent = call->node->parent;
    *ret = node;
    return KILN_OK;
}

static KilnStatus run_create(const Call *call, const KilnConfigNode **ret)
{
    const KilnConfigNode *from = argument(call, 0);
    KilnConfigNode *made = NULL;
    KilnStatus status;

    if (from->kind != KILN_NODE_SCALAR) {
        *ret = from;
        return KILN_OK;
    }
    if (from->scalar != KILN_SCALAR_STR && !is_null(from))
        return kiln_error_set(call->resolution->err, KILN_E_TYPE,
                              "oc.create: expected a list, a mapping or YAML text, got %s",
                              kiln_node_kind_name(from));
    /* Text is read as YAML; a word alone is a key without a value. */
    status = kiln_node_parse(call->maker.arena, from->text, call->maker.origin.source, &made,
                             call->resolution->err);
    if (status < 0)
        return status;
    if (made->kind == KILN_NODE_SCALAR && made->scalar != KILN_SCALAR_STR &&
        made->scalar != KILN_SCALAR_INTERPOLATION && !is_null(made))
        return kiln_error_set(call->resolution->err, KILN_E_TYPE,
                              "oc.create: expected a list, a mapping or YAML text of one, got '%s'",
                              from->text);
    if (made->kind == KILN_NODE_SCALAR && !is_null(from)) {
        KilnConfigNode *map = kiln_node_new(&call->maker, KILN_NODE_MAP);
        KilnConfigNode *null = kiln_node_scalar(&call->maker, KILN_SCALAR_NULL, "null");

        if (map == NULL || null == NULL ||
            (!is_null(made) && kiln_node_append(call->maker.arena, map, made->text,
                                                call->maker.origin, null) == NULL))
            return kiln_error_nomem(call->resolution->err, sizeof(*map));
        made = map;
    }
    return give(call, made, ret);
}

/* The message with $OLD_KEY and $NEW_KEY put in. */
static const char *deprecation_text(const Call *call, const char *new_key)
{
    static const char usual[] = "'$OLD_KEY' is deprecated; use '$NEW_KEY'";
    const char *p = argument(call, 1) != NULL ? argument(call, 1)->text : usual, *copy;
    KilnText text = { 0 };

    while (*p != '\0') {
        if (kiln_starts_with(p, "$OLD_KEY"))
            kiln_text_append(&text, kiln_node_path(call->resolution->config, call->node));
        else if (kiln_starts_with(p, "$NEW_KEY"))
            kiln_text_append(&text, new_key);
        else
            kiln_text_char(&text, *p);
        p += kiln_starts_with(p, "$OLD_KEY") || kiln_starts_with(p, "$NEW_KEY") ? 8 : 1;
    }
    copy = text.failed ? NULL
                       : kiln_arena_strdup(call->maker.arena, text.data != NULL ? text.data : "");
    kiln_text_release(&text);
    return copy;
}

/* Once for each place that says so. */
static KilnStatus warn_deprecated(const Call *call, const char *new_key)
{
    KilnWarning **end = call->resolution->config->warnings, *warning;
    const KilnOrigin *at = &call->node->origin;
    const char *text;

    for (; *end != NULL; end = &(*end)->next)
        if ((*end)->origin.source == at->source && (*end)->origin.line == at->line &&
            (*end)->origin.column == at->column)
            return KILN_OK;
    warning = kiln_arena_alloc(call->maker.arena, sizeof(*warning));
    text = deprecation_text(call, new_key);
    if (warning == NULL || text == NULL)
        return kiln_error_nomem(call->resolution->err, sizeof(*warning));
    *warning = (KilnWarning) { .text = text, .origin = *at };
    *end = warning;
    return KILN_OK;
}

static KilnStatus run_deprecated(const Call *call, const KilnConfigNode **ret)
{
    const char *path = name_argument(call, 0);
    const KilnConfigNode *message = argument(call, 1);
    KilnStatus status;

    if (path == NULL)
        return KILN_E_TYPE;
    if (message != NULL &&
        (message->kind != KILN_NODE_SCALAR || message->scalar != KILN_SCALAR_STR))
        return kiln_error_set(call->resolution->err, KILN_E_TYPE,
                              "oc.deprecated: the message must be text, not %s",
                              kiln_node_kind_name(message));
    status = kiln_resolve_path(call->resolution, call->node->parent, path, ret);
    if (status >= 0 && *ret == NULL)
        return kiln_error_set(call->resolution->err, KILN_E_KEY,
                              "oc.deprecated: there is no key '%s'", path);
    if (status >= 0)
        status = warn_deprecated(call, path);
    return status;
}

static KilnStatus select_map(const Call *call, const KilnConfigNode **ret)
{
    const char *path = name_argument(call, 0);
    KilnStatus status;

    if (path == NULL)
        return KILN_E_TYPE;
    status = kiln_resolve_path(call->resolution, call->node->parent, path, ret);
    if (status < 0)
        return status;
    if (*ret == NULL)
        return kiln_error_set(call->resolution->err, KILN_E_KEY, "%s: there is no key '%s'",
                              call->name, path);
    if ((*ret)->kind != KILN_NODE_MAP)
        return kiln_error_set(call->resolution->err, KILN_E_TYPE,
                              "%s: '%s' must be a mapping, but is %s", call->name, path,
                              kiln_node_kind_name(*ret));
    return KILN_OK;
}

static KilnStatus list_map(const Call *call, bool keys, const KilnConfigNode **ret)
{
    const KilnConfigNode *map = NULL;
    KilnConfigNode *list = kiln_node_new(&call->maker, KILN_NODE_LIST);
    KilnStatus status = select_map(call, &map);

    for (size_t i = 0; list != NULL && status >= 0 && i < map->count; i++) {
        KilnConfigNode *item = map->entries[i].value;
        KilnConfigNode *parent = item->parent;

        if (map->parent == NULL && kiln_config_hides(call->resolution->config, map->entries[i].key))
            continue;
        if (keys)
            item = map->entries[i].key_typed
                       ? kiln_node_scalar(&call->maker, KILN_SCALAR_STR, map->entries[i].key)
                       : kiln_node_string(&call->maker, map->entries[i].key);
        if (keys && item != NULL && map->entries[i].key_typed)
            item->scalar = kiln_scalar_yaml(call->maker.arena, item->text, &item->text);
        if (kiln_node_append(call->maker.arena, list, NULL, call->maker.origin, item) == NULL)
            return kiln_error_nomem(call->resolution->err, sizeof(*item));
        if (!keys)
            item->parent = parent; /* it is still the mapping's */
    }
    return status >= 0 ? give(call, list, ret) : status;
}

static KilnStatus run_keys(const Call *call, const KilnConfigNode **ret)
{
    return list_map(call, true, ret);
}

static KilnStatus run_values(const Call *call, const KilnConfigNode **ret)
{
    return list_map(call, false, ret);
}

static KilnStatus run_now(const Call *call, const KilnConfigNode **ret)
{
    const struct tm *started = &call->resolution->config->started;
    const char *format = call->arguments->count > 0 ? name_argument(call, 0) : "%Y-%m-%d_%H-%M-%S";
    char text[256];

    if (format == NULL)
        return KILN_E_TYPE;
    if (*format != '\0' && strftime(text, sizeof(text), format, started) == 0)
        return kiln_error_set(call->resolution->err, KILN_E_RANGE,
                              "now: '%s' makes a text that is empty or too long", format);
    return give_text(call, *format != '\0' ? text : "", ret);
}

static KilnStatus run_own(const Call *call, const KilnConfigNode **ret)
{
    const char *path = name_argument(call, 0);
    const KilnConfigNode *own;
    KilnStatus status;

    if (path == NULL)
        return KILN_E_TYPE;
    own = kiln_node_get(call->resolution->config->root, "kiln");
    if (own == NULL)
        return kiln_error_set(call->resolution->err, KILN_E_KEY, "there is no node 'kiln' yet");
    path = kiln_arena_printf(call->maker.arena, ".%s", path);
    if (path == NULL)
        return kiln_error_nomem(call->resolution->err, 1);
    status = kiln_resolve_path(call->resolution, own, path, ret);
    /* A group that is not chosen has no choice. */
    if (status >= 0 && *ret == NULL && kiln_starts_with(path, ".runtime.choices."))
        return give(call, kiln_node_scalar(&call->maker, KILN_SCALAR_NULL, "null"), ret);
    if (status >= 0 && *ret == NULL) {
        kiln_resolve_missing(own, path + 1, call->resolution->err);
        return kiln_error_prefix(call->resolution->err, "${%s:%s}: ", call->name, path + 1);
    }
    return status;
}

static const Resolver resolvers[] = {
    { "oc.env", 1, 2, "${oc.env:NAME} or ${oc.env:NAME,default}", run_env },
    { "oc.select", 1, 2, "${oc.select:key} or ${oc.select:key,default}", run_select },
    { "oc.decode", 1, 1, "${oc.decode:text}", run_decode },
    { "oc.create", 1, 1, "${oc.create:[1,2]}", run_create },
    { "oc.deprecated", 1, 2, "${oc.deprecated:new_key} or ${oc.deprecated:new_key,message}",
      run_deprecated },
    { "oc.dict.keys", 1, 1, "${oc.dict.keys:key}", run_keys },
    { "oc.dict.values", 1, 1, "${oc.dict.values:key}", run_values },
    { "now", 0, 1, "${now:%Y-%m-%d}", run_now },
    { "kiln", 1, 1, "${kiln:run.dir}", run_own },
    { "hydra", 1, 1, "${hydra:run.dir}", run_own },
};

static KilnStatus unknown(KilnResolution *resolution, const char *name)
{
    const char *names[KILN_COUNT(resolvers)], *near;

    for (size_t i = 0; i < KILN_COUNT(resolvers); i++)
        names[i] = resolvers[i].name;
    near = kiln_nearest(name, names, KILN_COUNT(names));
    return kiln_error_set(resolution->err, KILN_E_KEY,
                          "there is no resolver '%s'%s%s%s; there are oc.env, oc.select, "
                          "oc.decode, oc.create, oc.deprecated, oc.dict.keys, oc.dict.values, "
                          "now, kiln",
                          name, near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                          near != NULL ? "?)" : "");
}

KilnStatus kiln_resolver_call(KilnResolution *resolution, const KilnConfigNode *node,
                              const char *name, const KilnConfigNode *arguments,
                              const KilnConfigNode **ret)
{
    Call call = { .resolution = resolution,
                  .node = node,
                  .name = name,
                  .arguments = arguments,
                  .maker = { .arena = resolution->config->arena,
                             .origin = node->origin,
                             .layer = node->layer } };

    for (size_t i = 0; i < KILN_COUNT(resolvers); i++) {
        const Resolver *resolver = &resolvers[i];

        if (strcmp(resolver->name, name) != 0)
            continue;
        if (arguments->count < resolver->least || arguments->count > resolver->most)
            return kiln_error_set(resolution->err, KILN_E_USAGE, "%s got %zu arguments; write %s",
                                  name, arguments->count, resolver->usage);
        return resolver->run(&call, ret);
    }
    return unknown(resolution, name);
}
