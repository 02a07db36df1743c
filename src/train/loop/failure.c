/* Ends a failed run: saves a checkpoint if the state is whole, and writes log and summary with the
 * reason. Further errors on the way must not hide that reason. */
#include "train/loop/failure.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "train/report/run_messages.h"
#include "train/report/summary.h"
#include "train/run/run_journal.h"
#include "train/trainer.h"

/* Append a line to the message, as far as it fits. */
static void append_line(KilnError *why, const char *text)
{
    const size_t length = strlen(why->text), room = sizeof(why->text) - length - 1;
    const size_t size = strlen(text);

    if (room < 2)
        return;
    why->text[length] = '\n';
    memcpy(why->text + length + 1, text, size < room - 1 ? size : room - 1);
    why->text[length + 1 + (size < room - 1 ? size : room - 1)] = '\0';
}

/* Whether training has progressed since the newest checkpoint, with valid parameters. After
 * training, the parameters may be those of another checkpoint. */
static bool has_progress_to_save(const KilnTrainer *trainer)
{
    return trainer->run_dir != NULL && !trainer->state.params_invalid &&
           trainer->options.trainer->enable_checkpointing && trainer->phase != KILN_PHASE_TEST &&
           trainer->at.batches > trainer->live.first_batch && !kiln_trainer_is_saved(trainer, true);
}

/* Save it; append to the message if that fails, too. */
static void save_progress(KilnTrainer *trainer, KilnError *why)
{
    KilnError err = { 0 };
    char text[KILN_ERROR_TEXT + 64];

    trainer->state.failed = true;
    kiln_save_requests_use_reserve(&trainer->saves);
    if (kiln_trainer_save_here(trainer, true, &err) >= 0)
        return;
    snprintf(text, sizeof(text), "training since the last checkpoint is lost: %s", err.text);
    if (strstr(why->text, err.text) == NULL)
        append_line(why, text);
}

/* Append which checkpoint is good, and how to resume from it. */
static void append_next_step(const KilnTrainer *trainer, KilnError *why)
{
    KilnText text = { 0 };
    char last[256];

    if (trainer->run_dir == NULL ||
        (trainer->timing.train_start <= 0.0 && trainer->resumed_from == NULL))
        return;
    if (kiln_run_link(trainer, "last", last, sizeof(last))) {
        kiln_text_printf(&text, "the last good checkpoint is %s/checkpoints/%s; resume with: ",
                         kiln_path_near(trainer->run_dir), last);
        kiln_run_resume_command(trainer, &text);
    } else if (trainer->resumed_from != NULL) {
        kiln_text_printf(&text, "the last good checkpoint is %s", trainer->resumed_from);
    } else {
        kiln_text_append(&text, "no checkpoint was saved");
    }
    if (text.data != NULL && !text.failed)
        append_line(why, text.data);
    kiln_text_release(&text);
}

void kiln_failure_close(KilnTrainer *trainer, KilnError *why)
{
    kiln_ranks_close(&trainer->ranks); /* the others end now, too */
    kiln_hooks_exception(trainer, why);
    if (has_progress_to_save(trainer))
        save_progress(trainer, why);
    append_next_step(trainer, why);
    (void)!kiln_loggers_flush(trainer, NULL);
    (void)!KILN_CALL(trainer, teardown, NULL);
    (void)!kiln_save_requests_finish(trainer, NULL);
    (void)!kiln_loggers_close(trainer, "failed", NULL);
    kiln_run_journal_end(trainer, "failed", why->text);
    if (trainer->run_dir != NULL)
        (void)!kiln_summary_write(trainer, "failed", why->text, NULL);
    kiln_output_status_line(&trainer->output, NULL);
    kiln_output_log(&trainer->output, why->text);
}
