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
    /* Of the first failure. From then on there are no more events, which ends all loops; the same
     * holds when the arena's memory is out. */
    KilnStatus status;
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
static void fail(Reader *reader, yaml_mark_t mark, KilnStatus status, const char *format, ...)
{
    KilnOrigin origin = origin_of(reader, mark);
    va_list args;

    if (reader->status < 0)
        return;
    va_start(args, format);
    kiln_error_vset(reader->err, status, format, args);
    va_end(args);
    reader->status = kiln_error_at(reader->err, &origin);
}

/* libyaml gives no mark for bytes that are not UTF-8: count lines. */
static void bad_bytes(Reader *reader)
{
    yaml_mark_t mark = { 0 };
    size_t end = reader->parser.problem_offset;

    for (size_t i = 0; i < end && i < reader->size; i++) {
        bool line = reader->text[i] == '\n';

        mark.line += line;
        mark.column = line ? 0 : mark.column + (((unsigned char)reader->text[i] & 0xc0) != 0x80);
    }
    fail(reader, mark, KILN_E_SYNTAX,
         "byte %zu is not text: %s. A config is YAML in UTF-8; is this another kind of file?", end,
         reader->parser.problem);
}

static void syntax_error(Reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    KilnError text = { 0 };
    yaml_mark_t mark;

    if (parser->error == YAML_MEMORY_ERROR) {
        reader->maker.arena->failed = true;
    } else if (parser->error == YAML_READER_ERROR) {
        bad_bytes(reader);
    } else {
        kiln_syntax_hint_describe(parser, reader->text, reader->size, &text, &mark);
        fail(reader, mark, KILN_E_SYNTAX, "%s", text.text);
    }
}

static bool failed(const Reader *reader)
{
    return reader->status < 0 || reader->maker.arena->failed;
}

/* False after a failure. */
static bool next(Reader *reader)
{
    if (failed(reader))
        return false;
    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->parser, &reader->event) == 0)
        syntax_error(reader);
    return !failed(reader);
}

/* ---- Anchors -------------------------------------------------------------- */

static Anchor *anchor_add(Reader *reader, const yaml_char_t *name)
{
    Anchor *anchor = kiln_arena_alloc(reader->maker.arena, sizeof(*anchor));
    const char *copy = kiln_arena_strdup(reader->maker.arena, (const char *)name);

    if (anchor == NULL || copy == NULL)
        return NULL;
    *anchor = (Anchor) { .name = copy, .next = reader->anchors };
    reader->anchors = anchor;
    return anchor;
}

static void count_nodes(Reader *reader, size_t more)
{
    reader->nodes += more;
    if (reader->nodes > KILN_YAML_NODES)
        fail(reader, reader->event.start_mark, KILN_E_RANGE,
             "more than 200000 values (with aliases expanded): too many for a config; put data "
             "into a file of its own");
}

static KilnConfigNode *read_alias(Reader *reader)
{
    const char *name = (const char *)reader->event.data.alias.anchor;
    const Anchor *anchor = reader->anchors;

    while (anchor != NULL && strcmp(anchor->name, name) != 0)
        anchor = anchor->next;
    if (anchor == NULL || anchor->node == NULL) {
        fail(reader, reader->event.start_mark, KILN_E_KEY,
             "*%s: there is no anchor &%s before it%s", name, name,
             reader->anchors != NULL ? " that is complete" : "");
        return NULL;
    }
    count_nodes(reader, kiln_node_size(anchor->node));
    if (reader->status < 0)
        return NULL;
    anchor->node->aliased = true;
    return kiln_node_copy(reader->maker.arena, anchor->node);
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

static void bad_tag(Reader *reader, const char *why)
{
    const yaml_char_t *tag = properties_of(&reader->event).tag;
    const char *standard = tag_of(tag);
    const bool known = standard != NULL && strcmp(standard, "?") != 0;

    fail(reader, reader->event.start_mark, KILN_E_TYPE, "tag %s%s %s", known ? "!!" : "",
         known ? standard : (const char *)tag, why);
}

static void apply_tag(Reader *reader, const char *tag, KilnConfigNode *node)
{
    static const struct {
        const char *tag;
        KilnScalar type;
    } tags[] = { { "null", KILN_SCALAR_NULL },
                 { "bool", KILN_SCALAR_BOOL },
                 { "int", KILN_SCALAR_INT },
                 { "float", KILN_SCALAR_FLOAT } };
    size_t i = 0;

    node->quoted = strcmp(tag, "str") == 0;
    if (node->quoted) {
        node->scalar = kiln_scalar_text(node->text);
        return;
    }
    while (i < KILN_COUNT(tags) && strcmp(tag, tags[i].tag) != 0)
        i++;
    if (i == KILN_COUNT(tags)) {
        bad_tag(reader,
                "is not known; a config has !append, !remove, !replace, !delete, and !!str, "
                "!!int, !!float, !!bool, !!null, !!map, !!seq");
        return;
    }
    node->scalar = kiln_scalar_yaml(reader->maker.arena, node->text, &node->text);
    if (node->scalar == KILN_SCALAR_INT && tags[i].type == KILN_SCALAR_FLOAT)
        node->scalar = KILN_SCALAR_FLOAT;
    if (node->scalar != tags[i].type)
        bad_tag(reader, "does not fit its value");
}

static KilnConfigNode *read_scalar(Reader *reader)
{
    const char *value = (const char *)reader->event.data.scalar.value;
    size_t length = reader->event.data.scalar.length;
    const char *tag = tag_of(reader->event.data.scalar.tag);
    const char *text = kiln_arena_strndup(reader->maker.arena, value, length);
    KilnConfigNode *node = kiln_node_scalar(&reader->maker, KILN_SCALAR_STR, text);

    if (node == NULL)
        return NULL;
    if (memchr(value, '\0', length) != NULL)
        fail(reader, reader->event.start_mark, KILN_E_SYNTAX, "text with a NUL character in it");
    node->origin = origin_of(reader, reader->event.start_mark);
    node->quoted = reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (tag != NULL)
        apply_tag(reader, tag, node);
    else if (node->quoted)
        node->scalar = kiln_scalar_text(text);
    else
        node->scalar = kiln_scalar_yaml(reader->maker.arena, text, &node->text);
    return node;
}

static KilnConfigNode *read_node(Reader *reader, int depth);

static void read_list(Reader *reader, int depth, KilnConfigNode *list)
{
    reader->lists++;
    while (next(reader) && reader->event.type != YAML_SEQUENCE_END_EVENT) {
        KilnConfigNode *item = read_node(reader, depth + 1);

        if (item != NULL)
            (void)kiln_node_append(reader->maker.arena, list, NULL, item->origin, item);
    }
    reader->lists--;
}

/* A key, read as a scalar; `1` and `'1'` are the same key. NULL after a failure. */
static const KilnConfigNode *read_key(Reader *reader, const KilnConfigNode *map)
{
    const yaml_mark_t mark = reader->event.start_mark;
    const KilnConfigNode *key = NULL;
    const KilnEntry *other = NULL;

    if (reader->event.type != YAML_SCALAR_EVENT)
        fail(reader, mark, KILN_E_TYPE,
             "a key must be a plain value, not a list, a mapping or an alias");
    else if (kiln_edit_find((const char *)reader->event.data.scalar.tag) != KILN_EDIT_NONE)
        bad_tag(reader, "belongs after the key's colon, before the value");
    else
        key = read_scalar(reader);
    if (failed(reader))
        return NULL;
    if (key->scalar == KILN_SCALAR_NULL)
        fail(reader, mark, KILN_E_TYPE, "a key must not be null");
    other = kiln_node_entry(map, key->text);
    if (other != NULL)
        fail(reader, mark, KILN_E_KEY, "duplicate key '%s'; the first is in line %d", key->text,
             other->key_origin.line);
    return key;
}

static void read_map(Reader *reader, int depth, KilnConfigNode *map)
{
    KilnConfigNode *merged = NULL; /* the values of << */

    while (next(reader) && reader->event.type != YAML_MAPPING_END_EVENT) {
        const KilnConfigNode *key = read_key(reader, map);
        KilnConfigNode *value = next(reader) ? read_node(reader, depth + 1) : NULL;
        KilnEntry *entry;

        if (failed(reader))
            return;
        if (!key->quoted && strcmp(key->text, "<<") == 0) {
            reader->status = kiln_merge_key_add(&reader->maker, &merged, key, value, reader->err);
            continue;
        }
        entry = kiln_node_append(reader->maker.arena, map, key->text, key->origin, value);
        if (entry != NULL)
            entry->key_typed = key->scalar == KILN_SCALAR_INT || key->scalar == KILN_SCALAR_BOOL ||
                               key->scalar == KILN_SCALAR_FLOAT;
    }
    if (merged != NULL && !failed(reader))
        kiln_merge_key_apply(reader->maker.arena, map, merged);
}

static KilnConfigNode *read_collection(Reader *reader, int depth)
{
    bool is_map = reader->event.type == YAML_MAPPING_START_EVENT;
    const char *tag = tag_of(properties_of(&reader->event).tag);
    KilnConfigNode *node = kiln_node_new(&reader->maker, is_map ? KILN_NODE_MAP : KILN_NODE_LIST);

    if (tag != NULL && strcmp(tag, is_map ? "map" : "seq") != 0)
        bad_tag(reader, is_map ? "does not fit a mapping; a config has !append, !remove, !replace"
                               : "does not fit a list; a config has !append, !remove, !replace");
    if (node == NULL)
        return NULL;
    node->origin = origin_of(reader, reader->event.start_mark);
    if (is_map)
        read_map(reader, depth, node);
    else
        read_list(reader, depth, node);
    return node;
}

/* A tag that says how the value merges: !append. */
static void check_mark(Reader *reader, KilnEdit mark)
{
    const yaml_event_t *event = &reader->event;

    if (mark == KILN_EDIT_NONE)
        return;
    if (reader->lists > 0)
        bad_tag(reader, "belongs after a key; nothing is merged inside a list");
    else if (mark == KILN_EDIT_DELETE &&
             (event->type != YAML_SCALAR_EVENT || event->data.scalar.length > 0))
        bad_tag(reader, "takes no value: `key: !delete`");
}

/* The value that begins with the current event. */
static KilnConfigNode *read_node(Reader *reader, int depth)
{
    const yaml_event_t *event = &reader->event;
    const Properties properties = properties_of(event);
    const KilnEdit mark = kiln_edit_find((const char *)properties.tag);
    Anchor *anchor = NULL;
    KilnConfigNode *node;

    count_nodes(reader, 1);
    if (depth > KILN_YAML_DEPTH)
        fail(reader, event->start_mark, KILN_E_RANGE,
             "nested deeper than 64 levels: too deep for a config; is a bracket left open, or is "
             "this data?");
    check_mark(reader, mark);
    if (properties.anchor != NULL)
        anchor = anchor_add(reader, properties.anchor);
    if (failed(reader))
        return NULL;
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(reader);
    node = event->type == YAML_SCALAR_EVENT ? read_scalar(reader) : read_collection(reader, depth);
    if (node != NULL)
        node->mark = mark;
    if (anchor != NULL)
        anchor->node = node;
    return node;
}

static KilnConfigNode *read_document(Reader *reader)
{
    KilnConfigNode *node = NULL;

    /* The start of the stream, and of the document. */
    if (next(reader) && next(reader) && reader->event.type != YAML_STREAM_END_EVENT && next(reader))
        node = read_node(reader, 1);
    if (node != NULL && next(reader) && next(reader) && reader->event.type != YAML_STREAM_END_EVENT)
        fail(reader, reader->event.start_mark, KILN_E_SYNTAX,
             "a second document (---): a config file holds one");
    return node;
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
    KilnConfigNode *node;

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
    node = read_document(&reader);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (reader.status < 0)
        return reader.status;
    if (maker->arena->failed)
        return kiln_error_nomem(err, sizeof(*node));
    *ret = node;
    return KILN_OK;
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
