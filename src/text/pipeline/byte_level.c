/* GPT-2's words: one pass over the bytes, with a table for ASCII. */
#include "text/pipeline/byte_level.h"

#include <string.h>

#include "text/unicode/characters.h"

typedef enum Class { OTHER, LETTER, NUMBER, SPACE, LONG /* not ASCII */ } Class;

#define L LETTER
#define N NUMBER
#define S SPACE
#define O OTHER
#define X16                                                                                        \
    LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG
/* clang-format off */
static const uint8_t classes[256] = {
    O, O, O, O, O, O, O, O, O, S, S, S, S, S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O,
    S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, N, N, N, N, N, N, N, N, N, N, O, O, O, O, O, O,
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
    X16, X16, X16, X16, X16, X16, X16, X16
};
/* clang-format on */

static Class long_class(const char *text, size_t *ret_length)
{
    uint32_t c;

    *ret_length = kiln_utf8_read(text, &c);
    return kiln_char_is_letter(c)   ? LETTER
           : kiln_char_is_number(c) ? NUMBER
           : kiln_char_is_space(c)  ? SPACE
                                    : OTHER;
}

static Class class_at(const char *text, size_t at, size_t *ret_length)
{
    const uint8_t class = classes[(unsigned char)text[at]];

    *ret_length = 1;
    return class == LONG ? long_class(text + at, ret_length) : (Class) class;
}

/* The length of 's, 't, 're, 've, 'm, 'll or 'd at an apostrophe; 0: none of them. */
static size_t contraction(const char *text, size_t n)
{
    static const char pairs[][3] = { "re", "ve", "ll" };

    if (n >= 2 && text[1] != '\0' && strchr("stmd", text[1]) != NULL)
        return 2;
    for (size_t i = 0; n >= 3 && i < KILN_COUNT(pairs); i++)
        if (text[1] == pairs[i][0] && text[2] == pairs[i][1])
            return 3;
    return 0;
}

/* White space up to the next word, without its last character if the word would take that or is
 * left to itself. */
static size_t space_end(const char *text, size_t n, size_t at)
{
    size_t last = at, end = at, length;

    while (end < n && class_at(text, end, &length) == SPACE) {
        last = end;
        end += length;
    }
    return end == n || last == at ? end : last;
}

size_t kiln_gpt2_word(const char *text, size_t n, size_t at)
{
    size_t length, end = at;

    if (text[at] == '\'') {
        const size_t short_form = contraction(text + at, n - at);

        if (short_form > 0)
            return at + short_form;
    }
    Class class = class_at(text, at, &length);
    if (text[at] == ' ' && at + 1 < n) {
        const Class next = class_at(text, at + 1, &length);

        if (next != SPACE) {
            class = next;
            end = at + 1;
        }
    }
    if (class == SPACE)
        return space_end(text, n, at);
    do
        end += length;
    while (end < n && class_at(text, end, &length) == class);
    return end;
}
