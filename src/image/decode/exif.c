/* The orientation tag of EXIF. */
#include "image/decode/image_formats.h"

#include <string.h>

static uint32_t number(const uint8_t *p, int bytes, bool little)
{
    uint32_t value = 0;

    for (int i = 0; i < bytes; i++)
        value = value << 8 | p[little ? bytes - 1 - i : i];
    return value;
}

/* A TIFF header, and the first directory: entries of 12 bytes with tag, type, count, value. */
int kiln_exif_orientation(const uint8_t *data, size_t size)
{
    enum { ENTRY = 12, ORIENTATION = 0x112, SHORT = 3 };

    if (size < 8 || (memcmp(data, "II*\0", 4) != 0 && memcmp(data, "MM\0*", 4) != 0))
        return 1;
    const bool little = data[0] == 'I';
    const size_t at = number(data + 4, 4, little);
    if (at > size - 2)
        return 1;
    const size_t count = number(data + at, 2, little), room = (size - at - 2) / ENTRY;
    for (size_t i = 0; i < (count < room ? count : room); i++) {
        const uint8_t *entry = data + at + 2 + i * ENTRY;

        if (number(entry, 2, little) != ORIENTATION || number(entry + 2, 2, little) != SHORT)
            continue;
        const uint32_t value = number(entry + 8, 2, little);
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}
