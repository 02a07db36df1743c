/* A generative adversarial network (Goodfellow et al., "Generative Adversarial Nets", 2014): a
 * generator makes images from noise, a discriminator learns to distinguish them from the data, and
 * each trains the other. Manual optimization: each network has an optimizer. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnInstance *generator, *discriminator;
    KilnInstance *generator_optimizer, *discriminator_optimizer;
    KilnInstance *generator_scheduler, *discriminator_scheduler;
    int64_t latent, samples;
    double label_smoothing, gradient_clip_val;
    char *monitor;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, generator, KILN_KIND_MODEL, NULL,
                         "the network from noise to the pixels of an image"),
    KILN_FIELD_COMPONENT(Opts, discriminator, KILN_KIND_MODEL, NULL,
                         "the network from an image to one logit: real or generated"),
    KILN_FIELD_COMPONENT(Opts, generator_optimizer, KILN_KIND_OPTIMIZER, NULL,
                         "what updates the generator"),
    KILN_FIELD_COMPONENT(Opts, discriminator_optimizer, KILN_KIND_OPTIMIZER, NULL,
                         "what updates the discriminator"),
    KILN_FIELD_COMPONENT_OPT(Opts, generator_scheduler, KILN_KIND_SCHEDULER, "null",
                             "how the generator's learning rate changes"),
    KILN_FIELD_COMPONENT_OPT(Opts, discriminator_scheduler, KILN_KIND_SCHEDULER, "null",
                             "how the discriminator's learning rate changes"),
    KILN_FIELD_I64(Opts, latent, "64", 1, 65536, "noise values per image"),
    KILN_FIELD_I64(Opts, samples, "16", 1, 256,
                   "generated images in each validation's picture, at most a batch"),
    KILN_FIELD_F64(Opts, label_smoothing, "0.1", 0.0, 0.5,
                   "one-sided label smoothing: the target of real images is 1 minus this (Salimans "
                   "et al., 2016)"),
    KILN_FIELD_F64(Opts, gradient_clip_val, "0.0", 0.0, 1e9,
                   "clip the norm of each network's gradients to this; 0: no clipping"),
    KILN_FIELD_MONITOR(Opts, "val/distance"),
    KILN_FIELD_END,
};

typedef enum Network { DISCRIMINATOR, GENERATOR, NETWORKS } Network;

/* Noise for a batch. */
typedef struct Noise {
    float *data;
    int64_t rows;
} Noise;

typedef struct State {
    KilnShape image;
    Noise training, evaluation; /* of evaluation the same in every run */
} State;

/* ---- Networks ------------------------------------------------------------------------- */

static const KilnTensorSpec noise_spec = {
    .name = "noise", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "latent"
};
static const KilnTensorSpec pixels_spec = {
    .name = "pixels", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "pixels"
};
static const KilnTensorSpec image_spec = {
    .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "height width channels"
};
static const KilnTensorSpec logit_spec = {
    .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes"
};

static const KilnModelUse models[NETWORKS] = {
    [GENERATOR] = { .option = "generator",
                    .feeds = &noise_spec,
                    .n_feeds = 1,
                    .own = true,
                    .needs = &pixels_spec,
                    .n_needs = 1 },
    [DISCRIMINATOR] = { .option = "discriminator",
                        .feeds = &image_spec,
                        .n_feeds = 1,
                        .needs = &logit_spec,
                        .n_needs = 1 },
};

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnFeature *real = kiln_spec_feature(data, "image");
    const KilnFeature latent = { .name = noise_spec.name,
                                 .content = KILN_VECTOR,
                                 .dtype = KILN_F32,
                                 .shape = KILN_SHAPE(opts->latent) };
    KilnScope generator = kiln_scope(scope, "generator");
    KilnScope discriminator = kiln_scope(scope, "discriminator");

    state->image = real->shape;
    KilnStatus status = kiln_model_setup(opts->generator, &generator, &models[GENERATOR], &latent,
                                         1, (int64_t[]) { kiln_shape_count(&real->shape) }, err);
    return status >= 0 ? kiln_model_setup(opts->discriminator, &discriminator,
                                          &models[DISCRIMINATOR], real, 1, (int64_t[]) { 1 }, err)
                       : status;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->training.data);
    free(state->evaluation.data);
}

/* Room for so many rows; what steps follow asks for the most first. */
static bool make_room(Noise *noise, int64_t rows, int64_t latent)
{
    if (rows <= noise->rows)
        return true;
    float *data = realloc(noise->data, (size_t)(rows * latent) * sizeof(*data));
    if (data == NULL)
        return false;
    noise->data = data;
    noise->rows = rows;
    return true;
}

static KilnTensor *generate(KilnInstance *self, KilnStep *step, const Noise *noise)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const int64_t n = kiln_step_batch_size(step);
    KilnTensor *z = kiln_graph_input(kiln_step_graph(step), KILN_F32, KILN_SHAPE(n, opts->latent),
                                     noise->data);
    KilnShape shape = { .rank = 4, .dim = { n } };
    KilnModelValue made;

    memcpy(shape.dim + 1, state->image.dim, 3 * sizeof(*shape.dim));
    kiln_model_forward(opts->generator, step, &(KilnModelValue) { .tensor = z }, &made);
    return kiln_reshape(made.tensor, shape);
}

static KilnTensor *judge(KilnInstance *self, KilnStep *step, KilnTensor *images)
{
    const Opts *opts = kiln_opts(self);
    KilnModelValue logits;

    kiln_model_forward(opts->discriminator, step, &(KilnModelValue) { .tensor = images }, &logits);
    return logits.tensor;
}

/* ---- Training --------------------------------------------------------------------------- */

/* Cross entropy of logits whose target is `share`: -log sigmoid(x) is softplus(-x). */
static KilnTensor *cross_entropy(KilnTensor *logits, double share)
{
    KilnTensor *is = kiln_mean(kiln_softplus(kiln_neg(logits), 1.0, 20.0));
    KilnTensor *is_not = kiln_mean(kiln_softplus(logits, 1.0, 20.0));

    if (!(share < 1.0))
        return is;
    return share > 0.0 ? kiln_add(kiln_scale(is, share), kiln_scale(is_not, 1.0 - share)) : is_not;
}

static KilnStatus update(KilnInstance *self, KilnManual *manual, KilnStep *step, KilnTensor *loss,
                         const char *name, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    kiln_step_log(step, name, loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    if (opts->gradient_clip_val > 0.0)
        kiln_manual_clip_norm(manual, opts->gradient_clip_val);
    return kiln_manual_update(manual, loss, err);
}

static KilnStatus train_discriminator(KilnInstance *self, KilnManual *manual, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnStep *step = kiln_manual_begin(manual, DISCRIMINATOR);
    KilnTensor *real = judge(self, step, kiln_step_input(step, "image"));
    KilnTensor *fake = judge(self, step, generate(self, step, &state->training));
    KilnTensor *loss = kiln_add(cross_entropy(real, 1.0 - opts->label_smoothing),
                                cross_entropy(fake, 0.0));

    return update(self, manual, step, loss, "train/discriminator_loss", err);
}

/* The generator's loss: its images should be classified as real. */
static KilnStatus train_generator(KilnInstance *self, KilnManual *manual, KilnError *err)
{
    const State *state = kiln_state(self);
    KilnStep *step = kiln_manual_begin(manual, GENERATOR);
    KilnTensor *fake = judge(self, step, generate(self, step, &state->training));

    return update(self, manual, step, cross_entropy(fake, 1.0), "train/generator_loss", err);
}

static KilnStatus manual_step(KilnInstance *self, KilnManual *manual, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t n = kiln_manual_batch_size(manual);
    KilnRng rng;

    if (!make_room(&state->training, n, opts->latent))
        return kiln_error_set(err, KILN_E_NOMEM, "no memory for the noise of %lld images",
                              (long long)n);
    kiln_manual_rng(manual, KILN_RNG_USER, &rng);
    for (int64_t i = 0; i < n * opts->latent; i++)
        state->training.data[i] = kiln_rng_normal(&rng);
    KilnStatus status = train_discriminator(self, manual, err);
    return status >= 0 ? train_generator(self, manual, err) : status;
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    static const char *const discriminator[] = { "discriminator.*", NULL };
    static const char *const generator[] = { "generator.*", NULL };
    const Opts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) {
        .n = NETWORKS,
        .use = {
            [DISCRIMINATOR] = { "discriminator", opts->discriminator_optimizer,
                                opts->discriminator_scheduler, discriminator },
            [GENERATOR] = { "generator", opts->generator_optimizer, opts->generator_scheduler,
                            generator },
        },
    };
    return KILN_OK;
}

/* ---- Evaluation ------------------------------------------------------------------------- */

/* Mean distance between the rows of a and those of b. */
static KilnTensor *mean_distance(KilnTensor *a, KilnTensor *b)
{
    const int columns[] = { 1 };
    KilnTensor *squares_a = kiln_sum_axes(kiln_square(a), columns, 1, true);
    KilnTensor *squares_b = kiln_sum_axes(kiln_square(b), columns, 1, true);
    KilnTensor *products = kiln_matmul(a, b, false, true);
    KilnTensor *squares = kiln_sub(kiln_add(squares_a, kiln_transpose(squares_b, 0, 1)),
                                   kiln_scale(products, 2.0));

    return kiln_mean(kiln_sqrt(kiln_clamp(squares, 0.0, (double)INFINITY)));
}

/* How far apart two sets of images are as distributions: the energy distance, which is 0 for
 * equal ones alone (Szekely and Rizzo, "Energy statistics", 2013), of the pixels. */
static KilnTensor *energy_distance(KilnTensor *a, KilnTensor *b)
{
    KilnTensor *x = kiln_flatten(a), *y = kiln_flatten(b);
    KilnTensor *within = kiln_add(mean_distance(x, x), mean_distance(y, y));

    return kiln_sub(kiln_scale(mean_distance(x, y), 2.0), within);
}

/* The same noise in each evaluation, for the values to be compared. */
static bool fill_evaluation(State *state, int64_t rows, int64_t latent)
{
    KilnRng rng;

    if (rows <= state->evaluation.rows)
        return true;
    if (!make_room(&state->evaluation, rows, latent))
        return false;
    kiln_rng_init(&rng, 0, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < rows * latent; i++)
        state->evaluation.data[i] = kiln_rng_normal(&rng);
    return true;
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *phase)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    char name[64];

    if (!fill_evaluation(state, kiln_step_batch_size(step), opts->latent))
        return;
    KilnTensor *real = kiln_step_input(step, "image");
    KilnTensor *fake = generate(self, step, &state->evaluation);
    KilnTensor *taken = kiln_sigmoid(judge(self, step, fake));
    snprintf(name, sizeof(name), "%s/distance", phase);
    kiln_step_log(step, name, energy_distance(real, fake),
                  KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    snprintf(name, sizeof(name), "%s/taken_for_real", phase);
    kiln_step_log(step, name, kiln_mean(taken), KILN_LOG_EPOCH);
    kiln_step_output(step, "generated", fake);
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "val");
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "test");
}

/* Whether a user's images look like the data's. */
static void predict_step(KilnInstance *self, KilnStep *step)
{
    kiln_step_output(step, "real", kiln_sigmoid(judge(self, step, kiln_step_input(step, "image"))));
}

/* ---- Pictures --------------------------------------------------------------------------- */

static int64_t columns_of(int64_t n)
{
    int64_t columns = 1;

    while (columns * columns < n)
        columns++;
    return columns;
}

/* A grid of the images; the least of all values is black, the largest white. */
static void draw(const float *from, int64_t n, const KilnShape *image, KilnPixels *grid,
                 uint8_t *to)
{
    const int64_t height = image->dim[0], row = image->dim[1] * image->dim[2];
    float low = INFINITY, high = -INFINITY;

    for (int64_t i = 0; i < n * height * row; i++) {
        low = fminf(low, from[i]);
        high = fmaxf(high, from[i]);
    }
    const float scale = high > low ? 255.0f / (high - low) : 0.0f;
    const int64_t columns = columns_of(n), width = grid->width * grid->channels;
    for (int64_t i = 0; i < n * height; i++) {
        const int64_t y = i / height / columns * height + i % height;
        const int64_t x = i / height % columns * row;

        for (int64_t k = 0; k < row; k++)
            to[y * width + x + k] = (uint8_t)((from[i * row + k] - low) * scale + 0.5f);
    }
}

static KilnStatus log_picture(KilnInstance *self, KilnTrainer *trainer, const float *images,
                              int64_t n, KilnError *err)
{
    const State *state = kiln_state(self);
    const int64_t columns = columns_of(n), rows = (n + columns - 1) / columns;
    KilnPixels grid = {
        .height = rows * state->image.dim[0],
        .width = columns * state->image.dim[1],
        .channels = state->image.dim[2],
    };
    uint8_t *pixels = calloc(1, (size_t)(grid.height * grid.width * grid.channels));

    if (pixels == NULL)
        return kiln_error_set(err, KILN_E_NOMEM, "no memory for a picture of %lld images",
                              (long long)n);
    draw(images, n, &state->image, &grid, pixels);
    grid.data = pixels;
    KilnStatus status = kiln_trainer_log_image(trainer, "val/generated", &grid, err);
    free(pixels);
    return status;
}

/* The first images of a validation, for loggers that take pictures. */
static KilnStatus on_validation_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    const int64_t channels = state->image.dim[2];
    KilnOutputView outputs[KILN_STEP_OUTPUTS];

    if (kiln_trainer_batch(trainer) != 1 || strcmp(kiln_trainer_phase(trainer), "validate") != 0 ||
        !kiln_trainer_takes(trainer, KILN_LOG_IMAGES) || (channels != 1 && channels != 3) ||
        kiln_trainer_outputs(trainer, outputs) != 1)
        return KILN_OK;
    const int64_t n = outputs[0].shape.dim[0];
    return log_picture(self, trainer, outputs[0].data, n < opts->samples ? n : opts->samples, err);
}

static const KilnCallbackOps hooks = { .on_validation_batch_end = on_validation_batch_end };

static const KilnModuleOps ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = &image_spec,
    .n_features = 1,
    .setup = setup,
    .manual_step = manual_step,
    .validation_step = validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .configure_optimizers = configure_optimizers,
    .hooks = &hooks,
};

const KilnComponent kiln_module_gan = {
    .kind = KILN_KIND_MODULE,
    .name = "gan",
    .summary = "Images from noise: a generator and a discriminator that train each other",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_gan, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
