/* Claims checkpoints for a resumed run: copies (hard-links) those of the previous run folder into
 * this run's, so that each folder is complete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/json.h"
#include "base/text.h"
#include "train/checkpoint/checkpoint.h"

static KilnStatus clone_file(const char *from, const char *to, KilnError *err)
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

KilnStatus kiln_checkpoint_clone(const char *from, const char *to, bool state, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = kiln_path_remove(to, err);

    if (status >= 0)
        status = kiln_dir_make(to, err);
    if (status >= 0)
        status = kiln_checkpoint_files(from, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        char *a = kiln_path_join(from, names[i]), *b = kiln_path_join(to, names[i]);

        if (a == NULL || b == NULL)
            status = kiln_error_nomem(err, 1);
        else if (strchr(names[i], '/') != NULL)
            status = kiln_dir_make_parent(b, err);
        if (status >= 0 && (state || strcmp(names[i], KILN_CHECKPOINT_STATE) != 0))
            status = clone_file(a, b, err);
        free(a);
        free(b);
    }
    kiln_names_free(names, n);
    return status;
}

bool kiln_checkpoint_is_own(const char *folder, const char *name, json_t **ret_saved_by)
{
    KilnText path = { 0 };
    bool own;

    kiln_text_printf(&path, "%s/%s/" KILN_CHECKPOINT_STATE, folder, name);
    json_t *state = NULL;
    if (!path.failed)
        (void)!kiln_json_read(path.data, &state, NULL);
    const char *named = json_string_value(json_object_get(state, "name"));
    json_t *saved_by = json_object_get(state, "saved_by");
    own = named != NULL && strcmp(named, name) == 0 && json_is_array(saved_by);
    if (own && ret_saved_by != NULL)
        *ret_saved_by = json_incref(saved_by);
    json_decref(state);
    kiln_text_release(&path);
    return own;
}

bool kiln_trainer_claim(KilnTrainer *trainer, const KilnInstance *owner, const char *name)
{
    const char *slash = trainer->resumed_from != NULL ? strrchr(trainer->resumed_from, '/') : NULL;
    KilnText here = { 0 }, there = { 0 }, unfinished = { 0 };
    bool found = false;

    if (trainer->run_dir != NULL && strchr(name, '/') == NULL && name[0] != '.') {
        kiln_text_printf(&here, "%s/checkpoints/%s", trainer->run_dir, name);
        kiln_text_printf(&unfinished, "%s/checkpoints/" KILN_CHECKPOINT_UNFINISHED,
                         trainer->run_dir);
        found = !here.failed && kiln_is_dir(here.data);
    }
    if (!found && slash != NULL && here.length > 0 && !unfinished.failed) {
        kiln_text_append_n(&there, trainer->resumed_from,
                           (size_t)(slash - trainer->resumed_from) + 1);
        kiln_text_append(&there, name);
        found = !there.failed && kiln_is_dir(there.data) &&
                kiln_checkpoint_clone(there.data, unfinished.data, true, NULL) >= 0 &&
                rename(unfinished.data, here.data) == 0;
    }
    kiln_text_release(&here);
    kiln_text_release(&there);
    kiln_text_release(&unfinished);
    return found && kiln_save_requests_own(&trainer->saves, owner, name);
}
