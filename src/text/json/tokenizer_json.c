/* Opens a tokenizer.json. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/json.h"
#include "base/system/file.h"
#include "text/json/reader.h"

enum { LARGEST_FILE = 1 << 30 };

static KilnStatus read_all(const KilnJsonPart *part, KilnTokenPipeline *pipeline)
{
    const json_t *model = json_object_get(part->object, "model");
    const KilnJsonPart inner = { part->file, "model", model, part->err };
    KilnStatus status = kiln_json_part_keys(
        part, "version truncation padding added_tokens normalizer pre_tokenizer post_processor "
              "decoder model");

    if (status >= 0 && !json_is_object(model))
        return kiln_json_part_fail(part, "model", "expected an object: is this a tokenizer.json?");
    if (status >= 0)
        status = kiln_json_part_steps(part, "normalizer", "normalizers", kiln_json_read_normalizer,
                                      pipeline);
    if (status >= 0)
        status = kiln_json_part_steps(part, "pre_tokenizer", "pretokenizers",
                                      kiln_json_read_pre_tokenizer, pipeline);
    if (status >= 0)
        status = kiln_json_read_model(&inner, pipeline);
    if (status >= 0)
        status = kiln_json_part_steps(part, "post_processor", "processors",
                                      kiln_json_read_processor, pipeline);
    if (status >= 0)
        status = kiln_json_part_steps(part, "decoder", "decoders", kiln_json_read_decoder,
                                      pipeline);
    return status < 0 ? status : kiln_json_read_added_tokens(part, pipeline);
}

/* A number that differs between tokenizers, for caches. */
static KilnStatus set_fingerprint(KilnTokenPipeline *pipeline, KilnError *err)
{
    char *text = kiln_json_dump(pipeline->document, JSON_COMPACT);

    if (text == NULL)
        return kiln_error_nomem(err, 0);
    pipeline->fingerprint = XXH3_64bits(text, strlen(text));
    free(text);
    return KILN_OK;
}

KilnStatus kiln_pipeline_build(json_t *document, const char *name, KilnTokenPipeline **ret,
                               KilnError *err)
{
    KilnTokenPipeline *pipeline = calloc(1, sizeof(*pipeline));
    const KilnJsonPart part = { name, "", document, err };

    if (pipeline == NULL) {
        json_decref(document);
        return kiln_error_nomem(err, sizeof(*pipeline));
    }
    pipeline->document = document;
    KilnStatus status = json_is_object(document)
                            ? read_all(&part, pipeline)
                            : kiln_json_part_fail(&part, "", "expected an object");
    if (status >= 0)
        status = kiln_pipeline_prepare(pipeline, err);
    if (status >= 0)
        status = set_fingerprint(pipeline, err);
    if (status < 0) {
        kiln_token_pipeline_free(pipeline);
        return status;
    }
    *ret = pipeline;
    return KILN_OK;
}

KilnStatus kiln_token_pipeline_open(const char *path, KilnTokenPipeline **ret, KilnError *err)
{
    char *text = NULL;
    size_t size = 0;
    json_error_t why;
    KilnStatus status = kiln_file_read(path, LARGEST_FILE, &text, &size, err);

    if (status < 0)
        return status;
    json_t *document = json_loadb(text, size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (document == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s:%d:%d: %s; expected a tokenizer.json", path,
                              why.line, why.column, why.text);
    return kiln_pipeline_build(document, path, ret, err);
}
