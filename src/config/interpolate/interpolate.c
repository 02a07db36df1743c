/* Resolves interpolations: ${a.b}, ${.x}, and text with them. Resolvers such as ${oc.env:X} are
 * in resolvers.c, ${eval:...} in expression.c. */
#include "config/interpolate/interpolate.h"

#include <string.h>

#include "config/provenance/origin.h"
#include "config/yaml/scalar.h"
#include "config/composed.h"

enum {
    LONGEST_NAME = 1024,                        /* "a.b.c" of ${a.b.c} */
    MOST_NESTING = 2 * KILN_INTERPOLATION_DEPTH /* counts a chain of nodes too */
};

typedef struct KilnActive {
    const KilnConfigNode *node;
    const struct KilnActive *before;
} KilnActive;

static bool is_interpolation(const KilnConfigNode *node)
{
    return kiln_node_is_scalar(node, KILN_SCALAR_INTERPOLATION);
}

static bool is_missing(const KilnConfigNode *node)
{
    return kiln_node_is_scalar(node, KILN_SCALAR_MISSING);
}

/* ---- Paths ------------------------------------------------------------------- */

/* `base` after the dots at the front of *path; NULL above the root. */
static const KilnConfigNode *skip_dots(const KilnConfigNode *root, const KilnConfigNode *base,
                                       const char **path)
{
    if (**path != '.')
        return root;
    for ((*path)++; **path == '.' && base != NULL; (*path)++)
        base = base->parent;
    return base;
}

/* As kiln_resolve_path; *ret_missing is a value on the path that is missing (???), so that
 * everything below it is missing too. */
static KilnStatus follow(KilnResolution *resolution, const KilnConfigNode *base, const char *path,
                         const KilnConfigNode **ret, const KilnConfigNode **ret_missing)
{
    bool absolute = *path != '.';
    const KilnConfigNode *node = skip_dots(resolution->root, base, &path);
    char part[KILN_PATH_PART];
    KilnStatus status = KILN_OK;

    for (bool first = true; node != NULL && kiln_path_next(&path, part); first = false) {
        const KilnEntry *entry;

        status = kiln_resolve_node(resolution, node, &node);
        if (status < 0)
            return status;
        if (is_missing(node))
            *ret_missing = node;
        entry = kiln_node_entry(node, part);
        if (entry == NULL && first && absolute && kiln_is_foreign_node(part, strlen(part)))
            entry = kiln_node_entry(node, "kiln");
        node = entry != NULL ? entry->value : NULL;
    }
    if (node != NULL && *path != '\0')
        node = NULL; /* a part too long to be a name */
    *ret = NULL;
    return node != NULL ? kiln_resolve_node(resolution, node, ret) : KILN_OK;
}

KilnStatus kiln_resolve_path(KilnResolution *resolution, const KilnConfigNode *base,
                             const char *path, const KilnConfigNode **ret)
{
    const KilnConfigNode *missing = NULL;

    return follow(resolution, base, path, ret, &missing);
}

static bool has_long_part(const char *path)
{
    char part[KILN_PATH_PART];

    while (kiln_path_next(&path, part))
        continue;
    return *path != '\0' && strcmp(path, ".") != 0;
}

KilnStatus kiln_resolve_missing(const KilnConfigNode *base, const char *path, KilnError *err)
{
    const char *rest = path, *before = path, *near;
    char part[KILN_PATH_PART] = "";
    const KilnEntry *entry;

    /* Follow the path as far as it exists. */
    if (has_long_part(path))
        return kiln_error_set(err, KILN_E_KEY,
                              "'%.60s...': a name in it is longer than %d characters, which can't "
                              "be referred to",
                              path, KILN_PATH_PART - 1);
    while (kiln_path_next(&rest, part) && (entry = kiln_node_entry(base, part)) != NULL) {
        base = entry->value;
        before = rest;
    }
    near = kiln_node_nearest(base, part);
    if (base->kind == KILN_NODE_LIST)
        return kiln_error_set(err, KILN_E_KEY,
                              "there is no '%s': the list has %zu items (the first is 0)", path,
                              base->count);
    if (near == NULL)
        return kiln_error_set(err, KILN_E_KEY, "there is no key '%s'", path);
    return kiln_error_set(err, KILN_E_KEY, "there is no key '%s'; did you mean '%.*s%s%s'?", path,
                          (int)(before - path), path, before > path ? "." : "", near);
}

/* ---- ${...} ------------------------------------------------------------------- */

/* Reads the name before ':' or the path before '}', and resolves nested ${...} in it;
 * *ret_missing is one of those that is missing (???). */
static KilnStatus read_key(KilnValueParser *parser, KilnText *key,
                           const KilnConfigNode **ret_missing)
{
    for (;;) {
        const char *p = parser->text + parser->at;

        if (*p == '\0' || *p == '}' || *p == ':' || *p == ' ' || *p == '\t')
            return KILN_OK;
        if (*p == '$' && p[1] == '{') {
            const KilnConfigNode *part = NULL;
            KilnStatus status = kiln_resolve_interpolation(parser, &part);

            if (status < 0)
                return status;
            if (part->kind != KILN_NODE_SCALAR)
                return kiln_value_fail(parser, parser->at, "%s can't be part of a name",
                                       kiln_node_kind_name(part));
            if (is_missing(part))
                *ret_missing = part;
            kiln_text_append(key, part->text);
            continue;
        }
        if (strchr("\\{()'\",", *p) != NULL)
            return kiln_value_fail(parser, parser->at,
                                   "'%c' is not allowed in the name of an interpolation", *p);
        if (key->length >= LONGEST_NAME)
            return kiln_value_fail(parser, parser->at,
                                   "the name in an interpolation is longer than %d characters",
                                   LONGEST_NAME);
        kiln_text_char(key, *p);
        parser->at++;
    }
}

/* An escaped \${x} is plain text itself, but a reference to it is resolved: Hydra resolves
 * values in place, one by one. */
static bool is_unescaped(const KilnConfigNode *node)
{
    return kiln_node_is_scalar(node, KILN_SCALAR_STR) && !node->quoted &&
           strstr(node->text, "${") != NULL;
}

static KilnStatus resolve_again(KilnResolution *resolution, const KilnConfigNode **ret)
{
    KilnConfigNode *again = kiln_arena_alloc(resolution->config->arena, sizeof(*again));

    if (again == NULL)
        return kiln_error_nomem(resolution->err, sizeof(*again));
    *again = **ret;
    again->scalar = KILN_SCALAR_INTERPOLATION;
    return kiln_resolve_node(resolution, again, ret);
}

static KilnStatus look_up(KilnResolution *resolution, const KilnConfigNode *node, const char *path,
                          const KilnConfigNode **ret)
{
    const char *rest = path;
    const KilnConfigNode *base = skip_dots(resolution->root, node->parent, &rest);
    const KilnConfigNode *missing = NULL;
    KilnStatus status = follow(resolution, node->parent, path, ret, &missing);

    if (status >= 0 && missing != NULL)
        *ret = missing;
    if (status >= 0 && *ret != NULL && is_unescaped(*ret))
        return resolve_again(resolution, ret);
    if (status < 0 || *ret != NULL)
        return status;
    if (base == NULL)
        return kiln_error_set(resolution->err, KILN_E_KEY,
                              "${%s}: the dots lead above the top of the config", path);
    kiln_resolve_missing(base, rest, resolution->err);
    const KilnRemoved *removed = kiln_removal_find(resolution->config, rest);
    if (removed != NULL) {
        KilnText text = { 0 };

        kiln_text_printf(&text, "%s; ", resolution->err->text);
        kiln_origin_write(&text, &removed->origin);
        kiln_text_append(&text, " removed it");
        kiln_text_to_error(&text, KILN_E_KEY, resolution->err);
    }
    return kiln_error_prefix(resolution->err, "${%s}: ", path);
}

static KilnStatus call(KilnValueParser *parser, const char *name, const KilnConfigNode *missing,
                       const KilnConfigNode **ret)
{
    KilnConfigNode *arguments = kiln_node_new(&parser->maker, KILN_NODE_LIST);
    KilnStatus status;

    if (arguments == NULL)
        return kiln_error_nomem(parser->err, sizeof(*arguments));
    parser->at++; /* the colon */
    status = kiln_value_sequence(parser, '}', true, arguments);
    if (status < 0)
        return status;
    /* The result is missing when an argument is. */
    for (size_t i = 0; missing == NULL && i < arguments->count; i++)
        if (is_missing(arguments->entries[i].value))
            missing = arguments->entries[i].value;
    if (missing != NULL) {
        *ret = missing;
        return KILN_OK;
    }
    return kiln_resolver_call(parser, name, arguments, ret);
}

static KilnStatus after_key(KilnValueParser *parser, size_t start, const char *name,
                            const KilnConfigNode *missing, const KilnConfigNode **ret)
{
    kiln_value_skip_blanks(parser);
    if (name == NULL)
        return kiln_error_nomem(parser->err, 1);
    if (*name == '\0')
        return kiln_value_fail(parser, start, "an interpolation without a name");
    if (parser->text[parser->at] == ':' && strcmp(name, "eval") == 0)
        return kiln_eval_call(parser, start, ret);
    if (parser->text[parser->at] == ':')
        return call(parser, name, missing, ret);
    if (parser->text[parser->at] != '}')
        return kiln_value_fail(parser, start, "'${' is not closed by '}'");
    parser->at++;
    *ret = missing;
    return missing != NULL ? KILN_OK : look_up(parser->resolution, parser->node, name, ret);
}

KilnStatus kiln_resolve_interpolation(KilnValueParser *parser, const KilnConfigNode **ret)
{
    KilnResolution *resolution = parser->resolution;
    size_t start = parser->at;
    const KilnConfigNode *missing = NULL;
    KilnText key = { 0 };
    KilnStatus status;

    if (++resolution->steps > KILN_INTERPOLATION_STEPS)
        return kiln_error_set(
            resolution->err, KILN_E_RANGE,
            "more than %d interpolations for one value: it grows without end; write "
            "parts of it out",
            KILN_INTERPOLATION_STEPS);
    if (resolution->nesting >= MOST_NESTING)
        return kiln_value_fail(parser, start, "nested deeper than %d levels", MOST_NESTING);
    resolution->nesting++;
    parser->at += 2;
    kiln_value_skip_blanks(parser);
    status = read_key(parser, &key, &missing);
    const char *name = kiln_text_to_arena(&key, parser->maker.arena);
    if (status >= 0)
        status = after_key(parser, start, name, missing, ret);
    resolution->nesting--;
    return status;
}

/* ---- Text ---------------------------------------------------------------------- */

/* A copy of a list or mapping with all its values resolved. */
static KilnStatus resolve_all(KilnResolution *resolution, const KilnConfigNode *node,
                              const KilnConfigNode **ret)
{
    KilnConfigNode *copy = kiln_arena_alloc(resolution->config->arena, sizeof(*copy));
    KilnStatus status = KILN_OK;

    if (copy == NULL)
        return kiln_error_nomem(resolution->err, sizeof(*copy));
    *copy = *node;
    if (!kiln_node_own_entries(resolution->config->arena, copy))
        return kiln_error_nomem(resolution->err, node->count * sizeof(*node->entries));
    if (resolution->depth >= KILN_INTERPOLATION_DEPTH)
        return kiln_error_set(resolution->err, KILN_E_RANGE,
                              "nested deeper than %d levels when its interpolations are resolved",
                              KILN_INTERPOLATION_DEPTH);
    resolution->depth++;
    for (size_t i = 0; i < node->count && status >= 0; i++) {
        const KilnConfigNode *value = NULL;

        status = kiln_resolve_node(resolution, node->entries[i].value, &value);
        if (status >= 0 && value->kind != KILN_NODE_SCALAR)
            status = resolve_all(resolution, value, &value);
        copy->entries[i].value = (KilnConfigNode *)value; /* read only */
    }
    resolution->depth--;
    *ret = copy;
    return status;
}

KilnStatus kiln_resolve_text(KilnResolution *resolution, const KilnConfigNode *node, KilnText *text)
{
    KilnStatus status = KILN_OK;

    if (node->kind != KILN_NODE_SCALAR)
        status = resolve_all(resolution, node, &node);
    if (status >= 0)
        kiln_value_text(node, text);
    return status;
}

/* Appends text and resolved interpolations. Two backslashes before ${ stand for one, and an odd
 * one makes the ${ plain text. *ret is the value of an interpolation that is the whole text. */
static KilnStatus resolve_text(KilnValueParser *parser, KilnText *text, const KilnConfigNode **ret,
                               bool *ret_escaped)
{
    while (parser->text[parser->at] != '\0') {
        const char *p = parser->text + parser->at;
        size_t n = strspn(p, "\\");
        bool here = p[n] == '$' && p[n + 1] == '{';
        const KilnConfigNode *part = NULL;
        bool whole;
        KilnStatus status;

        kiln_text_append_n(text, p, here ? n / 2 : n);
        parser->at += n;
        if (!here || n % 2 == 1) {
            *ret_escaped |= here;
            if (p[n] != '\0')
                kiln_text_char(text, parser->text[parser->at++]);
            continue;
        }
        whole = parser->at == 0;
        status = kiln_resolve_interpolation(parser, &part);
        if (status < 0)
            return status;
        if (is_missing(part) || (whole && parser->text[parser->at] == '\0')) {
            *ret = part;
            return KILN_OK;
        }
        status = kiln_resolve_text(parser->resolution, part, text);
        if (status < 0)
            return status;
        if (text->length > KILN_INTERPOLATION_BYTES)
            return kiln_error_set(
                parser->err, KILN_E_RANGE,
                "the text becomes longer than 1 MiB; put data into a file of its own");
    }
    return KILN_OK;
}

static KilnStatus resolve_scalar(KilnResolution *resolution, const KilnConfigNode *node,
                                 const KilnConfigNode **ret)
{
    KilnValueParser parser = { .maker = { resolution->config->arena, node->origin, node->layer },
                               .text = node->text,
                               .err = resolution->err,
                               .resolution = resolution,
                               .node = node };
    KilnText text = { 0 };
    const KilnConfigNode *whole = NULL;
    bool escaped = false;
    KilnStatus status = resolve_text(&parser, &text, &whole, &escaped);

    if (status >= 0 && whole == NULL) {
        const char *copy = kiln_text_to_arena(&text, parser.maker.arena);
        KilnConfigNode *made = copy != NULL ? kiln_node_scalar(&parser.maker, KILN_SCALAR_STR, copy)
                                            : NULL;

        if (made == NULL)
            return kiln_error_nomem(resolution->err, sizeof(*made));
        made->parent = node->parent;
        made->quoted = !escaped;
        whole = made;
    }
    kiln_text_release(&text);
    if (status >= 0)
        *ret = whole;
    return status;
}

/* Add the path of the node, or for a node on the way "through ...", to the error. */
static KilnStatus add_location(KilnResolution *resolution, const KilnConfigNode *node)
{
    const KilnOrigin *origin = &node->origin;
    const char *path = kiln_node_path(resolution->config, node);

    if (resolution->depth == 0) {
        kiln_error_prefix(resolution->err, "%s%s", path, *path != '\0' ? ": " : "");
        return kiln_error_at(resolution->err, origin);
    }
    KilnError text = *resolution->err;
    KilnError at = { .status = text.status };
    kiln_error_at(&at, origin);
    return kiln_error_set(resolution->err, text.status, "%s\n  through %s%s", text.text, at.text,
                          node->text);
}

KilnStatus kiln_resolve_node(KilnResolution *resolution, const KilnConfigNode *node,
                             const KilnConfigNode **ret)
{
    KilnActive active = { .node = node, .before = resolution->active };
    KilnStatus status = KILN_OK;

    if (!is_interpolation(node)) {
        *ret = node;
        return KILN_OK;
    }
    for (const KilnActive *other = resolution->active; other != NULL && status >= 0;
         other = other->before)
        if (other->node == node)
            status = kiln_error_set(resolution->err, KILN_E_KEY,
                                    "%s refers to itself: a cycle of interpolations", node->text);
    if (status >= 0 && resolution->depth >= KILN_INTERPOLATION_DEPTH)
        status =
            kiln_error_set(resolution->err, KILN_E_RANGE,
                           "a chain of more than %d interpolations; refer to the value at its end",
                           KILN_INTERPOLATION_DEPTH);
    if (status < 0)
        return status;
    resolution->active = &active;
    resolution->depth++;
    status = resolve_scalar(resolution, node, ret);
    resolution->depth--;
    resolution->active = active.before;
    return status >= 0 ? status : add_location(resolution, node);
}

KilnStatus kiln_config_resolve(const KilnConfig *config, const KilnConfigNode *node,
                               const KilnConfigNode **ret, KilnError *err)
{
    KilnError local = { 0 };
    KilnResolution resolution = { .config = config,
                                  .root = config->root,
                                  .err = err != NULL ? err : &local };

    if (node == NULL) {
        *ret = NULL;
        return KILN_OK;
    }
    return kiln_resolve_node(&resolution, node, ret);
}

bool kiln_config_uses_time(const KilnConfig *config, const char *key)
{
    KilnError err = { 0 };
    KilnResolution resolution = { .config = config, .root = config->root, .err = &err };
    const KilnConfigNode *node = NULL;

    return kiln_resolve_path(&resolution, config->root, key, &node) >= 0 && resolution.used_time;
}

/* The node at `path`, or the first interpolation on the path. */
static const KilnConfigNode *follow_path(const KilnConfigNode *node, const char *path)
{
    char part[KILN_PATH_PART];

    while (node != NULL && !is_interpolation(node) && kiln_path_next(&path, part)) {
        const KilnEntry *entry = kiln_node_entry(node, part);

        node = entry != NULL ? entry->value : NULL;
    }
    return node;
}

const KilnConfigNode *kiln_interpolation_at(const KilnConfig *config, const KilnConfigNode *node,
                                            const char *text)
{
    char path[KILN_PATH_PART];
    const char *p = path;
    size_t n = strcspn(text + 2, "}:$ {");

    if (n >= sizeof(path) || text[2 + n] != '}')
        return NULL;
    memcpy(path, text + 2, n);
    path[n] = '\0';
    return follow_path(skip_dots(config->root, node->parent, &p), p);
}

const KilnConfigNode *kiln_interpolation_target(const KilnConfig *config,
                                                const KilnConfigNode *node)
{
    if (!is_interpolation(node) || strncmp(node->text, "${", 2) != 0 ||
        strcspn(node->text, "}") + 1 != strlen(node->text))
        return NULL;
    return kiln_interpolation_at(config, node, node->text);
}
