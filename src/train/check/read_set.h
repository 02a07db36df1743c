/* Reads the samples of a set once, in all threads, and counts what is in them. */
#ifndef KILN_TRAIN_CHECK_READ_SET_H
#define KILN_TRAIN_CHECK_READ_SET_H

#include "kiln/data.h"

/* A sample, to find equal ones. */
typedef struct KilnSampleKey {
    uint64_t input;  /* hash of all features that are no labels */
    uint32_t labels; /* hash of those that are */
    uint32_t index;
    int32_t set; /* of KilnSetRead.number */
} KilnSampleKey;

/* What the samples have in one feature. */
typedef struct KilnFeatureRead {
    int64_t nan, inf;         /* samples with such values */
    int64_t first_bad;        /* the sample with the first of them */
    int64_t flat, first_flat; /* images of (nearly) one colour */
    /* Of varying features. */
    int64_t shortest, longest, total,
        at_most;                /* at_most: samples of the greatest length possible */
    int64_t empty, first_empty; /* of length 0 */
    int64_t *lengths; /* samples by length [shape.dim[0] + 1]; NULL: it is too long to count */
    /* Of ids: how often each occurs [n_ids]; NULL: it has none, or too many. */
    int64_t *ids, n_ids;
    /* Of numbers in rows and vectors, of each column. */
    float *low, *high;
} KilnFeatureRead;

typedef struct KilnSetRead {
    int number;
    KilnSplit split;
    char name[64]; /* "train", "val/night" */
    KilnDataset dataset;
    int64_t looked; /* samples that were read, at equal distances */
    int64_t broken; /* that could not be read */
    char why[2][512];
    KilnSampleKey *keys; /* [n_keys], in any order */
    int64_t n_keys;
    KilnFeatureRead *features; /* of the spec */
    size_t n_features;
} KilnSetRead;

/* Read at most `limit` samples. Without features that are no labels there are no keys. */
KILN_NODISCARD KilnStatus kiln_set_read(const KilnDataSpec *spec, KilnInstance *datamodule,
                                        uint64_t seed, int64_t limit, const KilnPoll *poll,
                                        KilnSetRead *set, KilnError *err);
/* Whether the set's samples are augmented: some differ when they are read with other random
 * numbers.
 */
KILN_NODISCARD KilnStatus kiln_set_is_augmented(const KilnDataSpec *spec, KilnInstance *datamodule,
                                                uint64_t seed, const KilnSetRead *set, bool *ret,
                                                KilnError *err);
void kiln_set_read_release(KilnSetRead *set);
/* "train cat/1.png": a sample's name for messages, or its number; returns ret. */
const char *kiln_set_read_name(const KilnSetRead *set, int64_t index, char *ret, size_t size);

#endif
