/* RFC 4648, with or without padding. */
#include "text/json/base64.h"

#include <stdlib.h>
#include <string.h>

static int value_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *digit = c != '\0' ? strchr(digits, c) : NULL;

    return digit != NULL ? (int)(digit - digits) : -1;
}

bool kiln_base64_decode(const char *text, unsigned char **ret, size_t *ret_n)
{
    size_t length = strlen(text), n = 0;
    uint32_t bits = 0;

    while (length > 0 && text[length - 1] == '=')
        length--;
    unsigned char *data = malloc(length + 1);
    if (data == NULL)
        return false;
    for (size_t i = 0; i < length; i++) {
        const int value = value_of(text[i]);

        if (value < 0) {
            free(data);
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 != 0)
            data[n++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    *ret = data;
    *ret_n = n;
    return true;
}
