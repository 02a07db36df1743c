/* One document of a text file: cutting it, and encoding it in windows, since tokens take a hundred
 * times the memory of their text while they are made. */
#ifndef KILN_TEXT_STREAM_WINDOWED_TEXT_H
#define KILN_TEXT_STREAM_WINDOWED_TEXT_H

#include "data/records/mapped_file.h"
#include "kiln/tokenizer.h"

enum { KILN_TEXT_WINDOW = 256 << 10 }; /* bytes of text */

/* Where to end a text of [at, end) that should have KILN_TEXT_WINDOW bytes at most: `end` if it has
 * no more; else after the last line end, before the last space, or before a character, the first of
 * these that the second half of the window has. */
uint64_t kiln_text_cut(const char *data, uint64_t at, uint64_t end);

typedef struct KilnWindowedText {
    const KilnInstance *tokenizer;
    const KilnMappedFile *map;
    uint64_t begin, end; /* bytes of the file */
    /* Takes the next tokens; called once or more. */
    KilnStatus (*put)(void *ctx, const int32_t *ids, size_t n, KilnError *err);
    void *ctx;
    const KilnPoll *poll; /* may be NULL; its total is the file's size */
} KilnWindowedText;

/* Encode it. A window that is cut off is encoded with some text before and after it, and gives the
 * tokens that begin in it; so they are those of the document in one piece. Where a word is longer
 * than that context, tokens may differ at the cut; their text is still the document's.
 * KILN_E_FORMAT with file, line and byte for text that is not UTF-8. */
KILN_NODISCARD KilnStatus kiln_windowed_text_encode(const KilnWindowedText *text,
                                                    KilnEncoding *work, KilnError *err);

#endif
