/* Spans in sequences of tags (kiln/tools/tag_spans.h). */
#include "kiln/tools/tag_spans.h"

#include <string.h>

/* What follows the first dash is the type; in a tag without one, all but its first character. */
static KilnString type_of(KilnString tag)
{
    const size_t n = tag.length;
    const char *dash = n > 1 ? memchr(tag.data + 1, '-', n - 1) : NULL;
    const char *type = dash != NULL ? dash + 1 : tag.data + 1;

    return n > 1 && type < tag.data + n ? (KilnString) { type, (size_t)(tag.data + n - type) }
                                        : (KilnString) { "_", 1 };
}

static bool same(KilnString a, KilnString b)
{
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

static bool is_one_of(char letter, const char *letters)
{
    return letter != '\0' && strchr(letters, letter) != NULL;
}

static bool ends(char before, char letter, bool same_type)
{
    if (is_one_of(before, "ES"))
        return true;
    if (is_one_of(before, "BI") && is_one_of(letter, "BSO"))
        return true;
    return !is_one_of(before, "O.") && !same_type;
}

static bool starts(char before, char letter, bool same_type)
{
    if (is_one_of(letter, "BS"))
        return true;
    if (is_one_of(before, "ESO") && is_one_of(letter, "EI"))
        return true;
    return !is_one_of(letter, "O.") && !same_type;
}

bool kiln_span_next(KilnSpanFinder *finder, KilnString tag, KilnTagSpan *ret)
{
    const char before = finder->letter != '\0' ? finder->letter : 'O';
    const char letter = tag.length > 0 ? tag.data[0] : 'O';
    const KilnString type = type_of(tag);
    const bool same_type = finder->letter != '\0' && same(finder->type, type);
    const bool ended = ends(before, letter, same_type);

    if (ended)
        *ret = (KilnTagSpan) { finder->type, finder->first, finder->at - 1 };
    if (starts(before, letter, same_type))
        finder->first = finder->at;
    finder->letter = letter;
    finder->type = type;
    finder->at++;
    return ended;
}

bool kiln_span_end(KilnSpanFinder *finder, KilnTagSpan *ret)
{
    return kiln_span_next(finder, (KilnString) { "O", 1 }, ret);
}
