/* The threaded loader: a ring of batches that workers fill in turn. */
#include "train/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* A sample that was left out, until the caller's thread hears of it. */
typedef struct Skip {
    int64_t sample;
    char *message; /* NULL: memory was out */
} Skip;

/* One batch of the ring. */
typedef struct Slot {
    void *data[KILN_MAX_FEATURES];
    int64_t batch; /* which one it holds or is being filled with */
    int64_t size;
    bool ready;
    Skip *skips; /* [batch_size] */
    size_t n_skips;
    KilnStatus status;
    KilnError error;
} Slot;

enum { BUNDLE_BYTES = 1 << 17, BUNDLE_MOST = 32 /* batches */ };

struct KilnLoader {
    KilnDataset dataset;
    size_t n_features;
    size_t bytes[KILN_MAX_FEATURES]; /* of one sample */
    int64_t batch_size, n_batches;
    uint64_t seed;
    bool shuffle;
    void (*warn)(void *ctx, const char *message);
    void *warn_ctx;
    uint32_t *order;       /* [count] when shuffling */
    unsigned char *warned; /* a bit a sample, made with the first one left out */
    int64_t epoch;
    int64_t taken; /* the next batch for the caller */
    Slot *held;    /* what the caller has now */
    Slot *slots;
    int64_t n_slots;
    int64_t bundle; /* as many slots are free before workers are woken */

    /* Everything from here on, and slots' batch and ready, under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t room, filled;
    int64_t claimed;    /* the next batch for a worker */
    int64_t free_up_to; /* batches below it may be claimed */
    int busy;
    bool quit;
    pthread_t *threads;
    int n_threads;
};

int64_t kiln_loader_batches(const KilnLoader *loader)
{
    return loader->n_batches;
}

/* ---- Filling one batch ------------------------------------------------------- */

static void skip_sample(KilnLoader *loader, Slot *slot, int64_t sample, const KilnError *why)
{
    const char *name = loader->dataset.name != NULL
                           ? loader->dataset.name(loader->dataset.ctx, sample)
                           : NULL;
    KilnText text = { 0 };

    /* The message usually begins with the file's name already. */
    if (name != NULL && strstr(why->text, name) == NULL)
        kiln_text_printf(&text, "%s: ", name);
    kiln_text_append(&text, why->text);
    slot->skips[slot->n_skips++] = (Skip) { .sample = sample, .message = kiln_text_take(&text) };
}

static void fill(KilnLoader *loader, Slot *slot)
{
    int64_t first = slot->batch * loader->batch_size;
    int64_t end = first + loader->batch_size;

    slot->size = 0;
    slot->status = KILN_OK;
    if (end > loader->dataset.count)
        end = loader->dataset.count;
    for (int64_t i = first; i < end; i++) {
        int64_t index = loader->shuffle ? (int64_t)loader->order[i] : i;
        KilnSample sample = { { NULL } };
        KilnRng rng;

        for (size_t f = 0; f < loader->n_features; f++)
            sample.data[f] = (char *)slot->data[f] + (size_t)slot->size * loader->bytes[f];
        kiln_rng_init(&rng, loader->seed, KILN_RNG_AUGMENT, (uint32_t)loader->epoch,
                      (uint64_t)index);
        slot->error.text[0] = '\0';
        KilnStatus status = loader->dataset.get(loader->dataset.ctx, index, &rng, &sample,
                                                &slot->error);
        if (status == KILN_E_SKIP) {
            skip_sample(loader, slot, index, &slot->error);
        } else if (status < 0) {
            slot->status = status;
            return;
        } else {
            slot->size++;
        }
    }
}

static void *work(void *arg)
{
    KilnLoader *loader = arg;

    pthread_mutex_lock(&loader->mutex);
    for (;;) {
        while (!loader->quit &&
               (loader->claimed >= loader->n_batches || loader->claimed >= loader->free_up_to))
            pthread_cond_wait(&loader->room, &loader->mutex);
        if (loader->quit)
            break;
        int64_t batch = loader->claimed++;
        Slot *slot = &loader->slots[batch % loader->n_slots];
        slot->batch = batch;
        slot->ready = false;
        loader->busy++;
        pthread_mutex_unlock(&loader->mutex);
        fill(loader, slot);
        pthread_mutex_lock(&loader->mutex);
        slot->ready = true;
        loader->busy--;
        pthread_cond_signal(&loader->filled);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- Making and freeing -------------------------------------------------------- */

static KilnStatus allocate_slot(const KilnLoader *loader, Slot *slot, KilnError *err)
{
    slot->skips = calloc((size_t)loader->batch_size, sizeof(*slot->skips));
    if (slot->skips == NULL)
        return kiln_error_nomem(err, (size_t)loader->batch_size * sizeof(*slot->skips));
    for (size_t f = 0; f < loader->n_features; f++) {
        size_t bytes = loader->bytes[f] * (size_t)loader->batch_size;
        size_t rounded = (bytes + 64) / 64 * 64;

        slot->data[f] = aligned_alloc(64, rounded);
        if (slot->data[f] == NULL)
            return kiln_error_nomem(err, rounded);
        memset(slot->data[f], 0, rounded);
    }
    return KILN_OK;
}

static KilnStatus allocate(KilnLoader *loader, KilnError *err)
{
    KilnStatus status = KILN_OK;

    loader->slots = calloc((size_t)loader->n_slots, sizeof(*loader->slots));
    if (loader->slots == NULL)
        return kiln_error_nomem(err, (size_t)loader->n_slots * sizeof(*loader->slots));
    for (int64_t i = 0; i < loader->n_slots && status >= 0; i++)
        status = allocate_slot(loader, &loader->slots[i], err);
    if (status >= 0 && loader->shuffle) {
        size_t bytes = (size_t)loader->dataset.count * sizeof(*loader->order);

        loader->order = malloc(bytes + 1);
        if (loader->order == NULL)
            status = kiln_error_nomem(err, bytes);
    }
    return status;
}

/* Workers leave signals to the thread that runs the loop. */
static KilnStatus start_workers(KilnLoader *loader, int workers, KilnError *err)
{
    sigset_t all, before;
    int failed = 0;

    loader->threads = calloc((size_t)workers + 1, sizeof(*loader->threads));
    if (loader->threads == NULL)
        return kiln_error_nomem(err, (size_t)workers * sizeof(*loader->threads));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (failed == 0 && loader->n_threads < workers) {
        failed = pthread_create(&loader->threads[loader->n_threads], NULL, work, loader);
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

static KilnStatus check_spec(const KilnLoaderSpec *spec, KilnError *err)
{
    if (spec->batch_size < 1)
        return kiln_error_set(err, KILN_E_RANGE, "batch_size is %lld; it must be at least 1",
                              (long long)spec->batch_size);
    if (spec->dataset.count < 0 || spec->dataset.count > (int64_t)UINT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE,
                              "a data set of %lld samples; at most %lld are possible",
                              (long long)spec->dataset.count, (long long)UINT32_MAX);
    for (size_t f = 0; f < spec->data->n_features; f++) {
        int64_t count = kiln_shape_count(&spec->data->features[f].shape);

        if (count < 0 || count > INT64_MAX / 64 / spec->batch_size)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "feature %s is too large for batches of %lld samples",
                                  spec->data->features[f].name, (long long)spec->batch_size);
    }
    return KILN_OK;
}

static int64_t batch_size_of(const KilnLoaderSpec *spec)
{
    return spec->batch_size < spec->dataset.count ? spec->batch_size
           : spec->dataset.count > 0              ? spec->dataset.count
                                                  : 1;
}

static int64_t sample_bytes(const KilnLoaderSpec *spec)
{
    int64_t bytes = (int64_t)sizeof(Skip);

    for (size_t f = 0; f < spec->data->n_features; f++)
        bytes += kiln_shape_count(&spec->data->features[f].shape) *
                 (int64_t)kiln_dtype_size(spec->data->features[f].dtype);
    return bytes;
}

/* Small batches are filled in bundles: to wake a worker for each would take longer than
 * the step. */
static int64_t bundle_of(const KilnLoaderSpec *spec)
{
    const int64_t fit = BUNDLE_BYTES / (batch_size_of(spec) * sample_bytes(spec));

    return fit < 1 ? 1 : fit > BUNDLE_MOST ? BUNDLE_MOST : fit;
}

/* One with the caller, a bundle that is ready, one in the hands of each worker; and a
 * bundle to come where it is more than one. */
static int64_t slots_of(const KilnLoaderSpec *spec)
{
    const int64_t bundle = bundle_of(spec);

    return spec->workers > 0 ? spec->workers + 1 + bundle + (bundle > 1 ? bundle : 0) : 1;
}

int64_t kiln_loader_bytes(const KilnLoaderSpec *spec)
{
    return slots_of(spec) * batch_size_of(spec) * sample_bytes(spec) +
           (spec->shuffle ? spec->dataset.count * (int64_t)sizeof(uint32_t) : 0);
}

KilnStatus kiln_loader_new(const KilnLoaderSpec *spec, KilnLoader **ret, KilnError *err)
{
    KilnStatus status = check_spec(spec, err);
    KilnLoader *loader;

    if (status < 0)
        return status;
    loader = calloc(1, sizeof(*loader));
    if (loader == NULL)
        return kiln_error_nomem(err, sizeof(*loader));
    *loader = (KilnLoader) {
        .dataset = spec->dataset,
        .n_features = spec->data->n_features,
        .batch_size = batch_size_of(spec),
        .seed = spec->seed,
        .shuffle = spec->shuffle,
        .warn = spec->warn,
        .warn_ctx = spec->warn_ctx,
        .n_slots = slots_of(spec),
        .bundle = bundle_of(spec),
    };
    loader->n_batches = (spec->dataset.count + loader->batch_size - 1) / loader->batch_size;
    if (spec->limit >= 0 && loader->n_batches > spec->limit)
        loader->n_batches = spec->limit;
    loader->claimed = loader->n_batches;
    for (size_t f = 0; f < loader->n_features; f++)
        loader->bytes[f] = (size_t)kiln_shape_count(&spec->data->features[f].shape) *
                           kiln_dtype_size(spec->data->features[f].dtype);
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->room, NULL);
    pthread_cond_init(&loader->filled, NULL);
    status = allocate(loader, err);
    if (status >= 0 && spec->workers > 0)
        status = start_workers(loader, spec->workers, err);
    if (status < 0) {
        kiln_loader_free(loader);
        return status;
    }
    *ret = loader;
    return KILN_OK;
}

static void forget_skips(Slot *slot)
{
    for (size_t i = 0; i < slot->n_skips; i++)
        free(slot->skips[i].message);
    slot->n_skips = 0;
}

void kiln_loader_free(KilnLoader *loader)
{
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->mutex);
    loader->quit = true;
    pthread_cond_broadcast(&loader->room);
    pthread_mutex_unlock(&loader->mutex);
    for (int i = 0; i < loader->n_threads; i++)
        pthread_join(loader->threads[i], NULL);
    pthread_cond_destroy(&loader->filled);
    pthread_cond_destroy(&loader->room);
    pthread_mutex_destroy(&loader->mutex);
    for (int64_t i = 0; loader->slots != NULL && i < loader->n_slots; i++) {
        forget_skips(&loader->slots[i]);
        free(loader->slots[i].skips);
        for (size_t f = 0; f < loader->n_features; f++)
            free(loader->slots[i].data[f]);
    }
    free(loader->slots);
    free(loader->threads);
    free(loader->order);
    free(loader->warned);
    free(loader);
}

/* ---- An epoch --------------------------------------------------------------------- */

/* Fisher-Yates, keyed by seed and epoch alone. */
static void shuffle(KilnLoader *loader)
{
    uint32_t count = (uint32_t)loader->dataset.count;
    KilnRng rng;

    kiln_rng_init(&rng, loader->seed, KILN_RNG_SHUFFLE, (uint32_t)loader->epoch, 0);
    for (uint32_t i = 0; i < count; i++)
        loader->order[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = kiln_rng_below(&rng, i), held = loader->order[i - 1];

        loader->order[i - 1] = loader->order[j];
        loader->order[j] = held;
    }
}

KilnStatus kiln_loader_start(KilnLoader *loader, int64_t epoch, int64_t first, KilnError *err)
{
    if (first < 0 || first > loader->n_batches)
        return kiln_error_set(err, KILN_E_RANGE,
                              "an epoch has %lld batches and can't be begun with number %lld; "
                              "the data set or batch_size is another than before",
                              (long long)loader->n_batches, (long long)first);
    pthread_mutex_lock(&loader->mutex);
    loader->claimed = loader->n_batches; /* nothing more of the epoch before */
    while (loader->busy > 0)
        pthread_cond_wait(&loader->filled, &loader->mutex);
    loader->epoch = epoch;
    loader->taken = first;
    loader->held = NULL;
    for (int64_t i = 0; i < loader->n_slots; i++) {
        forget_skips(&loader->slots[i]);
        loader->slots[i].ready = false;
    }
    if (loader->shuffle)
        shuffle(loader);
    loader->claimed = first;
    loader->free_up_to = first + loader->n_slots;
    pthread_cond_broadcast(&loader->room);
    pthread_mutex_unlock(&loader->mutex);
    return KILN_OK;
}

/* Warn of each sample once in the life of the loader. */
static void report_skips(KilnLoader *loader, Slot *slot)
{
    if (slot->n_skips > 0 && loader->warned == NULL)
        loader->warned = calloc((size_t)loader->dataset.count / 8 + 1, 1);
    for (size_t i = 0; i < slot->n_skips && loader->warned != NULL; i++) {
        unsigned char *byte = &loader->warned[slot->skips[i].sample / 8];
        unsigned bit = 1u << (slot->skips[i].sample % 8);

        if ((*byte & bit) == 0 && loader->warn != NULL && slot->skips[i].message != NULL)
            loader->warn(loader->warn_ctx, slot->skips[i].message);
        *byte = (unsigned char)(*byte | bit);
    }
    forget_skips(slot);
}

/* The slot that holds batch `taken`, filled. */
static Slot *wait_for_slot(KilnLoader *loader)
{
    Slot *slot = &loader->slots[loader->taken % loader->n_slots];

    if (loader->n_threads == 0) {
        slot->batch = loader->taken;
        fill(loader, slot);
        return slot;
    }
    pthread_mutex_lock(&loader->mutex);
    if (loader->held != NULL) {
        loader->held->ready = false;
        loader->free_up_to++;
        if (loader->free_up_to - loader->claimed >= loader->bundle)
            pthread_cond_signal(&loader->room);
    }
    while (!slot->ready || slot->batch != loader->taken)
        pthread_cond_wait(&loader->filled, &loader->mutex);
    pthread_mutex_unlock(&loader->mutex);
    return slot;
}

KilnStatus kiln_loader_next(KilnLoader *loader, KilnBatch *ret, KilnError *err)
{
    KilnBatch batch = { .index = loader->taken };

    while (loader->taken < loader->n_batches && batch.size == 0) {
        Slot *slot = wait_for_slot(loader);

        loader->held = slot;
        report_skips(loader, slot);
        if (slot->status < 0) {
            loader->taken = loader->n_batches;
            return kiln_error_set(err, slot->status, "%s", slot->error.text);
        }
        loader->taken++;
        batch.index = slot->batch;
        batch.size = slot->size;
        memcpy(batch.data, slot->data, sizeof(batch.data));
    }
    *ret = batch;
    return KILN_OK;
}
