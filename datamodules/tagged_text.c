/* Sentences with a tag per word, and maybe a class per sentence, in files: CoNLL columns, files
 * whose lines belong together, JSON lines, CSV, TSV. */
#include "kiln.h"
#include "kiln/array.h"
#include "kiln/tools/name_list.h"
#include "kiln/tools/tag_spans.h"
#include "kiln/tools/text_data.h"
#include "kiln/tools/text_words.h"

#include <stdlib.h>
#include <string.h>

typedef enum Unknown { UNKNOWN_ERROR, UNKNOWN_KEEP } Unknown;

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    KILN_TEXT_OPTIONS;
    KilnInstance *tokenizer, *characters, *splitter;
    char *text, *tags, *label;
    bool pieces;
    int64_t max_length, word_length, unknown;
} Opts;

static const KilnChoice unknowns[] = {
    { "error", UNKNOWN_ERROR },
    { "keep", UNKNOWN_KEEP },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "32"),
    KILN_LENGTH_FIELDS(Opts),
    KILN_TEXT_FIELDS(Opts),
    KILN_FIELD_COMPONENT(Opts, tokenizer, KILN_KIND_TOKENIZER,
                         "{_target_: tokenizer/words, split: white_space}",
                         "makes the ids of words; it is trained on the training split"),
    KILN_FIELD_BOOL(Opts, pieces, "false",
                    "a word may be several tokens, of which the first one gets its tag; false: a "
                    "word is one token"),
    KILN_FIELD_COMPONENT_OPT(Opts, characters, KILN_KIND_TOKENIZER, "null",
                             "makes ids of each word's characters, too (characters); null: none"),
    KILN_FIELD_I64(Opts, word_length, "16", 1, 1000, "characters per word; later ones are cut"),
    KILN_FIELD_COMPONENT_OPT(Opts, splitter, KILN_KIND_TOKENIZER, "null",
                             "its tokens are the words of raw text in predictions (words); null: "
                             "white space separates words"),
    KILN_FIELD_STR(Opts, text, "text",
                   "the column of the words: a list, or separated by white space; text: also the "
                   "first column of CoNLL files and the first of parallel files"),
    KILN_FIELD_STR(Opts, tags, "tags",
                   "the column of their tags, likewise; tags: also the last column of CoNLL files "
                   "and the second of parallel files"),
    KILN_FIELD_STR_OPT(Opts, label, "null",
                       "the column of the sentence's class (intent); null: there is none"),
    KILN_FIELD_ENUM(Opts, unknown, "error", unknowns,
                    "a tag or class in validation or test that training lacks. error: the row is "
                    "bad (on_error); keep: it counts as a mistake of the model"),
    KILN_FIELD_I64(Opts, max_length, "256", 1, 1e6,
                   "the most words, and tokens, of a sentence; a longer one is a bad row"),
    KILN_FIELD_END,
};

enum { TEXT_COLUMN, TAGS_COLUMN, LABEL_COLUMN, COLUMNS };
enum { TOKENS, FIRST_TOKENS, CHARACTERS, WORDS, TAGS, LABEL, TEXT, TRUE_TAGS, FEATURES };
static const char tags_file[] = "tags.txt", classes_file[] = "classes.txt";
static const KilnString unknown_name = { "<unknown>", 9 };

typedef struct State State;

/* The samples of a split. */
typedef struct Samples {
    State *state;
    KilnSplit split;
    KilnWordIds encoded;
    int32_t *tags; /* of all words */
    size_t tags_room;
    int32_t *labels; /* NULL: none */
    char place[512]; /* of the sample whose name was asked for last */
} Samples;

struct State {
    const Opts *opts;
    KilnTextData *data;
    KilnWordEncode encode;
    KilnNameList tags, classes;
    bool collects; /* tags and classes, from the training rows */
    Samples samples[KILN_SPLIT_COUNT];
    KilnFeature features[FEATURES];
    int at[FEATURES]; /* the number of each feature in the spec; -1: it is not there */
    size_t n_features;
    KilnTextBuckets buckets;
    KilnRawField raw;
    KilnWords words; /* of the row that is checked */
};

/* ---- Rows ----------------------------------------------------------------------------------- */

/* A name for a message: at most 64 bytes. */
static int shown(KilnString name)
{
    return name.length < 64 ? (int)name.length : 64;
}

/* Find a tag or class, or add it. `what`: "tag". */
static KilnStatus check_name(State *state, KilnNameList *list, KilnSplit split, const char *what,
                             KilnString name, KilnError *err)
{
    if (state->collects && split == KILN_TRAIN)
        return kiln_name_list_add(list, name, err);
    if (kiln_name_list_find(list, name) >= 0 ||
        (state->opts->unknown == UNKNOWN_KEEP && kiln_name_list_find(list, unknown_name) >= 0))
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_KEY,
        "the %s \"%.*s\" is not among the %zu of the training files; unknown=keep "
        "at training counts it as a mistake of the model",
        what, shown(name), name.data, list->n);
}

static KilnStatus check_tag(State *state, KilnSplit split, size_t i, KilnString tag, KilnError *err)
{
    KilnStatus status = kiln_words_check_tag(&state->words, i, tag, err);

    if (status < 0 || check_name(state, &state->tags, split, "tag", tag, err) >= 0)
        return status;
    const KilnString word = kiln_words_at(&state->words, i);
    return kiln_error_prefix(err, "word %zu \"%.*s\": ", i + 1, shown(word), word.data);
}

static KilnStatus check_label(State *state, KilnSplit split, KilnString list, KilnError *err)
{
    KilnString label, more;

    if (!kiln_record_next_item(&list, &label) || kiln_text_is_blank(label))
        return kiln_error_set(err, KILN_E_MISSING, "the class (column \"%s\") is empty",
                              state->opts->label);
    if (memchr(label.data, '\n', label.length) != NULL || kiln_record_next_item(&list, &more))
        return kiln_error_set(err, KILN_E_TYPE, "the column \"%s\" has several classes",
                              state->opts->label);
    return check_name(state, &state->classes, split, "class", label, err);
}

static KilnStatus check_row(void *ctx, KilnSplit split, const KilnRecord *record, KilnError *err)
{
    State *state = ctx;
    KilnString rest = record->fields[TAGS_COLUMN], tag;
    const bool list = kiln_value_is_list(rest);
    size_t n = 0;
    KilnStatus status = kiln_words_of_value(&state->words, record->fields[TEXT_COLUMN], err);

    if (status >= 0)
        status = kiln_words_check(&state->words, state->opts->max_length, err);
    for (; status >= 0 && kiln_value_next_item(&rest, list, &tag); n++)
        status = check_tag(state, split, n, tag, err);
    if (status >= 0 && n < state->words.n)
        status = kiln_error_set(err, KILN_E_FORMAT, "%zu words, but %zu tags", state->words.n, n);
    return status >= 0 && state->opts->label != NULL
               ? check_label(state, split, record->fields[LABEL_COLUMN], err)
               : status;
}

/* ---- Ids ------------------------------------------------------------------------------------ */

/* The number of a tag or class of a row that was checked. */
static int32_t number_of(const KilnNameList *list, KilnString name)
{
    const int64_t found = kiln_name_list_find(list, name);

    return (int32_t)(found >= 0 ? found : kiln_name_list_find(list, unknown_name));
}

/* Append a row that was checked, unless it is too long (KilnRowCheck). */
static KilnStatus append_row(void *ctx, KilnSplit split, const KilnRecord *record, KilnError *err)
{
    State *state = ctx;
    Samples *samples = &state->samples[split];
    const int64_t i = samples->encoded.n;
    int64_t word = samples->encoded.n_words;
    KilnString rest = record->fields[TAGS_COLUMN], name = { 0 };
    KilnStatus status = kiln_words_of_value(&state->words, record->fields[TEXT_COLUMN], err);

    if (status >= 0)
        status = kiln_word_ids_append(&samples->encoded, &state->encode, &state->words, err);
    if (status < 0)
        return status;
    if (!KILN_RESERVE(samples->tags, samples->tags_room, (size_t)samples->encoded.n_words))
        return kiln_error_nomem(err, (size_t)samples->encoded.n_words);
    for (const bool list = kiln_value_is_list(rest); kiln_value_next_item(&rest, list, &name);)
        samples->tags[word++] = number_of(&state->tags, name);
    if (samples->labels != NULL) {
        rest = record->fields[LABEL_COLUMN];
        (void)kiln_record_next_item(&rest, &name);
        samples->labels[i] = number_of(&state->classes, name);
    }
    return KILN_OK;
}

static KilnStatus prepare_samples(State *state, KilnSplit split, const KilnPoll *poll,
                                  KilnError *err)
{
    Samples *samples = &state->samples[split];
    const int64_t n = kiln_text_data_count(state->data, split);

    samples->state = state;
    samples->split = split;
    if (state->opts->label != NULL) {
        samples->labels = malloc((size_t)n * sizeof(*samples->labels) + 1);
        if (samples->labels == NULL)
            return kiln_error_nomem(err, (size_t)n * sizeof(*samples->labels));
    }
    return kiln_text_data_recheck(state->data, split, append_row, state, poll, err);
}

/* ---- Setup ---------------------------------------------------------------------------------- */

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    (void)err;
    state->opts = opts;
    state->raw =
        (KilnRawField) { .name = opts->text, .types = KILN_RAW_TEXT, .help = "a sentence" };
    state->encode = (KilnWordEncode) { .tokenizer = opts->tokenizer,
                                       .characters = opts->characters,
                                       .pieces = opts->pieces,
                                       .max_length = opts->max_length,
                                       .word_length = opts->word_length };
    kiln_text_buckets_init(&state->buckets, opts->max_length);
    return KILN_OK;
}

/* The names of tags and classes: those of a checkpoint, or of the training rows. */
static KilnStatus prepare_names(State *state, const char *fitted, KilnError *err)
{
    KilnNameList *const lists[] = { &state->tags, &state->classes };
    const char *const files[] = { tags_file, classes_file };
    const size_t n = state->opts->label != NULL ? 2 : 1;
    KilnStatus status = KILN_OK;

    state->collects = fitted == NULL;
    for (size_t i = 0; i < n && status >= 0; i++) {
        lists[i]->sorted = fitted == NULL;
        if (fitted != NULL)
            status = kiln_name_list_read(lists[i], fitted, files[i], err);
        else if (state->opts->unknown == UNKNOWN_KEEP)
            status = kiln_name_list_add(lists[i], unknown_name, err);
    }
    return status;
}

static bool have_usual_names(const Opts *opts)
{
    return strcmp(opts->text, "text") == 0 && strcmp(opts->tags, "tags") == 0 &&
           (opts->label == NULL || strcmp(opts->label, "label") == 0);
}

static KilnStatus open_data(State *state, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = state->opts;
    KilnTextSource source = KILN_TEXT_SOURCE(opts);
    const char *const columns[COLUMNS] = { opts->text, opts->tags, opts->label };
    const char *const options[COLUMNS] = { "text", "tags", "label" };
    const KilnTextWanted wanted = { .columns = columns,
                                    .options = options,
                                    .n_columns = opts->label != NULL ? COLUMNS : LABEL_COLUMN,
                                    .check = check_row,
                                    .ctx = state,
                                    .in_order = have_usual_names(opts) };

    source.fallback = KILN_RECORDS_CONLL;
    const KilnStatus status = kiln_text_data_open(&source, &wanted, context, &state->data, err);
    if (status == KILN_E_KEY && err != NULL && strncmp(err->text, "label: ", 7) == 0) {
        const KilnError why = *err;

        return kiln_error_set(err, status, "%s; label=null if sentences have no class", why.text);
    }
    return status;
}

/* The tokenizers by file; an absent one has none. */
typedef struct Tokenizer {
    const char *file;
    KilnInstance *tokenizer;
} Tokenizer;

enum { TOKENIZERS = 3 };

static void list_tokenizers(const Opts *opts, Tokenizer ret[TOKENIZERS])
{
    ret[0] = (Tokenizer) { "tokenizer.json", opts->tokenizer };
    ret[1] = (Tokenizer) { "characters.json", opts->characters };
    ret[2] = (Tokenizer) { "splitter.json", opts->splitter };
}

/* List the features that samples have. */
static void describe(State *state)
{
    const Opts *opts = state->opts;
    const KilnFeature all[FEATURES] = {
        [TOKENS] = kiln_word_ids_feature(&state->encode, KILN_WORD_TOKENS),
        [FIRST_TOKENS] = kiln_word_ids_feature(&state->encode, KILN_WORD_FIRST_TOKENS),
        [CHARACTERS] = kiln_word_ids_feature(&state->encode, KILN_WORD_CHARACTERS),
        [WORDS] = kiln_word_ids_feature(&state->encode, KILN_WORD_SPANS),
        [TAGS] = { .name = "tags",
                   .content = KILN_LABEL,
                   .dtype = KILN_I32,
                   .shape = KILN_SHAPE(opts->max_length),
                   .varies = true,
                   .n_ids = (int64_t)state->tags.n,
                   .id_names = (const char *const *)state->tags.names },
        [LABEL] = { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
        [TEXT] = { .name = "text", .content = KILN_TEXT },
        [TRUE_TAGS] = { .name = "true_tags", .content = KILN_TEXT },
    };
    const bool there[FEATURES] = { [TOKENS] = true,
                                   [FIRST_TOKENS] = opts->pieces,
                                   [CHARACTERS] = opts->characters != NULL,
                                   [WORDS] = true,
                                   [TAGS] = true,
                                   [LABEL] = opts->label != NULL,
                                   [TEXT] = true,
                                   [TRUE_TAGS] = true };

    state->n_features = 0;
    for (int f = 0; f < FEATURES; f++) {
        state->at[f] = there[f] ? (int)state->n_features : -1;
        if (there[f])
            state->features[state->n_features++] = all[f];
    }
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    static const size_t texts[] = { TEXT_COLUMN };
    State *state = kiln_state(self);
    Tokenizer tokenizers[TOKENIZERS];
    KilnStatus status = prepare_names(state, context->fitted, err);

    if (status >= 0)
        status = open_data(state, context, err);
    list_tokenizers(state->opts, tokenizers);
    for (size_t i = 0; i < TOKENIZERS && status >= 0; i++)
        if (tokenizers[i].tokenizer != NULL)
            status = kiln_text_tokenizer_prepare(tokenizers[i].tokenizer, tokenizers[i].file,
                                                 state->data, texts, 1, context, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++)
        status = prepare_samples(state, (KilnSplit)split, context->poll, err);
    if (status >= 0)
        describe(state);
    return status;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    *ret = (KilnDataSpec) { .features = state->features,
                            .n_features = state->n_features,
                            .n_classes = (int64_t)state->classes.n,
                            .class_names = (const char *const *)state->classes.names };
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        kiln_word_ids_release(&state->samples[split].encoded);
        free(state->samples[split].tags);
        free(state->samples[split].labels);
    }
    kiln_name_list_release(&state->tags);
    kiln_name_list_release(&state->classes);
    kiln_words_release(&state->words);
    kiln_text_data_free(state->data);
}

/* ---- Samples -------------------------------------------------------------------------------- */

/* Where feature f of a sample is to be written; NULL: nowhere. */
static void *place_of(const State *state, const KilnSample *sample, int f)
{
    return state->at[f] >= 0 ? sample->data[state->at[f]] : NULL;
}

static void set_length(const State *state, int64_t *lengths, int f, int64_t length)
{
    if (state->at[f] >= 0)
        lengths[state->at[f]] = length;
}

static void set_lengths(const State *state, const KilnWordIds *encoded, int64_t i, int64_t *ret)
{
    const int64_t words = encoded->first_word[i + 1] - encoded->first_word[i];

    set_length(state, ret, TOKENS, encoded->first_token[i + 1] - encoded->first_token[i]);
    set_length(state, ret, FIRST_TOKENS, words);
    set_length(state, ret, CHARACTERS, words);
    set_length(state, ret, WORDS, words);
    set_length(state, ret, TAGS, words);
}

/* Write what sentence i and a user's sentence have in common. */
static void put_sentence(const State *state, const KilnWordIds *encoded, int64_t i,
                         const KilnSample *sample)
{
    kiln_word_ids_write(encoded, &state->encode, i,
                        &(KilnWordFeatures) {
                            .tokens = place_of(state, sample, TOKENS),
                            .first_tokens = place_of(state, sample, FIRST_TOKENS),
                            .characters = place_of(state, sample, CHARACTERS),
                            .spans = place_of(state, sample, WORDS),
                        });
}

/* Write the text and its tags as they are in the file. */
static KilnStatus put_texts(const Samples *samples, int64_t index, char **text, char **tags,
                            KilnError *err)
{
    KilnRecord record = { 0 };
    KilnStatus status = kiln_text_data_read(samples->state->data, samples->split, index, &record,
                                            err);

    if (status >= 0 && text != NULL)
        status = kiln_words_text_of_value(record.fields[TEXT_COLUMN], text, err);
    if (status >= 0 && tags != NULL)
        status = kiln_words_text_of_value(record.fields[TAGS_COLUMN], tags, err);
    kiln_record_release(&record);
    return status;
}

static KilnStatus get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample, KilnError *err)
{
    const Samples *samples = ctx;
    const State *state = samples->state;
    const int64_t first = samples->encoded.first_word[index];
    const int64_t n = samples->encoded.first_word[index + 1] - first;
    char **text = place_of(state, sample, TEXT), **true_tags = place_of(state, sample, TRUE_TAGS);
    int32_t *tags = place_of(state, sample, TAGS), *label = place_of(state, sample, LABEL);

    (void)rng;
    put_sentence(state, &samples->encoded, index, sample);
    if (tags != NULL)
        memcpy(tags, samples->tags + first, (size_t)n * sizeof(*tags));
    if (label != NULL)
        *label = samples->labels[index];
    return text != NULL || true_tags != NULL ? put_texts(samples, index, text, true_tags, err)
                                             : KILN_OK;
}

static int64_t label(void *ctx, int64_t index)
{
    const Samples *samples = ctx;

    return samples->labels != NULL ? samples->labels[index] : -1;
}

static void lengths(void *ctx, int64_t index, int64_t *ret)
{
    const Samples *samples = ctx;

    set_lengths(samples->state, &samples->encoded, index, ret);
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
    static const char *const texts[] = { "text", "true_tags", NULL };
    State *state = kiln_state(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) { .count = state->samples[split].encoded.n,
                           .ctx = &state->samples[split],
                           .get = get,
                           .name = name,
                           .label = label,
                           .lengths = lengths,
                           .absent = split == KILN_TRAIN ? texts : NULL };
    return KILN_OK;
}

/* ---- Texts of a user ------------------------------------------------------------------------ */

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    *ret = &((const State *)kiln_state(self))->raw;
    return 1;
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    const State *state = kiln_state(self);
    const KilnString text = { values[0].text, strlen(values[0].text) };
    char **copy = place_of(state, sample, TEXT);
    KilnWordIds encoded = { 0 };
    KilnWords words = { 0 };
    KilnStatus status = kiln_words_of_text(&words, state->opts->splitter, text, err);

    if (status >= 0)
        status = kiln_words_check(&words, state->opts->max_length, err);
    if (status >= 0)
        status = kiln_word_ids_append(&encoded, &state->encode, &words, err);
    if (status >= 0) {
        put_sentence(state, &encoded, 0, sample);
        set_lengths(state, &encoded, 0, sample->lengths);
    }
    if (status >= 0 && copy != NULL && (*copy = strdup(values[0].text)) == NULL)
        status = kiln_error_nomem(err, text.length);
    kiln_words_release(&words);
    kiln_word_ids_release(&encoded);
    return status;
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    const State *state = kiln_state(self);
    Tokenizer tokenizers[TOKENIZERS];
    KilnStatus status = kiln_name_list_write(&state->tags, dir, tags_file, err);

    if (status >= 0 && state->opts->label != NULL)
        status = kiln_name_list_write(&state->classes, dir, classes_file, err);
    list_tokenizers(state->opts, tokenizers);
    for (size_t i = 0; i < TOKENIZERS && status >= 0; i++)
        if (tokenizers[i].tokenizer != NULL)
            status = kiln_text_tokenizer_save(tokenizers[i].tokenizer, dir, tokenizers[i].file,
                                              err);
    return status;
}

/* ---- Checks and reports --------------------------------------------------------------------- */

static KilnStatus check_data(KilnInstance *self, const KilnPoll *poll,
                             void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx,
                             KilnError *err)
{
    const State *state = kiln_state(self);

    return kiln_text_data_check_tags(state->data, TEXT_COLUMN, TAGS_COLUMN, poll, add, ctx, err);
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

static const KilnTensorSpec declared[] = {
    { .name = "tokens", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time", .varies = true },
    { .name = "tags", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "time", .varies = true },
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
    .check = check_data,
};

const KilnComponent kiln_datamodule_tagged_text = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "tagged_text",
    .summary = "Sentences with a tag per word in CoNLL columns, parallel files, JSON lines",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .init = init,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_tagged_text, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
