/* The folder of a sweep: a name that no other sweep has, and paths in it. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/system/sync.h"
#include "config/interpolate/interpolate.h"
#include "sweep/sweep_state.h"

enum { MAX_SWEEPS_A_SECOND = 1000 };

static bool is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* May a sweep start in the folder? It is empty, or has only the rest of one that ended before its
 * first record. */
static bool is_free(const char *dir)
{
    char *own = kiln_path_join(dir, ".kiln"), **names = NULL, **kept = NULL;
    size_t n = 0, n_kept = 0;
    bool is = own != NULL && kiln_dir_list(dir, &names, &n, NULL) >= 0;

    for (size_t i = 0; i < n && is; i++)
        is = strcmp(names[i], KILN_JOURNAL_FILE) == 0 ||
             (strcmp(names[i], ".kiln") == 0 && kiln_dir_list(own, &kept, &n_kept, NULL) >= 0);
    is = is && (n_kept == 0 || (n_kept == 1 && strcmp(kept[0], "conf") == 0));
    kiln_names_free(names, n);
    kiln_names_free(kept, n_kept);
    free(own);
    return is;
}

/* Names with the time in it get a number when they are in use. */
static bool is_timed(const KilnSweep *sweep)
{
    return kiln_config_uses_time(sweep->config, "kiln.sweep.dir");
}

static KilnStatus set_dir(KilnSweep *sweep, KilnText *name, KilnError *err)
{
    char *dir = kiln_text_take(name);

    if (dir == NULL)
        return kiln_error_nomem(err, 1);
    free(sweep->dir);
    sweep->dir = dir;
    return KILN_OK;
}

static KilnStatus refuse(const char *dir, KilnError *err)
{
    return kiln_error_set(err, KILN_E_IO,
                          "kiln.sweep.dir=%s: the folder exists and is not empty; name another "
                          "folder, or resume the sweep in it with train -m --resume %s",
                          dir, dir);
}

KilnStatus kiln_sweep_choose_dir(KilnSweep *sweep, KilnError *err)
{
    const char *dir = sweep->options->dir;
    bool timed = is_timed(sweep);
    KilnText name = { 0 };

    if (*dir == '\0')
        return kiln_error_set(err, KILN_E_MISSING, "kiln.sweep.dir is empty; name a folder");
    for (int i = 0; i < MAX_SWEEPS_A_SECOND; i++) {
        kiln_text_clear(&name);
        kiln_text_append(&name, dir);
        if (i > 0)
            kiln_text_printf(&name, "-%d", i);
        if (name.failed || !is_there(name.data) || (!timed && is_free(name.data)))
            return set_dir(sweep, &name, err);
        if (!timed)
            break;
    }
    kiln_text_release(&name);
    return refuse(dir, err);
}

/* Open the journal of the folder, which must be free, and clear it. While this process has the
 * journal, no other can claim the folder. */
static KilnStatus claim(KilnSweep *sweep, KilnError *err)
{
    char *own = kiln_path_join(sweep->path, ".kiln");
    KilnStatus status = own != NULL ? kiln_journal_open(sweep->path, &sweep->journal, err)
                                    : kiln_error_nomem(err, strlen(sweep->path));

    /* Another process may have claimed it first, and have ended since. */
    if (status >= 0)
        status = kiln_journal_is_new(sweep->journal) && is_free(sweep->path)
                     ? kiln_path_remove(own, err)
                     : refuse(sweep->dir, err);
    free(own);
    return status;
}

KilnStatus kiln_sweep_make_dir(KilnSweep *sweep, bool *ret_taken, KilnError *err)
{
    KilnStatus status;

    *ret_taken = false;
    free(sweep->top);
    sweep->top = kiln_dir_existing(sweep->dir);
    status = sweep->top != NULL ? kiln_dir_make_parent(sweep->dir, err)
                                : kiln_error_nomem(err, strlen(sweep->dir));
    if (status < 0)
        return status;
    if (mkdir(sweep->dir, 0777) != 0) {
        if (errno != EEXIST)
            return kiln_error_errno(err, sweep->dir);
        *ret_taken = is_timed(sweep) || !is_free(sweep->dir);
        if (*ret_taken)
            return KILN_OK;
    }
    sweep->path = realpath(sweep->dir, NULL);
    return sweep->path != NULL ? claim(sweep, err) : kiln_error_errno(err, sweep->dir);
}

char *kiln_sweep_job_path(const KilnSweep *sweep, const KilnJob *job, const char *name)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/%s", sweep->path, job->dir);
    if (name != NULL)
        kiln_text_printf(&path, "/%s", name);
    return kiln_text_take(&path);
}
