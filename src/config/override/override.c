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
    static const struct {
        char sign;
        KilnOverrideKind kind;
    } operators[] = { { '+', KILN_OVERRIDE_APPEND },
                      { '-', KILN_OVERRIDE_REMOVE },
                      { ':', KILN_OVERRIDE_REPLACE } };

    /* ~a+=1 is not allowed. */
    for (size_t i = 0; i < KILN_COUNT(operators) && override->kind == KILN_OVERRIDE_SET; i++) {
        if (p[0] != operators[i].sign || p[1] != '=')
            continue;
        override->kind = operators[i].kind;
        return p + 1;
    }
    return p;
}

static const char *copy_key(KilnArena *arena, const char *p, size_t n)
{
    const char *key = kiln_arena_strndup(arena, p, n);

    return key != NULL ? kiln_own_path(arena, key) : NULL;
}

/* Parse the elements after the first one and its comma; together they are a sweep. */
static KilnStatus read_more(KilnValueParser *parser, KilnConfigNode *first)
{
    KilnConfigNode *items = kiln_node_new(&parser->maker, KILN_NODE_LIST), *item = first;
    size_t start = parser->at;
    KilnStatus status = KILN_OK;

    if (items == NULL)
        return kiln_error_nomem(parser->err, sizeof(*items));
    for (;;) {
        if (kiln_sweep_value_of(parser, item) != NULL)
            return kiln_value_fail(parser, start,
                                   "a function with several values among others; write them all "
                                   "with commas, or all as its arguments");
        status = kiln_value_append(parser, items, NULL, item);
        kiln_value_skip_blanks(parser);
        if (status < 0 || parser->text[parser->at] != ',')
            break;
        parser->at++;
        kiln_value_skip_blanks(parser);
        start = parser->at;
        status = kiln_value_element(parser, &item);
        if (status < 0)
            return status;
    }
    KilnSweepValue *sweep = kiln_sweep_value_new(parser, KILN_SWEEP_CHOICE, items);
    if (sweep == NULL)
        return kiln_error_nomem(parser->err, sizeof(*sweep));
    sweep->simple = true;
    return status;
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
    KilnConfigNode *node = NULL;
    KilnStatus status;

    kiln_value_skip_blanks(&parser);
    if (parser.text[parser.at] == '\0') {
        if (parser.maker.origin.line == 0)
            parser.maker.origin.column = (int)parser.at + 1;
        override->value = kiln_node_string(&parser.maker, "");
        return override->value != NULL ? KILN_OK : kiln_error_nomem(err, 1);
    }
    status = kiln_value_element(&parser, &node);
    kiln_value_skip_blanks(&parser);
    if (status >= 0 && parser.text[parser.at] == ',') {
        status = read_more(&parser, node);
        if (status >= 0)
            node = parser.sweeps->items;
    }
    if (status >= 0 && parser.text[parser.at] != '\0')
        status = kiln_value_fail(&parser, parser.at,
                                 "'%c' closes nothing; quote the value if it is text",
                                 parser.text[parser.at]);
    if (status >= 0 && parser.extension != NULL)
        status = read_extension(&parser, node, override);
    if (status < 0)
        return kiln_error_at(err, &override->origin);
    override->sweep = kiln_sweep_value_of(&parser, node);
    override->value = override->sweep != NULL && node->count > 0 ? node->entries[0].value : node;
    return KILN_OK;
}

/* Long arguments are cut. */
static const char *origin_text(KilnArena *arena, const char *text, size_t number)
{
    size_t length = strlen(text);

    if (length > 200)
        return kiln_arena_printf(arena, "argument %zu `%.*s...`", number, 180, text);
    return kiln_arena_printf(arena, "argument %zu `%s`", number, text);
}

static KilnStatus keep_problem(KilnArena *arena, const KilnError *problem, KilnOverride *override,
                               KilnError *err)
{
    KilnError *copy = kiln_arena_alloc(arena, sizeof(*copy));

    if (problem->status == KILN_E_NOMEM || copy == NULL)
        return kiln_error_nomem(err, sizeof(*copy));
    *copy = *problem;
    override->problem = copy;
    return KILN_OK;
}

/* A value that cannot be parsed becomes the override's problem. */
static KilnStatus read_override(KilnArena *arena, const char *text, const KilnOrigin *origin,
                                KilnOverride *ret, KilnError *err)
{
    KilnOverride override = { .kind = KILN_OVERRIDE_SET, .origin = *origin };
    KilnError problem = { 0 };
    const char *p;
    size_t n;

    override.text = kiln_arena_strdup(arena, text);
    if (override.text == NULL)
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
    if (override.key == NULL)
        return kiln_error_nomem(err, n);
    if (*p == '\0' && override.kind == KILN_OVERRIDE_DELETE) {
        *ret = override;
        return KILN_OK;
    }
    p = read_operator(p, &override);
    if (*p != '=')
        return bad_key(&override, p, err);
    override.value_text = p + 1;
    KilnStatus status = read_value(arena, &override, &problem);
    if (status < 0)
        status = keep_problem(arena, &problem, &override, err);
    if (status >= 0)
        *ret = override;
    return status;
}

KilnStatus kiln_override_read(KilnArena *arena, const char *text, size_t number, KilnOverride *ret,
                              KilnError *err)
{
    KilnOrigin origin = { 0 };

    if (!kiln_text_is_utf8(text, strlen(text)))
        return kiln_error_set(err, KILN_E_SYNTAX, "argument %zu: the text is not UTF-8", number);
    origin.source = origin_text(arena, text, number);
    if (origin.source == NULL)
        return kiln_error_nomem(err, strlen(text));
    return read_override(arena, text, &origin, ret, err);
}

/* Return the problem as an error. */
static KilnStatus refuse_problem(KilnStatus status, const KilnOverride *override, KilnOverride *ret,
                                 KilnError *err)
{
    if (status < 0)
        return status;
    if (override->problem == NULL)
        *ret = *override;
    else if (err != NULL)
        *err = *override->problem;
    return override->problem != NULL ? override->problem->status : KILN_OK;
}

KilnStatus kiln_override_parse(KilnArena *arena, const char *text, size_t number, KilnOverride *ret,
                               KilnError *err)
{
    KilnOverride override = { 0 };
    KilnStatus status = kiln_override_read(arena, text, number, &override, err);

    return refuse_problem(status, &override, ret, err);
}

KilnStatus kiln_override_parse_from(KilnArena *arena, const char *text, const KilnOrigin *origin,
                                    KilnOverride *ret, KilnError *err)
{
    KilnOverride override = { 0 };
    KilnStatus status = read_override(arena, text, origin, &override, err);

    return refuse_problem(status, &override, ret, err);
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

static KilnStatus take_text(KilnArena *arena, KilnOverride *override, KilnError *err)
{
    const char *p = override->value_text + strspn(override->value_text, " \t");
    size_t n = strlen(p);
    KilnMaker maker = { .arena = arena, .origin = override->origin, .layer = KILN_LAYER_ARGUMENT };

    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    maker.origin.column = (int)(p - override->text) + 1;
    const char *text = kiln_arena_strndup(arena, p, n);
    KilnConfigNode *node = text != NULL ? kiln_node_string(&maker, text) : NULL;
    if (node == NULL)
        return kiln_error_nomem(err, n);
    node->quote = '\'';
    override->value = node;
    override->problem = NULL;
    override->sweep = NULL;
    return KILN_OK;
}

KilnStatus kiln_override_accept_text(KilnArena *arena, const KilnConfig *config,
                                     const KilnComposeHooks *hooks, KilnOverride *override,
                                     KilnError *err)
{
    if ((override->problem == NULL && override->sweep == NULL) || !may_be_text(override) ||
        hooks == NULL || hooks->is_text == NULL ||
        !hooks->is_text(hooks->ctx, config, override->key))
        return KILN_OK;
    return take_text(arena, override, err);
}

const char *kiln_override_group_key(KilnArena *arena, const KilnOverride *override)
{
    if (override->package == NULL)
        return override->key;
    return kiln_arena_printf(arena, "%s@%s", override->key,
                             *override->package != '\0' ? override->package : "_global_");
}

const char *kiln_override_target(KilnArena *arena, const KilnOverride *override)
{
    static const char *const signs[] = { [KILN_OVERRIDE_SET] = "",
                                         [KILN_OVERRIDE_ADD] = "+",
                                         [KILN_OVERRIDE_FORCE] = "++",
                                         [KILN_OVERRIDE_DELETE] = "~" };
    static const char *const operators[] = {
        [KILN_OVERRIDE_APPEND] = "+", [KILN_OVERRIDE_REMOVE] = "-", [KILN_OVERRIDE_REPLACE] = ":"
    };
    bool packed = override->package != NULL, front = override->kind <= KILN_OVERRIDE_DELETE;

    return kiln_arena_printf(arena, "%s%s%s%s%s", front ? signs[override->kind] : "", override->key,
                             packed ? "@" : "", packed ? override->package : "",
                             front ? "" : operators[override->kind]);
}

bool kiln_override_is_own(const KilnOverride *override)
{
    size_t n = strcspn(override->key, "./");

    return n == strlen("kiln") && strncmp(override->key, "kiln", n) == 0;
}
