/* Comparing by several losses, of which less is better: fronts, and how crowded they are. Deb et
 * al., "A fast and elitist multiobjective genetic algorithm: NSGA-II" (2002). */
#ifndef KILN_PARETO_H
#define KILN_PARETO_H

#include "kiln/base.h"

/* Does `a` dominate `b`: is it better in at least one of the `n` losses and worse in none? */
KILN_API bool kiln_dominates(const double *a, const double *b, size_t n);

/* The rank of each of `count` items with `n` losses (count x n): 1 for those that none dominates,
 * 2 for those that only these dominate, and so on. */
KILN_API KILN_NODISCARD KilnStatus kiln_pareto_ranks(const double *losses, size_t count, size_t n,
                                                     size_t *ret, KilnError *err);

/* The crowding distance of each item among those of its rank: how far its neighbours are, summed
 * over the losses, each relative to its range. INFINITY at an end of the range. */
KILN_API KILN_NODISCARD KilnStatus kiln_crowding(const double *losses, const size_t *ranks,
                                                 size_t count, size_t n, double *ret,
                                                 KilnError *err);

#endif
