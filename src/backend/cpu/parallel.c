/* Loops shared between threads, over OpenMP: the one pool that oneDNN
 * uses too. */
#include "backend/cpu/parallel.h"

#include <omp.h>

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
