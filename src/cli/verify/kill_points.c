/* Choosing moments, and seeing that they have come. */
#include "cli/verify/kill_points.h"

#include <math.h>

const char *kiln_moment_name(KilnMoment moment)
{
    static const char *const names[] = {
        [KILN_MOMENT_ANY] = "at any time",
        [KILN_MOMENT_EPOCH] = "in an epoch",
        [KILN_MOMENT_VALIDATION] = "in validation",
        [KILN_MOMENT_SAVING] = "while saving",
        [KILN_MOMENT_GROUP] = "in a group of batches",
        [KILN_MOMENT_FIRST] = "before a checkpoint",
        [KILN_MOMENT_TEST] = "in the closing test",
        [KILN_MOMENT_AGAIN] = "again when resumed",
    };

    return names[moment];
}

KilnAim kiln_aim_draw(KilnMoment moment, const KilnCourse *course, KilnRng *rng)
{
    const double share = (double)kiln_rng_uniform(rng);
    const double first = course->saved > 0.0 ? course->saved : course->seconds;
    KilnAim aim = { .moment = moment, .after = -1.0 };

    if (moment == KILN_MOMENT_ANY || moment == KILN_MOMENT_AGAIN)
        aim.after = share * course->seconds;
    else if (moment == KILN_MOMENT_FIRST)
        aim.after = share * first;
    else
        aim.step = (int64_t)(share * (double)course->steps);
    return aim;
}

static bool is_moment(KilnMoment moment, const KilnLive *live)
{
    switch (moment) {
    case KILN_MOMENT_EPOCH:
        return live->at.phase == KILN_LIVE_FIT;
    case KILN_MOMENT_VALIDATION:
        return live->at.phase == KILN_LIVE_VALIDATE;
    case KILN_MOMENT_SAVING:
        return live->saving > 0;
    case KILN_MOMENT_GROUP:
        return live->at.phase == KILN_LIVE_FIT && live->at.in_group > 0;
    case KILN_MOMENT_TEST:
        return live->at.phase == KILN_LIVE_TEST;
    default:
        return false;
    }
}

bool kiln_aim_reached(const KilnAim *aim, double seconds, const KilnLive *live)
{
    if (aim->after >= 0.0)
        return seconds >= aim->after;
    return live != NULL && live->at.step >= aim->step && is_moment(aim->moment, live);
}

void kiln_course_note(KilnCourse *course, double seconds, const KilnLive *live)
{
    course->has[KILN_MOMENT_ANY] = course->has[KILN_MOMENT_AGAIN] = true;
    course->has[KILN_MOMENT_FIRST] = true;
    for (int i = 0; i < KILN_MOMENT_COUNT; i++)
        course->has[i] = course->has[i] || is_moment((KilnMoment)i, live);
    if (course->trains <= 0.0 && live->at.phase == KILN_LIVE_FIT)
        course->trains = seconds;
    if (course->saved <= 0.0 && live->saving > 0)
        course->saved = seconds;
    if (live->at.step > course->steps)
        course->steps = live->at.step;
}
