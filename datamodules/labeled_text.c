/* Texts with a label, or with any number of labels, in files: CSV, TSV, JSON lines, lines that
 * begin with their labels, a folder per class. */
#include "kiln.h"
#include "kiln/tools/data_labels.h"
#include "kiln/tools/text_data.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    KILN_TEXT_OPTIONS;
    KilnInstance *tokenizer, *bag;
    KILN_LABEL_OPTIONS;
    char *text, *pair, *label_end;
    int64_t max_length;
    bool special_tokens;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_TEXT_FIELDS(Opts),
    KILN_FIELD_COMPONENT(Opts, tokenizer, KILN_KIND_TOKENIZER, "words",
                         "makes ids of texts; it is trained on the training split"),
    KILN_FIELD_COMPONENT_OPT(Opts, bag, KILN_KIND_TOKENIZER, "null",
                             "makes a second list of ids of each text, for models that take a bag "
                             "of n-grams beside the tokens or instead (tokenizer/ngrams); null: "
                             "none"),
    KILN_FIELD_STR(Opts, text, "text", "the column of the text"),
    KILN_FIELD_STR_OPT(Opts, pair, "null", "the column of a second text; null: there is none"),
    KILN_LABEL_FIELDS(Opts, "a text", "several __label__ words, "),
    KILN_FIELD_STR_OPT(Opts, label_end, "null",
                       "a label ends before this text: with \":\" DESC:manner is the class DESC"),
    KILN_FIELD_I64(Opts, max_length, "256", 1, 1e6, "ids per text; later ones are cut"),
    KILN_FIELD_BOOL(Opts, special_tokens, "false",
                    "add the tokens that the tokenizer puts around a text, as in [CLS] text [SEP]"),
    KILN_FIELD_END,
};

/* The columns that are read: the text, the second one if there is one, the labels. */
enum { TEXT_COLUMN, PAIR_COLUMN };
enum { TOKENS, LABEL, BAG, FEATURES };
enum { ENCODINGS = 2 }; /* of a text: its tokens, and its bag */
static const char *const tokenizer_files[ENCODINGS] = { "tokenizer.json", "bag.json" };
static const char *const encoding_names[ENCODINGS] = { "tokens", "bag" };
static const size_t encoding_features[ENCODINGS] = { TOKENS, BAG };

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    State *state;
    KilnSplit split;
    KilnTextTokens ids[ENCODINGS];
    char place[512]; /* of the sample whose name was asked for last */
} Samples;

struct State {
    const Opts *opts;
    KilnTextData *data;
    KilnTextEncode encode[ENCODINGS];
    size_t n_encodings;
    KilnDataLabels labels;
    size_t first_label;   /* the column of the labels, or the first of label_columns */
    const char **columns; /* [first_label + columns of labels] */
    Samples samples[KILN_SPLIT_COUNT];
    KilnFeature features[FEATURES];
    KilnTextBuckets buckets;
    KilnRawField raw[2]; /* called as the columns */
};

/* ---- Rows ----------------------------------------------------------------------------------- */

static KilnStatus check_row(void *ctx, KilnSplit split, const KilnRecord *record, KilnError *err)
{
    State *state = ctx;
    const Opts *opts = state->opts;

    if (kiln_text_is_blank(record->fields[TEXT_COLUMN]))
        return kiln_error_set(err, KILN_E_MISSING, "the text (column \"%s\") is empty", opts->text);
    if (opts->pair != NULL && kiln_text_is_blank(record->fields[PAIR_COLUMN]))
        return kiln_error_set(err, KILN_E_MISSING, "the text (column \"%s\") is empty", opts->pair);
    return kiln_data_labels_check(&state->labels, split, record->fields + state->first_label, err);
}

/* The classes of all samples. */
static KilnStatus read_labels(State *state, Samples *samples, const KilnPoll *poll, KilnError *err)
{
    const int64_t n = kiln_text_data_count(state->data, samples->split);
    KilnRecord record = { 0 };
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < n && status >= 0; i++) {
        status = kiln_poll_check(poll, "reading labels", i, n, err);
        if (status >= 0)
            status = kiln_text_data_read(state->data, samples->split, i, &record, err);
        if (status >= 0)
            status = kiln_data_labels_add(&state->labels, samples->split,
                                          record.fields + state->first_label, err);
    }
    kiln_record_release(&record);
    return status;
}

/* ---- Setup ---------------------------------------------------------------------------------- */

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const KilnLabelSource labels = KILN_LABEL_SOURCE((const Opts *)options);

    return kiln_label_source_check(&labels, ret_option, err);
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    (void)err;
    state->opts = opts;
    state->raw[0] = (KilnRawField) { .name = opts->text, .types = KILN_RAW_TEXT, .help = "a text" };
    state->raw[1] =
        (KilnRawField) { .name = opts->pair, .types = KILN_RAW_TEXT, .help = "the second text" };
    kiln_text_buckets_init(&state->buckets, opts->max_length);
    return KILN_OK;
}

static KilnStatus open_data(State *state, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = state->opts;
    KilnTextSource source = KILN_TEXT_SOURCE(opts);
    const size_t first = opts->pair != NULL ? PAIR_COLUMN + 1 : PAIR_COLUMN;
    const size_t n = first + kiln_label_source_width(&state->labels.source);
    const char **options = calloc(n + 1, sizeof(*options));

    source.label_end = opts->label_end;
    state->first_label = first;
    state->columns = calloc(n + 1, sizeof(*state->columns));
    if (state->columns == NULL || options == NULL) {
        free(options);
        return kiln_error_nomem(err, n * sizeof(*options));
    }
    state->columns[TEXT_COLUMN] = opts->text;
    state->columns[PAIR_COLUMN] = opts->pair;
    options[TEXT_COLUMN] = "text";
    options[PAIR_COLUMN] = "pair";
    kiln_label_source_columns(&state->labels.source, state->columns + first, options + first);
    KilnStatus status = kiln_text_data_open(&source,
                                            &(KilnTextWanted) { .columns = state->columns,
                                                                .options = options,
                                                                .n_columns = n,
                                                                .check = check_row,
                                                                .ctx = state },
                                            context, &state->data, err);
    free(options);
    return status;
}

static KilnStatus prepare_samples(State *state, KilnSplit split, const KilnPoll *poll,
                                  KilnError *err)
{
    Samples *samples = &state->samples[split];
    KilnStatus status = KILN_OK;

    samples->state = state;
    samples->split = split;
    for (size_t e = 0; e < state->n_encodings && status >= 0; e++)
        status = kiln_text_tokens_encode(state->data, split, &state->encode[e], &samples->ids[e],
                                         err);
    return status >= 0 ? read_labels(state, samples, poll, err) : status;
}

/* Make the tokenizers ready. */
static KilnStatus prepare_tokenizers(State *state, const KilnDataContext *context, KilnError *err)
{
    static const size_t texts[] = { TEXT_COLUMN, PAIR_COLUMN };
    const Opts *opts = state->opts;
    KilnInstance *const tokenizers[ENCODINGS] = { opts->tokenizer, opts->bag };
    KilnStatus status = KILN_OK;

    state->n_encodings = opts->bag != NULL ? ENCODINGS : 1;
    for (size_t e = 0; e < state->n_encodings && status >= 0; e++) {
        status = kiln_text_tokenizer_prepare(tokenizers[e], tokenizer_files[e], state->data, texts,
                                             opts->pair != NULL ? 2 : 1, context, err);
        state->encode[e] = (KilnTextEncode) { .tokenizer = tokenizers[e],
                                              .column = TEXT_COLUMN,
                                              .pair = opts->pair != NULL ? PAIR_COLUMN : -1,
                                              .add_special_tokens = opts->special_tokens,
                                              .max_length = opts->max_length,
                                              .cache = opts->cache,
                                              .poll = context->poll };
    }
    return status;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    KilnLabelSource labels = KILN_LABEL_SOURCE(state->opts);

    labels.end = state->opts->label_end;
    KilnStatus status = kiln_data_labels_open(&state->labels, &labels, context, err);

    if (status >= 0)
        status = open_data(state, context, err);
    if (status >= 0)
        status = prepare_tokenizers(state, context, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = prepare_samples(state, (KilnSplit)split, context->poll, err);
    return status;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    for (size_t e = 0; e < state->n_encodings; e++) {
        const KilnInstance *tokenizer = state->encode[e].tokenizer;
        const int64_t pad = kiln_tokenizer_special(tokenizer, KILN_TOKEN_PAD);

        state->features[encoding_features[e]] = (KilnFeature) {
            .name = encoding_names[e],
            .content = KILN_TOKENS,
            .dtype = KILN_I32,
            .shape = KILN_SHAPE(state->opts->max_length),
            .varies = true,
            .pad = pad >= 0 ? (double)pad : 0.0,
            .n_ids = kiln_tokenizer_size(tokenizer),
        };
    }
    state->features[LABEL] = kiln_data_labels_feature(&state->labels);
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = state->n_encodings == ENCODINGS ? FEATURES : BAG,
                            .n_classes = (int64_t)state->labels.classes.n,
                            .class_names = (const char *const *)state->labels.classes.names };
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t e = 0; e < ENCODINGS; e++)
            kiln_text_tokens_release(&state->samples[split].ids[e]);
    kiln_data_labels_release(&state->labels);
    free(state->columns);
    kiln_text_data_free(state->data);
}

/* ---- Samples -------------------------------------------------------------------------------- */

static int64_t length_of(const KilnTextTokens *tokens, int64_t i)
{
    return tokens->starts[i + 1] - tokens->starts[i];
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;

    (void)rng;
    (void)err;
    for (size_t e = 0; e < samples->state->n_encodings; e++) {
        const KilnTextTokens *ids = &samples->ids[e];

        if (sample->data[encoding_features[e]] != NULL)
            memcpy(sample->data[encoding_features[e]], ids->ids + ids->starts[index],
                   (size_t)length_of(ids, index) * sizeof(*ids->ids));
    }
    if (sample->data[LABEL] != NULL)
        kiln_data_labels_write(&samples->state->labels, samples->split, index, sample->data[LABEL]);
    return KILN_OK;
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return kiln_data_labels_class(&samples->state->labels, samples->split, index);
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    const Samples *samples = ctx;

    for (size_t e = 0; e < samples->state->n_encodings; e++)
        ret[encoding_features[e]] = length_of(&samples->ids[e], index);
}

static const char *name(void *ctx, int64_t index)
{
    Samples *samples = ctx;

    return kiln_text_data_location(samples->state->data, samples->split, index, samples->place,
                                   sizeof(samples->place));
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];

    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = samples->ids[0].n,
                           .ctx = samples,
                           .get = get,
                           .name = name,
                           .label = state->opts->multilabel ? NULL : label,
                           .lengths = lengths };
    return KILN_OK;
}

/* ---- Texts of a user ------------------------------------------------------------------------ */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    const State *state = kiln_state(self);

    *ret = state->raw;
    return state->opts->pair != NULL ? 2 : 1;
}

static KilnStatus spell(KilnInstance *self, const KilnRawValue *values, size_t feature,
                        KilnText *ret, KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnTextEncode *encode = &state->encode[feature == BAG];
    KilnString pair = { 0 };
    const KilnTokenizerInput input = { .text = { values[0].text, strlen(values[0].text) },
                                       .pair = encode->pair >= 0 ? &pair : NULL,
                                       .add_special_tokens = encode->add_special_tokens };

    if (input.pair != NULL)
        pair = (KilnString) { values[1].text, strlen(values[1].text) };
    return kiln_tokenizer_spell(encode->tokenizer, &input, ret, err);
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const bool paired = state->opts->pair != NULL;
    const KilnString text = { values[0].text, strlen(values[0].text) };
    KilnString pair = { 0 };

    if (paired)
        pair = (KilnString) { values[1].text, strlen(values[1].text) };
    if (kiln_text_is_blank(text) || (paired && kiln_text_is_blank(pair)))
        return kiln_error_set(err, KILN_E_MISSING, "the text is empty");
    KilnStatus status = KILN_OK;
    for (size_t e = 0; e < state->n_encodings && status >= 0; e++)
        status = kiln_text_encode_one(&state->encode[e], text, paired ? &pair : NULL,
                                      sample->data[encoding_features[e]],
                                      &sample->lengths[encoding_features[e]], err);
    return status;
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const State *state = kiln_state(self);
    KilnStatus status = kiln_data_labels_save(&state->labels, dir, err);

    for (size_t e = 0; e < state->n_encodings && status >= 0; e++)
        status = kiln_text_tokenizer_save(state->encode[e].tokenizer, dir, tokenizer_files[e], err);
    return status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state((KilnInstance *)self);

    *ret = KILN_LENGTH_LOADING(opts);
    kiln_text_buckets_set(&state->buckets, ret);
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    const State *state = kiln_state(self);

    kiln_text_data_left_out(state->data, add, ctx);
}

static void files(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx)
{
    kiln_text_data_files(((const State *)kiln_state(self))->data, add, ctx);
}

static const KilnInstance *tokenizer_of(const KilnInstance *self)
{
    return ((const Opts *)kiln_opts(self))->tokenizer;
}

static const KilnTensorSpec declared[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    KILN_LABEL_SPECS,
    { .name = "bag",
      .content = KILN_TOKENS,
      .dtype = KILN_I32,
      .axes = "ids",
      .varies = true,
      .optional = true },
};

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = declared,
    .n_features = KILN_COUNT(declared),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .save_preprocessing = save_preprocessing,
    .loading = loading,
    .left_out = left_out,
    .tokenizer = tokenizer_of,
    .files = files,
    .spell = spell,
};

const KilnComponent kiln_datamodule_labeled_text = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "labeled_text",
    .summary = "Texts with a class, or several labels, in CSV, TSV, JSON lines, lines or folders",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_labeled_text, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
