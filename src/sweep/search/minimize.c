/* Minimizes smooth functions within bounds: L-BFGS (Nocedal and Wright, "Numerical optimization",
 * algorithm 7.4) on the variables that are not held at a bound, with steps that are projected into
 * the bounds (Bertsekas, "Projected Newton methods", 1982). */
#include "kiln/search/minimize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REMEMBERED = 8 };               /* pairs of steps and changes of the gradient */
static const double sufficient = 1e-4; /* of the decrease that the slope promises */
static const double converged = 1e-9;  /* of the value */
static const double shortest = 1e-10;  /* a smaller step gives up */

typedef struct Search {
    const KilnSmoothFunction *function;
    size_t n, left;        /* left: calls of the function */
    double *x, *gradient;  /* where it is */
    double *next, *slopes; /* where the step leads, and the gradient there */
    double *direction;
    double *steps[REMEMBERED], *changes[REMEMBERED]; /* a ring; `pairs` were made so far */
    double curvature[REMEMBERED];                    /* step * change */
    size_t pairs;
    double value;
} Search;

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static bool at_bound(const Search *search, size_t i)
{
    const KilnSmoothFunction *f = search->function;

    return (search->x[i] <= f->low[i] && search->gradient[i] > 0.0) ||
           (search->x[i] >= f->high[i] && search->gradient[i] < 0.0) || f->low[i] >= f->high[i];
}

static double clamp(const KilnSmoothFunction *f, size_t i, double x)
{
    return fmin(fmax(x, f->low[i]), f->high[i]);
}

static void add_scaled(double *to, double factor, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* The direction of steepest descent among the variables that are not held. */
static void steepest(Search *search)
{
    for (size_t i = 0; i < search->n; i++)
        search->direction[i] = at_bound(search, i) ? 0.0 : -search->gradient[i];
}

/* The two loops of L-BFGS over the remembered pairs. */
static void choose_direction(Search *search)
{
    const size_t n = search->n, kept = search->pairs < REMEMBERED ? search->pairs : REMEMBERED;
    double factors[REMEMBERED] = { 0 };

    steepest(search);
    for (size_t back = 1; back <= kept; back++) {
        const size_t at = (search->pairs - back) % REMEMBERED;

        factors[at] = dot(search->steps[at], search->direction, n) / search->curvature[at];
        add_scaled(search->direction, -factors[at], search->changes[at], n);
    }
    if (kept > 0) {
        const size_t last = (search->pairs - 1) % REMEMBERED;
        const double *change = search->changes[last];

        for (size_t i = 0; i < n; i++)
            search->direction[i] *= search->curvature[last] / dot(change, change, n);
    }
    for (size_t back = kept; back >= 1; back--) {
        const size_t at = (search->pairs - back) % REMEMBERED;
        const double factor = dot(search->changes[at], search->direction, n) /
                              search->curvature[at];

        add_scaled(search->direction, factors[at] - factor, search->steps[at], n);
    }
    for (size_t i = 0; i < n; i++)
        if (at_bound(search, i))
            search->direction[i] = 0.0;
}

/* Without a memory the direction has no useful length: begin with a step of at most 1. */
static double first_step(const Search *search)
{
    const double length = sqrt(dot(search->direction, search->direction, search->n));

    return search->pairs > 0 || length <= 1.0 ? 1.0 : 1.0 / length;
}

/* Halve the step until the value decreases enough; false: it does not. */
static bool make_step(Search *search, double *ret_value)
{
    const KilnSmoothFunction *f = search->function;
    double step = first_step(search);

    for (; step > shortest && search->left > 0; step *= 0.5) {
        double promised = 0.0;

        for (size_t i = 0; i < search->n; i++) {
            search->next[i] = clamp(f, i, search->x[i] + step * search->direction[i]);
            promised += search->gradient[i] * (search->next[i] - search->x[i]);
        }
        search->left--;
        *ret_value = f->value(f->ctx, search->next, search->slopes);
        if (isfinite(*ret_value) && *ret_value <= search->value + sufficient * promised)
            return true;
    }
    return false;
}

/* Remember a step and what it did to the gradient, if the function is convex along it. */
static void remember(Search *search)
{
    const size_t at = search->pairs % REMEMBERED;
    double *step = search->steps[at], *change = search->changes[at];

    for (size_t i = 0; i < search->n; i++) {
        step[i] = search->next[i] - search->x[i];
        change[i] = search->slopes[i] - search->gradient[i];
    }
    search->curvature[at] = dot(step, change, search->n);
    if (search->curvature[at] > 1e-10 * dot(change, change, search->n))
        search->pairs++;
}

static void move(Search *search, double value)
{
    remember(search);
    memcpy(search->x, search->next, search->n * sizeof(double));
    memcpy(search->gradient, search->slopes, search->n * sizeof(double));
    search->value = value;
}

static void descend(Search *search)
{
    const KilnSmoothFunction *f = search->function;
    double value;

    search->left--;
    search->value = f->value(f->ctx, search->x, search->gradient);
    while (search->left > 0 && isfinite(search->value)) {
        choose_direction(search);
        if (dot(search->direction, search->gradient, search->n) >= 0.0) {
            search->pairs = 0;
            steepest(search);
        }
        const double before = search->value;
        if (!make_step(search, &value)) {
            if (search->pairs == 0)
                return;
            search->pairs = 0; /* the memory misleads: once more, without it */
            continue;
        }
        move(search, value);
        if (before - value <= converged * fmax(fabs(value), 1.0))
            return;
    }
}

KilnStatus kiln_minimize(const KilnSmoothFunction *function, size_t most, double *x,
                         double *ret_value, KilnError *err)
{
    const size_t n = function->n, rows = 4 + 2 * (size_t)REMEMBERED;
    double *room = calloc(rows * n + 1, sizeof(*room));

    if (room == NULL)
        return kiln_error_nomem(err, rows * n);
    Search search = {
        .function = function,
        .n = n,
        .left = most,
        .x = x,
        .gradient = room,
        .next = room + n,
        .slopes = room + 2 * n,
        .direction = room + 3 * n,
    };
    for (size_t i = 0; i < REMEMBERED; i++) {
        search.steps[i] = room + (4 + i) * n;
        search.changes[i] = room + (4 + REMEMBERED + i) * n;
    }
    descend(&search);
    *ret_value = search.value;
    free(room);
    return KILN_OK;
}
