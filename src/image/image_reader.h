/* The reader of image files as samples, in its two parts: what it makes of a file, and how large
 * that is. */
#ifndef KILN_IMAGE_IMAGE_READER_H
#define KILN_IMAGE_IMAGE_READER_H

#include <pthread.h>

#include "kiln/image.h"

/* Images that one call of read works with. */
typedef struct KilnImageScratch {
    KilnImage image, spare;
    struct KilnImageScratch *next;
} KilnImageScratch;

/* The statistics that a transform was given. */
typedef struct KilnImageStatistics {
    size_t transform; /* its number */
    double mean[4], std[4];
} KilnImageStatistics;

enum { KILN_IMAGE_MAX_STATISTICS = 8 };

struct KilnImageReader {
    KilnImageForm form;
    KilnImageStatistics statistics[KILN_IMAGE_MAX_STATISTICS];
    size_t n_statistics;
    pthread_mutex_t lock; /* of what follows */
    KilnImageScratch *unused;
};

/* Decode and transform a file as `form` says, to scratch->image. */
KILN_NODISCARD KilnStatus kiln_image_prepare(const KilnImageForm *form, const KilnImageFile *file,
                                             KilnImageScratch *scratch, KilnRng *rng,
                                             KilnError *err);

#endif
