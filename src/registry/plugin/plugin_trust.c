/* Plugins that the user has loaded: the same path, bytes and owner. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "registry/plugin/plugin_trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/sha256.h"
#include "base/system/trust.h"

typedef struct File {
    char *path; /* absolute, without links */
    char sum[KILN_SHA256_TEXT], owner[24];
    bool world_writable;
} File;

static KilnStatus read_file(const char *path, File *ret, KilnError *err)
{
    File file = { .path = realpath(path, NULL) };
    int fd = file.path != NULL ? open(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                               : -1;
    struct stat info;
    KilnStatus status = KILN_OK;

    if (fd < 0 || fstat(fd, &info) != 0)
        status = kiln_error_set(err, KILN_E_PLUGIN, "%s",
                                errno == ENOENT ? "there is no such file" : strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = kiln_error_set(err, KILN_E_PLUGIN, "it is not a regular file");
    else if (kiln_fd_sha256(fd, NULL, "", file.sum, err) < 0)
        status = KILN_E_PLUGIN;
    if (fd >= 0)
        close(fd);
    if (status < 0) {
        free(file.path);
        return status;
    }
    snprintf(file.owner, sizeof(file.owner), "%lu", (unsigned long)info.st_uid);
    file.world_writable = (info.st_mode & S_IWOTH) != 0;
    *ret = file;
    return KILN_OK;
}

static KilnTrust trust_of(const File *file)
{
    return (KilnTrust) { { "plugin", file->path, file->sum, file->owner } };
}

void kiln_plugin_allow(const char *path)
{
    File file;

    if (read_file(path, &file, NULL) < 0)
        return;
    const KilnTrust trust = trust_of(&file);
    kiln_trust_allow(&trust);
    free(file.path);
}

KilnStatus kiln_plugin_allowed(const char *path, KilnError *err)
{
    File file;
    KilnStatus status = read_file(path, &file, err);

    if (status < 0)
        return status;
    const KilnTrust trust = trust_of(&file);
    if (file.world_writable)
        status = kiln_error_set(err, KILN_E_PLUGIN, "anybody may write to it");
    else if (!kiln_trust_allowed(&trust))
        status = kiln_error_set(err, KILN_E_PLUGIN,
                                "you have not loaded it before, or it has changed since");
    free(file.path);
    return status;
}
