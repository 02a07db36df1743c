/* One small file for each thing that was allowed, named by the SHA-256 of all its parts. */
#include "base/system/trust.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sha2.h>

#include "base/system/file.h"
#include "base/text.h"

/* The folder, owned by the caller; NULL: there is none. */
static char *folder_path(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const bool named = state != NULL && state[0] == '/';
    KilnText path = { 0 };

    if (!named && (home == NULL || home[0] != '/'))
        return NULL;
    kiln_text_printf(&path, "%s%s/kiln/allowed", named ? state : home,
                     named ? "" : "/.local/state");
    return kiln_text_take(&path);
}

/* Where another user may write, nothing counts. */
static bool is_own_folder(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & 022) == 0;
}

/* FOLDER/<sum>, owned by the caller; NULL: there is no folder of this user's. */
static char *entry_path(const KilnTrust *trust, const char *folder)
{
    char sum[SHA256_DIGEST_STRING_LENGTH];
    SHA2_CTX hash;

    SHA256Init(&hash);
    for (size_t i = 0; i < KILN_TRUST_PARTS && trust->parts[i] != NULL; i++)
        SHA256Update(&hash, (const uint8_t *)trust->parts[i], strlen(trust->parts[i]) + 1);
    (void)SHA256End(&hash, sum);
    return kiln_path_join(folder, sum);
}

bool kiln_trust_allowed(const KilnTrust *trust)
{
    char *folder = folder_path(), *entry = NULL;
    struct stat info;

    if (folder != NULL && is_own_folder(folder))
        entry = entry_path(trust, folder);
    const bool allowed = entry != NULL && lstat(entry, &info) == 0 && S_ISREG(info.st_mode) &&
                         info.st_uid == geteuid();
    free(folder);
    free(entry);
    return allowed;
}

/* For the user who looks what there is. */
static void write_entry(const KilnTrust *trust, const char *entry)
{
    KilnText text = { 0 };
    const int fd = open(entry, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    for (size_t i = 0; i < KILN_TRUST_PARTS && trust->parts[i] != NULL; i++)
        kiln_text_printf(&text, "%s\n", trust->parts[i]);
    if (fd >= 0 && !text.failed)
        (void)!kiln_fd_write(fd, text.data, text.length);
    if (fd >= 0)
        close(fd);
    kiln_text_release(&text);
}

void kiln_trust_allow(const KilnTrust *trust)
{
    char *folder = folder_path(), *entry = NULL;

    if (folder != NULL && kiln_dir_make_parent(folder, NULL) >= 0)
        (void)mkdir(folder, 0700);
    if (folder != NULL && is_own_folder(folder))
        entry = entry_path(trust, folder);
    if (entry != NULL)
        write_entry(trust, entry);
    free(folder);
    free(entry);
}
