/* What the commands share of the screen and the process: the console, signals,
 * and the printing of errors. */
#ifndef KILN_CLI_SCREEN_SCREEN_H
#define KILN_CLI_SCREEN_SCREEN_H

#include <stdio.h>

#include "base/page.h"
#include "kiln/config.h"
#include "kiln/trainer.h"

/* A console over `stream`: a terminal when it is one and TERM is not "dumb";
 * colours unless NO_COLOR is set. */
KilnConsole kiln_screen_console(FILE *stream);
/* The same for a run, as --quiet and --verbose want it; NULL: silent. `console` is filled. */
const KilnConsole *kiln_screen_run_console(FILE *stream, bool quiet, bool verbose,
                                           KilnConsole *console);
/* An empty page for stdout, as wide as the terminal that it is, 100 columns elsewhere. */
KilnPage kiln_screen_page(void);
/* Print the page on stdout and release it; says so when memory ran out meanwhile.
 * The exit status of the process, 0 or 1. */
int kiln_screen_print(KilnPage *page);
/* What signals ask of a run, for its KilnRunEnv. */
typedef struct KilnSignals {
    const volatile int *stop; /* the number of the signal that asks it to stop */
    volatile int *save;       /* SIGUSR1 came */
} KilnSignals;
/* SIGINT, SIGTERM, SIGHUP, SIGXCPU and SIGPIPE ask it to stop; a second one of the first three
 * ends the process at once. SIGUSR1 asks it to save and go on. */
KilnSignals kiln_screen_catch_signals(void);
/* 128 + the signal that came, 0 when none did. */
int kiln_screen_signal_status(void);
/* Have the OpenMP library's idle threads give way soon, unless the user has set
 * how they wait: starts the program anew with that setting, or returns when it
 * is there. */
void kiln_screen_settle_threads(char **argv);
/* "train: error: MESSAGE" on stderr, "train" being `command`, with the line that it is
 * about and a caret below the place. err->origin must still be there: print before
 * the config is freed. */
void kiln_screen_error(const char *command, const KilnError *err);
/* The same for each of several, the first hundred of them, and how many there are. */
void kiln_screen_errors(const char *command, const KilnErrors *errors);
/* 0, 1 (the user's mistake) or 2 (wrong command line). */
int kiln_screen_exit_status(KilnStatus status);
/* The same for a run that had begun: 3 (a number that is not finite), 4 (reading or writing
 * failed), 5 (out of memory), 1 (anything else). */
int kiln_screen_run_status(KilnStatus status);

#endif
