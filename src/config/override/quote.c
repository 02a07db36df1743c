/* Overrides made by programs, whose values may be any text. */
#include <string.h>

#include "config/override/override.h"

void kiln_override_quote(KilnText *text, const char *key, const char *value)
{
    kiln_text_printf(text, "%s='", key);
    for (const char *p = value; *p != '\0'; p++) {
        size_t slashes = strspn(p, "\\");

        /* Backslashes are special only before a quote. */
        if (slashes > 0 && (p[slashes] == '\'' || p[slashes] == '\0'))
            kiln_text_append_n(text, p, slashes);
        if (slashes > 0) {
            kiln_text_append_n(text, p, slashes);
            p += slashes - 1;
            continue;
        }
        if (*p == '\'')
            kiln_text_char(text, '\\');
        kiln_text_char(text, *p);
    }
    kiln_text_char(text, '\'');
}
