/* XGBoost's objectives, and which of them fits the data. */
#include "kiln/tools/boost_task.h"

enum { AUTO, SQUARED_ERROR, BINARY, MULTI, RANK_NDCG };

static const KilnBoostObjective objectives[] = {
    { "auto", NULL, KILN_BOOST_VALUES },
    { "reg:squarederror", "rmse", KILN_BOOST_VALUES },
    { "binary:logistic", "logloss", KILN_BOOST_CLASSES },
    { "multi:softprob", "mlogloss", KILN_BOOST_CLASSES },
    { "rank:ndcg", "ndcg", KILN_BOOST_RANKINGS },
    { "rank:pairwise", "map", KILN_BOOST_RANKINGS },
    { "rank:map", "map", KILN_BOOST_RANKINGS },
    { "reg:squaredlogerror", "rmsle", KILN_BOOST_VALUES },
    { "reg:pseudohubererror", "mphe", KILN_BOOST_VALUES },
    { "reg:absoluteerror", "mae", KILN_BOOST_VALUES },
    { "reg:logistic", "rmse", KILN_BOOST_VALUES },
    { "reg:gamma", "gamma-nloglik", KILN_BOOST_VALUES },
    { "reg:tweedie", "tweedie-nloglik", KILN_BOOST_VALUES },
    { "count:poisson", "poisson-nloglik", KILN_BOOST_VALUES },
};

/* The value of a choice is its place in `objectives`. */
const KilnChoice kiln_boost_objectives[] = {
    { "auto", AUTO },
    { "reg:squarederror", SQUARED_ERROR },
    { "binary:logistic", BINARY },
    { "multi:softprob", MULTI },
    { "rank:ndcg", RANK_NDCG },
    { "rank:pairwise", 5 },
    { "rank:map", 6 },
    { "reg:squaredlogerror", 7 },
    { "reg:pseudohubererror", 8 },
    { "reg:absoluteerror", 9 },
    { "reg:logistic", 10 },
    { "reg:gamma", 11 },
    { "reg:tweedie", 12 },
    { "count:poisson", 13 },
    { NULL, 0 },
};

static const KilnFeature *target_of(const KilnDataSpec *spec)
{
    const KilnFeature *label = kiln_spec_feature(spec, "label");

    return label != NULL ? label : kiln_spec_feature(spec, "target");
}

static bool has_classes(const KilnDataSpec *spec)
{
    const KilnFeature *label = kiln_spec_feature(spec, "label");

    return label != NULL && label->dtype == KILN_I32 && spec->n_classes > 0;
}

static int64_t fitting(const KilnDataSpec *spec)
{
    if (kiln_spec_feature(spec, "query") != NULL)
        return RANK_NDCG;
    if (!has_classes(spec))
        return SQUARED_ERROR;
    return spec->n_classes == 2 ? BINARY : MULTI;
}

static KilnStatus check_target(const KilnDataSpec *spec, KilnError *err)
{
    const KilnFeature *target = target_of(spec);

    if (target == NULL)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "trees need a feature \"label\" or \"target\"; the data has none");
    if (kiln_shape_count(&target->shape) != 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "trees predict one number or class per row, but \"%s\" has %lld "
                              "values",
                              target->name, (long long)kiln_shape_count(&target->shape));
    return KILN_OK;
}

KilnStatus kiln_boost_objective(int64_t choice, const KilnDataSpec *spec,
                                const KilnBoostObjective **ret, int64_t *ret_width, KilnError *err)
{
    const int64_t chosen = choice != AUTO ? choice : fitting(spec);
    const KilnBoostObjective *objective = &objectives[chosen];
    KilnStatus status = check_target(spec, err);

    if (status < 0)
        return status;
    if (objective->kind == KILN_BOOST_CLASSES && !has_classes(spec))
        return kiln_error_set(err, KILN_E_SHAPE,
                              "objective: %s needs a class per row, but the data has numbers; use "
                              "auto or reg:squarederror",
                              objective->name);
    if (chosen == BINARY && spec->n_classes != 2)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "objective: binary:logistic needs 2 classes, and the data has %lld; "
                              "use multi:softprob",
                              (long long)spec->n_classes);
    if (objective->kind == KILN_BOOST_RANKINGS && kiln_spec_feature(spec, "query") == NULL)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "objective: %s needs queries (a feature \"query\"), which the data "
                              "lacks",
                              objective->name);
    *ret = objective;
    *ret_width = chosen == MULTI ? spec->n_classes : 1;
    return KILN_OK;
}
