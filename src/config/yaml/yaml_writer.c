/* Writes YAML: block style, short lists of numbers in one line. */
#include "config/yaml/yaml_writer.h"

#include <string.h>

#include "base/parse.h"
#include "config/yaml/scalar.h"
#include "config/composed.h"

enum { MOST_NODES = 1000000, LONGEST_LINE_LIST = 16 };
/* A letter takes up to four when it is escaped. */
enum { LONGEST_KEY = 240 };

/* The containers that are being written: one inside itself never ends. */
typedef struct Level {
    const KilnConfigNode *node;
    const struct Level *above;
    int indent, depth;
} Level;

/* ---- Scalars ----------------------------------------------------------------------- */

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

/* Begins as a number and has only what numbers, dates and times are made of: versions,
 * 0o17, 12:30; some reader takes it for something else. "32-true" is text for all. */
static bool is_number_like(const char *text)
{
    if (strchr("0123456789+.", text[0]) == NULL || strncmp(text, "./", 2) == 0 ||
        strncmp(text, "../", 3) == 0)
        return false;
    return strspn(text, "0123456789abcdefABCDEFxXoOtTzZ_.,:+- ") == strlen(text);
}

/* Can the text stand without quotes, and be text for every YAML reader? */
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
    for (const char *p = text; *p != '\0'; p++)
        if (is_control((unsigned char)*p) || *p == '\\')
            return false;
    return kiln_text_is_utf8(text, n);
}

static void double_quoted(KilnText *text, const char *string)
{
    bool utf8 = kiln_text_is_utf8(string, strlen(string));

    kiln_text_char(text, '"');
    for (; *string != '\0'; string++) {
        unsigned char c = (unsigned char)*string;

        if (c == '"' || c == '\\')
            kiln_text_printf(text, "\\%c", c);
        else if (c == '\n')
            kiln_text_append(text, "\\n");
        else if (c == '\t')
            kiln_text_append(text, "\\t");
        else if (is_control(c) || (c >= 0x80 && !utf8))
            kiln_text_printf(text, "\\x%02x", c);
        else
            kiln_text_char(text, (char)c);
    }
    kiln_text_char(text, '"');
}

/* C1 controls, the byte order mark and the like can't be printed as they are, and
 * some of them are line breaks to YAML. */
static void special_quoted(KilnText *text, const char *string)
{
    kiln_text_char(text, '"');
    for (; *string != '\0'; string++) {
        const unsigned char *p = (const unsigned char *)string;

        if (p[0] == 0xc2 && p[1] < 0xa0) {
            kiln_text_printf(text, "\\x%02x", p[1]);
            string++;
        } else if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) {
            kiln_text_append(text, p[2] == 0xa8 ? "\\L" : "\\P");
            string += 2;
        } else if (p[0] == 0xef &&
                   ((p[1] == 0xbb && p[2] == 0xbf) || (p[1] == 0xbf && p[2] >= 0xbe))) {
            kiln_text_append(text, p[1] == 0xbb ? "\\uFEFF" : p[2] == 0xbe ? "\\uFFFE" : "\\uFFFF");
            string += 2;
        } else if (p[0] == '"' || p[0] == '\\') {
            kiln_text_printf(text, "\\%c", p[0]);
        } else if (is_control(p[0])) {
            kiln_text_printf(text, "\\x%02x", p[0]);
        } else {
            kiln_text_char(text, *string);
        }
    }
    kiln_text_char(text, '"');
}

static bool has_special(const char *string)
{
    for (const unsigned char *p = (const unsigned char *)string; *p != '\0'; p++)
        if ((p[0] == 0xc2 && p[1] < 0xa0) ||
            (p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)) ||
            (p[0] == 0xef && (p[1] == 0xbb || p[1] == 0xbf)))
            return true;
    return false;
}

static bool needs_escapes(const char *string)
{
    for (const char *p = string; *p != '\0'; p++)
        if (is_control((unsigned char)*p))
            return true;
    return !kiln_text_is_utf8(string, strlen(string));
}

void kiln_write_quoted(KilnText *text, const char *string)
{
    if (kiln_text_is_utf8(string, strlen(string)) && has_special(string)) {
        special_quoted(text, string);
    } else if (needs_escapes(string)) {
        double_quoted(text, string);
    } else {
        kiln_text_char(text, '\'');
        for (; *string != '\0'; string++) {
            if (*string == '\'')
                kiln_text_char(text, '\'');
            kiln_text_char(text, *string);
        }
        kiln_text_char(text, '\'');
    }
}

void kiln_write_string(KilnText *text, const char *string)
{
    if (is_plain(string) && !has_special(string))
        kiln_text_append(text, string);
    else
        kiln_write_quoted(text, string);
}

/* 1.0e-05: without the dot some readers take it for text. */
static void write_float(KilnText *text, const char *written)
{
    char buf[KILN_F64_TEXT];
    double value;
    const char *e;

    KilnStatus status = kiln_parse_f64(written, &value, NULL);
    if (status == KILN_E_RANGE) {
        /* .4e999 is a number in an argument, and text in a file: say what it is. */
        kiln_text_append(text, *written == '-' ? "-.inf" : ".inf");
        return;
    }
    if (status < 0) {
        kiln_text_append(text, written);
        return;
    }
    kiln_format_f64(value, buf, sizeof(buf));
    e = strchr(buf, 'e');
    if (e == NULL || strchr(buf, '.') != NULL)
        kiln_text_append(text, buf);
    else
        kiln_text_printf(text, "%.*s.0%s", (int)(e - buf), buf, e);
}

void kiln_write_scalar(KilnText *text, const KilnConfigNode *node)
{
    switch (node->scalar) {
    case KILN_SCALAR_NULL:
    case KILN_SCALAR_BOOL:
    case KILN_SCALAR_INT:
        kiln_text_append(text, node->text);
        return;
    case KILN_SCALAR_FLOAT:
        write_float(text, node->text);
        return;
    case KILN_SCALAR_MISSING:
        kiln_text_append(text, "???");
        return;
    case KILN_SCALAR_STR:
    case KILN_SCALAR_INTERPOLATION:
        break;
    }
    kiln_write_string(text, node->text);
}

/* ---- Containers --------------------------------------------------------------------- */

static KilnStatus write_value(KilnYamlWriter *writer, const KilnConfigNode *node,
                              const Level *level, bool in_list, KilnError *err);

static void indent(KilnText *text, int n)
{
    for (int i = 0; i < n; i++)
        kiln_text_char(text, ' ');
}

/* "key:", or where YAML would not read that any more (above 1024 letters as they are
 * written) "? key" and ":" on a line of its own. */
static void write_key(KilnText *text, const KilnEntry *entry, int column)
{
    bool is_long = strlen(entry->key) > LONGEST_KEY;

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

/* A list of a few numbers is easier to read in one line. */
static bool fits_line(const KilnConfigNode *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const KilnConfigNode *item = list->entries[i].value;

        if (item->kind != KILN_NODE_SCALAR ||
            (item->scalar != KILN_SCALAR_INT && item->scalar != KILN_SCALAR_FLOAT &&
             item->scalar != KILN_SCALAR_BOOL && item->scalar != KILN_SCALAR_NULL))
            return false;
    }
    return list->count <= LONGEST_LINE_LIST;
}

static void write_line(KilnText *text, const KilnConfigNode *list)
{
    kiln_text_char(text, '[');
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            kiln_text_append(text, ", ");
        kiln_write_scalar(text, list->entries[i].value);
    }
    kiln_text_char(text, ']');
}

static KilnStatus write_map(KilnYamlWriter *writer, const KilnConfigNode *map, const Level *level,
                            bool in_list, KilnError *err)
{
    KilnStatus status = KILN_OK;
    bool first = true;

    for (size_t i = 0; i < map->count && status >= 0; i++) {
        if (level->depth == 1 && writer->hidden != NULL &&
            writer->hidden(writer->config, map->entries[i].key))
            continue;
        if (!first || !in_list)
            indent(writer->text, level->indent);
        first = false;
        write_key(writer->text, &map->entries[i], level->indent);
        status = write_value(writer, map->entries[i].value, level, false, err);
    }
    if (first)
        kiln_text_append(writer->text, "{}\n");
    return status;
}

static KilnStatus write_list(KilnYamlWriter *writer, const KilnConfigNode *list, const Level *level,
                             bool in_list, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < list->count && status >= 0; i++) {
        if (i > 0 || !in_list)
            indent(writer->text, level->indent);
        kiln_text_char(writer->text, '-');
        status = write_value(writer, list->entries[i].value, level, true, err);
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
    if (++writer->nodes > MOST_NODES ||
        (level != NULL && level->depth > 2 * KILN_INTERPOLATION_DEPTH))
        return kiln_error_set(err, KILN_E_RANGE,
                              "the config is too large or too deep to be written when its "
                              "interpolations are resolved");
    return KILN_OK;
}

/* Does it say the same whenever and wherever it is resolved? */
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

/* Behind "key:" or "-": a scalar on the line, containers below. */
static KilnStatus write_value(KilnYamlWriter *writer, const KilnConfigNode *node,
                              const Level *level, bool in_list, KilnError *err)
{
    const KilnConfigNode *written = node;
    Level below = { .above = level,
                    .depth = level != NULL ? level->depth + 1 : 1,
                    .indent = level != NULL ? level->indent + 2 : 0 };
    KilnStatus status = KILN_OK;

    if (writer->resolve && !(writer->references && refers_to_job(node)))
        status = kiln_config_resolve(writer->config, node, &node, err);
    if (status >= 0)
        status = check_level(writer, node, level, err);
    if (status < 0)
        return status;
    below.node = node;
    if (node->kind == KILN_NODE_SCALAR || node->count == 0 ||
        (node->kind == KILN_NODE_LIST && fits_line(node))) {
        if (level != NULL)
            kiln_text_char(writer->text, ' ');
        if (node->kind == KILN_NODE_SCALAR) {
            kiln_write_scalar(writer->text, node);
        } else if (node->kind == KILN_NODE_LIST) {
            write_line(writer->text, node);
        } else {
            kiln_text_append(writer->text, "{}");
        }
        if (writer->comments != NULL)
            kiln_origin_comments_add(writer->comments, writer->config, written, node,
                                     writer->text->length);
        kiln_text_char(writer->text, '\n');
        return KILN_OK;
    }
    if (level != NULL)
        kiln_text_char(writer->text, in_list ? ' ' : '\n');
    return node->kind == KILN_NODE_MAP ? write_map(writer, node, &below, in_list, err)
                                       : write_list(writer, node, &below, in_list, err);
}

KilnStatus kiln_write_node(KilnYamlWriter *writer, const KilnConfigNode *node, KilnError *err)
{
    return write_value(writer, node, NULL, false, err);
}
