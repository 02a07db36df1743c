/* Splits and quotes shell lines. */
#include "cli/complete/complete_line.h"

#include <string.h>

#include "base/array.h"

static const char blanks[] = " \t\n";

typedef struct Reader {
    KilnArena *arena;
    KilnShell shell;
    const char *breaks;
    KilnLine line;
    KilnText word;      /* as far as it is read */
    bool in_word, skip; /* skip: the word is the file of a redirection */
    size_t quote_at;    /* length of the word where the last quote opened */
    size_t break_at;    /* the same after the last break */
    size_t capacity;
} Reader;

static void end_word(Reader *reader, bool last)
{
    KilnLine *line = &reader->line;

    if (!reader->in_word && !last)
        return;
    if ((last || !reader->skip) &&
        KILN_ARENA_RESERVE(reader->arena, line->words, reader->capacity, line->count + 1))
        line->words[line->count++] = kiln_arena_strndup(
            reader->arena, reader->word.data != NULL ? reader->word.data : "", reader->word.length);
    line->file = reader->skip;
    line->kept = line->quote != '\0' ? reader->quote_at : reader->break_at;
    if (last)
        return;
    kiln_text_clear(&reader->word);
    reader->in_word = reader->skip = false;
    reader->break_at = 0;
}

/* Whether a backslash before `next` escapes it. */
static bool escapes(const Reader *reader, char next)
{
    if (reader->line.quote == '\'')
        return reader->shell == KILN_SHELL_FISH && (next == '\'' || next == '\\');
    if (reader->line.quote == '"')
        return next != '\0' && strchr("\"\\$`", next) != NULL;
    return true;
}

/* 2>FILE, <FILE: drop the number, and skip the file. */
static void redirect(Reader *reader)
{
    const char *word = reader->word.data;

    if (reader->in_word && word != NULL && word[strspn(word, "0123456789")] == '\0')
        reader->in_word = false;
    end_word(reader, false);
    kiln_text_clear(&reader->word);
    reader->skip = true;
}

static void unquoted(Reader *reader, char c)
{
    if (strchr(blanks, c) != NULL) {
        end_word(reader, false);
    } else if (c == '\'' || c == '"') {
        reader->line.quote = c;
        reader->quote_at = reader->word.length;
        reader->in_word = true;
    } else if (c == '<' || c == '>') {
        redirect(reader);
    } else {
        /* Readline keeps some breaks with the text after them. */
        if (strchr(reader->breaks, c) != NULL)
            reader->break_at = reader->word.length + (strchr("@$", c) == NULL);
        kiln_text_char(&reader->word, c);
        reader->in_word = true;
    }
}

bool kiln_line_read(KilnArena *arena, KilnShell shell, const char *text, const char *breaks,
                    KilnLine *ret)
{
    Reader reader = { .arena = arena, .shell = shell, .breaks = breaks };

    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\\' && escapes(&reader, p[1])) {
            reader.in_word = true;
            if (p[1] != '\0')
                kiln_text_char(&reader.word, *++p);
        } else if (reader.line.quote == '\0') {
            unquoted(&reader, *p);
        } else if (*p == reader.line.quote) {
            reader.line.quote = '\0';
        } else {
            kiln_text_char(&reader.word, *p);
        }
    }
    end_word(&reader, true);
    const bool done = !arena->failed && !reader.word.failed;
    kiln_text_release(&reader.word);
    *ret = reader.line;
    return done;
}

static bool plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c & 0x80) != 0 || strchr("_-+=.,/:@%", c) != NULL;
}

void kiln_line_quote(KilnText *text, const char *word, char quote)
{
    for (const char *p = word; *p != '\0'; p++) {
        if (quote == '\'' && *p == '\'') {
            kiln_text_append(text, "'\\''");
            continue;
        }
        if (quote == '"' ? strchr("\"\\$`", *p) != NULL : quote == '\0' && !plain(*p))
            kiln_text_char(text, '\\');
        kiln_text_char(text, *p);
    }
}
