/* Pairs of texts, such as sentences and their translations: two files whose lines belong together,
 * or two columns of a table. */
#include "kiln.h"
#include "kiln/tools/text_data.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    KILN_TEXT_OPTIONS;
    KilnInstance *tokenizer, *target_tokenizer;
    char *source, *target;
    int64_t max_length;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "64"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_TEXT_FIELDS(Opts),
    KILN_FIELD_COMPONENT(Opts, tokenizer, KILN_KIND_TOKENIZER, "bpe",
                         "makes ids of texts, with tokens for padding, beginning and end; it is "
                         "trained on the training split"),
    KILN_FIELD_COMPONENT_OPT(Opts, target_tokenizer, KILN_KIND_TOKENIZER, "null",
                             "a vocabulary of its own for the target; null: both share one"),
    KILN_FIELD_STR(Opts, source, "source",
                   "the column of the text to translate; source: also the first of parallel files"),
    KILN_FIELD_STR(Opts, target, "target",
                   "the column of its translation; target: also the second of parallel files"),
    KILN_FIELD_I64(Opts, max_length, "128", 3, 1e6,
                   "ids per text, its beginning and end included; later ones are cut"),
    KILN_FIELD_END,
};

enum { SOURCE, TARGET, SIDES };
enum { SOURCE_TEXT = SIDES, TARGET_TEXT, FEATURES };
static const char *const file_names[SIDES] = { "tokenizer.json", "target_tokenizer.json" };

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    State *state;
    KilnSplit split;
    KilnTextTokens tokens[SIDES];
    char place[512]; /* of the sample whose name was asked for last */
} Samples;

struct State {
    const Opts *opts;
    KilnTextData *data;
    KilnTextEncode encode[SIDES];
    int32_t begin, end[SIDES]; /* begin: of the target */
    Samples samples[KILN_SPLIT_COUNT];
    KilnFeature features[FEATURES];
    KilnTextBuckets buckets;
    KilnRawField raw[SIDES];
};

static KilnInstance *tokenizer_of(const Opts *opts, int side)
{
    return side == TARGET && opts->target_tokenizer != NULL ? opts->target_tokenizer
                                                            : opts->tokenizer;
}

/* ---- Setup ------------------------------------------------------------------------------------
 */

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    (void)err;
    state->opts = opts;
    state->raw[SOURCE] = (KilnRawField) { .name = opts->source,
                                          .types = KILN_RAW_TEXT,
                                          .help = "the text to translate" };
    state->raw[TARGET] = (KilnRawField) {
        .name = opts->target, .types = KILN_RAW_TEXT, .optional = true, .help = "its translation"
    };
    kiln_text_buckets_init(&state->buckets, opts->max_length);
    return KILN_OK;
}

static KilnStatus check_row(void *ctx, KilnSplit split, const KilnRecord *record, KilnError *err)
{
    const State *state = ctx;

    (void)split;
    for (int side = 0; side < SIDES; side++)
        if (kiln_text_is_blank(record->fields[side]))
            return kiln_error_set(err, KILN_E_MISSING, "the text (column \"%s\") is empty",
                                  state->raw[side].name);
    return KILN_OK;
}

static KilnStatus prepare_tokenizers(State *state, const KilnDataContext *context, KilnError *err)
{
    static const size_t columns[SIDES] = { SOURCE, TARGET };
    const Opts *opts = state->opts;
    const bool shared = opts->target_tokenizer == NULL;
    KilnStatus status = kiln_text_tokenizer_prepare(
        opts->tokenizer, file_names[SOURCE], state->data, columns, shared ? 2 : 1, context, err);

    if (status < 0 || shared)
        return status;
    return kiln_text_tokenizer_prepare(opts->target_tokenizer, file_names[TARGET], state->data,
                                       columns + TARGET, 1, context, err);
}

/* A token with a role; KILN_E_MISSING if the tokenizer of that side has none. */
static KilnStatus special_token(const Opts *opts, int side, KilnSpecialToken role, const char *what,
                                int32_t *ret, KilnError *err)
{
    const KilnInstance *tokenizer = tokenizer_of(opts, side);
    const int64_t id = kiln_tokenizer_special(tokenizer, role);

    *ret = (int32_t)id;
    if (id >= 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_MISSING,
                          "%s: has no token that %s a text; one that is trained here gets it "
                          "by special_tokens=['<pad>','<s>','</s>']",
                          tokenizer == opts->target_tokenizer ? "target_tokenizer" : "tokenizer",
                          what);
}

static KilnStatus find_special_tokens(State *state, KilnError *err)
{
    KilnStatus status = special_token(state->opts, TARGET, KILN_TOKEN_BOS, "begins", &state->begin,
                                      err);

    for (int side = 0; side < SIDES && status >= 0; side++) {
        int32_t pad = 0;

        status = special_token(state->opts, side, KILN_TOKEN_EOS, "ends", &state->end[side], err);
        if (status >= 0)
            status = special_token(state->opts, side, KILN_TOKEN_PAD, "pads", &pad, err);
        state->features[side].pad = (double)pad;
    }
    return status;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnTextSource source = KILN_TEXT_SOURCE(opts);
    const char *const columns[SIDES] = { opts->source, opts->target };
    static const char *const options[SIDES] = { "source", "target" };
    const KilnTextWanted wanted = {
        .columns = columns,
        .options = options,
        .n_columns = SIDES,
        .check = check_row,
        .ctx = state,
        .in_order = strcmp(opts->source, "source") == 0 && strcmp(opts->target, "target") == 0,
    };
    KilnStatus status = kiln_text_data_open(&source, &wanted, context, &state->data, err);

    if (status >= 0)
        status = prepare_tokenizers(state, context, err);
    if (status >= 0)
        status = find_special_tokens(state, err);
    for (int side = 0; side < SIDES; side++)
        state->encode[side] = (KilnTextEncode) { .tokenizer = tokenizer_of(opts, side),
                                                 .column = (size_t)side,
                                                 .pair = -1,
                                                 .max_length = opts->max_length - 2,
                                                 .cache = opts->cache,
                                                 .poll = context->poll };
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        Samples *samples = &state->samples[split];

        samples->state = state;
        samples->split = (KilnSplit)split;
        for (int side = 0; side < SIDES && status >= 0; side++)
            status = kiln_text_tokens_encode(state->data, samples->split, &state->encode[side],
                                             &samples->tokens[side], err);
    }
    return status;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const char *const names[FEATURES] = { "source", "target", "source_text", "target_text" };
    State *state = kiln_state(self);

    (void)err;
    for (int side = 0; side < SIDES; side++)
        state->features[side] = (KilnFeature) {
            .name = names[side],
            .content = KILN_TOKENS,
            .dtype = KILN_I32,
            .shape = KILN_SHAPE(state->opts->max_length),
            .varies = true,
            .pad = state->features[side].pad,
            .n_ids = kiln_tokenizer_size(tokenizer_of(state->opts, side)),
        };
    for (int f = SOURCE_TEXT; f < FEATURES; f++)
        state->features[f] = (KilnFeature) { .name = names[f], .content = KILN_TEXT };
    *ret = (KilnDataSpec) { .features = state->features, .n_features = FEATURES };
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (int side = 0; side < SIDES; side++)
            kiln_text_tokens_release(&state->samples[split].tokens[side]);
    kiln_text_data_free(state->data);
}

/* ---- Samples ------------------------------------------------------------------------------------
 */

/* Write [begin] ids [end], where only a target has a beginning; returns the length. `ids` may be
 * where they belong already. */
static int64_t add_ends(const State *state, int side, const int32_t *ids, int64_t n, int32_t *to)
{
    const int64_t first = side == TARGET;

    memmove(to + first, ids, (size_t)n * sizeof(*to));
    if (first > 0)
        to[0] = state->begin;
    to[first + n] = state->end[side];
    return first + n + 1;
}

/* The texts themselves, where they are wanted. */
static KilnStatus get_texts(const Samples *samples, int64_t index, KilnSample *sample,
                            KilnError *err)
{
    KilnRecord record = { 0 };
    KilnStatus status = kiln_text_data_read(samples->state->data, samples->split, index, &record,
                                            err);

    for (int side = 0; side < SIDES && status >= 0; side++) {
        char **to = sample->data[SOURCE_TEXT + side];

        if (to == NULL)
            continue;
        *to = strndup(record.fields[side].data, record.fields[side].length);
        if (*to == NULL)
            status = kiln_error_nomem(err, record.fields[side].length);
    }
    kiln_record_release(&record);
    return status;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;

    (void)rng;
    for (int side = 0; side < SIDES; side++) {
        const KilnTextTokens *tokens = &samples->tokens[side];
        const int64_t start = tokens->starts[index];

        if (sample->data[side] != NULL)
            (void)add_ends(samples->state, side, tokens->ids + start,
                           tokens->starts[index + 1] - start, sample->data[side]);
    }
    return sample->data[SOURCE_TEXT] != NULL || sample->data[TARGET_TEXT] != NULL
               ? get_texts(samples, index, sample, err)
               : KILN_OK;
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    const Samples *samples = ctx;

    for (int side = 0; side < SIDES; side++)
        ret[side] = samples->tokens[side].starts[index + 1] - samples->tokens[side].starts[index] +
                    1 + (side == TARGET);
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
    static const char *const texts[] = { "source_text", "target_text", NULL };
    State *state = kiln_state(self);
    Samples *samples = &state->samples[split];

    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = samples->tokens[SOURCE].n,
                           .ctx = samples,
                           .get = get,
                           .name = name,
                           .lengths = lengths,
                           .absent = split == KILN_TRAIN ? texts : NULL };
    return KILN_OK;
}

/* ---- Texts of a user ----------------------------------------------------------------------------
 */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    *ret = ((const State *)kiln_state(self))->raw;
    return SIDES;
}

/* One side of a raw sample; a target that is absent is empty. */
static KilnStatus preprocess_side(const State *state, int side, const KilnRawValue *value,
                                  KilnSample *sample, KilnError *err)
{
    const char *text = value->type != 0 ? value->text : "";
    const KilnString string = { text, strlen(text) };
    int32_t *ids = sample->data[side];
    int64_t n = 0;
    KilnStatus status = KILN_OK;

    if (value->type != 0 && kiln_text_is_blank(string))
        return kiln_error_set(err, KILN_E_MISSING, "the text (\"%s\") is empty",
                              state->raw[side].name);
    if (value->type != 0)
        status = kiln_text_encode_one(&state->encode[side], string, NULL, ids, &n, err);
    if (status < 0)
        return status;
    sample->lengths[side] = add_ends(state, side, ids, n, ids);
    char **copy = sample->data[SOURCE_TEXT + side];
    if (copy == NULL || value->type == 0)
        return KILN_OK;
    *copy = strdup(text);
    return *copy != NULL ? KILN_OK : kiln_error_nomem(err, string.length);
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    for (int side = 0; side < SIDES && status >= 0; side++)
        status = preprocess_side(state, side, &values[side], sample, err);
    return status;
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnStatus status = kiln_text_tokenizer_save(opts->tokenizer, dir, file_names[SOURCE], err);

    return status < 0 || opts->target_tokenizer == NULL
               ? status
               : kiln_text_tokenizer_save(opts->target_tokenizer, dir, file_names[TARGET], err);
}

static const KilnInstance *tokenizer(const KilnInstance *self)
{
    return tokenizer_of(kiln_opts(self), TARGET);
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
    kiln_text_data_left_out(((const State *)kiln_state(self))->data, add, ctx);
}

static void files(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx)
{
    kiln_text_data_files(((const State *)kiln_state(self))->data, add, ctx);
}

static const KilnTensorSpec declared[] = {
    { .name = "source", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    { .name = "target", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
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
    .files = files,
    .tokenizer = tokenizer,
};

const KilnComponent kiln_datamodule_parallel_text = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "parallel_text",
    .summary = "Texts and their translations, in parallel files or columns",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_parallel_text, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
