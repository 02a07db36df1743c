/* Recognition of lines of text: a model gives logits of characters per column, which learn by
 * connectionist temporal classification (Graves et al. 2006). Class 0 is the blank. */
#include "kiln.h"
#include "kiln/tools/ctc_decode.h"
#include "kiln/tools/row_results.h"
#include "kiln/tools/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnInstance *model, *optimizer, *scheduler;
    KilnInstance **metrics;
    size_t metrics_count;
    char *monitor;
    int64_t beam_size;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC,
                             "{cer: {_target_: metric/error_rate, unit: characters}, wer: "
                             "{_target_: metric/error_rate, unit: words}}",
                             "metrics of texts by name, logged as val/NAME and test/NAME"),
    KILN_FIELD_MONITOR(Opts, "val/cer"),
    KILN_FIELD_I64(Opts, beam_size, "1", 1, 100,
                   "prefixes that the beam search keeps; 1: greedy, the best class of each column"),
    KILN_FIELD_END,
};

static const KilnTensorSpec feeds[] = {
    { .name = "line",
      .content = KILN_SEQUENCE,
      .dtype = KILN_F32,
      .axes = "columns height",
      .varies = true },
};
static const KilnTensorSpec needs[] = {
    { .name = "column_logits",
      .content = KILN_SEQUENCE,
      .dtype = KILN_F32,
      .axes = "steps classes",
      .varies = true },
};
static const KilnTensorSpec reads[] = {
    { .name = "characters",
      .content = KILN_LABEL,
      .dtype = KILN_I32,
      .axes = "time",
      .varies = true },
};
static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = feeds,
      .n_feeds = KILN_COUNT(feeds),
      .needs = needs,
      .n_needs = KILN_COUNT(needs) },
};

typedef struct State {
    const char *const *names; /* of the classes; the blank's is unused */
    int64_t classes;
} State;

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnFeature *characters = kiln_spec_feature(data, "characters");

    state->names = characters->id_names;
    state->classes = characters->n_ids;
    if (state->names == NULL || state->classes < 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the feature \"characters\" needs names of its ids: the blank and at "
                              "least one character");
    return kiln_model_setup(opts->model, scope, models, kiln_spec_feature(data, "line"), 1,
                            &state->classes, err);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* The log-probabilities [batch, steps, classes] and the steps of each line. */
static KilnTensor *log_probs_of(KilnInstance *self, KilnStep *step, KilnTensor **ret_steps)
{
    const Opts *opts = kiln_opts(self);
    const KilnModelValue line = { kiln_step_input(step, "line"), kiln_step_lengths(step, "line") };
    KilnModelValue logits;

    kiln_model_forward(opts->model, step, &line, &logits);
    *ret_steps = logits.lengths != NULL ? logits.lengths : line.lengths;
    return kiln_log_softmax(logits.tensor, -1);
}

static KilnTensor *loss_of(KilnStep *step, KilnTensor *log_probs, KilnTensor *steps)
{
    static const int steps_first[] = { 1, 0, 2 };

    return kiln_ctc(kiln_permute(log_probs, steps_first), kiln_step_input(step, "characters"),
                    steps, kiln_step_lengths(step, "characters"),
                    (KilnCtc) { .blank = 0, .zero_infinity = true });
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    KilnTensor *steps, *log_probs = log_probs_of(self, step, &steps);
    KilnTensor *loss = loss_of(step, log_probs, steps);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static void keep(KilnStep *step, KilnTensor *log_probs, KilnTensor *steps)
{
    kiln_step_keep(step, "log_probs", log_probs);
    kiln_step_keep(step, "steps", steps);
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *name)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *steps, *log_probs = log_probs_of(self, step, &steps);

    kiln_step_log(step, name, loss_of(step, log_probs, steps),
                  KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_sequence_metric(step, opts->metrics[i], KILN_LOG_PROG_BAR);
    keep(step, log_probs, steps);
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "val/loss");
}

static void test_step(KilnInstance *self, KilnStep *step)
{
    evaluate(self, step, "test/loss");
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    KilnTensor *steps, *log_probs = log_probs_of(self, step, &steps);

    keep(step, log_probs, steps);
}

/* ---- Results --------------------------------------------------------------------------------- */

static KilnStatus count(const Opts *opts, KilnResults *results, int64_t row, const char *text,
                        KilnError *err)
{
    const KilnSequence sequence = { .text = text };
    const KilnSequence reference = { .text = kiln_results_text(results, "true_text", row) };
    const KilnMetricRows rows = {
        .count = 1, .sequences = &sequence, .references = &reference, .n_references = 1
    };
    KilnStatus status = KILN_OK;

    if (reference.text == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "the data have no feature \"true_text\", which the metrics need");
    for (size_t i = 0; i < opts->metrics_count && status >= 0; i++)
        status = kiln_results_metric(results, opts->metrics[i], &rows, err);
    return status;
}

static KilnStatus set_results(KilnResults *results, int64_t row, const char *text, double score,
                              KilnError *err)
{
    KilnText json = { 0 }, number = { 0 };

    kiln_text_json_string(&json, text);
    kiln_text_json_number(&number, exp(score));
    KilnStatus status = json.failed || number.failed
                            ? kiln_error_nomem(err, json.length)
                            : kiln_results_set(results, "text", row, json.data, err);
    if (status >= 0)
        status = kiln_results_set(results, "confidence", row, number.data, err);
    kiln_text_release(&json);
    kiln_text_release(&number);
    return status;
}

static KilnStatus finish_row(KilnInstance *self, KilnResults *results, int64_t row,
                             KilnCtcProbs probs, int32_t *ids, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnText text = { 0 };
    double score = 0.0;
    int64_t n = 0;
    KilnStatus status = kiln_ctc_decode(probs, opts->beam_size, ids, &n, &score, err);

    if (status < 0)
        return status;
    kiln_text_append(&text, "");
    for (int64_t i = 0; i < n; i++)
        kiln_text_append(&text, state->names[ids[i]]);
    if (text.failed)
        status = kiln_error_nomem(err, text.length);
    else if (strcmp(kiln_results_phase(results), "predict") == 0)
        status = set_results(results, row, text.data, score, err);
    else
        status = count(opts, results, row, text.data, err);
    kiln_text_release(&text);
    return status;
}

static KilnStatus finish_step(KilnInstance *self, KilnResults *results, KilnError *err)
{
    KilnShape shape, unused;
    const float *log_probs = kiln_results_kept(results, "log_probs", &shape);
    const int32_t *steps = kiln_results_kept(results, "steps", &unused);
    int32_t *ids = malloc((size_t)(shape.dim[1] + 1) * sizeof(*ids));
    KilnStatus status = ids != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)shape.dim[1]);

    for (int64_t row = 0; row < kiln_results_size(results) && status >= 0; row++)
        status =
            finish_row(self, results, row,
                       (KilnCtcProbs) { .log_probs = log_probs + row * shape.dim[1] * shape.dim[2],
                                        .steps = steps[row],
                                        .classes = shape.dim[2] },
                       ids, err);
    free(ids);
    return status;
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) {
        .n = 1, .use = { { .optimizer = opts->optimizer, .scheduler = opts->scheduler } }
    };
    return KILN_OK;
}

static const KilnModuleOps ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .test_step = test_step,
    .predict_step = predict_step,
    .finish_step = finish_step,
    .configure_optimizers = configure_optimizers,
};

const KilnComponent kiln_module_text_recognition = {
    .kind = KILN_KIND_MODULE,
    .name = "text_recognition",
    .summary = "Recognition of lines of text (OCR) by connectionist temporal classification",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_text_recognition, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
