/* What a KilnFlatEnv holds. */
#ifndef KILN_FLAT_FLAT_ENV_H
#define KILN_FLAT_FLAT_ENV_H

#include "base/arena.h"
#include "kiln/flat/run.h"

struct KilnFlatEnv {
    KilnRunEnv run;
    KilnConsole console;
    KilnRunResult result;
    KilnArena arena; /* of texts */
    void *ctx;
    KilnFlatWrite *write;
    KilnFlatProgress *progress;
    KilnFlatRow *row;
    KilnFlatOutput *output;
    volatile int stop;
};

#endif
