/* Writes YAML: block style, short lists of numbers on one line. */
#include "config/yaml/yaml_writer.h"

#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "config/yaml/scalar.h"
#include "config/composed.h"

enum { MAX_NODES = 1000000, MAX_LINE_ITEMS = 16 };
/* YAML reads `key:` up to 1024 characters, and an escaped one takes four. */
enum { MAX_PLAIN_KEY = 240 };

/* The containers being written, to detect one that contains itself. */
typedef struct Level {
    const KilnConfigNode *node;
    const struct Level *above;
    int depth; /* of the root's keys: 1 */
} Level;

/* ---- Scalars ----------------------------------------------------------------------- */

/* The byte at `p` begins no UTF-8 character: the one that was decoded has one byte. */
static bool is_bad_byte(const char *p, size_t length)
{
    return length == 1 && (unsigned char)*p >= 0x80;
}

/* Controls, line breaks of YAML other than \n, byte order marks: not printable. */
static bool must_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
           c == 0xfffe || c == 0xffff;
}

static bool needs_escapes(const char *string)
{
    const char *end = string + strlen(string);

    for (size_t n; string < end; string += n) {
        uint32_t c;

        n = kiln_utf8_next(string, (size_t)(end - string), &c);
        if (must_escape(c) || is_bad_byte(string, n))
            return true;
    }
    return false;
}

/* Looks like a number, date or time (versions, 0o17, 12:30), which some reader may take it for.
 * "32-true" is text for all. */
static bool is_number_like(const char *text)
{
    if (strchr("0123456789+.", text[0]) == NULL || strncmp(text, "./", 2) == 0 ||
        strncmp(text, "../", 3) == 0)
        return false;
    return strspn(text, "0123456789abcdefABCDEFxXoOtTzZ_.,:+- ") == strlen(text);
}

/* Is it text for every YAML reader when it has no quotes? */
static bool is_plain(const char *text)
{
    KilnArena arena = { 0 };
    const char *canonical;
    KilnScalar type = kiln_scalar_yaml(&arena, text, &canonical);
    size_t n = strlen(text);

    kiln_arena_release(&arena);
    if (type != KILN_SCALAR_STR && type != KILN_SCALAR_INTERPOLATION && type != KILN_SCALAR_MISSING)
        return false;
    if (n == 0 || text[n - 1] == ' ' || text[n - 1] == ':' || strcmp(text, "=") == 0 ||
        strcmp(text, "<<") == 0)
        return false;
    if (type == KILN_SCALAR_MISSING)
        return true;
    if (strchr(" -?:,[]{}#&*!|>'\"%@`=~<", text[0]) != NULL)
        return false;
    if (is_number_like(text) || strncmp(text, "...", 3) == 0) /* which ends a document */
        return false;
    if (strstr(text, ": ") != NULL || strstr(text, " #") != NULL)
        return false;
    return strchr(text, '\\') == NULL && !needs_escapes(text);
}

static void write_double_quoted(KilnText *text, const char *string)
{
    const char *end = string + strlen(string);

    kiln_text_char(text, '"');
    for (size_t n; string < end; string += n) {
        uint32_t c;

        n = kiln_utf8_next(string, (size_t)(end - string), &c);
        if (c == '"' || c == '\\')
            kiln_text_printf(text, "\\%c", (int)c);
        else if (c == '\n' || c == '\t')
            kiln_text_append(text, c == '\n' ? "\\n" : "\\t");
        else if (is_bad_byte(string, n))
            kiln_text_printf(text, "\\x%02x", (unsigned char)*string);
        else if (must_escape(c))
            kiln_text_printf(text, c < 0x100 ? "\\x%02x" : "\\u%04X", c);
        else
            kiln_text_append_n(text, string, n);
    }
    kiln_text_char(text, '"');
}

void kiln_write_quoted(KilnText *text, const char *string)
{
    if (needs_escapes(string)) {
        write_double_quoted(text, string);
        return;
    }
    kiln_text_char(text, '\'');
    for (; *string != '\0'; string++) {
        if (*string == '\'')
            kiln_text_char(text, '\'');
        kiln_text_char(text, *string);
    }
    kiln_text_char(text, '\'');
}

void kiln_write_string(KilnText *text, const char *string)
{
    if (is_plain(string))
        kiln_text_append(text, string);
    else
        kiln_write_quoted(text, string);
}

/* 1.0e-05: without the dot some readers take it for text. */
static void write_float(KilnText *text, const char *written)
{
    char buf[KILN_F64_TEXT];
    double value;
    const KilnStatus status = kiln_parse_f64(written, &value, NULL);

    if (status == KILN_E_RANGE) { /* .4e999 is a number in an argument, but text in a file */
        kiln_text_append(text, *written == '-' ? "-.inf" : ".inf");
        return;
    }
    if (status < 0) {
        kiln_text_append(text, written);
        return;
    }
    kiln_format_f64(value, buf, sizeof(buf));
    const char *e = strchr(buf, 'e');
    if (e == NULL || strchr(buf, '.') != NULL)
        kiln_text_append(text, buf);
    else
        kiln_text_printf(text, "%.*s.0%s", (int)(e - buf), buf, e);
}

void kiln_write_scalar(KilnText *text, const KilnConfigNode *node)
{
    if (node->scalar == KILN_SCALAR_FLOAT)
        write_float(text, node->text);
    else if (node->scalar == KILN_SCALAR_STR || node->scalar == KILN_SCALAR_INTERPOLATION)
        kiln_write_string(text, node->text);
    else
        kiln_text_append(text, node->text);
}

/* ---- Containers --------------------------------------------------------------------- */

static KilnStatus write_value(KilnYamlWriter *writer, const KilnConfigNode *node,
                              const Level *level, KilnError *err);

static bool is_map(const Level *level)
{
    return level->node->kind == KILN_NODE_MAP;
}

static bool is_string(const KilnConfigNode *scalar)
{
    return scalar->scalar == KILN_SCALAR_STR || scalar->scalar == KILN_SCALAR_INTERPOLATION ||
           scalar->scalar == KILN_SCALAR_MISSING;
}

static void indent(KilnText *text, int n)
{
    kiln_text_printf(text, "%*s", n, "");
}

/* "key:", or for a long key "? key" and ":" on a line of its own. */
static void write_key(KilnText *text, const KilnEntry *entry, int column)
{
    bool is_long = strlen(entry->key) > MAX_PLAIN_KEY;

    if (is_long)
        kiln_text_append(text, "? ");
    if (entry->key_typed)
        kiln_text_append(text, entry->key);
    else
        kiln_write_string(text, entry->key);
    if (is_long) {
        kiln_text_char(text, '\n');
        indent(text, column);
    }
    kiln_text_char(text, ':');
}

/* A list of a few numbers is easier to read on one line. */
static bool fits_line(const KilnConfigNode *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (item->kind != KILN_NODE_SCALAR || is_string(item))
            return false;
    }
    return list->count <= MAX_LINE_ITEMS;
}

void kiln_write_flow(KilnText *text, const KilnConfigNode *node, size_t first)
{
    bool map = node->kind == KILN_NODE_MAP;

    if (node->kind == KILN_NODE_SCALAR) {
        if (is_string(node))
            kiln_write_quoted(text, node->text);
        else
            kiln_write_scalar(text, node);
        return;
    }
    kiln_text_char(text, map ? '{' : '[');
    for (size_t i = first; i < node->count; i++) {
        kiln_text_append(text, i > first ? ", " : "");
        if (map) {
            kiln_write_quoted(text, node->entries[i].key);
            kiln_text_append(text, ": ");
        }
        kiln_write_flow(text, node->entries[i].value, 0);
    }
    kiln_text_char(text, map ? '}' : ']');
}

/* The first entry of a container in a list is on the line of its "-". */
static KilnStatus write_entries(KilnYamlWriter *writer, const Level *level, KilnError *err)
{
    const KilnConfigNode *node = level->node;
    const int column = 2 * (level->depth - 1);
    bool map = node->kind == KILN_NODE_MAP, placed = level->above != NULL && !is_map(level->above);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < node->count && status >= 0; i++) {
        const KilnEntry *entry = &node->entries[i];

        if (map && level->depth == 1 && writer->hidden != NULL &&
            writer->hidden(writer->config, entry->key))
            continue;
        if (!placed)
            indent(writer->text, column);
        placed = false;
        if (map)
            write_key(writer->text, entry, column);
        else
            kiln_text_char(writer->text, '-');
        status = write_value(writer, entry->value, level, err);
    }
    return status;
}

static KilnStatus check_level(KilnYamlWriter *writer, const KilnConfigNode *node,
                              const Level *level, KilnError *err)
{
    for (const Level *above = level; above != NULL; above = above->above) {
        if (above->node != node)
            continue;
        kiln_error_set(err, KILN_E_KEY, "%s contains itself through interpolations",
                       kiln_node_path(writer->config, node));
        return kiln_error_at(err, &node->origin);
    }
    if (++writer->nodes > MAX_NODES ||
        (level != NULL && level->depth > 2 * KILN_INTERPOLATION_DEPTH))
        return kiln_error_set(err, KILN_E_RANGE,
                              "the config is too large or too deep to be written when its "
                              "interpolations are resolved");
    return KILN_OK;
}

/* Does it refer only to values of the job, not to the time, the environment or `kiln`? */
static bool refers_to_job(const KilnConfigNode *node)
{
    static const char *const outside[] = { "now:", "oc.env:", "kiln", "hydra" };

    if (node->kind != KILN_NODE_SCALAR || node->scalar != KILN_SCALAR_INTERPOLATION)
        return false;
    for (size_t i = 0; i < KILN_COUNT(outside); i++)
        if (strstr(node->text, outside[i]) != NULL)
            return false;
    return true;
}

/* A value that fits on the line of its key. */
static bool fits_key_line(const KilnConfigNode *node)
{
    return node->kind == KILN_NODE_SCALAR || node->count == 0 ||
           (node->kind == KILN_NODE_LIST && fits_line(node));
}

/* After "key:" or "-": a scalar on the same line, a container on the next ones. */
static KilnStatus write_value(KilnYamlWriter *writer, const KilnConfigNode *node,
                              const Level *level, KilnError *err)
{
    const KilnConfigNode *written = node;
    Level inner = { .above = level, .depth = level != NULL ? level->depth + 1 : 1 };
    KilnStatus status = KILN_OK;

    if (writer->resolve && !(writer->references && refers_to_job(node)))
        status = kiln_config_resolve(writer->config, node, &node, err);
    if (status >= 0)
        status = check_level(writer, node, level, err);
    if (status < 0)
        return status;
    inner.node = node;
    if (!fits_key_line(node)) {
        if (level != NULL)
            kiln_text_char(writer->text, is_map(level) ? '\n' : ' ');
        return write_entries(writer, &inner, err);
    }
    if (level != NULL)
        kiln_text_char(writer->text, ' ');
    if (node->kind == KILN_NODE_SCALAR)
        kiln_write_scalar(writer->text, node);
    else
        kiln_write_flow(writer->text, node, 0);
    if (writer->origins)
        kiln_origin_comment_add(writer->text, writer->config, written, node);
    kiln_text_char(writer->text, '\n');
    return KILN_OK;
}

KilnStatus kiln_write_node(KilnYamlWriter *writer, const KilnConfigNode *node, KilnError *err)
{
    const size_t start = writer->text->length;
    KilnStatus status = write_value(writer, node, NULL, err);

    if (status >= 0 && writer->text->length == start) /* all keys are hidden */
        kiln_text_append(writer->text, "{}\n");
    return status;
}
