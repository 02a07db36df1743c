/* The display of a sweep: a status area that is redrawn on a terminal, a line for each job that
 * ends, and the ranking at the end. */
#ifndef KILN_SWEEP_DISPLAY_H
#define KILN_SWEEP_DISPLAY_H

#include "sweep/sweep_state.h"

typedef struct KilnDisplay {
    const KilnSweep *sweep;
    KilnConsole console;
    size_t at_once; /* jobs that run at a time */
    size_t to_run;  /* jobs of this process */
    size_t ended;
    double started, drawn; /* by kiln_clock */
    int lines;             /* of the status area on the screen */
    KilnArena arena;
    const char **keys; /* in which jobs differ */
    KilnText text;
} KilnDisplay;

/* `console` NULL: show nothing. */
void kiln_display_init(KilnDisplay *display, const KilnSweep *sweep, const KilnConsole *console,
                       size_t at_once);
/* Erases the status area. */
void kiln_display_release(KilnDisplay *display);
/* Redraw the status area, at most every 0.2 s. */
void kiln_display_tick(KilnDisplay *display);
/* Show that a job ended, after `seconds`; `log`: the end of its log (NULL: none). */
void kiln_display_ended(KilnDisplay *display, size_t number, double seconds, const char *log);
/* Show what happened to a job, with its values. */
void kiln_display_note(KilnDisplay *display, size_t number, const char *what);
KILN_PRINTF(2, 3) void kiln_display_print(KilnDisplay *display, const char *format, ...);
/* Append the status area to the text. */
void kiln_display_area(KilnDisplay *display);
/* Parts of lines: "3.2 s", or "2 min 5 s"; the overrides in which jobs differ, "  lr=0.1
 * model=mlp". */
void kiln_display_time(KilnText *text, double seconds);
void kiln_display_values(KilnDisplay *display, const KilnJob *job);
/* Show the ranking, the failed jobs, the folder and the next step. */
void kiln_display_close(KilnDisplay *display);

#endif
