/* Counts the training samples of each class. */
#include "train/loader/class_counts.h"

#include <stdlib.h>

#include "base/json.h"

static KilnStatus lacks_classes(KilnError *err)
{
    return kiln_error_set(err, KILN_E_MISSING,
                          "balancing classes needs the classes of the training samples, which are "
                          "not known here; give the weights as numbers");
}

/* Of samples with one class each. */
static KilnStatus count_label(KilnClassCounts *counts, KilnError *err)
{
    const KilnDataset *train = counts->train;

    if (train->label == NULL)
        return lacks_classes(err);
    for (int64_t i = 0; i < train->count; i++) {
        const int64_t label = train->label(train->ctx, i);

        if (label < 0 || label >= counts->spec->n_classes)
            continue;
        counts->counts[label]++;
        counts->samples++;
    }
    return KILN_OK;
}

/* Of samples with any number of labels: read that feature alone. */
static KilnStatus count_labels(KilnClassCounts *counts, const KilnFeature *labels, KilnError *err)
{
    const KilnDataSpec *spec = counts->spec;
    const KilnDataset *train = counts->train;
    void **data = calloc(spec->n_features, sizeof(*data));
    int64_t *lengths = calloc(spec->n_features, sizeof(*lengths));
    float *row = calloc((size_t)spec->n_classes, sizeof(*row));
    KilnSample sample = { .data = data, .lengths = lengths };
    KilnStatus status = data != NULL && lengths != NULL && row != NULL
                            ? KILN_OK
                            : kiln_error_nomem(err, (size_t)spec->n_classes * sizeof(*row));
    if (status >= 0)
        data[labels - spec->features] = row;
    for (int64_t i = 0; i < train->count && status >= 0; i++) {
        KilnRng rng;

        kiln_rng_init(&rng, 0, KILN_RNG_SHUFFLE, 0, (uint64_t)i);
        if (train->lengths != NULL)
            train->lengths(train->ctx, i, lengths);
        status = train->get(train->ctx, i, &rng, &sample, err);
        for (int64_t c = 0; c < spec->n_classes && status >= 0; c++)
            counts->counts[c] += row[c] > 0.5f;
        counts->samples += status >= 0;
        status = status == KILN_E_SKIP ? KILN_OK : status;
    }
    free(data);
    free(lengths);
    free(row);
    return status;
}

KilnStatus kiln_class_counts_make(KilnClassCounts *counts, KilnError *err)
{
    const KilnFeature *labels = counts->spec != NULL ? kiln_spec_labels(counts->spec) : NULL;

    if (counts->counts != NULL)
        return KILN_OK;
    if (counts->train == NULL || counts->spec->n_classes < 1)
        return lacks_classes(err);
    counts->samples = 0;
    counts->counts = calloc((size_t)counts->spec->n_classes, sizeof(*counts->counts));
    if (counts->counts == NULL)
        return kiln_error_nomem(err, (size_t)counts->spec->n_classes * sizeof(*counts->counts));
    const KilnStatus status = labels != NULL ? count_labels(counts, labels, err)
                                             : count_label(counts, err);
    if (status < 0)
        kiln_class_counts_release(counts);
    return status;
}

json_t *kiln_class_counts_json(const KilnClassCounts *counts)
{
    json_t *all = json_array();

    if (counts->counts == NULL) {
        json_decref(all);
        return NULL;
    }
    for (int64_t i = 0; i < counts->spec->n_classes; i++)
        kiln_json_add(&all, json_integer(counts->counts[i]));
    return json_pack("{s:I, s:o}", "samples", (json_int_t)counts->samples, "classes", all);
}

void kiln_class_counts_read(KilnClassCounts *counts, const json_t *saved)
{
    const json_t *all = json_object_get(saved, "classes");
    const size_t n = json_array_size(all);

    if (n == 0 || (int64_t)n != counts->spec->n_classes || counts->counts != NULL ||
        (counts->counts = calloc(n, sizeof(*counts->counts))) == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        counts->counts[i] = json_integer_value(json_array_get(all, i));
    counts->samples = json_integer_value(json_object_get(saved, "samples"));
}

void kiln_class_counts_release(KilnClassCounts *counts)
{
    free(counts->counts);
    counts->counts = NULL;
}
