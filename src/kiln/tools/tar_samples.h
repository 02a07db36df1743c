/* Samples in a tar as webdataset writes them: files that have the same name up to the first dot
 * after the last slash, one after the other: "a/1.jpg", "a/1.cls", "a/1.json". */
#ifndef KILN_TAR_SAMPLES_H
#define KILN_TAR_SAMPLES_H

#include "kiln/files/tar.h"
#include "kiln/files/text_records.h"

typedef struct KilnTarSample {
    const char *name;  /* of the image in the archive */
    int64_t image;     /* its number there */
    KilnString labels; /* a label, or a list of them (KILN_RECORDS_ITEM_END); data NULL: there is no
                        * such file. Valid for the call */
} KilnTarSample;

typedef struct KilnTarSampleSpec {
    const char *const *endings; /* of images, with the dot, ended by NULL */
    const char *label;          /* the ending of the file with the label: "cls" */
    const char *key;            /* of that file's JSON object; NULL: all of it is the label */
    /* Takes a sample; a failure ends the search. */
    KilnStatus (*take)(void *ctx, const KilnTarSample *sample, KilnError *err);
    void *ctx;
} KilnTarSampleSpec;

/* Pass each sample with an image to spec->take, in the archive's order. `path` of the archive
 * begins messages. KILN_E_FORMAT: JSON is damaged. A label that is neither text nor number nor a
 * list of these is KILN_E_TYPE. */
KILN_API KILN_NODISCARD KilnStatus kiln_tar_samples(const KilnTar *tar, const char *path,
                                                    const KilnTarSampleSpec *spec, KilnError *err);

#endif
