/* Shows the progress of preparations that take more than two seconds. */
#include "train/run/preparation.h"

#include <string.h>

#include "base/system/file.h"
#include "kiln/tools/clock.h"
#include "train/trainer.h"

static const double quiet_seconds = 2.0, refresh_seconds = 0.2;

/* Show a status line on a terminal; else print one line, once. */
static void show(KilnTrainer *trainer, int64_t done, int64_t total, double now)
{
    KilnPreparation *preparation = &trainer->preparation;
    const bool terminal = trainer->output.console.terminal;
    const double part = total > 0 ? (double)done / (double)total : 0.0;
    char number[KILN_UNIT_TEXT], left[KILN_UNIT_TEXT];
    KilnText text = { 0 };

    if (total > 0)
        kiln_text_printf(&text, "%s: %d %% of %s", preparation->what, (int)(100.0 * part),
                         kiln_commas_text(total, number));
    else
        kiln_text_printf(&text, "%s: %s so far", preparation->what, kiln_commas_text(done, number));
    if (part > 0.0 && terminal)
        kiln_text_printf(&text, ", %s left",
                         kiln_clock_text((now - preparation->since) * (1.0 / part - 1.0), left));
    if (text.data != NULL && terminal)
        kiln_output_status_line(&trainer->output, text.data);
    else if (text.data != NULL && preparation->shown == 0.0)
        kiln_output_print(&trainer->output, "%s", text.data);
    kiln_text_release(&text);
}

bool kiln_preparation_poll(void *ctx, const char *what, int64_t done, int64_t total)
{
    KilnTrainer *trainer = ctx;
    KilnPreparation *preparation = &trainer->preparation;
    const double now = kiln_clock();

    if (preparation->what == NULL || strcmp(preparation->what, what) != 0) {
        kiln_preparation_end(trainer);
        *preparation = (KilnPreparation) { .what = what, .since = now };
    }
    if (total > 0 && done >= total) {
        kiln_preparation_end(trainer);
    } else if (now - preparation->since > quiet_seconds &&
               now - preparation->shown > refresh_seconds) {
        show(trainer, done, total, now);
        preparation->shown = now;
    }
    return !kiln_ranks_several(&trainer->ranks) && trainer->env->stop != NULL &&
           *trainer->env->stop != 0;
}

void kiln_preparation_end(KilnTrainer *trainer)
{
    if (trainer->preparation.shown > 0.0)
        kiln_output_status_line(&trainer->output, NULL);
    trainer->preparation = (KilnPreparation) { 0 };
}
