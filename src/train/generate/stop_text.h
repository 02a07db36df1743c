/* Text that ends before a stop string: holds back what may become one. */
#ifndef KILN_TRAIN_GENERATE_STOP_TEXT_H
#define KILN_TRAIN_GENERATE_STOP_TEXT_H

#include <stdbool.h>

#include "kiln/tools/text.h"

typedef struct KilnStopText {
    const char *const *stop; /* NULL-terminated, or NULL */
    KilnText text;           /* all so far, without the stop string and what follows */
    size_t shown;            /* bytes of it that can't be part of a stop string */
    bool stopped;
} KilnStopText;

/* Add n bytes, not after it stopped; sets `shown` and `stopped`. */
void kiln_stop_text_add(KilnStopText *stop, const char *data, size_t n);

#endif
