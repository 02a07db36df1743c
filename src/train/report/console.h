/* Lines for the user and train.log, above a status line that stays below. From any thread, but for
 * opening and releasing. */
#ifndef KILN_TRAIN_REPORT_CONSOLE_H
#define KILN_TRAIN_REPORT_CONSOLE_H

#include <pthread.h>
#include <stdio.h>

#include "base/text.h"
#include "kiln/trainer.h"

typedef struct KilnOutput {
    KilnConsole console; /* write is never NULL */
    FILE *log;           /* train.log; NULL: lines are kept in `early` */
    KilnText early;      /* lines from before the run folder, with their time */
    KilnText status;     /* what stands below; empty: nothing */
    KilnText line;       /* scratch */
    bool log_failed;
    bool echoed;          /* the terminal may have written where the cursor is */
    pthread_mutex_t lock; /* of all that is below the console */
} KilnOutput;

/* `console` NULL: silent. */
void kiln_output_init(KilnOutput *output, const KilnConsole *console);
/* Closes the log. Accepts a zeroed struct. */
void kiln_output_release(KilnOutput *output);
/* Append lines to `path` from now on, those printed before first. */
KILN_NODISCARD KilnStatus kiln_output_open_log(KilnOutput *output, const char *path,
                                               KilnError *err);
/* One line (without \n); the text may hold several. */
void kiln_output_print(KilnOutput *output, const char *format, ...) KILN_PRINTF(2, 3);
void kiln_output_vprint(KilnOutput *output, const char *format, va_list args);
/* A line that answers a key: what the terminal echoed of it (^C) goes. */
void kiln_output_notice(KilnOutput *output, const char *text);
/* The same for the log, and for a screen that wants to see more. */
void kiln_output_detail(KilnOutput *output, const char *format, ...) KILN_PRINTF(2, 3);
/* The same text twice: with escape sequences for a screen with colours, and without. */
void kiln_output_styled(KilnOutput *output, const char *plain, const char *styled);
/* "run folder  outputs/...": the left column dim where there are colours; never
 * wrapped, for people copy it. */
void kiln_output_pair(KilnOutput *output, const char *left, const char *right);
/* The same for text to be read: its words are wrapped below each other. */
void kiln_output_words(KilnOutput *output, const char *left, const char *right);
/* A line for the log alone. */
void kiln_output_log(KilnOutput *output, const char *text);
/* What stands below all lines, itself of one or more; NULL clears. */
void kiln_output_status_line(KilnOutput *output, const char *text);

#endif
