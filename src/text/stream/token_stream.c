/* Streams of tokens: encoding files, and keeping the ids in a file. */
#include "kiln/tools/token_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/machine.h"
#include "kiln/array.h"
#include "kiln/files/cache.h"
#include "kiln/tools/clock.h"
#include "text/stream/windowed_text.h"

/* What such a file begins with; the ids follow, then from the next multiple of 8 bytes on the
 * number of each document's first token, int64. */
typedef struct Header {
    char magic[8];
    uint64_t key, count;
    uint64_t width; /* bytes of an id */
    uint64_t documents;
} Header;

static const char magic[8] = "kilntok3";

struct KilnTokenStream {
    Header header;
    const void *ids;
    const int64_t *starts;
    void *mapping; /* of the file; NULL: `ids` and `starts` are from malloc */
    size_t mapped;
};

/* ---- Encoding ------------------------------------------------------------------------------ */

/* Where ids and the starts of documents go: to files, or into memory that grows. */
typedef struct Sink {
    Header header;
    FILE *file, *starts_file; /* NULL: into memory */
    char *data;
    size_t capacity; /* bytes */
    int64_t *starts;
    size_t starts_capacity;
    KilnEncoding encoding;
    const KilnTokenStreamSpec *spec;
    int64_t end_token; /* after each document; -1: none */
} Sink;

/* Whether the machine, or the process's group, has that much memory. */
static bool is_available(size_t bytes)
{
    KilnMemory memory;

    return !kiln_memory_read("", &memory) || (int64_t)bytes <= memory.available;
}

static KilnStatus make_room(Sink *sink, size_t bytes, KilnError *err)
{
    const size_t capacity = bytes + bytes / 4;
    char count[KILN_UNIT_TEXT];
    char *data = NULL;

    if (bytes <= sink->capacity)
        return KILN_OK;
    if (sink->file != NULL || is_available(capacity - sink->capacity))
        data = realloc(sink->data, capacity);
    if (data == NULL && sink->file == NULL)
        return kiln_error_set(err, KILN_E_NOMEM,
                              "the tokens of the text do not fit into memory (%s so far); keep "
                              "them in a file: datamodule.cache=DIR",
                              kiln_commas_text((int64_t)sink->header.count, count));
    if (data == NULL)
        return kiln_error_nomem(err, capacity);
    sink->data = data;
    sink->capacity = capacity;
    return KILN_OK;
}

static KilnStatus put(Sink *sink, const int32_t *ids, size_t n, KilnError *err)
{
    const size_t width = sink->header.width, before = sink->file != NULL ? 0 : sink->header.count;
    KilnStatus status = make_room(sink, (before + n) * width, err);

    if (status < 0)
        return status;
    char *to = sink->data + before * width;
    for (size_t i = 0; i < n; i++) {
        if (width == sizeof(uint16_t))
            ((uint16_t *)(void *)to)[i] = (uint16_t)ids[i];
        else
            ((int32_t *)(void *)to)[i] = ids[i];
    }
    sink->header.count += n;
    return sink->file == NULL || fwrite(to, width, n, sink->file) == n
               ? KILN_OK
               : kiln_error_errno(err, sink->spec->cache);
}

/* A KilnWindowedText's `put`. */
static KilnStatus put_ids(void *ctx, const int32_t *ids, size_t n, KilnError *err)
{
    return put(ctx, ids, n, err);
}

static KilnStatus begin_document(Sink *sink, KilnError *err)
{
    const int64_t start = (int64_t)sink->header.count;
    const uint64_t number = sink->header.documents++;

    if (sink->starts_file != NULL)
        return fwrite(&start, sizeof(start), 1, sink->starts_file) == 1
                   ? KILN_OK
                   : kiln_error_errno(err, sink->spec->cache);
    if (!KILN_RESERVE(sink->starts, sink->starts_capacity, number + 1))
        return kiln_error_nomem(err, number * sizeof(*sink->starts));
    sink->starts[number] = start;
    return KILN_OK;
}

static KilnStatus encode_document(Sink *sink, const KilnMappedFile *map, uint64_t begin,
                                  uint64_t end, KilnError *err)
{
    const KilnWindowedText text = {
        .tokenizer = sink->spec->tokenizer,
        .map = map,
        .begin = begin,
        .end = end,
        .put = put_ids,
        .ctx = sink,
        .poll = sink->spec->poll,
    };
    const int32_t end_token = (int32_t)sink->end_token;
    KilnStatus status = begin_document(sink, err);

    if (status >= 0)
        status = kiln_windowed_text_encode(&text, &sink->encoding, err);
    return status >= 0 && end_token >= 0 ? put(sink, &end_token, 1, err) : status;
}

static KilnStatus encode_lines(Sink *sink, const KilnMappedFile *map, uint64_t at, uint64_t end,
                               KilnError *err)
{
    const char *data = map->data;
    KilnStatus status = KILN_OK;

    while (at < end && status >= 0) {
        const char *stop = memchr(data + at, '\n', (size_t)(end - at));
        const uint64_t next = stop != NULL ? (uint64_t)(stop - data) + 1 : end;
        uint64_t last = stop != NULL ? next - 1 : end;

        if (last > at && data[last - 1] == '\r')
            last--;
        if (last > at)
            status = encode_document(sink, map, at, last, err);
        at = next;
    }
    return status;
}

static KilnStatus encode_parts(Sink *sink, KilnError *err)
{
    const KilnTokenStreamSpec *spec = sink->spec;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < spec->n_parts && status >= 0; i++) {
        const KilnTextPart *part = &spec->parts[i];
        KilnMappedFile map = { 0 };

        status = kiln_mapped_file_open(&map, part->path, NULL, spec->poll, err);
        const uint64_t begin = part->begin > map.begin ? part->begin : map.begin;
        const uint64_t end = part->end < map.size ? part->end : map.size;
        if (status >= 0 && begin < end)
            status = spec->lines ? encode_lines(sink, &map, begin, end, err)
                                 : encode_document(sink, &map, begin, end, err);
        kiln_mapped_file_close(&map);
    }
    return status;
}

/* ---- The file ------------------------------------------------------------------------------ */

/* Add the tokens of the vocabulary to the hash. Normalizers and rules count through what they make
 * of the text only, so the hash is also of a text that shows them. */
static uint64_t hash_tokenizer(const KilnInstance *tokenizer, uint64_t hash)
{
    static const char probe[] = "A small  Test, 12.5% of it's \xc3\xa9 \xe2\x84\xa2\n\tEND";
    const KilnTokenizerInput input = { .text = { probe, sizeof(probe) - 1 } };
    KilnEncoding encoding = { 0 };
    KilnError err;

    for (int64_t i = 0; i < kiln_tokenizer_size(tokenizer); i++) {
        const KilnString token = kiln_tokenizer_token(tokenizer, i);

        hash = kiln_hash(token.length > 0 ? token.data : "", token.length, hash + 1);
    }
    if (kiln_tokenizer_encode(tokenizer, &input, &encoding, &err) >= 0)
        hash = kiln_hash(encoding.ids, encoding.n * sizeof(*encoding.ids), hash);
    kiln_encoding_release(&encoding);
    return hash;
}

static KilnStatus key_of(const KilnTokenStreamSpec *spec, uint64_t *ret, KilnError *err)
{
    uint64_t hash = hash_tokenizer(spec->tokenizer, spec->lines);

    for (size_t i = 0; i < spec->n_parts; i++) {
        const KilnTextPart *part = &spec->parts[i];
        uint64_t identity = 0;

        if (!kiln_file_identity(part->path, &identity))
            return kiln_error_errno(err, part->path);
        const uint64_t numbers[] = { identity, part->begin, part->end };
        hash = kiln_hash(numbers, sizeof(numbers), hash);
    }
    *ret = hash;
    return KILN_OK;
}

/* Where the starts are in a file. */
static uint64_t starts_offset(const Header *header)
{
    return (sizeof(*header) + header->count * header->width + 7) / 8 * 8;
}

/* Map the file if it is whole and has that key; NULL if not. */
static KilnTokenStream *map_file(const char *path, uint64_t key)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    KilnTokenStream *stream = calloc(1, sizeof(*stream));
    struct stat st;

    if (fd >= 0 && stream != NULL && fstat(fd, &st) == 0 &&
        read(fd, &stream->header, sizeof(stream->header)) == (ssize_t)sizeof(stream->header) &&
        memcmp(stream->header.magic, magic, sizeof(magic)) == 0 && stream->header.key == key &&
        (uint64_t)st.st_size ==
            starts_offset(&stream->header) + stream->header.documents * sizeof(*stream->starts)) {
        stream->mapped = (size_t)st.st_size;
        stream->mapping = mmap(NULL, stream->mapped, PROT_READ, MAP_SHARED, fd, 0);
        if (stream->mapping == MAP_FAILED)
            stream->mapping = NULL;
    }
    if (fd >= 0)
        close(fd);
    if (stream == NULL || stream->mapping == NULL) {
        free(stream);
        return NULL;
    }
    kiln_memory_expect_random(stream->mapping, stream->mapped);
    stream->ids = (const char *)stream->mapping + sizeof(stream->header);
    stream->starts = (const int64_t *)(const void *)((const char *)stream->mapping +
                                                     starts_offset(&stream->header));
    return stream;
}

/* Open a file without a name, which goes away when it is closed. */
static KilnStatus open_nameless(const char *path, FILE **ret, KilnError *err)
{
    *ret = kiln_file_open(path, "wb+");
    if (*ret == NULL)
        return kiln_error_errno(err, path);
    unlink(path);
    return KILN_OK;
}

/* Copy the starts to the end of the ids, and write the header again, with the counts. */
static bool complete_file(Sink *sink)
{
    char block[1 << 14];
    size_t n;
    bool good = fseeko(sink->file, (off_t)starts_offset(&sink->header), SEEK_SET) == 0 &&
                fseeko(sink->starts_file, 0, SEEK_SET) == 0;

    while (good && (n = fread(block, 1, sizeof(block), sink->starts_file)) > 0)
        good = fwrite(block, 1, n, sink->file) == n;
    return good && !ferror(sink->starts_file) && fseeko(sink->file, 0, SEEK_SET) == 0 &&
           fwrite(&sink->header, sizeof(sink->header), 1, sink->file) == 1;
}

/* Encode into a file of another name, which then gets that name, so that nobody reads half of
 * it. */
static KilnStatus write_file(Sink *sink, const char *path, KilnError *err)
{
    KilnText temporary = { 0 }, starts = { 0 };
    KilnStatus status = KILN_OK;

    kiln_text_printf(&temporary, "%s.%ld", path, (long)getpid());
    kiln_text_printf(&starts, "%s.starts", temporary.data);
    if (temporary.failed || starts.failed)
        status = kiln_error_nomem(err, strlen(path));
    if (status >= 0)
        status = open_nameless(starts.data, &sink->starts_file, err);
    if (status >= 0)
        sink->file = kiln_file_open(temporary.data, "wb");
    if (status >= 0 &&
        (sink->file == NULL || fwrite(&sink->header, sizeof(sink->header), 1, sink->file) != 1))
        status = kiln_error_errno(err, temporary.data);
    if (status >= 0)
        status = encode_parts(sink, err);
    if (status >= 0 && !complete_file(sink))
        status = kiln_error_errno(err, temporary.data);
    if (sink->starts_file != NULL)
        fclose(sink->starts_file);
    if (sink->file != NULL && fclose(sink->file) != 0 && status >= 0)
        status = kiln_error_errno(err, temporary.data);
    if (status >= 0 && rename(temporary.data, path) != 0)
        status = kiln_error_errno(err, path);
    if (status < 0 && sink->file != NULL)
        unlink(temporary.data);
    kiln_text_release(&temporary);
    kiln_text_release(&starts);
    return status;
}

static KilnStatus open_cached(Sink *sink, KilnTokenStream **ret, KilnError *err)
{
    const KilnTokenStreamSpec *spec = sink->spec;
    KilnText path = { 0 };
    KilnStatus status = key_of(spec, &sink->header.key, err);

    if (status >= 0 && mkdir(spec->cache, 0777) != 0 && errno != EEXIST)
        status = kiln_error_errno(err, spec->cache);
    kiln_text_printf(&path, "%s/%s-%016" PRIx64 ".tokens", spec->cache, spec->name,
                     sink->header.key);
    if (status >= 0 && path.failed)
        status = kiln_error_nomem(err, strlen(spec->cache));
    if (status >= 0) {
        *ret = map_file(path.data, sink->header.key);
        if (*ret == NULL) {
            status = write_file(sink, path.data, err);
            if (status >= 0)
                *ret = map_file(path.data, sink->header.key);
            if (status >= 0 && *ret == NULL)
                status = kiln_error_errno(err, path.data);
        }
    }
    kiln_text_release(&path);
    return status;
}

static KilnStatus open_in_memory(Sink *sink, KilnTokenStream **ret, KilnError *err)
{
    KilnStatus status = encode_parts(sink, err);
    KilnTokenStream *stream = status >= 0 ? calloc(1, sizeof(*stream)) : NULL;

    if (status < 0)
        return status;
    if (stream == NULL)
        return kiln_error_nomem(err, sizeof(*stream));
    *stream =
        (KilnTokenStream) { .header = sink->header, .ids = sink->data, .starts = sink->starts };
    sink->data = NULL;
    sink->starts = NULL;
    *ret = stream;
    return KILN_OK;
}

/* ---- Streams ------------------------------------------------------------------------------- */

KilnStatus kiln_token_stream_open(const KilnTokenStreamSpec *spec, KilnTokenStream **ret,
                                  KilnError *err)
{
    const bool narrow = kiln_tokenizer_size(spec->tokenizer) <= UINT16_MAX + 1;
    Sink sink = {
        .spec = spec,
        .header = { .width = narrow ? sizeof(uint16_t) : sizeof(int32_t) },
        .end_token = kiln_tokenizer_special(spec->tokenizer, KILN_TOKEN_EOS),
    };
    KilnTokenStream *stream = NULL;

    memcpy(sink.header.magic, magic, sizeof(magic));
    KilnStatus status = spec->cache != NULL ? open_cached(&sink, &stream, err)
                                            : open_in_memory(&sink, &stream, err);
    kiln_encoding_release(&sink.encoding);
    free(sink.data);
    free(sink.starts);
    if (status >= 0)
        *ret = stream;
    return status;
}

void kiln_token_stream_close(KilnTokenStream *stream)
{
    if (stream == NULL)
        return;
    if (stream->mapping != NULL) {
        munmap(stream->mapping, stream->mapped);
    } else {
        free((void *)stream->ids);
        free((void *)stream->starts);
    }
    free(stream);
}

int64_t kiln_token_stream_count(const KilnTokenStream *stream)
{
    return (int64_t)stream->header.count;
}

void kiln_token_stream_read(const KilnTokenStream *stream, int64_t from, int64_t n, int32_t *ret)
{
    if (stream->header.width == sizeof(uint16_t)) {
        const uint16_t *ids = (const uint16_t *)stream->ids + from;

        for (int64_t i = 0; i < n; i++)
            ret[i] = ids[i];
    } else {
        memcpy(ret, (const int32_t *)stream->ids + from, (size_t)n * sizeof(*ret));
    }
}

/* The number of the document that token `at` is of. */
static uint64_t document_of(const KilnTokenStream *stream, int64_t at)
{
    uint64_t low = 0, high = stream->header.documents;

    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;

        if (stream->starts[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void kiln_token_stream_positions(const KilnTokenStream *stream, int64_t from, int64_t n,
                                 int32_t *ret)
{
    uint64_t next = document_of(stream, from) + 1;
    int64_t begin = from;

    for (int64_t at = from; at < from + n; at++) {
        while (next < stream->header.documents && stream->starts[next] <= at)
            begin = stream->starts[next++];
        ret[at - from] = (int32_t)(at - begin);
    }
}
