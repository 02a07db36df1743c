/* Parts of kiln that need a library, and folders that it writes to. */
#include "cli/doctor/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend/cpu/blas.h"
#include "base/system/file.h"
#include "data/records/parquet.h"
#include "data/table/table_internal.h"
#include "download/transfer.h"
#include "image/decode/image_formats.h"
#include "kiln/files/events.h"
#include "kiln/plot.h"
#include "kiln/tools/boost.h"
#include "kiln/tools/clock.h"

static KilnStatus parquet(KilnError *err)
{
    return kiln_parquet_version(err) != NULL ? KILN_OK : KILN_E_MISSING;
}

static KilnStatus blas(KilnError *err)
{
    return kiln_blas_require("computing in f64, and f32 without AVX2", err);
}

/* In the order of the page. */
static const struct {
    const char *name;
    KilnStatus (*supported)(KilnError *err);
} parts[] = {
    { "plots", kiln_plot_supported },       { "TensorBoard", kiln_events_supported },
    { "trees", kiln_boost_supported },      { "downloads", kiln_transfer_supported },
    { "Parquet files", parquet },           { "SQLite databases", kiln_query_supported },
    { "WebP images", kiln_webp_supported }, { "f64", blas },
};

bool kiln_doctor_part(size_t i, const char **ret_name, KilnText *ret)
{
    KilnError err = { 0 };

    if (i >= KILN_COUNT(parts))
        return false;
    *ret_name = parts[i].name;
    if (parts[i].supported(&err) >= 0)
        kiln_text_append(ret, "yes");
    else
        kiln_text_printf(ret, "no: %s", err.text);
    return true;
}

/* ---- Folders --------------------------------------------------------------------------------- */

static char *runs(void)
{
    return kiln_strdup("outputs");
}

/* Of what the user allowed, such as plugins: base/system/trust.c. */
static char *state(void)
{
    const char *state = getenv("XDG_STATE_HOME");

    return state != NULL && state[0] == '/' ? kiln_path_join(state, "kiln")
                                            : kiln_path_expand("~/.local/state/kiln");
}

static char *temporary(void)
{
    return kiln_strdup(kiln_tmpdir("/tmp"));
}

static const struct {
    const char *name;
    char *(*path)(void); /* owned by the caller; NULL: memory is out */
} folders[] = { { "runs", runs }, { "allowed plugins", state }, { "temporary files", temporary } };

/* Shorten the path to the nearest folder or file that exists. */
static void shorten(char *path)
{
    while (access(path, F_OK) != 0 && errno != EACCES) {
        char *slash = strrchr(path, '/');

        if (slash == NULL)
            strcpy(path, ".");
        else
            slash[slash == path ? 1 : 0] = '\0';
    }
}

/* Make a folder in it, and remove it. */
static void try_folder(const char *path, const char *name, KilnText *ret)
{
    char free_space[KILN_UNIT_TEXT];
    struct statvfs info;
    KilnText trial = { 0 };

    kiln_text_printf(&trial, "%s/.kiln-doctor-XXXXXX", path);
    if (!kiln_is_dir(path)) {
        kiln_text_printf(ret, "no: %s is no folder", path);
    } else if (trial.data == NULL || mkdtemp(trial.data) == NULL) {
        kiln_text_printf(ret, "no: %s can't be written: %s", name, strerror(errno));
    } else {
        (void)rmdir(trial.data);
        kiln_text_printf(ret, "yes, %s", name);
        if (statvfs(path, &info) == 0)
            kiln_text_printf(
                ret, ", %s free",
                kiln_bytes_text((double)info.f_bavail * (double)info.f_frsize, free_space));
    }
    kiln_text_release(&trial);
}

bool kiln_doctor_folder(size_t i, const char **ret_name, KilnText *ret)
{
    if (i >= KILN_COUNT(folders))
        return false;
    *ret_name = folders[i].name;
    char *path = folders[i].path(), *nearest = path != NULL ? kiln_strdup(path) : NULL;
    if (nearest != NULL) {
        shorten(nearest);
        try_folder(nearest, path, ret);
    } else {
        ret->failed = true;
    }
    free(path);
    free(nearest);
    return true;
}
