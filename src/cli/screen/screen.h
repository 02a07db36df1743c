/* What all commands share: the standard streams, signals, error messages and exit statuses. */
#ifndef KILN_CLI_SCREEN_SCREEN_H
#define KILN_CLI_SCREEN_SCREEN_H

#include <stdio.h>

#include "base/page.h"
#include "kiln/embed/config.h"
#include "kiln/trainer.h"

/* Call first: opens standard streams that the caller closed, so that no file of a run gets their
 * numbers and the output. */
void kiln_screen_open(void);
/* Call last: flushes and closes standard output. Returns the exit status of the process: `status`,
 * or 1 after a message when a write failed. When the reader is gone (`| head`) it is 128 + SIGPIPE
 * without a message. */
int kiln_screen_close(const char *command, int status);
/* Fill err with "cannot write standard output: <strerror(errno)>". */
KilnStatus kiln_screen_write_error(KilnError *err);
/* A console over `stream`. It counts as a terminal unless TERM is "dumb", and has colours unless
 * NO_COLOR is set. */
KilnConsole kiln_screen_console(FILE *stream);
/* The same for a run with --quiet and --verbose: fills `console` and returns it, or NULL for
 * silence. */
const KilnConsole *kiln_screen_run_console(FILE *stream, bool quiet, bool verbose,
                                           KilnConsole *console);
/* An empty page for stdout, as wide as the terminal, or 100 columns when stdout is none. */
KilnPage kiln_screen_page(void);
/* Print the page on stdout and release it. Returns the exit status of the process: 0, or 1 after a
 * message when memory ran out. */
int kiln_screen_print(KilnPage *page);
/* Requests that signals make, for a run's KilnRunEnv. */
typedef struct KilnSignals {
    const volatile int *stop; /* the number of the signal that requests a stop; 0: none */
    volatile int *save;       /* 1: SIGUSR1 requests a checkpoint */
} KilnSignals;
/* Install the signal handlers. SIGINT, SIGTERM, SIGHUP, SIGXCPU and SIGPIPE request a stop; a
 * second one of the first three ends the process at once. SIGUSR1 requests a checkpoint. The run
 * polls the requests between batches: train/loop/signals.c. */
KilnSignals kiln_screen_catch_signals(void);
/* The same for a job of a batch system: SIGUSR1, too, requests a stop (the time limit is near), and
 * only the first signal counts. The system sends some twice, and ends the job by SIGKILL itself. */
KilnSignals kiln_screen_catch_batch_signals(void);
/* 128 + the signal that requested a stop; 0: none. */
int kiln_screen_signal_status(void);
/* Print "train: error: MESSAGE" on stderr ("train" is `command`), with the source line and a caret
 * below the position. Borrows err->origin: print before the config is freed. */
void kiln_screen_error(const char *command, const KilnError *err);
/* Print the first hundred errors, and how many there are. */
void kiln_screen_errors(const char *command, const KilnErrors *errors);
/* The exit status of the process: 0, 1 (the command failed) or 2 (wrong command line). */
int kiln_screen_exit_status(KilnStatus status);
/* The same for a command that ends with `status`; prints the error, unless err is empty because it
 * has been printed. */
int kiln_screen_result(const char *command, KilnStatus status, const KilnError *err);
/* The exit status of a run that had started: 3 (a number that is not finite), 4 (reading or writing
 * failed), 5 (out of memory), 1 (anything else). */
int kiln_screen_run_status(KilnStatus status);

#endif
