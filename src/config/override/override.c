/* Parses overrides: sign, key, package. value.c parses their values. */
#include "config/override/override.h"

#include <string.h>

#include "base/text.h"
#include "config/yaml/scalar.h"
#include "config/composed.h"
#include "config/override/value.h"

bool kiln_is_foreign_node(const char *name, size_t n)
{
    return n == strlen("hydra") && memcmp(name, "hydra", n) == 0;
}

const char *kiln_own_path(KilnArena *arena, const char *path)
{
    size_t n = path != NULL ? strcspn(path, "./") : 0;

    if (!kiln_is_foreign_node(path, n))
        return path;
    return kiln_arena_printf(arena, "kiln%s", path + n);
}

/* One name of a key: letters, digits, _ - $, or a number; its length, 0: none. */
static size_t name_length(const char *p, bool number)
{
    size_t n = 0;

    if (number && kiln_is_digit(*p))
        return strspn(p, "0123456789");
    if (!kiln_is_letter(*p) && *p != '$')
        return 0;
    while (kiln_is_word(p[n]) || p[n] == '$')
        n++;
    return n;
}

/* "-1", the last item of a list. */
static size_t index_length(const char *p)
{
    size_t n = *p == '-' ? strspn(p + 1, "0123456789") : 0;

    return n > 0 ? n + 1 : 0;
}

/* Length of a key "a.b.0" or group "a/b". */
static size_t key_length(const char *p)
{
    size_t n = name_length(p, true);
    char between = p[n];

    while (n > 0 && p[n] == between && (between == '.' || between == '/')) {
        size_t more = between == '.' ? index_length(p + n + 1) : 0;

        if (more == 0)
            more = name_length(p + n + 1, between == '.');
        if (more == 0)
            break;
        n += 1 + more;
    }
    /* tags-=x: the last - is not part of the name. */
    return n > 1 && p[n - 1] == '-' && p[n] == '=' ? n - 1 : n;
}

static KilnStatus bad_key(const KilnOverride *override, const char *p, KilnError *err)
{
    const char *written = override->text;
    int column = (int)(p - written) + 1;

    if (*p == '\0' && *override->assignment == '\0')
        kiln_error_set(err, KILN_E_SYNTAX,
                       "expected key=value, +key=value, ++key=value, ~key or group=option");
    else if (*p == '\0')
        kiln_error_set(err, KILN_E_SYNTAX, "'=' is missing; expected key=value or group=option");
    else if (*p == '[')
        kiln_error_set(err, KILN_E_SYNTAX,
                       "column %d: '[' in a key; write an index with a dot (tags.0=x)", column);
    else if (*p == ' ')
        kiln_error_set(err, KILN_E_SYNTAX, "column %d: a blank in the key; write key=value",
                       column);
    else if (*p == '=' && p == override->assignment)
        kiln_error_set(err, KILN_E_SYNTAX,
                       "there is no key before '='; write key=value without blanks around '='");
    else if (*p == '/' && p == override->assignment)
        kiln_error_set(err, KILN_E_SYNTAX, "write a group without '/' in front: %s", p + 1);
    else
        kiln_error_set(err, KILN_E_SYNTAX,
                       "column %d: '%c' is not allowed in a key; a key is names with dots "
                       "(optimizer.lr), a group names with '/' (model/head)",
                       column, *p);
    KilnOrigin at = override->origin;
    at.column = column;
    return kiln_error_at(err, &at);
}

KilnOrigin kiln_override_key_origin(const KilnOverride *override)
{
    KilnOrigin at = override->origin;

    if (at.line == 0)
        at.column = (int)(override->assignment - override->text) + 1;
    return at;
}

/* Before the key, or of the kinds after DELETE before the =. */
static const char *const signs[] = {
    [KILN_OVERRIDE_SET] = "",     [KILN_OVERRIDE_ADD] = "+",    [KILN_OVERRIDE_FORCE] = "++",
    [KILN_OVERRIDE_DELETE] = "~", [KILN_OVERRIDE_APPEND] = "+", [KILN_OVERRIDE_REMOVE] = "-",
    [KILN_OVERRIDE_REPLACE] = ":"
};

/* The sign before the key. */
static const char *read_sign(const char *p, KilnOverride *override)
{
    if (*p == '~') {
        override->kind = KILN_OVERRIDE_DELETE;
        p++;
    } else if (*p == '+') {
        override->kind = p[1] == '+' ? KILN_OVERRIDE_FORCE : KILN_OVERRIDE_ADD;
        p += p[1] == '+' ? 2 : 1;
    }
    override->assignment = p;
    return p;
}

/* += -= := before the value. Returns the position of the =. */
static const char *read_operator(const char *p, KilnOverride *override)
{
    if (override->kind != KILN_OVERRIDE_SET) /* ~a+=1 is not allowed */
        return p;
    for (KilnOverrideKind kind = KILN_OVERRIDE_APPEND; kind <= KILN_OVERRIDE_REPLACE; kind++)
        if (p[0] == signs[kind][0] && p[1] == '=') {
            override->kind = kind;
            return p + 1;
        }
    return p;
}

static const char *copy_key(KilnArena *arena, const char *p, size_t n)
{
    return kiln_own_path(arena, kiln_arena_strndup(arena, p, n));
}

/* key=extend_list(a,b) is Hydra's way to write key+=[a,b]. */
static KilnStatus read_extension(const KilnValueParser *parser, const KilnConfigNode *node,
                                 KilnOverride *override)
{
    size_t start = (size_t)(override->value_text - override->text);

    if (node != parser->extension)
        return kiln_value_fail(parser, start,
                               "extend_list() must be the whole value; a sweep appends with "
                               "%s+=a,b",
                               override->key);
    if (override->kind != KILN_OVERRIDE_SET)
        return kiln_value_fail(parser, start,
                               "extend_list() appends to the list: write %s=..., without another "
                               "sign",
                               override->key);
    override->kind = KILN_OVERRIDE_APPEND;
    return KILN_OK;
}

static KilnStatus read_value(KilnArena *arena, KilnOverride *override, KilnError *err)
{
    KilnValueParser parser = { .maker = { arena, override->origin, KILN_LAYER_ARGUMENT },
                               .text = override->text,
                               .at = (size_t)(override->value_text - override->text),
                               .functions = true,
                               .err = err };
    KilnConfigNode *items = kiln_node_new(&parser.maker, KILN_NODE_LIST), *node;
    KilnStatus status;

    kiln_value_skip_blanks(&parser);
    if (items == NULL)
        return KILN_E_NOMEM;
    if (parser.text[parser.at] == '\0') {
        if (parser.maker.origin.line == 0)
            parser.maker.origin.column = (int)parser.at + 1;
        override->value = kiln_node_string(&parser.maker, "");
        return KILN_OK;
    }
    status = kiln_value_sequence(&parser, '\0', false, items);
    node = status >= 0 && items->count == 1 ? items->entries[0].value : items;
    if (status >= 0 && parser.extension != NULL)
        status = read_extension(&parser, node, override);
    if (status < 0)
        return kiln_error_at(err, &override->origin);
    if (node->parent == items)
        node->parent = NULL;
    if (node == items) /* with commas */
        override->sweep = kiln_sweep_value_new(&parser, KILN_SWEEP_CHOICE, items);
    else
        override->sweep = kiln_sweep_value_of(&parser, node);
    if (node == items && override->sweep != NULL)
        override->sweep->simple = true;
    override->value = override->sweep != NULL && node->count > 0 ? node->entries[0].value : node;
    return KILN_OK;
}

KilnStatus kiln_override_read_from(KilnArena *arena, const char *text, const KilnOrigin *origin,
                                   KilnOverride *ret, KilnError *err)
{
    KilnOverride override = { .origin = *origin, .text = kiln_arena_strdup(arena, text) };
    KilnError *problem = kiln_arena_alloc(arena, sizeof(*problem));
    const char *p;
    size_t n;

    if (arena->failed)
        return kiln_error_nomem(err, strlen(text));
    p = read_sign(override.text, &override);
    n = key_length(p);
    if (n == 0)
        return bad_key(&override, p, err);
    override.key = copy_key(arena, p, n);
    p += n;
    if (*p == '@') {
        n = key_length(p + 1);
        override.package = copy_key(arena, p + 1, n);
        p += 1 + n;
    }
    if (*p != '\0' || override.kind != KILN_OVERRIDE_DELETE) {
        p = read_operator(p, &override);
        if (*p != '=')
            return bad_key(&override, p, err);
        override.value_text = p + 1;
        if (read_value(arena, &override, problem) < 0)
            override.problem = problem;
    }
    *ret = override;
    return arena->failed ? kiln_error_nomem(err, strlen(text)) : KILN_OK;
}

KilnOrigin kiln_override_origin(KilnArena *arena, const char *text, size_t number)
{
    const bool is_long = strlen(text) > 200;

    return (KilnOrigin) { .source = kiln_arena_printf(
                              arena, is_long ? "argument %zu `%.180s...`" : "argument %zu `%s`",
                              number, text) };
}

KilnStatus kiln_override_read(KilnArena *arena, const char *text, size_t number, KilnOverride *ret,
                              KilnError *err)
{
    if (!kiln_text_is_utf8(text, strlen(text)))
        return kiln_error_set(err, KILN_E_SYNTAX, "argument %zu: the text is not UTF-8", number);
    const KilnOrigin origin = kiln_override_origin(arena, text, number);
    return kiln_override_read_from(arena, text, &origin, ret, err);
}

/* ---- Plain text ------------------------------------------------------------------------ */

static bool may_be_text(const KilnOverride *override)
{
    const char *p = override->value_text;

    if (p == NULL || override->package != NULL || override->kind > KILN_OVERRIDE_FORCE)
        return false;
    p += strspn(p, " \t");
    return strchr("'\"[{", *p) == NULL && !kiln_function_is_called(p);
}

void kiln_override_accept_text(KilnArena *arena, const KilnConfig *config,
                               const KilnComposeHooks *hooks, KilnOverride *override)
{
    if ((override->problem == NULL && override->sweep == NULL) || !may_be_text(override) ||
        hooks == NULL || hooks->is_text == NULL ||
        !hooks->is_text(hooks->ctx, config, override->key))
        return;
    const char *p = override->value_text + strspn(override->value_text, " \t");
    size_t n = strlen(p);
    KilnMaker maker = { .arena = arena, .origin = override->origin, .layer = KILN_LAYER_ARGUMENT };

    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    maker.origin.column = (int)(p - override->text) + 1;
    override->value = kiln_node_string(&maker, kiln_arena_strndup(arena, p, n));
    if (override->value == NULL)
        return;
    override->value->quote = '\'';
    override->problem = NULL;
    override->sweep = NULL;
}

const char *kiln_override_target(KilnArena *arena, const KilnOverride *override)
{
    bool packed = override->package != NULL, front = override->kind <= KILN_OVERRIDE_DELETE;

    return kiln_arena_printf(arena, "%s%s%s%s%s", front ? signs[override->kind] : "", override->key,
                             packed ? "@" : "", packed ? override->package : "",
                             front ? "" : signs[override->kind]);
}

bool kiln_override_is_own(const KilnOverride *override)
{
    size_t n = strcspn(override->key, "./");

    return n == strlen("kiln") && strncmp(override->key, "kiln", n) == 0;
}
