/* Each sample's picture has a name of its own: two files that differ in folder or ending alone get
 * the number of the sample, too. */
#include "train/report/picture_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "kiln/images/sample_pictures.h"
#include "train/trainer.h"

typedef struct Stem {
    const char *text;
    size_t length;
} Stem;

static Stem stem_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash != NULL ? slash + 1 : name;
    const char *dot = strrchr(last, '.');

    return (Stem) { last, dot != NULL ? (size_t)(dot - last) : strlen(last) };
}

static uint64_t hash_of(Stem stem)
{
    return XXH3_64bits(stem.text, stem.length);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Of sorted hashes, one of each that is there several times, in front; how many. */
static size_t keep_shared(uint64_t *hashes, size_t n)
{
    size_t kept = 0;

    for (size_t i = 1; i < n; i++)
        if (hashes[i] == hashes[i - 1] && (kept == 0 || hashes[kept - 1] != hashes[i]))
            hashes[kept++] = hashes[i];
    return kept;
}

static KilnStatus look_at(KilnPictureNames *names, const KilnDataset *set, KilnError *err)
{
    const size_t bytes = (size_t)set->count * sizeof(uint64_t);

    kiln_picture_names_release(names);
    names->shared = malloc(bytes > 0 ? bytes : 1);
    if (names->shared == NULL)
        return kiln_error_nomem(err, bytes);
    for (int64_t i = 0; i < set->count; i++)
        names->shared[i] = hash_of(stem_of(set->name(set->ctx, i)));
    qsort(names->shared, (size_t)set->count, sizeof(uint64_t), compare);
    names->n_shared = keep_shared(names->shared, (size_t)set->count);
    names->set = set;
    return KILN_OK;
}

void kiln_picture_names_release(KilnPictureNames *names)
{
    free(names->shared);
    *names = (KilnPictureNames) { 0 };
}

static bool same_file(const char *a, const char *b)
{
    struct stat one, other;

    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

KilnStatus kiln_sample_picture_path(KilnTrainer *trainer, int64_t sample, const char *dir,
                                    const char *ending, char ret[KILN_PICTURE_PATH], KilnError *err)
{
    KilnPictureNames *names = &trainer->picture_names;
    const KilnDataset *set = kiln_trainer_dataset(trainer);
    const char *name = kiln_trainer_sample_name(trainer, sample);
    KilnStatus status = name != NULL && names->set != set ? look_at(names, set, err) : KILN_OK;
    int length;

    if (status < 0)
        return status;
    if (name == NULL) {
        length = snprintf(ret, KILN_PICTURE_PATH, "%s/%06lld%s", dir, (long long)sample, ending);
    } else {
        const Stem stem = stem_of(name);
        const uint64_t hash = hash_of(stem);
        const bool shared = bsearch(&hash, names->shared, names->n_shared, sizeof(hash), compare);
        char number[24] = "";

        if (shared)
            snprintf(number, sizeof(number), "-%06lld", (long long)sample);
        length = snprintf(ret, KILN_PICTURE_PATH, "%s/%.*s%s%s", dir, (int)stem.length, stem.text,
                          number, ending);
    }
    if (length >= KILN_PICTURE_PATH)
        return kiln_error_set(err, KILN_E_RANGE, "dir=%.80s...: the path is too long", dir);
    return name != NULL && same_file(name, ret)
               ? kiln_error_set(err, KILN_E_RANGE,
                                "dir=%s: the picture %s would overwrite the image itself; give "
                                "another folder",
                                dir, ret)
               : KILN_OK;
}
