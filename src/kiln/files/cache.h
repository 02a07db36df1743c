/* A cache on disk for what is expensive to make again: decoded samples. One file has a place of
 * fixed size for each sample, and may be read and filled by several threads and processes at
 * once. */
#ifndef KILN_KILN_FILES_CACHE_H
#define KILN_KILN_FILES_CACHE_H

#include "kiln/base.h"

typedef struct KilnCache KilnCache;

typedef struct KilnCacheSpec {
    const char *folder; /* made when it is not there */
    const char *name;   /* the file is FOLDER/NAME-<key>.cache */
    uint64_t key;       /* of everything that decides what is in an entry, but its source */
    int64_t count;      /* entries */
    size_t bytes;       /* of each */
} KilnCacheSpec;

/* Open the cache, or make an empty one. A file that is not what the spec says (cut off, damaged
 * in front, of another count) is replaced. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_cache_open(const KilnCacheSpec *spec, KilnCache **ret,
                                                   KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_cache_close(KilnCache *cache);
/* Copy entry i to `ret` if it is there, was made from `source` and is whole (XXH3). */
KILN_API bool kiln_cache_get(KilnCache *cache, int64_t i, uint64_t source, void *ret);
/* Keep entry i. A failure (a full disk) ends writing, and is in the counts. */
KILN_API void kiln_cache_put(KilnCache *cache, int64_t i, uint64_t source, const void *data);

/* Since it was opened. */
typedef struct KilnCacheCounts {
    int64_t hits, misses; /* damaged ones are misses, too */
    int64_t damaged;      /* entries with bytes that are not what was written */
    int write_error;      /* errno of the write that failed; 0: none */
    int read_error;       /* the same of a read */
    bool cut;             /* somebody made the file shorter while it was in use */
    bool replaced;        /* there was a file that could not be used */
} KilnCacheCounts;
KILN_API KilnCacheCounts kiln_cache_counts(const KilnCache *cache);
/* Report what the user should know and has not seen yet, a line each that begins with
 * `who`. Accepts NULL. */
KILN_API void kiln_cache_report(KilnCache *cache, const char *who,
                                void (*say)(void *ctx, const char *message), void *ctx);

/* XXH3 of some bytes. */
KILN_API uint64_t kiln_hash(const void *data, size_t size, uint64_t seed);
/* A number for a file as it is now: of its path, inode, size, and times of change to the
 * nanosecond. A file that was written to gets another one. False: there is no such file. */
KILN_API bool kiln_file_identity(const char *path, uint64_t *ret);

#endif
