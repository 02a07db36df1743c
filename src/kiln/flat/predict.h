/* Flat functions for predictions (see kiln/flat/config.h): raw samples and their results as
 * handles.
 */
#ifndef KILN_KILN_FLAT_PREDICT_H
#define KILN_KILN_FLAT_PREDICT_H

#include "kiln/embed/predict.h"
#include "kiln/embed/registry.h"

/* kiln_predictor_open; the registry must outlive the predictor. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_predictor_open(const KilnRegistry *registry,
                                                            const char *ckpt_path,
                                                            const char *const *overrides,
                                                            int max_calls, KilnPredictor **ret,
                                                            KilnError *err);
/* What it reads and gives, as JSON: {"fields": [{"name", "types": ["path", ...], "optional",
 * "help"}], "features": [{"name", "content", "dtype", "shape", "varies"}], "classes": [NAME, ...]}.
 * Owned by the caller (free). */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_predictor_describe(const KilnPredictor *predictor,
                                                                char **ret, KilnError *err);

/* ---- Raw samples ----------------------------------------------------------------------------- */

/* `n` raw samples without values. */
typedef struct KilnFlatSamples KilnFlatSamples;

/* Owned by the caller; NULL: memory is out. */
KILN_API KilnFlatSamples *kiln_flat_samples_new(size_t n);
/* Accepts NULL. */
KILN_API void kiln_flat_samples_free(KilnFlatSamples *samples);
/* Values of the field `name` (NULL: of the only one that is not optional); texts are copied, arrays
 * and bytes borrowed until the samples are freed. All of them at once: an array of [n, dims...] in
 * row-major order, with `dtype` a KilnDType. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_samples_arrays(KilnFlatSamples *samples,
                                                            const char *name, int dtype, int rank,
                                                            const int64_t *dims, const void *data,
                                                            KilnError *err);
/* Of sample i: an array of its own shape; a text or path (`type` is KILN_RAW_TEXT or
 * KILN_RAW_PATH); the bytes of a file; a number. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_samples_array(KilnFlatSamples *samples, size_t i,
                                                           const char *name, int dtype, int rank,
                                                           const int64_t *dims, const void *data,
                                                           KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_flat_samples_text(KilnFlatSamples *samples, size_t i,
                                                          const char *name, int type,
                                                          const char *text, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_flat_samples_bytes(KilnFlatSamples *samples, size_t i,
                                                           const char *name, const void *data,
                                                           size_t size, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_flat_samples_number(KilnFlatSamples *samples, size_t i,
                                                            const char *name, double number,
                                                            KilnError *err);

/* ---- Predictions ----------------------------------------------------------------------------- */

/* kiln_predict; *ret is freed by kiln_predictions_free. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_predict(KilnPredictor *predictor,
                                                     const KilnFlatSamples *samples,
                                                     KilnPredictions **ret, KilnError *err);
/* The first sample that could not be prepared, from number `from` on, with its message (borrowed);
 * -1: none. */
KILN_API int64_t kiln_flat_predictions_failed(const KilnPredictions *predictions, size_t from,
                                              const char **ret_message);
/* Name and shape of output number `output` of sample i (borrowed, `ret_dims` has room for
 * KILN_MAX_RANK), and whether that shape is the same for all samples; NULL after the last one. */
KILN_API const char *kiln_flat_predictions_output(const KilnPredictions *predictions, size_t i,
                                                  size_t output, int *ret_rank, int64_t *ret_dims,
                                                  bool *ret_same);
/* Copy the values of that output, of samples i to i + n - 1 one after the other, to `to`. Those of
 * a sample that could not be prepared are NaN. They must have the same shape. */
KILN_API void kiln_flat_predictions_copy(const KilnPredictions *predictions, size_t i, size_t n,
                                         size_t output, float *to);
/* The results beside the outputs of sample i, as a JSON object. Owned by the caller (free); NULL:
 * it has none, or memory is out. */
KILN_API char *kiln_flat_predictions_results(const KilnPredictions *predictions, size_t i);

#endif
