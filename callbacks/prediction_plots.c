/* Draws an image classifier's predictions in the last validation and the test, for a run and for
 * `kiln eval`: confusion matrices, correct samples and the worst misclassified ones; and confusion
 * matrices among the metrics. */
#include "kiln.h"
#include "kiln/plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME = 256, PATH = 4096, MOST_CLASSES = 64, PARTS = 2 };
enum { COLUMNS = 8 };
/* What a picture of samples takes while it is drawn: fonts and the like, and the pixels of a row.
 */
static const int64_t drawing_bytes = 1 << 20, row_bytes = 160 * 1024 * 4;

typedef struct Opts {
    char *image, *label, *output, *dir;
    int64_t count;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_STR(Opts, image, "image", "the feature to draw: f32 [height, width, 1 or 3]"),
    KILN_FIELD_STR(Opts, label, "label", "the feature with the true class: i32"),
    KILN_FIELD_STR(Opts, output, "logits", "the step's output with a score per class"),
    KILN_FIELD_I64(Opts, count, "16", 1, 256, "samples of each kind"),
    KILN_FIELD_OUTPUT_OPT(Opts, dir, "null",
                          "folder for the pictures; null: plots/ in the run folder, and none for "
                          "an evaluation (use kiln "
                          "eval plots=DIR)"),
    KILN_FIELD_END,
};

/* A candidate for drawing. */
typedef struct Sample {
    float *data;
    int64_t label, predicted;
    double share; /* of the predicted class */
    double loss;  /* -log of the probability of the true class */
} Sample;

typedef struct Samples {
    Sample *right, *wrong; /* `count` of each; the wrong ones with the largest loss first */
    int64_t n_right, n_wrong;
    int64_t seen;
    double
        *pairs; /* [classes, classes]: counts of true and predicted class; NULL: too many classes */
    int64_t classes;
} Samples;

typedef struct State {
    bool fits; /* the data are images with classes, and this build can draw */
    bool draws;
    KilnShape shape;
    int64_t size; /* floats per image */
    Samples val, test;
    bool val_drawn;
} State;

/* ---- Choosing samples ----------------------------------------------------------------------- */

static KilnStatus allocate(Samples *samples, int64_t count, int64_t size, int64_t classes,
                           KilnError *err)
{
    samples->classes = classes;
    if (classes <= MOST_CLASSES &&
        (samples->pairs = calloc((size_t)(classes * classes), sizeof(double))) == NULL)
        return kiln_error_nomem(err, (size_t)(classes * classes) * sizeof(double));
    samples->right = calloc((size_t)count, sizeof(*samples->right));
    samples->wrong = calloc((size_t)count, sizeof(*samples->wrong));
    if (samples->right == NULL || samples->wrong == NULL)
        return kiln_error_nomem(err, (size_t)count * sizeof(Sample));
    for (int64_t i = 0; i < count; i++) {
        samples->right[i].data = malloc((size_t)size * sizeof(float));
        samples->wrong[i].data = malloc((size_t)size * sizeof(float));
        if (samples->right[i].data == NULL || samples->wrong[i].data == NULL)
            return kiln_error_nomem(err, (size_t)size * sizeof(float));
    }
    return KILN_OK;
}

static void release_samples(Samples *samples, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (samples->right != NULL)
            free(samples->right[i].data);
        if (samples->wrong != NULL)
            free(samples->wrong[i].data);
    }
    free(samples->right);
    free(samples->wrong);
    free(samples->pairs);
}

/* The index of a misclassified sample with that loss; `count`: none. */
static int64_t place_of(const Samples *samples, int64_t count, double loss)
{
    int64_t at = samples->n_wrong;

    while (at > 0 && samples->wrong[at - 1].loss < loss)
        at--;
    return at < count ? at : count;
}

static void keep(State *state, Samples *samples, int64_t count, const Sample *sample,
                 const float *image)
{
    Sample *to = NULL;

    if (sample->label == sample->predicted) {
        if (samples->n_right < count)
            to = &samples->right[samples->n_right++];
    } else {
        const int64_t at = place_of(samples, count, sample->loss);

        if (at < count) {
            Sample spare = samples->wrong[count - 1];

            memmove(&samples->wrong[at + 1], &samples->wrong[at],
                    (size_t)(count - 1 - at) * sizeof(*samples->wrong));
            samples->wrong[at] = spare;
            samples->n_wrong += samples->n_wrong < count;
            to = &samples->wrong[at];
        }
    }
    if (to == NULL)
        return;
    float *data = to->data;
    *to = *sample;
    to->data = data;
    memcpy(data, image, (size_t)state->size * sizeof(float));
}

static const KilnOutputView *find_output(const KilnTrainer *trainer, const char *name,
                                         KilnOutputView views[KILN_STEP_OUTPUTS])
{
    const size_t n = kiln_trainer_outputs(trainer, views);

    for (size_t i = 0; i < n; i++)
        if (strcmp(views[i].name, name) == 0 && views[i].shape.rank == 2)
            return &views[i];
    return NULL;
}

static void look_at_batch(KilnInstance *self, KilnTrainer *trainer, Samples *samples)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnOutputView views[KILN_STEP_OUTPUTS];
    int64_t n = 0, n_labels = 0;
    const KilnOutputView *scores = find_output(trainer, opts->output, views);
    const float *images = kiln_trainer_feature(trainer, opts->image, &n);
    const int32_t *labels = kiln_trainer_feature(trainer, opts->label, &n_labels);

    if (scores == NULL || images == NULL || labels == NULL || scores->shape.dim[0] != n ||
        n_labels != n)
        return;
    const int64_t width = scores->shape.dim[1];
    for (int64_t i = 0; i < n; i++) {
        const float *row = scores->data + i * width;
        Sample sample = { .label = labels[i], .predicted = kiln_row_argmax(row, width) };

        if (sample.label < 0 || sample.label >= width)
            continue;
        sample.loss = kiln_row_nll(row, width, sample.label);
        sample.share = exp(-kiln_row_nll(row, width, sample.predicted));
        keep(state, samples, opts->count, &sample, images + i * state->size);
        samples->seen++;
        if (samples->pairs != NULL && sample.label < samples->classes &&
            sample.predicted < samples->classes)
            samples->pairs[sample.label * samples->classes + sample.predicted]++;
    }
}

/* ---- Drawing ------------------------------------------------------------------------ */

static const char *class_name(const KilnTrainer *trainer, int64_t i, char number[24])
{
    const KilnDataSpec *spec = kiln_trainer_spec(trainer);

    if (spec->class_names != NULL && i < spec->n_classes)
        return spec->class_names[i];
    snprintf(number, 24, "%lld", (long long)i);
    return number;
}

static void write_caption(const KilnTrainer *trainer, const Sample *sample, char caption[NAME])
{
    char numbers[2][24];
    const char *predicted = class_name(trainer, sample->predicted, numbers[0]);

    if (sample->label == sample->predicted)
        snprintf(caption, NAME, "%s %.0f%%", predicted, 100.0 * sample->share);
    else
        snprintf(caption, NAME, "predicted %s %.0f%%\ntrue %s", predicted, 100.0 * sample->share,
                 class_name(trainer, sample->label, numbers[1]));
}

static KilnStatus draw_samples(KilnTrainer *trainer, const State *state, const Samples *samples,
                               const char *path, KilnError *err)
{
    const int64_t n = samples->n_right + samples->n_wrong;
    KilnPlotImage *images = calloc((size_t)n + 1, sizeof(*images));
    char(*captions)[NAME] = calloc((size_t)n + 1, sizeof(*captions));
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; images != NULL && captions != NULL && i < n; i++) {
        const Sample *sample = i < samples->n_right ? &samples->right[i]
                                                    : &samples->wrong[i - samples->n_right];

        write_caption(trainer, sample, captions[i]);
        images[i] = (KilnPlotImage) { .data = sample->data, .caption = captions[i] };
    }
    if (images == NULL || captions == NULL) {
        status = kiln_error_nomem(err, (size_t)n * NAME);
    } else {
        const KilnPlotRows parts[PARTS] = {
            { "right", images, (size_t)samples->n_right },
            { samples->n_wrong > 0 ? "wrong: the worst" : "wrong: none", images + samples->n_right,
              (size_t)samples->n_wrong },
        };
        const KilnPlotGallery gallery = { .parts = parts,
                                          .n_parts = PARTS,
                                          .height = (int)state->shape.dim[0],
                                          .width = (int)state->shape.dim[1],
                                          .channels = (int)state->shape.dim[2],
                                          .columns = COLUMNS };

        status = kiln_plot_gallery(path, &gallery, err);
    }
    free(images);
    free(captions);
    return status;
}

static KilnStatus draw_confusion(KilnTrainer *trainer, const char *title, const double *values,
                                 int64_t n, const char *path, KilnError *err)
{
    char numbers[MOST_CLASSES][24];
    const char *labels[MOST_CLASSES];

    for (int64_t i = 0; i < n; i++)
        labels[i] = class_name(trainer, i, numbers[i]);
    const KilnConfusion confusion = {
        .title = title, .labels = labels, .values = values, .n = (size_t)n
    };
    return kiln_plot_confusion(path, &confusion, err);
}

/* The matrix with values "PREFIX/TRUE/PREDICTED"; false if some are missing. */
static bool read_matrix(KilnTrainer *trainer, const char *prefix, int64_t n, double *values)
{
    char numbers[2][24], name[2 * NAME];

    for (int64_t i = 0; i < n * n; i++) {
        snprintf(name, sizeof(name), "%s/%s/%s", prefix, class_name(trainer, i / n, numbers[0]),
                 class_name(trainer, i % n, numbers[1]));
        if (!kiln_trainer_metric(trainer, name, &values[i]))
            return false;
    }
    return true;
}

static KilnStatus draw_matrix(KilnTrainer *trainer, const char *prefix, const char *dir,
                              KilnError *err)
{
    const int64_t n = kiln_trainer_spec(trainer)->n_classes;
    double values[MOST_CLASSES * MOST_CLASSES];
    char path[PATH + 2 * NAME], file[NAME];

    if (!read_matrix(trainer, prefix, n, values))
        return KILN_OK;
    snprintf(file, sizeof(file), "%s", prefix);
    for (char *p = file; *p != '\0'; p++)
        if (*p == '/' || *p == ' ' || (*p == '.' && p == file))
            *p = '_';
    snprintf(path, sizeof(path), "%s/%s.png", dir, file);
    return draw_confusion(trainer, prefix, values, n, path, err);
}

/* Draw the metrics that are matrices: those with a value for the first class predicted as itself.
 */
static KilnStatus draw_matrices(KilnTrainer *trainer, const char *dir, KilnError *err)
{
    const int64_t n = kiln_trainer_spec(trainer)->n_classes;
    const KilnMetric *metrics;
    const size_t n_metrics = kiln_trainer_metrics(trainer, &metrics);
    char number[24], ending[2 * NAME], prefix[NAME];
    KilnStatus status = KILN_OK;

    if (n < 1 || n > MOST_CLASSES)
        return KILN_OK;
    const char *first = class_name(trainer, 0, number);
    snprintf(ending, sizeof(ending), "/%s/%s", first, first);
    for (size_t i = 0; i < n_metrics && status >= 0; i++) {
        const size_t length = strlen(metrics[i].name), tail = strlen(ending);

        if (length <= tail || length - tail >= NAME ||
            strcmp(metrics[i].name + length - tail, ending) != 0)
            continue;
        snprintf(prefix, sizeof(prefix), "%.*s", (int)(length - tail), metrics[i].name);
        status = draw_matrix(trainer, prefix, dir, err);
    }
    return status;
}

/* ---- Hooks -------------------------------------------------------------------------- */

static bool has_pictures(const KilnDataSpec *spec, const Opts *opts)
{
    const KilnFeature *image = kiln_spec_feature(spec, opts->image);
    const KilnFeature *label = kiln_spec_feature(spec, opts->label);

    return spec->n_classes > 0 && image != NULL && label != NULL && image->dtype == KILN_F32 &&
           image->shape.rank == 3 && (image->shape.dim[2] == 1 || image->shape.dim[2] == 3) &&
           label->dtype == KILN_I32 && label->shape.rank == 0;
}

/* Make or refuse the requested folder before anything is computed. */
static KilnStatus open_dir(const KilnDataSpec *spec, const Opts *opts, KilnError *err)
{
    KilnStatus status = kiln_plot_supported(err);

    if (status >= 0 && !has_pictures(spec, opts))
        status =
            kiln_error_set(err, KILN_E_SHAPE,
                           "these data cannot be drawn: they need images \"%s\" and classes \"%s\"",
                           opts->image, opts->label);
    if (status >= 0 && opts->dir[0] == '\0')
        status = kiln_error_set(err, KILN_E_RANGE, "dir is empty: expected the name of a folder");
    if (status >= 0 && mkdir(opts->dir, 0777) != 0 && errno != EEXIST)
        status = kiln_error_errno(err, opts->dir);
    return status;
}

/* For both sets of samples, and for drawing one picture at a time. */
static int64_t memory(const KilnInstance *self, KilnTrainer *trainer)
{
    const Opts *opts = kiln_opts(self);
    const KilnDataSpec *spec = kiln_trainer_spec(trainer);

    if (kiln_plot_supported(NULL) < 0 || !has_pictures(spec, opts))
        return 0;
    const int64_t image = kiln_shape_count(&kiln_spec_feature(spec, opts->image)->shape);
    const int64_t rows = PARTS * ((opts->count + COLUMNS - 1) / COLUMNS);
    return 4 * opts->count * image * (int64_t)sizeof(float) + drawing_bytes + rows * row_bytes;
}

/* Other kinds of data have no such pictures, which is not an error. */
static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnDataSpec *spec = kiln_trainer_spec(trainer);
    const char *phase = kiln_trainer_phase(trainer);
    const bool fits = strcmp(phase, "fit") == 0;
    KilnStatus status = KILN_OK;

    state->fits = has_pictures(spec, opts);
    if (strcmp(phase, "predict") == 0 || (!fits && opts->dir == NULL))
        return KILN_OK;
    if (opts->dir != NULL)
        status = open_dir(spec, opts, err);
    state->draws = status >= 0 && kiln_plot_supported(NULL) >= 0 && state->fits;
    if (!state->draws)
        return status;
    state->shape = kiln_spec_feature(spec, opts->image)->shape;
    state->size = kiln_shape_count(&state->shape);
    if (fits || strcmp(phase, "validate") == 0)
        status = allocate(&state->val, opts->count, state->size, spec->n_classes, err);
    if (status >= 0 && (fits || strcmp(phase, "test") == 0))
        status = allocate(&state->test, opts->count, state->size, spec->n_classes, err);
    return status;
}

static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const State *state = kiln_state(self);
    KilnError why = { 0 };

    (void)err;
    if (state->fits && kiln_trainer_run_dir(trainer)[0] != '\0' && kiln_plot_supported(&why) < 0)
        kiln_trainer_print(trainer, "no pictures of predictions: %s", why.text);
    return KILN_OK;
}

static void start(Samples *samples)
{
    samples->n_right = samples->n_wrong = samples->seen = 0;
    if (samples->pairs != NULL)
        memset(samples->pairs, 0, (size_t)(samples->classes * samples->classes) * sizeof(double));
}

static KilnStatus on_validation_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)trainer;
    (void)err;
    start(&state->val);
    state->val_drawn = false;
    return KILN_OK;
}

static KilnStatus on_validation_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    if (state->val.right != NULL && strcmp(kiln_trainer_phase(trainer), "validate") == 0)
        look_at_batch(self, trainer, &state->val);
    return KILN_OK;
}

static KilnStatus on_test_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    if (state->test.right != NULL)
        look_at_batch(self, trainer, &state->test);
    return KILN_OK;
}

/* The folder for the pictures; false if there is none. */
static bool folder_of(KilnInstance *self, const KilnTrainer *trainer, char dir[PATH])
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const char *run = kiln_trainer_run_dir(trainer);

    if (!state->draws || (opts->dir == NULL && run[0] == '\0'))
        return false;
    return snprintf(dir, PATH, "%s%s", opts->dir != NULL ? opts->dir : run,
                    opts->dir != NULL ? "" : "/plots") < PATH;
}

/* Draw `dir`/SPLIT_samples.png and SPLIT_confusion.png if there are samples. */
static KilnStatus draw_to(KilnTrainer *trainer, const State *state, const Samples *samples,
                          const char *dir, const char *split, KilnError *err)
{
    char path[PATH + 64], title[64];
    KilnStatus status = KILN_OK;

    if (samples->seen == 0)
        return KILN_OK;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return kiln_error_errno(err, dir);
    snprintf(path, sizeof(path), "%s/%s_confusion.png", dir, split);
    snprintf(title, sizeof(title), "%s: %lld samples", split, (long long)samples->seen);
    if (samples->pairs != NULL)
        status = draw_confusion(trainer, title, samples->pairs, samples->classes, path, err);
    snprintf(path, sizeof(path), "%s/%s_samples.png", dir, split);
    return status >= 0 ? draw_samples(trainer, state, samples, path, err) : status;
}

/* A picture that cannot be drawn does not fail the run. */
static void warn(KilnTrainer *trainer, const KilnError *why)
{
    kiln_trainer_print(trainer, "warning: plots are incomplete: %s", why->text);
}

/* Draw the last validation once: when the run ends, or earlier in on_save_checkpoint. */
static KilnStatus draw_val(KilnTrainer *trainer, State *state, const char *dir, KilnError *err)
{
    const bool drawn = state->val_drawn;

    state->val_drawn = true;
    return drawn ? KILN_OK : draw_to(trainer, state, &state->val, dir, "val", err);
}

/* A run resumed from its last checkpoint does not validate again, so draw before that is saved. */
static KilnStatus on_save_checkpoint(KilnInstance *self, KilnTrainer *trainer, const char *folder,
                                     KilnError *err)
{
    char dir[PATH];
    KilnError why = { 0 };

    (void)folder;
    (void)err;
    if (kiln_trainer_is_done(trainer) && folder_of(self, trainer, dir) &&
        draw_val(trainer, kiln_state(self), dir, &why) < 0)
        warn(trainer, &why);
    return KILN_OK;
}

static KilnStatus teardown(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    char dir[PATH];
    KilnError why = { 0 };

    (void)err;
    if (!folder_of(self, trainer, dir))
        return KILN_OK;
    KilnStatus status = draw_val(trainer, state, dir, &why);
    if (status >= 0)
        status = draw_to(trainer, state, &state->test, dir, "test", &why);
    if (status >= 0 && mkdir(dir, 0777) != 0 && errno != EEXIST)
        status = kiln_error_errno(&why, dir);
    if (status >= 0)
        status = draw_matrices(trainer, dir, &why);
    if (status < 0)
        warn(trainer, &why);
    else if (opts->dir != NULL && state->val.seen + state->test.seen == 0)
        kiln_trainer_print(trainer,
                           "no samples are drawn: the steps of this task have no output \"%s\"",
                           opts->output);
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    release_samples(&state->val, opts->count);
    release_samples(&state->test, opts->count);
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_fit_start = on_fit_start,
    .on_validation_start = on_validation_start,
    .on_validation_batch_end = on_validation_batch_end,
    .on_test_batch_end = on_test_batch_end,
    .on_save_checkpoint = on_save_checkpoint,
    .teardown = teardown,
    .memory = memory,
};

const KilnComponent kiln_callback_prediction_plots = {
    .kind = KILN_KIND_CALLBACK,
    .name = "prediction_plots",
    .summary = "Draw confusion matrices and predicted samples to plots/ when the run ends",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_prediction_plots, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
