/* Finds the comments of a YAML file, which its parser skips: in what lies between two tokens, only
 * a comment has a #. */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/hydra/source.h"

typedef struct Comment {
    int line, column;
    const char *text; /* "# ...", or "" for an empty line */
    bool own;         /* nothing else is on its line */
} Comment;

typedef struct Scan {
    KilnArena *arena;
    KilnImportFile *file;
    const char *text, *end;
    const char *at; /* of the character `index`, which is at line, column */
    size_t index;
    int line, column;
    Comment *comments;
    size_t n, capacity, next; /* next: the first that belongs to no entry yet */
    size_t comments_capacity, spans_capacity;
} Scan;

static void add_comment(Scan *scan, const char *text, size_t length, bool own)
{
    while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == ' '))
        length--;
    if (!KILN_ARENA_RESERVE(scan->arena, scan->comments, scan->capacity, scan->n + 1))
        return;
    const char *copy = kiln_arena_strndup(scan->arena, text, length);
    if (copy != NULL)
        scan->comments[scan->n++] = (Comment) { scan->line, scan->column, copy, own };
}

/* Whether only blanks precede `at` on its line. */
static bool begins_line(const Scan *scan, const char *at)
{
    while (at > scan->text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at == scan->text || at[-1] == '\n';
}

static void step(Scan *scan)
{
    const char c = *scan->at++;

    while (scan->at < scan->end && ((unsigned char)*scan->at & 0xc0) == 0x80)
        scan->at++;
    scan->index++;
    scan->column = c == '\n' ? 1 : scan->column + 1;
    scan->line += c == '\n';
}

/* Move to a character, and add the comments and empty lines on the way if it is a `gap`. */
static void move_to(Scan *scan, size_t index, bool gap)
{
    while (scan->index < index && scan->at < scan->end) {
        const char *line = scan->at;

        if (gap && *line == '#') {
            const char *stop = memchr(line, '\n', (size_t)(scan->end - line));
            const size_t length = (size_t)((stop != NULL ? stop : scan->end) - line);

            add_comment(scan, line, length, begins_line(scan, line));
            while (scan->at < line + length)
                step(scan);
        } else {
            if (gap && *line == '\n' && begins_line(scan, line))
                add_comment(scan, line, 0, true);
            step(scan);
        }
    }
}

static void add_span(Scan *scan, const char *begin, bool flow, int line, int column)
{
    KilnImportFile *file = scan->file;
    const size_t length = (size_t)(scan->at - begin);
    const char *text = NULL;

    if (!KILN_ARENA_RESERVE(scan->arena, file->spans, scan->spans_capacity, file->n_spans + 1))
        return;
    if (memchr(begin, '\n', length) == NULL)
        text = kiln_arena_strndup(scan->arena, begin, length);
    file->spans[file->n_spans++] = (KilnImportSpan) { line, column, flow, text };
}

/* Spans of scalars, and of flow collections as a whole; comments between tokens. */
static bool scan_tokens(Scan *scan, yaml_parser_t *parser)
{
    const char *flow = NULL;
    int depth = 0, line = 0, column = 0;
    bool more = true;

    while (more) {
        yaml_token_t token;

        if (!yaml_parser_scan(parser, &token))
            return false;
        more = token.type != YAML_STREAM_END_TOKEN;
        move_to(scan, token.start_mark.index, true);
        const char *begin = scan->at;
        const int at_line = scan->line, at_column = scan->column;
        const bool opens = token.type == YAML_FLOW_SEQUENCE_START_TOKEN ||
                           token.type == YAML_FLOW_MAPPING_START_TOKEN;
        const bool closes = token.type == YAML_FLOW_SEQUENCE_END_TOKEN ||
                            token.type == YAML_FLOW_MAPPING_END_TOKEN;
        if (opens && depth++ == 0) {
            flow = begin;
            line = at_line;
            column = at_column;
        }
        move_to(scan, token.end_mark.index, false);
        if (token.type == YAML_SCALAR_TOKEN)
            add_span(scan, begin, false, at_line, at_column);
        if (closes && --depth == 0)
            add_span(scan, flow, true, line, column);
        yaml_token_delete(&token);
    }
    move_to(scan, SIZE_MAX, true);
    return true;
}

/* ---- Which key a comment belongs to -----------------------------------------------------------
 */

static const char *append(KilnArena *arena, const char *lines, const char *text)
{
    return kiln_arena_printf(arena, "%s%s\n", lines != NULL ? lines : "", text);
}

static bool is_header(const Comment *comment)
{
    const char *text = comment->text + strspn(comment->text, "# \t");

    return strncmp(text, "@package", 8) == 0;
}

static KilnImportComments *new_comments(Scan *scan, const KilnEntry *entry)
{
    KilnImportFile *file = scan->file;

    if (!KILN_ARENA_RESERVE(scan->arena, file->comments, scan->comments_capacity,
                            file->n_comments + 1))
        return NULL;
    file->comments[file->n_comments] = (KilnImportComments) { .entry = entry };
    return &file->comments[file->n_comments++];
}

/* Those above line, column: what is indented deeper belongs to the entry before. */
static void take_above(Scan *scan, KilnImportComments *comments, int line, int column)
{
    KilnImportFile *file = scan->file;
    KilnImportComments *previous = file->n_comments > 1 ? &file->comments[file->n_comments - 2]
                                                        : NULL;

    for (; scan->next < scan->n && scan->comments[scan->next].line < line; scan->next++) {
        const Comment *comment = &scan->comments[scan->next];

        if (is_header(comment))
            continue;
        if (previous != NULL && comments->before == NULL && comment->text[0] != '\0' &&
            comment->column > column)
            previous->below = append(scan->arena, previous->below, comment->text);
        else
            comments->before = append(scan->arena, comments->before, comment->text);
    }
}

static void take_beside(Scan *scan, KilnImportComments *comments, int line)
{
    if (scan->next >= scan->n || scan->comments[scan->next].line != line)
        return;
    if (!is_header(&scan->comments[scan->next]))
        comments->after = scan->comments[scan->next].text;
    scan->next++;
}

static void attach(Scan *scan, const KilnConfigNode *node)
{
    for (size_t i = 0; i < node->count; i++) {
        const KilnEntry *entry = &node->entries[i];
        const KilnConfigNode *value = entry->value;
        const KilnOrigin at = entry->key != NULL ? entry->key_origin : value->origin;
        const bool block = kiln_import_is_block(scan->file, value);

        /* An item that is a block begins with its first key. */
        if (entry->key != NULL || !block) {
            KilnImportComments *comments = new_comments(scan, entry);

            if (comments == NULL)
                return;
            take_above(scan, comments, at.line, at.column);
            take_beside(scan, comments, at.line);
        }
        if (block)
            attach(scan, value);
    }
}

KilnStatus kiln_import_scan(KilnArena *arena, KilnImportFile *file, const char *text, size_t size,
                            KilnError *err)
{
    Scan scan = { .arena = arena, .file = file, .line = 1, .column = 1, .end = text + size };
    KilnImportComments *foot;
    yaml_parser_t parser;

    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    scan.text = scan.at = text;
    if (!yaml_parser_initialize(&parser))
        return kiln_error_nomem(err, sizeof(parser));
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, (size_t)(scan.end - text));
    const bool whole = scan_tokens(&scan, &parser);
    yaml_parser_delete(&parser);
    if (file->root != NULL)
        attach(&scan, file->root);
    foot = new_comments(&scan, NULL);
    if (foot != NULL)
        take_above(&scan, foot, scan.line + 1, 1);
    /* The same text has been read before, so that only memory can be missing. */
    return whole && !arena->failed ? KILN_OK : kiln_error_nomem(err, size);
}
