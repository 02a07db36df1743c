/* Maps files, and keeps what was unpacked in the cache under a name that says which file it was. */
#include "data/records/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "data/records/parquet.h"
#include "kiln/files/cache.h"

char *kiln_mapped_file_cache_path(const char *path, const char *cache, const char *ending,
                                  uint64_t kind, KilnError *err)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const size_t room = strlen(cache) + strlen(name) + strlen(ending) + 32;
    char *ret = malloc(room);
    uint64_t key;

    if (ret == NULL) {
        (void)kiln_error_nomem(err, room);
        return NULL;
    }
    if (!kiln_file_identity(path, &key)) {
        (void)kiln_error_errno(err, path);
        free(ret);
        return NULL;
    }
    key = kiln_hash(&kind, sizeof(kind), key);
    snprintf(ret, room, "%s/%s-%016" PRIx64 "%s", cache, name, key, ending);
    return ret;
}

/* Open a file without a name, which goes away with its last user. */
static KilnStatus open_temporary(int *ret_fd, KilnError *err)
{
    char name[4096];

    snprintf(name, sizeof(name), "%s/kiln-XXXXXX", kiln_tmpdir("/tmp"));
    const int fd = mkstemp(name);
    if (fd < 0)
        return kiln_error_errno(err, name);
    unlink(name);
    *ret_fd = fd;
    return KILN_OK;
}

static KilnStatus unpack_temporary(const char *path, const KilnPoll *poll, int *ret_fd,
                                   KilnError *err)
{
    int fd = -1;
    KilnStatus status = open_temporary(&fd, err);

    if (status >= 0)
        status = kiln_unpack(path, fd, poll, err);
    if (status < 0 && fd >= 0)
        close(fd);
    else
        *ret_fd = fd;
    return status;
}

/* Unpack to `to` through a name of this process's own, so that `to` is always whole. */
static KilnStatus unpack_to(const char *path, const char *to, const KilnPoll *poll, KilnError *err)
{
    char own[4200];

    snprintf(own, sizeof(own), "%s.%ld", to, (long)getpid());
    const int fd = open(own, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return kiln_error_errno(err, own);
    KilnStatus status = kiln_unpack(path, fd, poll, err);
    if (close(fd) != 0 && status >= 0)
        status = kiln_error_errno(err, own);
    if (status >= 0 && rename(own, to) != 0)
        status = kiln_error_errno(err, to);
    if (status < 0)
        unlink(own);
    return status;
}

static KilnStatus open_unpacked(const char *path, const char *cache, const KilnPoll *poll,
                                int *ret_fd, KilnError *err)
{
    if (cache == NULL)
        return unpack_temporary(path, poll, ret_fd, err);
    char *unpacked = kiln_mapped_file_cache_path(path, cache, ".unpacked", 0, err);
    if (unpacked == NULL)
        return err != NULL ? err->status : KILN_E_IO;
    KilnStatus status = kiln_dir_make(cache, err);
    if (status >= 0 && !kiln_is_file(unpacked))
        status = unpack_to(path, unpacked, poll, err);
    if (status >= 0)
        status = kiln_file_open_regular(unpacked, ret_fd, err);
    free(unpacked);
    return status;
}

static KilnStatus map(KilnMappedFile *file, int fd, KilnError *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return kiln_error_errno(err, file->path);
    if (st.st_size == 0)
        return KILN_OK;
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return kiln_error_errno(err, file->path);
    file->data = data;
    file->size = (size_t)st.st_size;
    return KILN_OK;
}

/* Skip the byte order mark of UTF-8, and refuse those of UTF-16. */
static KilnStatus skip_mark(KilnMappedFile *file, KilnError *err)
{
    static const char utf8[] = "\xef\xbb\xbf";

    if (file->size >= 2 &&
        (memcmp(file->data, "\xff\xfe", 2) == 0 || memcmp(file->data, "\xfe\xff", 2) == 0))
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: the text is UTF-16; convert it: iconv -f UTF-16 -t UTF-8",
                              file->path);
    if (file->size >= 3 && memcmp(file->data, utf8, 3) == 0)
        file->begin = 3;
    return KILN_OK;
}

KilnStatus kiln_mapped_file_open(KilnMappedFile *file, const char *path, const char *cache,
                                 const KilnPoll *poll, KilnError *err)
{
    int fd = -1;

    *file = (KilnMappedFile) { .path = kiln_strdup(path) };
    if (file->path == NULL)
        return kiln_error_nomem(err, strlen(path));
    const bool packed = kiln_is_packed(path) || kiln_is_parquet(path);
    KilnStatus status = packed ? open_unpacked(path, cache, poll, &fd, err)
                               : kiln_file_open_regular(path, &fd, err);
    if (status < 0)
        return status;
    status = map(file, fd, err);
    close(fd);
    return status >= 0 ? skip_mark(file, err) : status;
}

static KilnStatus copy(int from, int to, const char *path, const KilnPoll *poll, KilnError *err)
{
    enum { BLOCK = 1 << 18 };
    char *block = malloc(BLOCK);
    KilnStatus status = block != NULL ? KILN_OK : kiln_error_nomem(err, BLOCK);
    int64_t done = 0;
    ssize_t n = 1;

    while (status >= 0 && n > 0) {
        status = kiln_poll_check(poll, "bytes read", done, 0, err);
        n = status >= 0 ? read(from, block, BLOCK) : 0;
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0 || !kiln_fd_write(to, block, (size_t)n))
            status = kiln_error_errno(err, path);
        else
            done += n;
    }
    free(block);
    return status;
}

KilnStatus kiln_mapped_file_spool(KilnMappedFile *file, const char *path, const KilnPoll *poll,
                                  KilnError *err)
{
    const bool input = strcmp(path, "-") == 0;
    int from = -1, to = -1;

    *file = (KilnMappedFile) { .path = kiln_strdup(input ? "standard input" : path) };
    if (file->path == NULL)
        return kiln_error_nomem(err, strlen(path));
    from = input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    KilnStatus status = from >= 0 ? open_temporary(&to, err) : kiln_error_errno(err, file->path);
    if (status >= 0)
        status = copy(from, to, file->path, poll, err);
    if (status >= 0)
        status = map(file, to, err);
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return status >= 0 ? skip_mark(file, err) : status;
}

void kiln_mapped_file_close(KilnMappedFile *file)
{
    if (file->data != NULL)
        munmap((void *)file->data, file->size);
    free(file->path);
    *file = (KilnMappedFile) { 0 };
}
