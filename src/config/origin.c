/* The order of origins: in which order messages about places are told. */
#include <stdint.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "config/state.h"

/* The number in "argument 2 `lr=fast`"; 0: it is none. */
static size_t argument_number(const char *source)
{
    static const char word[] = "argument ";
    const char *number = source + strlen(word);
    char digits[16];
    int64_t value;

    if (!kiln_starts_with(source, word))
        return 0;
    size_t n = strspn(number, "0123456789");
    if (n == 0 || n >= sizeof(digits) || number[n] != ' ')
        return 0;
    memcpy(digits, number, n);
    digits[n] = '\0';
    return kiln_parse_i64(digits, &value, NULL) >= 0 ? (size_t)value : 0;
}

size_t kiln_origin_rank(const KilnConfig *config, const KilnOrigin *origin)
{
    size_t rank = 0, files = 0, argument;

    if (origin->source == NULL)
        return SIZE_MAX;
    for (const KilnFile *file = config->search.files; file != NULL; file = file->next) {
        files++; /* the newest comes first in the list */
        if (rank == 0 && file->source != NULL && strcmp(file->source, origin->source) == 0)
            rank = files;
    }
    if (rank > 0)
        return files - rank;
    argument = argument_number(origin->source);
    if (argument > 0)
        return files + argument;
    return origin->line > 0 ? files : SIZE_MAX;
}
