/* Divisions of the processors among the jobs of a sweep: which are worth measuring, and which one
 * was fastest. */
#ifndef KILN_SWEEP_SPEED_DIVISION_H
#define KILN_SWEEP_SPEED_DIVISION_H

#include "base/text.h"

enum { KILN_MAX_DIVISIONS = 24, KILN_DIVISION_REASON = 256 };

/* So many jobs at a time, with so many threads each. */
typedef struct KilnDivision {
    size_t n_jobs, threads;
    double steps_per_s;                /* of all its jobs together; NaN: it was not measured */
    char failed[KILN_DIVISION_REASON]; /* why it could not be measured; "": it could, or nobody
                                        * tried */
} KilnDivision;

typedef struct KilnDivisions {
    KilnDivision items[KILN_MAX_DIVISIONS]; /* by rising n_jobs */
    size_t count;
    size_t all_jobs; /* of the sweep; SIZE_MAX: not known */
} KilnDivisions;

/* List the divisions that are worth measuring, at least one. Where `threads` is 0, one job gets all
 * processors, two get half of them each, and so on; else each job has so many threads, and there
 * are 1, 2, 4, ... jobs. The last one has as many jobs as there is room for, `most` at most. Sets
 * items and count. */
void kiln_divisions_list(size_t processors, size_t threads, size_t most, KilnDivisions *ret);
/* The one with which all jobs would end first: the fastest one, but for what the last jobs leave
 * idle. Of those that differ by less than 3 %, the one with the fewest jobs. NULL: none was
 * measured. */
const KilnDivision *kiln_divisions_fastest(const KilnDivisions *divisions);
/* Append what was measured, the chosen one first: "2 jobs at a time with a thread each: 412
 * steps/s; one with 2 threads: 300 steps/s". `chosen` has failed only if all have. */
void kiln_divisions_text(const KilnDivisions *divisions, const KilnDivision *chosen,
                         KilnText *text);

#endif
