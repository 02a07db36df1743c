/* Gradient-boosted trees (Friedman, "Greedy function approximation", 2001) as XGBoost computes them
 * (Chen and Guestrin, "XGBoost: a scalable tree boosting system", 2016). XGBoost's C library is
 * loaded when it is first used; a build needs its header. Its errors are returned as KilnError, and
 * it prints nothing. Unless a function says otherwise, a booster and its data belong to the thread
 * that made them. */
#ifndef KILN_BOOST_H
#define KILN_BOOST_H

#include "kiln/custom_op.h"
#include "kiln/module.h"

/* KILN_OK if trees can be computed; otherwise KILN_E_MISSING with what to install. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_supported(KilnError *err);

/* ---- Columns ------------------------------------------------------------------- */

/* The columns that trees split: those of all vectors and rows of the samples, in the order of the
 * features. Columns of ids are categories; an id below 0 is missing, as NaN is. */
typedef struct KilnBoostColumns {
    int64_t n;
    char **names;     /* [n]: the columns' own, or "x.0", "x.1", ... */
    bool *categories; /* [n] */
    bool named;       /* a row names its columns */
    bool any_category;
} KilnBoostColumns;

/* KILN_E_SHAPE for samples that are no rows of numbers and ids: an image, tokens, ... Release also
 * after an error. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_columns_init(const KilnDataSpec *spec,
                                                           KilnBoostColumns *ret, KilnError *err);
KILN_API void kiln_boost_columns_release(KilnBoostColumns *columns);
/* The number of a column; -1: there is none of that name. */
KILN_API int64_t kiln_boost_column(const KilnBoostColumns *columns, const char *name);

/* A set of samples as XGBoost takes it; release frees the arrays. */
typedef struct KilnBoostRows {
    int64_t n, columns;
    float *values;   /* [n, columns]; NaN: missing */
    float *targets;  /* [n]; NULL: none */
    float *weights;  /* [n], or of rankings [n_groups]; NULL: all are 1 */
    int64_t *groups; /* rankings: the number of rows of each query; NULL: no rankings */
    int64_t n_groups;
} KilnBoostRows;

/* From a table of a set with this spec. The target is the feature "label" or "target"; "weight"
 * (f32
 * []) and "query" (i32 []) are used if they are there. Rows of a query must follow each other; its
 * first row has its weight. KILN_E_RANGE with the row otherwise, and for targets that are not
 * finite. Release also after an error. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_rows_init(const KilnDataSpec *spec,
                                                        const KilnBoostColumns *columns,
                                                        const KilnTable *table, KilnBoostRows *ret,
                                                        KilnError *err);
KILN_API void kiln_boost_rows_release(KilnBoostRows *rows);
/* Write a sample's values of one feature, a vector or row, to `row`: a number per column. */
KILN_API void kiln_boost_put(const KilnFeature *feature, const void *values, float *row);

/* A set in XGBoost's own form (DMatrix), which copies everything. Owned by the caller. */
typedef struct KilnBoostData KilnBoostData;
KILN_API KILN_NODISCARD KilnStatus kiln_boost_data_new(const KilnBoostColumns *columns,
                                                       const KilnBoostRows *rows, int threads,
                                                       KilnBoostData **ret, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_boost_data_free(KilnBoostData *data);

/* ---- Boosters -------------------------------------------------------------------- */

typedef struct KilnBooster KilnBooster;

/* Without trees, for the columns of `data`; or, with NULL, to read a model into. Owned by the
 * caller.
 */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_new(KilnBoostData *data, KilnBooster **ret,
                                                    KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_booster_free(KilnBooster *booster);
/* Set a parameter by XGBoost's name. A wrong value may be reported by a later call. */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_set(KilnBooster *booster, const char *name,
                                                    const char *value, KilnError *err);
/* Read or write a model in XGBoost's format by the path's ending: .ubj or .json. */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_read(KilnBooster *booster, const char *path,
                                                     KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_booster_write(KilnBooster *booster, const char *path,
                                                      KilnError *err);
/* The rounds of boosting so far, and the columns of the data (0: no data yet). */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_rounds(KilnBooster *booster, int64_t *ret,
                                                       KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_booster_columns(KilnBooster *booster, int64_t *ret,
                                                        KilnError *err);
/* Boosting round number `round` on `data`. */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_update(KilnBooster *booster, int64_t round,
                                                       KilnBoostData *data, KilnError *err);
/* Whether XGBoost has an eval_metric of that name ("rmse", "ndcg@5-"), and whether a higher value
 * is better; and the names of all of them, for messages. */
KILN_API bool kiln_boost_metric(const char *name, bool *ret_higher_is_better);
KILN_API_TABLE const char kiln_boost_metrics[];
/* XGBoost's metrics (eval_metric) of a set that has been computed: ret(ctx, "rmse", 0.5). Trees are
 * applied once to a set that is evaluated after every round. */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_evaluate(KilnBooster *booster, KilnBoostData *data,
                                                         void (*ret)(void *ctx, const char *name,
                                                                     double value),
                                                         void *ctx, KilnError *err);
/* The scores of a set, [n, *ret_width] in memory of the booster, valid until the next call: logits,
 * logarithms, or the values themselves; transformed: as the objective gives them (probabilities,
 * exponentials). */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_scores(KilnBooster *booster, KilnBoostData *data,
                                                       bool transformed, const float **ret,
                                                       int64_t *ret_width, KilnError *err);
/* The same of n rows of values, [n, width] in `ret`. Any number of threads at once, after
 * kiln_booster_columns. */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_predict(KilnBooster *booster, const float *values,
                                                        int64_t n, int64_t columns,
                                                        bool transformed, int64_t width, float *ret,
                                                        KilnError *err);
/* What each column adds to the score, and the bias last (SHAP values: Lundberg et al., "Consistent
 * individualized feature attribution for tree ensembles", 2018): [n, width, columns + 1]. Any
 * number of threads at once. */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_contributions(KilnBooster *booster,
                                                              const float *values, int64_t n,
                                                              int64_t columns, int64_t width,
                                                              float *ret, KilnError *err);
/* An operation on the features of a batch: the booster's prediction of each sample, or the
 * contributions to it. */
typedef struct KilnBoostOp {
    KilnBooster *booster;     /* must outlive the graph */
    const KilnDataSpec *spec; /* likewise; at most KILN_CUSTOM_INPUTS vectors and rows */
    int64_t columns, width;   /* of the booster: KilnBoostColumns.n, scores per sample */
    bool binary;              /* a score is the logit of class 1: give probabilities of both */
    bool contributions;
    /* Gets an error of XGBoost, whose rows are then NaN; called in any thread. */
    void (*report)(void *ctx, const KilnError *err);
    void *ctx;
} KilnBoostOp;
/* Record it in a prediction step: f32 [batch, width], transformed as the objective says (2 for
 * binary), or contributions [batch, columns + 1], of several scores [batch, width, columns + 1]. */
KILN_API KilnTensor *kiln_boost_record(KilnStep *step, const KilnBoostOp *op);

/* How much each column matters, ret[columns]: "weight" (splits), "gain" (mean loss reduction of
 * its splits), "cover" (mean weight of the samples that they see), "total_gain", "total_cover". */
KILN_API KILN_NODISCARD KilnStatus kiln_booster_importance(KilnBooster *booster, const char *type,
                                                           int64_t columns, double *ret,
                                                           KilnError *err);

#endif
