/* The live runs of this user on this machine, as `kiln top` shows them. */
#ifndef KILN_CLI_SCREEN_TOP_VIEW_H
#define KILN_CLI_SCREEN_TOP_VIEW_H

#include "base/text.h"
#include "kiln/trainer.h"

/* A live run. */
typedef struct KilnTopRun KilnTopRun;

/* The runs that are live now, jobs of a sweep together; owned by the caller (free). */
KILN_NODISCARD KilnStatus kiln_top_collect(KilnTopRun **ret, size_t *ret_count, KilnError *err);
/* Append two lines for each run: its folder and overrides, and its progress. At most `rows` lines
 * (0: any number). */
void kiln_top_draw(KilnText *text, const KilnTopRun *runs, size_t n, const KilnConsole *console,
                   int rows);
/* Append the runs as JSON. */
void kiln_top_json(KilnText *text, const KilnTopRun *runs, size_t n);

#endif
