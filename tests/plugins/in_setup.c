/* A callback that goes wrong or waits while a trainer is set up, in a run or a measurement: it
 * crashes where the trainer has so many threads, and waits as long as there is a file. */
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct Opts {
    int64_t crash_threads;
    char *wait, *reached;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, crash_threads, "-1", -1, 1e6,
                   "crash with so many threads; 0: with any; -1: never"),
    KILN_FIELD_STR_OPT(Opts, wait, "null", "wait while there is this file; null: never"),
    KILN_FIELD_STR_OPT(Opts, reached, "null", "a file that is made before; null: none"),
    KILN_FIELD_END,
};

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const struct timespec nap = { .tv_nsec = 1000000 };
    const Opts *opts = kiln_opts(self);
    FILE *file = opts->reached != NULL ? fopen(opts->reached, "w") : NULL;

    (void)err;
    if (file != NULL)
        fclose(file);
    if (opts->crash_threads == 0 || opts->crash_threads == kiln_trainer_threads(trainer))
        abort();
    while (opts->wait != NULL && access(opts->wait, F_OK) == 0)
        nanosleep(&nap, NULL);
    return KILN_OK;
}

static const KilnCallbackOps ops = { .setup = setup };

static const KilnComponent component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "in_setup",
    .summary = "Crash or wait in setup",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)
