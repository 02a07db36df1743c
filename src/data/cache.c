/* The cache file: a header, then entries of one size, each with its source and its sum. An entry
 * counts only with the right sum, so that nothing needs to be locked or synced: what a crash,
 * another process or a bad disk leaves half done is made again. It is read and not mapped: reading
 * a mapped hole of a full tmpfs, or a mapped file that someone cuts short, kills. */
#define _DEFAULT_SOURCE /* preadv */
#include "kiln/files/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/system/file.h"

enum { VERSION = 1, HEADER_BYTES = 4096, ALIGN = 64 };

typedef struct Header {
    char magic[8];
    uint32_t version, entry_head;
    uint64_t key, bytes;
    int64_t count;
    uint64_t sum; /* of what is before */
} Header;

/* Precedes an entry's bytes. */
typedef struct EntryHead {
    uint64_t source; /* 0: there is no entry */
    uint64_t sum;    /* of the bytes, seeded with source and number */
} EntryHead;

struct KilnCache {
    char *path;
    Header header;
    size_t stride;
    int fd;
    size_t size;
    bool replaced;
    KilnCacheCounts reported; /* already reported to the user */
    /* Atomic: */
    int64_t hits, misses, damaged;
    int write_error, read_error;
    bool cut;
};

uint64_t kiln_hash(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

bool kiln_file_identity(const char *path, uint64_t *ret)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    const int64_t facts[] = { (int64_t)st.st_ino,         (int64_t)st.st_size,
                              (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec,
                              (int64_t)st.st_ctim.tv_sec, (int64_t)st.st_ctim.tv_nsec };
    *ret = kiln_hash(facts, sizeof(facts), kiln_hash(path, strlen(path), 0));
    return true;
}

/* ---- The file ----------------------------------------------------------------------- */

static Header header_of(const KilnCacheSpec *spec)
{
    Header header;

    memset(&header, 0, sizeof(header));
    memcpy(header.magic, "kilncach", sizeof(header.magic));
    header.version = VERSION;
    header.entry_head = (uint32_t)sizeof(EntryHead);
    header.key = spec->key;
    header.bytes = spec->bytes;
    header.count = spec->count;
    header.sum = kiln_hash(&header, offsetof(Header, sum), 0);
    return header;
}

/* Open what is there; -1 when it is not there, or is not what it should be. */
static int open_whole(KilnCache *cache)
{
    Header found;
    struct stat st;
    int fd = open(cache->path, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_size == (off_t)cache->size &&
        pread(fd, &found, sizeof(found), 0) == (ssize_t)sizeof(found) &&
        memcmp(&found, &cache->header, sizeof(found)) == 0)
        return fd;
    close(fd);
    cache->replaced = true;
    return -1;
}

/* An empty file under a name of its own; entries take room on the disk as they are written. */
static KilnStatus make_empty(const KilnCache *cache, const char *path, KilnError *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        return kiln_error_errno(err, path);
    bool good = ftruncate(fd, (off_t)cache->size) == 0 &&
                pwrite(fd, &cache->header, sizeof(cache->header), 0) ==
                    (ssize_t)sizeof(cache->header);
    KilnStatus status = good ? KILN_OK : kiln_error_errno(err, path);
    close(fd);
    if (!good)
        unlink(path);
    return status;
}

/* Publish an empty file at once. Of several processes that do so one wins, and all use its file;
 * only one that is useless is replaced. */
static KilnStatus publish_empty(KilnCache *cache, KilnError *err)
{
    char own[4200];

    snprintf(own, sizeof(own), "%s.%ld", cache->path, (long)getpid());
    KilnStatus status = make_empty(cache, own, err);
    if (status < 0)
        return status;
    if (cache->replaced ? rename(own, cache->path) != 0
                        : link(own, cache->path) != 0 && errno != EEXIST)
        status = kiln_error_errno(err, cache->path);
    unlink(own);
    return status;
}

static KilnStatus open_file(KilnCache *cache, KilnError *err)
{
    cache->fd = open_whole(cache);
    if (cache->fd < 0) {
        KilnStatus status = publish_empty(cache, err);

        if (status < 0)
            return status;
        cache->fd = open_whole(cache);
    }
    return cache->fd >= 0 ? KILN_OK : kiln_error_errno(err, cache->path);
}

KilnStatus kiln_cache_open(const KilnCacheSpec *spec, KilnCache **ret, KilnError *err)
{
    char path[4096];
    KilnCache *cache = calloc(1, sizeof(*cache));

    if (cache == NULL)
        return kiln_error_nomem(err, sizeof(*cache));
    cache->fd = -1;
    cache->header = header_of(spec);
    cache->stride = (sizeof(EntryHead) + spec->bytes + ALIGN - 1) / ALIGN * ALIGN;
    cache->size = HEADER_BYTES + (size_t)spec->count * cache->stride;
    snprintf(path, sizeof(path), "%s/%s-%016" PRIx64 ".cache", spec->folder, spec->name, spec->key);
    cache->path = strdup(path);
    KilnStatus status = cache->path != NULL ? kiln_dir_make(spec->folder, err)
                                            : kiln_error_nomem(err, sizeof(path));
    if (status >= 0)
        status = open_file(cache, err);
    if (status < 0) {
        kiln_cache_close(cache);
        return status;
    }
    *ret = cache;
    return KILN_OK;
}

void kiln_cache_close(KilnCache *cache)
{
    if (cache == NULL)
        return;
    if (cache->fd >= 0)
        close(cache->fd);
    free(cache->path);
    free(cache);
}

/* ---- Entries --------------------------------------------------------------------------- */

static size_t place_of(const KilnCache *cache, int64_t i)
{
    return HEADER_BYTES + (size_t)i * cache->stride;
}

static uint64_t sum_of(const KilnCache *cache, int64_t i, uint64_t source, const void *data)
{
    return kiln_hash(data, (size_t)cache->header.bytes, source ^ (uint64_t)i);
}

static void count(int64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* The head of entry i, and its bytes where `data` is not NULL, in one call: another process that
 * writes the entry puts the source in last. No source where there is nothing to read. */
static EntryHead read_entry(KilnCache *cache, int64_t i, void *data)
{
    EntryHead head = { 0 };
    const size_t bytes = data != NULL ? (size_t)cache->header.bytes : 0;
    const struct iovec parts[] = { { &head, sizeof(head) }, { data, bytes } };
    const ssize_t n = preadv(cache->fd, parts, data != NULL ? 2 : 1, (off_t)place_of(cache, i));

    if (n == (ssize_t)(sizeof(head) + bytes))
        return head;
    if (n < 0)
        __atomic_store_n(&cache->read_error, errno, __ATOMIC_RELAXED);
    else
        __atomic_store_n(&cache->cut, true, __ATOMIC_RELAXED);
    return (EntryHead) { 0 };
}

bool kiln_cache_get(KilnCache *cache, int64_t i, uint64_t source, void *ret)
{
    const EntryHead head = source != 0 ? read_entry(cache, i, ret) : (EntryHead) { 0 };

    if (head.source == source && source != 0) {
        if (head.sum == sum_of(cache, i, source, ret)) {
            count(&cache->hits);
            return true;
        }
        count(&cache->damaged);
    }
    count(&cache->misses);
    return false;
}

static bool write_at(KilnCache *cache, const void *data, size_t size, size_t at)
{
    const char *bytes = data;

    while (size > 0) {
        ssize_t n = pwrite(cache->fd, bytes, size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            __atomic_store_n(&cache->write_error, n < 0 ? errno : ENOSPC, __ATOMIC_RELAXED);
            return false;
        }
        bytes += n;
        at += (size_t)n;
        size -= (size_t)n;
    }
    return true;
}

/* The source of another entry goes away first, and the new one comes last, so that other
 * processes don't take an entry for damaged that is being written. */
void kiln_cache_put(KilnCache *cache, int64_t i, uint64_t source, const void *data)
{
    const EntryHead head = { .source = source, .sum = sum_of(cache, i, source, data) };
    const size_t at = place_of(cache, i);
    const EntryHead before = read_entry(cache, i, NULL);
    const uint64_t none = 0;

    if (__atomic_load_n(&cache->write_error, __ATOMIC_RELAXED) != 0)
        return;
    if (before.source != 0 && (before.source != source || before.sum != head.sum) &&
        !write_at(cache, &none, sizeof(none), at))
        return;
    if (write_at(cache, data, (size_t)cache->header.bytes, at + sizeof(head)) &&
        write_at(cache, &head.sum, sizeof(head.sum), at + offsetof(EntryHead, sum)))
        (void)write_at(cache, &head.source, sizeof(head.source), at);
}

KilnCacheCounts kiln_cache_counts(const KilnCache *cache)
{
    return (KilnCacheCounts) {
        .hits = __atomic_load_n(&cache->hits, __ATOMIC_RELAXED),
        .misses = __atomic_load_n(&cache->misses, __ATOMIC_RELAXED),
        .damaged = __atomic_load_n(&cache->damaged, __ATOMIC_RELAXED),
        .write_error = __atomic_load_n(&cache->write_error, __ATOMIC_RELAXED),
        .read_error = __atomic_load_n(&cache->read_error, __ATOMIC_RELAXED),
        .cut = __atomic_load_n(&cache->cut, __ATOMIC_RELAXED),
        .replaced = cache->replaced,
    };
}

void kiln_cache_report(KilnCache *cache, const char *who,
                       void (*say)(void *ctx, const char *message), void *ctx)
{
    char line[4400];

    if (cache == NULL)
        return;
    const KilnCacheCounts now = kiln_cache_counts(cache), reported = cache->reported;
    cache->reported = now;
    if (now.replaced && !reported.replaced) {
        snprintf(line, sizeof(line), "%s: %s was truncated or damaged, and is rebuilt", who,
                 cache->path);
        say(ctx, line);
    }
    if (now.damaged > reported.damaged) {
        snprintf(line, sizeof(line), "%s: %s: %lld entries were damaged, and were rebuilt", who,
                 cache->path, (long long)(now.damaged - reported.damaged));
        say(ctx, line);
    }
    if (now.cut && !reported.cut) {
        snprintf(line, sizeof(line),
                 "%s: %s was cut short while it was in use; what is missing is "
                 "decoded again",
                 who, cache->path);
        say(ctx, line);
    }
    if (now.read_error != 0 && reported.read_error == 0) {
        snprintf(line, sizeof(line), "%s: %s: %s; what can't be read is decoded each time", who,
                 cache->path, strerror(now.read_error));
        say(ctx, line);
    }
    if (now.write_error != 0 && reported.write_error == 0) {
        snprintf(line, sizeof(line), "%s: %s: %s; what is not in it is made each time", who,
                 cache->path, strerror(now.write_error));
        say(ctx, line);
    }
}
