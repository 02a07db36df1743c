/* Texts with a label in files: CSV, TSV, JSON lines, lines that begin with their label, a folder
 * per class. */
#include "kiln.h"
#include "kiln/tools/name_list.h"
#include "kiln/tools/text_data.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    KILN_TEXT_OPTIONS;
    KilnInstance *tokenizer;
    char *text, *pair, *label, *label_end;
    char **classes;
    size_t classes_count;
    int64_t max_length;
    bool special_tokens;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_TEXT_FIELDS(Opts),
    KILN_FIELD_COMPONENT(Opts, tokenizer, KILN_KIND_TOKENIZER, "words",
                         "makes ids of texts; it is trained on the training split"),
    KILN_FIELD_STR(Opts, text, "text", "the column of the text"),
    KILN_FIELD_STR_OPT(Opts, pair, "null", "the column of a second text; null: there is none"),
    KILN_FIELD_STR(Opts, label, "label", "the column of the class"),
    KILN_FIELD_STR_OPT(Opts, label_end, "null",
                       "a label ends before this text: with \":\" DESC:manner is the class DESC"),
    KILN_FIELD_STR_LIST(Opts, classes, "[]",
                        "names of the classes; empty: those of the training files, sorted"),
    KILN_FIELD_I64(Opts, max_length, "256", 1, 1e6, "ids per text; later ones are cut"),
    KILN_FIELD_BOOL(Opts, special_tokens, "false",
                    "add the tokens that the tokenizer puts around a text, as in [CLS] text [SEP]"),
    KILN_FIELD_END,
};

enum { TEXT_COLUMN, LABEL_COLUMN, PAIR_COLUMN, COLUMNS };
enum { TOKENS, LABEL, FEATURES };
static const char tokenizer_file[] = "tokenizer.json", classes_file[] = "classes.txt";

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    State *state;
    KilnSplit split;
    KilnTextTokens tokens;
    int32_t *labels;
    char place[512]; /* of the sample whose name was asked for last */
} Samples;

struct State {
    const Opts *opts;
    KilnTextData *data;
    KilnTextEncode encode;
    KilnNameList classes; /* sorted, unless they are given */
    bool collects;        /* classes, from the training rows */
    Samples samples[KILN_SPLIT_COUNT];
    KilnFeature features[FEATURES];
    KilnTextBuckets buckets;
    KilnRawField raw[2]; /* called as the columns */
};

/* ---- Classes --------------------------------------------------------------------------------- */

/* The part of a label that is the class. */
static KilnString class_of(const Opts *opts, KilnString label)
{
    const char *end = opts->label_end;
    const size_t n = end != NULL ? strlen(end) : 0;

    for (size_t i = 0; n > 0 && i + n <= label.length; i++)
        if (memcmp(label.data + i, end, n) == 0)
            label.length = i;
    return label;
}

static KilnStatus copy_classes(State *state, char *const *names, size_t n, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_name_list_add(&state->classes, (KilnString) { names[i], strlen(names[i]) },
                                    err);
    return status;
}

/* ---- Rows -------------------------------------------------------------------------------------
 */

static KilnStatus check_class(State *state, KilnSplit split, KilnString name, KilnError *err)
{
    if (state->collects && split == KILN_TRAIN)
        return kiln_name_list_add(&state->classes, name, err);
    if (kiln_name_list_find(&state->classes, name) >= 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_KEY, "the label \"%.*s\" is not one of the %zu classes%s",
                          (int)(name.length < 64 ? name.length : 64), name.data, state->classes.n,
                          state->opts->classes_count > 0 ? " of datamodule.classes"
                                                         : " of the training files");
}

static KilnStatus check_row(void *ctx, KilnSplit split, const KilnRecord *record, KilnError *err)
{
    State *state = ctx;
    const Opts *opts = state->opts;
    KilnString list = record->fields[LABEL_COLUMN], label, more;

    if (kiln_text_is_blank(record->fields[TEXT_COLUMN]))
        return kiln_error_set(err, KILN_E_MISSING, "the text (column \"%s\") is empty", opts->text);
    if (opts->pair != NULL && kiln_text_is_blank(record->fields[PAIR_COLUMN]))
        return kiln_error_set(err, KILN_E_MISSING, "the text (column \"%s\") is empty", opts->pair);
    if (!kiln_record_next_item(&list, &label) || label.length == 0)
        return kiln_error_set(err, KILN_E_MISSING, "the label (column \"%s\") is empty",
                              opts->label);
    if (memchr(label.data, '\n', label.length) != NULL)
        return kiln_error_set(err, KILN_E_TYPE, "the label has several lines");
    if (kiln_record_next_item(&list, &more))
        return kiln_error_set(err, KILN_E_TYPE, "the row has several labels; expected one");
    return check_class(state, split, class_of(opts, label), err);
}

/* The classes of all samples. */
static KilnStatus read_labels(State *state, Samples *samples, const KilnPoll *poll, KilnError *err)
{
    const int64_t n = kiln_text_data_count(state->data, samples->split);
    KilnRecord record = { 0 };
    KilnStatus status = KILN_OK;

    samples->labels = malloc((size_t)n * sizeof(*samples->labels) + 1);
    if (samples->labels == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*samples->labels));
    for (int64_t i = 0; i < n && status >= 0; i++) {
        KilnString label = { 0 };

        status = kiln_poll_check(poll, "reading labels", i, n, err);
        if (status >= 0)
            status = kiln_text_data_read(state->data, samples->split, i, &record, err);
        if (status < 0)
            break;
        (void)kiln_record_next_item(&record.fields[LABEL_COLUMN], &label);
        samples->labels[i] = (int32_t)kiln_name_list_find(&state->classes,
                                                          class_of(state->opts, label));
    }
    kiln_record_release(&record);
    return status;
}

/* ---- Setup ------------------------------------------------------------------------------------
 */

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
    const KilnTextSource source = KILN_TEXT_SOURCE(opts);
    const char *const columns[COLUMNS] = { opts->text, opts->label, opts->pair };
    const char *const options[COLUMNS] = { "text", "label", "pair" };
    const KilnTextWanted wanted = { .columns = columns,
                                    .options = options,
                                    .n_columns = opts->pair != NULL ? COLUMNS : PAIR_COLUMN,
                                    .check = check_row,
                                    .ctx = state };

    return kiln_text_data_open(&source, &wanted, context, &state->data, err);
}

static KilnStatus prepare_samples(State *state, KilnSplit split, const KilnPoll *poll,
                                  KilnError *err)
{
    Samples *samples = &state->samples[split];
    KilnStatus status = kiln_text_tokens_encode(state->data, split, &state->encode,
                                                &samples->tokens, err);

    samples->state = state;
    samples->split = split;
    return status >= 0 ? read_labels(state, samples, poll, err) : status;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    static const size_t texts[] = { TEXT_COLUMN, PAIR_COLUMN };
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnStatus status = context->fitted != NULL
                            ? kiln_name_list_read(&state->classes, context->fitted, classes_file,
                                                  err)
                            : copy_classes(state, opts->classes, opts->classes_count, err);

    state->collects = context->fitted == NULL && opts->classes_count == 0;
    state->classes.sorted = state->collects;
    if (status >= 0)
        status = open_data(state, context, err);
    if (status >= 0)
        status = kiln_text_tokenizer_prepare(opts->tokenizer, tokenizer_file, state->data, texts,
                                             opts->pair != NULL ? 2 : 1, context, err);
    state->encode = (KilnTextEncode) { .tokenizer = opts->tokenizer,
                                       .column = TEXT_COLUMN,
                                       .pair = opts->pair != NULL ? PAIR_COLUMN : -1,
                                       .add_special_tokens = opts->special_tokens,
                                       .max_length = opts->max_length,
                                       .cache = opts->cache,
                                       .poll = context->poll };
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = prepare_samples(state, (KilnSplit)split, context->poll, err);
    return status;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);
    const int64_t pad = kiln_tokenizer_special(state->opts->tokenizer, KILN_TOKEN_PAD);

    (void)err;
    state->features[TOKENS] = (KilnFeature) {
        .name = "tokens",
        .content = KILN_TOKENS,
        .dtype = KILN_I32,
        .shape = KILN_SHAPE(state->opts->max_length),
        .varies = true,
        .pad = pad >= 0 ? (double)pad : 0.0,
        .n_ids = kiln_tokenizer_size(state->opts->tokenizer),
    };
    state->features[LABEL] =
        (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = FEATURES,
                            .n_classes = (int64_t)state->classes.n,
                            .class_names = (const char *const *)state->classes.names };
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        kiln_text_tokens_release(&state->samples[split].tokens);
        free(state->samples[split].labels);
    }
    kiln_name_list_release(&state->classes);
    kiln_text_data_free(state->data);
}

/* ---- Samples ----------------------------------------------------------------------------------
 */

static int64_t length_of(const KilnTextTokens *tokens, int64_t i)
{
    return tokens->starts[i + 1] - tokens->starts[i];
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const KilnTextTokens *tokens = &samples->tokens;

    (void)rng;
    (void)err;
    if (sample->data[TOKENS] != NULL)
        memcpy(sample->data[TOKENS], tokens->ids + tokens->starts[index],
               (size_t)length_of(tokens, index) * sizeof(*tokens->ids));
    if (sample->data[LABEL] != NULL)
        *(int32_t *)sample->data[LABEL] = samples->labels[index];
    return KILN_OK;
}

static int64_t label(void *ctx, int64_t index)
{
    return ((const Samples *)ctx)->labels[index];
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    ret[TOKENS] = length_of(&((const Samples *)ctx)->tokens, index);
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
    *ret = (KilnDataset) { .count = samples->tokens.n,
                           .ctx = samples,
                           .get = get,
                           .name = name,
                           .label = label,
                           .lengths = lengths };
    return KILN_OK;
}

/* ---- Texts of a user --------------------------------------------------------------------------
 */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    const State *state = kiln_state(self);

    *ret = state->raw;
    return state->opts->pair != NULL ? 2 : 1;
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
    return kiln_text_encode_one(&state->encode, text, paired ? &pair : NULL, sample->data[TOKENS],
                                &sample->lengths[TOKENS], err);
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnStatus status = kiln_name_list_write(&state->classes, dir, classes_file, err);

    return status >= 0 ? kiln_text_tokenizer_save(state->opts->tokenizer, dir, tokenizer_file, err)
                       : status;
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

static const KilnTensorSpec declared[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};

static const KilnDataModuleOps ops = {
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
};

const KilnComponent kiln_datamodule_labeled_text = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "labeled_text",
    .summary = "Texts with a class in CSV, TSV, JSON lines, lines or folders",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_labeled_text, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
