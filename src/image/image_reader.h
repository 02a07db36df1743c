/* The reader of image files as samples, in its two parts: what it makes of a file, and how large
 * that is. */
#ifndef KILN_IMAGE_IMAGE_READER_H
#define KILN_IMAGE_IMAGE_READER_H

#include <pthread.h>

#include "kiln/image.h"

struct KilnImageReader {
    KilnImageForm form;
    pthread_mutex_t lock; /* of what follows */
    struct Scratch *unused;
};

#endif
