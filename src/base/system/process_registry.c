/* The links are named "<pid>-<start>". Their folder is the user's own and nobody else's: what
 * another user put in its place is not looked at. */
#include "base/system/process_registry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"

enum { PLACES = 2, PLACE = 256, NAME = 64, MOST = 4096 };

uint64_t kiln_process_start(int64_t pid)
{
    char path[64], text[1024];
    uint64_t start = 0;

    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    /* The program's name, in parentheses, may contain anything; the start time is the 20th field
     * after it. */
    const char *p = strrchr(text, ')');
    for (int field = 0; p != NULL && field < 20; field++)
        p = strchr(p + 1, ' ');
    return p != NULL && sscanf(p, " %" SCNu64, &start) == 1 ? start : 0;
}

/* ---- The folder ------------------------------------------------------------------------ */

/* The i-th place where links may be; false when there is none. */
static bool place(int i, char path[PLACE])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int length;

    if (i == 0 && (runtime == NULL || runtime[0] != '/'))
        return false;
    length = i == 0 ? snprintf(path, PLACE, "%s/kiln", runtime)
                    : snprintf(path, PLACE, "/tmp/kiln-%lu", (unsigned long)getuid());
    return length > 0 && length < PLACE;
}

/* A folder of this user that nobody else may write to? */
static bool is_own(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == getuid() &&
           (info.st_mode & 022) == 0;
}

static bool link_path(const char *folder, char *path, size_t size)
{
    const int64_t pid = (int64_t)getpid();
    int length = snprintf(path, size, "%s/%lld-%llu", folder, (long long)pid,
                          (unsigned long long)kiln_process_start(pid));

    return length > 0 && (size_t)length < size;
}

bool kiln_process_registry_add(const char *dir)
{
    char folder[PLACE], path[PLACE + NAME];

    for (int i = 0; i < PLACES; i++) {
        if (!place(i, folder) || (mkdir(folder, 0700) != 0 && errno != EEXIST) || !is_own(folder) ||
            !link_path(folder, path, sizeof(path)))
            continue;
        (void)unlink(path);
        if (symlink(dir, path) == 0)
            return true;
    }
    return false;
}

void kiln_process_registry_remove(void)
{
    char folder[PLACE], path[PLACE + NAME];

    for (int i = 0; i < PLACES; i++)
        if (place(i, folder) && is_own(folder) && link_path(folder, path, sizeof(path)))
            (void)unlink(path);
}

/* ---- Looking ----------------------------------------------------------------------------- */

typedef struct Found {
    char **dirs;
    int64_t *pids;
    size_t count;
} Found;

/* In order of pid; a folder that two places name counts once. */
static bool add(Found *found, int64_t pid, const char *dir)
{
    size_t at = found->count;

    for (size_t i = 0; i < found->count; i++)
        if (found->pids[i] == pid && strcmp(found->dirs[i], dir) == 0)
            return true;
    char *copy = kiln_strdup(dir);
    char **dirs = realloc(found->dirs, (found->count + 1) * sizeof(*dirs));
    if (dirs != NULL)
        found->dirs = dirs;
    int64_t *pids = realloc(found->pids, (found->count + 1) * sizeof(*pids));
    if (pids != NULL)
        found->pids = pids;
    if (copy == NULL || dirs == NULL || pids == NULL) {
        free(copy);
        return false;
    }
    for (; at > 0 && pids[at - 1] > pid; at--) {
        dirs[at] = dirs[at - 1];
        pids[at] = pids[at - 1];
    }
    dirs[at] = copy;
    pids[at] = pid;
    found->count++;
    return true;
}

/* One link, if its process is there. */
static bool look(Found *found, const char *folder, const char *name)
{
    char path[PLACE + NAME], dir[4096];
    long long pid = 0;
    unsigned long long start = 0;
    int end = 0;

    if (sscanf(name, "%lld-%llu%n", &pid, &start, &end) != 2 || name[end] != '\0' || pid <= 0 ||
        snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return true;
    if (start == 0 || kiln_process_start(pid) != start) {
        (void)unlink(path);
        return true;
    }
    ssize_t length = readlink(path, dir, sizeof(dir) - 1);
    if (length <= 0)
        return true;
    dir[length] = '\0';
    return found->count >= MOST || add(found, pid, dir);
}

KilnStatus kiln_process_registry_list(char ***ret, size_t *ret_count, KilnError *err)
{
    Found found = { 0 };
    bool whole = true;
    char folder[PLACE];

    for (int i = 0; i < PLACES; i++) {
        char **names = NULL;
        size_t n = 0;

        if (!place(i, folder) || !is_own(folder) || kiln_dir_list(folder, &names, &n, NULL) < 0)
            continue;
        for (size_t k = 0; k < n && whole; k++)
            whole = look(&found, folder, names[k]);
        kiln_names_free(names, n);
    }
    free(found.pids);
    if (!whole) {
        kiln_names_free(found.dirs, found.count);
        return kiln_error_nomem(err, 4096);
    }
    *ret = found.dirs;
    *ret_count = found.count;
    return KILN_OK;
}
