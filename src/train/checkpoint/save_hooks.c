/* Calls the components that write files of their own into a checkpoint. */
#include "train/checkpoint/save_hooks.h"

#include <stdlib.h>

#include "base/call.h"
#include "base/system/file.h"
#include "train/checkpoint/checkpoint.h"

/* Have the datamodule write what it fitted into a folder of the unfinished one, which is removed if
 * it stays empty. */
static KilnStatus save_preprocessing(KilnTrainer *trainer, const char *unfinished, KilnError *err)
{
    KilnInstance *datamodule = trainer->datamodule;
    const KilnDataModuleOps *ops = kiln_instance_component(datamodule)->ops.datamodule;
    char *folder;

    if (ops->save_preprocessing == NULL)
        return KILN_OK;
    folder = kiln_path_join(unfinished, KILN_CHECKPOINT_FITTED);
    KilnStatus status = folder != NULL ? kiln_dir_make(folder, err) : kiln_error_nomem(err, 1);
    if (status >= 0)
        status = KILN_CALLED(datamodule, "save_preprocessing",
                             ops->save_preprocessing(datamodule, folder, err), err);
    if (status >= 0 && kiln_dir_is_empty(folder))
        status = kiln_path_remove(folder, err);
    free(folder);
    return status;
}

KilnStatus kiln_save_hooks_call(KilnTrainer *trainer, const KilnSnapshot *snapshot, KilnError *err)
{
    char *unfinished = kiln_path_join(trainer->run_dir, "checkpoints/" KILN_CHECKPOINT_UNFINISHED);
    KilnStatus status = unfinished != NULL ? kiln_path_remove(unfinished, err)
                                           : kiln_error_nomem(err, 1);

    if (status >= 0)
        status = kiln_dir_make(unfinished, err);
    if (status >= 0)
        status = save_preprocessing(trainer, unfinished, err);
    for (size_t i = 0; i < trainer->hooks.n_all && status >= 0; i++) {
        KilnInstance *who = trainer->hooks.all[i].instance;
        const KilnCallbackOps *ops = trainer->hooks.all[i].ops;

        if (ops->on_save_checkpoint == NULL || (snapshot->weights_only && who != trainer->module))
            continue;
        status = KILN_CALLED(who, "on_save_checkpoint",
                             ops->on_save_checkpoint(who, trainer, unfinished, err), err);
        if (status < 0)
            (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(who));
    }
    free(unfinished);
    return status;
}
