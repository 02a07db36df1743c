/* Tar archives: their files by number and name, without unpacking them. */
#ifndef KILN_KILN_FILES_TAR_H
#define KILN_KILN_FILES_TAR_H

#include "kiln/base.h"

/* An archive of which an index is in memory, and the rest is mapped. Immutable once open: any
 * number of threads may read it. The file must not be truncated meanwhile. */
typedef struct KilnTar KilnTar;

/* A regular file in an archive. */
typedef struct KilnTarMember {
    const char *name; /* its path inside, without a leading "./" */
    const void *data;
    size_t size;
} KilnTarMember;

/* Read the headers of a tar (POSIX ustar and pax, GNU); links, devices and folders are left out. A
 * file that ends in .gz or .zst is unpacked first: into the folder `cache`, where later runs find
 * it, or to a temporary file ($TMPDIR) if that is NULL. KILN_E_FORMAT with the offset of a header
 * that is damaged, and if the end is missing. `poll` may be NULL. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_tar_open(const char *path, const char *cache,
                                                 const KilnPoll *poll, KilnTar **ret,
                                                 KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_tar_close(KilnTar *tar);
/* Files, in the archive's order. */
KILN_API int64_t kiln_tar_count(const KilnTar *tar);
KILN_API KilnTarMember kiln_tar_member(const KilnTar *tar, int64_t i);
/* The number of the file of that name, of several the last one as tar unpacks it; -1: there is
 * none. */
KILN_API int64_t kiln_tar_find(const KilnTar *tar, const char *name);
/* What is directly in a folder of an archive. A zeroed one is ready for the first. */
typedef struct KilnTarChild {
    const char *name; /* not terminated */
    size_t length;
    bool is_folder;
    int64_t next;
} KilnTarChild;
/* The next child of `folder` ("": the archive itself); false: there is none left. */
KILN_API bool kiln_tar_child(const KilnTar *tar, const char *folder, KilnTarChild *child);
/* Whether there is a file in that folder. */
KILN_API bool kiln_tar_has_folder(const KilnTar *tar, const char *folder);
/* Whether a path is that of an archive: it ends in .tar, .tar.gz or .tar.zst. */
KILN_API bool kiln_is_tar(const char *path);

#endif
