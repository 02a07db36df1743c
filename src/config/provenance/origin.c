/* Writes and reads origins. */
#include "config/provenance/origin.h"

#include <string.h>

void kiln_origin_write(KilnText *text, const KilnOrigin *origin)
{
    if (origin->line > 0)
        kiln_text_printf(text, "%s:%d:%d", origin->source, origin->line, origin->column);
    else
        kiln_text_append(text, origin->source != NULL ? origin->source : "nowhere");
}

bool kiln_origin_equal(const KilnOrigin *a, const KilnOrigin *b)
{
    return a->line == b->line && a->column == b->column && a->source != NULL && b->source != NULL &&
           strcmp(a->source, b->source) == 0;
}

size_t kiln_origin_prefix(const char *message, const KilnOrigin *origin)
{
    KilnText place = { 0 };
    size_t n = 0;

    if (origin->source == NULL)
        return 0;
    kiln_origin_write(&place, origin);
    kiln_text_char(&place, ':');
    if (!place.failed && kiln_starts_with(message, place.data))
        n = place.length;
    kiln_text_release(&place);
    return n;
}

const char *kiln_origin_argument(const char *source, size_t *ret_number)
{
    static const char word[] = "argument ";
    size_t n = sizeof(word) - 1, number = 0;

    if (source == NULL || !kiln_starts_with(source, word))
        return NULL;
    while (source[n] >= '0' && source[n] <= '9' && number < SIZE_MAX / 100)
        number = number * 10 + (size_t)(source[n++] - '0');
    if (n == sizeof(word) - 1 || strncmp(source + n, " `", 2) != 0 || !kiln_ends_with(source, "`"))
        return NULL;
    if (ret_number != NULL)
        *ret_number = number;
    return source + n + 2;
}
