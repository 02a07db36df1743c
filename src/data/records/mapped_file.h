/* A file in memory that is read as it is, or unpacked once if it ends in .gz, .zst or .parquet (as
 * CSV). */
#ifndef KILN_DATA_RECORDS_MAPPED_FILE_H
#define KILN_DATA_RECORDS_MAPPED_FILE_H

#include "kiln/base.h"

/* A zeroed one is closed. */
typedef struct KilnMappedFile {
    char *path;       /* as the user wrote it */
    const char *data; /* NULL when size is 0 */
    size_t size;
    size_t begin; /* where the text begins: after a byte order mark */
} KilnMappedFile;

/* Map a regular file. `cache` and `poll` as in KilnRecordsSpec. KILN_E_FORMAT for damaged
 * compression and for UTF-16. Close it also after a failure. */
KILN_NODISCARD KilnStatus kiln_mapped_file_open(KilnMappedFile *file, const char *path,
                                                const char *cache, const KilnPoll *poll,
                                                KilnError *err);
/* Copy a pipe to a temporary file without a name ($TMPDIR) and map that; "-": standard input. A
 * pipe gives its text once. */
KILN_NODISCARD KilnStatus kiln_mapped_file_spool(KilnMappedFile *file, const char *path,
                                                 const KilnPoll *poll, KilnError *err);
void kiln_mapped_file_close(KilnMappedFile *file);
/* "FOLDER/NAME-<key>.ENDING" for what belongs to the file as it is now; `kind` tells apart several
 * files of one ending. Owned by the caller; NULL with `err` set: memory is out, or the file is
 * gone. */
char *kiln_mapped_file_cache_path(const char *path, const char *cache, const char *ending,
                                  uint64_t kind, KilnError *err);

/* Unpack the .gz, .zst or .parquet file `from` to the open file `to`. (unpack.c) */
KILN_NODISCARD KilnStatus kiln_unpack(const char *from, int to, const KilnPoll *poll,
                                      KilnError *err);
/* Whether the name ends in .gz or .zst. */
bool kiln_is_packed(const char *path);

#endif
