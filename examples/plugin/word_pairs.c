/* A plugin with two inputs of their own lengths: a datamodule whose samples are two texts, a model
 * that reads both, and a task that says whether the second text is the longer one. The words that
 * the datamodule meets in the training texts become its vocabulary, which is saved with every
 * checkpoint, so `kiln predict RUN pairs.jsonl` numbers the words of a user's texts as training
 * did. */
#include <stdio.h>
#include <string.h>

#include "kiln.h"

enum { MOST_SOURCE = 12, MOST_TARGET = 9, CLASSES = 2 };

/* ---- The data ------------------------------------------------------------------------ */

enum { PADDING, UNKNOWN, FIRST_WORD }; /* ids */
enum { MOST_WORDS = 64, WORD = 16, TEXT = MOST_SOURCE * WORD };

typedef struct DataOpts {
    KILN_LOADING_OPTIONS;
    KILN_LENGTH_OPTIONS;
    int64_t count, draw;
} DataOpts;

static const KilnField data_fields[] = {
    KILN_LOADING_FIELDS(DataOpts, "32"),
    KILN_LENGTH_FIELDS(DataOpts),
    KILN_FIELD_I64(DataOpts, count, "1024", 1, 1e9, "training pairs; a quarter for validation"),
    KILN_FIELD_I64(DataOpts, draw, "2", 0, 1e9, "another number draws other texts"),
    KILN_FIELD_END,
};

static const KilnRawField texts[] = {
    { .name = "source", .types = KILN_RAW_TEXT, .help = "1 to 12 words" },
    { .name = "target", .types = KILN_RAW_TEXT, .help = "1 to 9 words" },
};
static const int64_t most[] = { MOST_SOURCE, MOST_TARGET };

typedef struct DataState {
    const DataOpts *opts;
    char words[MOST_WORDS][WORD]; /* the vocabulary: word i has the id FIRST_WORD + i */
    int64_t n_words;
    KilnFeature features[3];
} DataState;

/* Lengths are drawn from the sample's number, so that batches can be made without reading it. */
static void data_lengths(void *ctx, int64_t index, int64_t *ret)
{
    KilnRng rng;

    (void)ctx;
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, (uint64_t)index);
    for (size_t f = 0; f < 2; f++)
        ret[f] = 1 + (int64_t)(kiln_rng_u32(&rng) % (uint32_t)most[f]);
}

/* Write the texts of a sample. */
static void draw_texts(const DataState *state, int64_t index, char ret[2][TEXT])
{
    static const char *const trees[] = {
        "alder", "apple",  "ash",   "aspen", "beech",  "birch", "cedar", "cherry", "elm",    "fig",
        "fir",   "laurel", "maple", "oak",   "orange", "pear",  "pine",  "plum",   "willow",
    };
    int64_t lengths[2];
    KilnRng rng;

    data_lengths(NULL, index, lengths);
    kiln_rng_init(&rng, (uint64_t)state->opts->draw, KILN_RNG_USER, 0, (uint64_t)index);
    for (size_t f = 0; f < 2; f++) {
        int n = 0;

        for (int64_t i = 0; i < lengths[f]; i++)
            n += snprintf(ret[f] + n, (size_t)(TEXT - n), "%s%s", i > 0 ? " " : "",
                          trees[kiln_rng_below(&rng, (uint32_t)KILN_COUNT(trees))]);
    }
}

/* ---- From texts to ids ---- */

/* The next word of *text, and advances it; false: there is none. Long words are cut. */
static bool next_word(const char **text, char ret[WORD])
{
    const char *word = *text + strspn(*text, " ");
    const size_t length = strcspn(word, " ");

    *text = word + length;
    snprintf(ret, WORD, "%.*s", (int)(length < WORD ? length : WORD), word);
    return length > 0;
}

static int32_t id_of(const DataState *state, const char *word)
{
    for (int64_t i = 0; i < state->n_words; i++)
        if (strcmp(state->words[i], word) == 0)
            return (int32_t)(FIRST_WORD + i);
    return UNKNOWN;
}

static KilnStatus encode(const DataState *state, const char *text, size_t f, KilnSample *sample,
                         KilnError *err)
{
    char word[WORD];
    int64_t n = 0;

    for (; next_word(&text, word); n++)
        if (n < most[f])
            ((int32_t *)sample->data[f])[n] = id_of(state, word);
    if (n < 1 || n > most[f])
        return kiln_error_set(err, KILN_E_RANGE, "%s has %lld words; expected %s", texts[f].name,
                              (long long)n, texts[f].help);
    sample->lengths[f] = n;
    return KILN_OK;
}

static size_t data_raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    (void)self;
    *ret = texts;
    return KILN_COUNT(texts);
}

static KilnStatus data_preprocess(KilnInstance *self, const KilnRawValue *values,
                                  KilnSample *sample, KilnError *err)
{
    const DataState *state = kiln_state(self);
    KilnStatus status = encode(state, values[0].text, 0, sample, err);

    return status >= 0 ? encode(state, values[1].text, 1, sample, err) : status;
}

/* ---- The vocabulary ---- */

static bool add_words(DataState *state, const char *text)
{
    char word[WORD];

    while (next_word(&text, word)) {
        if (id_of(state, word) != UNKNOWN)
            continue;
        if (state->n_words == MOST_WORDS)
            return false;
        memcpy(state->words[state->n_words++], word, WORD);
    }
    return true;
}

static KilnStatus read_vocabulary(DataState *state, const char *folder, KilnError *err)
{
    char path[4096], line[WORD + 1];
    bool good = true;

    snprintf(path, sizeof(path), "%s/vocabulary.txt", folder);
    FILE *file = kiln_file_open(path, "r");
    if (file == NULL)
        return kiln_error_errno(err, path);
    while (good && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        good = add_words(state, line);
    }
    fclose(file);
    return good ? KILN_OK
                : kiln_error_set(err, KILN_E_FORMAT, "%s: has more than %d words", path,
                                 (int)MOST_WORDS);
}

static KilnStatus data_save(KilnInstance *self, const char *dir, KilnError *err)
{
    const DataState *state = kiln_state(self);
    char path[4096];
    bool good = true;

    snprintf(path, sizeof(path), "%s/vocabulary.txt", dir);
    FILE *file = kiln_file_open(path, "w");
    for (int64_t i = 0; i < state->n_words && file != NULL; i++)
        good = fprintf(file, "%s\n", state->words[i]) > 0 && good;
    good = file != NULL && fclose(file) == 0 && good;
    return good ? KILN_OK : kiln_error_errno(err, path);
}

static KilnStatus data_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    DataState *state = kiln_state(self);

    state->opts = kiln_opts(self);
    if (context->fitted != NULL)
        return read_vocabulary(state, context->fitted, err);
    if (context->stage == KILN_STAGE_PREDICT)
        return kiln_error_set(err, KILN_E_MISSING, "the checkpoint has no vocabulary; train again");
    for (int64_t i = 0; i < state->opts->count; i++) {
        char drawn[2][TEXT];

        draw_texts(state, i, drawn);
        for (size_t f = 0; f < 2; f++)
            if (!add_words(state, drawn[f]))
                return kiln_error_set(err, KILN_E_RANGE, "the texts have more than %d words",
                                      (int)MOST_WORDS);
    }
    return KILN_OK;
}

/* ---- Samples ---- */

static KilnStatus data_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const char *const names[] = { "source", "target" };
    DataState *state = kiln_state(self);

    (void)err;
    for (size_t f = 0; f < 2; f++)
        state->features[f] = (KilnFeature) {
            .name = texts[f].name,
            .content = KILN_TOKENS,
            .dtype = KILN_I32,
            .shape = KILN_SHAPE(most[f]),
            .varies = true,
            .pad = PADDING,
            .n_ids = FIRST_WORD + state->n_words,
        };
    state->features[2] =
        (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
    *ret = (KilnDataSpec) {
        .features = state->features,
        .n_features = KILN_COUNT(state->features),
        .n_classes = CLASSES,
        .class_names = names,
    };
    return KILN_OK;
}

static KilnStatus data_get(void *ctx, int64_t index, KilnRng *augment, KilnSample *sample,
                           KilnError *err)
{
    const DataState *state = ctx;
    char drawn[2][TEXT];
    KilnStatus status;

    (void)augment;
    draw_texts(state, index, drawn);
    status = encode(state, drawn[0], 0, sample, err);
    if (status >= 0)
        status = encode(state, drawn[1], 1, sample, err);
    *(int32_t *)sample->data[2] = sample->lengths[1] > sample->lengths[0];
    return status;
}

static KilnStatus data_set(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                           KilnError *err)
{
    const DataOpts *opts = kiln_opts(self);

    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = split == KILN_TRAIN ? opts->count : (opts->count + 3) / 4,
        .ctx = kiln_state(self),
        .get = data_get,
        .lengths = data_lengths,
    };
    return KILN_OK;
}

static void data_loading(const KilnInstance *self, KilnLoading *ret)
{
    const DataOpts *opts = kiln_opts(self);

    *ret = KILN_LENGTH_LOADING(opts);
}

static const KilnDataModuleOps data_ops = {
    .setup = data_setup,
    .spec = data_spec,
    .dataset = data_set,
    .raw_fields = data_raw_fields,
    .preprocess = data_preprocess,
    .save_preprocessing = data_save,
    .loading = data_loading,
};

static const KilnComponent word_pairs = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "word_pairs",
    .summary = "Pairs of texts of different lengths",
    KILN_FIELDS(data_fields),
    .opts_size = sizeof(DataOpts),
    .state_size = sizeof(DataState),
    .ops.datamodule = &data_ops,
};

/* ---- The model ----------------------------------------------------------------------- */

typedef struct ModelOpts {
    int64_t width;
} ModelOpts;

static const KilnField model_fields[] = {
    KILN_FIELD_I64(ModelOpts, width, "16", 1, 4096, "size of words and of each list's state"),
    KILN_FIELD_END,
};

typedef struct ModelState {
    KilnEmbedding words; /* of both lists */
    KilnRecurrentLayer encoders[2];
    KilnLinear head;
} ModelState;

static const KilnTensorSpec takes[] = {
    { .name = "source", .content = KILN_TOKENS, .dtype = KILN_I32, .varies = true },
    { .name = "target", .content = KILN_TOKENS, .dtype = KILN_I32, .varies = true },
};
static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};
static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

static KilnStatus model_setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                              KilnError *err)
{
    const int64_t width = ((const ModelOpts *)kiln_opts(self))->width;
    const KilnRecurrentSpec spec = {
        .in = width, .hidden = width, .layers = 1, .batch_first = true
    };
    ModelState *state = kiln_state(self);
    KilnStatus status = kiln_nn_embedding_init(&state->words, scope, "words", io->inputs[0].n_ids,
                                               width, 0, err);

    for (size_t i = 0; i < 2 && status >= 0; i++)
        status = kiln_nn_gru_init(&state->encoders[i], scope, takes[i].name, spec, err);
    if (status < 0)
        return status;
    return kiln_nn_linear_init(&state->head, scope, "head", 2 * width, io->outputs[0].shape.dim[0],
                               true, err);
}

static void model_forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                          KilnModelValue *outputs)
{
    const ModelState *state = kiln_state(self);
    KilnTensor *ends[2];

    (void)step;
    for (size_t i = 0; i < 2; i++) {
        const KilnRecurrentStart start = { .lengths = inputs[i].lengths };
        KilnTensor *x = kiln_nn_embedding(&state->words, inputs[i].tensor);

        ends[i] = kiln_select(kiln_nn_recurrent(&state->encoders[i], x, start).h, 0, -1);
    }
    outputs[0].tensor = kiln_nn_linear(&state->head, kiln_concat(ends, 2, 1));
}

static const KilnModelOps model_ops = {
    .signature = &signature,
    .setup = model_setup,
    .forward = model_forward,
};

static const KilnComponent two_encoders = {
    .kind = KILN_KIND_MODEL,
    .name = "two_encoders",
    .summary = "A GRU for each of two lists of words",
    KILN_FIELDS(model_fields),
    .opts_size = sizeof(ModelOpts),
    .state_size = sizeof(ModelState),
    .ops.model = &model_ops,
};

/* ---- The task ------------------------------------------------------------------------ */

typedef struct TaskOpts {
    KilnInstance *model, *optimizer;
} TaskOpts;

static const KilnField task_fields[] = {
    KILN_FIELD_COMPONENT(TaskOpts, model, KILN_KIND_MODEL, "${model}", "reads both lists"),
    KILN_FIELD_COMPONENT(TaskOpts, optimizer, KILN_KIND_OPTIMIZER, "${optimizer}", "the optimizer"),
    KILN_FIELD_END,
};

static const KilnTensorSpec reads[] = {
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};
static const KilnModelUse models[] = {
    { .option = "model",
      .feeds = takes,
      .n_feeds = KILN_COUNT(takes),
      .needs = gives,
      .n_needs = KILN_COUNT(gives) },
};

static KilnStatus task_setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                             KilnError *err)
{
    const TaskOpts *opts = kiln_opts(self);

    return kiln_model_setup(opts->model, scope, models, data->features, data->n_features,
                            &data->n_classes, err);
}

static KilnTensor *logits_of(KilnInstance *self, KilnStep *step)
{
    KilnModelValue logits;

    kiln_model_forward(((const TaskOpts *)kiln_opts(self))->model, step, NULL, &logits);
    return logits.tensor;
}

static KilnTensor *record_loss(KilnInstance *self, KilnStep *step, const char *name)
{
    KilnTensor *loss = kiln_cross_entropy(logits_of(self, step), kiln_step_input(step, "label"),
                                          (KilnCrossEntropy) { 0 });

    kiln_step_log(step, name, loss, KILN_LOG_EPOCH | KILN_LOG_LOWER_IS_BETTER);
    return loss;
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    return record_loss(self, step, "train/loss");
}

static void validation_step(KilnInstance *self, KilnStep *step)
{
    (void)record_loss(self, step, "val/loss");
}

static void predict_step(KilnInstance *self, KilnStep *step)
{
    kiln_step_output(step, "probabilities", kiln_softmax(logits_of(self, step), -1));
}

static KilnStatus configure_optimizers(KilnInstance *self, KilnOptimizers *ret, KilnError *err)
{
    const TaskOpts *opts = kiln_opts(self);

    (void)err;
    *ret = (KilnOptimizers) { .n = 1, .use = { { .optimizer = opts->optimizer } } };
    return KILN_OK;
}

static const KilnModuleOps task_ops = {
    .models = models,
    .n_models = KILN_COUNT(models),
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = task_setup,
    .training_step = training_step,
    .validation_step = validation_step,
    .predict_step = predict_step,
    .configure_optimizers = configure_optimizers,
};

static const KilnComponent longer_list = {
    .kind = KILN_KIND_MODULE,
    .name = "longer_list",
    .summary = "Which of two lists is longer",
    KILN_FIELDS(task_fields),
    .opts_size = sizeof(TaskOpts),
    .ops.module = &task_ops,
};

static const KilnComponent *const list[] = { &word_pairs, &two_encoders, &longer_list, NULL };
KILN_PLUGIN_DEFINE(list)
