/* Chooses kill points, and tells when a run reaches them. */
#include "cli/verify/kill_points.h"

const char *kiln_kill_point_name(KilnKillPoint point)
{
    static const char *const names[] = {
        [KILN_KILL_ANY] = "at any time",
        [KILN_KILL_EPOCH] = "in an epoch",
        [KILN_KILL_VALIDATION] = "in validation",
        [KILN_KILL_SAVING] = "while saving",
        [KILN_KILL_GROUP] = "in a group of batches",
        [KILN_KILL_FIRST] = "before a checkpoint",
        [KILN_KILL_TEST] = "in the final test",
        [KILN_KILL_AGAIN] = "again when resumed",
    };

    return names[point];
}

KilnKillTarget kiln_kill_target_draw(KilnKillPoint point, const KilnRunProfile *profile,
                                     KilnRng *rng)
{
    const double share = (double)kiln_rng_uniform(rng);
    const double first = profile->saved > 0.0 ? profile->saved : profile->seconds;
    KilnKillTarget target = { .point = point, .after = -1.0 };

    if (point == KILN_KILL_ANY || point == KILN_KILL_AGAIN)
        target.after = share * profile->seconds;
    else if (point == KILN_KILL_FIRST)
        target.after = share * first;
    else
        target.step = (int64_t)(share * (double)profile->steps);
    return target;
}

static bool is_at(KilnKillPoint point, const KilnLiveSnapshot *live)
{
    switch (point) {
    case KILN_KILL_EPOCH:
        return live->at.phase == KILN_LIVE_FIT;
    case KILN_KILL_VALIDATION:
        return live->at.phase == KILN_LIVE_VALIDATE;
    case KILN_KILL_SAVING:
        return live->saving > 0;
    case KILN_KILL_GROUP:
        return live->at.phase == KILN_LIVE_FIT && live->at.in_group > 0;
    case KILN_KILL_TEST:
        return live->at.phase == KILN_LIVE_TEST;
    default:
        return false;
    }
}

bool kiln_kill_target_reached(const KilnKillTarget *target, double seconds,
                              const KilnLiveSnapshot *live)
{
    if (target->after >= 0.0)
        return seconds >= target->after;
    return live != NULL && live->at.step >= target->step && is_at(target->point, live);
}

void kiln_run_profile_note(KilnRunProfile *profile, double seconds, const KilnLiveSnapshot *live)
{
    profile->has[KILN_KILL_ANY] = profile->has[KILN_KILL_AGAIN] = true;
    profile->has[KILN_KILL_FIRST] = true;
    for (int i = 0; i < KILN_KILL_COUNT; i++)
        profile->has[i] = profile->has[i] || is_at((KilnKillPoint)i, live);
    if (profile->saved <= 0.0 && live->saving > 0)
        profile->saved = seconds;
    if (live->at.step > profile->steps)
        profile->steps = live->at.step;
}
