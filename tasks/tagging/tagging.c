/* Tagging: a tag for each word of a sentence (named entities, slots), with or without a conditional
 * random field, and a class of the whole sentence (intent) where the data have one. */
#include "kiln.h"
#include "kiln/tools/row_results.h"
#include "kiln/tools/tag_spans.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnInstance *model, *optimizer, *scheduler, *intent_loss;
    bool crf;
    double intent_weight;
    KilnInstance **metrics, **intent_metrics;
    size_t metrics_count, intent_metrics_count;
    char *monitor;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT(Opts, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(Opts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(Opts, scheduler, KILN_KIND_SCHEDULER, "${scheduler}",
                             "the learning rate schedule; null: constant"),
    KILN_FIELD_BOOL(Opts, crf, "false",
                    "a linear-chain conditional random field over the tags (Lample et al., 2016): "
                    "it learns which tag follows which; false: each tag for itself"),
    KILN_FIELD_COMPONENT(Opts, intent_loss, KILN_KIND_LOSS, "cross_entropy",
                         "the loss of classes of sentences, if the data have them"),
    KILN_FIELD_F64(Opts, intent_weight, "1.0", 0.0, 1e6, "its factor beside the loss of tags"),
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{slot_f1: metric/slot_f1}",
                             "metrics of tags by name, logged as val/NAME and test/NAME"),
    KILN_FIELD_COMPONENT_MAP(Opts, intent_metrics, KILN_KIND_METRIC,
                             "{intent_accuracy: metric/accuracy}",
                             "metrics of the classes of sentences, if the data have them"),
    KILN_FIELD_MONITOR(Opts, "val/slot_f1"),
    KILN_FIELD_END,
};

/* ---- What it reads, feeds and needs --------------------------------------------------------- */

static const KilnTensorSpec reads[] = {
    { .name = "tags", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "time", .varies = true },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "", .optional = true },
    /* Of words with several tokens: which is the first. */
    { .name = "first_tokens",
      .content = KILN_TOKENS,
      .dtype = KILN_I32,
      .axes = "time",
      .varies = true,
      .optional = true },
};
static const KilnTensorSpec feeds[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    { .name = "characters",
      .content = KILN_SEQUENCE,
      .dtype = KILN_I32,
      .axes = "time characters",
      .varies = true },
};

enum { TOKEN_LOGITS, LOGITS };

static const KilnTensorSpec needs[] = {
    [TOKEN_LOGITS] = { .name = "token_logits",
                       .content = KILN_SEQUENCE,
                       .dtype = KILN_F32,
                       .axes = "time classes",
                       .varies = true },
    [LOGITS] = { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

#define USE(n)                                                                                     \
    {                                                                                              \
        .option = "model", .feeds = feeds, .n_feeds = KILN_COUNT(feeds), .needs = needs,           \
        .n_needs = (n)                                                                             \
    }

/* Of data without classes, which is what is known before data is read, and with them. */
static const KilnModelUse models[] = { USE(1) };
static const KilnModelUse joint = USE(2);

/* ---- Setup ----------------------------------------------------------------------------------- */

typedef struct State {
    bool intents, pieces;
    const char *const *tags, *const *classes; /* names; of the data */
    KilnParam *start, *end, *transitions;     /* NULL without the field */
} State;

/* The names of pytorch-crf, and its distribution. */
static KilnStatus crf_init(State *state, const KilnScope *scope, int64_t n, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "crf");
    const KilnInit init = { .kind = KILN_INIT_UNIFORM, .a = 0.1 };
    KilnStatus status = kiln_param_new(&own, "start_transitions", KILN_SHAPE(n), init,
                                       &state->start, err);

    if (status >= 0)
        status = kiln_param_new(&own, "end_transitions", KILN_SHAPE(n), init, &state->end, err);
    return status < 0 ? status
                      : kiln_param_new(&own, "transitions", KILN_SHAPE(n, n), init,
                                       &state->transitions, err);
}

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnFeature *tags = kiln_spec_feature(data, "tags");
    KilnFeature given[KILN_COUNT(feeds)];
    size_t n = 0;

    for (size_t i = 0; i < KILN_COUNT(feeds); i++)
        if (kiln_spec_feature(data, feeds[i].name) != NULL)
            given[n++] = *kiln_spec_feature(data, feeds[i].name);
    if (tags->n_ids < 2 || tags->id_names == NULL)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task tagging needs at least 2 tags with names, but feature \"tags\" "
                              "has %lld",
                              (long long)tags->n_ids);
    state->intents = kiln_spec_label(data) != NULL;
    state->pieces = kiln_spec_feature(data, "first_tokens") != NULL;
    state->tags = tags->id_names;
    state->classes = data->class_names;
    if (state->intents && kiln_loss_setup(opts->intent_loss, data, err) < 0)
        return err->status;
    const int64_t sizes[] = { [TOKEN_LOGITS] = tags->n_ids, [LOGITS] = data->n_classes };
    KilnStatus status = kiln_model_setup(opts->model, scope, state->intents ? &joint : models,
                                         given, n, sizes, err);
    return status >= 0 && opts->crf ? crf_init(state, scope, tags->n_ids, err) : status;
}

/* ---- Scores and losses ----------------------------------------------------------------------- */

typedef struct Scores {
    KilnTensor *tags;    /* [batch, words, tags] */
    KilnTensor *lengths; /* words; i32 [batch] */
    KilnTensor *classes; /* [batch, classes]; NULL: there are none */
} Scores;

/* The scores at the first token of each word: a product with ones there, [batch, words, tokens]. */
static Scores forward(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnModelValue values[KILN_COUNT(needs)] = { 0 };

    kiln_model_forward(opts->model, step, NULL, values);
    Scores scores = { .tags = values[TOKEN_LOGITS].tensor, .classes = values[LOGITS].tensor };
    scores.lengths = kiln_step_lengths(step, state->pieces ? "first_tokens" : "tokens");
    if (state->pieces && !kiln_tensor_poisoned(scores.tags)) {
        KilnTensor *first = kiln_step_input(step, "first_tokens");

        first = kiln_one_hot(first, kiln_tensor_dim(scores.tags, 1));
        scores.tags = kiln_matmul(first, scores.tags, false, false);
    }
    return scores;
}

/* The sum of the losses of words, or sentences, over the number of words. */
static KilnTensor *tag_loss(KilnInstance *self, KilnStep *step, const Scores *scores)
{
    const State *state = kiln_state(self);
    KilnTensor *tags = kiln_step_input(step, "tags"), *losses;
    KilnTensor *lengths = kiln_to_float(scores->lengths);

    if (kiln_tensor_poisoned(tags) || kiln_tensor_poisoned(scores->tags))
        return kiln_sum(scores->tags);
    if (state->transitions != NULL) {
        KilnGraph *graph = kiln_step_graph(step);

        losses = kiln_crf_loss(
            scores->tags, tags, scores->lengths, kiln_param_tensor(state->start, graph),
            kiln_param_tensor(state->end, graph), kiln_param_tensor(state->transitions, graph));
    } else {
        const int64_t batch = kiln_tensor_dim(tags, 0), words = kiln_tensor_dim(tags, 1);
        KilnTensor *place = kiln_arange(kiln_step_graph(step), kiln_tensor_dtype(lengths), 0.0, 1.0,
                                        words);
        KilnTensor *here = kiln_lt(place, kiln_reshape(lengths, KILN_SHAPE(batch, 1)));

        losses = kiln_cross_entropy(scores->tags, tags,
                                    (KilnCrossEntropy) { .reduction = KILN_REDUCTION_NONE });
        losses = kiln_mul(losses, here);
    }
    return kiln_div(kiln_sum(losses), kiln_sum(lengths));
}

static KilnTensor *loss_of(KilnInstance *self, KilnStep *step, const Scores *scores)
{
    const Opts *opts = kiln_opts(self);
    KilnTensor *loss = tag_loss(self, step, scores);

    if (scores->classes == NULL)
        return loss;
    KilnTensor *label = kiln_step_input(step, "label");
    KilnTensor *intent = kiln_loss(opts->intent_loss, step, scores->classes, label);
    return kiln_add(loss, kiln_scale(intent, opts->intent_weight));
}

/* The best tags, i32 [batch, words]. */
static KilnTensor *decode(KilnInstance *self, KilnStep *step, const Scores *scores)
{
    const State *state = kiln_state(self);
    KilnGraph *graph = kiln_step_graph(step);

    return state->transitions == NULL
               ? kiln_argmax(scores->tags)
               : kiln_crf_decode(scores->tags, scores->lengths,
                                 kiln_param_tensor(state->start, graph),
                                 kiln_param_tensor(state->end, graph),
                                 kiln_param_tensor(state->transitions, graph));
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void count_intents(const Opts *opts, KilnStep *step, const Scores *scores)
{
    const unsigned flags = kiln_step_training(step) ? 0 : KILN_LOG_PROG_BAR;

    for (size_t i = 0; i < opts->intent_metrics_count && scores->classes != NULL; i++)
        kiln_step_metric(step, opts->intent_metrics[i], scores->classes,
                         kiln_step_input(step, "label"), flags);
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    const Scores scores = forward(self, step);
    KilnTensor *loss = loss_of(self, step, &scores);

    kiln_step_log(step, "train/loss", loss,
                  KILN_LOG_STEP | KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count_intents(kiln_opts(self), step, &scores);
    return loss;
}

static void evaluate(KilnInstance *self, KilnStep *step, const char *name)
{
    const Opts *opts = kiln_opts(self);
    const Scores scores = forward(self, step);

    kiln_step_log(step, name, loss_of(self, step, &scores),
                  KILN_LOG_EPOCH | KILN_LOG_PROG_BAR | KILN_LOG_LOWER_IS_BETTER);
    count_intents(opts, step, &scores);
    kiln_step_keep(step, "tags", decode(self, step, &scores));
    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_sequence_metric(step, opts->metrics[i], KILN_LOG_PROG_BAR);
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
    const Scores scores = forward(self, step);

    kiln_step_keep(step, "tags", decode(self, step, &scores));
    if (scores.classes == NULL)
        return;
    kiln_step_keep(step, "intents", kiln_argmax(scores.classes));
    kiln_step_output(step, "intent_probabilities", kiln_softmax(scores.classes, -1));
}

/* ---- Rows of a step that has run ------------------------------------------------------------- */

/* The tags of row `row`: a name for each of its n words. */
typedef struct Row {
    const State *state;
    const int32_t *tags;
    int64_t n;
} Row;

static KilnStatus row_of(KilnInstance *self, const KilnResults *results, int64_t row, Row *ret,
                         KilnError *err)
{
    const State *state = kiln_state(self);
    const int32_t *lengths = kiln_results_lengths(results,
                                                  state->pieces ? "first_tokens" : "tokens");
    KilnShape shape;
    const int32_t *tags = kiln_results_kept(results, "tags", &shape);

    if (tags == NULL || lengths == NULL)
        return kiln_error_set(err, KILN_E_MISSING, "the step has no tags");
    *ret = (Row) { .state = state, .tags = tags + row * shape.dim[1], .n = lengths[row] };
    return KILN_OK;
}

static void put_names(const Row *row, KilnText *text)
{
    for (int64_t i = 0; i < row->n; i++) {
        if (i > 0)
            kiln_text_char(text, ' ');
        kiln_text_append(text, row->state->tags[row->tags[i]]);
    }
}

/* Count a row. The true tags are those of the file, which may have some that training lacks. */
static KilnStatus count_row(KilnInstance *self, KilnResults *results, int64_t number,
                            const Row *row, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const char *given = kiln_results_text(results, "true_tags", number);
    KilnText text = { 0 }, truth = { 0 };
    KilnShape shape;
    const int32_t *tags = kiln_results_values(results, "tags", &shape);
    KilnStatus status = KILN_OK;

    put_names(row, &text);
    if (given != NULL)
        kiln_text_append(&truth, given);
    else if (tags != NULL)
        put_names(&(Row) { row->state, tags + number * shape.dim[1], row->n }, &truth);
    if (text.failed || truth.failed)
        status = kiln_error_nomem(err, text.length);
    const KilnSequence sequence = { .text = text.data }, reference = { .text = truth.data };
    const KilnMetricRows rows = {
        .count = 1, .sequences = &sequence, .references = &reference, .n_references = 1
    };
    for (size_t i = 0; i < opts->metrics_count && truth.data != NULL && status >= 0; i++)
        status = kiln_results_metric(results, opts->metrics[i], &rows, err);
    kiln_text_release(&text);
    kiln_text_release(&truth);
    return status;
}

/* ---- Predictions ----------------------------------------------------------------------------- */

/* Append characters [begin, end) of a text as a JSON string. */
static void put_part(KilnText *json, const char *text, int64_t begin, int64_t end, KilnText *work)
{
    int64_t at = -1;
    const char *from = NULL;

    for (;; text++) {
        at += ((unsigned char)*text & 0xC0) != 0x80;
        if (from == NULL && at == begin)
            from = text;
        if (at == end || *text == '\0')
            break;
    }
    kiln_text_clear(work);
    kiln_text_append_n(work, from != NULL ? from : text, from != NULL ? (size_t)(text - from) : 0);
    kiln_text_json_string(json, work->data != NULL ? work->data : "");
}

static KilnStatus set_json(KilnResults *results, const char *name, int64_t row, KilnText *json,
                           KilnError *err)
{
    const KilnStatus status = json->failed || json->data == NULL
                                  ? kiln_error_nomem(err, json->length)
                                  : kiln_results_set(results, name, row, json->data, err);

    kiln_text_clear(json);
    return status;
}

static void put_span(KilnText *json, const KilnTagSpan *span, const char *text,
                     const int32_t (*words)[2], KilnText *work)
{
    kiln_text_append(json, json->length == 1 ? "{\"type\": " : ", {\"type\": ");
    kiln_text_clear(work);
    kiln_text_append_n(work, span->type.data, span->type.length);
    kiln_text_json_string(json, work->data);
    kiln_text_append(json, ", \"text\": ");
    put_part(json, text, words[span->first][0], words[span->last][1], work);
    kiln_text_printf(json, ", \"start\": %d, \"end\": %d}", (int)words[span->first][0],
                     (int)words[span->last][1]);
}

/* "[{"type": "person", "text": "Ada", "start": 0, "end": 3}, ...]" */
static void put_spans(const Row *row, KilnText *json, const char *text, const int32_t (*words)[2],
                      KilnText *work)
{
    KilnSpanFinder finder = { 0 };
    KilnTagSpan span;

    kiln_text_char(json, '[');
    for (int64_t i = 0; i < row->n; i++) {
        const char *tag = row->state->tags[row->tags[i]];

        if (kiln_span_next(&finder, (KilnString) { tag, strlen(tag) }, &span))
            put_span(json, &span, text, words, work);
    }
    if (kiln_span_end(&finder, &span))
        put_span(json, &span, text, words, work);
    kiln_text_char(json, ']');
}

/* The words and spans, if the data say where words are in a text. */
static KilnStatus set_spans(KilnResults *results, int64_t number, const Row *row, KilnText *json,
                            KilnText *work, KilnError *err)
{
    const char *text = kiln_results_text(results, "text", number);
    KilnShape shape;
    const int32_t *values = kiln_results_values(results, "words", &shape);

    if (text == NULL || values == NULL)
        return KILN_OK;
    const int32_t(*words)[2] = (const int32_t(*)[2])(values + number * shape.dim[1] * 2);
    for (int64_t i = 0; i < row->n; i++) {
        kiln_text_append(json, i == 0 ? "[" : ", ");
        put_part(json, text, words[i][0], words[i][1], work);
    }
    kiln_text_char(json, ']');
    if (set_json(results, "words", number, json, err) < 0)
        return err->status;
    put_spans(row, json, text, words, work);
    return set_json(results, "spans", number, json, err);
}

/* The name of the most probable class. */
static KilnStatus set_intent(KilnInstance *self, KilnResults *results, int64_t number,
                             KilnText *json, KilnError *err)
{
    const State *state = kiln_state(self);
    KilnShape shape;
    const int32_t *classes = kiln_results_kept(results, "intents", &shape);

    if (classes == NULL)
        return KILN_OK;
    kiln_text_json_string(json, state->classes[classes[number]]);
    return set_json(results, "intent", number, json, err);
}

static KilnStatus set_row(KilnInstance *self, KilnResults *results, int64_t number, const Row *row,
                          KilnError *err)
{
    KilnText json = { 0 }, work = { 0 };
    KilnStatus status;

    for (int64_t i = 0; i < row->n; i++) {
        kiln_text_append(&json, i == 0 ? "[" : ", ");
        kiln_text_json_string(&json, row->state->tags[row->tags[i]]);
    }
    kiln_text_char(&json, ']');
    status = set_json(results, "tags", number, &json, err);
    if (status >= 0)
        status = set_spans(results, number, row, &json, &work, err);
    if (status >= 0)
        status = set_intent(self, results, number, &json, err);
    kiln_text_release(&json);
    kiln_text_release(&work);
    return status;
}

static KilnStatus finish_step(KilnInstance *self, KilnResults *results, KilnError *err)
{
    const bool predicts = strcmp(kiln_results_phase(results), "predict") == 0;
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < kiln_results_size(results) && status >= 0; i++) {
        Row row;

        status = row_of(self, results, i, &row, err);
        if (status >= 0)
            status = predicts ? set_row(self, results, i, &row, err)
                              : count_row(self, results, i, &row, err);
    }
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

const KilnComponent kiln_module_tagging = {
    .kind = KILN_KIND_MODULE,
    .name = "tagging",
    .summary = "Tagging of the words of a sentence, and its intent",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .ops.module = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_module_tagging, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
