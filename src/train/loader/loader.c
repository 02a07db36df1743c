/* The threaded loader: a ring of batches that workers fill in turn. */
#include "train/loader/loader.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/file.h"
#include "base/system/thread_signals.h"
#include "train/loader/batch_fill.h"

enum { BUNDLE_BYTES = 1 << 17, BUNDLE_MOST = 32 /* batches */ };

struct KilnLoader {
    KilnFilling filling;
    KilnLoaderOrder order;
    KilnLeftOut *left_out;
    void *ctx;
    const volatile int *stop, *pause;
    unsigned char *told; /* a bit a sample, made with the first one left out */
    int64_t epoch;
    int64_t taken; /* the next batch for the caller */
    int64_t first; /* that this epoch was begun with */
    double waited_s;
    KilnSlot *held; /* what the caller has now */
    KilnSlot *slots;
    int64_t n_slots;
    int64_t bundle; /* as many slots are free before workers are woken */

    /* Everything from here on, and slots' batch and ready, under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t room, filled;
    int64_t claimed;    /* the next batch for a worker */
    int64_t free_up_to; /* batches below it may be claimed */
    int busy;           /* workers that fill a slot */
    int alive;          /* workers that can still fill one */
    int64_t n_filled;   /* batches since the start of the epoch, */
    double fill_s;      /* that took so long, */
    double cpu_s;       /* and what the workers had used of the processors at its start */
    bool quit;
    pthread_t *threads;
    int n_threads;
};

static bool is_set(const volatile int *flag)
{
    return flag != NULL && *flag != 0;
}

/* Whoever takes batches is wanted elsewhere. */
static bool called_away(const KilnLoader *loader)
{
    return is_set(loader->stop) || is_set(loader->pause);
}

/* A batch that a worker fills can be waited for later; one that is filled between steps can't, and
 * the loader's end waits for both. */
static bool given_up(const void *ctx)
{
    const KilnLoader *loader = ctx;

    return loader->n_threads == 0 ? called_away(loader)
                                  : __atomic_load_n(&loader->quit, __ATOMIC_RELAXED);
}

int64_t kiln_loader_batches(const KilnLoader *loader)
{
    return loader->order.n_batches;
}

/* ---- Workers ---------------------------------------------------------------------- */

/* What a worker is at, for the case that it ends there. */
typedef struct Work {
    KilnLoader *loader;
    KilnSlot *slot; /* NULL: nothing */
} Work;

/* A datamodule ended the thread (pthread_exit, pthread_cancel): nobody must wait for it. */
static void worker_ended(void *arg)
{
    Work *work = arg;
    KilnLoader *loader = work->loader;
    KilnSlot *slot = work->slot;
    char sample[256];

    kiln_sample_text(&loader->filling.dataset, __atomic_load_n(&slot->reading, __ATOMIC_RELAXED),
                     sample, sizeof(sample));
    pthread_mutex_lock(&loader->mutex);
    slot->status = kiln_error_set(&slot->error, KILN_E_INTERNAL,
                                  "a loader thread ended while it read %s: the datamodule must "
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
        while (!loader->quit && (loader->claimed >= loader->order.n_batches ||
                                 loader->claimed >= loader->free_up_to))
            pthread_cond_wait(&loader->room, &loader->mutex);
        if (loader->quit)
            break;
        int64_t batch = loader->claimed++;
        work.slot = &loader->slots[batch % loader->n_slots];
        work.slot->batch = batch;
        work.slot->ready = false;
        loader->busy++;
        pthread_mutex_unlock(&loader->mutex);
        double start = kiln_clock();
        pthread_cleanup_push(worker_ended, &work);
        kiln_slot_fill(work.slot, &loader->filling, &loader->order, loader->epoch);
        pthread_cleanup_pop(0);
        pthread_mutex_lock(&loader->mutex);
        work.slot->ready = true;
        loader->n_filled++;
        loader->fill_s += kiln_clock() - start;
        loader->busy--;
        pthread_cond_signal(&loader->filled);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* Workers leave signals to the thread that runs the loop. */
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

/* ---- Making and freeing -------------------------------------------------------------- */

static KilnStatus allocate(KilnLoader *loader, KilnError *err)
{
    KilnStatus status = KILN_OK;

    loader->slots = calloc((size_t)loader->n_slots, sizeof(*loader->slots));
    if (loader->slots == NULL)
        return kiln_error_nomem(err, (size_t)loader->n_slots * sizeof(*loader->slots));
    for (int64_t i = 0; i < loader->n_slots && status >= 0; i++)
        status = kiln_slot_init(&loader->slots[i], &loader->filling, err);
    return status;
}

/* Small batches are filled in bundles: to wake a worker for each would take longer than
 * the step. */
static int64_t bundle_of(const KilnFilling *filling)
{
    const int64_t fit = BUNDLE_BYTES / (filling->batch_size * kiln_filling_sample_bytes(filling));

    return fit < 1 ? 1 : fit > BUNDLE_MOST ? BUNDLE_MOST : fit;
}

/* One with the caller, a bundle that is ready, one in the hands of each worker; and a
 * bundle to come where it is more than one. */
static int64_t slots_of(const KilnFilling *filling, int workers)
{
    const int64_t bundle = bundle_of(filling);

    return workers > 0 ? workers + 1 + bundle + (bundle > 1 ? bundle : 0) : 1;
}

int64_t kiln_loader_spec_bytes(const KilnLoaderSpec *spec)
{
    KilnFilling filling;

    if (kiln_filling_init(&filling, spec, NULL) < 0)
        return 0;
    return slots_of(&filling, spec->workers) * filling.batch_size *
               kiln_filling_sample_bytes(&filling) +
           kiln_loader_spec_order_bytes(spec);
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
    loader->left_out = spec->left_out;
    loader->ctx = spec->ctx;
    loader->stop = spec->stop;
    loader->pause = spec->pause;
    init_locks(loader);
    KilnStatus status = kiln_filling_init(&loader->filling, spec, err);
    loader->filling.given_up = given_up;
    loader->filling.ctx = loader;
    if (status >= 0)
        status = kiln_loader_order_init(&loader->order, spec, &loader->filling.dataset, err);
    if (status >= 0) {
        loader->n_slots = slots_of(&loader->filling, spec->workers);
        loader->bundle = bundle_of(&loader->filling);
        loader->claimed = loader->order.n_batches;
        status = allocate(loader, err);
    }
    if (status >= 0 && spec->workers > 0)
        status = start_workers(loader, spec->workers, err);
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
        kiln_slot_release(&loader->slots[i]);
    free(loader->slots);
    free(loader->threads);
    kiln_loader_order_release(&loader->order);
    free(loader->told);
    free(loader);
}

/* ---- An epoch --------------------------------------------------------------------- */

/* Seconds that the workers worked, all together. */
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
        .cpu_s = workers_cpu(loader) - loader->cpu_s,
    };
    pthread_mutex_unlock(&loader->mutex);
}

KilnStatus kiln_loader_start(KilnLoader *loader, int64_t epoch, int64_t first, KilnError *err)
{
    const int64_t n_batches = loader->order.n_batches;

    if (first < 0 || first > n_batches)
        return kiln_error_set(err, KILN_E_RANGE,
                              "an epoch has %lld batches and can't be begun with number %lld; "
                              "the data set or batch_size is another than before",
                              (long long)n_batches, (long long)first);
    pthread_mutex_lock(&loader->mutex);
    loader->claimed = n_batches; /* nothing more of the epoch before */
    while (loader->busy > 0)
        pthread_cond_wait(&loader->filled, &loader->mutex);
    loader->epoch = epoch;
    loader->taken = loader->first = first;
    loader->waited_s = loader->fill_s = 0.0;
    loader->n_filled = 0;
    loader->cpu_s = workers_cpu(loader);
    loader->held = NULL;
    for (int64_t i = 0; i < loader->n_slots; i++) {
        kiln_slot_forget_skips(&loader->slots[i]);
        loader->slots[i].ready = false;
    }
    KilnStatus status = kiln_loader_order_begin(&loader->order, epoch, err);
    if (status >= 0) {
        loader->claimed = first;
        loader->free_up_to = first + loader->n_slots;
    }
    pthread_cond_broadcast(&loader->room);
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

/* Tell of each sample once in the life of the loader. */
static void report_skips(KilnLoader *loader, KilnSlot *slot)
{
    if (slot->n_skips > 0 && loader->told == NULL)
        loader->told = calloc((size_t)loader->filling.dataset.count / 8 + 1, 1);
    for (size_t i = 0; i < slot->n_skips && loader->told != NULL; i++) {
        const KilnSkip *skip = &slot->skips[i];
        unsigned char *byte = &loader->told[skip->sample / 8];
        unsigned bit = 1u << (skip->sample % 8);

        if ((*byte & bit) == 0 && loader->left_out != NULL && skip->message != NULL)
            loader->left_out(loader->ctx, skip->sample, skip->status, skip->message);
        *byte = (unsigned char)(*byte | bit);
    }
    kiln_slot_forget_skips(slot);
}

/* The caller is through with the batch that it has. */
static void give_back_held(KilnLoader *loader)
{
    if (loader->held == NULL)
        return;
    loader->held->ready = false;
    loader->held = NULL;
    loader->free_up_to++;
    if (loader->free_up_to - loader->claimed >= loader->bundle)
        pthread_cond_signal(&loader->room);
}

/* A moment from now on the clock of `filled`. */
static struct timespec soon(void)
{
    enum { MOMENT_NS = 100000000 };
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += MOMENT_NS;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* Wait, with the mutex, until the slot holds batch `taken`, filled. */
static KilnStatus wait_for_batch(KilnLoader *loader, const KilnSlot *slot, KilnError *err)
{
    if (slot->ready && slot->batch == loader->taken)
        return KILN_OK;
    const double start = kiln_clock();
    while (!slot->ready || slot->batch != loader->taken) {
        if (called_away(loader))
            return kiln_error_set(err, KILN_E_INTERRUPTED, "stopped while waiting for data");
        if (loader->alive == 0)
            return kiln_error_set(err, KILN_E_INTERNAL, "all loader threads have ended");
        struct timespec until = soon();
        (void)pthread_cond_timedwait(&loader->filled, &loader->mutex, &until);
    }
    loader->waited_s += kiln_clock() - start;
    return KILN_OK;
}

/* The slot with batch `taken`. */
static KilnStatus take_slot(KilnLoader *loader, KilnSlot **ret, KilnError *err)
{
    KilnSlot *slot = &loader->slots[loader->taken % loader->n_slots];
    KilnStatus status;

    *ret = slot;
    if (loader->n_threads == 0) {
        const double start = kiln_clock();

        slot->batch = loader->taken;
        kiln_slot_fill(slot, &loader->filling, &loader->order, loader->epoch);
        loader->n_filled++;
        loader->fill_s += kiln_clock() - start;
        loader->waited_s = loader->fill_s;
        if (slot->status != KILN_E_INTERRUPTED)
            return KILN_OK;
        kiln_slot_forget_skips(slot);
        return kiln_error_set(err, slot->status, "%s", slot->error.text);
    }
    pthread_mutex_lock(&loader->mutex);
    give_back_held(loader);
    status = wait_for_batch(loader, slot, err);
    if (status >= 0)
        loader->held = slot;
    pthread_mutex_unlock(&loader->mutex);
    return status;
}

KilnStatus kiln_loader_next(KilnLoader *loader, KilnBatch *ret, KilnError *err)
{
    KilnBatch batch = { .index = loader->taken };

    while (loader->taken < loader->order.n_batches && batch.size == 0) {
        KilnSlot *slot;
        KilnStatus status = take_slot(loader, &slot, err);

        if (status < 0)
            return status;
        report_skips(loader, slot);
        if (slot->status < 0) {
            loader->taken = loader->order.n_batches;
            return kiln_error_set(err, slot->status, "%s", slot->error.text);
        }
        loader->taken++;
        batch.index = slot->batch;
        batch.size = slot->size;
        batch.samples = slot->samples;
        batch.length = slot->length;
        batch.lengths = slot->lengths;
        memcpy(batch.data, slot->data, sizeof(batch.data));
    }
    *ret = batch;
    return KILN_OK;
}
