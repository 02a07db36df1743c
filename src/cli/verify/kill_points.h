/* Moments of a run at which verify-resume kills it. */
#ifndef KILN_CLI_VERIFY_KILL_POINTS_H
#define KILN_CLI_VERIFY_KILL_POINTS_H

#include "kiln/rng.h"
#include "train/report/live_page.h"

typedef enum KilnMoment {
    KILN_MOMENT_ANY,        /* uniform over the time of the run */
    KILN_MOMENT_EPOCH,      /* in an epoch of training */
    KILN_MOMENT_VALIDATION, /* while it validates */
    KILN_MOMENT_SAVING,     /* while a checkpoint is written */
    KILN_MOMENT_GROUP,      /* gradients wait for the rest of their group */
    KILN_MOMENT_FIRST,      /* before the first checkpoint */
    KILN_MOMENT_TEST,       /* in the closing test */
    KILN_MOMENT_AGAIN,      /* anywhere, and again while it is resumed */
    KILN_MOMENT_COUNT
} KilnMoment;

/* "in an epoch", ... */
const char *kiln_moment_name(KilnMoment moment);

/* What an undisturbed run was seen to do: how long it took, until it trained and until it had
 * its first checkpoint, in seconds; steps; and which moments there are. */
typedef struct KilnCourse {
    double seconds, trains, saved;
    int64_t steps;
    bool has[KILN_MOMENT_COUNT];
} KilnCourse;

/* When to kill: after so long, or when the page says so behind some step. */
typedef struct KilnAim {
    KilnMoment moment;
    double after; /* seconds; < 0: as the page says */
    int64_t step;
} KilnAim;

/* Draw the aim of a kill. */
KilnAim kiln_aim_draw(KilnMoment moment, const KilnCourse *course, KilnRng *rng);
/* Whether a run that began `seconds` ago and whose page says `live` (NULL: none yet) is where
 * it was to be killed. */
bool kiln_aim_reached(const KilnAim *aim, double seconds, const KilnLive *live);
/* Note what the page of the undisturbed run says now. */
void kiln_course_note(KilnCourse *course, double seconds, const KilnLive *live);

#endif
