/* Splits loops between threads. Every loop of a backend must get the same `threads`, that of the
 * backend, however little work there is: OpenMP keeps its threads only while the size of the team
 * stays the same. A loop with one part runs on the calling thread alone. */
#ifndef KILN_BACKEND_CPU_PARALLEL_H
#define KILN_BACKEND_CPU_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

/* Runs the part [begin, end) of a loop. */
typedef void (*KilnRange)(void *context, int64_t begin, int64_t end);

/* Runs [0, n) in at most `threads` equal parts, each of at least `grain` and, except the last, a
 * multiple of `align`. The split depends on the arguments alone, so results are reproducible.
 * Returns when all parts are done. */
void kiln_parallel(int threads, int64_t n, int64_t grain, int64_t align, KilnRange range,
                   void *context);

/* Items 0 .. n - 1, which threads take one by one: first from their own share, then from the
 * others' (work stealing, since cores differ in speed). Results must not depend on which thread
 * runs an item. */
typedef struct KilnShares KilnShares;
typedef void (*KilnWorkerFunction)(void *context, KilnShares *shares);
void kiln_parallel_items(int threads, int64_t n, KilnWorkerFunction taker, void *context);
/* The calling thread's next item; -1: none left. */
int64_t kiln_next_item(KilnShares *shares);
/* The same for a range of items that ends at *ret_end: half of what remains of a share, at most
 * `most`, so that threads finish together. */
int64_t kiln_next_items(KilnShares *shares, int64_t most, int64_t *ret_end);

/* Runs part `part` of a phase. */
typedef void (*KilnPhaseFunction)(void *context, int64_t part, int64_t phase);
/* Runs all parts of each phase before the next phase begins. A thread has the same parts in every
 * phase; with more parts than threads, several. */
void kiln_parallel_phases(int threads, int64_t parts, int64_t phases, KilnPhaseFunction run,
                          void *context);

/* Call it before the first loop. GNU OpenMP keeps the threads of a loop for the next one. A forked
 * process lacks them, and its first loop would wait for them for ever; so from now on a thread that
 * forks ends its own before. */
void kiln_parallel_allow_forks(void);

/* Number of the calling thread in its loop, below the number of parts or items; 0 outside of one.
 */
int kiln_thread(void);

/* Makes oneDNN, which shares OpenMP, use `threads`; returns the previous number for the caller to
 * restore. */
int kiln_threads_set(int threads);

#endif
