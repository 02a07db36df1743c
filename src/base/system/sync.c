/* fsync of files, folders and trees. */
#define _GNU_SOURCE /* sync_file_range, syncfs, realpath */
#include "base/system/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"

/* More of them than this are flushed with all that their file system has. */
enum { MOST_ONE_BY_ONE = 64 };

/* ---- A list -------------------------------------------------------------------------- */

/* Start writing, without waiting. What fails here fails again when it is waited for. */
static void send(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return;
    (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    close(fd);
}

KilnStatus kiln_paths_sync(const char *const *paths, size_t n, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n; i++)
        send(paths[i]);
    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_path_sync(paths[i], err);
    return status;
}

KilnStatus kiln_file_system_sync(const char *path, KilnError *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    KilnStatus status = fd >= 0 && syncfs(fd) == 0 ? KILN_OK : kiln_error_errno(err, path);

    if (fd >= 0)
        close(fd);
    return status;
}

/* ---- A tree -------------------------------------------------------------------------- */

typedef struct Tree {
    char *paths[MOST_ONE_BY_ONE];
    size_t n; /* may be more than there is room for */
} Tree;

static KilnStatus add(Tree *tree, const char *path, KilnError *err)
{
    if (tree->n < MOST_ONE_BY_ONE && (tree->paths[tree->n] = kiln_strdup(path)) == NULL)
        return kiln_error_nomem(err, strlen(path));
    tree->n++;
    return KILN_OK;
}

/* Until there are too many. */
static KilnStatus collect(Tree *tree, const char *path, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    struct stat st;

    if (tree->n > MOST_ONE_BY_ONE)
        return KILN_OK;
    if (lstat(path, &st) != 0) /* it may have been removed meanwhile */
        return errno == ENOENT ? KILN_OK : kiln_error_errno(err, path);
    if (!S_ISDIR(st.st_mode))
        return S_ISREG(st.st_mode) ? add(tree, path, err) : KILN_OK;
    KilnStatus status = kiln_dir_list(path, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        char *child = kiln_path_join(path, names[i]);

        status = child != NULL ? collect(tree, child, err) : kiln_error_nomem(err, 1);
        free(child);
    }
    kiln_names_free(names, n);
    return status >= 0 ? add(tree, path, err) : status;
}

KilnStatus kiln_tree_sync(const char *dir, KilnError *err)
{
    Tree tree = { .n = 0 };
    KilnStatus status = collect(&tree, dir, err);

    if (status >= 0)
        status = tree.n > MOST_ONE_BY_ONE
                     ? kiln_file_system_sync(dir, err)
                     : kiln_paths_sync((const char *const *)tree.paths, tree.n, err);
    for (size_t i = 0; i < tree.n && i < MOST_ONE_BY_ONE; i++)
        free(tree.paths[i]);
    return status;
}

/* ---- Folders above ------------------------------------------------------------------- */

char *kiln_dir_existing(const char *path)
{
    char *way = kiln_strdup(path), *found = NULL;

    while (way != NULL && (found = realpath(way, NULL)) == NULL) {
        char *slash = strrchr(way, '/');

        if (slash == NULL || slash == way) {
            found = realpath(slash == NULL ? "." : "/", NULL);
            break;
        }
        *slash = '\0';
    }
    free(way);
    return found;
}

/* One that may be written but not read can't be opened for this. */
static KilnStatus sync_dir(const char *dir, KilnError *err)
{
    return access(dir, R_OK) == 0 ? kiln_path_sync(dir, err) : KILN_OK;
}

KilnStatus kiln_dirs_sync(const char *dir, const char *top, KilnError *err)
{
    char *at = kiln_strdup(dir);
    KilnStatus status = at != NULL ? sync_dir(at, err) : kiln_error_nomem(err, strlen(dir));

    while (status >= 0 && strlen(at) > strlen(top)) {
        char *slash = strrchr(at, '/');

        slash[slash == at] = '\0'; /* above /a is / */
        status = sync_dir(at, err);
    }
    free(at);
    return status;
}
