/* A classifier without gradients, as a plugin: a sample is of the class whose mean is nearest
 * (Manning, Raghavan and Schuetze, "Introduction to Information Retrieval", 2008, 14.2). What it
 * learns are sums, kept in checkpoints as a text, as a library of trees would keep its model. */
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnInstance **metrics;
    size_t metrics_count;
    char *monitor;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{accuracy: metric/accuracy}",
                             "what is logged: val/NAME, test/NAME"),
    KILN_FIELD_MONITOR(Opts, "val/accuracy"),
    KILN_FIELD_END,
};

typedef struct State {
    int64_t classes, width;
    double *sums;   /* [classes, width] */
    int64_t *seen;  /* [classes] */
    float *centers; /* [classes, width], their means */
    char *text;     /* for the checkpoint */
} State;

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    State *state = kiln_state(self);
    const KilnFeature *image = kiln_spec_feature(data, "image");

    (void)scope; /* no parameters */
    if (image == NULL || data->n_classes < 2)
        return kiln_error_set(err, KILN_E_SHAPE, "images of classes are needed");
    state->classes = data->n_classes;
    state->width = kiln_shape_count(&image->shape);
    const size_t n = (size_t)(state->classes * state->width);
    state->sums = calloc(n, sizeof(*state->sums));
    state->centers = calloc(n, sizeof(*state->centers));
    state->seen = calloc((size_t)state->classes, sizeof(*state->seen));
    return state->sums != NULL && state->centers != NULL && state->seen != NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_NOMEM, "out of memory");
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->sums);
    free(state->seen);
    free(state->centers);
    free(state->text);
}

static void find_centers(State *state)
{
    for (int64_t c = 0; c < state->classes; c++)
        for (int64_t k = 0; k < state->width; k++) {
            const int64_t at = c * state->width + k, n = state->seen[c];

            state->centers[at] = n > 0 ? (float)(state->sums[at] / (double)n) : 0.0f;
        }
}

static KilnStatus manual_step(KilnInstance *self, KilnManual *manual, KilnError *err)
{
    State *state = kiln_state(self);
    const float *images = kiln_manual_feature(manual, "image");
    const int32_t *labels = kiln_manual_feature(manual, "label");
    const int64_t n = kiln_manual_batch_size(manual);

    (void)err;
    kiln_manual_log(manual, "train/seen", (double)n, KILN_LOG_EPOCH);
    if (kiln_manual_planning(manual))
        return KILN_OK;
    for (int64_t i = 0; i < n; i++) {
        state->seen[labels[i]]++;
        for (int64_t k = 0; k < state->width; k++)
            state->sums[labels[i] * state->width + k] += (double)images[i * state->width + k];
    }
    find_centers(state);
    return KILN_OK;
}

/* Minus half the squared distance to each center, but for what all classes share. */
static KilnTensor *scores(KilnInstance *self, KilnStep *step)
{
    const State *state = kiln_state(self);
    const int columns[] = { 1 };
    KilnTensor *x = kiln_flatten(kiln_step_input(step, "image"));
    KilnTensor *centers = kiln_graph_input(
        kiln_step_graph(step), KILN_F32, KILN_SHAPE(state->classes, state->width), state->centers);
    KilnTensor *norms = kiln_sum_axes(kiln_square(centers), columns, 1, true);

    return kiln_sub(kiln_matmul(x, centers, false, true),
                    kiln_scale(kiln_transpose(norms, 0, 1), 0.5));
}

static void evaluate(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);

    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], scores(self, step), kiln_step_input(step, "label"),
                         0);
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    kiln_step_output(step, "probabilities", kiln_softmax(scores(self, step), -1));
}

/* ---- In a checkpoint --------------------------------------------------------------------- */

enum { NUMBER = 40 }; /* characters of a number */

/* "4 0x1.8p+1 ..." for each class: exact in C's hexadecimal. */
static void state_dict(KilnInstance *self, KilnState *saved)
{
    State *state = kiln_state(self);
    const size_t room = (size_t)(state->classes * (state->width + 1) * NUMBER + 1);
    size_t used = 0;

    free(state->text);
    state->text = malloc(room);
    for (int64_t c = 0; c < state->classes && state->text != NULL; c++) {
        used += (size_t)snprintf(state->text + used, room - used, "%lld ",
                                 (long long)state->seen[c]);
        for (int64_t k = 0; k < state->width; k++)
            used += (size_t)snprintf(state->text + used, room - used, "%a ",
                                     state->sums[c * state->width + k]);
    }
    kiln_state_set_str(saved, "centroids", state->text);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    State *state = kiln_state(self);
    const char *text = NULL;
    char *end;

    if (!kiln_state_get_str(saved, "centroids", &text) || text == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "has no centroids");
    for (int64_t c = 0; c < state->classes; c++) {
        state->seen[c] = strtoll(text, &end, 10);
        for (int64_t k = 0; k < state->width && end != text; k++) {
            text = end;
            state->sums[c * state->width + k] = strtod(text, &end);
        }
        if (end == text)
            return kiln_error_set(err, KILN_E_FORMAT, "centroids: is cut short");
        text = end;
    }
    find_centers(state);
    return KILN_OK;
}

static const KilnCallbackOps hooks = { .state_dict = state_dict,
                                       .load_state_dict = load_state_dict };

static const KilnModuleOps ops = {
    .setup = setup,
    .manual_step = manual_step,
    .validation_step = evaluate,
    .predict_step = predict_step,
    .hooks = &hooks,
};

static const KilnComponent kiln_module_nearest_centroid = {
    .kind = KILN_KIND_MODULE,
    .name = "nearest_centroid",
    .summary = "The class whose mean is nearest; no gradients",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.module = &ops,
};

static const KilnComponent *const list[] = { &kiln_module_nearest_centroid, NULL };
KILN_PLUGIN_DEFINE(list)
