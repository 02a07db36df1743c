/* Syncs files and folders to disk, so they survive a power cut. */
#ifndef KILN_BASE_SYSTEM_SYNC_H
#define KILN_BASE_SYSTEM_SYNC_H

#include "kiln/base.h"

/* Sync these files and folders. Starts writing all of them before it waits: a journaling file
 * system then commits them together, in the time of one. */
KILN_NODISCARD KilnStatus kiln_paths_sync(const char *const *paths, size_t n, KilnError *err);
/* Sync `dir` and everything in it; links are not followed. */
KILN_NODISCARD KilnStatus kiln_tree_sync(const char *dir, KilnError *err);
/* Sync the whole file system of `path`: faster than thousands of files. */
KILN_NODISCARD KilnStatus kiln_file_system_sync(const char *path, KilnError *err);
/* The deepest existing folder on the way to `path`. Absolute, owned by the caller; NULL when memory
 * is out. */
char *kiln_dir_existing(const char *path);
/* Sync the entries of the folder `dir` and of its parents up to `top`, both absolute. */
KILN_NODISCARD KilnStatus kiln_dirs_sync(const char *dir, const char *top, KilnError *err);

#endif
