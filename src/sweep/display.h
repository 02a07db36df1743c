/* What a sweep shows: a status area that is redrawn on a terminal, a line for each job
 * that ends, and the table that closes it. */
#ifndef KILN_SWEEP_DISPLAY_H
#define KILN_SWEEP_DISPLAY_H

#include "sweep/state.h"

typedef struct KilnDisplay {
    const KilnSweep *sweep;
    KilnConsole console;
    size_t at_once; /* jobs at a time */
    size_t to_run;  /* by this process */
    size_t ended;
    double drawn; /* by kiln_clock */
    int lines;    /* of the status area that stand on the screen */
    KilnArena arena;
    const char **keys; /* in which jobs differ */
    KilnText text;
} KilnDisplay;

/* Nothing is shown when `console` is NULL. */
void kiln_display_init(KilnDisplay *display, const KilnSweep *sweep, const KilnConsole *console,
                       size_t at_once);
/* Erases the status area. */
void kiln_display_release(KilnDisplay *display);
/* Redraw the status area unless that was done a moment ago. */
void kiln_display_tick(KilnDisplay *display);
/* A job ended; `seconds` is what it took, `log` the end of its log (NULL: none). */
void kiln_display_ended(KilnDisplay *display, size_t number, double seconds, const char *log);
KILN_PRINTF(2, 3) void kiln_display_print(KilnDisplay *display, const char *format, ...);
/* The ranked table, the jobs that failed, and where everything is. */
void kiln_display_close(KilnDisplay *display);

#endif
