/* Requests of the caller to a running run: to stop (SIGTERM, SIGINT, ...), or to save a checkpoint
 * and continue. Signal handlers of the caller only set the numbers KilnRunEnv.stop and save. Every
 * loop polls them between batches and while it waits for data, when the state is whole; the stop
 * monitor (train/loop/stop_monitor.c) reports a request to stop before that. */
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
    case SIGUSR1:
        return "SIGUSR1";
    default:
        return NULL;
    }
}

bool kiln_trainer_interrupted(KilnTrainer *trainer)
{
    /* Several ranks stop where they agree to (train/ranks/rounds.c). */
    if (!kiln_ranks_several(&trainer->ranks) && trainer->env->stop != NULL &&
        *trainer->env->stop != 0)
        trainer->state.interrupted = true;
    return trainer->state.interrupted;
}

/* The checkpoint name of the current position. Within a group of batches, several positions have
 * the same step: a number keeps a checkpoint of an earlier one from being replaced. */
static void name_position(const KilnTrainer *trainer, char *name, size_t size)
{
    kiln_trainer_checkpoint_name(trainer, name, size);
    const size_t length = strlen(name);
    for (int i = 1; trainer->at.in_group > 0 && kiln_trainer_would_replace(trainer, NULL, name);
         i++)
        snprintf(name + length, size - length, "-v%d", i);
}

bool kiln_trainer_is_saved(const KilnTrainer *trainer, bool to_resume)
{
    const KilnNewestCheckpoint *newest = &trainer->newest;

    return newest->name[0] != '\0' && kiln_position_equal(&newest->position, &trainer->at) &&
           !(to_resume && newest->weights_only);
}

KilnStatus kiln_trainer_save_here(KilnTrainer *trainer, bool to_resume, KilnError *err)
{
    char name[KILN_CHECKPOINT_NAME];
    KilnStatus status = KILN_OK;

    if (kiln_trainer_is_saved(trainer, to_resume)) {
        snprintf(name, sizeof(name), "%s", trainer->newest.name);
    } else {
        name_position(trainer, name, sizeof(name));
        status = kiln_trainer_save(trainer, NULL, name, 0, err);
    }
    if (status >= 0)
        status = kiln_trainer_link(trainer, "last", name, err);
    return status >= 0 ? kiln_save_requests_finish(trainer, err) : status;
}

/* Save, with the weights and their average as training has them: an evaluation swaps the two. */
static KilnStatus save_now(KilnTrainer *trainer, KilnError *err)
{
    KilnAveragedWeights *swapped = trainer->phase != KILN_PHASE_FIT ? trainer->averaged : NULL;

    kiln_averaged_swap_out(swapped);
    KilnStatus status = kiln_trainer_save_here(trainer, true, err);
    kiln_averaged_swap_in(swapped);
    return status;
}

/* A failure to save is only reported: the request was for more safety, not for a stop. */
void kiln_trainer_poll_save(KilnTrainer *trainer)
{
    KilnError err = { 0 };

    if (trainer->env->save != NULL && *trainer->env->save != 0) {
        *trainer->env->save = 0;
        trainer->save_signal.pending = true;
    }
    if (!trainer->save_signal.pending || trainer->save_signal.deferred ||
        kiln_trainer_rank(trainer) > 0) /* rank 0 will save */
        return;
    trainer->save_signal.pending = false;
    if (!trainer->options.trainer->enable_checkpointing)
        kiln_output_print(&trainer->output, "save requested: trainer.enable_checkpointing is off");
    else if (trainer->run_dir == NULL || trainer->phase == KILN_PHASE_TEST)
        kiln_output_print(&trainer->output, "save requested: there is nothing new to save");
    else if (save_now(trainer, &err) < 0)
        kiln_output_print(&trainer->output, "warning: save requested: %s; training continues",
                          err.text);
    else
        kiln_output_print(&trainer->output,
                          "save requested: checkpoints/%s is saved, training "
                          "continues",
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
