/* One way to share a loop between threads. */
#ifndef KILN_BACKEND_CPU_PARALLEL_H
#define KILN_BACKEND_CPU_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

/* Does the part [begin, end) of a loop. */
typedef void (*KilnRange)(void *context, int64_t begin, int64_t end);

/* Run [0, n) in at most `threads` equal parts, each of at least `grain` and, but
 * for the last, a multiple of `align`. The split depends on the arguments alone,
 * so results are the same every time. Returns when all parts are done. */
void kiln_parallel(int threads, int64_t n, int64_t grain, int64_t align, KilnRange range,
                   void *context);

/* Items 0 .. n - 1, which threads take one by one: each first those of its own share, then what
 * is left of the others', for a core is often slower than the next one. Results must not show
 * who did an item. */
typedef struct KilnShares KilnShares;
typedef void (*KilnWorkerFunction)(void *context, KilnShares *shares);
void kiln_parallel_taken(int threads, int64_t n, KilnWorkerFunction taker, void *context);
/* The calling thread's next item; -1: none is left. */
int64_t kiln_take(KilnShares *shares);
/* The same for items up to *ret_end together: half of what is left of a share, at most
 * `most`, so that threads end at about the same time. */
int64_t kiln_take_some(KilnShares *shares, int64_t most, int64_t *ret_end);

/* Number of the calling thread in its loop, below `threads`; 0 outside of one. */
int kiln_thread(void);

/* Make oneDNN, which shares OpenMP, use `threads`, and return the number
 * that the caller's thread had; give that back afterwards. */
int kiln_threads_set(int threads);

#endif
