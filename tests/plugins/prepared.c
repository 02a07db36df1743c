/* A datamodule whose samples are numbers in a file that prepare_data writes. With -DSHAREABLE jobs
 * of a sweep may share it, and its set-up takes long enough for that. */
#include "kiln.h"

#include <stdio.h>
#include <time.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    char *file;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "4"),
    KILN_FIELD_OUTPUT(Opts, file, NULL, "where the numbers are written"),
    KILN_FIELD_END,
};

enum { COUNT = 16 };

typedef struct State {
    int32_t labels[COUNT];
} State;

/* Fails when the file exists: only one process may write it. */
static KilnStatus prepare_data(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    FILE *file = fopen(opts->file, "wx");

    (void)context;
    if (file == NULL)
        return kiln_error_set(err, KILN_E_IO, "file: %s: is there before it is prepared",
                              opts->file);
    for (int i = 0; i < COUNT; i++)
        fprintf(file, "%d\n", i % 4);
    return fclose(file) == 0 ? KILN_OK : kiln_error_set(err, KILN_E_IO, "file: not written");
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    FILE *file = fopen(opts->file, "r");
    int n = 0;

    (void)context;
#ifdef SHAREABLE
    nanosleep(&(struct timespec) { .tv_nsec = 50000000 }, NULL);
#endif
    while (file != NULL && n < COUNT && fscanf(file, "%d", &state->labels[n]) == 1)
        n++;
    if (file != NULL)
        fclose(file);
    return n == COUNT ? KILN_OK
                      : kiln_error_set(err, KILN_E_IO, "file: %s: has %d of %d numbers", opts->file,
                                       n, COUNT);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const KilnFeature features[] = {
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
    };
    static const char *const names[] = { "0", "1", "2", "3" };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) {
        .features = features, .n_features = 1, .n_classes = 4, .class_names = names
    };
    return KILN_OK;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const State *state = ctx;

    (void)rng;
    (void)err;
    *(int32_t *)sample->data[0] = state->labels[index];
    return KILN_OK;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = split == KILN_TRAIN ? COUNT : 0,
                           .ctx = kiln_state(self),
                           .get = get };
    return KILN_OK;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnDataModuleOps ops = {
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .loading = loading,
    .prepare_data = prepare_data,
#ifdef SHAREABLE
    .shareable = true,
#endif
};

static const KilnComponent component = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "prepared",
    .summary = "Numbers that one process writes and all read",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.datamodule = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)
