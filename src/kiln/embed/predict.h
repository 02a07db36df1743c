/* Predictors: a checkpoint that is open for predictions on raw samples in memory. `kiln predict` is
 * a client of the same code.
 *
 * Any number of threads may call a predictor at once. They share its weights, which nothing
 * changes; each call has activations of its own, kept for the next one. Preprocessing and computing
 * run at the same time in all of them, only the recording of a step is one at a time. The library
 * touches no signals and prints nothing but to the spec's console. */
#ifndef KILN_KILN_EMBED_PREDICT_H
#define KILN_KILN_EMBED_PREDICT_H

#include "kiln/embed/registry.h"
#include "kiln/raw.h"
#include "kiln/trainer.h"

typedef struct KilnPredictor KilnPredictor;

/* What to open, and how; borrowed for the call, except where a member says more. */
typedef struct KilnPredictorSpec {
    const KilnRegistry *registry; /* with the plugins of the run; must outlive the predictor */
    /* A checkpoint folder, a run folder (its last), or `last` or `best` of the newest run in
     * outputs/ */
    const char *ckpt_path;
    /* Changes of the run's config ("datamodule.batch_size=64"), NULL-terminated; NULL: none.
     * Worth changing: trainer.threads, the threads of each call (by default one per processor, as
     * in `kiln predict`, which makes one call fastest; for the most samples per second of many
     * calls at once take 1); datamodule.batch_size, the most samples computed together;
     * trainer.plan_cache, bytes for the plans of all calls. */
    const char *const *overrides;
    const KilnConsole *console; /* where warnings go; outlives the predictor. NULL: nowhere */
    /* Calls that compute at the same time; further calls wait. Each has its own activations and an
     * equal share of trainer.plan_cache. 0: one per processor. */
    int max_calls;
} KilnPredictorSpec;

/* Open a checkpoint with the config that made it: read the weights and set up the datamodule's
 * preprocessing, both verified; no data set is opened, and no callback is built. Errors are those
 * of `kiln predict`: a missing or damaged checkpoint (KILN_E_IO, KILN_E_FORMAT), an override that
 * does not fit (KILN_E_KEY, ...); KILN_E_MISSING if the datamodule has no preprocessing or the task
 * no predict step. */
KILN_API KILN_NODISCARD KilnStatus kiln_predictor_open(const KilnPredictorSpec *spec,
                                                       KilnPredictor **ret, KilnError *err);
/* Free it, after the results of its calls. No call may be running: to wait for them is the caller's
 * part. Accepts NULL. */
KILN_API void kiln_predictor_free(KilnPredictor *predictor);
/* The checkpoint's folder, absolute; borrowed. */
KILN_API const char *kiln_predictor_checkpoint(const KilnPredictor *predictor);
/* The features that the network reads, and the names of the classes; borrowed. */
KILN_API const KilnDataSpec *kiln_predictor_data_spec(const KilnPredictor *predictor);
/* The values of a raw sample, in the datamodule's order; borrowed. Returns their number. */
KILN_API size_t kiln_predictor_fields(const KilnPredictor *predictor, const KilnRawField **ret);

/* ---- Predicting ---------------------------------------------------------------------------- */

/* A result of a sample that is no tensor. */
typedef struct KilnNamedResult {
    const char *name;
    const char *json; /* a JSON value */
} KilnNamedResult;

/* The results of one raw sample. */
typedef struct KilnPrediction {
    KilnStatus status; /* KILN_OK, or why the sample could not be prepared: it has no outputs */
    const char *error; /* the message; NULL: none */
    /* What the task's predict step gives (kiln_step_output), in its order. The shape is that of one
     * sample; an axis of varying length is as long as the sample was padded to. */
    const KilnOutputView *outputs;
    size_t n_outputs;
    /* What its finish_step gives (kiln_results_set): texts, decoded sequences. */
    const KilnNamedResult *results;
    size_t n_results;
} KilnPrediction;

typedef struct KilnPredictions {
    const KilnPrediction *list; /* one per raw sample, in their order */
    size_t n;
} KilnPredictions;

/* Predict `n` raw samples. Several are prepared by several threads, and computed in batches of at
 * most datamodule.batch_size; equal samples in equal batches give equal bytes, whatever other calls
 * run. A sample that can't be prepared has an error of its own, and the others are computed. Of the
 * task's own hooks only setup and teardown are called, at opening and freeing. *ret is owned by the
 * caller (kiln_predictions_free). Fails as a whole when memory is out or the step can't be
 * computed. */
KILN_API KILN_NODISCARD KilnStatus kiln_predict(KilnPredictor *predictor,
                                                const KilnRawSample *samples, size_t n,
                                                KilnPredictions **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_predictions_free(KilnPredictions *predictions);
/* The output of that name; NULL if there is none. */
KILN_API const KilnOutputView *kiln_prediction_output(const KilnPrediction *prediction,
                                                      const char *name);

/* Prepare one raw sample as kiln_predict does, without computing anything: *ret has room and values
 * for each feature of the data spec, NULL for labels, and the lengths of varying ones. Owned by the
 * caller (kiln_predictor_sample_free). */
KILN_API KILN_NODISCARD KilnStatus kiln_predictor_preprocess(const KilnPredictor *predictor,
                                                             const KilnRawSample *raw,
                                                             KilnSample **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_predictor_sample_free(const KilnPredictor *predictor, KilnSample *sample);

#endif
