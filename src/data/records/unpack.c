/* Unpacks gzip (zlib) and zstd files as streams, and has Parquet files unpacked. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "data/records/mapped_file.h"
#include "data/records/parquet.h"

enum { BLOCK = 1 << 18 };

bool kiln_is_packed(const char *path)
{
    return kiln_ends_with(path, ".gz") || kiln_ends_with(path, ".zst");
}

static KilnStatus unpack_gzip(const char *from, int to, char *block, const KilnPoll *poll,
                              KilnError *err)
{
    gzFile file = gzopen(from, "rb");
    KilnStatus status = KILN_OK;
    int64_t done = 0;
    int n = 1, code;

    if (file == NULL)
        return kiln_error_errno(err, from);
    while (status >= 0 && n > 0) {
        status = kiln_poll_check(poll, "bytes unpacked", done, 0, err);
        n = status >= 0 ? gzread(file, block, BLOCK) : 0;
        if (n < 0)
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: damaged gzip file: %s", from,
                                    gzerror(file, &code));
        else if (!kiln_fd_write(to, block, (size_t)n))
            status = kiln_error_errno(err, from);
        done += n;
    }
    if (gzclose(file) != Z_OK && status >= 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: damaged gzip file: it is cut off", from);
    return status;
}

/* The rest of `in` to `to`; *ret_left: bytes that the current frame still needs, 0 at its end. */
static KilnStatus unpack_block(ZSTD_DStream *stream, ZSTD_inBuffer *in, const char *from, int to,
                               char *block, size_t *ret_left, KilnError *err)
{
    while (in->pos < in->size) {
        ZSTD_outBuffer out = { block, BLOCK, 0 };
        const size_t left = ZSTD_decompressStream(stream, &out, in);

        if (ZSTD_isError(left))
            return kiln_error_set(err, KILN_E_FORMAT, "%s: damaged zstd file: %s", from,
                                  ZSTD_getErrorName(left));
        if (!kiln_fd_write(to, block, out.pos))
            return kiln_error_errno(err, from);
        *ret_left = left;
    }
    return KILN_OK;
}

static KilnStatus unpack_zstd(const char *from, int to, char *block, const KilnPoll *poll,
                              KilnError *err)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    char *packed = malloc(BLOCK);
    int fd = -1;
    KilnStatus status = stream != NULL && packed != NULL ? kiln_file_open_regular(from, &fd, err)
                                                         : kiln_error_nomem(err, BLOCK);
    int64_t done = 0;
    ssize_t n = 1;
    size_t left = 0;

    while (status >= 0 && n > 0) {
        status = kiln_poll_check(poll, "bytes unpacked", done, 0, err);
        n = status >= 0 ? read(fd, packed, BLOCK) : 0;
        if (n < 0)
            status = kiln_error_errno(err, from);
        ZSTD_inBuffer in = { packed, n > 0 ? (size_t)n : 0, 0 };
        if (status >= 0)
            status = unpack_block(stream, &in, from, to, block, &left, err);
        done += n;
    }
    if (status >= 0 && left != 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: damaged zstd file: it is cut off", from);
    if (fd >= 0)
        close(fd);
    free(packed);
    ZSTD_freeDStream(stream);
    return status;
}

KilnStatus kiln_unpack(const char *from, int to, const KilnPoll *poll, KilnError *err)
{
    if (kiln_is_parquet(from))
        return kiln_parquet_unpack(from, to, poll, err);
    char *block = malloc(BLOCK);
    if (block == NULL)
        return kiln_error_nomem(err, BLOCK);
    const KilnStatus status = kiln_ends_with(from, ".gz") ? unpack_gzip(from, to, block, poll, err)
                                                          : unpack_zstd(from, to, block, poll, err);
    free(block);
    return status;
}
