/* A callback that slows a run down as long as a test needs it, however fast the machine is. While
 * there is a file `file`, which says "MILLISECONDS AFTER", each batch of any loop waits so long
 * once AFTER training batches are done; it waits no longer when the file goes. A batch that
 * waits makes the file `report`. */
#include "kiln.h"

#include <stdio.h>
#include <time.h>

typedef struct Opts {
    char *file, *report;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR(Opts, file, NULL, "how long batches take"),
    KILN_FIELD_STR_OPT(Opts, report, "null", "a file that is made when a batch waits; null: none"),
    KILN_FIELD_END,
};

/* How long this batch is to wait, as it stands in the file now. */
static long wait_ms(const Opts *opts, const KilnTrainer *trainer)
{
    FILE *file = fopen(opts->file, "r");
    long ms = 0, after = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld %ld", &ms, &after) != 2 || kiln_trainer_batches_done(trainer) < after)
        ms = 0;
    fclose(file);
    return ms;
}

static void report(const Opts *opts)
{
    FILE *file = opts->report != NULL ? fopen(opts->report, "w") : NULL;

    if (file != NULL)
        fclose(file);
}

static KilnStatus brake(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const struct timespec nap = { .tv_nsec = 1000000 };

    (void)err;
    for (long waited = 0; waited < wait_ms(kiln_opts(self), trainer); waited++) {
        if (waited == 0)
            report(kiln_opts(self));
        nanosleep(&nap, NULL);
    }
    return KILN_OK;
}

static const KilnCallbackOps ops = {
    .on_train_batch_start = brake,
    .on_validation_batch_start = brake,
    .on_test_batch_start = brake,
};

static const KilnComponent component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "brake",
    .summary = "Makes batches take their time, for tests",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)
