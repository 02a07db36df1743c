/* Classes of characters, over utf8proc. */
#include "text/unicode/characters.h"

#include <utf8proc.h>

#include "kiln/tools/text.h"

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

static bool continues(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the valid sequence at `t`, which does not begin with ASCII; 0: none. */
static size_t sequence_length(const unsigned char *t, size_t n)
{
    const unsigned char c = t[0];

    if (c >= 0xc2 && c <= 0xdf)
        return n >= 2 && continues(t[1]) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        if (n < 3 || !continues(t[1]) || !continues(t[2]) || (c == 0xe0 && t[1] < 0xa0) ||
            (c == 0xed && t[1] > 0x9f))
            return 0;
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (n < 4 || !continues(t[1]) || !continues(t[2]) || !continues(t[3]) ||
            (c == 0xf0 && t[1] < 0x90) || (c == 0xf4 && t[1] > 0x8f))
            return 0;
        return 4;
    }
    return 0;
}

size_t kiln_utf8_invalid(const char *text, size_t n)
{
    const unsigned char *t = (const unsigned char *)text;
    size_t i = 0;

    while (i < n) {
        if (n - i >= 8) {
            uint64_t eight;

            __builtin_memcpy(&eight, t + i, 8);
            if ((eight & 0x8080808080808080u) == 0) {
                i += 8;
                continue;
            }
        }
        const size_t length = t[i] < 0x80 ? 1 : sequence_length(t + i, n - i);
        if (length == 0)
            return i;
        i += length;
    }
    return n;
}

size_t kiln_utf8_read(const char *text, uint32_t *ret)
{
    const unsigned char *t = (const unsigned char *)text;

    if (t[0] < 0x80) {
        *ret = t[0];
        return 1;
    }
    if (t[0] < 0xe0) {
        *ret = (uint32_t)(t[0] & 0x1f) << 6 | (t[1] & 0x3f);
        return 2;
    }
    if (t[0] < 0xf0) {
        *ret = (uint32_t)(t[0] & 0x0f) << 12 | (uint32_t)(t[1] & 0x3f) << 6 | (t[2] & 0x3f);
        return 3;
    }
    *ret = (uint32_t)(t[0] & 0x07) << 18 | (uint32_t)(t[1] & 0x3f) << 12 |
           (uint32_t)(t[2] & 0x3f) << 6 | (t[3] & 0x3f);
    return 4;
}

size_t kiln_utf8_read_last(const char *text, size_t n, uint32_t *ret)
{
    size_t at = n - 1;

    while (at > 0 && continues((unsigned char)text[at]))
        at--;
    kiln_utf8_read(text + at, ret);
    return n - at;
}

size_t kiln_utf8_write(uint32_t c, char *ret)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)ret);
}

size_t kiln_utf8_count(const char *text, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += !continues((unsigned char)text[i]);
    return count;
}

/* ---- Classes --------------------------------------------------------------------------------- */

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool kiln_char_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
           c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool kiln_char_is_letter(uint32_t c)
{
    const utf8proc_category_t k = category(c);

    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool kiln_char_is_number(uint32_t c)
{
    const utf8proc_category_t k = category(c);

    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

/* Alphabetic, M, Nd, Pc and Join_Control; the alphabetic characters that are neither letters nor
 * marks are letter numbers and the circled and squared Latin letters. */
bool kiln_char_is_word(uint32_t c)
{
    const utf8proc_category_t k = category(c);

    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC ||
           (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
           (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189) || c == 0x200c ||
           c == 0x200d;
}

bool kiln_char_is_punctuation(uint32_t c)
{
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    const utf8proc_category_t k = category(c);

    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool kiln_char_is_other(uint32_t c)
{
    const utf8proc_category_t k = category(c);

    return k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO;
}

bool kiln_char_is_mark(uint32_t c)
{
    const utf8proc_category_t k = category(c);

    return k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME;
}

bool kiln_char_is_nonspacing(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_MN;
}

char kiln_category_at(const char *s, size_t n, size_t *ret_length)
{
    utf8proc_int32_t c;
    const utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)s,
                                                     n < 4 ? (utf8proc_ssize_t)n : 4, &c);

    *ret_length = length > 0 ? (size_t)length : 1;
    return length > 0 ? utf8proc_category_string(c)[0] : 'C';
}

int kiln_char_lower(uint32_t c, uint32_t ret[2])
{
    if (c == 0x130) { /* the only one whose lower case is two characters */
        ret[0] = 'i';
        ret[1] = 0x307;
        return 2;
    }
    ret[0] = c < 0x80 ? c + (c >= 'A' && c <= 'Z' ? 32 : 0)
                      : (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}

size_t kiln_grapheme_length(const char *text, size_t n)
{
    uint32_t before, next;
    utf8proc_int32_t state = 0;
    size_t at = kiln_utf8_read(text, &before);

    while (at < n) {
        const size_t length = kiln_utf8_read(text + at, &next);

        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)next,
                                             &state))
            break;
        before = next;
        at += length;
    }
    return at;
}
