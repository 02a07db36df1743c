/* What the caller asks of a run while it runs: to stop, or to save a checkpoint and go on. Signal
 * handlers only set numbers; they are looked at between two batches of every loop, and while it
 * waits for data, when all of the state is whole. */
#include "train/loop/signals.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "train/optim/averaged_weights.h"
#include "train/run/run_folder.h"
#include "train/trainer.h"

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
        trainer->state.interrupted = true;
    return trainer->state.interrupted;
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

    if (trainer->newest.name[0] != '\0' &&
        kiln_position_equal(&trainer->newest.position, &trainer->at)) {
        snprintf(name, sizeof(name), "%s", trainer->newest.name);
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
void kiln_trainer_poll_save(KilnTrainer *trainer)
{
    KilnError err = { 0 };

    if (trainer->env->save != NULL && *trainer->env->save != 0) {
        *trainer->env->save = 0;
        trainer->save_signal.pending = true;
    }
    if (!trainer->save_signal.pending || trainer->save_signal.deferred)
        return;
    trainer->save_signal.pending = false;
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
                          trainer->newest.name);
}

KilnStatus kiln_trainer_next_batch(KilnTrainer *trainer, KilnLoader *loader, KilnBatch *ret,
                                   KilnError *err)
{
    KilnStatus status;

    do {
        kiln_trainer_poll_save(trainer);
        status = kiln_loader_next(loader, ret, err);
    } while (status == KILN_E_INTERRUPTED && !kiln_trainer_interrupted(trainer));
    return status;
}
