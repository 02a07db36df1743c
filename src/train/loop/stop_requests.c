/* What the caller asks of a run while it runs: to stop, or to save a checkpoint and go on. Signal
 * handlers only set numbers; they are looked at between two batches of every loop, and while it
 * waits for data, when all of the state is whole. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "train/run/run_folder.h"

const char *kiln_signal_name(int number)
{
    switch (number) {
    case SIGINT:
        return "SIGINT";
    case SIGTERM:
        return "SIGTERM";
    case SIGHUP:
        return "SIGHUP";
    case SIGXCPU:
        return "SIGXCPU";
    case SIGPIPE:
        return "SIGPIPE";
    default:
        return NULL;
    }
}

bool kiln_trainer_interrupted(KilnTrainer *trainer)
{
    if (trainer->env->stop != NULL && *trainer->env->stop != 0)
        trainer->interrupted = true;
    return trainer->interrupted;
}

/* Within a group of batches there are several moments of one step: a checkpoint that somebody
 * keeps of an earlier one stays as it is. */
static void name_here(const KilnTrainer *trainer, char *name, size_t size)
{
    kiln_trainer_checkpoint_name(trainer, name, size);
    const size_t length = strlen(name);
    for (int i = 1; trainer->at.in_group > 0 && kiln_trainer_would_replace(trainer, NULL, name);
         i++)
        snprintf(name + length, size - length, "-v%d", i);
}

KilnStatus kiln_trainer_save_here(KilnTrainer *trainer, KilnError *err)
{
    char name[KILN_CHECKPOINT_NAME];
    KilnStatus status = KILN_OK;

    if (trainer->saved_name[0] != '\0' && kiln_position_equal(&trainer->saved, &trainer->at)) {
        snprintf(name, sizeof(name), "%s", trainer->saved_name);
    } else {
        name_here(trainer, name, sizeof(name));
        status = kiln_trainer_save(trainer, NULL, name, 0, err);
    }
    if (status >= 0)
        status = kiln_trainer_link(trainer, "last", name, err);
    return status >= 0 ? kiln_save_requests_finish(trainer, err) : status;
}

/* Within an evaluation the shadow stands in the weights' place; a checkpoint is of both as
 * training has them. */
static KilnStatus save_now(KilnTrainer *trainer, KilnError *err)
{
    const bool shown = trainer->averaged != NULL && trainer->phase != KILN_PHASE_FIT;

    if (shown)
        kiln_averaged_hide(trainer->averaged);
    KilnStatus status = kiln_trainer_save_here(trainer, err);
    if (shown)
        kiln_averaged_show(trainer->averaged);
    return status;
}

/* A checkpoint that can't be saved is no reason to stop: whoever asked wanted more safety, not
 * less. */
void kiln_trainer_poll(KilnTrainer *trainer)
{
    KilnError err = { 0 };

    if (trainer->env->save != NULL && *trainer->env->save != 0) {
        *trainer->env->save = 0;
        trainer->save_later = true;
    }
    if (!trainer->save_later || trainer->save_deferred)
        return;
    trainer->save_later = false;
    if (!trainer->options.trainer->enable_checkpointing)
        kiln_output_print(&trainer->output, "asked to save: trainer.enable_checkpointing is off");
    else if (trainer->run_dir == NULL || trainer->phase == KILN_PHASE_TEST)
        kiln_output_print(&trainer->output, "asked to save: there is nothing new to save");
    else if (save_now(trainer, &err) < 0)
        kiln_output_print(&trainer->output, "warning: asked to save: %s; training goes on",
                          err.text);
    else
        kiln_output_print(&trainer->output,
                          "asked to save: checkpoints/%s is saved, training "
                          "goes on",
                          trainer->saved_name);
}

KilnStatus kiln_trainer_next(KilnTrainer *trainer, KilnLoader *loader, KilnBatch *ret,
                             KilnError *err)
{
    KilnStatus status;

    do {
        kiln_trainer_poll(trainer);
        status = kiln_loader_next(loader, ret, err);
    } while (status == KILN_E_INTERRUPTED && !kiln_trainer_interrupted(trainer));
    return status;
}
