/* Reads YAML events into nodes: origins, limits, anchors, keys. scalar.c decides the types of
 * scalars. */
#include "config/yaml/yaml_reader.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/system/file.h"
#include "base/text.h"
#include "config/tree/edit.h"
#include "config/yaml/merge_key.h"
#include "config/yaml/scalar.h"
#include "config/yaml/syntax_hint.h"

typedef struct Anchor {
    const char *name;
    KilnConfigNode *node; /* NULL: still being read */
    struct Anchor *next;
} Anchor;

typedef struct Reader {
    yaml_parser_t parser;
    yaml_event_t event;
    KilnMaker maker;
    bool one_origin;
    const char *text;
    size_t size, nodes;
    int lists;       /* around the current value */
    Anchor *anchors; /* newest first: a name may be reused */
    KilnError *err;
} Reader;

static KilnOrigin origin_of(const Reader *reader, yaml_mark_t mark)
{
    KilnOrigin origin = reader->maker.origin;

    if (!reader->one_origin) {
        origin.line = (int)mark.line + 1;
        origin.column = (int)mark.column + 1;
    }
    return origin;
}

KILN_PRINTF(4, 5)
static KilnStatus fail(Reader *reader, yaml_mark_t mark, KilnStatus status, const char *format, ...)
{
    KilnOrigin origin = origin_of(reader, mark);
    va_list args;

    va_start(args, format);
    kiln_error_vset(reader->err, status, format, args);
    va_end(args);
    return kiln_error_at(reader->err, &origin);
}

static KilnStatus no_memory(Reader *reader)
{
    return kiln_error_nomem(reader->err, sizeof(KilnConfigNode));
}

/* libyaml gives no mark for bytes that are not UTF-8: count lines. */
static KilnStatus bad_bytes(Reader *reader)
{
    yaml_mark_t mark = { 0 };
    size_t end = reader->parser.problem_offset;

    for (size_t i = 0; i < end && i < reader->size; i++) {
        bool line = reader->text[i] == '\n';

        mark.line += line;
        mark.column = line ? 0 : mark.column + (((unsigned char)reader->text[i] & 0xc0) != 0x80);
    }
    return fail(reader, mark, KILN_E_SYNTAX,
                "byte %zu is not text: %s. A config is YAML in UTF-8; is this another kind of "
                "file?",
                end, reader->parser.problem);
}

static KilnStatus syntax_error(Reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    KilnError text = { 0 };
    yaml_mark_t mark;

    if (parser->error == YAML_MEMORY_ERROR)
        return no_memory(reader);
    if (parser->error == YAML_READER_ERROR)
        return bad_bytes(reader);
    kiln_syntax_hint_describe(parser, reader->text, reader->size, &text, &mark);
    return fail(reader, mark, KILN_E_SYNTAX, "%s", text.text);
}

static KilnStatus next(Reader *reader)
{
    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->parser, &reader->event) == 0)
        return syntax_error(reader);
    return KILN_OK;
}

/* ---- Anchors -------------------------------------------------------------- */

static KilnStatus anchor_add(Reader *reader, const yaml_char_t *name, Anchor **ret)
{
    Anchor *anchor = kiln_arena_alloc(reader->maker.arena, sizeof(*anchor));

    if (anchor == NULL ||
        (anchor->name = kiln_arena_strdup(reader->maker.arena, (const char *)name)) == NULL)
        return no_memory(reader);
    anchor->next = reader->anchors;
    reader->anchors = anchor;
    *ret = anchor;
    return KILN_OK;
}

static KilnStatus check_count(Reader *reader, size_t more)
{
    reader->nodes += more;
    if (reader->nodes > KILN_YAML_NODES)
        return fail(reader, reader->event.start_mark, KILN_E_RANGE,
                    "more than 200000 values (with aliases expanded): too many for a config; put "
                    "data into a file of its own");
    return KILN_OK;
}

static KilnStatus read_alias(Reader *reader, KilnConfigNode **ret)
{
    const char *name = (const char *)reader->event.data.alias.anchor;
    const Anchor *anchor = reader->anchors;

    while (anchor != NULL && strcmp(anchor->name, name) != 0)
        anchor = anchor->next;
    if (anchor == NULL || anchor->node == NULL)
        return fail(reader, reader->event.start_mark, KILN_E_KEY,
                    "*%s: there is no anchor &%s before it%s", name, name,
                    reader->anchors != NULL ? " that is complete" : "");
    KilnStatus status = check_count(reader, kiln_node_size(anchor->node));
    if (status < 0)
        return status;
    anchor->node->aliased = true;
    *ret = kiln_node_copy(reader->maker.arena, anchor->node);
    return *ret != NULL ? KILN_OK : no_memory(reader);
}

/* ---- Values --------------------------------------------------------------- */

typedef struct Properties {
    const yaml_char_t *anchor, *tag;
} Properties;

static Properties properties_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return (Properties) { event->data.scalar.anchor, event->data.scalar.tag };
    case YAML_MAPPING_START_EVENT:
        return (Properties) { event->data.mapping_start.anchor, event->data.mapping_start.tag };
    case YAML_SEQUENCE_START_EVENT:
        return (Properties) { event->data.sequence_start.anchor, event->data.sequence_start.tag };
    default:
        return (Properties) { NULL, NULL };
    }
}

/* The name of a standard tag, "int"; NULL when there is no tag, "!", which means nothing, or one
 * of ours (check_mark handles those); "?" for any other. */
static const char *tag_of(const yaml_char_t *tag)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *text = (const char *)tag;

    if (tag == NULL || *tag == '\0' || strcmp(text, "!") == 0 ||
        kiln_edit_find(text) != KILN_EDIT_NONE)
        return NULL;
    return kiln_starts_with(text, prefix) ? text + sizeof(prefix) - 1 : "?";
}

static KilnStatus bad_tag(Reader *reader, const char *why)
{
    const yaml_char_t *tag = properties_of(&reader->event).tag;
    const char *standard = tag_of(tag);
    const bool known = standard != NULL && strcmp(standard, "?") != 0;

    return fail(reader, reader->event.start_mark, KILN_E_TYPE, "tag %s%s %s", known ? "!!" : "",
                known ? standard : (const char *)tag, why);
}

static KilnStatus apply_tag(Reader *reader, const char *tag, KilnConfigNode *node)
{
    static const struct {
        const char *tag;
        KilnScalar type;
    } tags[] = { { "null", KILN_SCALAR_NULL },
                 { "bool", KILN_SCALAR_BOOL },
                 { "int", KILN_SCALAR_INT },
                 { "float", KILN_SCALAR_FLOAT } };
    const char *written = node->text;

    if (strcmp(tag, "str") == 0) {
        node->scalar = kiln_scalar_text(written);
        node->quoted = true;
        return KILN_OK;
    }
    for (size_t i = 0; i < KILN_COUNT(tags); i++) {
        if (strcmp(tag, tags[i].tag) != 0)
            continue;
        node->scalar = kiln_scalar_yaml(reader->maker.arena, written, &node->text);
        if (node->text == NULL)
            return no_memory(reader);
        if (node->scalar == KILN_SCALAR_INT && tags[i].type == KILN_SCALAR_FLOAT)
            node->scalar = KILN_SCALAR_FLOAT;
        if (node->scalar != tags[i].type)
            return bad_tag(reader, "does not fit its value");
        node->quoted = false;
        return KILN_OK;
    }
    return bad_tag(reader,
                   "is not known; a config has !append, !remove, !replace, !delete, and !!str, "
                   "!!int, !!float, !!bool, !!null, !!map, !!seq");
}

static KilnStatus read_scalar(Reader *reader, KilnConfigNode **ret)
{
    const char *value = (const char *)reader->event.data.scalar.value;
    size_t length = reader->event.data.scalar.length;
    const char *tag = tag_of(reader->event.data.scalar.tag);
    bool plain = reader->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    KilnConfigNode *node = kiln_node_new(&reader->maker, KILN_NODE_SCALAR);

    if (node == NULL ||
        (node->text = kiln_arena_strndup(reader->maker.arena, value, length)) == NULL)
        return no_memory(reader);
    if (memchr(value, '\0', length) != NULL)
        return fail(reader, reader->event.start_mark, KILN_E_SYNTAX,
                    "text with a NUL character in it");
    node->origin = origin_of(reader, reader->event.start_mark);
    node->quoted = !plain;
    *ret = node;
    if (tag != NULL)
        return apply_tag(reader, tag, node);
    if (plain)
        node->scalar = kiln_scalar_yaml(reader->maker.arena, node->text, &node->text);
    else
        node->scalar = kiln_scalar_text(node->text);
    return node->text != NULL ? KILN_OK : no_memory(reader);
}

static KilnStatus read_node(Reader *reader, int depth, KilnConfigNode **ret);

static KilnStatus read_list(Reader *reader, int depth, KilnConfigNode *list)
{
    KilnStatus status;

    reader->lists++;
    while ((status = next(reader)) >= 0 && reader->event.type != YAML_SEQUENCE_END_EVENT) {
        KilnConfigNode *item = NULL;

        status = read_node(reader, depth + 1, &item);
        if (status < 0)
            return status;
        if (kiln_node_append(reader->maker.arena, list, NULL, item->origin, item) == NULL)
            return no_memory(reader);
    }
    reader->lists--;
    return status;
}

/* A key, read as a scalar; `1` and `'1'` are the same key. */
static KilnStatus read_key(Reader *reader, const KilnConfigNode *map, KilnConfigNode **ret)
{
    const KilnEntry *other;
    KilnStatus status;

    if (reader->event.type != YAML_SCALAR_EVENT)
        return fail(reader, reader->event.start_mark, KILN_E_TYPE,
                    "a key must be a plain value, not a list, a mapping or an alias");
    if (kiln_edit_find((const char *)reader->event.data.scalar.tag) != KILN_EDIT_NONE)
        return bad_tag(reader, "belongs after the key's colon, before the value");
    status = read_scalar(reader, ret);
    if (status < 0)
        return status;
    if ((*ret)->scalar == KILN_SCALAR_NULL)
        return fail(reader, reader->event.start_mark, KILN_E_TYPE, "a key must not be null");
    other = kiln_node_entry(map, (*ret)->text);
    if (other == NULL)
        return KILN_OK;
    return fail(reader, reader->event.start_mark, KILN_E_KEY,
                "duplicate key '%s'; the first is in line %d", (*ret)->text,
                other->key_origin.line);
}

static KilnStatus read_map(Reader *reader, int depth, KilnConfigNode *map)
{
    KilnConfigNode *merged = NULL; /* the values of << */
    KilnStatus status;

    while ((status = next(reader)) >= 0 && reader->event.type != YAML_MAPPING_END_EVENT) {
        KilnConfigNode *key = NULL, *value = NULL;
        KilnEntry *entry;

        status = read_key(reader, map, &key);
        if (status >= 0)
            status = next(reader);
        if (status >= 0)
            status = read_node(reader, depth + 1, &value);
        if (status < 0)
            return status;
        if (!key->quoted && strcmp(key->text, "<<") == 0) {
            status = kiln_merge_key_add(&reader->maker, &merged, key, value, reader->err);
            if (status < 0)
                return status;
            continue;
        }
        entry = kiln_node_append(reader->maker.arena, map, key->text, key->origin, value);
        if (entry == NULL)
            return no_memory(reader);
        entry->key_typed = key->scalar == KILN_SCALAR_INT || key->scalar == KILN_SCALAR_BOOL ||
                           key->scalar == KILN_SCALAR_FLOAT;
    }
    if (status >= 0 && merged != NULL && !kiln_merge_key_apply(reader->maker.arena, map, merged))
        return no_memory(reader);
    return status;
}

static KilnStatus read_collection(Reader *reader, int depth, KilnConfigNode **ret)
{
    bool is_map = reader->event.type == YAML_MAPPING_START_EVENT;
    const char *tag = tag_of(properties_of(&reader->event).tag);
    KilnConfigNode *node;

    if (tag != NULL && strcmp(tag, is_map ? "map" : "seq") != 0)
        return bad_tag(reader,
                       is_map ? "does not fit a mapping; a config has !append, !remove, !replace"
                              : "does not fit a list; a config has !append, !remove, !replace");
    node = kiln_node_new(&reader->maker, is_map ? KILN_NODE_MAP : KILN_NODE_LIST);
    if (node == NULL)
        return no_memory(reader);
    node->origin = origin_of(reader, reader->event.start_mark);
    *ret = node;
    return is_map ? read_map(reader, depth, node) : read_list(reader, depth, node);
}

/* A tag that says how the value merges: !append. */
static KilnStatus check_mark(Reader *reader, KilnEdit mark)
{
    const yaml_event_t *event = &reader->event;

    if (mark == KILN_EDIT_NONE)
        return KILN_OK;
    if (reader->lists > 0)
        return bad_tag(reader, "belongs after a key; nothing is merged inside a list");
    if (mark == KILN_EDIT_DELETE &&
        (event->type != YAML_SCALAR_EVENT || event->data.scalar.length > 0))
        return bad_tag(reader, "takes no value: `key: !delete`");
    return KILN_OK;
}

/* The value that begins with the current event. */
static KilnStatus read_node(Reader *reader, int depth, KilnConfigNode **ret)
{
    const yaml_event_t *event = &reader->event;
    const Properties properties = properties_of(event);
    const KilnEdit mark = kiln_edit_find((const char *)properties.tag);
    Anchor *anchor = NULL;
    KilnStatus status = check_count(reader, 1);

    if (status >= 0 && depth > KILN_YAML_DEPTH)
        status =
            fail(reader, event->start_mark, KILN_E_RANGE,
                 "nested deeper than 64 levels: too deep for a config; is a bracket left open, "
                 "or is this data?");
    if (status >= 0)
        status = check_mark(reader, mark);
    if (status >= 0 && properties.anchor != NULL)
        status = anchor_add(reader, properties.anchor, &anchor);
    if (status < 0)
        return status;
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(reader, ret);
    status = event->type == YAML_SCALAR_EVENT ? read_scalar(reader, ret)
                                              : read_collection(reader, depth, ret);
    if (status >= 0)
        (*ret)->mark = mark;
    if (anchor != NULL && status >= 0)
        anchor->node = *ret;
    return status;
}

static KilnStatus read_document(Reader *reader, KilnConfigNode **ret)
{
    KilnStatus status = next(reader); /* stream start */

    if (status >= 0)
        status = next(reader);
    if (status < 0 || reader->event.type == YAML_STREAM_END_EVENT)
        return status;
    status = next(reader);
    if (status >= 0)
        status = read_node(reader, 1, ret);
    if (status >= 0)
        status = next(reader); /* document end */
    if (status >= 0)
        status = next(reader);
    if (status >= 0 && reader->event.type != YAML_STREAM_END_EVENT)
        status = fail(reader, reader->event.start_mark, KILN_E_SYNTAX,
                      "a second document (---): a config file holds one");
    return status;
}

KilnStatus kiln_yaml_read(const KilnMaker *maker, const char *text, size_t size, bool one_origin,
                          KilnConfigNode **ret, KilnError *err)
{
    KilnError local = { 0 };
    Reader reader = { .maker = *maker,
                      .one_origin = one_origin,
                      .text = text,
                      .size = size,
                      .err = err != NULL ? err : &local };
    KilnConfigNode *node = NULL;
    KilnStatus status;

    if (size > KILN_YAML_BYTES) {
        kiln_error_set(
            err, KILN_E_RANGE,
            "larger than 4 MiB: too large for a config; put data into a file of its own");
        kiln_error_at(err, &maker->origin);
        return KILN_E_RANGE;
    }
    if (yaml_parser_initialize(&reader.parser) == 0)
        return kiln_error_nomem(err, sizeof(reader.parser));
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
    status = read_document(&reader, &node);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (status >= 0)
        *ret = node;
    return status;
}

KilnStatus kiln_yaml_read_file(KilnArena *arena, const char *path, KilnConfigNode **ret,
                               KilnError *err)
{
    KilnMaker maker = { .arena = arena, .origin = { .source = kiln_arena_strdup(arena, path) } };
    char *text = NULL;
    size_t size = 0;
    KilnStatus status = maker.origin.source != NULL
                            ? kiln_file_read(path, KILN_YAML_BYTES, &text, &size, err)
                            : kiln_error_nomem(err, strlen(path));

    if (status >= 0)
        status = kiln_yaml_read(&maker, text, size, false, ret, err);
    free(text);
    return status;
}

KilnStatus kiln_node_parse(KilnArena *arena, const char *yaml, const char *source,
                           KilnConfigNode **ret, KilnError *err)
{
    KilnMaker maker = { .arena = arena,
                        .origin = { .source = source },
                        .layer = KILN_LAYER_DEFAULT };
    KilnConfigNode *node = NULL;
    KilnStatus status = kiln_yaml_read(&maker, yaml, strlen(yaml), true, &node, err);

    if (status >= 0 && node == NULL)
        node = kiln_node_scalar(&maker, KILN_SCALAR_NULL, "null");
    if (status >= 0 && node == NULL)
        return kiln_error_nomem(err, sizeof(*node));
    if (status >= 0)
        *ret = node;
    return status;
}
