/* From text to ids: pieces, the model, offsets, special tokens. */
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/pipeline/byte_level.h"
#include "text/pipeline/pipeline.h"
#include "text/pipeline/word_cache.h"
#include "text/unicode/characters.h"

/* The tokens of one of the texts. */
typedef struct Part {
    int32_t *ids;
    KilnTokenSpan *spans;
    KilnTokenTrim *trims;
    size_t n, ids_capacity, spans_capacity, trims_capacity;
} Part;

struct KilnEncodingWork {
    KilnPieces pieces;
    KilnModelWork model;
    KilnWordCache cache;
    Part parts[2];
    uint32_t *characters; /* the number of the character that each byte of the text is in */
    size_t characters_capacity;
};

/* ---- Memory ---------------------------------------------------------------------------------- */

KilnStatus kiln_encoding_reserve(KilnEncoding *encoding, size_t n, KilnError *err)
{
    size_t ids = encoding->capacity, spans = ids, types = ids, special = ids, sequences = ids;

    if (n <= encoding->capacity)
        return KILN_OK;
    if (!KILN_RESERVE(encoding->ids, ids, n) || !KILN_RESERVE(encoding->spans, spans, n) ||
        !KILN_RESERVE(encoding->types, types, n) || !KILN_RESERVE(encoding->special, special, n) ||
        !KILN_RESERVE(encoding->sequences, sequences, n))
        return kiln_error_nomem(err, n * sizeof(*encoding->spans));
    encoding->capacity = ids; /* all grow alike */
    return KILN_OK;
}

void kiln_encoding_release(KilnEncoding *encoding)
{
    struct KilnEncodingWork *work = encoding->work;

    free(encoding->ids);
    free(encoding->spans);
    free(encoding->types);
    free(encoding->special);
    free(encoding->sequences);
    if (work != NULL) {
        kiln_pieces_release(&work->pieces);
        kiln_model_work_release(&work->model);
        kiln_word_cache_release(&work->cache);
        for (int i = 0; i < 2; i++) {
            free(work->parts[i].ids);
            free(work->parts[i].spans);
            free(work->parts[i].trims);
        }
        free(work->characters);
        free(work);
    }
    *encoding = (KilnEncoding) { 0 };
}

/* ---- One text -------------------------------------------------------------------------------- */

/* What encodes one text. */
typedef struct Encoder {
    const KilnTokenPipeline *pipeline;
    struct KilnEncodingWork *work;
    Part *part;
    bool spans;
} Encoder;

KilnStatus kiln_pipeline_pieces(const KilnTokenPipeline *pipeline, KilnString text,
                                KilnPieces *pieces, KilnError *err)
{
    const size_t invalid = text.length > 0 ? kiln_utf8_invalid(text.data, text.length) : 0;
    KilnStatus status = KILN_OK;

    if (invalid < text.length)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "byte %zu (0x%02x) is not UTF-8; convert the text to UTF-8", invalid,
                              (unsigned char)text.data[invalid]);
    if (text.length > INT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE, "a text of %zu bytes; expected at most 2 GiB",
                              text.length);
    kiln_pieces_start(pieces, text);
    kiln_added_tokens_split(&pipeline->added, false, pieces);
    for (size_t i = 0; i < pipeline->n_normalizers && status >= 0; i++)
        status = kiln_normalizer_apply(&pipeline->normalizers[i], pieces, err);
    if (status >= 0)
        kiln_added_tokens_split(&pipeline->added, true, pieces);
    for (size_t i = 0; i < pipeline->n_pre_tokenizers && status >= 0 && !pipeline->gpt2; i++)
        status = kiln_pre_tokenizer_apply(&pipeline->pre_tokenizers[i], pieces, err);
    if (status >= 0 && pieces->failed)
        status = kiln_error_nomem(err, text.length);
    return status;
}

/* Room for `n` more tokens. */
static bool reserve_part(const Encoder *encoder, size_t n)
{
    Part *part = encoder->part;

    return KILN_RESERVE(part->ids, part->ids_capacity, part->n + n) &&
           (!encoder->spans || KILN_RESERVE(part->spans, part->spans_capacity, part->n + n)) &&
           (!encoder->spans || encoder->pipeline->trim == NULL ||
            KILN_RESERVE(part->trims, part->trims_capacity, part->n + n));
}

/* Append the tokens of the piece at byte `at`. */
static bool put_tokens(const Encoder *encoder, size_t at, const KilnPieceToken *tokens, size_t n)
{
    const KilnPieces *pieces = &encoder->work->pieces;
    Part *part = encoder->part;

    if (!reserve_part(encoder, n))
        return false;
    for (size_t i = 0; i < n; i++)
        part->ids[part->n + i] = tokens[i].id;
    for (size_t i = 0; i < n && encoder->spans; i++)
        part->spans[part->n + i] = (KilnTokenSpan) {
            kiln_pieces_begin(pieces, at + tokens[i].begin),
            kiln_pieces_end(pieces, at + tokens[i].end - 1),
        };
    if (encoder->spans && encoder->pipeline->trim != NULL)
        for (size_t i = 0; i < n; i++)
            part->trims[part->n + i] = encoder->pipeline->trim[tokens[i].id];
    part->n += n;
    return true;
}

static KilnStatus no_memory(const Encoder *encoder, KilnError *err)
{
    return kiln_error_nomem(err, (encoder->part->n + 1) * sizeof(KilnPieceToken));
}

static KilnStatus encode_word(const Encoder *encoder, size_t at, size_t n, KilnError *err)
{
    struct KilnEncodingWork *work = encoder->work;
    const char *text = work->pieces.text + at;
    const bool cached = n <= KILN_CACHED_WORD_LENGTH;
    uint64_t hash = 0;
    size_t n_tokens = 0;
    const KilnPieceToken *tokens =
        cached ? kiln_word_cache_find(&work->cache, text, n, &n_tokens, &hash) : NULL;

    if (tokens == NULL) {
        work->model.n_tokens = 0;
        work->model.failed = false;
        KilnStatus status = kiln_model_tokenize(&encoder->pipeline->model, &work->model, text, n,
                                                err);
        if (status < 0)
            return status;
        if (work->model.failed)
            return no_memory(encoder, err);
        tokens = work->model.tokens;
        n_tokens = work->model.n_tokens;
        if (cached)
            kiln_word_cache_add(&work->cache, text, n, hash, tokens, n_tokens);
    }
    return put_tokens(encoder, at, tokens, n_tokens) ? KILN_OK : no_memory(encoder, err);
}

/* A piece of text whose words are those of GPT-2's regular expression. */
static KilnStatus encode_gpt2(const Encoder *encoder, const KilnTextPiece *piece, KilnError *err)
{
    const char *text = encoder->work->pieces.text + piece->at;
    KilnStatus status = KILN_OK;

    for (size_t at = 0; at < piece->n && status >= 0;) {
        const size_t end = kiln_gpt2_word(text, piece->n, at);

        status = encode_word(encoder, piece->at + at, end - at, err);
        at = end;
    }
    return status;
}

static bool put_added(const Encoder *encoder, const KilnTextPiece *piece)
{
    const KilnPieces *pieces = &encoder->work->pieces;
    Part *part = encoder->part;

    if (!reserve_part(encoder, 1))
        return false;
    part->ids[part->n] = piece->id;
    if (encoder->spans)
        part->spans[part->n] = (KilnTokenSpan) {
            kiln_pieces_begin(pieces, piece->at), kiln_pieces_end(pieces, piece->at + piece->n - 1)
        };
    if (encoder->spans && encoder->pipeline->trim != NULL)
        part->trims[part->n] = kiln_token_trim(pieces->text + piece->at, piece->n);
    part->n++;
    return true;
}

/* ---- Offsets --------------------------------------------------------------------------------- */

static KilnStatus to_characters(const Encoder *encoder, KilnString text, KilnError *err)
{
    struct KilnEncodingWork *work = encoder->work;
    uint32_t count = 0;

    if (!KILN_RESERVE(work->characters, work->characters_capacity, text.length + 1))
        return kiln_error_nomem(err, text.length * sizeof(*work->characters));
    for (size_t i = 0; i < text.length; i++) {
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
        work->characters[i] = count - 1;
    }
    work->characters[text.length] = count;
    for (size_t i = 0; i < encoder->part->n; i++) {
        encoder->part->spans[i].begin = work->characters[encoder->part->spans[i].begin];
        encoder->part->spans[i].end = work->characters[encoder->part->spans[i].end];
    }
    return KILN_OK;
}

/* Leave spaces at the ends of tokens out of their offsets, as GPT-2 and RoBERTa do. A single space
 * at the beginning may be the one that add_prefix_space put there. */
static void trim_spans(Part *part, bool add_prefix_space)
{
    for (size_t i = 0; i < part->n; i++) {
        KilnTokenSpan *span = &part->spans[i];
        uint32_t leading = part->trims[i].leading;
        const uint32_t trailing = part->trims[i].trailing;

        if ((i == 0 || span->begin == 0) && add_prefix_space && leading == 1)
            leading = 0;
        span->begin = span->begin + leading < span->end ? span->begin + leading : span->end;
        if (trailing > 0 && span->end >= trailing)
            span->end = span->end - trailing > span->begin ? span->end - trailing : span->begin;
    }
}

static KilnStatus encode_text(const Encoder *encoder, KilnString text, KilnOffsets offsets,
                              KilnError *err)
{
    const KilnTokenPipeline *pipeline = encoder->pipeline;
    KilnPieces *pieces = &encoder->work->pieces;
    KilnStatus status = kiln_pipeline_pieces(pipeline, text, pieces, err);

    encoder->part->n = 0;
    for (size_t i = 0; i < pieces->n && status >= 0; i++) {
        const KilnTextPiece *piece = &pieces->items[i];

        if (piece->n == 0)
            continue;
        if (piece->id >= 0)
            status = put_added(encoder, piece) ? KILN_OK : no_memory(encoder, err);
        else if (pipeline->gpt2)
            status = encode_gpt2(encoder, piece, err);
        else
            status = encode_word(encoder, piece->at, piece->n, err);
    }
    if (status >= 0 && offsets == KILN_OFFSETS_CHARACTERS)
        status = to_characters(encoder, text, err);
    for (size_t i = 0; i < pipeline->n_processors && status >= 0 && encoder->spans; i++)
        if (pipeline->processors[i].trim_offsets)
            trim_spans(encoder->part, pipeline->processors[i].add_prefix_space);
    return status;
}

/* ---- Special tokens -------------------------------------------------------------------------- */

static KilnStatus put_part(KilnEncoding *ret, const Part *part, uint8_t sequence, uint8_t type,
                           bool spans, KilnError *err)
{
    KilnStatus status = kiln_encoding_reserve(ret, ret->n + part->n, err);

    if (status < 0 || part->n == 0)
        return status;
    memcpy(ret->ids + ret->n, part->ids, part->n * sizeof(*part->ids));
    if (spans)
        memcpy(ret->spans + ret->n, part->spans, part->n * sizeof(*part->spans));
    memset(ret->types + ret->n, type, part->n);
    memset(ret->special + ret->n, 0, part->n);
    memset(ret->sequences + ret->n, sequence, part->n);
    ret->n += part->n;
    return KILN_OK;
}

static KilnStatus put_special(KilnEncoding *ret, int32_t id, uint8_t type, KilnError *err)
{
    KilnStatus status = kiln_encoding_reserve(ret, ret->n + 1, err);

    if (status < 0)
        return status;
    ret->ids[ret->n] = id;
    ret->spans[ret->n] = (KilnTokenSpan) { 0 };
    ret->types[ret->n] = type;
    ret->special[ret->n] = 1;
    ret->sequences[ret->n] = 255;
    ret->n++;
    return KILN_OK;
}

static KilnStatus put_template(const KilnTemplate *template, const struct KilnEncodingWork *work,
                               const KilnTokenizerInput *input, KilnEncoding *ret, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < template->n && status >= 0; i++) {
        const KilnTemplatePiece *piece = &template->items[i];

        if (piece->sequence >= 0)
            status = put_part(ret, &work->parts[piece->sequence], (uint8_t)piece->sequence,
                              piece->type, input->offsets != KILN_OFFSETS_NONE, err);
        for (size_t k = 0; k < piece->n_ids && input->add_special_tokens && status >= 0; k++)
            status = put_special(ret, piece->ids[k], piece->type, err);
    }
    return status;
}

/* [CLS] text [SEP] pair [SEP]; RoBERTa has another [SEP] before the second text, and type 0. */
static KilnStatus put_framed(const KilnProcessor *processor, const struct KilnEncodingWork *work,
                             const KilnTokenizerInput *input, KilnEncoding *ret, KilnError *err)
{
    const bool roberta = processor->type == KILN_PROCESS_ROBERTA, add = input->add_special_tokens;
    const bool spans = input->offsets != KILN_OFFSETS_NONE;
    const uint8_t second = roberta ? 0 : 1;
    KilnStatus status = add ? put_special(ret, processor->cls, 0, err) : KILN_OK;

    if (status >= 0)
        status = put_part(ret, &work->parts[0], 0, 0, spans, err);
    if (status >= 0 && add)
        status = put_special(ret, processor->sep, 0, err);
    if (input->pair == NULL)
        return status;
    if (status >= 0 && add && roberta)
        status = put_special(ret, processor->sep, 0, err);
    if (status >= 0)
        status = put_part(ret, &work->parts[1], 1, second, spans, err);
    if (status >= 0 && add)
        status = put_special(ret, processor->sep, second, err);
    return status;
}

/* Join the texts as the post-processor says. */
static KilnStatus join(const KilnTokenPipeline *pipeline, const struct KilnEncodingWork *work,
                       const KilnTokenizerInput *input, KilnEncoding *ret, KilnError *err)
{
    const bool spans = input->offsets != KILN_OFFSETS_NONE;

    for (size_t i = 0; i < pipeline->n_processors; i++) {
        const KilnProcessor *processor = &pipeline->processors[i];

        if (processor->type == KILN_PROCESS_TEMPLATE)
            return put_template(input->pair != NULL ? &processor->pair : &processor->single, work,
                                input, ret, err);
        if (processor->type != KILN_PROCESS_BYTE_LEVEL)
            return put_framed(processor, work, input, ret, err);
    }
    KilnStatus status = put_part(ret, &work->parts[0], 0, 0, spans, err);
    if (status >= 0 && input->pair != NULL)
        status = put_part(ret, &work->parts[1], 1, 1, spans, err);
    return status;
}

KilnStatus kiln_token_pipeline_encode(const KilnTokenPipeline *pipeline,
                                      const KilnTokenizerInput *input, KilnEncoding *ret,
                                      KilnError *err)
{
    if (ret->work == NULL)
        ret->work = calloc(1, sizeof(*ret->work));
    if (ret->work == NULL || !kiln_word_cache_claim(&ret->work->cache, pipeline->fingerprint))
        return kiln_error_nomem(err, sizeof(*ret->work));
    Encoder encoder = { .pipeline = pipeline,
                        .work = ret->work,
                        .part = &ret->work->parts[0],
                        .spans = input->offsets != KILN_OFFSETS_NONE };
    KilnStatus status = encode_text(&encoder, input->text, input->offsets, err);

    if (status >= 0 && input->pair != NULL) {
        encoder.part = &ret->work->parts[1];
        status = encode_text(&encoder, *input->pair, input->offsets, err);
        if (status < 0)
            kiln_error_prefix(err, "the second text: ");
    }
    if (status < 0)
        return status;
    ret->n = 0;
    return join(pipeline, ret->work, input, ret, err);
}
