/* What the tests of whole runs share: a datamodule of points, a task that parts
 * them by a plane, a callback that watches and disturbs, and running a config. */
#ifndef KILN_TESTS_SUPPORT_TRAIN_SUPPORT_H
#define KILN_TESTS_SUPPORT_TRAIN_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kiln.h"
#include "registry/registry.h"
#include "train/trainer.h"

/* ---- Points -------------------------------------------------------------------------- */

typedef struct PointsOpts {
    KILN_LOADING_OPTIONS;
    int64_t train_count, val_count, test_count, nan_at, skip_at, broken_at, sample_ms;
} PointsOpts;

static const KilnField points_fields[] = {
    KILN_LOADING_FIELDS(PointsOpts, "8"),
    KILN_FIELD_I64(PointsOpts, train_count, "36", 0, 1e6, "training samples"),
    KILN_FIELD_I64(PointsOpts, val_count, "16", 0, 1e6, "validation samples"),
    KILN_FIELD_I64(PointsOpts, test_count, "20", 0, 1e6, "test samples"),
    KILN_FIELD_I64(PointsOpts, nan_at, "-1", -1, 1e6, "this sample is not a number"),
    KILN_FIELD_I64(PointsOpts, skip_at, "-1", -1, 1e6, "this sample is left out"),
    KILN_FIELD_I64(PointsOpts, broken_at, "-1", -1, 1e6, "this sample can't be read"),
    KILN_FIELD_I64(PointsOpts, sample_ms, "0", 0, 1000, "reading a sample takes so long"),
    KILN_FIELD_END,
};

static inline void rest_ms(int64_t ms)
{
    const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    if (ms > 0)
        nanosleep(&time, NULL);
}

/* The point itself; returns its class. */
static inline int32_t points_draw(int64_t index, float x[2])
{
    KilnRng own;

    kiln_rng_init(&own, 5, KILN_RNG_DATA, 0, (uint64_t)index);
    x[0] = kiln_rng_range(&own, -1.0f, 1.0f);
    x[1] = kiln_rng_range(&own, -1.0f, 1.0f);
    return x[0] + 2.0f * x[1] > 0.1f;
}

static inline int64_t points_label(void *ctx, int64_t index)
{
    float x[2];

    (void)ctx;
    return points_draw(index, x);
}

static inline KilnStatus points_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                                    KilnError *err)
{
    const PointsOpts *opts = kiln_opts(ctx);
    float *x = sample->data[0];

    rest_ms(opts->sample_ms);
    if (index == opts->broken_at)
        return kiln_error_set(err, KILN_E_FORMAT, "point %d is broken", (int)index);
    if (index == opts->skip_at)
        return kiln_error_set(err, KILN_E_SKIP, "point %d is unreadable", (int)index);
    *(int32_t *)sample->data[1] = points_draw(index, x);
    x[0] += 0.01f * kiln_rng_normal(rng); /* another one in every epoch */
    if (index == opts->nan_at)
        x[0] = NAN;
    return KILN_OK;
}

static inline KilnStatus points_setup(KilnInstance *self, const KilnDataContext *context,
                                      KilnError *err)
{
    (void)self;
    (void)context;
    (void)err;
    return KILN_OK;
}

static inline KilnStatus points_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const char *const names[] = { "below", "above" };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) {
        .n_features = 2,
        .features = {
            { .name = "x", .dtype = KILN_F32, .shape = { .rank = 1, .dim = { 2 } } },
            { .name = "label", .dtype = KILN_I32 },
        },
        .n_classes = 2,
        .class_names = names,
    };
    return KILN_OK;
}

static inline KilnStatus points_dataset(KilnInstance *self, KilnSplit split, size_t set,
                                        KilnDataset *ret, KilnError *err)
{
    const PointsOpts *opts = kiln_opts(self);
    const int64_t counts[] = { opts->train_count, opts->val_count, opts->test_count };

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = counts[split], .ctx = self, .get = points_get, .label = points_label
    };
    return KILN_OK;
}

static inline KilnStatus points_input(KilnInstance *self, const char *path, KilnDataset *ret,
                                      KilnError *err)
{
    (void)path;
    (void)err;
    *ret = (KilnDataset) { .count = 19, .ctx = self, .get = points_get };
    return KILN_OK;
}

static inline KilnLoading points_loading(const KilnInstance *self)
{
    return KILN_LOADING((const PointsOpts *)kiln_opts(self));
}

static const KilnDataModuleOps points_ops = {
    .setup = points_setup,
    .spec = points_spec,
    .dataset = points_dataset,
    .open_input = points_input,
    .loading = points_loading,
};

static const KilnComponent points_component = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "test_points",
    .summary = "Points on both sides of a line",
    KILN_FIELDS(points_fields),
    .opts_size = sizeof(PointsOpts),
    .ops.datamodule = &points_ops,
};

/* ---- The task ---------------------------------------------------------------------------- */

typedef struct PlaneOpts {
    KilnInstance *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
    int64_t hidden;
    bool misfit;
} PlaneOpts;

typedef struct PlaneState {
    KilnLinear hidden, out;
} PlaneState;

static const KilnField plane_fields[] = {
    KILN_FIELD_COMPONENT(PlaneOpts, optimizer, KILN_KIND_OPTIMIZER, NULL, "optimizer"),
    KILN_FIELD_COMPONENT_OPT(PlaneOpts, scheduler, KILN_KIND_SCHEDULER, "null", "scheduler"),
    KILN_FIELD_COMPONENT_MAP(PlaneOpts, metrics, KILN_KIND_METRIC,
                             "{accuracy: accuracy, area: auroc}", "metrics"),
    KILN_FIELD_I64(PlaneOpts, hidden, "6", 1, 100, "width"),
    KILN_FIELD_BOOL(PlaneOpts, misfit, "false", "make a step whose shapes do not fit"),
    KILN_FIELD_END,
};

static inline KilnStatus plane_setup(KilnInstance *self, const KilnScope *scope,
                                     const KilnDataSpec *data, KilnError *err)
{
    const PlaneOpts *opts = kiln_opts(self);
    PlaneState *state = kiln_state(self);
    KilnStatus status = kiln_nn_linear_init(&state->hidden, scope, "hidden", 2, opts->hidden, true,
                                            err);

    if (status >= 0)
        status = kiln_nn_linear_init(&state->out, scope, "out", opts->hidden, data->n_classes, true,
                                     err);
    return status;
}

static inline KilnTensor *plane_forward(KilnInstance *self, KilnStep *step)
{
    const PlaneOpts *opts = kiln_opts(self);
    PlaneState *state = kiln_state(self);
    KilnTensor *x = kiln_step_input(step, opts->misfit ? "label" : "x");

    x = kiln_relu(kiln_nn_linear(&state->hidden, x));
    if (kiln_step_training(step))
        x = kiln_dropout(x, 0.1, kiln_step_dropout_key(step), kiln_step_stream(step));
    return kiln_nn_linear(&state->out, x);
}

static inline void plane_log(KilnInstance *self, KilnStep *step, KilnTensor *logits,
                             KilnTensor *loss, const char *loss_name, unsigned flags)
{
    const PlaneOpts *opts = kiln_opts(self);

    kiln_step_log(step, loss_name, loss, flags);
    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], logits, kiln_step_input(step, "label"), 0);
}

static inline KilnTensor *plane_train(KilnInstance *self, KilnStep *step)
{
    KilnTensor *logits = plane_forward(self, step);
    KilnTensor *loss = kiln_cross_entropy(logits, kiln_step_input(step, "label"),
                                          (KilnCrossEntropy) { 0 });

    plane_log(self, step, logits, loss, "train/loss",
              KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static inline void plane_validate(KilnInstance *self, KilnStep *step)
{
    KilnTensor *logits = plane_forward(self, step);

    plane_log(self, step, logits,
              kiln_cross_entropy(logits, kiln_step_input(step, "label"), (KilnCrossEntropy) { 0 }),
              "val/loss", KILN_LOG_LOWER_IS_BETTER);
}

static inline void plane_test(KilnInstance *self, KilnStep *step)
{
    KilnTensor *logits = plane_forward(self, step);

    plane_log(self, step, logits,
              kiln_cross_entropy(logits, kiln_step_input(step, "label"), (KilnCrossEntropy) { 0 }),
              "test/loss", KILN_LOG_LOWER_IS_BETTER);
}

static inline void plane_predict(KilnInstance *self, KilnStep *step)
{
    kiln_step_output(step, "probabilities", kiln_softmax(plane_forward(self, step), -1));
}

static inline KilnStatus plane_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const PlaneOpts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) {
        .n = 1, .use = { { .optimizer = opts->optimizer, .scheduler = opts->scheduler } }
    };
    return KILN_OK;
}

static const KilnModuleOps plane_ops = {
    .setup = plane_setup,
    .training_step = plane_train,
    .validation_step = plane_validate,
    .test_step = plane_test,
    .predict_step = plane_predict,
    .configure_optimizers = plane_optimizers,
};

static const KilnComponent plane_component = {
    .kind = KILN_KIND_MODULE,
    .name = "test_plane",
    .summary = "Which side of a line",
    KILN_FIELDS(plane_fields),
    .opts_size = sizeof(PlaneOpts),
    .state_size = sizeof(PlaneState),
    .ops.module = &plane_ops,
};

/* ---- The probe: notes hooks, stops or fills the disk at a step ------------------------------ */

static struct Probe {
    char hooks[8192];      /* "fit_start train_start ..." */
    volatile int stop;     /* the run's stop flag */
    int64_t stop_at;       /* set it after this step; 0: never */
    int64_t stop_at_batch; /* or after so many batches; 0: never */
    int64_t batch_ms;      /* the end of a training batch takes so long */
    int64_t disk_full_at;  /* files can't grow from this step on; 0: never */
    char printed[1 << 16]; /* on the console */
} probe;

static inline KilnStatus probe_note(const char *hook)
{
    size_t used = strlen(probe.hooks);

    snprintf(probe.hooks + used, sizeof(probe.hooks) - used, "%s%s", used > 0 ? " " : "", hook);
    return KILN_OK;
}

static inline void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

#define PROBE_HOOK(name)                                                                           \
    static inline KilnStatus probe_##name(KilnInstance *self, KilnTrainer *trainer,                \
                                          KilnError *err)                                          \
    {                                                                                              \
        (void)self;                                                                                \
        (void)trainer;                                                                             \
        (void)err;                                                                                 \
        return probe_note(#name);                                                                  \
    }
PROBE_HOOK(setup)
PROBE_HOOK(fit_start)
PROBE_HOOK(train_start)
PROBE_HOOK(train_epoch_start)
PROBE_HOOK(train_batch_start)
PROBE_HOOK(train_epoch_end)
PROBE_HOOK(validation_start)
PROBE_HOOK(validation_epoch_start)
PROBE_HOOK(validation_batch_start)
PROBE_HOOK(validation_batch_end)
PROBE_HOOK(validation_epoch_end)
PROBE_HOOK(validation_end)
PROBE_HOOK(train_end)
PROBE_HOOK(fit_end)
PROBE_HOOK(test_start)
PROBE_HOOK(test_epoch_start)
PROBE_HOOK(test_batch_start)
PROBE_HOOK(test_batch_end)
PROBE_HOOK(test_epoch_end)
PROBE_HOOK(test_end)
PROBE_HOOK(teardown)

static inline KilnStatus probe_train_batch_end(KilnInstance *self, KilnTrainer *trainer,
                                               KilnError *err)
{
    (void)self;
    (void)err;
    const int64_t step = kiln_trainer_global_step(trainer);

    if (step > 0 && step == probe.stop_at)
        probe.stop = 1;
    if (kiln_trainer_batches_done(trainer) == probe.stop_at_batch)
        probe.stop = 1;
    if (step > 0 && step == probe.disk_full_at) {
        (void)!kiln_save_requests_finish(trainer, NULL); /* what was begun is on disk */
        limit_files(900);
    }
    rest_ms(probe.batch_ms);
    return probe_note("train_batch_end");
}

static inline void probe_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)
{
    (void)self;
    (void)trainer;
    (void)why;
    (void)probe_note("exception");
}

static const KilnCallbackOps probe_ops = {
    .setup = probe_setup,
    .on_fit_start = probe_fit_start,
    .on_train_start = probe_train_start,
    .on_train_epoch_start = probe_train_epoch_start,
    .on_train_batch_start = probe_train_batch_start,
    .on_train_batch_end = probe_train_batch_end,
    .on_train_epoch_end = probe_train_epoch_end,
    .on_validation_start = probe_validation_start,
    .on_validation_epoch_start = probe_validation_epoch_start,
    .on_validation_batch_start = probe_validation_batch_start,
    .on_validation_batch_end = probe_validation_batch_end,
    .on_validation_epoch_end = probe_validation_epoch_end,
    .on_validation_end = probe_validation_end,
    .on_train_end = probe_train_end,
    .on_fit_end = probe_fit_end,
    .on_test_start = probe_test_start,
    .on_test_epoch_start = probe_test_epoch_start,
    .on_test_batch_start = probe_test_batch_start,
    .on_test_batch_end = probe_test_batch_end,
    .on_test_epoch_end = probe_test_epoch_end,
    .on_test_end = probe_test_end,
    .on_exception = probe_exception,
    .teardown = probe_teardown,
};

static const KilnComponent probe_component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "test_probe",
    .summary = "Watch and disturb",
    .ops.callback = &probe_ops,
};

/* ---- Running --------------------------------------------------------------------------------- */

/* A folder of its own for each test, in memory where that is possible: the runs
 * flush to disk often. */
static char work[64];

static inline int make_work(void **unused)
{
    (void)unused;
    memset(&probe, 0, sizeof(probe));
    snprintf(work, sizeof(work), "%s/kiln-train-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(work) == NULL;
}

static inline int remove_work(void **unused)
{
    (void)unused;
    return kiln_path_remove(work, NULL) < 0;
}

static inline void keep_text(void *ctx, const char *text)
{
    size_t used = strlen(probe.printed);

    (void)ctx;
    snprintf(probe.printed + used, sizeof(probe.printed) - used, "%s", text);
}

/* A composed config and what it stands on. */
typedef struct Composed {
    KilnRegistry *registry;
    KilnConfig *config;
    KilnRunEnv env;
} Composed;

static const KilnConsole keeping = { .width = 80, .write = keep_text };

/* A test's own components, NULL-terminated; NULL: none. */
static const KilnComponent *const *more_components;

/* `overrides` is NULL-terminated and must outlive `ret`. */
static inline void compose(Composed *ret, const char *const *overrides)
{
    static const KilnComponent *const components[] = { &points_component, &plane_component,
                                                       &probe_component, NULL };
    KilnComposeRequest request = {
        .config_path = "tests/data/train",
        .overrides = overrides,
        .sections = kiln_run_sections(),
    };
    KilnErrors *errors = NULL;
    KilnError err = { 0 };

    *ret = (Composed) { 0 };
    assert_int_equal(kiln_registry_new(&ret->registry, &err), KILN_OK);
    if (kiln_registry_add(ret->registry, components, &err) < 0 ||
        (more_components != NULL && kiln_registry_add(ret->registry, more_components, &err) < 0))
        fail_msg("%s", err.text);
    request.registry = ret->registry;
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    if (kiln_compose(&request, &ret->config, errors) < 0 ||
        kiln_config_check(ret->config, ret->registry, errors) < 0)
        fail_msg("%s", kiln_errors_text(errors, 0));
    kiln_errors_free(errors);
    ret->env = (KilnRunEnv) {
        .registry = ret->registry,
        .console = &keeping,
        .overrides = overrides,
        .stop = &probe.stop,
    };
}

static inline void composed_free(Composed *composed)
{
    kiln_config_free(composed->config);
    kiln_registry_free(composed->registry);
}

enum { MOST_OVERRIDES = 24 };

/* Train with these overrides, separated by blanks, and kiln.run.dir=work/NAME
 * unless `name` is NULL. */
static inline KilnStatus fit(const char *name, const char *overrides, KilnRunResult *result,
                             KilnError *err)
{
    char dir[192], words[1024];
    const char *list[MOST_OVERRIDES + 1] = { NULL };
    size_t n = 0;
    Composed composed;

    if (name != NULL) {
        snprintf(dir, sizeof(dir), "kiln.run.dir=%s/%s", work, name);
        list[n++] = dir;
    }
    snprintf(words, sizeof(words), "%s", overrides);
    for (char *p = words; *p != '\0';) {
        assert_true(n < MOST_OVERRIDES);
        list[n++] = p;
        p += strcspn(p, " ");
        if (*p == ' ')
            *p++ = '\0';
    }
    probe.stop = 0;
    probe.hooks[0] = '\0';
    compose(&composed, list);
    *result = (KilnRunResult) { 0 };
    KilnStatus status = kiln_run_fit(composed.config, &composed.env, result, err);
    composed_free(&composed);
    return status;
}

static inline void fit_well(const char *name, const char *overrides, const char *status)
{
    KilnRunResult result;
    KilnError err = { 0 };

    if (fit(name, overrides, &result, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(result.status, status);
}

/* The bytes of work/PATH, owned by the caller. */
static inline char *read_work(const char *path, size_t *ret_size)
{
    char full[640], *text = NULL;
    KilnError err = { 0 };

    snprintf(full, sizeof(full), "%s/%s", work, path);
    if (kiln_file_read(full, 1 << 26, &text, ret_size, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

static inline bool exists(const char *path)
{
    char full[640];

    snprintf(full, sizeof(full), "%s/%s", work, path);
    return access(full, F_OK) == 0;
}

static inline void assert_same_file(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    char *x = read_work(a, &n), *y = read_work(b, &m);

    size_t at = 0;
    while (at < n && at < m && x[at] == y[at])
        at++;
    if (n != m || at < n)
        fail_msg("%s and %s differ at byte %zu:\n%.99s\n%.99s", a, b, at, x + at, y + at);
    free(x);
    free(y);
}

/* metrics.csv of two runs: the same but for wall times, the sixth column. */
static inline void assert_same_rows(const char *a, const char *b)
{
    enum { WALL_TIME = 6 };
    const char *const names[] = { a, b };
    char *texts[2];

    for (int i = 0; i < 2; i++) {
        char path[256];
        size_t size = 0;
        int cell = 1;

        snprintf(path, sizeof(path), "%s/metrics.csv", names[i]);
        texts[i] = read_work(path, &size);
        char *to = texts[i];
        for (const char *p = texts[i]; *p != '\0'; p++) {
            cell = *p == '\n' ? 1 : cell + (*p == ',');
            if (cell != WALL_TIME)
                *to++ = *p;
        }
        *to = '\0';
    }
    assert_non_null(strchr(texts[0], '\n'));
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

/* summary.json of work/NAME; owned by the caller. */
static inline json_t *summary_of(const char *name)
{
    char path[256];
    size_t size;

    snprintf(path, sizeof(path), "%s/summary.json", name);
    char *text = read_work(path, &size);
    json_t *summary = json_loads(text, 0, NULL);
    assert_non_null(summary);
    free(text);
    return summary;
}

#endif
