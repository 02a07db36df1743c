/* JSON for growable text. */
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "kiln/tools/text.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Append the JSON escape of a character below U+0080, or the character itself. */
static void append_ascii(KilnText *text, char c)
{
    static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = c != '\0' ? strchr(special, c) : NULL;

    if (at != NULL) {
        kiln_text_char(text, '\\');
        kiln_text_char(text, letters[at - special]);
    } else if ((unsigned char)c < 0x20) {
        kiln_text_printf(text, "\\u%04x", (unsigned)c);
    } else {
        kiln_text_char(text, c);
    }
}

void kiln_text_json_string(KilnText *text, const char *value)
{
    const size_t n = strlen(value);

    kiln_text_char(text, '"');
    for (size_t at = 0; at < n;) {
        uint32_t character;
        const size_t length = kiln_utf8_next(value + at, n - at, &character);

        if (character < 0x80)
            append_ascii(text, value[at]);
        else if (length > 1)
            kiln_text_append_n(text, value + at, length);
        else
            kiln_text_append(text, REPLACEMENT);
        at += length;
    }
    kiln_text_char(text, '"');
}

void kiln_text_json_number(KilnText *text, double value)
{
    char buf[KILN_F64_TEXT];

    kiln_text_append(text, isfinite(value) ? kiln_format_f64(value, buf, sizeof(buf)) : "null");
}
