/* The folder of a sweep: its name, which no other sweep may have, and the paths in it. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "sweep/state.h"

enum { MOST_SWEEPS_A_SECOND = 1000 };

static bool is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

/* Of a name with the time in it there may be several. */
static bool is_timed(const KilnSweep *sweep)
{
    char *written = NULL;
    bool timed = kiln_config_yaml(sweep->config, "kiln.sweep.dir", false, &written, NULL) >= 0 &&
                 strstr(written, "${now") != NULL;

    free(written);
    return timed;
}

static KilnStatus take_name(KilnSweep *sweep, KilnText *name, KilnError *err)
{
    char *taken = kiln_text_take(name);

    if (taken == NULL)
        return kiln_error_nomem(err, 1);
    free(sweep->dir);
    sweep->dir = taken;
    return KILN_OK;
}

KilnStatus kiln_sweep_choose_dir(KilnSweep *sweep, KilnError *err)
{
    const char *dir = sweep->options->dir;
    bool timed = is_timed(sweep);
    KilnText name = { 0 };

    if (*dir == '\0')
        return kiln_error_set(err, KILN_E_MISSING, "kiln.sweep.dir is empty; name a folder");
    for (int i = 0; i < MOST_SWEEPS_A_SECOND; i++) {
        kiln_text_clear(&name);
        kiln_text_append(&name, dir);
        if (i > 0)
            kiln_text_printf(&name, "-%d", i);
        if (name.failed || !is_there(name.data) || (!timed && kiln_dir_is_empty(name.data)))
            return take_name(sweep, &name, err);
        if (!timed)
            break;
    }
    kiln_text_release(&name);
    return kiln_error_set(err, KILN_E_IO,
                          "kiln.sweep.dir=%s: is there already and not empty; name another "
                          "folder, or go on with the sweep in it: train -m --resume %s",
                          dir, dir);
}

KilnStatus kiln_sweep_make_dir(KilnSweep *sweep, bool *ret_taken, KilnError *err)
{
    KilnStatus status = kiln_dir_make_parent(sweep->dir, err);

    *ret_taken = false;
    if (status < 0)
        return status;
    if (mkdir(sweep->dir, 0777) != 0 && !(errno == EEXIST && kiln_dir_is_empty(sweep->dir))) {
        *ret_taken = errno == EEXIST;
        return *ret_taken ? KILN_OK : kiln_error_errno(err, sweep->dir);
    }
    sweep->path = realpath(sweep->dir, NULL);
    return sweep->path != NULL ? KILN_OK : kiln_error_errno(err, sweep->dir);
}

char *kiln_sweep_job_path(const KilnSweep *sweep, const KilnJob *job, const char *name)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/%s", sweep->path, job->dir);
    if (name != NULL)
        kiln_text_printf(&path, "/%s", name);
    return kiln_text_take(&path);
}
