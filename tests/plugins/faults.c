/* Components that fail in the middle of a run: a datamodule whose samples fail, take long, wait,
 * end their thread or fill memory, and a logger that fails. */
#include "kiln.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { NONE, READ, END, MEMORY, WAIT, SLOW };
enum { SIZE = 4 };

/* ---- The datamodule --------------------------------------------------------------------- */

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    int64_t what, after, count, val_count, test_count, sample_us;
    char *file;
} Opts;

static const KilnChoice whats[] = {
    { "none", NONE }, { "read", READ }, { "end", END }, { "memory", MEMORY },
    { "wait", WAIT }, { "slow", SLOW }, { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "8"),
    KILN_FIELD_ENUM(Opts, what, "none", whats, "what goes wrong"),
    KILN_FIELD_I64(Opts, after, "-1", -1, 1e9, "with which training sample that is read"),
    KILN_FIELD_I64(Opts, count, "64", 1, 1e9, "training samples"),
    KILN_FIELD_I64(Opts, val_count, "16", 0, 1e9, "validation samples"),
    KILN_FIELD_I64(Opts, test_count, "16", 0, 1e9, "test samples"),
    KILN_FIELD_I64(Opts, sample_us, "0", 0, 1e6, "microseconds that each takes"),
    KILN_FIELD_PATH_OPT(Opts, file, "null", "samples are read from this file, 4 floats each"),
    KILN_FIELD_END,
};

typedef struct State {
    const Opts *opts;
    const char **class_names;
    _Atomic int64_t read;
} State;

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);

    (void)context;
    state->opts = kiln_opts(self);
    state->class_names = kiln_class_names_copy(NULL, 2);
    return state->class_names != NULL ? KILN_OK : kiln_error_nomem(err, 64);
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const KilnFeature features[] = {
        { .name = "image",
          .content = KILN_IMAGE,
          .dtype = KILN_F32,
          .shape = { .rank = 3, .dim = { 1, SIZE, 1 } } },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 }
    };
    const State *state = kiln_state(self);

    (void)err;
    *ret = (KilnDataSpec) {
        .features = features,
        .n_features = KILN_COUNT(features),
        .n_classes = 2,
        .class_names = state->class_names,
    };
    return KILN_OK;
}

/* All memory that the process may still have. */
static KilnStatus take_memory(KilnError *err)
{
    const size_t size = (size_t)1 << 20;

    for (;;) {
        char *block = malloc(size);

        if (block == NULL)
            return kiln_error_nomem(err, size);
        memset(block, 1, size);
        block[0] = 2;
    }
}

static KilnStatus go_wrong(const Opts *opts, KilnError *err)
{
    switch (opts->what) {
    case READ:
        errno = EIO;
        return kiln_error_errno(err, "/data/broken.bin");
    case END:
        pthread_exit(NULL);
    case MEMORY:
        return take_memory(err);
    case WAIT:
        for (;;)
            sleep(1);
    case SLOW:
        sleep(1);
        return KILN_OK;
    default:
        return KILN_OK;
    }
}

static KilnStatus read_file(const char *path, int64_t index, float *to, KilnError *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = 0;

    if (fd >= 0)
        size = pread(fd, to, SIZE * sizeof(float), (off_t)index * (off_t)(SIZE * sizeof(float)));
    KilnStatus status = fd < 0 || size < 0 ? kiln_error_errno(err, path)
                        : size == (ssize_t)(SIZE * sizeof(float))
                            ? KILN_OK
                            : kiln_error_set(err, KILN_E_FORMAT, "%s: ends within sample %lld",
                                             path, (long long)index);
    if (fd >= 0)
        close(fd);
    return status;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    State *state = ctx;
    const Opts *opts = state->opts;
    const struct timespec pause = { .tv_sec = opts->sample_us / 1000000,
                                    .tv_nsec = opts->sample_us % 1000000 * 1000 };
    float *values = sample->data[0];
    KilnStatus status = KILN_OK;

    (void)rng;
    if (opts->sample_us > 0)
        nanosleep(&pause, NULL);
    for (int64_t i = 0; i < SIZE; i++)
        values[i] = (float)((index * 7 + i * 3) % 11) / 11.0f;
    *(int32_t *)sample->data[1] = (int32_t)(index % 2);
    if (opts->file != NULL)
        status = read_file(opts->file, index, values, err);
    if (status >= 0 && atomic_fetch_add(&state->read, 1) == opts->after)
        status = go_wrong(opts, err);
    return status;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = split == KILN_TRAIN ? opts->count
                 : split == KILN_VAL ? opts->val_count
                                     : opts->test_count,
        .ctx = kiln_state(self),
        .get = get,
    };
    return KILN_OK;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->class_names);
}

static const KilnDataModuleOps data_ops = {
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .loading = loading,
};

static const KilnComponent faulty = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "faulty",
    .summary = "Samples that go wrong",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.datamodule = &data_ops,
};

/* ---- The logger -------------------------------------------------------------------------- */

typedef struct LogOpts {
    int64_t after;
} LogOpts;

static const KilnField log_fields[] = {
    KILN_FIELD_I64(LogOpts, after, "5", 0, 1e9, "rows that it takes"),
    KILN_FIELD_END,
};

static KilnStatus open_log(KilnInstance *self, const KilnLogRun *run, KilnError *err)
{
    (void)self;
    (void)run;
    (void)err;
    return KILN_OK;
}

static KilnStatus log_metrics(KilnInstance *self, const KilnLogRow *row, KilnError *err)
{
    const LogOpts *opts = kiln_opts(self);
    int64_t *rows = kiln_state(self);

    (void)row;
    return (*rows)++ < opts->after
               ? KILN_OK
               : kiln_error_set(err, KILN_E_IO, "the server that takes the rows is gone");
}

static const KilnLoggerOps log_ops = { .open = open_log, .log_metrics = log_metrics };

static const KilnComponent failing = {
    .kind = KILN_KIND_LOGGER,
    .name = "failing",
    .summary = "A logger that fails",
    KILN_FIELDS(log_fields),
    .opts_size = sizeof(LogOpts),
    .state_size = sizeof(int64_t),
    .ops.logger = &log_ops,
};

/* ---- A callback that leaves no memory for what a step needs ------------------------------ */

typedef struct LimitOpts {
    int64_t batch;
} LimitOpts;

static const KilnField limit_fields[] = {
    KILN_FIELD_I64(LimitOpts, batch, "3", 0, 1e9, "from which batch on"),
    KILN_FIELD_END,
};

/* The process may have what it has. */
static bool take_no_more(void)
{
    struct rlimit limit = { .rlim_max = RLIM_INFINITY };
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL)
        return false;
    const bool known = fscanf(file, "%lld", &pages) == 1;
    fclose(file);
    limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    return known && setrlimit(RLIMIT_AS, &limit) == 0;
}

static KilnStatus on_train_batch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const LimitOpts *opts = kiln_opts(self);

    return kiln_trainer_batches_done(trainer) != opts->batch || take_no_more()
               ? KILN_OK
               : kiln_error_set(err, KILN_E_IO, "the memory can't be limited");
}

static const KilnCallbackOps limit_ops = { .on_train_batch_start = on_train_batch_start };

static const KilnComponent limit = {
    .kind = KILN_KIND_CALLBACK,
    .name = "memory_limit",
    .summary = "No more memory from some batch on",
    KILN_FIELDS(limit_fields),
    .opts_size = sizeof(LimitOpts),
    .ops.callback = &limit_ops,
};

static const KilnComponent *const list[] = { &faulty, &failing, &limit, NULL };
KILN_PLUGIN_DEFINE(list)
