/* Recorded trials: which is nearest to a point, and how good it got. */
#include "sweep/simulate/curves.h"

#include <math.h>

#include "base/array.h"
#include "kiln/search/history.h"
#include "sweep/sweep_state.h"

KilnCurve *kiln_curves_add(KilnCurves *curves)
{
    if (!KILN_ARENA_RESERVE(&curves->arena, curves->curves, curves->capacity, curves->count + 1))
        return NULL;
    curves->curves[curves->count] = (KilnCurve) { .seconds = 1.0 };
    return &curves->curves[curves->count++];
}

void kiln_curves_release(KilnCurves *curves)
{
    kiln_arena_release(&curves->arena);
}

KilnStatus kiln_curves_list(KilnCurves *curves, KilnError *err)
{
    KilnArena *arena = &curves->arena;
    const KilnAxis **list = kiln_arena_alloc(arena, sizeof(*list));
    KilnAxis *axis = kiln_arena_alloc(arena, sizeof(*axis));
    KilnAxisValue *points = kiln_arena_alloc(arena, (curves->count + 1) * sizeof(*points));
    const char **overrides = kiln_arena_alloc(arena, (curves->count + 1) * sizeof(*overrides));

    if (arena->failed)
        return kiln_error_nomem(err, curves->count);
    for (size_t i = 0; i < curves->count; i++) {
        overrides[i] = curves->curves[i].name;
        points[i].index = i;
        curves->curves[i].point = &points[i];
    }
    *axis = (KilnAxis) {
        .key = "trial", .kind = KILN_AXIS_CHOICE, .overrides = overrides, .count = curves->count
    };
    list[0] = axis;
    curves->space = (KilnSpace) { .axes = list, .count = 1 };
    return KILN_OK;
}

/* Numbers are as far apart as their shares of the axis, different choices as far as they can be. */
static double distance(const KilnSpace *space, const KilnAxisValue *a, const KilnAxisValue *b)
{
    double sum = 0.0;

    for (size_t i = 0; i < space->count; i++) {
        const KilnAxis *axis = space->axes[i];

        if (!kiln_axis_varies(space, i) || !kiln_axis_is_active(space, i, a) ||
            !kiln_axis_is_active(space, i, b))
            continue;
        const double apart = axis->kind == KILN_AXIS_CHOICE
                                 ? (double)(a[i].index != b[i].index)
                                 : kiln_axis_share(axis, a[i]) - kiln_axis_share(axis, b[i]);
        sum += apart * apart;
    }
    return sum;
}

size_t kiln_curves_nearest(const KilnCurves *curves, const KilnAxisValue *point, const bool *used)
{
    size_t nearest = SIZE_MAX;
    double least = (double)INFINITY;

    for (size_t i = 0; i < curves->count; i++) {
        if (used != NULL && used[i])
            continue;
        const double far = distance(&curves->space, point, curves->curves[i].point);
        if (far < least) {
            least = far;
            nearest = i;
        }
    }
    return nearest;
}

double kiln_curves_loss(const KilnCurves *curves, size_t curve)
{
    const KilnCurve *of = &curves->curves[curve];
    double least = (double)INFINITY;

    for (int64_t i = 0; i < of->n_epochs; i++)
        least = fmin(least, kiln_objective_loss(&curves->objective, of->values[i]));
    return least;
}
