/* Reads the model and the added tokens. */
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/json/reader.h"

/* ---- Vocabularies ---------------------------------------------------------------------------- */

/* {"token": id, ...} */
static KilnStatus read_vocab(const KilnJsonPart *part, KilnVocab *ret)
{
    json_t *tokens = json_object_get(part->object, "vocab"), *value;
    const char *token;

    if (!json_is_object(tokens))
        return kiln_json_part_fail(part, "vocab", "expected {TOKEN: ID, ...}");
    const size_t most = json_object_size(tokens) * 4 + 65536; /* ids may have gaps */
    json_object_foreach(tokens, token, value)
    {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;

        if (id < 0 || (size_t)id >= most)
            return kiln_json_part_fail(part, "vocab", "`%.100s`: expected an id from 0 to %zu",
                                       token, most - 1);
        if ((size_t)id < ret->n && ret->tokens[id].data != NULL)
            return kiln_json_part_fail(part, "vocab", "`%.100s` and `%.100s` have the same id %lld",
                                       ret->tokens[id].data, token, (long long)id);
        if (!kiln_vocab_add(ret, (KilnString) { token, strlen(token) }, (int32_t)id))
            return kiln_error_nomem(part->err, ret->capacity * sizeof(*ret->tokens));
    }
    return KILN_OK;
}

/* [["token", score], ...] */
static KilnStatus read_scores(const KilnJsonPart *part, KilnTokenModel *model)
{
    const json_t *list = json_object_get(part->object, "vocab");
    const size_t n = json_array_size(list);

    if (!json_is_array(list) || n > INT32_MAX)
        return kiln_json_part_fail(part, "vocab", "expected [[TOKEN, SCORE], ...]");
    model->scores = malloc((n + 1) * sizeof(*model->scores));
    if (model->scores == NULL)
        return kiln_error_nomem(part->err, n * sizeof(*model->scores));
    for (size_t i = 0; i < n; i++) {
        const json_t *token = json_array_get(json_array_get(list, i), 0);
        const json_t *score = json_array_get(json_array_get(list, i), 1);

        if (!json_is_string(token) || !json_is_number(score))
            return kiln_json_part_fail(part, "vocab", "entry %zu: expected [TOKEN, SCORE]", i);
        model->scores[i] = json_number_value(score);
        if (!kiln_vocab_add(&model->vocab,
                            (KilnString) { json_string_value(token), json_string_length(token) },
                            (int32_t)i))
            return kiln_error_nomem(part->err, n * sizeof(KilnString));
    }
    return KILN_OK;
}

/* The id of model.unk_token; a token that the vocabulary lacks counts as none. */
static KilnStatus read_unk(const KilnJsonPart *part, KilnTokenModel *model)
{
    KilnStatus status = kiln_json_part_text(part, "unk_token", false, &model->unk_token);

    model->unk = model->unk_token == NULL
                     ? -1
                     : kiln_vocab_find(&model->vocab, model->unk_token, strlen(model->unk_token));
    return status;
}

static void find_bytes(KilnTokenModel *model)
{
    for (int i = 0; i < 256; i++) {
        char name[8];

        snprintf(name, sizeof(name), "<0x%02X>", (unsigned)i);
        model->byte_ids[i] = kiln_vocab_find(&model->vocab, name, 6);
    }
}

/* ---- BPE ------------------------------------------------------------------------------------- */

/* The two tokens of a merge: ["a", "b"], or "a b" in older files. */
static bool read_merge(const KilnVocab *vocab, const json_t *merge, int32_t ret[2])
{
    const char *text = json_string_value(merge);
    const char *a = text != NULL ? text : json_string_value(json_array_get(merge, 0));
    const char *space = text != NULL ? strchr(text, ' ') : NULL;
    const char *b = text == NULL    ? json_string_value(json_array_get(merge, 1))
                    : space != NULL ? space + 1
                                    : NULL;

    if (a == NULL || b == NULL)
        return false;
    ret[0] = kiln_vocab_find(vocab, a, space != NULL ? (size_t)(space - a) : strlen(a));
    ret[1] = kiln_vocab_find(vocab, b, strlen(b));
    return ret[0] >= 0 && ret[1] >= 0;
}

static KilnStatus read_merges(const KilnJsonPart *part, KilnTokenModel *model)
{
    const json_t *list = json_object_get(part->object, "merges");
    size_t bad = 0;

    if (!json_is_array(list) || json_array_size(list) > INT32_MAX)
        return kiln_json_part_fail(part, "merges", "expected [[TOKEN, TOKEN], ...]");
    if (!KILN_RESERVE(model->merge_list, model->merge_list_capacity, json_array_size(list) + 1))
        return kiln_error_nomem(part->err, json_array_size(list) * sizeof(*model->merge_list));
    for (size_t i = 0; i < json_array_size(list); i++, model->n_merges++)
        if (!read_merge(&model->vocab, json_array_get(list, i), model->merge_list[i]))
            return kiln_json_part_fail(part, "merges",
                                       "entry %zu: expected two tokens of the vocabulary", i);
    KilnStatus status = kiln_bpe_prepare(model, &bad, part->err);
    return status == KILN_E_FORMAT
               ? kiln_json_part_fail(part, "merges",
                                     "entry %zu: the vocabulary lacks the token "
                                     "that it makes",
                                     bad)
               : status;
}

static KilnStatus read_bpe(const KilnJsonPart *part, KilnTokenModel *model)
{
    const json_t *dropout = json_object_get(part->object, "dropout");
    KilnStatus status = kiln_json_part_keys(
        part, "type dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk "
              "byte_fallback ignore_merges vocab merges");

    if (status >= 0 && json_number_value(dropout) != 0)
        return kiln_json_part_fail(part, "dropout",
                                   "kiln segments without chance; expected null or 0");
    if (status >= 0)
        status = read_vocab(part, &model->vocab);
    if (status >= 0)
        status = read_unk(part, model);
    if (status >= 0)
        status = kiln_json_part_text(part, "continuing_subword_prefix", false, &model->prefix);
    if (status >= 0)
        status = kiln_json_part_text(part, "end_of_word_suffix", false, &model->suffix);
    if (status >= 0)
        status = kiln_json_part_flag(part, "fuse_unk", &model->fuse_unk);
    if (status >= 0)
        status = kiln_json_part_flag(part, "byte_fallback", &model->byte_fallback);
    if (status >= 0)
        status = kiln_json_part_flag(part, "ignore_merges", &model->ignore_merges);
    return status < 0 ? status : read_merges(part, model);
}

/* ---- The others ------------------------------------------------------------------------------ */

static KilnStatus read_wordpiece(const KilnJsonPart *part, KilnTokenModel *model)
{
    int64_t most = 100;
    KilnStatus status = kiln_json_part_keys(
        part, "type unk_token continuing_subword_prefix max_input_chars_per_word vocab");

    if (status >= 0)
        status = read_vocab(part, &model->vocab);
    if (status >= 0)
        status = read_unk(part, model);
    if (status >= 0)
        status = kiln_json_part_text(part, "continuing_subword_prefix", true, &model->prefix);
    if (status >= 0)
        status = kiln_json_part_count(part, "max_input_chars_per_word", &most);
    model->max_chars = (size_t)most;
    return status;
}

static KilnStatus read_unigram(const KilnJsonPart *part, KilnTokenModel *model)
{
    int64_t unk = -1;
    KilnStatus status = kiln_json_part_keys(part, "type unk_id vocab byte_fallback");

    if (status >= 0)
        status = read_scores(part, model);
    if (status >= 0)
        status = kiln_json_part_count(part, "unk_id", &unk);
    if (status >= 0)
        status = kiln_json_part_flag(part, "byte_fallback", &model->byte_fallback);
    if (status >= 0 && unk >= (int64_t)model->vocab.n)
        return kiln_json_part_fail(part, "unk_id", "expected an id below %zu", model->vocab.n);
    model->unk = (int32_t)unk;
    return status < 0 ? status : kiln_unigram_prepare(model, part->err);
}

static KilnStatus read_wordlevel(const KilnJsonPart *part, KilnTokenModel *model)
{
    KilnStatus status = kiln_json_part_keys(part, "type unk_token vocab");

    if (status >= 0)
        status = read_vocab(part, &model->vocab);
    return status < 0 ? status : read_unk(part, model);
}

/* The model's type; files from before it was written have other keys. */
static KilnStatus read_type(const KilnJsonPart *part, int *ret)
{
    static const char *const names[] = { "BPE", "WordPiece", "Unigram", "WordLevel", NULL };

    if (json_object_get(part->object, "type") != NULL)
        return kiln_json_part_choice(part, "type", names, ret);
    *ret = json_object_get(part->object, "merges") != NULL ? KILN_MODEL_BPE
           : json_object_get(part->object, "max_input_chars_per_word") != NULL
               ? KILN_MODEL_WORDPIECE
           : json_is_array(json_object_get(part->object, "vocab")) ? KILN_MODEL_UNIGRAM
                                                                   : KILN_MODEL_WORDLEVEL;
    return KILN_OK;
}

KilnStatus kiln_json_read_model(const KilnJsonPart *part, KilnTokenPipeline *pipeline)
{
    static KilnStatus (*const readers[])(const KilnJsonPart *part,
                                         KilnTokenModel *model) = { read_bpe, read_wordpiece,
                                                                    read_unigram, read_wordlevel };
    int type = 0;
    KilnStatus status = read_type(part, &type);

    if (status < 0)
        return status;
    pipeline->model.type = (KilnModelType)type;
    pipeline->model.unk = -1;
    status = readers[type](part, &pipeline->model);
    find_bytes(&pipeline->model);
    return status;
}

/* ---- Added tokens ---------------------------------------------------------------------------- */

static KilnStatus read_added_token(const KilnJsonPart *part, KilnTokenPipeline *pipeline)
{
    KilnAddedTokens *added = &pipeline->added;
    KilnAddedToken token = { .normalized = true };
    int64_t id = -1;
    KilnStatus status =
        kiln_json_part_keys(part, "id content single_word lstrip rstrip normalized special");

    if (status >= 0)
        status = kiln_json_part_count(part, "id", &id);
    if (status >= 0 && (id < 0 || (size_t)id > pipeline->model.vocab.n * 4 + 1000000))
        return kiln_json_part_fail(part, "id", "expected an id near the vocabulary's");
    token.id = (int32_t)id;
    if (status >= 0)
        status = kiln_json_part_flag(part, "single_word", &token.single_word);
    if (status >= 0)
        status = kiln_json_part_flag(part, "lstrip", &token.lstrip);
    if (status >= 0)
        status = kiln_json_part_flag(part, "rstrip", &token.rstrip);
    if (status >= 0)
        status = kiln_json_part_flag(part, "normalized", &token.normalized);
    if (status >= 0)
        status = kiln_json_part_flag(part, "special", &token.special);
    if (status >= 0)
        status = kiln_json_part_text(part, "content", true, &token.content);
    if (status < 0)
        return status;
    token.length = strlen(token.content);
    if (!KILN_RESERVE(added->items, added->capacity, added->n + 1)) {
        free(token.content);
        return kiln_error_nomem(part->err, sizeof(token));
    }
    added->items[added->n++] = token;
    return kiln_vocab_add(&added->by_content, (KilnString) { token.content, token.length },
                          token.id)
               ? KILN_OK
               : kiln_error_nomem(part->err, token.length);
}

KilnStatus kiln_json_read_added_tokens(const KilnJsonPart *part, KilnTokenPipeline *pipeline)
{
    const json_t *list = json_object_get(part->object, "added_tokens");
    KilnStatus status = KILN_OK;

    if (list != NULL && !json_is_null(list) && !json_is_array(list))
        return kiln_json_part_fail(part, "added_tokens", "expected a list");
    for (size_t i = 0; i < json_array_size(list) && status >= 0; i++) {
        char path[48];
        const json_t *object = json_array_get(list, i);

        snprintf(path, sizeof(path), "added_tokens[%zu]", i);
        const KilnJsonPart token = { part->file, path, object, part->err };
        status = json_is_object(object) ? read_added_token(&token, pipeline)
                                        : kiln_json_part_fail(&token, "", "expected an object");
    }
    return status;
}
