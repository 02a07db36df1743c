/* Ranks items by fronts, and measures how crowded their places on a front are. */
#include "kiln/search/pareto.h"

#include <math.h>
#include <stdlib.h>

bool kiln_dominates(const double *a, const double *b, size_t n)
{
    bool better = false;

    for (size_t i = 0; i < n; i++) {
        if (a[i] > b[i])
            return false;
        better |= a[i] < b[i];
    }
    return better;
}

KilnStatus kiln_pareto_ranks(const double *losses, size_t count, size_t n, size_t *ret,
                             KilnError *err)
{
    /* By how many an item is dominated that are not ranked yet. */
    size_t *above = calloc(count + 1, sizeof(*above)), ranked = 0;

    if (above == NULL)
        return kiln_error_nomem(err, count);
    for (size_t i = 0; i < count; i++) {
        ret[i] = 0;
        for (size_t k = 0; k < count; k++)
            above[i] += kiln_dominates(losses + k * n, losses + i * n, n);
    }
    for (size_t rank = 1; ranked < count; rank++) {
        for (size_t i = 0; i < count; i++)
            if (ret[i] == 0 && above[i] == 0) {
                ret[i] = rank;
                ranked++;
            }
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < count && ret[i] == rank; k++)
                above[k] -= kiln_dominates(losses + i * n, losses + k * n, n);
    }
    free(above);
    return KILN_OK;
}

/* ---- Crowding -------------------------------------------------------------------------------- */

typedef struct Place {
    size_t item, rank;
    double loss;
} Place;

static int compare(const void *a, const void *b)
{
    const Place *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->loss != y->loss)
        return x->loss < y->loss ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* Add the distances in one loss to those of a front, whose `n` places are sorted by it. */
static void add_distances(const Place *front, size_t n, double *distances)
{
    const double range = front[n - 1].loss - front[0].loss;

    distances[front[0].item] = (double)INFINITY;
    distances[front[n - 1].item] = (double)INFINITY;
    for (size_t i = 1; i + 1 < n && range > 0.0; i++)
        distances[front[i].item] += (front[i + 1].loss - front[i - 1].loss) / range;
}

KilnStatus kiln_crowding(const double *losses, const size_t *ranks, size_t count, size_t n,
                         double *ret, KilnError *err)
{
    Place *places = calloc(count + 1, sizeof(*places));

    if (places == NULL)
        return kiln_error_nomem(err, count);
    for (size_t i = 0; i < count; i++)
        ret[i] = 0.0;
    for (size_t loss = 0; loss < n; loss++) {
        for (size_t i = 0; i < count; i++)
            places[i] = (Place) { .item = i, .rank = ranks[i], .loss = losses[i * n + loss] };
        qsort(places, count, sizeof(*places), compare);
        for (size_t from = 0, to = 0; from < count; from = to) {
            while (to < count && places[to].rank == places[from].rank)
                to++;
            add_distances(places + from, to - from, ret);
        }
    }
    free(places);
    return KILN_OK;
}
