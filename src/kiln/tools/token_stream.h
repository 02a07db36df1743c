/* A long stream of tokens: text files encoded one after the other, for language models. The ids are
 * in memory, or in a file that is mapped and found again by the next run. */
#ifndef KILN_KILN_TOOLS_TOKEN_STREAM_H
#define KILN_KILN_TOOLS_TOKEN_STREAM_H

#include "kiln/tokenizer.h"

/* Bytes [begin, end) of a UTF-8 text file; of a .gz or .zst file those of the text in it, which is
 * unpacked to a temporary file ($TMPDIR) each time that it is read. */
typedef struct KilnTextPart {
    const char *path;
    uint64_t begin, end;
} KilnTextPart;

typedef struct KilnTokenStreamSpec {
    const KilnInstance *tokenizer; /* trained or opened */
    const KilnTextPart *parts;
    size_t n_parts;
    bool lines; /* each line is a document, without its line end; else each part is one */
    /* A folder for the ids, made when it is not there: NAME-<key>.tokens, where the key is of the
     * files as they are now, the parts and the tokenizer. NULL: they are kept in memory. */
    const char *cache, *name;
    const KilnPoll *poll; /* may be NULL */
} KilnTokenStreamSpec;

typedef struct KilnTokenStream KilnTokenStream;

/* Split files into a beginning and an end that has about `share` of all bytes: the cut is before a
 * character, with `lines` before a line. `head` and `tail` have room for n parts; *ret_head and
 * *ret_tail are their numbers. KILN_E_IO if a file can't be read. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_parts_split(char *const *files, size_t n, double share,
                                                         bool lines, KilnTextPart *head,
                                                         size_t *ret_head, KilnTextPart *tail,
                                                         size_t *ret_tail, KilnError *err);
/* Train a tokenizer on all lines of the parts, with their line ends. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_parts_train(const KilnTextPart *parts, size_t n,
                                                         KilnInstance *tokenizer,
                                                         const KilnPoll *poll, KilnError *err);
/* Encode the parts, each document followed by the tokenizer's end of a text if it has one; or open
 * what an earlier call left in the cache. The work needs some 50 MB of memory however long a
 * document is, and without a cache the ids take 2 or 4 bytes each. KILN_E_FORMAT with file and byte
 * for text that is not UTF-8. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_token_stream_open(const KilnTokenStreamSpec *spec,
                                                          KilnTokenStream **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_token_stream_close(KilnTokenStream *stream);
KILN_API int64_t kiln_token_stream_count(const KilnTokenStream *stream);
/* Copy n ids from number `from` on; any number of threads may read. */
KILN_API void kiln_token_stream_read(const KilnTokenStream *stream, int64_t from, int64_t n,
                                     int32_t *ret);
/* The positions of the same tokens in their documents, from 0 on; the first document counts from
 * `from` on, also where it begins before. */
KILN_API void kiln_token_stream_positions(const KilnTokenStream *stream, int64_t from, int64_t n,
                                          int32_t *ret);

#endif
