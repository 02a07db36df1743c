/* What `kiln top` shows: the live runs of this user on this machine. */
#ifndef KILN_CLI_SCREEN_TOP_VIEW_H
#define KILN_CLI_SCREEN_TOP_VIEW_H

#include "base/text.h"
#include "kiln/trainer.h"

/* A run that is there. */
typedef struct KilnTopRun KilnTopRun;

/* All that are there now, sweeps' jobs together; owned by the caller (kiln_top_free). */
KILN_NODISCARD KilnStatus kiln_top_collect(KilnTopRun **ret, size_t *ret_count, KilnError *err);
void kiln_top_free(KilnTopRun *runs);
/* Append them as they are shown: for each run its folder, what was asked for, and a line of
 * progress; at most `rows` lines (0: any number). */
void kiln_top_draw(KilnText *text, const KilnTopRun *runs, size_t n, const KilnConsole *console,
                   int rows);
/* Append them as JSON. */
void kiln_top_json(KilnText *text, const KilnTopRun *runs, size_t n);

#endif
