/* Text files for language models: one long stream of tokens, of which a sample is a block. */
#include "kiln.h"
#include "kiln/tools/token_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum Documents { DOCUMENTS_FILE, DOCUMENTS_LINE } Documents;
typedef enum Blocks { BLOCKS_RANDOM, BLOCKS_CONSECUTIVE } Blocks;

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KilnInstance *tokenizer;
    char **files, **val_files, **test_files;
    size_t files_count, val_files_count, test_files_count;
    double val_share;
    int64_t context, documents, blocks;
    bool document_mask;
    char *cache;
} Opts;

static const KilnChoice documents[] = {
    { "file", DOCUMENTS_FILE },
    { "line", DOCUMENTS_LINE },
    { NULL, 0 },
};
static const KilnChoice blocks[] = {
    { "random", BLOCKS_RANDOM },
    { "consecutive", BLOCKS_CONSECUTIVE },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "12"),
    KILN_FIELD_COMPONENT(Opts, tokenizer, KILN_KIND_TOKENIZER, "bytes",
                         "what makes tokens of text; it is trained on the training part"),
    KILN_FIELD_PATH_LIST(
        Opts, files, "[]",
        "text files in UTF-8, read in this order; at least one. Files that end in .gz "
        "or .zst are unpacked to a temporary file ($TMPDIR)"),
    KILN_FIELD_PATH_LIST(Opts, val_files, "[]",
                         "files for validation; none: the end of `files` (val_share)"),
    KILN_FIELD_PATH_LIST(Opts, test_files, "[]", "files for the test"),
    KILN_FIELD_F64(Opts, val_share, "0.1", 0.0, 0.9,
                   "share of the text, at its end, that is held out for validation"),
    KILN_FIELD_I64(Opts, context, "64", 1, 1e7,
                   "tokens that the model reads; a block has one more, the last to predict"),
    KILN_FIELD_ENUM(Opts, documents, "file", documents,
                    "what is a document: a file, or each line that is not empty. The tokenizer's "
                    "end of a text follows each, if it has one"),
    KILN_FIELD_BOOL(Opts, document_mask, "false",
                    "each document of a block by itself: a token attends to its own document "
                    "alone, positions begin at 0 in each, and no first token of a document is "
                    "predicted"),
    KILN_FIELD_ENUM(Opts, blocks, "random", blocks,
                    "blocks of a training epoch: from random places, as many as fit into the "
                    "stream; or consecutive. Those of validation and test are consecutive, and "
                    "the rest at the end is left out"),
    KILN_FIELD_OUTPUT_OPT(Opts, cache, "null",
                          "folder that keeps the tokens for later runs and for texts larger than "
                          "memory; null: they are kept in memory"),
    KILN_FIELD_END,
};

enum { TOKENS, POSITIONS, FEATURES };

static const char tokenizer_file[] = "tokenizer.json"; /* in a checkpoint */

typedef struct State {
    const Opts *opts;
    KilnTextPart *parts[KILN_SPLIT_COUNT];
    size_t n_parts[KILN_SPLIT_COUNT];
    KilnTokenStream *streams[KILN_SPLIT_COUNT]; /* NULL: not needed yet, or no text */
    KilnFeature features[FEATURES];
    bool draws; /* training blocks are random */
    const KilnPoll *poll;
    /* What the datasets point to. */
    struct Set {
        const struct State *state;
        const KilnTokenStream *stream;
        bool random;
    } sets[KILN_SPLIT_COUNT];
} State;

/* ---- Setup ----------------------------------------------------------------------------------- */

/* All of the files as the parts of a split. */
static KilnStatus take_files(State *state, KilnSplit split, char *const *files, size_t n,
                             KilnError *err)
{
    KilnTextPart none[1];
    size_t n_none;

    return n == 0 ? KILN_OK
                  : kiln_text_parts_split(files, n, 0.0, false, state->parts[split],
                                          &state->n_parts[split], none, &n_none, err);
}

static KilnStatus find_parts(State *state, KilnError *err)
{
    const Opts *opts = state->opts;
    const size_t counts[KILN_SPLIT_COUNT] = {
        [KILN_TRAIN] = opts->files_count,
        [KILN_VAL] = opts->files_count + opts->val_files_count,
        [KILN_TEST] = opts->test_files_count,
    };
    KilnStatus status;

    for (int i = 0; i < KILN_SPLIT_COUNT; i++) {
        state->parts[i] = calloc(counts[i] + 1, sizeof(*state->parts[i]));
        if (state->parts[i] == NULL)
            return kiln_error_nomem(err, counts[i] * sizeof(*state->parts[i]));
    }
    if (opts->files_count == 0)
        return kiln_error_set(err, KILN_E_MISSING, "files: expected at least one text file");
    status = kiln_text_parts_split(
        opts->files, opts->files_count, opts->val_files_count > 0 ? 0.0 : opts->val_share,
        opts->documents == DOCUMENTS_LINE, state->parts[KILN_TRAIN], &state->n_parts[KILN_TRAIN],
        state->parts[KILN_VAL], &state->n_parts[KILN_VAL], err);
    if (status >= 0 && state->n_parts[KILN_TRAIN] == 0)
        status = kiln_error_set(err, KILN_E_MISSING, "%s%s no text", opts->files[0],
                                opts->files_count > 1 ? " and the other files have" : " has");
    if (status < 0)
        kiln_error_prefix(err, "files: ");
    if (status >= 0) {
        status = take_files(state, KILN_VAL, opts->val_files, opts->val_files_count, err);
        if (status < 0)
            kiln_error_prefix(err, "val_files: ");
    }
    if (status >= 0) {
        status = take_files(state, KILN_TEST, opts->test_files, opts->test_files_count, err);
        if (status < 0)
            kiln_error_prefix(err, "test_files: ");
    }
    return status;
}

/* The tokenizer: from the checkpoint, already open (pretrained), or trained now. */
static KilnStatus prepare_tokenizer(State *state, const KilnDataContext *context, KilnError *err)
{
    KilnInstance *tokenizer = state->opts->tokenizer;
    char path[4096];

    if (context->fitted != NULL) {
        snprintf(path, sizeof(path), "%s/%s", context->fitted, tokenizer_file);
        return kiln_tokenizer_open(tokenizer, path, err);
    }
    if (context->stage == KILN_STAGE_PREDICT)
        return kiln_error_set(err, KILN_E_MISSING, "the checkpoint has no tokenizer; train again");
    return kiln_text_parts_train(state->parts[KILN_TRAIN], state->n_parts[KILN_TRAIN], tokenizer,
                                 context->poll, err);
}

static KilnStatus open_stream(State *state, KilnSplit split, KilnError *err)
{
    const Opts *opts = state->opts;
    const KilnTokenStreamSpec spec = {
        .tokenizer = opts->tokenizer,
        .parts = state->parts[split],
        .n_parts = state->n_parts[split],
        .lines = opts->documents == DOCUMENTS_LINE,
        .cache = opts->cache,
        .name = kiln_split_name(split),
        .poll = state->poll,
    };

    if (state->streams[split] != NULL || state->n_parts[split] == 0)
        return KILN_OK;
    KilnStatus status = kiln_token_stream_open(&spec, &state->streams[split], err);
    if (status < 0)
        return status;
    const int64_t count = kiln_token_stream_count(state->streams[split]);
    if (count <= opts->context)
        return kiln_error_set(err, KILN_E_RANGE,
                              "context: a block has %lld tokens, but the text for %s has %lld; "
                              "give more text or a shorter context",
                              (long long)opts->context + 1, kiln_split_name(split),
                              (long long)count);
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    state->opts = kiln_opts(self);
    state->poll = context->poll;
    state->draws = context->stage == KILN_STAGE_FIT && state->opts->blocks == BLOCKS_RANDOM;
    if (context->stage != KILN_STAGE_PREDICT)
        status = find_parts(state, err);
    if (status >= 0)
        status = prepare_tokenizer(state, context, err);
    if (status >= 0 && context->stage == KILN_STAGE_FIT)
        status = open_stream(state, KILN_TRAIN, err);
    if (status >= 0 && (context->stage == KILN_STAGE_FIT || context->stage == KILN_STAGE_VALIDATE))
        status = open_stream(state, KILN_VAL, err);
    return status;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int i = 0; i < KILN_SPLIT_COUNT; i++) {
        kiln_token_stream_close(state->streams[i]);
        free(state->parts[i]);
    }
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", dir, tokenizer_file);
    return kiln_tokenizer_save(opts->tokenizer, path, err);
}

static const KilnInstance *tokenizer_of(const KilnInstance *self)
{
    const Opts *opts = kiln_opts(self);

    return opts->tokenizer;
}

/* ---- Samples --------------------------------------------------------------------------------- */

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const int64_t pad = kiln_tokenizer_special(opts->tokenizer, KILN_TOKEN_PAD);

    (void)err;
    state->features[TOKENS] = (KilnFeature) {
        .name = "tokens",
        .content = KILN_TOKENS,
        .dtype = KILN_I32,
        .shape = KILN_SHAPE(opts->context + 1),
        .varies = true,
        .pad = pad >= 0 ? (double)pad : 0.0,
        .n_ids = kiln_tokenizer_size(opts->tokenizer),
    };
    state->features[POSITIONS] = (KilnFeature) {
        .name = "positions",
        .content = KILN_TOKENS,
        .dtype = KILN_I32,
        .shape = KILN_SHAPE(opts->context + 1),
        .varies = true,
    };
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = opts->document_mask ? FEATURES : POSITIONS };
    return KILN_OK;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const struct Set *set = ctx;
    const int64_t context = set->state->opts->context;
    int64_t from = index * context;

    (void)err;
    if (set->random) {
        const uint64_t places = (uint64_t)(kiln_token_stream_count(set->stream) - context);
        const uint64_t high = kiln_rng_u32(rng);

        from = (int64_t)((high << 32 | kiln_rng_u32(rng)) % places);
    }
    kiln_token_stream_read(set->stream, from, context + 1, sample->data[TOKENS]);
    if (set->state->opts->document_mask)
        kiln_token_stream_positions(set->stream, from, context + 1, sample->data[POSITIONS]);
    return KILN_OK;
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    const struct Set *set = ctx;

    (void)index;
    ret[TOKENS] = set->state->opts->context + 1;
    if (set->state->opts->document_mask)
        ret[POSITIONS] = ret[TOKENS];
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t number, KilnDataset *ret,
                          KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = open_stream(state, split, err);
    struct Set *set = &state->sets[split];
    int64_t count = 0;

    (void)number;
    if (status < 0)
        return status;
    *set = (struct Set) { .state = state,
                          .stream = state->streams[split],
                          .random = split == KILN_TRAIN && state->draws };
    if (set->stream != NULL)
        count = (kiln_token_stream_count(set->stream) - 1) / state->opts->context;
    *ret = (KilnDataset) { .count = count, .ctx = set, .get = get, .lengths = lengths };
    return KILN_OK;
}

/* ---- Texts of a user ------------------------------------------------------------------------- */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    static const KilnRawField field = { .name = "text",
                                        .types = KILN_RAW_TEXT,
                                        .help = "a text of at least 2 tokens" };

    (void)self;
    *ret = &field;
    return 1;
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnTokenizerInput input = { .text = { values[0].text, strlen(values[0].text) } };
    const int64_t most = opts->context + 1;
    KilnEncoding encoding = { 0 };
    KilnStatus status = kiln_tokenizer_encode(opts->tokenizer, &input, &encoding, err);
    const int64_t n = (int64_t)encoding.n;

    if (status >= 0 && (n < 2 || n > most))
        status = kiln_error_set(err, KILN_E_RANGE,
                                "the text has %lld tokens; expected 2 to %lld (datamodule.context "
                                "and one more)",
                                (long long)n, (long long)most);
    if (status >= 0) {
        memcpy(sample->data[TOKENS], encoding.ids, encoding.n * sizeof(*encoding.ids));
        sample->lengths[TOKENS] = n;
    }
    if (status >= 0 && opts->document_mask) {
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)sample->data[POSITIONS])[i] = (int32_t)i;
        sample->lengths[POSITIONS] = n;
    }
    kiln_encoding_release(&encoding);
    return status;
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static const KilnTensorSpec features[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    { .name = "positions",
      .content = KILN_TOKENS,
      .dtype = KILN_I32,
      .axes = "time",
      .varies = true,
      .optional = true },
};

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = features,
    .n_features = KILN_COUNT(features),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .save_preprocessing = save_preprocessing,
    .tokenizer = tokenizer_of,
    .loading = loading,
};

const KilnComponent kiln_datamodule_text_blocks = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "text_blocks",
    .summary = "Text files as a stream of tokens in blocks, for language models",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_text_blocks, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
