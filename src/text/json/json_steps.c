/* Reads normalizers, pre-tokenizers, post-processors and decoders. */
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/json/base64.h"
#include "text/json/reader.h"

/* ---- Normalizers ----------------------------------------------------------------------------- */

static KilnStatus read_charsmap(const KilnJsonPart *part, KilnCharsmap *ret)
{
    const char *text = json_string_value(json_object_get(part->object, "precompiled_charsmap"));
    unsigned char *data = NULL;
    size_t n = 0;

    if (text == NULL || !kiln_base64_decode(text, &data, &n) || !kiln_charsmap_read(data, n, ret)) {
        free(data);
        return kiln_json_part_fail(part, "precompiled_charsmap",
                                   "expected SentencePiece's map in base64");
    }
    free(data);
    return KILN_OK;
}

static KilnStatus read_bert_normalizer(const KilnJsonPart *part, KilnNormalizer *step)
{
    KilnStatus status =
        kiln_json_part_keys(part, "type clean_text handle_chinese_chars strip_accents lowercase");

    step->clean_text = step->handle_chinese_chars = step->lowercase = true;
    if (status >= 0)
        status = kiln_json_part_flag(part, "clean_text", &step->clean_text);
    if (status >= 0)
        status = kiln_json_part_flag(part, "handle_chinese_chars", &step->handle_chinese_chars);
    if (status >= 0)
        status = kiln_json_part_flag(part, "lowercase", &step->lowercase);
    step->strip_accents = step->lowercase; /* unless it is given */
    return status < 0 ? status : kiln_json_part_flag(part, "strip_accents", &step->strip_accents);
}

KilnStatus kiln_json_read_normalizer(const KilnJsonPart *part, void *ctx)
{
    static const char *const names[] = { "NFC",       "NFD",     "NFKC",         "NFKD",
                                         "Lowercase", "Strip",   "StripAccents", "BertNormalizer",
                                         "Replace",   "Prepend", "Nmt",          "Precompiled",
                                         NULL };
    KilnTokenPipeline *pipeline = ctx;
    int type = 0;
    KilnStatus status = kiln_json_part_choice(part, "type", names, &type);

    if (status < 0)
        return status;
    if (!KILN_RESERVE(pipeline->normalizers, pipeline->normalizers_capacity,
                      pipeline->n_normalizers + 1))
        return kiln_error_nomem(part->err, sizeof(KilnNormalizer));
    KilnNormalizer *step = &pipeline->normalizers[pipeline->n_normalizers++];
    *step = (KilnNormalizer) { .type = type < 4 ? KILN_NORMALIZE_FORM
                                                : (KilnNormalizerType)(type - 3) };
    switch (step->type) {
    case KILN_NORMALIZE_FORM:
        step->form = (KilnNormalForm[]) { KILN_NFC, KILN_NFD, KILN_NFKC, KILN_NFKD }[type];
        return kiln_json_part_keys(part, "type");
    case KILN_NORMALIZE_STRIP:
        status = kiln_json_part_keys(part, "type strip_left strip_right");
        if (status >= 0)
            status = kiln_json_part_flag(part, "strip_left", &step->left);
        return status < 0 ? status : kiln_json_part_flag(part, "strip_right", &step->right);
    case KILN_NORMALIZE_BERT:
        return read_bert_normalizer(part, step);
    case KILN_NORMALIZE_REPLACE:
        status = kiln_json_part_keys(part, "type pattern content");
        if (status >= 0)
            status = kiln_json_part_pattern(part, "pattern", &step->regex);
        return status < 0 ? status : kiln_json_part_text(part, "content", true, &step->content);
    case KILN_NORMALIZE_PREPEND:
        status = kiln_json_part_keys(part, "type prepend");
        return status < 0 ? status : kiln_json_part_text(part, "prepend", true, &step->content);
    case KILN_NORMALIZE_PRECOMPILED:
        status = kiln_json_part_keys(part, "type precompiled_charsmap");
        return status < 0 ? status : read_charsmap(part, &step->charsmap);
    default:
        return kiln_json_part_keys(part, "type");
    }
}

/* ---- Pre-tokenizers -------------------------------------------------------------------------- */

static const char *const behaviors[] = { "Removed",        "Isolated",   "MergedWithPrevious",
                                         "MergedWithNext", "Contiguous", NULL };
static const char *const schemes[] = { "first", "never", "always", NULL };

/* prepend_scheme, or add_prefix_space of older files. */
static KilnStatus read_scheme(const KilnJsonPart *part, int *ret)
{
    bool prefix = true;
    KilnStatus status = kiln_json_part_flag(part, "add_prefix_space", &prefix);

    *ret = prefix ? KILN_PREPEND_ALWAYS : KILN_PREPEND_NEVER;
    if (status < 0 || json_object_get(part->object, "prepend_scheme") == NULL)
        return status;
    return kiln_json_part_choice(part, "prepend_scheme", schemes, ret);
}

static KilnStatus read_byte_level(const KilnJsonPart *part, KilnPreTokenizer *step)
{
    KilnStatus status = kiln_json_part_keys(part, "type add_prefix_space trim_offsets use_regex");

    step->add_prefix_space = step->use_regex = true;
    if (status >= 0)
        status = kiln_json_part_flag(part, "add_prefix_space", &step->add_prefix_space);
    return status < 0 ? status : kiln_json_part_flag(part, "use_regex", &step->use_regex);
}

static KilnStatus read_metaspace(const KilnJsonPart *part, KilnPreTokenizer *step)
{
    int scheme = KILN_PREPEND_ALWAYS;
    KilnStatus status =
        kiln_json_part_keys(part, "type replacement add_prefix_space prepend_scheme split str_rep");

    step->split = true;
    if (status >= 0)
        status = kiln_json_part_character(part, "replacement", step->replacement);
    if (status >= 0)
        status = read_scheme(part, &scheme);
    step->prepend = (KilnPrependScheme)scheme;
    return status < 0 ? status : kiln_json_part_flag(part, "split", &step->split);
}

static KilnStatus read_split(const KilnJsonPart *part, KilnPreTokenizer *step)
{
    int behavior = KILN_SPLIT_ISOLATED;
    KilnStatus status = kiln_json_part_keys(part, "type pattern behavior invert");

    if (status >= 0)
        status = kiln_json_part_pattern(part, "pattern", &step->regex);
    if (status >= 0)
        status = kiln_json_part_choice(part, "behavior", behaviors, &behavior);
    step->behavior = (KilnSplitBehavior)behavior;
    return status < 0 ? status : kiln_json_part_flag(part, "invert", &step->invert);
}

static KilnStatus read_punctuation(const KilnJsonPart *part, KilnPreTokenizer *step)
{
    int behavior = KILN_SPLIT_ISOLATED;
    KilnStatus status = kiln_json_part_keys(part, "type behavior");

    if (status >= 0 && json_object_get(part->object, "behavior") != NULL)
        status = kiln_json_part_choice(part, "behavior", behaviors, &behavior);
    step->behavior = (KilnSplitBehavior)behavior;
    return status;
}

KilnStatus kiln_json_read_pre_tokenizer(const KilnJsonPart *part, void *ctx)
{
    static const char *const names[] = {
        "ByteLevel", "BertPreTokenizer", "Whitespace", "WhitespaceSplit",    "Metaspace",
        "Split",     "Punctuation",      "Digits",     "CharDelimiterSplit", NULL
    };
    KilnTokenPipeline *pipeline = ctx;
    int type = 0;
    KilnStatus status = kiln_json_part_choice(part, "type", names, &type);

    if (status < 0)
        return status;
    if (!KILN_RESERVE(pipeline->pre_tokenizers, pipeline->pre_tokenizers_capacity,
                      pipeline->n_pre_tokenizers + 1))
        return kiln_error_nomem(part->err, sizeof(KilnPreTokenizer));
    KilnPreTokenizer *step = &pipeline->pre_tokenizers[pipeline->n_pre_tokenizers++];
    *step = (KilnPreTokenizer) { .type = (KilnPreTokenizerType)type };
    switch (step->type) {
    case KILN_PRE_BYTE_LEVEL:
        return read_byte_level(part, step);
    case KILN_PRE_METASPACE:
        return read_metaspace(part, step);
    case KILN_PRE_SPLIT:
        return read_split(part, step);
    case KILN_PRE_PUNCTUATION:
        return read_punctuation(part, step);
    case KILN_PRE_DIGITS:
        status = kiln_json_part_keys(part, "type individual_digits");
        return status < 0
                   ? status
                   : kiln_json_part_flag(part, "individual_digits", &step->individual_digits);
    case KILN_PRE_CHAR_DELIMITER_SPLIT:
        status = kiln_json_part_keys(part, "type delimiter");
        return status < 0 ? status : kiln_json_part_character(part, "delimiter", step->replacement);
    default:
        return kiln_json_part_keys(part, "type");
    }
}

/* ---- Post-processors ------------------------------------------------------------------------- */

/* ["[SEP]", 102] */
static KilnStatus read_pair(const KilnJsonPart *part, const char *key, int32_t *ret)
{
    const json_t *id = json_array_get(json_object_get(part->object, key), 1);

    if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
        return kiln_json_part_fail(part, key, "expected [TOKEN, ID]");
    *ret = (int32_t)json_integer_value(id);
    return KILN_OK;
}

static KilnStatus read_special_ids(const KilnJsonPart *part, const char *name,
                                   KilnTemplatePiece *ret)
{
    const json_t *ids = json_object_get(
        json_object_get(json_object_get(part->object, "special_tokens"), name), "ids");
    const size_t n = json_array_size(ids);

    if (n == 0)
        return kiln_json_part_fail(part, "special_tokens", "lacks the ids of %s", name);
    ret->ids = malloc(n * sizeof(*ret->ids));
    if (ret->ids == NULL)
        return kiln_error_nomem(part->err, n * sizeof(*ret->ids));
    for (size_t i = 0; i < n; i++) {
        const json_int_t id = json_integer_value(json_array_get(ids, i));

        if (id < 0 || id > INT32_MAX)
            return kiln_json_part_fail(part, "special_tokens", "the id of %s is out of range",
                                       name);
        ret->ids[ret->n_ids++] = (int32_t)id;
    }
    return KILN_OK;
}

/* [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, ...]
 */
static KilnStatus read_template(const KilnJsonPart *part, const char *key, KilnTemplate *ret)
{
    const json_t *list = json_object_get(part->object, key);

    if (!json_is_array(list))
        return kiln_json_part_fail(part, key, "expected a list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const json_t *special = json_object_get(entry, "SpecialToken");
        const json_t *what = special != NULL ? special : json_object_get(entry, "Sequence");
        const char *id = json_string_value(json_object_get(what, "id"));
        const json_int_t type = json_integer_value(json_object_get(what, "type_id"));

        if (id == NULL || type < 0 || type > UINT8_MAX ||
            (special == NULL && strcmp(id, "A") != 0 && strcmp(id, "B") != 0))
            return kiln_json_part_fail(part, key,
                                       "entry %zu: expected a SpecialToken, or Sequence A or B, "
                                       "with a type_id below 256",
                                       i);
        if (!KILN_RESERVE(ret->items, ret->capacity, ret->n + 1))
            return kiln_error_nomem(part->err, sizeof(*ret->items));
        KilnTemplatePiece *piece = &ret->items[ret->n++];
        *piece = (KilnTemplatePiece) { .sequence = special != NULL ? -1 : *id - 'A',
                                       .type = (uint8_t)type };
        if (special != NULL) {
            KilnStatus status = read_special_ids(part, id, piece);

            if (status < 0)
                return status;
        }
    }
    return KILN_OK;
}

KilnStatus kiln_json_read_processor(const KilnJsonPart *part, void *ctx)
{
    static const char *const names[] = { "TemplateProcessing", "BertProcessing",
                                         "RobertaProcessing", "ByteLevel", NULL };
    KilnTokenPipeline *pipeline = ctx;
    int type = 0;
    KilnStatus status = kiln_json_part_choice(part, "type", names, &type);

    if (status < 0)
        return status;
    if (!KILN_RESERVE(pipeline->processors, pipeline->processors_capacity,
                      pipeline->n_processors + 1))
        return kiln_error_nomem(part->err, sizeof(KilnProcessor));
    KilnProcessor *step = &pipeline->processors[pipeline->n_processors++];
    *step = (KilnProcessor) { .type = (KilnProcessorType)type };
    if (step->type == KILN_PROCESS_TEMPLATE) {
        status = kiln_json_part_keys(part, "type single pair special_tokens");
        if (status >= 0)
            status = read_template(part, "single", &step->single);
        return status < 0 ? status : read_template(part, "pair", &step->pair);
    }
    if (step->type != KILN_PROCESS_BYTE_LEVEL) {
        status = read_pair(part, "cls", &step->cls);
        if (status >= 0)
            status = read_pair(part, "sep", &step->sep);
    }
    if (step->type == KILN_PROCESS_BERT || status < 0)
        return status < 0 ? status : kiln_json_part_keys(part, "type cls sep");
    step->trim_offsets = step->add_prefix_space = true;
    status = kiln_json_part_keys(part, "type cls sep trim_offsets add_prefix_space use_regex");
    if (status >= 0)
        status = kiln_json_part_flag(part, "trim_offsets", &step->trim_offsets);
    return status < 0 ? status
                      : kiln_json_part_flag(part, "add_prefix_space", &step->add_prefix_space);
}

/* ---- Decoders -------------------------------------------------------------------------------- */

static KilnStatus read_metaspace_decoder(const KilnJsonPart *part, KilnDecoder *step)
{
    int scheme = KILN_PREPEND_ALWAYS;
    KilnStatus status =
        kiln_json_part_keys(part, "type replacement add_prefix_space prepend_scheme split str_rep");

    if (status >= 0)
        status = kiln_json_part_character(part, "replacement", step->character);
    if (status >= 0)
        status = read_scheme(part, &scheme);
    step->prepends = scheme != KILN_PREPEND_NEVER;
    return status;
}

static KilnStatus read_strip(const KilnJsonPart *part, KilnDecoder *step)
{
    KilnStatus status = kiln_json_part_keys(part, "type content start stop");

    if (status >= 0)
        status = kiln_json_part_character(part, "content", step->character);
    if (status >= 0)
        status = kiln_json_part_count(part, "start", &step->start);
    return status < 0 ? status : kiln_json_part_count(part, "stop", &step->stop);
}

KilnStatus kiln_json_read_decoder(const KilnJsonPart *part, void *ctx)
{
    static const char *const names[] = { "ByteLevel",  "WordPiece",    "Metaspace",
                                         "BPEDecoder", "Replace",      "Fuse",
                                         "Strip",      "ByteFallback", NULL };
    KilnTokenPipeline *pipeline = ctx;
    int type = 0;
    KilnStatus status = kiln_json_part_choice(part, "type", names, &type);

    if (status < 0)
        return status;
    if (!KILN_RESERVE(pipeline->decoders, pipeline->decoders_capacity, pipeline->n_decoders + 1))
        return kiln_error_nomem(part->err, sizeof(KilnDecoder));
    KilnDecoder *step = &pipeline->decoders[pipeline->n_decoders++];
    *step = (KilnDecoder) { .type = (KilnDecoderType)type };
    switch (step->type) {
    case KILN_DECODE_BYTE_LEVEL:
        return kiln_json_part_keys(part, "type add_prefix_space trim_offsets use_regex");
    case KILN_DECODE_WORDPIECE:
        step->cleanup = true;
        status = kiln_json_part_keys(part, "type prefix cleanup");
        if (status >= 0)
            status = kiln_json_part_flag(part, "cleanup", &step->cleanup);
        return status < 0 ? status : kiln_json_part_text(part, "prefix", true, &step->text);
    case KILN_DECODE_METASPACE:
        return read_metaspace_decoder(part, step);
    case KILN_DECODE_BPE:
        status = kiln_json_part_keys(part, "type suffix");
        return status < 0 ? status : kiln_json_part_text(part, "suffix", true, &step->text);
    case KILN_DECODE_REPLACE:
        status = kiln_json_part_keys(part, "type pattern content");
        if (status >= 0)
            status = kiln_json_part_pattern(part, "pattern", &step->regex);
        return status < 0 ? status : kiln_json_part_text(part, "content", true, &step->text);
    case KILN_DECODE_STRIP:
        return read_strip(part, step);
    default:
        return kiln_json_part_keys(part, "type");
    }
}
