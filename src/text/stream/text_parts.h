/* A text file in memory, mapped. */
#ifndef KILN_TEXT_STREAM_TEXT_PARTS_H
#define KILN_TEXT_STREAM_TEXT_PARTS_H

#include "kiln/tools/token_stream.h"

typedef struct KilnTextMap {
    const char *data; /* NULL: the file is empty */
    uint64_t size;
} KilnTextMap;

/* KILN_E_IO if it is no file that can be read. */
KILN_NODISCARD KilnStatus kiln_text_map_open(KilnTextMap *map, const char *path, KilnError *err);
/* Accepts a zeroed struct, which it is afterwards. */
void kiln_text_map_close(KilnTextMap *map);

#endif
