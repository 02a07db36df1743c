/* Prepares raw samples in threads. */
#include "train/predict/prepare.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/threads.h"
#include "base/text.h"
#include "kiln/tools/clock.h"

/* ---- The features of one sample ------------------------------------------------------------ */

enum { ALIGNMENT = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Bytes of a feature of that length, if it varies. */
static size_t bytes_of(const KilnFeature *feature, int64_t length)
{
    KilnShape shape = feature->shape;

    if (feature->content == KILN_TEXT)
        return sizeof(char *);
    if (feature->varies)
        shape.dim[0] = length;
    return (size_t)kiln_shape_count(&shape) * kiln_dtype_size(feature->dtype);
}

/* Room for the longest. */
static size_t room_of(const KilnFeature *feature)
{
    return bytes_of(feature, feature->shape.dim[0]);
}

/* A block with a sample, its two arrays, and room for each feature but the labels. */
static KilnSample *allocate(const KilnDataSpec *spec)
{
    const size_t n = spec->n_features;
    size_t at = aligned(sizeof(KilnSample) + n * (sizeof(void *) + sizeof(int64_t))), size = at;

    for (size_t f = 0; f < n; f++)
        size += spec->features[f].content != KILN_LABEL ? aligned(room_of(&spec->features[f])) : 0;
    char *block = aligned_alloc(ALIGNMENT, size);
    if (block == NULL)
        return NULL;
    memset(block, 0, size);
    KilnSample *sample = (KilnSample *)block;
    void **data = (void **)(sample + 1);
    for (size_t f = 0; f < n; f++) {
        if (spec->features[f].content == KILN_LABEL)
            continue;
        data[f] = block + at;
        at += aligned(room_of(&spec->features[f]));
    }
    *sample = (KilnSample) { .data = data, .lengths = (int64_t *)(data + n) };
    return sample;
}

KilnStatus kiln_features_make(const KilnPreprocessor *preprocessor, const KilnRawSample *raw,
                              KilnSample **ret, KilnError *err)
{
    KilnSample *sample = allocate(preprocessor->spec);

    if (sample == NULL)
        return kiln_error_nomem(err, sizeof(*sample));
    KilnStatus status = kiln_preprocess(preprocessor, raw, sample, err);
    if (status < 0)
        kiln_features_free(preprocessor->spec, sample);
    else
        *ret = sample;
    return status;
}

void kiln_features_free(const KilnDataSpec *spec, KilnSample *sample)
{
    for (size_t f = 0; sample != NULL && f < spec->n_features; f++)
        if (spec->features[f].content == KILN_TEXT)
            free(*(char **)sample->data[f]);
    free(sample);
}

void kiln_features_move(const KilnDataSpec *spec, KilnSample *from, KilnSample *to)
{
    for (size_t f = 0; f < spec->n_features; f++) {
        const KilnFeature *feature = &spec->features[f];

        if (to->data[f] == NULL || from->data[f] == NULL)
            continue;
        memcpy(to->data[f], from->data[f], bytes_of(feature, from->lengths[f]));
        if (feature->content == KILN_TEXT)
            *(char **)from->data[f] = NULL;
    }
}

/* ---- All samples of a call ----------------------------------------------------------------- */

typedef struct Work {
    const KilnPreprocessor *preprocessor;
    const KilnRawSample *raw;
    KilnPrepared *prepared;
    size_t n;
    atomic_size_t next;
} Work;

static void prepare(const Work *work, size_t i)
{
    KilnPrepared *prepared = &work->prepared[i];
    KilnError err = { 0 };

    prepared->status = kiln_features_make(work->preprocessor, &work->raw[i], &prepared->sample,
                                          &err);
    if (prepared->status >= 0)
        return;
    prepared->error = kiln_strdup(err.text);
    if (prepared->error == NULL)
        prepared->status = KILN_E_NOMEM;
}

static void *run(void *arg)
{
    Work *work = arg;

    for (size_t i = atomic_fetch_add(&work->next, 1); i < work->n;
         i = atomic_fetch_add(&work->next, 1))
        prepare(work, i);
    return NULL;
}

KilnStatus kiln_prepare(const KilnPreprocessor *preprocessor, const KilnRawSample *raw, size_t n,
                        int threads, KilnPrepared *ret, KilnError *err)
{
    static const double worth_threads = 0.5e-3; /* seconds; starting one takes about 20 us */
    Work work = { .preprocessor = preprocessor, .raw = raw, .prepared = ret, .n = n, .next = 1 };
    const double start = kiln_clock();

    prepare(&work, 0);
    const double rest = (kiln_clock() - start) * (double)(n - 1);
    const size_t most = n < (size_t)threads ? n : (size_t)threads;
    kiln_run_in_threads(rest > worth_threads ? most : 1, run, &work, 0);
    for (size_t i = 0; i < n; i++)
        if (ret[i].status == KILN_E_NOMEM)
            return kiln_error_set(err, KILN_E_NOMEM, "out of memory preparing sample %zu", i);
    return KILN_OK;
}

void kiln_prepared_release(const KilnDataSpec *spec, KilnPrepared *prepared, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kiln_features_free(spec, prepared[i].sample);
        free(prepared[i].error);
    }
}
