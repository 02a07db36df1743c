/* Reads the parts of a tokenizer.json. Errors name the file and the key. */
#ifndef KILN_TEXT_JSON_READER_H
#define KILN_TEXT_JSON_READER_H

#include <jansson.h>

#include "text/pipeline/pipeline.h"

/* A JSON object that is being read. */
typedef struct KilnJsonPart {
    const char *file;
    const char *path; /* "pre_tokenizer.pretokenizers[1]" */
    const json_t *object;
    KilnError *err;
} KilnJsonPart;

/* Fill err with "FILE: PATH.KEY: ...", KILN_E_FORMAT. */
KilnStatus kiln_json_part_fail(const KilnJsonPart *part, const char *key, const char *format, ...)
    KILN_PRINTF(3, 4);
/* Refuse keys that are not in the list, which is separated by spaces: they could change the result.
 */
KILN_NODISCARD KilnStatus kiln_json_part_keys(const KilnJsonPart *part, const char *keys);
/* *ret is left as it is when the key is missing or null. */
KILN_NODISCARD KilnStatus kiln_json_part_flag(const KilnJsonPart *part, const char *key, bool *ret);
KILN_NODISCARD KilnStatus kiln_json_part_count(const KilnJsonPart *part, const char *key,
                                               int64_t *ret);
/* Owned by the caller. A missing or null text is an error if `required`, else NULL. */
KILN_NODISCARD KilnStatus kiln_json_part_text(const KilnJsonPart *part, const char *key,
                                              bool required, char **ret);
/* A single character. */
KILN_NODISCARD KilnStatus kiln_json_part_character(const KilnJsonPart *part, const char *key,
                                                   char ret[8]);
/* {"String": TEXT} or {"Regex": PATTERN}. */
KILN_NODISCARD KilnStatus kiln_json_part_pattern(const KilnJsonPart *part, const char *key,
                                                 KilnRegex **ret);
/* The number of the text at `key` in a list of names, which ends with NULL. */
KILN_NODISCARD KilnStatus kiln_json_part_choice(const KilnJsonPart *part, const char *key,
                                                const char *const *names, int *ret);
/* Call `read` for the object at `key` of the part, and for each entry of the lists `list` in
 * objects of type Sequence, in their order. Nothing is called for null. */
typedef KilnStatus KilnJsonStep(const KilnJsonPart *part, void *ctx);
KILN_NODISCARD KilnStatus kiln_json_part_steps(const KilnJsonPart *part, const char *key,
                                               const char *list, KilnJsonStep *read, void *ctx);

KILN_NODISCARD KilnStatus kiln_json_read_normalizer(const KilnJsonPart *part, void *pipeline);
KILN_NODISCARD KilnStatus kiln_json_read_pre_tokenizer(const KilnJsonPart *part, void *pipeline);
KILN_NODISCARD KilnStatus kiln_json_read_processor(const KilnJsonPart *part, void *pipeline);
KILN_NODISCARD KilnStatus kiln_json_read_decoder(const KilnJsonPart *part, void *pipeline);
KILN_NODISCARD KilnStatus kiln_json_read_model(const KilnJsonPart *part,
                                               KilnTokenPipeline *pipeline);
KILN_NODISCARD KilnStatus kiln_json_read_added_tokens(const KilnJsonPart *part,
                                                      KilnTokenPipeline *pipeline);

#endif
