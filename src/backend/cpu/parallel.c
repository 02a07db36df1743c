/* Loops split between threads with OpenMP, whose pool oneDNN uses too. */
#include "backend/cpu/parallel.h"

#include <omp.h>
#include <stdatomic.h>

void kiln_parallel(int threads, int64_t n, int64_t grain, int64_t align, KilnRange range,
                   void *context)
{
    int64_t parts = n / grain < threads ? n / grain : threads;

    if (parts <= 1) {
        range(context, 0, n);
        return;
    }

    const int64_t even = (n + parts - 1) / parts;
    const int64_t chunk = (even + align - 1) / align * align;

#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (int64_t part = 0; part < parts; part++) {
        int64_t begin = part * chunk, end = begin + chunk;

        if (begin < n)
            range(context, begin, end < n ? end : n);
    }
}

enum { SHARES = 64 }; /* threads past this number have none */

/* In its own cache line. */
typedef struct Share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} Share;

struct KilnShares {
    Share all[SHARES];
    int count;
};

/* Takes items from a share, up to *ret_end; -1: none left. */
static int64_t take_from(Share *share, int64_t most, int64_t *ret_end)
{
    int64_t next = atomic_load_explicit(&share->next, memory_order_relaxed);

    while (next < share->end) {
        const int64_t half = (share->end - next + 1) / 2;
        const int64_t end = next + (half < most ? half : most);

        if (atomic_compare_exchange_weak_explicit(&share->next, &next, end, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *ret_end = end;
            return next;
        }
    }
    return -1;
}

int64_t kiln_next_items(KilnShares *shares, int64_t most, int64_t *ret_end)
{
    const int own = omp_get_thread_num();

    for (int i = 0; i < shares->count; i++) {
        const int64_t item = take_from(&shares->all[(own + i) % shares->count], most, ret_end);

        if (item >= 0)
            return item;
    }
    return -1;
}

int64_t kiln_next_item(KilnShares *shares)
{
    int64_t end;

    return kiln_next_items(shares, 1, &end);
}

void kiln_parallel_items(int threads, int64_t n, KilnWorkerFunction taker, void *context)
{
    const int used = (int)(n < threads ? n : threads);
    KilnShares shares; /* only the used ones are set */

    shares.count = used < SHARES ? used : SHARES;
    for (int i = 0; i < shares.count; i++) {
        atomic_init(&shares.all[i].next, n * i / shares.count);
        shares.all[i].end = n * (i + 1) / shares.count;
    }
    if (used <= 1) {
        taker(context, &shares);
        return;
    }
#pragma omp parallel for num_threads(used) schedule(static, 1)
    for (int i = 0; i < used; i++)
        taker(context, &shares);
}

int kiln_thread(void)
{
    return omp_get_thread_num();
}

int kiln_threads_set(int threads)
{
    int before = omp_get_max_threads();

    if (before != threads)
        omp_set_num_threads(threads);
    return before;
}
