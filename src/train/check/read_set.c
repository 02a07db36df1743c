/* Reads the samples of a set once, in all threads. */
#include "train/check/read_set.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/call.h"
#include "base/min.h"
#include "base/system/machine.h"
#include "base/system/threads.h"
#include "kiln/images/detection.h"

/* Room for counts of a feature; beyond that they are not kept. */
enum { MOST_IDS = 1 << 20, MOST_LENGTHS = 1 << 20, MOST_COLUMNS = 1 << 16 };
/* An image whose values differ by less has nothing on it. */
#define FLAT 0.02f

/* ---- Room ------------------------------------------------------------------------------------ */

static bool is_label(const KilnFeature *feature)
{
    return feature->content == KILN_LABEL;
}

static bool is_mask(const KilnFeature *feature)
{
    return is_label(feature) && feature->shape.rank == 2 && feature->dtype == KILN_I32;
}

/* Where the image is in its file (kiln/images/detection.h), which no model reads. */
static bool is_frame(const KilnFeature *feature)
{
    return feature->content == KILN_VECTOR && strcmp(feature->name, "frame") == 0 &&
           feature->shape.dim[0] == KILN_FRAME_COLUMNS;
}

static bool has_columns(const KilnFeature *feature)
{
    return !is_frame(feature) &&
           (feature->content == KILN_ROW || feature->content == KILN_VECTOR) &&
           feature->dtype == KILN_F32 && feature->shape.dim[0] <= MOST_COLUMNS;
}

static KilnStatus feature_init(const KilnDataSpec *spec, size_t f, KilnFeatureRead *ret,
                               KilnError *err)
{
    const KilnFeature *feature = &spec->features[f];
    const bool counts_classes = feature == kiln_spec_labels(spec) || is_mask(feature);
    const char *const *names = NULL;
    const int64_t n_ids = counts_classes ? spec->n_classes : kiln_spec_ids(spec, feature, &names);
    const int64_t most = feature->varies ? feature->shape.dim[0] : 0;
    bool whole = true;

    *ret = (KilnFeatureRead) {
        .first_bad = -1, .first_flat = -1, .first_empty = -1, .shortest = INT64_MAX
    };
    if ((feature->dtype == KILN_I32 || counts_classes) && n_ids > 0 && n_ids <= MOST_IDS) {
        ret->n_ids = n_ids;
        ret->ids = calloc((size_t)n_ids, sizeof(*ret->ids));
        whole = ret->ids != NULL;
    }
    if (feature->varies && most <= MOST_LENGTHS) {
        ret->lengths = calloc((size_t)most + 1, sizeof(*ret->lengths));
        whole = whole && ret->lengths != NULL;
    }
    if (has_columns(feature)) {
        const size_t n = (size_t)feature->shape.dim[0];

        ret->low = malloc((n + 1) * sizeof(*ret->low));
        ret->high = malloc((n + 1) * sizeof(*ret->high));
        whole = whole && ret->low != NULL && ret->high != NULL;
        for (size_t c = 0; c < n && whole; c++) {
            ret->low[c] = INFINITY;
            ret->high[c] = -INFINITY;
        }
    }
    return whole ? KILN_OK : kiln_error_nomem(err, (size_t)n_ids);
}

static void features_release(KilnFeatureRead *features, size_t n)
{
    for (size_t f = 0; f < n && features != NULL; f++) {
        free(features[f].ids);
        free(features[f].lengths);
        free(features[f].low);
        free(features[f].high);
    }
    free(features);
}

static KilnStatus features_new(const KilnDataSpec *spec, KilnFeatureRead **ret, KilnError *err)
{
    KilnStatus status = KILN_OK;

    *ret = calloc(spec->n_features + 1, sizeof(**ret));
    if (*ret == NULL)
        return kiln_error_nomem(err, spec->n_features * sizeof(**ret));
    for (size_t f = 0; f < spec->n_features && status >= 0; f++)
        status = feature_init(spec, f, &(*ret)[f], err);
    return status;
}

void kiln_set_read_release(KilnSetRead *set)
{
    features_release(set->features, set->n_features);
    free(set->keys);
}

/* Room for one sample. */
typedef struct Room {
    void **data;
    int64_t *lengths;
} Room;

static void room_release(Room *room, size_t n)
{
    for (size_t f = 0; f < n && room->data != NULL; f++)
        free(room->data[f]);
    free(room->data);
    free(room->lengths);
}

static KilnStatus room_init(Room *room, const KilnDataSpec *spec, const KilnDataset *dataset,
                            KilnError *err)
{
    room->data = calloc(spec->n_features + 1, sizeof(*room->data));
    room->lengths = calloc(spec->n_features + 1, sizeof(*room->lengths));
    if (room->data == NULL || room->lengths == NULL)
        return kiln_error_nomem(err, spec->n_features * sizeof(*room->data));
    for (size_t f = 0; f < spec->n_features; f++) {
        const KilnFeature *feature = &spec->features[f];
        const int64_t count = kiln_shape_count(&feature->shape);
        const size_t bytes = feature->content == KILN_TEXT
                                 ? sizeof(char *)
                                 : (size_t)count * kiln_dtype_size(feature->dtype);

        if (!kiln_dataset_has(dataset, feature->name))
            continue;
        room->data[f] = calloc(1, bytes + 1);
        if (count < 0 || room->data[f] == NULL)
            return kiln_error_nomem(err, bytes);
    }
    return KILN_OK;
}

/* ---- One sample -------------------------------------------------------------------------------
 */

/* Bytes of a feature in the sample. */
static size_t bytes_of(const KilnFeature *feature, int64_t length)
{
    const int64_t count = kiln_shape_count(&feature->shape);

    return (size_t)(feature->varies ? count / feature->shape.dim[0] * length : count) *
           kiln_dtype_size(feature->dtype);
}

static KilnStatus get_sample(const KilnDataSpec *spec, KilnInstance *datamodule,
                             const KilnDataset *dataset, int64_t index, KilnRng *rng, Room *room,
                             KilnError *err)
{
    KilnSample sample = { .data = room->data, .lengths = room->lengths };

    for (size_t f = 0; f < spec->n_features; f++)
        room->lengths[f] = 0;
    if (dataset->lengths != NULL)
        dataset->lengths(dataset->ctx, index, room->lengths);
    return KILN_CALLED(datamodule, "get", dataset->get(dataset->ctx, index, rng, &sample, err),
                       err);
}

/* A batch owns texts; here they are not needed. */
static void free_texts(const KilnDataSpec *spec, Room *room)
{
    for (size_t f = 0; f < spec->n_features; f++)
        if (spec->features[f].content == KILN_TEXT && room->data[f] != NULL) {
            free(*(char **)room->data[f]);
            *(char **)room->data[f] = NULL;
        }
}

static KilnSampleKey key_of(const KilnDataSpec *spec, const Room *room, int64_t index, int set)
{
    KilnSampleKey key = { .index = (uint32_t)index, .set = set };

    for (size_t f = 0; f < spec->n_features; f++) {
        const KilnFeature *feature = &spec->features[f];

        if (room->data[f] == NULL || feature->content == KILN_TEXT)
            continue;
        const size_t bytes = bytes_of(feature, room->lengths[f]);
        if (is_label(feature))
            key.labels = (uint32_t)XXH3_64bits_withSeed(room->data[f], bytes, key.labels + f);
        else
            key.input = XXH3_64bits_withSeed(room->data[f], bytes, key.input + f);
    }
    return key;
}

/* ---- Counting ---------------------------------------------------------------------------------
 */

/* Whether no channel of an image varies. */
static bool is_flat(const KilnFeature *feature, const float *values, size_t n)
{
    const size_t channels = (size_t)feature->shape.dim[2];

    for (size_t c = 0; c < channels; c++) {
        float low = INFINITY, high = -INFINITY;

        for (size_t i = c; i < n; i += channels) {
            low = values[i] < low ? values[i] : low;
            high = values[i] > high ? values[i] : high;
        }
        if (high - low >= FLAT)
            return false;
    }
    return true;
}

static void count_numbers(const KilnFeature *feature, const float *values, size_t n, int64_t index,
                          KilnFeatureRead *ret)
{
    bool nan = false, inf = false;

    for (size_t i = 0; i < n; i++) {
        nan = nan || isnan(values[i]);
        inf = inf || isinf(values[i]);
    }
    for (size_t c = 0; c < n && ret->low != NULL; c++) {
        ret->low[c] = values[c] < ret->low[c] ? values[c] : ret->low[c];
        ret->high[c] = values[c] > ret->high[c] ? values[c] : ret->high[c];
    }
    for (size_t c = 0; c < n && ret->ids != NULL; c++) /* flags of labels */
        ret->ids[c] += values[c] > 0.5f;
    ret->nan += nan;
    ret->inf += inf;
    const bool missing = feature->content == KILN_ROW || feature->content == KILN_VECTOR;
    if (ret->first_bad < 0 && (inf || (nan && !missing)))
        ret->first_bad = index;
    if (feature->content == KILN_IMAGE && is_flat(feature, values, n) && ret->flat++ == 0)
        ret->first_flat = index;
}

static void count_ids(const int32_t *values, size_t n, KilnFeatureRead *ret)
{
    for (size_t i = 0; i < n && ret->ids != NULL; i++)
        if (values[i] >= 0 && values[i] < ret->n_ids)
            ret->ids[values[i]]++;
}

static void count_length(const KilnFeature *feature, int64_t length, int64_t index,
                         KilnFeatureRead *ret)
{
    const int64_t most = feature->shape.dim[0];

    ret->shortest = kiln_min_i64(ret->shortest, length);
    ret->longest = length > ret->longest ? length : ret->longest;
    ret->total += length;
    ret->at_most += length == most;
    if (length == 0 && ret->empty++ == 0)
        ret->first_empty = index;
    if (ret->lengths != NULL && length >= 0 && length <= most)
        ret->lengths[length]++;
}

static void count_sample(const KilnDataSpec *spec, const Room *room, int64_t index,
                         KilnFeatureRead *ret)
{
    for (size_t f = 0; f < spec->n_features; f++) {
        const KilnFeature *feature = &spec->features[f];

        if (room->data[f] == NULL || feature->content == KILN_TEXT)
            continue;
        const size_t n = bytes_of(feature, room->lengths[f]) / kiln_dtype_size(feature->dtype);
        if (feature->varies)
            count_length(feature, room->lengths[f], index, &ret[f]);
        if (feature->dtype == KILN_F32)
            count_numbers(feature, room->data[f], n, index, &ret[f]);
        else if (feature->dtype == KILN_I32)
            count_ids(room->data[f], n, &ret[f]);
    }
}

/* The first sample of two that have something; -1: none. */
static int64_t first_of(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : kiln_min_i64(a, b);
}

static void merge_feature(const KilnFeature *feature, const KilnFeatureRead *from,
                          KilnFeatureRead *to)
{
    to->nan += from->nan;
    to->inf += from->inf;
    to->flat += from->flat;
    to->empty += from->empty;
    to->first_bad = first_of(to->first_bad, from->first_bad);
    to->first_flat = first_of(to->first_flat, from->first_flat);
    to->first_empty = first_of(to->first_empty, from->first_empty);
    to->shortest = kiln_min_i64(to->shortest, from->shortest);
    to->longest = from->longest > to->longest ? from->longest : to->longest;
    to->total += from->total;
    to->at_most += from->at_most;
    for (int64_t i = 0; i < to->n_ids; i++)
        to->ids[i] += from->ids[i];
    for (int64_t i = 0; to->lengths != NULL && i <= feature->shape.dim[0]; i++)
        to->lengths[i] += from->lengths[i];
    for (int64_t c = 0; to->low != NULL && c < feature->shape.dim[0]; c++) {
        to->low[c] = from->low[c] < to->low[c] ? from->low[c] : to->low[c];
        to->high[c] = from->high[c] > to->high[c] ? from->high[c] : to->high[c];
    }
}

/* ---- In all threads ---------------------------------------------------------------------------
 */

typedef struct ReadJob {
    const KilnDataSpec *spec;
    KilnInstance *datamodule;
    KilnSetRead *set;
    uint64_t seed;
    int64_t every, n; /* sample i is number i * every */
    const KilnPoll *poll;
    const char *what; /* static: who shows progress keeps it */
    atomic_llong next, n_keys;
    atomic_bool stop;
    bool has_input; /* some feature is no label */
} ReadJob;

typedef struct ReadWorker {
    ReadJob *job;
    int number;
    Room room;
    KilnFeatureRead *features;
    int64_t broken, first_broken[2];
    char why[2][512];
    KilnStatus status;
    KilnError err;
} ReadWorker;

static void note_broken(ReadWorker *worker, int64_t index, const KilnError *why)
{
    if (worker->broken < 2) {
        worker->first_broken[worker->broken] = index;
        snprintf(worker->why[worker->broken], sizeof(worker->why[0]), "%.*s", 500, why->text);
    }
    worker->broken++;
}

static void read_one(ReadWorker *worker, int64_t index)
{
    ReadJob *job = worker->job;
    KilnError why = { 0 };
    KilnRng rng;

    /* The same random numbers for all samples: equal ones stay equal. */
    kiln_rng_init(&rng, job->seed, KILN_RNG_AUGMENT, 0, 0);
    const KilnStatus status = get_sample(job->spec, job->datamodule, &job->set->dataset, index,
                                         &rng, &worker->room, &why);
    if (status < 0) {
        note_broken(worker, index, &why);
    } else {
        count_sample(job->spec, &worker->room, index, worker->features);
        if (job->has_input)
            job->set->keys[atomic_fetch_add(&job->n_keys, 1)] = key_of(job->spec, &worker->room,
                                                                       index, job->set->number);
    }
    free_texts(job->spec, &worker->room);
}

static void *read_samples(void *argument)
{
    enum { CHUNK = 32 };
    ReadWorker *worker = argument;
    ReadJob *job = worker->job;
    int64_t from;

    while (worker->status >= 0 && !atomic_load(&job->stop) &&
           (from = atomic_fetch_add(&job->next, CHUNK)) < job->n) {
        if (worker->number == 0) {
            worker->status = kiln_poll_check(job->poll, job->what, from, job->n, &worker->err);
            atomic_store(&job->stop, worker->status < 0);
        }
        for (int64_t i = from; i < from + CHUNK && i < job->n; i++)
            read_one(worker, i * job->every);
    }
    return NULL;
}

/* Keep the reasons of the first two samples, whichever thread had them. */
static void keep_why(KilnSetRead *set, int64_t first[2], int64_t index, const char *why)
{
    const int at = first[0] < 0 || index < first[0] ? 0 : first[1] < 0 || index < first[1] ? 1 : 2;

    if (at == 0) {
        first[1] = first[0];
        memcpy(set->why[1], set->why[0], sizeof(set->why[0]));
    }
    if (at < 2) {
        first[at] = index;
        memcpy(set->why[at], why, sizeof(set->why[0]));
    }
}

static void merge_broken(const ReadWorker *worker, KilnSetRead *set, int64_t first[2])
{
    for (int k = 0; k < 2 && k < worker->broken; k++)
        keep_why(set, first, worker->first_broken[k], worker->why[k]);
    set->broken += worker->broken;
}

static KilnStatus run_workers(ReadJob *job, KilnError *err)
{
    enum { MAX_THREADS = 16 };
    const size_t n = (size_t)kiln_min_i64(kiln_processors_here().threads, MAX_THREADS);
    ReadWorker *workers = calloc(n, sizeof(*workers));
    KilnStatus status = workers != NULL ? KILN_OK : kiln_error_nomem(err, n * sizeof(*workers));
    int64_t first[2] = { -1, -1 };

    for (size_t w = 0; w < n && status >= 0; w++) {
        workers[w].job = job;
        workers[w].number = (int)w;
        status = room_init(&workers[w].room, job->spec, &job->set->dataset, err);
        if (status >= 0)
            status = features_new(job->spec, &workers[w].features, err);
    }
    if (status >= 0)
        kiln_run_in_threads(n, read_samples, workers, sizeof(*workers));
    for (size_t w = 0; w < n && workers != NULL; w++) {
        if (status >= 0 && workers[w].status < 0) {
            status = workers[w].status;
            if (err != NULL)
                *err = workers[w].err;
        }
        for (size_t f = 0; f < job->spec->n_features && status >= 0; f++)
            merge_feature(&job->spec->features[f], &workers[w].features[f], &job->set->features[f]);
        if (status >= 0)
            merge_broken(&workers[w], job->set, first);
        room_release(&workers[w].room, job->spec->n_features);
        features_release(workers[w].features, job->spec->n_features);
    }
    free(workers);
    return status;
}

KilnStatus kiln_set_read(const KilnDataSpec *spec, KilnInstance *datamodule, uint64_t seed,
                         int64_t limit, const KilnPoll *poll, KilnSetRead *set, KilnError *err)
{
    const int64_t count = set->dataset.count;
    const int64_t every = count > limit ? (count + limit - 1) / limit : 1;
    static const char *const what[] = { "checking training samples", "checking validation samples",
                                        "checking test samples" };
    ReadJob job = { .what = what[set->split],
                    .spec = spec,
                    .datamodule = datamodule,
                    .set = set,
                    .seed = seed,
                    .every = every,
                    .n = (count + every - 1) / every,
                    .poll = poll };

    for (size_t f = 0; f < spec->n_features; f++)
        job.has_input = job.has_input ||
                        (!is_label(&spec->features[f]) && spec->features[f].content != KILN_TEXT &&
                         kiln_dataset_has(&set->dataset, spec->features[f].name));
    set->keys = malloc(((size_t)job.n + 1) * sizeof(*set->keys));
    set->n_features = spec->n_features;
    if (set->keys == NULL)
        return kiln_error_nomem(err, (size_t)job.n * sizeof(*set->keys));
    KilnStatus status = features_new(spec, &set->features, err);
    if (status >= 0)
        status = run_workers(&job, err);
    set->looked = job.n;
    set->n_keys = atomic_load(&job.n_keys);
    return status;
}

KilnStatus kiln_set_is_augmented(const KilnDataSpec *spec, KilnInstance *datamodule, uint64_t seed,
                                 const KilnSetRead *set, bool *ret, KilnError *err)
{
    enum { LOOKED = 8 };
    Room room = { 0 };
    KilnStatus status = room_init(&room, spec, &set->dataset, err);

    *ret = false;
    for (int64_t i = 0; i < LOOKED && i < set->dataset.count && status >= 0 && !*ret; i++) {
        uint64_t hashes[2] = { 0 };
        bool whole = true;

        for (uint64_t k = 0; k < 2 && whole; k++) {
            KilnRng rng;

            kiln_rng_init(&rng, seed, KILN_RNG_AUGMENT, 1, k);
            whole = get_sample(spec, datamodule, &set->dataset, i, &rng, &room, NULL) >= 0;
            hashes[k] = key_of(spec, &room, i, 0).input;
            free_texts(spec, &room);
        }
        *ret = whole && hashes[0] != hashes[1];
    }
    room_release(&room, spec->n_features);
    return status;
}

const char *kiln_set_read_name(const KilnSetRead *set, int64_t index, char *ret, size_t size)
{
    const char *name = set->dataset.name != NULL ? set->dataset.name(set->dataset.ctx, index)
                                                 : NULL;

    if (name != NULL)
        snprintf(ret, size, "%s", name);
    else
        snprintf(ret, size, "sample %lld of %s", (long long)index, set->name);
    return ret;
}
