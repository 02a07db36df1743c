/* A callback for tests of sweeps that crashes, hangs, fills memory or fails. */
#include "kiln.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NONE, ABORT, HANG, ALLOCATE, FAIL };

typedef struct Opts {
    int64_t what, epoch;
} Opts;

static const KilnChoice whats[] = {
    { "none", NONE },         { "abort", ABORT }, { "hang", HANG },
    { "allocate", ALLOCATE }, { "fail", FAIL },   { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, what, "none", whats, "what it does"),
    KILN_FIELD_I64(Opts, epoch, "0", 0, 1e6, "in which epoch"),
    KILN_FIELD_END,
};

/* Takes memory until there is none, and touches it. */
static KilnStatus allocate(KilnError *err)
{
    const size_t size = (size_t)16 << 20;
    void *last = NULL;

    for (int i = 0; i < 64; i++) {
        void **block = malloc(size);

        if (block == NULL)
            return kiln_error_nomem(err, size);
        memset(block, 1, size);
        *block = last;
        last = block;
    }
    return KILN_OK;
}

static KilnStatus on_train_epoch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    if (kiln_trainer_epoch(trainer) != opts->epoch)
        return KILN_OK;
    switch (opts->what) {
    case ABORT:
        signal(SIGABRT, SIG_DFL);
        abort();
    case HANG:
        for (;;)
            pause();
    case ALLOCATE:
        return allocate(err);
    case FAIL:
        return kiln_error_set(err, KILN_E_IO, "trouble was asked for");
    default:
        return KILN_OK;
    }
}

static const KilnCallbackOps ops = { .on_train_epoch_start = on_train_epoch_start };

static const KilnComponent trouble = {
    .kind = KILN_KIND_CALLBACK,
    .name = "trouble",
    .summary = "Makes trouble, for tests",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

static const KilnComponent *const list[] = { &trouble, NULL };
KILN_PLUGIN_DEFINE(list)
