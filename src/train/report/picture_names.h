/* Names of the pictures that are written of a set's samples. Not for components, which call
 * kiln_sample_picture_path (kiln/images/sample_pictures.h). */
#ifndef KILN_TRAIN_REPORT_PICTURE_NAMES_H
#define KILN_TRAIN_REPORT_PICTURE_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* The stems (file names without folders and ending) that several samples of a set have. */
typedef struct KilnPictureNames {
    const void *set;  /* the samples looked at: a KilnDataset; NULL: none yet */
    uint64_t *shared; /* hashes, ascending; owned */
    size_t n_shared;
} KilnPictureNames;

void kiln_picture_names_release(KilnPictureNames *names);

#endif
