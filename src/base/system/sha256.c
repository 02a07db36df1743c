#include "base/system/sha256.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <sha2.h>

KilnStatus kiln_fd_sha256(int fd, const KilnPoll *poll, const char *what,
                          char ret[KILN_SHA256_TEXT], KilnError *err)
{
    unsigned char piece[1 << 16];
    struct stat info = { 0 };
    int64_t done = 0;
    ssize_t got = 0;
    SHA2_CTX hash;

    _Static_assert(SHA256_DIGEST_STRING_LENGTH == KILN_SHA256_TEXT, "libmd's text");
    (void)fstat(fd, &info);
    SHA256Init(&hash);
    while ((got = read(fd, piece, sizeof(piece))) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0)
            SHA256Update(&hash, piece, (size_t)got);
        done += got > 0 ? got : 0;
        if (kiln_poll(poll, what, done, info.st_size))
            return kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted while %s", what);
    }
    (void)SHA256End(&hash, ret);
    return got == 0 ? KILN_OK : kiln_error_set(err, KILN_E_IO, "%s", strerror(errno));
}
