/* Shows how far work outside of a run is, and passes on a request to stop. */
#ifndef KILN_CLI_SCREEN_WORK_PROGRESS_H
#define KILN_CLI_SCREEN_WORK_PROGRESS_H

#include "kiln/trainer.h"

/* What takes more than two seconds is shown: on a terminal as a bar with the rate and the time
 * left, else as a line every ten seconds. */
typedef struct KilnWorkProgress {
    KilnConsole console;
    const volatile int *stop; /* the signal that requests a stop; 0: none */
    const char *what;         /* NULL: nothing is under way */
    double since, shown;      /* when it began and was shown last; shown 0: not yet */
} KilnWorkProgress;

/* Show progress on standard error, and catch the signals that request a stop. */
KilnWorkProgress kiln_work_progress_open(void);
/* KilnPoll.poll; `ctx` is the progress. */
bool kiln_work_progress_poll(void *ctx, const char *what, int64_t done, int64_t total);
/* Clear what the terminal shows. */
void kiln_work_progress_close(KilnWorkProgress *progress);

#endif
