/* Files and folders over POSIX. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "base/system/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

char *kiln_path_join(const char *dir, const char *name)
{
    KilnText text = { 0 };

    if (dir[0] != '\0' && strcmp(dir, ".") != 0) {
        kiln_text_append(&text, dir);
        if (!kiln_ends_with(dir, "/"))
            kiln_text_char(&text, '/');
    }
    kiln_text_append(&text, name);
    return kiln_text_take(&text);
}

/* The folder that holds `path`, owned by the caller. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    KilnText text = { 0 };

    if (slash == NULL)
        kiln_text_append(&text, ".");
    else
        kiln_text_append_n(&text, path, slash == path ? 1 : (size_t)(slash - path));
    return kiln_text_take(&text);
}

bool kiln_link_read(const char *path, char *ret, size_t size)
{
    const ssize_t length = readlink(path, ret, size - 1);

    ret[length > 0 ? length : 0] = '\0';
    return length >= 0;
}

char *kiln_path_expand(const char *path)
{
    const char *home = getenv("HOME");
    KilnText whole = { 0 };

    if (home != NULL && path[0] == '~' && (path[1] == '\0' || path[1] == '/')) {
        kiln_text_append(&whole, home);
        path++;
    }
    kiln_text_append(&whole, path);
    return kiln_text_take(&whole);
}

char *kiln_path_real(const char *path)
{
    char *real = realpath(path, NULL), *parent = parent_of(path), *whole = NULL;
    const char *slash = strrchr(path, '/');

    if (real != NULL || parent == NULL || strcmp(parent, path) == 0) {
        free(parent);
        return real;
    }
    real = kiln_path_real(parent);
    if (real != NULL)
        whole = kiln_path_join(real, slash != NULL ? slash + 1 : path);
    free(real);
    free(parent);
    return whole;
}

const char *kiln_tmpdir(const char *otherwise)
{
    const char *folder = getenv("TMPDIR");

    return folder != NULL && folder[0] != '\0' ? folder : otherwise;
}

bool kiln_is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool kiln_is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

KilnStatus kiln_file_open_regular(const char *path, int *ret_fd, KilnError *err)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    KilnStatus status = KILN_OK;

    if (fd < 0 || fstat(fd, &st) != 0)
        status = kiln_error_errno(err, path);
    else if (S_ISDIR(st.st_mode))
        status = kiln_error_set(err, KILN_E_IO, "%s: is a folder, not a file", path);
    else if (!S_ISREG(st.st_mode))
        status = kiln_error_set(err, KILN_E_IO, "%s: is a %s, not a regular file", path,
                                S_ISFIFO(st.st_mode) ? "FIFO" : "device");
    if (status < 0 && fd >= 0)
        close(fd);
    else if (status >= 0)
        *ret_fd = fd;
    return status;
}

static KilnStatus read_fd(int fd, const char *path, size_t limit, char **ret, size_t *ret_size,
                          KilnError *err)
{
    size_t size = 0, capacity = 1 << 14;
    struct stat st;
    char *data;

    if (fstat(fd, &st) != 0)
        return kiln_error_errno(err, path);
    if (st.st_size > 0 && (uintmax_t)st.st_size <= limit)
        capacity = (size_t)st.st_size + 1;
    data = malloc(capacity + 1);
    while (data != NULL) {
        ssize_t got = read(fd, data + size, capacity - size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            kiln_error_errno(err, path);
            free(data);
            return KILN_E_IO;
        }
        if (got == 0) {
            data[size] = '\0';
            *ret = data;
            *ret_size = size;
            return KILN_OK;
        }
        size += (size_t)got;
        if (size > limit) {
            free(data);
            return kiln_error_set(err, KILN_E_FORMAT, "%s: larger than %zu %s", path,
                                  limit >> 20 > 0 ? limit >> 20 : limit,
                                  limit >> 20 > 0 ? "MiB" : "bytes");
        }
        if (size == capacity) {
            char *more = realloc(data, capacity * 2 + 1);

            if (more == NULL)
                free(data);
            data = more;
            capacity *= 2;
        }
    }
    return kiln_error_nomem(err, capacity + 1);
}

KilnStatus kiln_file_read(const char *path, size_t limit, char **ret, size_t *ret_size,
                          KilnError *err)
{
    int fd = -1;
    KilnStatus status = kiln_file_open_regular(path, &fd, err);

    if (status < 0)
        return status;
    status = read_fd(fd, path, limit, ret, ret_size, err);
    close(fd);
    return status;
}

int kiln_fd_open(const char *path, int flags)
{
    const int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    if (fd >= 0) {
        close(fd);
        errno = ENXIO;
    }
    return -1;
}

FILE *kiln_file_open(const char *path, const char *mode)
{
    const int way = mode[0] == 'r' ? 0 : O_CREAT | (mode[0] == 'a' ? O_APPEND : O_TRUNC);
    const int access = strchr(mode, '+') != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    const int fd = kiln_fd_open(path, way | access);
    FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;

    if (fd >= 0 && file == NULL)
        close(fd);
    return file;
}

bool kiln_fd_write(int fd, const void *data, size_t size)
{
    for (const char *p = data; size > 0;) {
        ssize_t put = write(fd, p, size);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        p += put;
        size -= (size_t)put;
    }
    return true;
}

KilnStatus kiln_file_write_plain(const char *path, const char *text, KilnError *err)
{
    FILE *file = kiln_file_open(path, "w");
    KilnStatus status = KILN_OK;

    if (file == NULL || fputs(text, file) == EOF)
        status = kiln_error_errno(err, path);
    if (file != NULL && fclose(file) != 0 && status >= 0)
        status = kiln_error_errno(err, path);
    return status;
}

KilnStatus kiln_path_sync(const char *path, KilnError *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return kiln_error_errno(err, path);
    /* EINVAL: a file system that has nothing to flush there. */
    KilnStatus status = fsync(fd) == 0 || errno == EINVAL ? KILN_OK : kiln_error_errno(err, path);
    close(fd);
    return status;
}

static KilnStatus sync_parent(const char *path, KilnError *err)
{
    char *parent = parent_of(path);

    if (parent == NULL)
        return kiln_error_nomem(err, strlen(path));
    KilnStatus status = kiln_path_sync(parent, err);
    free(parent);
    return status;
}

KilnStatus kiln_file_rename(const char *from, const char *path, KilnError *err)
{
    return rename(from, path) == 0 ? sync_parent(path, err) : kiln_error_errno(err, path);
}

/* A name beside `path` that no other process uses; owned by the caller. */
static char *temporary_name(const char *path)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s.%ld.tmp", path, (long)getpid());
    return kiln_text_take(&text);
}

KilnStatus kiln_file_write(const char *path, const void *data, size_t size, KilnError *err)
{
    char *tmp = temporary_name(path);

    if (tmp == NULL)
        return kiln_error_nomem(err, strlen(path));
    int fd = kiln_fd_open(tmp, O_WRONLY | O_CREAT | O_TRUNC);
    bool ok = fd >= 0 && kiln_fd_write(fd, data, size) && fsync(fd) == 0;
    if (fd >= 0 && close(fd) != 0)
        ok = false;
    if (!ok || rename(tmp, path) != 0) {
        KilnStatus status = kiln_error_errno(err, path);

        unlink(tmp);
        free(tmp);
        return status;
    }
    free(tmp);
    return sync_parent(path, err);
}

KilnStatus kiln_link_write(const char *target, const char *path, KilnError *err)
{
    char *tmp = temporary_name(path);

    if (tmp == NULL)
        return kiln_error_nomem(err, strlen(path));
    unlink(tmp);
    if (symlink(target, tmp) != 0 || rename(tmp, path) != 0) {
        KilnStatus status = kiln_error_errno(err, path);

        unlink(tmp);
        free(tmp);
        return status;
    }
    free(tmp);
    return sync_parent(path, err);
}

KilnStatus kiln_dir_make(const char *path, KilnError *err)
{
    if (kiln_is_dir(path))
        return KILN_OK;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && kiln_is_dir(path)))
        return KILN_OK;
    if (errno != ENOENT)
        return kiln_error_errno(err, path);
    char *parent = parent_of(path);
    if (parent == NULL)
        return kiln_error_nomem(err, strlen(path));
    KilnStatus status = strcmp(parent, path) == 0 ? kiln_error_errno(err, path)
                                                  : kiln_dir_make(parent, err);
    free(parent);
    if (status < 0)
        return status;
    return mkdir(path, 0777) == 0 || errno == EEXIST ? KILN_OK : kiln_error_errno(err, path);
}

KilnStatus kiln_dir_make_parent(const char *path, KilnError *err)
{
    char *parent = parent_of(path);
    KilnStatus status = parent == NULL ? kiln_error_nomem(err, strlen(path))
                                       : kiln_dir_make(parent, err);

    free(parent);
    return status;
}

bool kiln_dir_is_empty(const char *dir)
{
    char **names = NULL;
    size_t n = 0;

    if (kiln_dir_list(dir, &names, &n, NULL) < 0)
        return false;
    kiln_names_free(names, n);
    return n == 0;
}

KilnStatus kiln_path_remove(const char *path, KilnError *err)
{
    struct stat st;
    char **names;
    size_t count;
    KilnStatus status;

    if (lstat(path, &st) != 0)
        return errno == ENOENT ? KILN_OK : kiln_error_errno(err, path);
    if (!S_ISDIR(st.st_mode))
        return unlink(path) == 0 ? KILN_OK : kiln_error_errno(err, path);
    status = kiln_dir_list(path, &names, &count, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < count && status >= 0; i++) {
        char *child = kiln_path_join(path, names[i]);

        status = child != NULL ? kiln_path_remove(child, err) : kiln_error_nomem(err, 1);
        free(child);
    }
    kiln_names_free(names, count);
    if (status >= 0 && rmdir(path) != 0)
        status = kiln_error_errno(err, path);
    return status;
}

/* A file or link "last.1234.tmp": see temporary_name. */
static bool is_temporary(const char *path)
{
    const char *number = path + strlen(path) - strlen(".tmp");
    const char *end = number;
    struct stat st;

    if (!kiln_ends_with(path, ".tmp"))
        return false;
    while (number > path && number[-1] >= '0' && number[-1] <= '9')
        number--;
    return number < end && number > path && number[-1] == '.' && lstat(path, &st) == 0 &&
           !S_ISDIR(st.st_mode);
}

KilnStatus kiln_dir_prune(const char *dir, KilnError *err)
{
    char **names = NULL;
    size_t count = 0;
    KilnStatus status = kiln_is_dir(dir) ? kiln_dir_list(dir, &names, &count, err) : KILN_OK;

    for (size_t i = 0; i < count && status >= 0; i++) {
        char *path = kiln_path_join(dir, names[i]);

        if (path == NULL)
            status = kiln_error_nomem(err, strlen(dir));
        else if (is_temporary(path))
            status = kiln_path_remove(path, err);
        free(path);
    }
    kiln_names_free(names, count);
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

KilnStatus kiln_dir_list(const char *path, char ***ret, size_t *ret_count, KilnError *err)
{
    size_t count = 0, capacity = 16;
    char **names = malloc(capacity * sizeof(*names));
    DIR *dir = opendir(path);
    struct dirent *entry;

    if (dir == NULL || names == NULL) {
        KilnStatus status = dir == NULL ? kiln_error_errno(err, path) : kiln_error_nomem(err, 1);

        if (dir != NULL)
            closedir(dir);
        free(names);
        return status;
    }
    while (errno = 0, (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (count == capacity) {
            char **more = realloc(names, 2 * capacity * sizeof(*names));

            if (more == NULL)
                break;
            names = more;
            capacity *= 2;
        }
        names[count] = kiln_strdup(entry->d_name);
        if (names[count] == NULL)
            break;
        count++;
    }
    KilnStatus status = entry != NULL ? kiln_error_nomem(err, capacity * sizeof(*names))
                        : errno != 0  ? kiln_error_errno(err, path) /* not the end of the folder */
                                      : KILN_OK;
    closedir(dir);
    if (status < 0) {
        kiln_names_free(names, count);
        return status;
    }
    qsort(names, count, sizeof(*names), compare_names);
    *ret = names;
    *ret_count = count;
    return KILN_OK;
}

void kiln_names_free(char **names, size_t count)
{
    if (names == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}
