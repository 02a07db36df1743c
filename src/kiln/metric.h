/* Metrics, exact over an epoch. A metric is a component that accumulates into a state which kiln
 * stores: separately for training and validation, reset for each epoch, and saved and restored
 * inside an epoch without any code in the component. */
#ifndef KILN_METRIC_H
#define KILN_METRIC_H

#include "kiln/module.h"

/* ---- What metrics count ------------------------------------------------------ */

/* The input of a metric: which members of KilnMetricRows are set. */
typedef enum KilnMetricInput {
    KILN_METRIC_CLASSES,   /* scores [count, width] and labels [count] */
    KILN_METRIC_VALUES,    /* scores (predictions) and targets, [count, width] each */
    KILN_METRIC_RANKINGS,  /* scores and targets (relevances) [count], group_sizes [n_groups] */
    KILN_METRIC_SEQUENCES, /* sequences [count], references [count, n_references] */
    /* `count` images: scores are all their detections, [n, KILN_DETECTION_COLUMNS], and targets all
     * their boxes, [n, KILN_TRUTH_COLUMNS]; group_sizes [2 count] has the numbers of both of each
     * image. Either may be NULL if there are none. */
    KILN_METRIC_DETECTIONS
} KilnMetricInput;

/* A detection: x1, y1, x2, y2, class, score. A box of the truth: x1, y1, x2, y2, class, whether it
 * is a crowd (COCO's iscrowd), its object's area. */
enum { KILN_DETECTION_COLUMNS = 6, KILN_TRUTH_COLUMNS = 7 };

/* Words, tokens or tags: `count` ids, or with ids == NULL a text in UTF-8. */
typedef struct KilnSequence {
    const int32_t *ids;
    int64_t count;
    const char *text;
} KilnSequence;

/* Rows for a metric; everything is borrowed for the call. */
typedef struct KilnMetricRows {
    int64_t count; /* rows: samples, tokens, pixels; documents of rankings; sequences; images */
    /* For classes: logits or log-probabilities. A single one (width 1) is the logit of class 1 of
     * two. */
    const float *scores;
    const int32_t *labels;
    /* Of values [count, width]; of rankings [count]; of classes, instead of labels, for rows with
     * any number of labels [count, width]: 1 for each label that the row has, else 0. */
    const float *targets;
    /* Documents per query, in order; a call has whole groups. */
    const int64_t *group_sizes;
    int64_t n_groups;
    const KilnSequence *sequences, *references;
    int64_t n_references; /* of each sequence */
} KilnMetricRows;

/* What all rows of a metric state have in common. */
typedef struct KilnMetricForm {
    int64_t width; /* scores per row; 0 for sequences */
    /* Names of classes, or of the ids in sequences; NULL: numbers. Borrowed for the state's
     * lifetime. */
    const char *const *names;
    int64_t n_names;
} KilnMetricForm;

/* The number of classes of such rows: width, or 2 for a single logit. */
KILN_API int64_t kiln_form_classes(const KilnMetricForm *form);
/* The name of class or id `i`; its number, written to `buf`, if it has no name. */
KILN_API const char *kiln_form_name(const KilnMetricForm *form, int64_t i, char buf[24]);

/* ---- Metric states -------------------------------------------------------------- */

/* What one metric has accumulated since the last reset. */
typedef struct KilnMetricState KilnMetricState;

/* One result. A metric's own value has the name "". */
typedef struct KilnMetricResult {
    char *name;
    double value;
} KilnMetricResult;

/* An empty state of `metric` (borrowed, of kind metric). KILN_E_SHAPE if the metric cannot use rows
 * of this form. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_metric_state_new(KilnInstance *metric,
                                                         const KilnMetricForm *form,
                                                         KilnMetricState **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_metric_state_free(KilnMetricState *state);
/* Add rows. How rows are split over calls does not change the result. KILN_E_SHAPE if a required
 * member is missing, KILN_E_RANGE for a label that is not a class. After a failure the state must
 * be reset. */
KILN_API KILN_NODISCARD KilnStatus kiln_metric_state_update(KilnMetricState *state,
                                                            const KilnMetricRows *rows,
                                                            KilnError *err);
/* The results so far; more rows may follow. NaN for an undefined value. Borrowed until the next
 * call on `state`. */
KILN_API KILN_NODISCARD KilnStatus kiln_metric_state_compute(KilnMetricState *state,
                                                             const KilnMetricResult **ret,
                                                             size_t *ret_count, KilnError *err);
/* Reset to zero rows; memory is kept. */
KILN_API void kiln_metric_state_reset(KilnMetricState *state);
/* Rows since the last reset. */
KILN_API int64_t kiln_metric_state_rows(const KilnMetricState *state);

/* ---- Metrics ---------------------------------------------------------------------- */

/* Counts for one class. */
typedef struct KilnClassCount {
    int64_t hits;      /* rows of this class that were predicted as this class */
    int64_t predicted; /* rows that were predicted as this class */
    int64_t actual;    /* rows of this class */
} KilnClassCount;

/* A score and its target. */
typedef struct KilnRanked {
    double score, target;
} KilnRanked;

struct KilnMetricOps {
    KilnMetricInput takes;
    KilnMode mode;  /* MAX: larger values are better, MIN: smaller ones; AUTO: unknown */
    bool is_matrix; /* its values are cells of a matrix and get KILN_LOG_CELL */
    /* Optional. Refuse a form: KILN_E_SHAPE. */
    KilnStatus (*check)(KilnInstance *self, const KilnMetricForm *form, KilnError *err);
    /* Accumulate rows into the state's arrays. */
    KilnStatus (*update)(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err);
    /* Report values with kiln_metric_state_report; for an empty state the same names, as far as
     * they are known, with NaN. */
    KilnStatus (*compute)(KilnInstance *self, KilnMetricState *state, KilnError *err);
    /* If the three functions above are kiln_classes_...: the value of a class. */
    double (*of_class)(KilnClassCount count);
    /* With kiln_one_vs_rest_update, kiln_one_vs_rest_compute and kiln_one_vs_rest_memory: the value
     * of a class from all rows, the most probable first; the target is 1 for rows of the class.
     * NaN: undefined; averages leave it out. */
    double (*of_ranked)(const KilnRanked *items, int64_t n);
    /* For metrics that keep all rows of an epoch: the bytes that `rows` rows take, and the
     * additional bytes for computing, for the memory estimate. */
    int64_t (*memory)(const KilnInstance *self, const KilnMetricForm *form, int64_t rows,
                      int64_t *ret_computing);
    /* Add the arrays of `other`, the state of another rank (kiln/strategy.h). NULL: counts and sums
     * are added element by element, and lists are joined. */
    KilnStatus (*merge)(KilnInstance *self, KilnMetricState *state, KilnMetricState *other,
                        KilnError *err);
    /* Optional, of sequences. How they are counted, in the words of the program that defines it
     * (sacrebleu's signature), to ret[size]. */
    void (*signature)(const KilnInstance *self, int64_t n_references, char *ret, size_t size);
    /* Of classes: update also takes targets instead of labels. Scores are then logits of each label
     * by itself, and those above 0 are predicted. A state gets either labels or targets. */
    bool multilabel;
};

/* The form of a state's rows. */
KILN_API const KilnMetricForm *kiln_metric_state_form(const KilnMetricState *state);
/* The array `name` of `n` numbers, initially 0. A later call with a larger n appends zeros and may
 * move the array. Checkpoints save it. A state has at most 7 arrays; names are shorter than 32
 * bytes, and "rows" is reserved. */
KILN_API KILN_NODISCARD KilnStatus kiln_metric_state_counts(KilnMetricState *state,
                                                            const char *name, int64_t n,
                                                            int64_t **ret, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_metric_state_sums(KilnMetricState *state, const char *name,
                                                          int64_t n, double **ret, KilnError *err);
/* Append n items to the list `name`, initially empty, of f32, i32 or u8. */
KILN_API KILN_NODISCARD KilnStatus kiln_metric_state_append(KilnMetricState *state,
                                                            const char *name, KilnDType dtype,
                                                            const void *items, int64_t n,
                                                            KilnError *err);
/* All items of that list, borrowed until the next append; *ret_count may be 0. */
KILN_API KILN_NODISCARD KilnStatus kiln_metric_state_list(const KilnMetricState *state,
                                                          const char *name, KilnDType dtype,
                                                          const void **ret, int64_t *ret_count,
                                                          KilnError *err);
/* In compute: report a value. NULL is the metric's own value; another name is appended after a
 * slash
 * ("val/f1/cat"). Copied. */
KILN_API KILN_NODISCARD KilnStatus kiln_metric_state_report(KilnMetricState *state,
                                                            const char *name, double value,
                                                            KilnError *err);

/* A mean in a metric state: the sum and the count. Adding the numbers one by one gives the same
 * result for any batch size. */
typedef struct KilnMean {
    double *sum;
    int64_t *count;
} KilnMean;
KILN_API KILN_NODISCARD KilnStatus kiln_mean_open(KilnMetricState *state, KilnMean *ret,
                                                  KilnError *err);
/* The mean so far; NaN if the count is 0. */
KILN_API double kiln_mean_value(KilnMean mean);
/* A metric's compute that reports it. */
KILN_API KILN_NODISCARD KilnStatus kiln_mean_compute(KilnInstance *self, KilnMetricState *state,
                                                     KilnError *err);

/* ---- In a module's step --------------------------------------------------------------- */

/* Add a step's rows to `metric`, and log its values at the end of the epoch as "train/NAME",
 * "val/NAME" or "test/NAME", where NAME is the last part of the metric's path in the config
 * ("task.metrics.top5": top5).
 *
 * scores: f32 [..., width], or [rows] for width 1.
 * truth: i32 labels, one per row, for metrics of classes; f32 in the shape of scores for metrics of
 * values, and for those of classes that take several labels per row (KilnMetricOps.multilabel).
 * flags: KILN_LOG_PROG_BAR shows the metric's own value; others are ignored. Metrics of rankings
 * and sequences do not take tensors: use kiln_metric_state_update. */
KILN_API void kiln_step_metric(KilnStep *step, KilnInstance *metric, KilnTensor *scores,
                               KilnTensor *truth, unsigned flags);

/* ---- Functions for metrics of classes ------------------------------------------------------ */

/* The class with the highest score, and the lowest such class in a tie; for a single logit, 1 if it
 * is above 0. NaN counts as the highest, as in torch.argmax. */
KILN_API int64_t kiln_row_argmax(const float *scores, int64_t width);
/* The probabilities of all classes (softmax, or sigmoid for a single logit), in double. */
KILN_API void kiln_row_probabilities(const float *scores, int64_t width, double *ret);
/* -log of the probability of `label`. */
KILN_API double kiln_row_nll(const float *scores, int64_t width, int64_t label);
/* Whether row `i` counts: false for the label `ignore` (NULL: none); KILN_E_RANGE for a label that
 * is not a class. */
KILN_API KILN_NODISCARD KilnStatus kiln_row_counts(const KilnMetricForm *form,
                                                   const KilnMetricRows *rows, int64_t i,
                                                   const int64_t *ignore, bool *ret,
                                                   KilnError *err);

/* How to average over classes: names and meanings of sklearn.metrics. Classes that neither occur
 * nor are predicted are left out. */
typedef enum KilnAverage {
    KILN_AVERAGE_MICRO,
    KILN_AVERAGE_MACRO,
    KILN_AVERAGE_WEIGHTED,
    KILN_AVERAGE_BINARY
} KilnAverage;

/* Options of the metrics below, and their table. */
typedef struct KilnClassOptions {
    int64_t average, *ignore_index;
    bool per_class;
} KilnClassOptions;
KILN_API_TABLE const KilnField kiln_class_fields[4];

/* Functions for metrics that are a ratio of counts per class (KilnMetricOps.of_class), with
 * KilnClassOptions as options. */
KILN_API KILN_NODISCARD KilnStatus kiln_classes_check(KilnInstance *self,
                                                      const KilnMetricForm *form, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_classes_update(KilnInstance *self, KilnMetricState *state,
                                                       const KilnMetricRows *rows, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_classes_compute(KilnInstance *self, KilnMetricState *state,
                                                        KilnError *err);
/* a / b; 0 when b is 0. */
KILN_API double kiln_ratio(int64_t a, int64_t b);

/* ---- Functions for ranking metrics -------------------------------------------------- */

/* Sort by score, the highest first; ties keep their order, NaN comes last. */
KILN_API KILN_NODISCARD KilnStatus kiln_ranked_sort(KilnRanked *items, int64_t n, KilnError *err);
/* The number of sorted items from `at` on with the same score. */
KILN_API int64_t kiln_ranked_ties(const KilnRanked *items, int64_t n, int64_t at);
/* The area under the precision-recall steps, the sum of (R_i - R_i-1) P_i over distinct scores
 * (sklearn.metrics.average_precision_score); targets above 0 are relevant. NaN if none is. */
KILN_API double kiln_ranked_precision(const KilnRanked *items, int64_t n);

/* Functions for metrics of classes that need all rows of the epoch: KilnMetricOps.of_ranked for
 * each class against the rest; with two classes, of which each row has one, the value of class 1.
 * The options are KilnClassOptions with this table: average is macro or weighted. */
KILN_API_TABLE const KilnField kiln_one_vs_rest_fields[4];
KILN_API KILN_NODISCARD KilnStatus kiln_one_vs_rest_update(KilnInstance *self,
                                                           KilnMetricState *state,
                                                           const KilnMetricRows *rows,
                                                           KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_one_vs_rest_compute(KilnInstance *self,
                                                            KilnMetricState *state, KilnError *err);
KILN_API int64_t kiln_one_vs_rest_memory(const KilnInstance *self, const KilnMetricForm *form,
                                         int64_t rows, int64_t *ret_computing);

/* The value of a query without relevant documents, as choices of an option. */
typedef enum KilnEmptyQuery {
    KILN_EMPTY_ZERO,
    KILN_EMPTY_ONE,
    KILN_EMPTY_SKIP /* left out */
} KilnEmptyQuery;
KILN_API_TABLE const KilnChoice kiln_empty_queries[4];
/* Computes the value of one query's documents, in their order; NaN if none is relevant. */
typedef KilnStatus KilnQueryValue(const void *context, KilnRanked *items, int64_t n, double *ret,
                                  KilnError *err);
/* Add the value of each query to the state's mean. */
KILN_API KILN_NODISCARD KilnStatus kiln_queries_add(KilnMetricState *state,
                                                    const KilnMetricRows *rows, int64_t empty,
                                                    KilnQueryValue *value, const void *context,
                                                    KilnError *err);

#endif
