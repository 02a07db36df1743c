/* Explanations of predictions: how much each pixel, column or token matters for a score.
 *
 * All methods explain the score of one class (or number) for one sample: the logit, where the
 * prediction is a softmax or sigmoid of it. Baselines are 0 in every feature as the network gets it
 * (of normalized images the mean colour, of standardized columns the mean of the training rows),
 * and a vector of zeros for a token or category.
 *
 * Networks are computed in f32 also where trainer.precision is bf16-mixed or bf16-true (from the
 * weights of the run), in f64 where it is 64-true. The class is the one that kiln_predict gives. */
#ifndef KILN_KILN_EMBED_EXPLANATION_H
#define KILN_KILN_EMBED_EXPLANATION_H

#include "kiln/embed/predict.h"

typedef enum KilnExplainMethod {
    /* Contributions where the task has them, else integrated gradients */
    KILN_EXPLAIN_AUTO,
    /* Gradients of the score along the line from the baseline to the sample, times the way
     * (Sundararajan et al., "Axiomatic attribution for deep networks", 2017), by Gauss-Legendre
     * quadrature as captum's. Attributions add up to the difference of the scores. */
    KILN_EXPLAIN_INTEGRATED_GRADIENTS,
    /* What the score loses when a window of an image, a column or a token becomes the baseline
     * (Zeiler and Fergus, 2014); of overlapping windows the mean, as captum's */
    KILN_EXPLAIN_OCCLUSION,
    /* Feature maps weighted by the mean gradient of each (Selvaraju et al., "Grad-CAM", 2017) */
    KILN_EXPLAIN_GRAD_CAM,
    /* What the module itself says that columns add: the SHAP values of trees */
    KILN_EXPLAIN_CONTRIBUTIONS
} KilnExplainMethod;
/* auto, integrated_gradients, occlusion, grad_cam, contributions. */
KILN_API_TABLE const KilnChoice kiln_explain_methods[6];

/* What to explain, and how. A zeroed one is ready; texts are borrowed for the call. */
typedef struct KilnExplainSpec {
    KilnExplainMethod method;
    const char *target; /* a class by name or number; NULL: the predicted one */
    int64_t steps;      /* of integrated gradients, 1 to 10000; 0: 50 */
    int64_t window;     /* side of occluded squares in pixels; 0: an eighth of the shorter side */
    /* Grad-CAM: a pattern of the layer whose last map is explained (* ? [...]), or of one that it
     * is part of, as layer4 of layer4.1.bn2. NULL: the last map of more than one place that all
     * paths from the image to the score pass through; of a ResNet what layer4 gives. */
    const char *layer;
    const KilnPoll *poll; /* called in this thread between batches; NULL: none */
} KilnExplainSpec;

/* What the elements of one feature add to the score. */
typedef struct KilnAttribution {
    const KilnFeature *feature;
    const void *input; /* the feature as the network got it, of the sample's length */
    int64_t length;    /* elements of `input` along its first axis */
    /* As the input. Of images by occlusion [height, width, 1], by Grad-CAM [h, w, 1] in the size of
     * the map, at least 0. */
    KilnShape shape;
    const float *values;
    const char *const *texts; /* of tokens: what each id stands for, "#7" if that is unknown */
    bool is_bag;              /* of tokens: the ids have no order, as those of n-grams */
} KilnAttribution;

typedef struct KilnExplanation {
    KilnExplainMethod method;
    int64_t target;
    const char *target_name; /* NULL: the target is no class */
    double score, baseline;  /* of the target: for the sample, and for the baseline */
    double sum;              /* of all attributions */
    const KilnAttribution *list;
    size_t n;
} KilnExplanation;

/* Explain the prediction of one raw sample. *ret is owned by the caller (kiln_explanation_free).
 * KILN_E_KEY: there is no such class or layer, with the nearest name; KILN_E_MISSING: the task or
 * the model can't be explained by this method, with what can; KILN_E_RANGE: the window is larger
 * than the image; KILN_E_INTERRUPTED: `poll` said so. Errors of preparing the sample are those of
 * kiln_predict. Any number of threads may call it. */
KILN_API KILN_NODISCARD KilnStatus kiln_explain(KilnPredictor *predictor, const KilnRawSample *raw,
                                                const KilnExplainSpec *spec, KilnExplanation **ret,
                                                KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_explanation_free(KilnExplanation *explanation);

#endif
