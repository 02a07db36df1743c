/* Prints lines to the user's console and to train.log, above a status line. Any thread may print;
 * one thread opens and releases. */
#ifndef KILN_TRAIN_REPORT_CONSOLE_H
#define KILN_TRAIN_REPORT_CONSOLE_H

#include <pthread.h>
#include <stdio.h>

#include "base/text.h"
#include "kiln/trainer.h"

typedef struct KilnOutput {
    KilnConsole console; /* write is never NULL */
    FILE *log;           /* train.log; NULL: not open yet */
    KilnText early;      /* lines printed before the log was open, with their time */
    KilnText status;     /* the status line; empty: none */
    KilnText line;       /* scratch */
    bool log_failed;
    bool echoed;          /* the terminal may have echoed a key at the cursor */
    pthread_mutex_t lock; /* of all fields but the console */
} KilnOutput;

/* `console` NULL: silent. */
void kiln_output_init(KilnOutput *output, const KilnConsole *console);
/* Closes the log. Accepts a zeroed struct. */
void kiln_output_release(KilnOutput *output);
/* Open the log: append the lines printed so far to `path`, and all later ones. */
KILN_NODISCARD KilnStatus kiln_output_open_log(KilnOutput *output, const char *path,
                                               KilnError *err);
/* Print a line (without \n); the text may contain several. */
void kiln_output_print(KilnOutput *output, const char *format, ...) KILN_PRINTF(2, 3);
void kiln_output_vprint(KilnOutput *output, const char *format, va_list args);
/* Print a line in answer to a key, and erase the terminal's echo of the key (^C). */
void kiln_output_notice(KilnOutput *output, const char *text);
/* Print a line to the log, and to the screen if it is verbose. */
void kiln_output_detail(KilnOutput *output, const char *format, ...) KILN_PRINTF(2, 3);
/* Print a text given twice: plain, and with escape sequences for a screen with colours. */
void kiln_output_styled(KilnOutput *output, const char *plain, const char *styled);
/* Print "run folder  outputs/..." with a dim left column, if there are colours. Never wrapped, so
 * that it can be copied. */
void kiln_output_pair(KilnOutput *output, const char *left, const char *right);
/* The same with the words of `right` wrapped. */
void kiln_output_words(KilnOutput *output, const char *left, const char *right);
/* Print a line to the log only. */
void kiln_output_log(KilnOutput *output, const char *text);
/* Set the status line below all lines, which may itself have several; NULL clears it. */
void kiln_output_status_line(KilnOutput *output, const char *text);

#endif
