/* A callback that crashes, or fails without a reason, in the hook that its options name. */
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY, STACK, ABORT, SILENT, NOTHING };

typedef struct Opts {
    char *hook;
    int64_t how;
} Opts;

static const KilnChoice hows[] = { { "memory", MEMORY }, { "stack", STACK },     { "abort", ABORT },
                                   { "silent", SILENT }, { "nothing", NOTHING }, { NULL, 0 } };

static const KilnField fields[] = {
    KILN_FIELD_STR(Opts, hook, "on_train_start", "the hook that goes wrong"),
    KILN_FIELD_ENUM(Opts, how, "memory", hows, "what happens there"),
    KILN_FIELD_END,
};

static volatile char *nowhere;

/* Reads what it wrote: no compiler makes a loop of it. */
static int deeper(int depth, volatile char *above)
{
    volatile char frame[4096];

    frame[0] = (char)depth;
    const int below = deeper(depth + 1, frame);
    return below + frame[0] + above[0];
}

static KilnStatus go_wrong(const KilnInstance *self, const char *hook)
{
    const Opts *opts = kiln_opts(self);
    volatile char top = 0;

    if (strcmp(opts->hook, hook) != 0)
        return KILN_OK;
    switch (opts->how) {
    case MEMORY:
        *nowhere = 1;
        return KILN_OK;
    case STACK:
        return deeper(0, &top) > 0 ? KILN_OK : KILN_E_INTERNAL;
    case ABORT:
        abort();
    default:
        return opts->how == SILENT ? KILN_E_INTERNAL : KILN_OK;
    }
}

static KilnStatus on_train_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)trainer;
    (void)err;
    return go_wrong(self, "on_train_start");
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    (void)err;
    return go_wrong(self, "init");
}

#ifdef IN_CONSTRUCTOR
__attribute__((constructor)) static void constructor(void)
{
    *nowhere = 1;
}
#endif
#ifdef MARK_IN_CONSTRUCTOR
/* Leaves a file where KILN_TEST_MARK says: this plugin's code was run. */
__attribute__((constructor)) static void constructor(void)
{
    const char *mark = getenv("KILN_TEST_MARK");
    FILE *file = mark != NULL ? fopen(mark, "w") : NULL;

    if (file != NULL)
        fclose(file);
}
#endif

static const KilnCallbackOps ops = { .on_train_start = on_train_start };

static const KilnComponent crashes = {
    .kind = KILN_KIND_CALLBACK,
    .name = "crashes",
    .summary = "Crash in a hook",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .init = init,
    .ops.callback = &ops,
};

static const KilnComponent *const list[] = { &crashes, NULL };
KILN_PLUGIN_DEFINE(list)
