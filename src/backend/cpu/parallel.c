/* Loops split between threads with OpenMP, whose pool oneDNN uses too. */
#include "backend/cpu/parallel.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static _Thread_local int number; /* kiln_thread */

/* ---- Teams ------------------------------------------------------------------------- */

static void end_team(void)
{
    (void)omp_pause_resource_all(omp_pause_soft);
}

static void watch_forks(void)
{
    (void)pthread_atfork(end_team, NULL, NULL);
}

void kiln_parallel_allow_forks(void)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;

    (void)pthread_once(&watched, watch_forks);
}

typedef void Work(void *context, int thread, int team);

/* Runs `work` in the first `parts` threads of a team that is always the full one: GNU OpenMP ends
 * threads when a team is smaller than the last, and starts them again for the next larger one. A
 * thread of another loop does all parts itself. */
static void run_team(int threads, int64_t parts, Work *work, void *context)
{
    if (omp_in_parallel()) {
        work(context, 0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() < parts) {
        number = omp_get_thread_num();
        work(context, number, omp_get_num_threads());
        number = 0;
    }
}

/* ---- Equal parts ------------------------------------------------------------------- */

typedef struct Loop {
    int64_t n, parts, chunk;
    KilnRange range;
    void *context;
} Loop;

/* OpenMP may give fewer threads than there are parts. */
static void run_own_parts(void *context, int thread, int team)
{
    const Loop *loop = context;

    for (int64_t part = thread; part < loop->parts; part += team) {
        const int64_t begin = part * loop->chunk, end = begin + loop->chunk;

        if (begin < loop->n)
            loop->range(loop->context, begin, end < loop->n ? end : loop->n);
    }
}

void kiln_parallel(int threads, int64_t n, int64_t grain, int64_t align, KilnRange range,
                   void *context)
{
    int64_t parts = n / grain < threads ? n / grain : threads;

    if (parts <= 1) {
        range(context, 0, n);
        return;
    }

    const int64_t even = (n + parts - 1) / parts;
    Loop loop = { .n = n,
                  .parts = parts,
                  .chunk = (even + align - 1) / align * align,
                  .range = range,
                  .context = context };

    run_team(threads, parts, run_own_parts, &loop);
}

/* ---- Items ------------------------------------------------------------------------- */

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
    const int own = number;

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

typedef struct Items {
    KilnShares shares; /* only the used ones are set */
    KilnWorkerFunction taker;
    void *context;
} Items;

static void run_taker(void *context, int thread, int team)
{
    Items *items = context;

    (void)thread;
    (void)team;
    items->taker(items->context, &items->shares);
}

void kiln_parallel_items(int threads, int64_t n, KilnWorkerFunction taker, void *context)
{
    const int used = (int)(n < threads ? n : threads);
    Items items = { .taker = taker, .context = context };
    KilnShares *shares = &items.shares;

    shares->count = used < SHARES ? used : SHARES;
    for (int i = 0; i < shares->count; i++) {
        atomic_init(&shares->all[i].next, n * i / shares->count);
        shares->all[i].end = n * (i + 1) / shares->count;
    }
    if (used <= 1)
        taker(context, shares);
    else
        run_team(threads, used, run_taker, &items);
}

/* ---- Phases ------------------------------------------------------------------------ */

typedef struct Phases {
    _Atomic int64_t done;        /* threads that ended a phase, over all phases */
    int64_t parts, phases, used; /* used: threads at most */
    KilnPhaseFunction run;
    void *context;
} Phases;

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* A phase takes microseconds, so waiting threads look again at once; then they let others run, for
 * there may be more threads than cores. */
static void wait_for(_Atomic int64_t *done, int64_t wanted)
{
    enum { LOOKS = 500 };

    for (int i = 0; atomic_load_explicit(done, memory_order_acquire) < wanted; i++)
        if (i < LOOKS)
            pause_briefly();
        else
            sched_yield();
}

static void run_phases(void *context, int thread, int team)
{
    Phases *phases = context;
    const int64_t used = phases->used < team ? phases->used : team;

    for (int64_t phase = 0; phase < phases->phases; phase++) {
        for (int64_t part = thread; part < phases->parts; part += used)
            phases->run(phases->context, part, phase);
        atomic_fetch_add_explicit(&phases->done, 1, memory_order_acq_rel);
        wait_for(&phases->done, used * (phase + 1));
    }
}

void kiln_parallel_phases(int threads, int64_t parts, int64_t phases, KilnPhaseFunction run,
                          void *context)
{
    const int64_t processors =
        omp_get_num_procs(); /* more threads would wait for each other's turn */
    const int64_t used = parts < processors ? parts : processors;
    Phases all = { .parts = parts, .phases = phases, .used = used, .run = run, .context = context };

    if (used <= 1 || threads <= 1)
        run_phases(&all, 0, 1);
    else
        run_team(threads, used, run_phases, &all);
}

int kiln_thread(void)
{
    return number;
}

int kiln_threads_set(int threads)
{
    int before = omp_get_max_threads();

    if (before != threads)
        omp_set_num_threads(threads);
    return before;
}
