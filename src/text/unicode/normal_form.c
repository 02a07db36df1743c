/* Decomposes with utf8proc, sorts marks by their combining class, and composes. Each character
 * carries how many it replaces, so that offsets survive. */
#include "text/unicode/normal_form.h"

#include <utf8proc.h>

#include "kiln/array.h"
#include "text/unicode/characters.h"

void kiln_char_changes_add(KilnCharChanges *changes, uint32_t character, int32_t change)
{
    if (changes->failed || !KILN_RESERVE(changes->items, changes->capacity, changes->n + 1)) {
        changes->failed = true;
        return;
    }
    changes->items[changes->n++] = (KilnCharChange) { character, change };
}

static int combining_class(uint32_t c)
{
    return c < 0x300 ? 0 : utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
}

/* Sort the marks from `from` on by combining class; those of one class keep their order. */
static void sort_marks(KilnCharChanges *list, size_t from)
{
    for (size_t i = from + 1; i < list->n; i++) {
        const KilnCharChange item = list->items[i];
        const int k = combining_class(item.character);
        size_t at = i;

        for (; at > from && combining_class(list->items[at - 1].character) > k; at--)
            list->items[at] = list->items[at - 1];
        list->items[at] = item;
    }
}

static void decompose(const char *text, size_t n, bool compatible, KilnCharChanges *ret)
{
    const utf8proc_option_t options = (utf8proc_option_t)(UTF8PROC_DECOMPOSE |
                                                          (compatible ? UTF8PROC_COMPAT : 0));
    size_t marks = ret->n; /* where the marks that are not sorted yet begin */

    for (size_t at = 0; at < n && !ret->failed;) {
        utf8proc_int32_t parts[32];
        uint32_t c;
        int boundary = 0;

        at += kiln_utf8_read(text + at, &c);
        const utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)c, parts, 32,
                                                               options, &boundary);
        for (utf8proc_ssize_t i = 0; i < count && i < 32; i++) {
            if (combining_class((uint32_t)parts[i]) == 0) {
                sort_marks(ret, marks);
                marks = ret->n + 1;
            }
            kiln_char_changes_add(ret, (uint32_t)parts[i], i > 0);
        }
    }
    if (!ret->failed && marks < ret->n)
        sort_marks(ret, marks);
}

/* The character that `a` and `b` compose to; 0: none. */
static uint32_t compose_pair(uint32_t a, uint32_t b)
{
    utf8proc_int32_t buffer[8] = { (utf8proc_int32_t)a, (utf8proc_int32_t)b };

    if (b < 0x300 || a > 0x10ffff)
        return 0;
    const utf8proc_ssize_t n = utf8proc_normalize_utf32(buffer, 2,
                                                        UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    return n == 1 ? (uint32_t)buffer[0] : 0;
}

/* Compose in place the decomposed characters from `from` on. */
static void compose(KilnCharChanges *list, size_t from)
{
    size_t out = from;
    size_t starter = SIZE_MAX; /* the last character of class 0 */
    int last_class = -1;       /* of the characters kept after the starter; -1: none */

    for (size_t i = from; i < list->n; i++) {
        const KilnCharChange item = list->items[i];
        const int k = combining_class(item.character);

        if (starter != SIZE_MAX && (last_class < 0 || last_class < k)) {
            const uint32_t whole = compose_pair(list->items[starter].character, item.character);

            if (whole != 0) {
                list->items[starter].character = whole;
                list->items[starter].change += item.change - 1;
                continue;
            }
        }
        if (k == 0) {
            starter = out;
            last_class = -1;
        } else {
            last_class = k;
        }
        list->items[out++] = item;
    }
    list->n = out;
}

void kiln_normal_form(KilnNormalForm form, const char *text, size_t n, KilnCharChanges *ret)
{
    const size_t from = ret->n;

    decompose(text, n, form == KILN_NFKC || form == KILN_NFKD, ret);
    if (!ret->failed && (form == KILN_NFC || form == KILN_NFKC))
        compose(ret, from);
}
