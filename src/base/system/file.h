/* Files and folders: whole reads, atomic writes, paths. */
#ifndef KILN_BASE_SYSTEM_FILE_H
#define KILN_BASE_SYSTEM_FILE_H

#include "kiln/base.h"

/* Open a regular file for reading; the caller closes *ret_fd. KILN_E_IO for anything else, with its
 * type: opening a FIFO would wait for a writer, and a device may be endless. */
KILN_NODISCARD KilnStatus kiln_file_open_regular(const char *path, int *ret_fd, KilnError *err);
/* The whole file, NUL-terminated, owned by the caller; KILN_E_FORMAT above `limit` bytes. */
KILN_NODISCARD KilnStatus kiln_file_read(const char *path, size_t limit, char **ret,
                                         size_t *ret_size, KilnError *err);
/* Replace the file atomically: temporary file, fsync, rename, fsync of the folder. */
KILN_NODISCARD KilnStatus kiln_file_write(const char *path, const void *data, size_t size,
                                          KilnError *err);
/* Rename a file, and sync the folder that it goes to. */
KILN_NODISCARD KilnStatus kiln_file_rename(const char *from, const char *path, KilnError *err);
/* Write an unimportant text: directly, without syncing to disk. Links are not followed. */
KILN_NODISCARD KilnStatus kiln_file_write_plain(const char *path, const char *text, KilnError *err);
/* open() for a file of a run folder, as kiln_file_open does; -1 with errno set. */
int kiln_fd_open(const char *path, int flags);
/* Write everything, repeating short writes; false with errno on failure. */
bool kiln_fd_write(int fd, const void *data, size_t size);
/* Create the folder and its parents, unless it exists. */
KILN_NODISCARD KilnStatus kiln_dir_make(const char *path, KilnError *err);
/* The same for the parent folder of `path`. */
KILN_NODISCARD KilnStatus kiln_dir_make_parent(const char *path, KilnError *err);
/* Whether the folder can be read and is empty. */
bool kiln_dir_is_empty(const char *dir);
/* Remove temporary files that killed processes left in the folder, if it exists. No process may be
 * writing there. */
KILN_NODISCARD KilnStatus kiln_dir_prune(const char *dir, KilnError *err);
/* Remove a file or a whole folder, if it exists. Links are not followed. */
KILN_NODISCARD KilnStatus kiln_path_remove(const char *path, KilnError *err);
/* Sync a file's or folder's data to disk. */
KILN_NODISCARD KilnStatus kiln_path_sync(const char *path, KilnError *err);
/* Replace the symbolic link `path` by one to `target`, atomically. */
KILN_NODISCARD KilnStatus kiln_link_write(const char *target, const char *path, KilnError *err);
/* The target of a symbolic link, cut at `size`; false and "" when the path is none. */
bool kiln_link_read(const char *path, char *ret, size_t size);
/* Names in a folder without . and .., in byte order; owned by the caller (kiln_names_free). */
KILN_NODISCARD KilnStatus kiln_dir_list(const char *path, char ***ret, size_t *ret_count,
                                        KilnError *err);
void kiln_names_free(char **names, size_t count);
/* The folder for temporary files: $TMPDIR, or `otherwise` where that is unset or empty. */
const char *kiln_tmpdir(const char *otherwise);
bool kiln_is_dir(const char *path);
bool kiln_is_file(const char *path);
/* "dir/name" ("name" when dir is "" or "."), owned by the caller; NULL when memory is out. */
char *kiln_path_join(const char *dir, const char *name);
/* `path` with $HOME for a leading "~" or "~/", unchanged if HOME is not set; owned by the caller,
 * NULL when memory is out. */
char *kiln_path_expand(const char *path);
/* The absolute path, with links resolved in its existing part; owned by the caller. NULL when
 * memory is out. */
char *kiln_path_real(const char *path);

#endif
