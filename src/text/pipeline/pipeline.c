/* Pipelines beside encoding: decoding, tokens and ids, release. */
#include "text/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"
#include "kiln/array.h"
#include "text/unicode/characters.h"

/* ---- Preparing ------------------------------------------------------------------------------- */

static bool is_trimmed(uint32_t c)
{
    return c == 0x120 /* ByteLevel's space */ || kiln_char_is_space(c);
}

KilnTokenTrim kiln_token_trim(const char *token, size_t n)
{
    KilnTokenTrim trim = { 0 };
    uint32_t c;

    for (size_t at = 0; at < n; trim.leading++) {
        at += kiln_utf8_read(token + at, &c);
        if (!is_trimmed(c))
            break;
    }
    for (size_t end = n; end > 0; trim.trailing++) {
        end -= kiln_utf8_read_last(token, end, &c);
        if (!is_trimmed(c))
            break;
    }
    return trim;
}

static KilnStatus prepare_trims(KilnTokenPipeline *pipeline, KilnError *err)
{
    const KilnVocab *vocab = &pipeline->model.vocab;

    for (size_t i = 0; i < pipeline->n_processors; i++)
        pipeline->trims = pipeline->trims || pipeline->processors[i].trim_offsets;
    if (!pipeline->trims)
        return KILN_OK;
    pipeline->trim = calloc(vocab->n + 1, sizeof(*pipeline->trim));
    if (pipeline->trim == NULL)
        return kiln_error_nomem(err, vocab->n * sizeof(*pipeline->trim));
    for (size_t i = 0; i < vocab->n; i++)
        if (vocab->tokens[i].data != NULL)
            pipeline->trim[i] = kiln_token_trim(vocab->tokens[i].data, vocab->tokens[i].length);
    return KILN_OK;
}

/* Let BPE take the bytes of pieces where ByteLevel would write each as a character. */
static void prepare_bytes(KilnTokenPipeline *pipeline)
{
    KilnTokenModel *model = &pipeline->model;
    const size_t n = pipeline->n_pre_tokenizers;
    KilnPreTokenizer *last = n > 0 ? &pipeline->pre_tokenizers[n - 1] : NULL;
    const bool affixes = (model->prefix != NULL && *model->prefix != '\0') ||
                         (model->suffix != NULL && *model->suffix != '\0');

    if (model->type != KILN_MODEL_BPE || last == NULL || last->type != KILN_PRE_BYTE_LEVEL ||
        affixes)
        return;
    last->raw = model->raw_bytes = true;
    pipeline->gpt2 = n == 1 && last->use_regex && !last->add_prefix_space;
    for (int i = 0; i < 256; i++) {
        char c[4];

        model->alphabet[i] = kiln_vocab_find(&model->vocab, c, kiln_byte_char((uint8_t)i, c));
    }
}

/* The content of an added token in normalized text. */
static KilnStatus prepare_pattern(const KilnTokenPipeline *pipeline, KilnAddedToken *token,
                                  KilnError *err)
{
    KilnPieces pieces = { 0 };
    KilnStatus status = KILN_OK;

    kiln_pieces_start(&pieces, (KilnString) { token->content, token->length });
    for (size_t i = 0; i < pipeline->n_normalizers && token->normalized && status >= 0; i++)
        status = kiln_normalizer_apply(&pipeline->normalizers[i], &pieces, err);
    token->pattern_length = pieces.n > 0 ? pieces.items[0].n : 0;
    token->pattern = status >= 0 && !pieces.failed ? malloc(token->pattern_length + 1) : NULL;
    if (token->pattern != NULL && token->pattern_length > 0)
        memcpy(token->pattern, pieces.text, token->pattern_length);
    kiln_pieces_release(&pieces);
    return status >= 0 && token->pattern == NULL ? kiln_error_nomem(err, token->length) : status;
}

static KilnStatus prepare_added(KilnTokenPipeline *pipeline, KilnError *err)
{
    KilnAddedTokens *added = &pipeline->added;
    KilnStatus status = KILN_OK;

    added->index = malloc((added->by_content.n + 1) * sizeof(*added->index));
    if (added->index == NULL)
        return kiln_error_nomem(err, added->by_content.n * sizeof(*added->index));
    memset(added->index, 0xff, (added->by_content.n + 1) * sizeof(*added->index));
    for (size_t i = 0; i < added->n && status >= 0; i++) {
        KilnAddedToken *token = &added->items[i];

        added->index[token->id] = (int32_t)i;
        status = prepare_pattern(pipeline, token, err);
        if (status >= 0 && token->pattern_length > 0)
            added->starts[token->normalized][(unsigned char)token->pattern[0]] = true;
    }
    return status;
}

/* The first of the names, separated by spaces, that is a token. */
static int32_t find_name(const KilnTokenPipeline *pipeline, const char *names)
{
    while (*names != '\0') {
        const size_t n = strcspn(names, " ");
        const int64_t id = kiln_token_pipeline_id(pipeline, (KilnString) { names, n });

        if (id >= 0)
            return (int32_t)id;
        names += n + strspn(names + n, " ");
    }
    return -1;
}

static void prepare_special(KilnTokenPipeline *pipeline)
{
    static const char *const names[] = {
        [KILN_TOKEN_PAD] = "[PAD] <pad> <|pad|> <|padding|>",
        [KILN_TOKEN_BOS] = "<s> [BOS] <bos> [CLS] <|begin_of_text|> <|startoftext|> <|endoftext|>",
        [KILN_TOKEN_EOS] = "</s> [EOS] <eos> [SEP] <|end_of_text|> <|endoftext|>",
        [KILN_TOKEN_UNK] = "[UNK] <unk>",
        [KILN_TOKEN_MASK] = "[MASK] <mask>",
    };

    for (size_t i = 0; i < KILN_COUNT(names); i++)
        pipeline->special[i] = find_name(pipeline, names[i]);
    if (pipeline->model.unk >= 0)
        pipeline->special[KILN_TOKEN_UNK] = pipeline->model.unk;
}

KilnStatus kiln_pipeline_prepare(KilnTokenPipeline *pipeline, KilnError *err)
{
    KilnStatus status = prepare_trims(pipeline, err);

    if (status >= 0)
        status = prepare_added(pipeline, err);
    prepare_bytes(pipeline);
    prepare_special(pipeline);
    return status;
}

/* ---- Tokens and ids -------------------------------------------------------------------------- */

int64_t kiln_token_pipeline_size(const KilnTokenPipeline *pipeline)
{
    const size_t added = pipeline->added.by_content.n, model = pipeline->model.vocab.n;

    return (int64_t)(added > model ? added : model);
}

KilnString kiln_token_pipeline_token(const KilnTokenPipeline *pipeline, int64_t id)
{
    const KilnAddedToken *added = kiln_added_token_at(&pipeline->added, id);

    if (added != NULL)
        return (KilnString) { added->content, added->length };
    if (id >= 0 && (size_t)id < pipeline->model.vocab.n)
        return pipeline->model.vocab.tokens[id];
    return (KilnString) { 0 };
}

int64_t kiln_token_pipeline_id(const KilnTokenPipeline *pipeline, KilnString token)
{
    const int32_t id = kiln_vocab_find(&pipeline->added.by_content, token.data, token.length);

    return id >= 0 ? id : kiln_vocab_find(&pipeline->model.vocab, token.data, token.length);
}

int64_t kiln_token_pipeline_special(const KilnTokenPipeline *pipeline, KilnSpecialToken role)
{
    return pipeline->special[role];
}

const char *kiln_token_pipeline_model(const KilnTokenPipeline *pipeline)
{
    static const char *const names[] = { "BPE", "WordPiece", "Unigram", "WordLevel" };

    return names[pipeline->model.type];
}

/* ---- Decoding -------------------------------------------------------------------------------- */

/* The tokens of ids, as the decoders expect them. */
static void put_ids(const KilnTokenPipeline *pipeline, const int32_t *ids, size_t n,
                    bool skip_special, KilnTokenTexts *ret)
{
    for (size_t i = 0; i < n; i++) {
        const KilnAddedToken *added = kiln_added_token_at(&pipeline->added, ids[i]);
        const KilnString token = kiln_token_pipeline_token(pipeline, ids[i]);

        if (token.data == NULL || (added != NULL && added->special && skip_special))
            continue;
        if (added != NULL && added->normalized)
            kiln_token_texts_add(ret, added->pattern, added->pattern_length);
        else
            kiln_token_texts_add(ret, token.data, token.length);
    }
}

KilnStatus kiln_token_pipeline_decode(const KilnTokenPipeline *pipeline, const int32_t *ids,
                                      size_t n, bool skip_special, KilnText *ret, KilnError *err)
{
    KilnTokenTexts texts[2] = { 0 };
    KilnTokenTexts *in = &texts[0], *out = &texts[1];
    KilnStatus status = KILN_OK;

    put_ids(pipeline, ids, n, skip_special, in);
    for (size_t i = 0; i < pipeline->n_decoders && status >= 0 && !in->failed; i++) {
        KilnTokenTexts *swap = in;

        kiln_text_clear(&out->text);
        out->n = 0;
        status = kiln_decoder_apply(&pipeline->decoders[i], in, out, err);
        in = out;
        out = swap;
    }
    for (size_t i = 0; i < in->n && status >= 0 && !in->failed; i++) {
        const KilnString token = kiln_token_texts_at(in, i);

        if (i > 0 && pipeline->n_decoders == 0)
            kiln_text_char(ret, ' ');
        kiln_text_append_n(ret, token.data, token.length);
    }
    if (status >= 0 && (in->failed || out->failed || ret->failed))
        status = kiln_error_nomem(err, n);
    kiln_token_texts_release(in);
    kiln_token_texts_release(out);
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* The digits that the scores need: 15 if they have no more, as those that kiln learned. */
static size_t digits_of_scores(const KilnTokenModel *model)
{
    for (size_t i = 0; model->scores != NULL && i < model->vocab.n; i++) {
        char text[32];

        snprintf(text, sizeof(text), "%.15g", model->scores[i]);
        if (strtod(text, NULL) != model->scores[i])
            return 17;
    }
    return 15;
}

KilnStatus kiln_token_pipeline_save(const KilnTokenPipeline *pipeline, const char *path,
                                    KilnError *err)
{
    const size_t digits = digits_of_scores(&pipeline->model);
    char *text = kiln_json_dump(pipeline->document, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));

    if (text == NULL)
        return kiln_error_nomem(err, 0);
    KilnStatus status = kiln_file_write(path, text, strlen(text), err);
    free(text);
    return status;
}

static void release_processor(KilnProcessor *processor)
{
    KilnTemplate *const templates[] = { &processor->single, &processor->pair };

    for (size_t t = 0; t < KILN_COUNT(templates); t++) {
        for (size_t i = 0; i < templates[t]->n; i++)
            free(templates[t]->items[i].ids);
        free(templates[t]->items);
    }
}

static void release_added(KilnAddedTokens *added)
{
    for (size_t i = 0; i < added->n; i++) {
        free(added->items[i].content);
        free(added->items[i].pattern);
    }
    free(added->items);
    free(added->index);
    kiln_vocab_release(&added->by_content);
}

void kiln_token_pipeline_free(KilnTokenPipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    for (size_t i = 0; i < pipeline->n_normalizers; i++) {
        kiln_regex_free(pipeline->normalizers[i].regex);
        free(pipeline->normalizers[i].content);
        free(pipeline->normalizers[i].charsmap.units);
        free(pipeline->normalizers[i].charsmap.texts);
    }
    for (size_t i = 0; i < pipeline->n_pre_tokenizers; i++)
        kiln_regex_free(pipeline->pre_tokenizers[i].regex);
    for (size_t i = 0; i < pipeline->n_processors; i++)
        release_processor(&pipeline->processors[i]);
    for (size_t i = 0; i < pipeline->n_decoders; i++) {
        free(pipeline->decoders[i].text);
        kiln_regex_free(pipeline->decoders[i].regex);
    }
    free(pipeline->normalizers);
    free(pipeline->pre_tokenizers);
    free(pipeline->processors);
    free(pipeline->decoders);
    release_added(&pipeline->added);
    kiln_model_release(&pipeline->model);
    free(pipeline->trim);
    json_decref(pipeline->document);
    free(pipeline);
}
