/* Moments of a run at which verify-resume kills it. */
#ifndef KILN_CLI_VERIFY_KILL_POINTS_H
#define KILN_CLI_VERIFY_KILL_POINTS_H

#include "kiln/rng.h"
#include "train/report/live_page.h"

typedef enum KilnKillPoint {
    KILN_KILL_ANY,        /* uniform over the time of the run */
    KILN_KILL_EPOCH,      /* in an epoch of training */
    KILN_KILL_VALIDATION, /* while it validates */
    KILN_KILL_SAVING,     /* while a checkpoint is written */
    KILN_KILL_GROUP,      /* gradients wait for the rest of their group */
    KILN_KILL_FIRST,      /* before the first checkpoint */
    KILN_KILL_TEST,       /* in the closing test */
    KILN_KILL_AGAIN,      /* anywhere, and again while it is resumed */
    KILN_KILL_COUNT
} KilnKillPoint;

/* "in an epoch", ... */
const char *kiln_kill_point_name(KilnKillPoint point);

/* What an undisturbed run was seen to do: how long it took, until it trained and until it had
 * its first checkpoint, in seconds; steps; and which moments there are. */
typedef struct KilnRunProfile {
    double seconds, trains, saved;
    int64_t steps;
    bool has[KILN_KILL_COUNT];
} KilnRunProfile;

/* When to kill: after so long, or when the page says so behind some step. */
typedef struct KilnKillTarget {
    KilnKillPoint point;
    double after; /* seconds; < 0: as the page says */
    int64_t step;
} KilnKillTarget;

/* Draw the aim of a kill. */
KilnKillTarget kiln_kill_target_draw(KilnKillPoint point, const KilnRunProfile *profile,
                                     KilnRng *rng);
/* Whether a run that began `seconds` ago and whose page says `live` (NULL: none yet) is where
 * it was to be killed. */
bool kiln_kill_target_reached(const KilnKillTarget *target, double seconds, const KilnLive *live);
/* Note what the page of the undisturbed run says now. */
void kiln_run_profile_note(KilnRunProfile *profile, double seconds, const KilnLive *live);

#endif
