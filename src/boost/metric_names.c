/* XGBoost's metrics by name. */
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/boost.h"

const char kiln_boost_metrics[] =
    "rmse, rmsle, mae, mape, mphe, logloss, error[@T], merror, mlogloss, auc, aucpr, ndcg[@K], "
    "map[@K], pre[@K], poisson-nloglik, gamma-nloglik, gamma-deviance or tweedie-nloglik[@P]";

static const struct {
    const char *name;
    bool takes_number, higher_is_better;
} metrics[] = {
    { "rmse", false, false },
    { "rmsle", false, false },
    { "mae", false, false },
    { "mape", false, false },
    { "mphe", false, false },
    { "logloss", false, false },
    { "error", true, false },
    { "merror", false, false },
    { "mlogloss", false, false },
    { "auc", false, true },
    { "aucpr", false, true },
    { "ndcg", true, true },
    { "map", true, true },
    { "pre", true, true },
    { "poisson-nloglik", false, false },
    { "gamma-nloglik", false, false },
    { "gamma-deviance", false, false },
    { "tweedie-nloglik", true, false },
};

/* A number and maybe "-", which counts queries without relevant documents as 0 instead of 1. */
static bool is_number(const char *text)
{
    char *end;
    const double number = strtod(text, &end);

    return end != text && number > 0.0 && strcmp(end, *end == '-' ? "-" : "") == 0;
}

bool kiln_boost_metric(const char *name, bool *ret_higher_is_better)
{
    const size_t length = strcspn(name, "@");

    for (size_t i = 0; i < KILN_COUNT(metrics); i++) {
        const bool same = strlen(metrics[i].name) == length &&
                          strncmp(metrics[i].name, name, length) == 0;

        if (!same ||
            (name[length] == '@' && (!metrics[i].takes_number || !is_number(name + length + 1))))
            continue;
        *ret_higher_is_better = metrics[i].higher_is_better;
        return true;
    }
    return false;
}
