/* Generates texts, a batch of prompts at a time. The prompts but for their last tokens are read in
 * one step, which only fills the caches; each further step reads one token of every prompt and
 * gives the logits of the next. Samples are padded at the end: what is beyond a sample's own tokens
 * is overwritten before a later token can see it. */
#include "train/generate/generate.h"

#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "graph/passes/pass_list.h"
#include "registry/instance.h"
#include "train/generate/stop_text.h"

enum { MAX_TOKENS = 256, PROMPT_STEP = 16 }; /* the default; prompts are padded to its multiples */

/* One text that is being generated. */
typedef struct Sequence {
    size_t number; /* of the prompt */
    int32_t *ids;  /* prompt and generated tokens */
    size_t n, n_prompt;
    size_t begin; /* the first token that the caches hold */
    KilnDecodeStream stream;
    KilnStopText text;
    size_t reported; /* bytes of the text that the caller has */
    bool ended;
    KilnGenerateEnd end;
} Sequence;

typedef struct Results {
    KilnGenerated generated; /* comes first: the caller's pointer is to it */
    KilnGeneratedText *list;
} Results;

/* A batch of sequences. */
typedef struct Batch {
    const KilnGenerator *generator;
    const KilnGenerateOptions *options;
    const KilnInstance *tokenizer;
    Sequence *sequences;
    size_t n;
    int64_t context, max_tokens, n_ids;
    int64_t end_token; /* -1: none */
    size_t feature;    /* number of "tokens" in the spec */
    KilnBatchFeature *features;
    int32_t *tokens, *lengths; /* of a step: [n, rows], [n] */
    float *work;               /* [n_ids] */
    int32_t *candidates;       /* [n_ids] */
    KilnDecode decode;
} Batch;

void kiln_generated_free(KilnGenerated *generated)
{
    Results *results = (Results *)generated;

    if (results == NULL)
        return;
    for (size_t i = 0; i < results->generated.n; i++) {
        free((void *)results->list[i].text.data);
        free((void *)results->list[i].tokens);
    }
    free(results->list);
    free(results);
}

/* ---- Steps --------------------------------------------------------------------------------- */

/* Run a step over `time` tokens of each sequence; logits NULL: only the caches matter, else
 * [n, 1, n_ids] until the next step. */
static KilnStatus run_step(Batch *batch, int64_t time, const float **logits, KilnError *err)
{
    const KilnGenerator *generator = batch->generator;
    KilnInstance *module = generator->trainer->module;
    KilnStep *step = generator->step;
    const KilnBatch rows = { .size = (int64_t)batch->n, .features = batch->features };
    KilnPlan *plan = NULL;

    batch->features[batch->feature] =
        (KilnBatchFeature) { .data = batch->tokens, .padded = time, .lengths = batch->lengths };
    if (generator->recording != NULL)
        pthread_mutex_lock(generator->recording);
    kiln_step_begin(step, KILN_PHASE_PREDICT, false, &rows,
                    (uint64_t)generator->trainer->options.root->seed, 0);
    kiln_call_enter(module, "generate_step");
    kiln_instance_component(module)->ops.module->generate_step(module, step);
    kiln_call_leave();
    if (logits == NULL)
        step->n_outputs = 0;
    KilnStatus status = kiln_step_plan(step, NULL, &plan, err);
    if (generator->recording != NULL)
        pthread_mutex_unlock(generator->recording);
    if (status >= 0)
        status = kiln_step_execute(step, NULL, plan, err);
    if (status < 0 || logits == NULL)
        return status;
    const KilnTensor *value = step->n_outputs == 1 ? step->outputs[0].value : NULL;
    const KilnShape want = KILN_SHAPE((int64_t)batch->n, 1, batch->n_ids);
    if (value == NULL || !kiln_shape_equal(kiln_tensor_shape(value), &want))
        return kiln_error_set(err, KILN_E_SHAPE,
                              "task %s: generate_step must give one output, the logits of each "
                              "token's successor",
                              kiln_instance_name(module));
    *logits = kiln_tensor_data(value);
    return KILN_OK;
}

/* A step that runs once for a prompt: it reads weights as they are, since no later run would gain
 * from packing them. */
static KilnStatus read_once(Batch *batch, int64_t time, KilnError *err)
{
    KilnGraph *graph = batch->generator->step->graph;
    const unsigned before = graph->passes_off;

    graph->passes_off |= 1u << KILN_PASS_constants;
    const KilnStatus status = run_step(batch, time, NULL, err);
    graph->passes_off = before;
    return status;
}

/* Fill the caches with all tokens but the last of each sequence, from `begin` on. */
static KilnStatus read_prompts(Batch *batch, KilnError *err)
{
    size_t longest = 0;

    for (size_t b = 0; b < batch->n; b++) {
        const Sequence *sequence = &batch->sequences[b];
        const size_t n = sequence->n - sequence->begin - 1;

        longest = n > longest ? n : longest;
        batch->decode.position[b] = 0;
        batch->lengths[b] = (int32_t)n;
    }
    if (longest == 0)
        return KILN_OK;
    int64_t time = ((int64_t)longest + PROMPT_STEP - 1) / PROMPT_STEP * PROMPT_STEP;
    time = time < batch->decode.rows ? time : batch->decode.rows;
    memset(batch->tokens, 0, batch->n * (size_t)time * sizeof(*batch->tokens));
    for (size_t b = 0; b < batch->n; b++)
        memcpy(batch->tokens + b * (size_t)time,
               batch->sequences[b].ids + batch->sequences[b].begin,
               (size_t)batch->lengths[b] * sizeof(*batch->tokens));
    return read_once(batch, time, err);
}

/* The caches are full for some sequence: begin again with the last half of each. */
static KilnStatus move_on(Batch *batch, KilnError *err)
{
    const size_t keep = (size_t)(batch->context + 1) / 2;

    for (size_t b = 0; b < batch->n; b++) {
        Sequence *sequence = &batch->sequences[b];

        if (sequence->n - sequence->begin > keep)
            sequence->begin = sequence->n - keep;
    }
    return read_prompts(batch, err);
}

static KilnStatus next_logits(Batch *batch, const float **ret, KilnError *err)
{
    KilnStatus status = KILN_OK;
    bool full = false;

    for (size_t b = 0; b < batch->n; b++)
        full = full ||
               (int64_t)(batch->sequences[b].n - batch->sequences[b].begin) > batch->decode.rows;
    if (full)
        status = move_on(batch, err);
    for (size_t b = 0; b < batch->n && status >= 0; b++) {
        const Sequence *sequence = &batch->sequences[b];

        batch->decode.position[b] = (int32_t)(sequence->n - sequence->begin - 1);
        batch->tokens[b] = sequence->ids[sequence->n - 1];
        batch->lengths[b] = 1;
    }
    return status >= 0 ? run_step(batch, 1, ret, err) : status;
}

/* ---- Text ---------------------------------------------------------------------------------- */

static void report(const Batch *batch, Sequence *sequence, size_t to)
{
    if (batch->options->text != NULL && to > sequence->reported)
        batch->options->text(batch->options->ctx, sequence->number,
                             (KilnString) { sequence->text.text.data + sequence->reported,
                                            to - sequence->reported });
    sequence->reported = to;
}

static void end(const Batch *batch, Sequence *sequence, KilnGenerateEnd why)
{
    sequence->ended = true;
    sequence->end = why;
    report(batch, sequence, sequence->text.text.length);
}

static KilnStatus append(const Batch *batch, Sequence *sequence, int32_t id, KilnError *err)
{
    KilnText piece = { 0 };

    if (id == batch->end_token) {
        end(batch, sequence, KILN_GENERATE_END_TOKEN);
        return KILN_OK;
    }
    sequence->ids[sequence->n++] = id;
    KilnStatus status = kiln_tokenizer_decode_next(batch->tokenizer, &sequence->stream, id, true,
                                                   &piece, err);
    if (status >= 0 && piece.length > 0)
        kiln_stop_text_add(&sequence->text, piece.data, piece.length);
    if (status >= 0 && (piece.failed || sequence->text.text.failed))
        status = kiln_error_nomem(err, piece.length);
    kiln_text_release(&piece);
    if (status < 0)
        return status;
    if (sequence->text.stopped)
        end(batch, sequence, KILN_GENERATE_STOP);
    else if ((int64_t)(sequence->n - sequence->n_prompt) == batch->max_tokens)
        end(batch, sequence, KILN_GENERATE_MAX_TOKENS);
    else
        report(batch, sequence, sequence->text.shown);
    return KILN_OK;
}

static bool all_ended(const Batch *batch)
{
    for (size_t b = 0; b < batch->n; b++)
        if (!batch->sequences[b].ended)
            return false;
    return true;
}

static KilnStatus generate(Batch *batch, KilnError *err)
{
    const volatile int *interrupt = batch->options->interrupt;
    KilnStatus status = read_prompts(batch, err);

    while (status >= 0 && !all_ended(batch)) {
        const float *logits = NULL;

        if (interrupt != NULL && *interrupt != 0) {
            for (size_t b = 0; b < batch->n; b++)
                if (!batch->sequences[b].ended)
                    end(batch, &batch->sequences[b], KILN_GENERATE_INTERRUPTED);
            break;
        }
        status = next_logits(batch, &logits, err);
        for (size_t b = 0; b < batch->n && status >= 0; b++) {
            Sequence *sequence = &batch->sequences[b];

            if (!sequence->ended)
                status = append(
                    batch, sequence,
                    kiln_token_choose(&batch->options->choice, logits + (int64_t)b * batch->n_ids,
                                      batch->n_ids, sequence->ids, sequence->n,
                                      (uint32_t)sequence->number, batch->work, batch->candidates),
                    err);
        }
    }
    return status;
}

/* ---- Prompts ------------------------------------------------------------------------------- */

static KilnStatus begin_sequence(Batch *batch, Sequence *sequence, const char *prompt,
                                 KilnError *err)
{
    const KilnTokenizerInput input = { .text = { prompt, strlen(prompt) } };
    const int64_t bos = kiln_tokenizer_special(batch->tokenizer, KILN_TOKEN_BOS);
    KilnEncoding encoding = { 0 };
    KilnStatus status = kiln_tokenizer_encode(batch->tokenizer, &input, &encoding, err);
    size_t n = encoding.n;

    if (status >= 0 && n == 0 && bos < 0)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "is empty, and the tokenizer has no token that begins a text; give "
                                "at least a character");
    if (status >= 0 && (int64_t)n > batch->context)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "has %zu tokens, but the model was trained on %lld; shorten it", n,
                                (long long)batch->context);
    if (status >= 0) {
        const size_t room = (n > 0 ? n : 1) + (size_t)batch->max_tokens;

        sequence->ids = malloc(room * sizeof(*sequence->ids));
        if (sequence->ids == NULL)
            status = kiln_error_nomem(err, room * sizeof(*sequence->ids));
    }
    if (status >= 0) {
        if (n > 0)
            memcpy(sequence->ids, encoding.ids, n * sizeof(*sequence->ids));
        else
            sequence->ids[n++] = (int32_t)bos;
        sequence->n = sequence->n_prompt = n;
        sequence->text.stop = batch->options->stop;
    } else if (status != KILN_E_NOMEM) {
        kiln_error_prefix(err, "prompt %zu ", sequence->number + 1);
    }
    kiln_encoding_release(&encoding);
    return status;
}

static void sequence_release(Sequence *sequence)
{
    free(sequence->ids);
    kiln_decode_stream_release(&sequence->stream);
    kiln_text_release(&sequence->text.text);
}

static KilnStatus take_result(Sequence *sequence, KilnGeneratedText *ret, KilnError *err)
{
    const size_t n = sequence->n - sequence->n_prompt;
    int32_t *tokens = malloc((n + 1) * sizeof(*tokens));

    kiln_text_append(&sequence->text.text, "");
    const size_t length = sequence->text.text.length;
    char *text = kiln_text_take(&sequence->text.text);
    if (tokens == NULL || text == NULL) {
        free(tokens);
        free(text);
        return kiln_error_nomem(err, length + n);
    }
    memcpy(tokens, sequence->ids + sequence->n_prompt, n * sizeof(*tokens));
    *ret = (KilnGeneratedText) {
        .text = { text, length }, .tokens = tokens, .n_tokens = n, .end = sequence->end
    };
    return KILN_OK;
}

/* Rows that the caches need: of the longest prompt and what follows it, at most the context. */
static int64_t rows_of(const Batch *batch)
{
    int64_t longest = 0;

    for (size_t b = 0; b < batch->n; b++) {
        const int64_t n = (int64_t)batch->sequences[b].n;

        longest = n > longest ? n : longest;
    }
    const int64_t rows = (longest + batch->max_tokens + PROMPT_STEP - 1) / PROMPT_STEP *
                         PROMPT_STEP;
    return rows < batch->context ? rows : batch->context;
}

static KilnStatus allocate(Batch *batch, KilnError *err)
{
    const int64_t rows = rows_of(batch);
    const size_t ids = (size_t)batch->n_ids, tokens = batch->n * (size_t)rows;

    batch->features = calloc(batch->generator->trainer->data.spec.n_features,
                             sizeof(*batch->features));
    batch->tokens = malloc(tokens * sizeof(*batch->tokens));
    batch->lengths = malloc(batch->n * sizeof(*batch->lengths));
    batch->work = malloc(ids * sizeof(*batch->work));
    batch->candidates = malloc(ids * sizeof(*batch->candidates));
    if (batch->features == NULL || batch->tokens == NULL || batch->lengths == NULL ||
        batch->work == NULL || batch->candidates == NULL)
        return kiln_error_nomem(err, (tokens + 2 * ids) * sizeof(float));
    return kiln_decode_init(&batch->decode, batch->generator->backend, (int64_t)batch->n, rows,
                            err);
}

/* Generate for some of the prompts, from number `first` on. */
static KilnStatus run_batch(Batch *batch, const char *const *prompts, size_t first,
                            KilnGeneratedText *list, KilnError *err)
{
    KilnStep *step = batch->generator->step;
    KilnStatus status = KILN_OK;

    batch->sequences = calloc(batch->n, sizeof(*batch->sequences));
    if (batch->sequences == NULL)
        return kiln_error_nomem(err, batch->n * sizeof(*batch->sequences));
    for (size_t b = 0; b < batch->n && status >= 0; b++) {
        batch->sequences[b].number = first + b;
        status = begin_sequence(batch, &batch->sequences[b], prompts[first + b], err);
    }
    if (status >= 0)
        status = allocate(batch, err);
    if (status >= 0) {
        step->decode = &batch->decode;
        status = generate(batch, err);
        step->decode = NULL;
    }
    for (size_t b = 0; b < batch->n && status >= 0; b++)
        status = take_result(&batch->sequences[b], &list[first + b], err);
    for (size_t b = 0; b < batch->n; b++)
        sequence_release(&batch->sequences[b]);
    kiln_decode_release(&batch->decode);
    free(batch->sequences);
    free(batch->features);
    free(batch->tokens);
    free(batch->lengths);
    free(batch->work);
    free(batch->candidates);
    return status;
}

/* ---- Entry --------------------------------------------------------------------------------- */

/* What the run must have: a task that generates, a datamodule with a tokenizer. */
static KilnStatus find_parts(Batch *batch, KilnError *err)
{
    const KilnTrainer *trainer = batch->generator->trainer;
    const KilnModuleOps *module = kiln_instance_component(trainer->module)->ops.module;
    const KilnDataModuleOps *data = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    const KilnFeature *tokens = kiln_spec_feature(&trainer->data.spec, "tokens");

    if (module->generate_step == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "task %s generates no text; task=language_model does",
                              kiln_instance_name(trainer->module));
    if (data->tokenizer == NULL || tokens == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "datamodule %s has no tokenizer to make text of tokens; "
                              "datamodule=text_blocks has one",
                              kiln_instance_name(trainer->datamodule));
    batch->tokenizer = data->tokenizer(trainer->datamodule);
    batch->feature = (size_t)(tokens - trainer->data.spec.features);
    batch->context = tokens->shape.dim[0] - 1;
    batch->n_ids = tokens->n_ids;
    batch->end_token = kiln_tokenizer_special(batch->tokenizer, KILN_TOKEN_EOS);
    return KILN_OK;
}

KilnStatus kiln_generator_run(const KilnGenerator *generator, const char *const *prompts, size_t n,
                              const KilnGenerateOptions *options, KilnGenerated **ret,
                              KilnError *err)
{
    const size_t most = (size_t)generator->trainer->data.batch_size;
    const Batch shared = {
        .generator = generator,
        .options = options,
        .max_tokens = options->max_tokens > 0 ? options->max_tokens : MAX_TOKENS,
    };
    Results *results = calloc(1, sizeof(*results));
    KilnGeneratedText *list = calloc(n + 1, sizeof(*list));
    KilnStatus status = KILN_OK;

    if (results == NULL || list == NULL) {
        free(results);
        free(list);
        return kiln_error_nomem(err, n * sizeof(*list));
    }
    results->list = list;
    results->generated = (KilnGenerated) { .list = list, .n = n };
    for (size_t first = 0; first < n && status >= 0; first += most) {
        Batch batch = shared;

        batch.n = n - first < most ? n - first : most;
        status = find_parts(&batch, err);
        if (status >= 0)
            status = run_batch(&batch, prompts, first, list, err);
    }
    if (status < 0)
        kiln_generated_free(&results->generated);
    else
        *ret = &results->generated;
    return status;
}
