/* The functions of the kind `tokenizer`, and those of components that are pipelines. */
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "kiln/tools/token_pipeline.h"

static const KilnTokenizerOps *ops_of(const KilnInstance *tokenizer)
{
    return kiln_instance_component(tokenizer)->ops.tokenizer;
}

KilnStatus kiln_tokenizer_train(KilnInstance *tokenizer, const KilnTexts *texts,
                                const KilnPoll *poll, KilnError *err)
{
    return ops_of(tokenizer)->train(tokenizer, texts, poll, err);
}

KilnStatus kiln_tokenizer_open(KilnInstance *tokenizer, const char *path, KilnError *err)
{
    return ops_of(tokenizer)->open(tokenizer, path, err);
}

KilnStatus kiln_tokenizer_save(const KilnInstance *tokenizer, const char *path, KilnError *err)
{
    return ops_of(tokenizer)->save(tokenizer, path, err);
}

KilnStatus kiln_tokenizer_encode(const KilnInstance *tokenizer, const KilnTokenizerInput *input,
                                 KilnEncoding *ret, KilnError *err)
{
    return ops_of(tokenizer)->encode(tokenizer, input, ret, err);
}

KilnStatus kiln_tokenizer_decode(const KilnInstance *tokenizer, const int32_t *ids, size_t n,
                                 bool skip_special, KilnText *ret, KilnError *err)
{
    return ops_of(tokenizer)->decode(tokenizer, ids, n, skip_special, ret, err);
}

int64_t kiln_tokenizer_size(const KilnInstance *tokenizer)
{
    return ops_of(tokenizer)->size(tokenizer);
}

KilnString kiln_tokenizer_token(const KilnInstance *tokenizer, int64_t id)
{
    return ops_of(tokenizer)->token(tokenizer, id);
}

int64_t kiln_tokenizer_id(const KilnInstance *tokenizer, KilnString token)
{
    return ops_of(tokenizer)->id(tokenizer, token);
}

int64_t kiln_tokenizer_special(const KilnInstance *tokenizer, KilnSpecialToken role)
{
    return ops_of(tokenizer)->special(tokenizer, role);
}

KilnStatus kiln_tokenizer_spell_id(const KilnInstance *tokenizer, int32_t id, KilnText *ret,
                                   KilnError *err)
{
    const size_t before = ret->length;
    KilnStatus status = kiln_tokenizer_decode(tokenizer, &id, 1, false, ret, err);

    if (status < 0 || ret->length > before)
        return status;
    const KilnString token = kiln_tokenizer_token(tokenizer, id);
    if (token.length > 0)
        kiln_text_append_n(ret, token.data, token.length);
    return ret->failed ? kiln_error_nomem(err, token.length) : KILN_OK;
}

KilnStatus kiln_tokenizer_spell(const KilnInstance *tokenizer, const KilnTokenizerInput *input,
                                KilnText *ret, KilnError *err)
{
    KilnEncoding encoding = { 0 };

    if (ops_of(tokenizer)->spell != NULL)
        return ops_of(tokenizer)->spell(tokenizer, input, ret, err);
    KilnStatus status = kiln_tokenizer_encode(tokenizer, input, &encoding, err);
    for (size_t i = 0; i < encoding.n && status >= 0; i++) {
        status = kiln_tokenizer_spell_id(tokenizer, encoding.ids[i], ret, err);
        kiln_text_char(ret, '\0');
    }
    kiln_encoding_release(&encoding);
    return status >= 0 && ret->failed ? kiln_error_nomem(err, ret->length) : status;
}

/* ---- Decoding as tokens arrive --------------------------------------------------------------- */

static bool ends_with_replacement(const KilnText *text)
{
    return text->length >= 3 && memcmp(text->data + text->length - 3, "\xef\xbf\xbd", 3) == 0;
}

/* The text of the last ids with the new one, beyond their text without it. The ids before those
 * that are shown now are kept, for a decoder may treat the first token in another way. */
KilnStatus kiln_tokenizer_decode_next(const KilnInstance *tokenizer, KilnDecodeStream *stream,
                                      int32_t id, bool skip_special, KilnText *ret, KilnError *err)
{
    KilnText now = { 0 };

    if (!KILN_RESERVE(stream->ids, stream->capacity, stream->n + 1))
        return kiln_error_nomem(err, stream->capacity * sizeof(*stream->ids));
    stream->ids[stream->n++] = id;
    KilnStatus status = kiln_tokenizer_decode(tokenizer, stream->ids, stream->n, skip_special, &now,
                                              err);
    if (status >= 0 && now.length > stream->before.length && !ends_with_replacement(&now)) {
        kiln_text_append_n(ret, now.data + stream->before.length,
                           now.length - stream->before.length);
        memmove(stream->ids, stream->ids + stream->shown,
                (stream->n - stream->shown) * sizeof(*stream->ids));
        stream->n -= stream->shown;
        stream->shown = stream->n;
        kiln_text_clear(&stream->before);
        status = kiln_tokenizer_decode(tokenizer, stream->ids, stream->n, skip_special,
                                       &stream->before, err);
    }
    if (status >= 0 && (ret->failed || now.failed))
        status = kiln_error_nomem(err, now.length);
    kiln_text_release(&now);
    return status;
}

void kiln_decode_stream_release(KilnDecodeStream *stream)
{
    free(stream->ids);
    kiln_text_release(&stream->before);
    *stream = (KilnDecodeStream) { 0 };
}

/* ---- Pipelines ------------------------------------------------------------------------------- */

static KilnTokenPipeline *pipeline_of(const KilnInstance *self)
{
    return ((KilnPipelineTokenizer *)kiln_state((KilnInstance *)self))->pipeline;
}

static void set_pipeline(KilnInstance *self, KilnTokenPipeline *pipeline)
{
    KilnPipelineTokenizer *state = kiln_state(self);

    kiln_token_pipeline_free(state->pipeline);
    state->pipeline = pipeline;
}

/* Take over what training made, and release the definition. */
static KilnStatus finish_training(KilnInstance *self, KilnStatus status,
                                  KilnTokenPipeline *pipeline, KilnText *definition)
{
    if (status >= 0)
        set_pipeline(self, pipeline);
    kiln_text_release(definition);
    return status;
}

KilnStatus kiln_pipeline_tokenizer_train(KilnInstance *self, KilnText *definition,
                                         const KilnTokenTraining *training, const KilnTexts *texts,
                                         const KilnPoll *poll, KilnError *err)
{
    KilnTokenPipeline *pipeline = NULL;
    const KilnStatus status = definition->failed
                                  ? kiln_error_nomem(err, definition->length)
                                  : kiln_token_pipeline_train(definition->data, training, texts,
                                                              poll, &pipeline, err);

    return finish_training(self, status, pipeline, definition);
}

KilnStatus kiln_pipeline_tokenizer_train_unigram(KilnInstance *self, KilnText *definition,
                                                 const KilnUnigramTraining *training,
                                                 const KilnTexts *texts, const KilnPoll *poll,
                                                 KilnError *err)
{
    KilnTokenPipeline *pipeline = NULL;
    const KilnStatus status = definition->failed
                                  ? kiln_error_nomem(err, definition->length)
                                  : kiln_token_pipeline_train_unigram(definition->data, training,
                                                                      texts, poll, &pipeline, err);

    return finish_training(self, status, pipeline, definition);
}

KilnStatus kiln_pipeline_tokenizer_open(KilnInstance *self, const char *path, KilnError *err)
{
    KilnTokenPipeline *pipeline = NULL;
    KilnStatus status = kiln_token_pipeline_open(path, &pipeline, err);

    if (status >= 0)
        set_pipeline(self, pipeline);
    return status;
}

KilnStatus kiln_pipeline_tokenizer_save(const KilnInstance *self, const char *path, KilnError *err)
{
    return kiln_token_pipeline_save(pipeline_of(self), path, err);
}

KilnStatus kiln_pipeline_tokenizer_encode(const KilnInstance *self, const KilnTokenizerInput *input,
                                          KilnEncoding *ret, KilnError *err)
{
    return kiln_token_pipeline_encode(pipeline_of(self), input, ret, err);
}

KilnStatus kiln_pipeline_tokenizer_decode(const KilnInstance *self, const int32_t *ids, size_t n,
                                          bool skip_special, KilnText *ret, KilnError *err)
{
    return kiln_token_pipeline_decode(pipeline_of(self), ids, n, skip_special, ret, err);
}

int64_t kiln_pipeline_tokenizer_size(const KilnInstance *self)
{
    return kiln_token_pipeline_size(pipeline_of(self));
}

KilnString kiln_pipeline_tokenizer_token(const KilnInstance *self, int64_t id)
{
    return kiln_token_pipeline_token(pipeline_of(self), id);
}

int64_t kiln_pipeline_tokenizer_id(const KilnInstance *self, KilnString token)
{
    return kiln_token_pipeline_id(pipeline_of(self), token);
}

int64_t kiln_pipeline_tokenizer_special(const KilnInstance *self, KilnSpecialToken role)
{
    return kiln_token_pipeline_special(pipeline_of(self), role);
}

void kiln_pipeline_tokenizer_release(KilnInstance *self)
{
    kiln_token_pipeline_free(pipeline_of(self));
}
