/* What a task of boosted trees is made of: options with XGBoost's names, objectives, and the sets
 * that it reads (tasks/trees/trees.c). */
#ifndef KILN_BOOST_TASK_H
#define KILN_BOOST_TASK_H

#include "kiln/tools/boost.h"
#include "kiln/trainer.h"

/* ---- Objectives ---------------------------------------------------------------------- */

typedef enum KilnBoostKind {
    KILN_BOOST_VALUES,  /* a number per row */
    KILN_BOOST_CLASSES, /* one of the data's classes */
    KILN_BOOST_RANKINGS /* rows of a query, by relevance */
} KilnBoostKind;

typedef struct KilnBoostObjective {
    const char *name, *metric; /* XGBoost's, and the eval_metric that fits it */
    KilnBoostKind kind;
} KilnBoostObjective;

/* The choices of the option `objective`; the first is auto. */
KILN_API_TABLE const KilnChoice kiln_boost_objectives[15];
/* The objective of that choice for the data, by default the one that fits, and the scores per row.
 * KILN_E_SHAPE, with the option's name, if they do not fit. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_objective(int64_t choice, const KilnDataSpec *spec,
                                                        const KilnBoostObjective **ret,
                                                        int64_t *ret_width, KilnError *err);

/* ---- Options ------------------------------------------------------------------------- */

KILN_API_TABLE const KilnChoice kiln_boost_tree_methods[4], kiln_boost_grow_policies[3];

/* The first members of such a task's options struct, and their rows in the options table. */
#define KILN_BOOST_OPTIONS                                                                         \
    int64_t objective, tree_method, grow_policy;                                                   \
    char **eval_metric;                                                                            \
    size_t eval_metric_count;                                                                      \
    double eta, gamma, min_child_weight, max_delta_step, lambda, alpha, scale_pos_weight;          \
    double subsample, colsample_bytree, colsample_bylevel, colsample_bynode;                       \
    double tweedie_variance_power, *base_score;                                                    \
    int64_t max_depth, max_leaves, max_bin, num_parallel_tree;                                     \
    int64_t max_cat_to_onehot, max_cat_threshold, *seed;                                           \
    KilnPairI64 *monotone_constraints;                                                             \
    size_t monotone_constraints_count
#define KILN_BOOST_FIELDS(T)                                                                       \
    KILN_FIELD_ENUM(T, objective, "auto", kiln_boost_objectives,                                   \
                    "what training minimizes; auto: binary:logistic or multi:softprob for "        \
                    "classes, rank:ndcg for queries, reg:squarederror for numbers"),               \
        KILN_FIELD_STR_LIST(T, eval_metric, "[]",                                                  \
                            "XGBoost's metrics, logged as train/NAME, val/NAME, test/NAME: "       \
                            "rmse, mae, logloss, error, auc, mlogloss, merror, ndcg@5, map@5, "    \
                            "...; empty: the objective's"),                                        \
        KILN_FIELD_F64(T, eta, "0.3", 0.0, 1.0, "learning rate: the share of each new tree"),      \
        KILN_FIELD_I64(T, max_depth, "6", 0, 1000,                                                 \
                       "depth of a tree; 0: no limit (set max_leaves)"),                           \
        KILN_FIELD_I64(T, max_leaves, "0", 0, 1000000000, "leaves of a tree; 0: no limit"),        \
        KILN_FIELD_F64(T, gamma, "0.0", 0.0, 1e30, "loss reduction that a split needs"),           \
        KILN_FIELD_F64(T, min_child_weight, "1.0", 0.0, 1e30,                                      \
                       "sum of second derivatives that a child needs"),                            \
        KILN_FIELD_F64(T, max_delta_step, "0.0", 0.0, 1e30, "limit of a leaf's value; 0: none"),   \
        KILN_FIELD_F64(T, subsample, "1.0", 1e-6, 1.0, "share of the rows that a tree sees"),      \
        KILN_FIELD_F64(T, colsample_bytree, "1.0", 1e-6, 1.0,                                      \
                       "share of the columns that a tree sees"),                                   \
        KILN_FIELD_F64(T, colsample_bylevel, "1.0", 1e-6, 1.0,                                     \
                       "of these columns, the share that a level of a tree sees"),                 \
        KILN_FIELD_F64(T, colsample_bynode, "1.0", 1e-6, 1.0,                                      \
                       "of these columns, the share that a split sees"),                           \
        KILN_FIELD_F64(T, lambda, "1.0", 0.0, 1e30, "L2 penalty of leaves"),                       \
        KILN_FIELD_F64(T, alpha, "0.0", 0.0, 1e30, "L1 penalty of leaves"),                        \
        KILN_FIELD_ENUM(T, tree_method, "hist", kiln_boost_tree_methods,                           \
                        "how splits are found: hist: among max_bin values per column; exact: all " \
                        "values; approx: new bins for each tree"),                                 \
        KILN_FIELD_I64(T, max_bin, "256", 2, 1000000, "values per column with hist and approx"),   \
        KILN_FIELD_ENUM(T, grow_policy, "depthwise", kiln_boost_grow_policies,                     \
                        "which node is split next: of the least depth, or of the largest gain"),   \
        KILN_FIELD_I64(T, num_parallel_tree, "1", 1, 100000,                                       \
                       "trees per round: above 1, with subsample below 1, a boosted random "       \
                       "forest"),                                                                  \
        KILN_FIELD_F64(T, scale_pos_weight, "1.0", 0.0, 1e30, "weight of class 1 of two"),         \
        KILN_FIELD_I64(T, max_cat_to_onehot, "4", 1, 1000000,                                      \
                       "columns of fewer categories than this are split one category against the " \
                       "rest"),                                                                    \
        KILN_FIELD_I64(T, max_cat_threshold, "64", 1, 1000000,                                     \
                       "categories that a split considers, of columns with more"),                 \
        KILN_FIELD_I64_MAP(T, monotone_constraints, "{}", -1, 1,                                   \
                           "by column: 1: predictions must not fall where it rises; -1: must not " \
                           "rise"),                                                                \
        KILN_FIELD_F64_OPT(T, base_score, "null", -1e30, 1e30,                                     \
                           "the first prediction of all rows; null: XGBoost's"),                   \
        KILN_FIELD_F64(T, tweedie_variance_power, "1.5", 1.0, 2.0, "of reg:tweedie"),              \
        KILN_FIELD_I64_OPT(T, seed, "null", 0, 2147483647, "of sampling; null: the run's seed")

typedef struct KilnBoostOptions {
    KILN_BOOST_OPTIONS;
} KilnBoostOptions;

/* For the task's check: conditions on several options, and names of metrics. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_options_check(const KilnBoostOptions *options,
                                                            const char **ret_option,
                                                            KilnError *err);
/* The same with the data: columns of categories, columns that options name. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_options_fit(const KilnBoostOptions *options,
                                                          const KilnBoostColumns *columns,
                                                          KilnError *err);
enum { KILN_BOOST_METRICS = 16, KILN_BOOST_NAME = 64 };
/* The metrics of the options, or of the objective, in `ret`; returns their number. */
KILN_API size_t kiln_boost_metric_list(const KilnBoostOptions *options,
                                       const KilnBoostObjective *objective,
                                       char ret[KILN_BOOST_METRICS][KILN_BOOST_NAME]);

/* What the parameters of a booster come from. */
typedef struct KilnBoostSetup {
    const KilnBoostOptions *options;
    const KilnBoostObjective *objective;
    const KilnBoostColumns *columns;
    int64_t width; /* scores per row */
    int64_t seed;  /* unless options->seed is set */
    int threads;
} KilnBoostSetup;

/* Set them all. Rounds are seeded one by one (seed_per_iteration), so that a resumed run draws what
 * the uninterrupted one draws. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_set_up(const KilnBoostSetup *setup,
                                                     KilnBooster *booster, KilnError *err);

/* Before a round: if rounds sample columns, drop the sampler's state that the last one left, so
 * that the next depends on the model, the seed and its number alone. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_begin_round(const KilnBoostSetup *setup,
                                                          KilnBooster *booster, KilnError *err);

/* ---- Sets ---------------------------------------------------------------------------- */

/* A set of a split. */
typedef struct KilnBoostSet {
    KilnBoostData *data;
    KilnBoostRows rows; /* without values */
    int32_t *labels;    /* [rows.n], of classes; else NULL */
} KilnBoostSet;

/* Read set number `set` of a split from the trainer's data. KILN_E_MISSING: its samples have no
 * targets; KILN_E_RANGE: a row without a class. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_set_read(KilnTrainer *trainer, KilnSplit split,
                                                       size_t set, const KilnBoostColumns *columns,
                                                       KilnBoostKind kind, KilnBoostSet *ret,
                                                       KilnError *err);
/* Accepts a zeroed one. */
KILN_API void kiln_boost_set_release(KilnBoostSet *set);

/* Write importance.csv to the folder `dir`, a line per column with its gain, cover and weight, and
 * the largest gains as plots/importance.png, unless this build can't draw. */
KILN_API KILN_NODISCARD KilnStatus kiln_boost_write_importance(KilnBooster *booster,
                                                               const KilnBoostColumns *columns,
                                                               const char *dir, KilnError *err);

#endif
