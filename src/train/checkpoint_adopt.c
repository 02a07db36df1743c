/* Bringing a checkpoint of the run that this one goes on from into this run's
 * folder, so that the folder stays whole: by hard links, or copies where the
 * file system has none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "train/checkpoint.h"

static KilnStatus bring_file(const char *from, const char *to, KilnError *err)
{
    char *data = NULL;
    size_t size = 0;

    if (link(from, to) == 0)
        return KILN_OK;
    KilnStatus status = kiln_file_read(from, SIZE_MAX / 2, &data, &size, err);
    if (status >= 0)
        status = kiln_file_write(to, data, size, err);
    free(data);
    return status;
}

static KilnStatus bring(const char *from, const char *to, KilnError *err)
{
    static const char *const names[] = { KILN_CHECKPOINT_MODEL, KILN_CHECKPOINT_TRAINER,
                                         KILN_CHECKPOINT_CONFIG, KILN_CHECKPOINT_STATE };
    KilnStatus status = kiln_path_remove(to, err);

    if (status >= 0)
        status = kiln_dir_make(to, err);
    for (size_t i = 0; i < KILN_COUNT(names) && status >= 0; i++) {
        char *a = kiln_path_join(from, names[i]), *b = kiln_path_join(to, names[i]);

        status = a != NULL && b != NULL ? bring_file(a, b, err) : kiln_error_nomem(err, 1);
        free(a);
        free(b);
    }
    return status;
}

bool kiln_trainer_adopt(KilnTrainer *trainer, const char *name)
{
    const char *slash = trainer->resumed_from != NULL ? strrchr(trainer->resumed_from, '/') : NULL;
    KilnText here = { 0 }, there = { 0 }, fresh = { 0 };
    bool found = false;

    if (trainer->run_dir != NULL && strchr(name, '/') == NULL && name[0] != '.') {
        kiln_text_printf(&here, "%s/checkpoints/%s", trainer->run_dir, name);
        kiln_text_printf(&fresh, "%s/checkpoints/.saving", trainer->run_dir);
        found = !here.failed && kiln_is_dir(here.data);
    }
    if (!found && slash != NULL && here.length > 0 && !fresh.failed) {
        kiln_text_append_n(&there, trainer->resumed_from,
                           (size_t)(slash - trainer->resumed_from) + 1);
        kiln_text_append(&there, name);
        found = !there.failed && kiln_is_dir(there.data) &&
                bring(there.data, fresh.data, NULL) >= 0 && rename(fresh.data, here.data) == 0;
    }
    kiln_text_release(&here);
    kiln_text_release(&there);
    kiln_text_release(&fresh);
    return found;
}
