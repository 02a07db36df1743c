/* The resolvers: ${oc.env:X}, ${oc.select:key,default}, ${oc.decode:text}, ${oc.create:[1,2]},
 * ${oc.deprecated:key}, ${oc.dict.keys:key}, ${oc.dict.values:key}, ${now:%Y}, ${kiln:run.dir}.
 * Their table is at the end; to add a resolver, add a function and a row. ${eval:...} is in
 * expression.c. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/interpolate/interpolate.h"
#include "config/yaml/output.h"
#include "config/yaml/scalar.h"
#include "config/composed.h"

typedef struct Call {
    KilnResolution *resolution;
    KilnError *err;
    const KilnConfigNode *node; /* whose text has the call */
    const char *name;
    const KilnConfigNode *arguments;
    KilnMaker maker; /* of new nodes, with the origin of the text */
} Call;

typedef struct Resolver {
    const char *name;
    size_t min_args, max_args;
    const char *usage;
    /* The result; NULL after an error, which is in call->err, and when memory is out. */
    const KilnConfigNode *(*run)(const Call *call);
} Resolver;

KILN_PRINTF(3, 4)
static const KilnConfigNode *fail(const Call *call, KilnStatus status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    kiln_error_vset(call->err, status, format, args);
    va_end(args);
    return NULL;
}

static const KilnConfigNode *argument(const Call *call, size_t i)
{
    return i < call->arguments->count ? call->arguments->entries[i].value : NULL;
}

static bool is_null(const KilnConfigNode *node)
{
    return kiln_node_is_scalar(node, KILN_SCALAR_NULL);
}

/* A new node, below the parent of the text so that relative paths work in it. */
static const KilnConfigNode *give(const Call *call, KilnConfigNode *node)
{
    if (node != NULL)
        node->parent = call->node->parent;
    return node;
}

static const KilnConfigNode *give_null(const Call *call)
{
    return give(call, kiln_node_scalar(&call->maker, KILN_SCALAR_NULL, "null"));
}

static const KilnConfigNode *give_text(const Call *call, const char *text)
{
    KilnConfigNode *node = kiln_node_string(&call->maker, text);

    if (node != NULL && node->scalar == KILN_SCALAR_INTERPOLATION)
        node->scalar = KILN_SCALAR_STR; /* text from outside is not resolved again */
    return give(call, node);
}

/* The first argument as text: a key or name. NULL after an error. */
static const char *get_name(const Call *call)
{
    const KilnConfigNode *node = argument(call, 0);

    if (node->kind == KILN_NODE_SCALAR && !is_null(node))
        return node->text;
    fail(call, KILN_E_TYPE, "%s: argument 1 must be text, not %s", call->name,
         kiln_node_kind_name(node));
    return NULL;
}

/* The node whose key is the first argument. */
static const KilnConfigNode *get_node(const Call *call)
{
    const char *key = get_name(call);
    const KilnConfigNode *node = NULL;

    if (key == NULL || kiln_resolve_path(call->resolution, call->node->parent, key, &node) < 0)
        return NULL;
    return node != NULL ? node
                        : fail(call, KILN_E_KEY, "%s: there is no key '%s'", call->name, key);
}

/* The value in `environment` (see KilnComposeRequest), or of the process; NULL: not set. */
static const char *find_variable(const char *const *environment, const char *name)
{
    const size_t n = strlen(name);

    for (; environment != NULL && *environment != NULL; environment++) {
        const char *rest = *environment + n;

        if (strncmp(*environment, name, n) == 0 && (*rest == '=' || *rest == '\0'))
            return *rest == '=' ? rest + 1 : NULL;
    }
    return getenv(name);
}

/* The value of an environment variable, which is recorded; NULL: not set. */
static const char *use_variable(const Call *call, const char *name)
{
    const KilnConfig *config = call->resolution->config;
    KilnVariable **end = config->variables, *variable;

    for (; *end != NULL; end = &(*end)->next)
        if (strcmp((*end)->name, name) == 0)
            return (*end)->value;
    variable = kiln_arena_alloc(config->arena, sizeof(*variable));
    if (variable == NULL)
        return NULL;
    const char *value = find_variable(config->environment, name);
    variable->name = kiln_arena_strdup(config->arena, name);
    variable->value = value != NULL ? kiln_arena_strdup(config->arena, value) : NULL;
    if (!config->arena->failed)
        *end = variable;
    return variable->value;
}

static const KilnConfigNode *run_env(const Call *call)
{
    const KilnConfigNode *other = argument(call, 1);
    const char *name = get_name(call), *value = name != NULL ? use_variable(call, name) : NULL;
    KilnText text = { 0 };
    KilnStatus status;

    if (name == NULL)
        return NULL;
    if (value != NULL)
        return give_text(call, value);
    if (other == NULL)
        return fail(call, KILN_E_KEY,
                    "the environment variable %s is not set; set it, or give a default: "
                    "${oc.env:%s,default}",
                    name, name);
    if (is_null(other))
        return other;
    status = kiln_resolve_text(call->resolution, other, &text); /* text, like a variable's value */
    value = kiln_text_to_arena(&text, call->maker.arena);
    return status >= 0 && value != NULL ? give_text(call, value) : NULL;
}

static const KilnConfigNode *run_select(const Call *call)
{
    const char *key = get_name(call);
    const KilnConfigNode *node = NULL;

    if (key == NULL || kiln_resolve_path(call->resolution, call->node->parent, key, &node) < 0)
        return NULL;
    if (node != NULL && !kiln_node_is_scalar(node, KILN_SCALAR_MISSING))
        return node;
    return argument(call, 1) != NULL ? argument(call, 1) : give_null(call);
}

static const KilnConfigNode *run_decode(const Call *call)
{
    const KilnConfigNode *from = argument(call, 0);
    KilnConfigNode *node = NULL;
    KilnStatus status;

    if (is_null(from))
        return from;
    if (!kiln_node_is_scalar(from, KILN_SCALAR_STR))
        return fail(call, KILN_E_TYPE, "oc.decode: expected text or null, got %s",
                    kiln_node_kind_name(from));
    KilnValueParser parser = { .maker = call->maker,
                               .text = from->text,
                               .err = call->err,
                               .resolution = call->resolution,
                               .node = call->node };
    kiln_value_skip_blanks(&parser);
    status = kiln_value_element(&parser, &node);
    if (status >= 0 && parser.text[parser.at] != '\0')
        status = kiln_value_fail(&parser, parser.at, "expected a single value");
    if (status < 0) {
        kiln_error_prefix(call->err, "oc.decode: in '%s': ", from->text);
        return NULL;
    }
    return node->parent == NULL ? give(call, node) : node;
}

static const KilnConfigNode *run_create(const Call *call)
{
    const KilnConfigNode *from = argument(call, 0);
    KilnConfigNode *made = NULL, *map;

    if (from->kind != KILN_NODE_SCALAR)
        return from;
    if (from->scalar != KILN_SCALAR_STR && !is_null(from))
        return fail(call, KILN_E_TYPE, "oc.create: expected a list, a mapping or YAML text, got %s",
                    kiln_node_kind_name(from));
    /* Text is YAML; a single word is a key with the value null. */
    if (kiln_node_parse(call->maker.arena, from->text, call->maker.origin.source, &made,
                        call->err) < 0)
        return NULL;
    if (made->kind != KILN_NODE_SCALAR || is_null(from))
        return give(call, made);
    if (made->scalar != KILN_SCALAR_STR && made->scalar != KILN_SCALAR_INTERPOLATION &&
        !is_null(made))
        return fail(call, KILN_E_TYPE,
                    "oc.create: expected a list, a mapping or YAML text of one, got '%s'",
                    from->text);
    map = kiln_node_new(&call->maker, KILN_NODE_MAP);
    if (!is_null(made))
        (void)kiln_node_append(call->maker.arena, map, made->text, call->maker.origin,
                               kiln_node_scalar(&call->maker, KILN_SCALAR_NULL, "null"));
    return give(call, map);
}

/* The message, with $OLD_KEY and $NEW_KEY replaced. */
static const char *deprecation_text(const Call *call, const char *new_key)
{
    static const char standard[] = "'$OLD_KEY' is deprecated; use '$NEW_KEY'";
    const char *p = argument(call, 1) != NULL ? argument(call, 1)->text : standard;
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
    return kiln_text_to_arena(&text, call->maker.arena);
}

/* Warns once for each origin. */
static void warn_deprecated(const Call *call, const char *new_key)
{
    KilnWarning **end = call->resolution->config->warnings, *warning;
    const KilnOrigin *at = &call->node->origin;

    for (; *end != NULL; end = &(*end)->next)
        if ((*end)->origin.source == at->source && (*end)->origin.line == at->line &&
            (*end)->origin.column == at->column)
            return;
    warning = kiln_arena_alloc(call->maker.arena, sizeof(*warning));
    const char *text = deprecation_text(call, new_key);
    if (warning == NULL || text == NULL)
        return;
    *warning = (KilnWarning) { .text = text, .origin = *at };
    *end = warning;
}

static const KilnConfigNode *run_deprecated(const Call *call)
{
    const KilnConfigNode *message = argument(call, 1), *node;

    if (message != NULL && !kiln_node_is_scalar(message, KILN_SCALAR_STR))
        return fail(call, KILN_E_TYPE, "oc.deprecated: the message must be text, not %s",
                    kiln_node_kind_name(message));
    node = get_node(call);
    if (node != NULL)
        warn_deprecated(call, get_name(call));
    return node;
}

/* A key of a mapping as a new node, with its type. */
static KilnConfigNode *key_node(const Call *call, const KilnEntry *entry)
{
    KilnConfigNode *node;

    if (!entry->key_typed)
        return kiln_node_string(&call->maker, entry->key);
    node = kiln_node_scalar(&call->maker, KILN_SCALAR_STR, entry->key);
    if (node != NULL)
        node->scalar = kiln_scalar_yaml(call->maker.arena, node->text, &node->text);
    return node;
}

/* oc.dict.keys and oc.dict.values */
static const KilnConfigNode *run_dict(const Call *call)
{
    const KilnConfigNode *map = get_node(call);
    bool keys = strcmp(call->name, "oc.dict.keys") == 0;
    KilnConfigNode *list = kiln_node_new(&call->maker, KILN_NODE_LIST);

    if (map == NULL || list == NULL)
        return NULL;
    if (map->kind != KILN_NODE_MAP)
        return fail(call, KILN_E_TYPE, "%s: '%s' must be a mapping, but is %s", call->name,
                    get_name(call), kiln_node_kind_name(map));
    for (size_t i = 0; i < map->count; i++) {
        const KilnEntry *entry = &map->entries[i];
        KilnConfigNode *item = keys ? key_node(call, entry) : entry->value;
        KilnConfigNode *parent = entry->value->parent;

        if (map->parent == NULL && kiln_config_hides(call->resolution->config, entry->key))
            continue;
        if (kiln_node_append(call->maker.arena, list, NULL, call->maker.origin, item) == NULL)
            return NULL;
        entry->value->parent = parent; /* values stay in the mapping */
    }
    return give(call, list);
}

static const KilnConfigNode *run_now(const Call *call)
{
    const char *format = call->arguments->count > 0 ? get_name(call) : "%Y-%m-%d_%H-%M-%S";
    char text[256] = "";

    if (format == NULL)
        return NULL;
    call->resolution->used_time = true;
    if (*format != '\0' &&
        strftime(text, sizeof(text), format, &call->resolution->config->started) == 0)
        return fail(call, KILN_E_RANGE, "now: '%s' makes a text that is empty or too long", format);
    return give_text(call, text);
}

/* ${kiln:run.dir} is ${kiln.run.dir}. */
static const KilnConfigNode *run_kiln(const Call *call)
{
    const KilnConfigNode *kiln = kiln_node_get(call->resolution->config->root, "kiln"), *node;
    const char *key = get_name(call), *path;

    if (key == NULL)
        return NULL;
    if (kiln == NULL)
        return fail(call, KILN_E_KEY, "there is no node 'kiln' yet");
    path = kiln_arena_printf(call->maker.arena, ".%s", key);
    if (path == NULL || kiln_resolve_path(call->resolution, kiln, path, &node) < 0)
        return NULL;
    if (node != NULL)
        return node;
    if (kiln_starts_with(key, "runtime.choices.")) /* null for a group without a selection */
        return give_null(call);
    kiln_resolve_missing(kiln, key, call->err);
    kiln_error_prefix(call->err, "${%s:%s}: ", call->name, key);
    return NULL;
}

/* ---- The table ------------------------------------------------------------------------- */

static const Resolver resolvers[] = {
    { "oc.env", 1, 2, "${oc.env:NAME} or ${oc.env:NAME,default}", run_env },
    { "oc.select", 1, 2, "${oc.select:key} or ${oc.select:key,default}", run_select },
    { "oc.decode", 1, 1, "${oc.decode:text}", run_decode },
    { "oc.create", 1, 1, "${oc.create:[1,2]}", run_create },
    { "oc.deprecated", 1, 2, "${oc.deprecated:new_key} or ${oc.deprecated:new_key,message}",
      run_deprecated },
    { "oc.dict.keys", 1, 1, "${oc.dict.keys:key}", run_dict },
    { "oc.dict.values", 1, 1, "${oc.dict.values:key}", run_dict },
    { "now", 0, 1, "${now:%Y-%m-%d}", run_now },
    { "kiln", 1, 1, "${kiln:run.dir}", run_kiln },
    { "hydra", 1, 1, "${hydra:run.dir}", run_kiln },
};

static KilnStatus unknown(const Call *call)
{
    const char *names[KILN_COUNT(resolvers)], *near;
    KilnText text = { 0 };

    for (size_t i = 0; i < KILN_COUNT(resolvers); i++)
        names[i] = resolvers[i].name;
    near = kiln_nearest(call->name, names, KILN_COUNT(names));
    kiln_text_printf(&text, "there is no resolver '%s'", call->name);
    if (near != NULL)
        kiln_text_printf(&text, " (did you mean %s?)", near);
    for (size_t i = 0; i < KILN_COUNT(names); i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "; there are ", names[i]);
    return kiln_text_to_error(&text, KILN_E_KEY, call->err);
}

KilnStatus kiln_resolver_call(const KilnValueParser *parser, const char *name,
                              const KilnConfigNode *arguments, const KilnConfigNode **ret)
{
    Call call = { .resolution = parser->resolution,
                  .err = parser->err,
                  .node = parser->node,
                  .name = name,
                  .arguments = arguments,
                  .maker = parser->maker };

    for (size_t i = 0; i < KILN_COUNT(resolvers); i++) {
        const Resolver *resolver = &resolvers[i];

        if (strcmp(resolver->name, name) != 0)
            continue;
        if (arguments->count < resolver->min_args || arguments->count > resolver->max_args)
            return kiln_error_set(call.err, KILN_E_USAGE, "%s got %zu arguments; write %s", name,
                                  arguments->count, resolver->usage);
        *ret = resolver->run(&call);
        if (*ret == NULL && call.maker.arena->failed)
            return kiln_error_nomem(call.err, sizeof(**ret));
        return *ret != NULL ? KILN_OK : call.err->status;
    }
    return unknown(&call);
}
