/* Texts as ids: encoded in blocks by all threads, kept in memory or in a file of the cache. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/min.h"
#include "base/system/file.h"
#include "base/system/machine.h"
#include "base/system/threads.h"
#include "base/text.h"
#include "data/records/records_internal.h"
#include "data/text/text_data.h"
#include "kiln/array.h"
#include "kiln/files/cache.h"

/* Texts that threads encode before their ids are kept, and that a thread takes at a time. */
enum { BLOCK = 1 << 15, TAKEN = 64, MAX_THREADS = 64 };

/* ---- One text -----------------------------------------------------------------------------------
 */

/* The id of a text without tokens. */
static int32_t empty_id(const KilnInstance *tokenizer)
{
    const int64_t unknown = kiln_tokenizer_special(tokenizer, KILN_TOKEN_UNK);

    return unknown >= 0 ? (int32_t)unknown : 0;
}

static KilnStatus encode_text(const KilnTextEncode *encode, KilnString text, const KilnString *pair,
                              KilnEncoding *ret, KilnError *err)
{
    const KilnTokenizerInput input = { .text = text,
                                       .pair = pair,
                                       .add_special_tokens = encode->add_special_tokens };
    KilnStatus status = kiln_tokenizer_encode(encode->tokenizer, &input, ret, err);

    if (status >= 0 && ret->n == 0) {
        status = kiln_encoding_reserve(ret, 1, err);
        if (status >= 0)
            ret->ids[ret->n++] = empty_id(encode->tokenizer);
    }
    return status;
}

static int64_t cut_length(const KilnTextEncode *encode, size_t n)
{
    return encode->max_length > 0 ? kiln_min_i64((int64_t)n, encode->max_length) : (int64_t)n;
}

KilnStatus kiln_text_encode_one(const KilnTextEncode *encode, KilnString text,
                                const KilnString *pair, int32_t *ret, int64_t *ret_length,
                                KilnError *err)
{
    KilnEncoding encoding = { 0 };
    const KilnStatus status = encode_text(encode, text, pair, &encoding, err);

    if (status >= 0) {
        *ret_length = cut_length(encode, encoding.n);
        memcpy(ret, encoding.ids, (size_t)*ret_length * sizeof(*ret));
    }
    kiln_encoding_release(&encoding);
    return status;
}

/* ---- Threads ------------------------------------------------------------------------------------
 */

/* The ids of one text of a block, in a thread's array. */
typedef struct Encoded {
    int64_t begin, length;
    int thread;
    bool cut;
} Encoded;

typedef struct Job Job;

typedef struct Worker {
    Job *job;
    int number;
    KilnRecord record;
    KilnEncoding encoding;
    int32_t *ids;
    size_t n, capacity;
    KilnStatus status;
    KilnError err;
} Worker;

/* A block of texts that threads encode. */
struct Job {
    const KilnTextData *data;
    KilnSplit split;
    const KilnTextEncode *encode;
    int64_t first, end; /* texts */
    atomic_int_least64_t next;
    atomic_bool failed;
    Encoded *encoded; /* [BLOCK] */
    Worker *workers;
    int n_workers;
};

static KilnStatus encode_row(Worker *worker, int64_t i)
{
    const Job *job = worker->job;
    const KilnTextEncode *encode = job->encode;
    char place[512];
    KilnStatus status = kiln_text_data_read(job->data, job->split, i, &worker->record,
                                            &worker->err);

    if (status < 0)
        return status;
    const KilnString *fields = worker->record.fields;
    status = encode_text(encode, fields[encode->column],
                         encode->pair >= 0 ? &fields[encode->pair] : NULL, &worker->encoding,
                         &worker->err);
    if (status < 0)
        return kiln_error_prefix(
            &worker->err,
            "%s: ", kiln_text_data_location(job->data, job->split, i, place, sizeof(place)));
    const int64_t n = cut_length(encode, worker->encoding.n);
    if (!KILN_RESERVE(worker->ids, worker->capacity, worker->n + (size_t)n))
        return kiln_error_nomem(&worker->err, worker->n * sizeof(*worker->ids));
    memcpy(worker->ids + worker->n, worker->encoding.ids, (size_t)n * sizeof(*worker->ids));
    job->encoded[i - job->first] = (Encoded) { .begin = (int64_t)worker->n,
                                               .length = n,
                                               .thread = worker->number,
                                               .cut = n < (int64_t)worker->encoding.n };
    worker->n += (size_t)n;
    return KILN_OK;
}

static void *run(void *arg)
{
    Worker *worker = arg;
    Job *job = worker->job;

    worker->n = 0;
    while (!atomic_load(&job->failed)) {
        const int64_t from = atomic_fetch_add(&job->next, TAKEN);
        const int64_t to = kiln_min_i64(from + TAKEN, job->end);

        if (from >= job->end)
            break;
        for (int64_t i = from; i < to && worker->status >= 0; i++)
            worker->status = encode_row(worker, i);
        if (worker->status < 0)
            atomic_store(&job->failed, true);
    }
    return NULL;
}

/* Encode a block in all threads; the first worker is this thread. */
static KilnStatus run_block(Job *job, KilnError *err)
{
    atomic_store(&job->next, job->first);
    kiln_run_in_threads((size_t)job->n_workers, run, job->workers, sizeof(job->workers[0]));
    for (int i = 0; i < job->n_workers; i++)
        if (job->workers[i].status < 0) {
            if (err != NULL)
                *err = job->workers[i].err;
            return job->workers[i].status;
        }
    return KILN_OK;
}

static KilnStatus start_job(Job *job, int64_t n, KilnError *err)
{
    job->n_workers = (int)kiln_min_i64(kiln_min_i64(kiln_processors_here().threads, MAX_THREADS),
                                       n / TAKEN + 1);
    job->encoded = malloc(BLOCK * sizeof(*job->encoded));
    job->workers = calloc((size_t)job->n_workers, sizeof(*job->workers));
    if (job->encoded == NULL || job->workers == NULL)
        return kiln_error_nomem(err, BLOCK * sizeof(*job->encoded));
    for (int i = 0; i < job->n_workers; i++)
        job->workers[i] = (Worker) { .job = job, .number = i };
    return KILN_OK;
}

static void end_job(Job *job)
{
    for (int i = 0; i < job->n_workers && job->workers != NULL; i++) {
        kiln_record_release(&job->workers[i].record);
        kiln_encoding_release(&job->workers[i].encoding);
        free(job->workers[i].ids);
    }
    free(job->workers);
    free(job->encoded);
}

/* ---- Where ids go
 * -------------------------------------------------------------------------------- */

/* The file of the cache: this, starts[n + 1], ids. */
typedef struct Header {
    char magic[8];
    int64_t n, longest, cut;
} Header;

/* While ids are collected: in memory, or in a file. */
typedef struct Sink {
    int64_t *starts; /* [n + 1] */
    int32_t *ids;
    size_t capacity;
    int fd; /* -1: in memory */
    int64_t n_ids;
    int64_t longest, cut;
} Sink;

static size_t head_bytes(int64_t n)
{
    return sizeof(Header) + ((size_t)n + 1) * sizeof(int64_t);
}

static KilnStatus keep_text(Sink *sink, const int32_t *ids, int64_t n, const char *path,
                            KilnError *err)
{
    const size_t bytes = (size_t)n * sizeof(*ids);

    if (sink->fd >= 0) {
        if (!kiln_fd_write(sink->fd, ids, bytes))
            return kiln_error_errno(err, path);
    } else {
        if (!KILN_RESERVE(sink->ids, sink->capacity, (size_t)(sink->n_ids + n)))
            return kiln_error_nomem(err, (size_t)sink->n_ids * sizeof(*ids));
        memcpy(sink->ids + sink->n_ids, ids, bytes);
    }
    sink->n_ids += n;
    sink->longest = n > sink->longest ? n : sink->longest;
    return KILN_OK;
}

/* Encode all texts, block by block, and keep them in order. */
static KilnStatus encode_all(Job *job, int64_t n, Sink *sink, const char *path, KilnError *err)
{
    KilnStatus status = start_job(job, n, err);

    sink->starts[0] = 0;
    for (int64_t first = 0; first < n && status >= 0; first += BLOCK) {
        status = kiln_poll_check(job->encode->poll, "tokenizing", first, n, err);
        job->first = first;
        job->end = kiln_min_i64(first + BLOCK, n);
        if (status >= 0)
            status = run_block(job, err);
        for (int64_t i = first; i < job->end && status >= 0; i++) {
            const Encoded *encoded = &job->encoded[i - first];

            status = keep_text(sink, job->workers[encoded->thread].ids + encoded->begin,
                               encoded->length, path, err);
            sink->starts[i + 1] = sink->n_ids;
            sink->cut += encoded->cut;
        }
    }
    end_job(job);
    return status;
}

/* ---- The cache
 * ------------------------------------------------------------------------------------ */

/* A number for the tokenizer's vocabulary and rules: of the file that it saves. */
static KilnStatus tokenizer_key(const KilnInstance *tokenizer, const char *cache, uint64_t *ret,
                                KilnError *err)
{
    char path[4096], *text = NULL;
    size_t size = 0;

    snprintf(path, sizeof(path), "%s/tokenizer.%ld.json", cache, (long)getpid());
    KilnStatus status = kiln_tokenizer_save(tokenizer, path, err);
    if (status >= 0)
        status = kiln_file_read(path, SIZE_MAX / 2, &text, &size, err);
    if (status >= 0)
        *ret = kiln_hash(text, size, *ret);
    unlink(path);
    free(text);
    return status;
}

/* A number for all that decides the ids. */
static KilnStatus tokens_key(const KilnTextRows *rows, const KilnTextEncode *encode, uint64_t *ret,
                             KilnError *err)
{
    const KilnRecords *records = rows->records;
    const int64_t facts[] = { (int64_t)rows->columns[encode->column],
                              encode->pair >= 0 ? (int64_t)rows->columns[encode->pair] : -1,
                              encode->add_special_tokens,
                              encode->max_length,
                              records->format,
                              records->encoding,
                              records->delimiter };
    uint64_t key = kiln_hash(facts, sizeof(facts), 1), file;

    key = kiln_hash(rows->list, (size_t)rows->count * sizeof(*rows->list), key);
    for (size_t i = 0; i < records->n_parts; i++) {
        if (!kiln_file_identity(records->parts[i].file.path, &file))
            return kiln_error_errno(err, records->parts[i].file.path);
        key = kiln_hash(&file, sizeof(file), key);
    }
    for (int64_t i = 0; i < records->count && records->class_files != NULL; i++) {
        if (!kiln_file_identity(records->class_files[i].path, &file))
            return kiln_error_errno(err, records->class_files[i].path);
        key = kiln_hash(&file, sizeof(file), key);
    }
    *ret = key;
    return tokenizer_key(encode->tokenizer, encode->cache, ret, err);
}

/* Map the file if it is there and whole. */
static bool map_tokens(const char *path, int64_t n, KilnTextTokens *ret)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *map = MAP_FAILED;

    if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size > head_bytes(n))
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED)
        return false;
    const Header *header = map;
    const int64_t *starts = (const int64_t *)(const void *)(header + 1);
    if (memcmp(header->magic, "kilntoks", 8) != 0 || header->n != n ||
        (size_t)st.st_size != head_bytes(n) + (size_t)starts[n] * sizeof(int32_t)) {
        munmap(map, (size_t)st.st_size);
        return false;
    }
    kiln_memory_expect_random(map, (size_t)st.st_size);
    *ret = (KilnTextTokens) { .n = n,
                              .starts = starts,
                              .ids = (const int32_t *)(const void *)(starts + n + 1),
                              .longest = header->longest,
                              .cut = header->cut,
                              .map = map,
                              .mapped = (size_t)st.st_size };
    return true;
}

/* Write the ids to `own`, and rename it when it is whole. */
static KilnStatus write_tokens(Job *job, int64_t n, Sink *sink, const char *path, KilnError *err)
{
    char own[4300];

    snprintf(own, sizeof(own), "%s.%ld", path, (long)getpid());
    sink->fd = open(own, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (sink->fd < 0 || lseek(sink->fd, (off_t)head_bytes(n), SEEK_SET) < 0)
        return kiln_error_errno(err, own);
    KilnStatus status = encode_all(job, n, sink, own, err);
    const Header header = {
        .magic = "kilntoks", .n = n, .longest = sink->longest, .cut = sink->cut
    };
    if (status >= 0 &&
        (lseek(sink->fd, 0, SEEK_SET) < 0 || !kiln_fd_write(sink->fd, &header, sizeof(header)) ||
         !kiln_fd_write(sink->fd, sink->starts, head_bytes(n) - sizeof(header))))
        status = kiln_error_errno(err, own);
    if (close(sink->fd) != 0 && status >= 0)
        status = kiln_error_errno(err, own);
    if (status >= 0 && rename(own, path) != 0)
        status = kiln_error_errno(err, path);
    if (status < 0)
        unlink(own);
    return status;
}

static KilnStatus encode_cached(Job *job, int64_t n, Sink *sink, KilnTextTokens *ret,
                                KilnError *err)
{
    const char *cache = job->encode->cache;
    uint64_t key = 0;
    char path[4200];
    KilnStatus status = kiln_dir_make(cache, err);

    if (status >= 0)
        status = tokens_key(&job->data->rows[job->split], job->encode, &key, err);
    if (status < 0)
        return status;
    snprintf(path, sizeof(path), "%s/tokens-%016" PRIx64 ".ids", cache, key);
    if (map_tokens(path, n, ret))
        return KILN_OK;
    status = write_tokens(job, n, sink, path, err);
    if (status >= 0 && !map_tokens(path, n, ret))
        status = kiln_error_errno(err, path);
    return status;
}

KilnStatus kiln_text_tokens_encode(const KilnTextData *data, KilnSplit split,
                                   const KilnTextEncode *encode, KilnTextTokens *ret,
                                   KilnError *err)
{
    const int64_t n = kiln_text_data_count(data, split);
    Job job = { .data = data, .split = split, .encode = encode };
    Sink sink = { .fd = -1, .starts = malloc(((size_t)n + 1) * sizeof(*sink.starts)) };
    KilnStatus status = sink.starts != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)n);

    *ret = (KilnTextTokens) { 0 };
    if (status >= 0 && n > 0 && encode->cache != NULL) {
        status = encode_cached(&job, n, &sink, ret, err);
        free(sink.starts);
        return status;
    }
    if (status >= 0)
        status = encode_all(&job, n, &sink, "", err);
    if (status < 0) {
        free(sink.starts);
        free(sink.ids);
        return status;
    }
    *ret = (KilnTextTokens) {
        .n = n, .starts = sink.starts, .ids = sink.ids, .longest = sink.longest, .cut = sink.cut
    };
    return status;
}

void kiln_text_tokens_release(KilnTextTokens *tokens)
{
    if (tokens->mapped > 0) {
        munmap(tokens->map, tokens->mapped);
    } else {
        free((void *)tokens->starts);
        free((void *)tokens->ids);
    }
    *tokens = (KilnTextTokens) { 0 };
}
