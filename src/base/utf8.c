/* Decodes UTF-8, and knows the width of characters without a locale. */
#include "base/utf8.h"

#include <string.h>

#define REPLACEMENT 0xfffdu

size_t kiln_utf8_next(const char *text, size_t n, uint32_t *ret)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char first = (unsigned char)text[0];
    size_t length = first < 0x80           ? 1
                    : (first >> 5) == 0x06 ? 2
                    : (first >> 4) == 0x0e ? 3
                    : (first >> 3) == 0x1e ? 4
                                           : 0;
    uint32_t c = length < 2 ? first : first & (0x7fu >> length);

    *ret = REPLACEMENT;
    if (length == 0 || length > n)
        return 1;
    for (size_t i = 1; i < length; i++) {
        unsigned char more = (unsigned char)text[i];

        if ((more & 0xc0) != 0x80)
            return 1;
        c = c << 6 | (more & 0x3f);
    }
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 1;
    *ret = c;
    return length;
}

typedef struct Range {
    uint32_t first, last;
} Range;

static bool is_in(const Range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

int kiln_utf8_width(uint32_t character)
{
    static const Range joining[] = { { 0x300, 0x36f },    { 0x483, 0x489 },   { 0x591, 0x5bd },
                                     { 0x610, 0x61a },    { 0x64b, 0x65f },   { 0x200b, 0x200f },
                                     { 0x202a, 0x202e },  { 0x2060, 0x2064 }, { 0x20d0, 0x20f0 },
                                     { 0xfe00, 0xfe0f },  { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
                                     { 0xe0100, 0xe01ef } };
    static const Range wide[] = {
        { 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x23e9, 0x23ec },   { 0x2614, 0x2615 },
        { 0x26a1, 0x26a1 },   { 0x2705, 0x2705 },   { 0x274c, 0x274c },   { 0x2753, 0x2757 },
        { 0x2b50, 0x2b50 },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },   { 0x3400, 0x4dbf },
        { 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },   { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },
        { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
        { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd }
    };

    if (character < 0x300)
        return 1;
    if (is_in(joining, KILN_COUNT(joining), character))
        return 0;
    return is_in(wide, KILN_COUNT(wide), character) ? 2 : 1;
}

size_t kiln_utf8_check(const char *text, size_t n)
{
    const uint64_t high = 0x8080808080808080u;
    size_t at = 0;

    while (at < n) {
        uint32_t character;
        uint64_t eight = high;

        if (n - at >= sizeof(eight))
            memcpy(&eight, text + at, sizeof(eight));
        if ((eight & high) == 0) {
            at += sizeof(eight);
            continue;
        }
        const size_t used = kiln_utf8_next(text + at, n - at, &character);
        if (character == 0xfffd && used == 1)
            return at;
        at += used;
    }
    return n;
}

int kiln_utf8_columns(const char *text, size_t n)
{
    int columns = 0;

    for (size_t at = 0; at < n;) {
        uint32_t character;

        at += kiln_utf8_next(text + at, n - at, &character);
        columns += kiln_utf8_width(character);
    }
    return columns;
}
