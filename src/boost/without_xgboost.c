/* What stands for trees in a build without XGBoost. */
#include "kiln/tools/boost.h"

#ifndef KILN_WITH_XGBOOST

KilnStatus kiln_boost_supported(KilnError *err)
{
    return kiln_error_set(err, KILN_E_MISSING,
                          "this kiln was built without XGBoost, which computes trees: install "
                          "libxgboost-dev and build it again");
}

KilnStatus kiln_boost_data_new(const KilnBoostColumns *columns, const KilnBoostRows *rows,
                               int threads, KilnBoostData **ret, KilnError *err)
{
    (void)columns;
    (void)rows;
    (void)threads;
    (void)ret;
    return kiln_boost_supported(err);
}

/* Without data and boosters, nobody calls the functions below. */

void kiln_boost_data_free(KilnBoostData *data)
{
    (void)data;
}

KilnStatus kiln_booster_new(KilnBoostData *data, KilnBooster **ret, KilnError *err)
{
    (void)data;
    (void)ret;
    return kiln_boost_supported(err);
}

void kiln_booster_free(KilnBooster *booster)
{
    (void)booster;
}

KilnStatus kiln_booster_set(KilnBooster *booster, const char *name, const char *value,
                            KilnError *err)
{
    (void)booster;
    (void)name;
    (void)value;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_read(KilnBooster *booster, const char *path, KilnError *err)
{
    (void)booster;
    (void)path;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_write(KilnBooster *booster, const char *path, KilnError *err)
{
    (void)booster;
    (void)path;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_rounds(KilnBooster *booster, int64_t *ret, KilnError *err)
{
    (void)booster;
    (void)ret;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_columns(KilnBooster *booster, int64_t *ret, KilnError *err)
{
    (void)booster;
    (void)ret;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_update(KilnBooster *booster, int64_t round, KilnBoostData *data,
                               KilnError *err)
{
    (void)booster;
    (void)round;
    (void)data;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_evaluate(KilnBooster *booster, KilnBoostData *data,
                                 void (*ret)(void *ctx, const char *name, double value), void *ctx,
                                 KilnError *err)
{
    (void)booster;
    (void)data;
    (void)ret;
    (void)ctx;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_scores(KilnBooster *booster, KilnBoostData *data, bool transformed,
                               const float **ret, int64_t *ret_width, KilnError *err)
{
    (void)booster;
    (void)data;
    (void)transformed;
    (void)ret;
    (void)ret_width;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_predict(KilnBooster *booster, const float *values, int64_t n,
                                int64_t columns, bool transformed, int64_t width, float *ret,
                                KilnError *err)
{
    (void)booster;
    (void)values;
    (void)n;
    (void)columns;
    (void)transformed;
    (void)width;
    (void)ret;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_contributions(KilnBooster *booster, const float *values, int64_t n,
                                      int64_t columns, int64_t width, float *ret, KilnError *err)
{
    (void)booster;
    (void)values;
    (void)n;
    (void)columns;
    (void)width;
    (void)ret;
    return kiln_boost_supported(err);
}

KilnStatus kiln_booster_importance(KilnBooster *booster, const char *type, int64_t columns,
                                   double *ret, KilnError *err)
{
    (void)booster;
    (void)type;
    (void)columns;
    (void)ret;
    return kiln_boost_supported(err);
}

#endif
