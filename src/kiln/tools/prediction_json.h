/* A row of predictions as a line of JSON, as callback prediction_writer writes it and
 * `kiln predict RUN -` answers with it: begin, then members in any order, then end. Names of
 * members must differ. */
#ifndef KILN_PREDICTION_JSON_H
#define KILN_PREDICTION_JSON_H

#include "kiln/data.h"
#include "kiln/tools/text.h"

/* Append {"index": INDEX and, unless it is NULL, "file": where the sample is from. */
KILN_API void kiln_prediction_json_begin(KilnText *line, int64_t index, const char *file);
/* Append a member that is a text; nothing if `value` is NULL. */
KILN_API void kiln_prediction_json_text(KilnText *line, const char *name, const char *value);
/* Append a member that is JSON already; nothing if `json` is NULL. */
KILN_API void kiln_prediction_json_value(KilnText *line, const char *name, const char *json);
/* Append an output of the sample as a list, with 9 digits; "nan", "inf" and "-inf" are texts, which
 * JSON lacks as numbers. The member "class" comes before probabilities. Of samples with any number
 * of labels (kiln_spec_labels) the output "labels" becomes the names of those that are not 0, and
 * "probabilities" an object with a member for each label. */
KILN_API void kiln_prediction_json_output(KilnText *line, const KilnDataSpec *spec,
                                          const char *name, const float *values, int64_t n);
/* Append } and a line end. */
KILN_API void kiln_prediction_json_end(KilnText *line);

/* The name of the most probable class; NULL: the output `name` has no probabilities of all classes.
 */
KILN_API const char *kiln_prediction_class(const KilnDataSpec *spec, const char *name,
                                           const float *values, int64_t n);

#endif
