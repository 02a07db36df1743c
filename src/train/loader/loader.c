/* The threaded loader: a ring of slots that workers fill with batches in order. */
#include "train/loader/loader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/thread_signals.h"
#include "kiln/tools/clock.h"
#include "train/loader/batch_fill.h"

enum { BUNDLE_BYTES = 1 << 17, MAX_BUNDLE = 32 /* batches */ };

struct KilnLoader {
    KilnBatchSource source;
    KilnBatchOrder order;
    KilnOnSkip *on_skip;
    void *ctx;
    const volatile int *stop, *pause;
    int64_t *whole;          /* of batches without data: the numbers of all samples; NULL: others */
    unsigned char *reported; /* one bit per sample: its skip was reported; NULL: none yet */
    int64_t epoch;
    /* Batches are counted among those of the rank; see number_of. */
    int64_t rank, world, n_batches;
    int64_t taken; /* the next batch for the caller */
    int64_t first; /* the batch that this epoch was started with */
    double waited_s;
    KilnBatchSlot *held; /* the slot of the caller's current batch */
    KilnBatchSlot *slots;
    int64_t n_slots;
    int64_t bundle; /* workers are woken when this many slots are free */

    /* The mutex protects everything below, and batch and ready of slots. */
    pthread_mutex_t mutex;
    pthread_cond_t room, filled;
    int64_t claimed;    /* the next batch for a worker */
    int64_t free_up_to; /* batches below it may be claimed */
    int busy;           /* workers that are filling a slot */
    int alive;          /* workers that have not ended */
    int64_t n_filled;   /* batches filled since the epoch's start */
    double fill_s;      /* spent on that */
    double transform_s; /* the part of it for batch transforms */
    double cpu_s;       /* CPU time of the workers at the epoch's start */
    bool quit;
    pthread_t *threads;
    int n_threads;
};

static bool is_set(const volatile int *flag)
{
    return flag != NULL && *flag != 0;
}

/* Whether the caller of kiln_loader_next must get control back. */
static bool must_return(const KilnLoader *loader)
{
    return is_set(loader->stop) || is_set(loader->pause);
}

/* Whether to stop filling a batch: without workers when the caller must get control back, with
 * workers only when the loader is freed (a stopped caller can take the batch later). */
static bool cancelled(const void *ctx)
{
    const KilnLoader *loader = ctx;

    return loader->n_threads == 0 ? must_return(loader)
                                  : __atomic_load_n(&loader->quit, __ATOMIC_RELAXED);
}

/* The number in the epoch of the rank's batch number `own`. */
static int64_t number_of(const KilnLoader *loader, int64_t own)
{
    return own * loader->world + loader->rank;
}

/* Batches of the rank before batch `number` of the epoch. */
static int64_t own_before(const KilnLoader *loader, int64_t number)
{
    return number > loader->rank ? (number - loader->rank - 1) / loader->world + 1 : 0;
}

int64_t kiln_loader_batches(const KilnLoader *loader)
{
    return loader->order.n_batches;
}

/* ---- Workers ---------------------------------------------------------------------- */

/* What a worker is working on, for worker_ended. */
typedef struct Work {
    KilnLoader *loader;
    KilnBatchSlot *slot;
} Work;

/* Cleanup when a datamodule ends the thread (pthread_exit, pthread_cancel), so that nobody waits
 * for it. */
static void worker_ended(void *arg)
{
    Work *work = arg;
    KilnLoader *loader = work->loader;
    KilnBatchSlot *slot = work->slot;
    char sample[256];

    kiln_sample_text(&loader->source.dataset, __atomic_load_n(&slot->reading, __ATOMIC_RELAXED),
                     sample, sizeof(sample));
    pthread_mutex_lock(&loader->mutex);
    slot->status = kiln_error_set(&slot->error, KILN_E_INTERNAL,
                                  "a loader thread ended while reading %s: the datamodule must "
                                  "return from `get`, not end its thread",
                                  sample);
    slot->ready = true;
    loader->busy--;
    loader->alive--;
    pthread_cond_broadcast(&loader->filled);
    pthread_mutex_unlock(&loader->mutex);
}

static void *run_worker(void *arg)
{
    Work work = { .loader = arg };
    KilnLoader *loader = arg;

    pthread_mutex_lock(&loader->mutex);
    for (;;) {
        while (!loader->quit &&
               (loader->claimed >= loader->n_batches || loader->claimed >= loader->free_up_to))
            pthread_cond_wait(&loader->room, &loader->mutex);
        if (loader->quit)
            break;
        int64_t own = loader->claimed++;
        work.slot = &loader->slots[own % loader->n_slots];
        work.slot->batch = number_of(loader, own);
        work.slot->ready = false;
        loader->busy++;
        pthread_mutex_unlock(&loader->mutex);
        double start = kiln_clock();
        pthread_cleanup_push(worker_ended, &work);
        kiln_batch_slot_fill(work.slot, &loader->source, &loader->order, loader->epoch);
        pthread_cleanup_pop(0);
        pthread_mutex_lock(&loader->mutex);
        work.slot->ready = true;
        loader->n_filled++;
        loader->fill_s += kiln_clock() - start;
        loader->transform_s += work.slot->transform_s;
        loader->busy--;
        pthread_cond_signal(&loader->filled);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* Workers block signals: the training thread handles them. */
static KilnStatus start_workers(KilnLoader *loader, int workers, KilnError *err)
{
    sigset_t before;
    int failed = 0;

    loader->threads = calloc((size_t)workers + 1, sizeof(*loader->threads));
    if (loader->threads == NULL)
        return kiln_error_nomem(err, (size_t)workers * sizeof(*loader->threads));
    loader->alive = workers;
    (void)kiln_signals_block(&before);
    while (failed == 0 && loader->n_threads < workers) {
        failed = pthread_create(&loader->threads[loader->n_threads], NULL, run_worker, loader);
        if (failed == 0)
            loader->n_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        return kiln_error_set(err, KILN_E_NOMEM,
                              "only %d of %d loader threads could be started; lower "
                              "trainer.num_workers",
                              loader->n_threads, workers);
    return KILN_OK;
}

/* ---- Creating and freeing ------------------------------------------------------------ */

static KilnStatus allocate(KilnLoader *loader, KilnError *err)
{
    KilnStatus status = KILN_OK;

    loader->slots = calloc((size_t)loader->n_slots, sizeof(*loader->slots));
    if (loader->slots == NULL)
        return kiln_error_nomem(err, (size_t)loader->n_slots * sizeof(*loader->slots));
    for (int64_t i = 0; i < loader->n_slots && status >= 0; i++)
        status = kiln_batch_slot_init(&loader->slots[i], &loader->source, err);
    return status;
}

/* Small batches are filled in bundles: waking a worker for each would take longer than a step. */
static int64_t bundle_of(const KilnBatchSource *source)
{
    const int64_t fit = BUNDLE_BYTES / kiln_batch_source_slot_bytes(source);

    return fit < 1 ? 1 : fit > MAX_BUNDLE ? MAX_BUNDLE : fit;
}

/* Slots: one with the caller, one with each worker, a bundle that is ready, and another bundle that
 * is being filled where bundles are larger than one. */
static int64_t slots_of(const KilnBatchSource *source, int workers)
{
    const int64_t bundle = bundle_of(source);

    return workers > 0 ? workers + 1 + bundle + (bundle > 1 ? bundle : 0) : 1;
}

int64_t kiln_loader_spec_bytes(const KilnLoaderSpec *spec)
{
    KilnBatchSource source;

    if (spec->whole > 0)
        return spec->dataset.count * (int64_t)sizeof(int64_t);
    if (kiln_batch_source_init(&source, spec, NULL) < 0)
        return 0;
    const int64_t bytes = slots_of(&source, spec->workers) * kiln_batch_source_slot_bytes(&source);
    kiln_batch_source_release(&source);
    return bytes + kiln_loader_spec_order_bytes(spec);
}

/* Without data there are no slots and no workers. */
static KilnStatus number_samples(KilnLoader *loader, int64_t count, KilnError *err)
{
    const size_t bytes = (size_t)count * sizeof(*loader->whole);

    loader->whole = malloc(bytes + 1);
    if (loader->whole == NULL)
        return kiln_error_nomem(err, bytes);
    for (int64_t i = 0; i < count; i++)
        loader->whole[i] = i;
    return KILN_OK;
}

static KilnStatus fill_ahead(KilnLoader *loader, const KilnLoaderSpec *spec, KilnError *err)
{
    loader->n_slots = slots_of(&loader->source, spec->workers);
    loader->bundle = bundle_of(&loader->source);
    KilnStatus status = allocate(loader, err);
    return status >= 0 && spec->workers > 0 ? start_workers(loader, spec->workers, err) : status;
}

static void init_locks(KilnLoader *loader)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->room, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&loader->filled, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

KilnStatus kiln_loader_new(const KilnLoaderSpec *spec, KilnLoader **ret, KilnError *err)
{
    KilnLoader *loader = calloc(1, sizeof(*loader));

    if (loader == NULL)
        return kiln_error_nomem(err, sizeof(*loader));
    loader->on_skip = spec->on_skip;
    loader->ctx = spec->ctx;
    loader->stop = spec->stop;
    loader->pause = spec->pause;
    loader->rank = spec->rank;
    loader->world = spec->world > 0 ? spec->world : 1;
    init_locks(loader);
    KilnStatus status = kiln_batch_source_init(&loader->source, spec, err);
    loader->source.cancelled = cancelled;
    loader->source.ctx = loader;
    if (status >= 0)
        status = kiln_batch_order_init(&loader->order, spec, &loader->source.dataset, err);
    if (status >= 0) {
        loader->n_batches = own_before(loader, loader->order.n_batches);
        loader->claimed = loader->n_batches;
        status = spec->whole > 0 ? number_samples(loader, spec->dataset.count, err)
                                 : fill_ahead(loader, spec, err);
    }
    if (status < 0) {
        kiln_loader_free(loader);
        return status;
    }
    *ret = loader;
    return KILN_OK;
}

void kiln_loader_free(KilnLoader *loader)
{
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->mutex);
    __atomic_store_n(&loader->quit, true, __ATOMIC_RELAXED); /* also read without the mutex */
    pthread_cond_broadcast(&loader->room);
    pthread_mutex_unlock(&loader->mutex);
    for (int i = 0; i < loader->n_threads; i++)
        pthread_join(loader->threads[i], NULL);
    pthread_cond_destroy(&loader->filled);
    pthread_cond_destroy(&loader->room);
    pthread_mutex_destroy(&loader->mutex);
    for (int64_t i = 0; loader->slots != NULL && i < loader->n_slots; i++)
        kiln_batch_slot_release(&loader->slots[i], &loader->source);
    free(loader->slots);
    free(loader->threads);
    kiln_batch_order_release(&loader->order);
    kiln_batch_source_release(&loader->source);
    free(loader->whole);
    free(loader->reported);
    free(loader);
}

/* ---- An epoch --------------------------------------------------------------------- */

/* CPU seconds of all workers together. */
static double workers_cpu(const KilnLoader *loader)
{
    double sum = 0.0;

    for (int i = 0; i < loader->n_threads && loader->alive == loader->n_threads; i++) {
        struct timespec time;
        clockid_t clock;

        if (pthread_getcpuclockid(loader->threads[i], &clock) == 0 &&
            clock_gettime(clock, &time) == 0)
            sum += (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
    }
    return sum;
}

void kiln_loader_times(KilnLoader *loader, KilnLoaderTimes *ret)
{
    pthread_mutex_lock(&loader->mutex);
    *ret = (KilnLoaderTimes) {
        .taken = loader->taken - loader->first,
        .filled = loader->n_filled,
        .waited_s = loader->waited_s,
        .fill_s = loader->fill_s,
        .transform_s = loader->transform_s,
        .cpu_s = workers_cpu(loader) - loader->cpu_s,
    };
    pthread_mutex_unlock(&loader->mutex);
}

KilnStatus kiln_loader_start(KilnLoader *loader, int64_t epoch, int64_t first, KilnError *err)
{
    const int64_t n_batches = loader->order.n_batches;

    if (first < 0 || first > n_batches)
        return kiln_error_set(err, KILN_E_RANGE,
                              "an epoch has %lld batches and can't start at number %lld; the data "
                              "set or batch_size has changed",
                              (long long)n_batches, (long long)first);
    pthread_mutex_lock(&loader->mutex);
    loader->claimed = loader->n_batches; /* no more of the previous epoch */
    while (loader->busy > 0)
        pthread_cond_wait(&loader->filled, &loader->mutex);
    loader->epoch = epoch;
    loader->taken = loader->first = own_before(loader, first);
    loader->waited_s = loader->fill_s = loader->transform_s = 0.0;
    loader->n_filled = 0;
    loader->cpu_s = workers_cpu(loader);
    loader->held = NULL;
    for (int64_t i = 0; i < loader->n_slots; i++) {
        kiln_batch_slot_clear_skips(&loader->slots[i]);
        loader->slots[i].ready = false;
    }
    KilnStatus status = kiln_batch_order_begin(&loader->order, epoch, err);
    if (status >= 0) {
        loader->claimed = loader->first;
        loader->free_up_to = loader->first + loader->n_slots;
    }
    pthread_cond_broadcast(&loader->room);
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

/* Report each skipped sample once in the loader's lifetime. */
static void report_skips(KilnLoader *loader, KilnBatchSlot *slot)
{
    if (slot->n_skips > 0 && loader->reported == NULL)
        loader->reported = calloc((size_t)loader->source.dataset.count / 8 + 1, 1);
    for (size_t i = 0; i < slot->n_skips && loader->reported != NULL; i++) {
        const KilnSkip *skip = &slot->skips[i];
        unsigned char *byte = &loader->reported[skip->sample / 8];
        unsigned bit = 1u << (skip->sample % 8);

        if ((*byte & bit) == 0 && loader->on_skip != NULL && skip->message != NULL)
            loader->on_skip(loader->ctx, skip);
        *byte = (unsigned char)(*byte | bit);
    }
    kiln_batch_slot_clear_skips(slot);
}

/* Free the slot of the caller's previous batch. */
static void release_held(KilnLoader *loader)
{
    if (loader->held == NULL)
        return;
    loader->held->ready = false;
    loader->held = NULL;
    loader->free_up_to++;
    if (loader->free_up_to - loader->claimed >= loader->bundle)
        pthread_cond_signal(&loader->room);
}

/* The time of the next look at stop and pause, on the clock of `filled`. */
static struct timespec next_poll(void)
{
    enum { POLL_NS = 100000000 };
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += POLL_NS;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* Wait, with the mutex held, until the slot holds batch `taken`. */
static KilnStatus wait_for_batch(KilnLoader *loader, const KilnBatchSlot *slot, KilnError *err)
{
    const int64_t number = number_of(loader, loader->taken);

    if (slot->ready && slot->batch == number)
        return KILN_OK;
    const double start = kiln_clock();
    while (!slot->ready || slot->batch != number) {
        if (must_return(loader))
            return kiln_error_set(err, KILN_E_INTERRUPTED, "stopped while waiting for data");
        if (loader->alive == 0)
            return kiln_error_set(err, KILN_E_INTERNAL, "all loader threads have ended");
        struct timespec until = next_poll();
        (void)pthread_cond_timedwait(&loader->filled, &loader->mutex, &until);
    }
    loader->waited_s += kiln_clock() - start;
    return KILN_OK;
}

/* Get the slot with batch `taken`; without workers fill it. */
static KilnStatus take_slot(KilnLoader *loader, KilnBatchSlot **ret, KilnError *err)
{
    KilnBatchSlot *slot = &loader->slots[loader->taken % loader->n_slots];
    KilnStatus status;

    *ret = slot;
    if (loader->n_threads == 0) {
        const double start = kiln_clock();

        slot->batch = number_of(loader, loader->taken);
        kiln_batch_slot_fill(slot, &loader->source, &loader->order, loader->epoch);
        loader->n_filled++;
        loader->fill_s += kiln_clock() - start;
        loader->transform_s += slot->transform_s;
        loader->waited_s = loader->fill_s;
        if (slot->status != KILN_E_INTERRUPTED)
            return KILN_OK;
        kiln_batch_slot_clear_skips(slot);
        return kiln_error_set(err, slot->status, "%s", slot->error.text);
    }
    pthread_mutex_lock(&loader->mutex);
    release_held(loader);
    status = wait_for_batch(loader, slot, err);
    if (status >= 0)
        loader->held = slot;
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

KilnStatus kiln_loader_next(KilnLoader *loader, KilnBatch *ret, KilnError *err)
{
    KilnBatch batch = { .index = number_of(loader, loader->taken) };
    bool found = false;

    if (loader->whole != NULL && loader->taken < loader->n_batches) {
        loader->taken++;
        batch.size = loader->source.dataset.count;
        batch.samples = loader->whole;
        batch.dataset = &loader->source.dataset;
        found = true;
    }
    while (!found && loader->taken < loader->n_batches) {
        KilnBatchSlot *slot;
        KilnStatus status = take_slot(loader, &slot, err);

        if (status < 0)
            return status;
        report_skips(loader, slot);
        if (slot->status < 0) {
            loader->taken = loader->n_batches;
            return kiln_error_set(err, slot->status, "%s", slot->error.text);
        }
        loader->taken++;
        batch.index = slot->batch;
        batch.size = slot->size;
        batch.samples = slot->samples;
        batch.features = slot->features;
        batch.dataset = &loader->source.dataset;
        found = batch.size > 0 || loader->world > 1;
    }
    *ret = batch;
    return KILN_OK;
}
