/* Bringing files and folders to disk, so that a power cut leaves them. */
#ifndef KILN_BASE_SYSTEM_SYNC_H
#define KILN_BASE_SYSTEM_SYNC_H

#include "kiln/base.h"

/* These files and folders. Their data is sent to the disk first and waited for then: a file
 * system with a journal commits all of them at once, which takes no longer than one of them. */
KILN_NODISCARD KilnStatus kiln_paths_sync(const char *const *paths, size_t n, KilnError *err);
/* `dir` and everything below it; links are not followed. */
KILN_NODISCARD KilnStatus kiln_tree_sync(const char *dir, KilnError *err);
/* The whole file system that `path` lies on: cheaper than thousands of files. */
KILN_NODISCARD KilnStatus kiln_file_system_sync(const char *path, KilnError *err);
/* The deepest folder on the way to `path` that is there: those between them will be new. Absolute,
 * owned by the caller; NULL when memory is out. */
char *kiln_dir_existing(const char *path);
/* The folder `dir` and those above it up to `top`, both absolute: their entries are on disk. */
KILN_NODISCARD KilnStatus kiln_dirs_sync(const char *dir, const char *top, KilnError *err);

#endif
