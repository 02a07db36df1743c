/* Options of boosted trees: checks, and a booster's parameters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/boost_task.h"
#include "kiln/tools/text.h"

enum { HIST, EXACT, APPROX };
const KilnChoice kiln_boost_tree_methods[] = {
    { "hist", HIST }, { "exact", EXACT }, { "approx", APPROX }, { NULL, 0 }
};
const KilnChoice kiln_boost_grow_policies[] = { { "depthwise", 0 },
                                                { "lossguide", 1 },
                                                { NULL, 0 } };

static const char tweedie[] = "reg:tweedie";

/* Whether rows or columns are sampled. */
static bool samples(const KilnBoostOptions *options)
{
    return options->subsample < 1.0 || options->colsample_bytree < 1.0 ||
           options->colsample_bylevel < 1.0 || options->colsample_bynode < 1.0;
}

/* ---- Checks ------------------------------------------------------------------------- */

static KilnStatus check_metrics(const KilnBoostOptions *options, KilnError *err)
{
    bool higher;

    if (options->eval_metric_count > KILN_BOOST_METRICS)
        return kiln_error_set(err, KILN_E_RANGE, "has %zu metrics; at most %d are possible",
                              options->eval_metric_count, KILN_BOOST_METRICS);
    for (size_t i = 0; i < options->eval_metric_count; i++) {
        const char *name = options->eval_metric[i];

        if (!kiln_boost_metric(name, &higher) || strlen(name) >= KILN_BOOST_NAME)
            return kiln_error_set(err, KILN_E_RANGE,
                                  "\"%.64s\" is no metric of XGBoost's; expected %s", name,
                                  kiln_boost_metrics);
        for (size_t before = 0; before < i; before++)
            if (strcmp(options->eval_metric[before], name) == 0)
                return kiln_error_set(err, KILN_E_RANGE, "has %s twice", name);
    }
    return KILN_OK;
}

KilnStatus kiln_boost_options_check(const KilnBoostOptions *options, const char **ret_option,
                                    KilnError *err)
{
    *ret_option = "max_depth";
    if (options->max_depth == 0 && options->max_leaves == 0)
        return kiln_error_set(err, KILN_E_RANGE, "0 needs max_leaves above 0");
    *ret_option = "tree_method";
    if (options->tree_method == APPROX && samples(options))
        return kiln_error_set(err, KILN_E_RANGE,
                              "approx can't sample rows or columns: no checkpoint has its random "
                              "state and the bins of its first sample, so a resumed run would "
                              "differ; use hist, or set subsample and colsample_* to 1");
    if (options->tree_method == EXACT && (options->max_leaves > 0 || options->grow_policy != 0))
        return kiln_error_set(err, KILN_E_RANGE,
                              "exact grows by depth alone; use hist for max_leaves and "
                              "grow_policy=lossguide");
    *ret_option = "eval_metric";
    return check_metrics(options, err);
}

KilnStatus kiln_boost_options_fit(const KilnBoostOptions *options, const KilnBoostColumns *columns,
                                  KilnError *err)
{
    if (columns->any_category && options->tree_method == EXACT)
        return kiln_error_set(err, KILN_E_RANGE,
                              "tree_method: exact can't split columns of categories, which the "
                              "data has; use hist or approx");
    for (size_t i = 0; i < options->monotone_constraints_count; i++)
        if (kiln_boost_column(columns, options->monotone_constraints[i].key) < 0)
            return kiln_error_set(err, KILN_E_KEY,
                                  "monotone_constraints: the data has no column \"%s\"; the first "
                                  "of %lld is \"%s\"",
                                  options->monotone_constraints[i].key, (long long)columns->n,
                                  columns->names[0]);
    return KILN_OK;
}

/* ---- Parameters ---------------------------------------------------------------------- */

size_t kiln_boost_metric_list(const KilnBoostOptions *options, const KilnBoostObjective *objective,
                              char ret[KILN_BOOST_METRICS][KILN_BOOST_NAME])
{
    for (size_t i = 0; i < options->eval_metric_count; i++)
        snprintf(ret[i], KILN_BOOST_NAME, "%s", options->eval_metric[i]);
    if (options->eval_metric_count > 0)
        return options->eval_metric_count;
    if (strcmp(objective->name, tweedie) == 0)
        snprintf(ret[0], KILN_BOOST_NAME, "%s@%.9g", objective->metric,
                 options->tweedie_variance_power);
    else
        snprintf(ret[0], KILN_BOOST_NAME, "%s", objective->metric);
    return 1;
}

/* "(0,1,-1)": of each column. */
static KilnStatus set_monotone(const KilnBoostSetup *setup, KilnBooster *booster, KilnError *err)
{
    const KilnBoostOptions *options = setup->options;
    KilnText text = { 0 };

    if (options->monotone_constraints_count == 0)
        return KILN_OK;
    for (int64_t c = 0; c < setup->columns->n; c++) {
        int64_t sign = 0;

        for (size_t i = 0; i < options->monotone_constraints_count; i++)
            if (strcmp(options->monotone_constraints[i].key, setup->columns->names[c]) == 0)
                sign = options->monotone_constraints[i].value;
        kiln_text_printf(&text, "%c%lld", c == 0 ? '(' : ',', (long long)sign);
    }
    kiln_text_append(&text, ")");
    char *value = kiln_text_take(&text);
    KilnStatus status = value != NULL
                            ? kiln_booster_set(booster, "monotone_constraints", value, err)
                            : kiln_error_nomem(err, (size_t)setup->columns->n * 3);
    free(value);
    return status;
}

static KilnStatus set_names(const KilnBoostSetup *setup, KilnBooster *booster, KilnError *err)
{
    const KilnBoostOptions *options = setup->options;
    char metrics[KILN_BOOST_METRICS][KILN_BOOST_NAME];
    const size_t n = kiln_boost_metric_list(options, setup->objective, metrics);
    KilnStatus status = kiln_booster_set(booster, "objective", setup->objective->name, err);

    if (status >= 0)
        status = kiln_booster_set(booster, "tree_method",
                                  kiln_boost_tree_methods[options->tree_method].name, err);
    if (status >= 0 && options->tree_method != EXACT)
        status = kiln_booster_set(booster, "grow_policy",
                                  kiln_boost_grow_policies[options->grow_policy].name, err);
    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_booster_set(booster, "eval_metric", metrics[i], err);
    return status >= 0 ? set_monotone(setup, booster, err) : status;
}

KilnStatus kiln_boost_set_up(const KilnBoostSetup *setup, KilnBooster *booster, KilnError *err)
{
    const KilnBoostOptions *o = setup->options;
    const struct {
        const char *name;
        double value;
        bool left_out;
    } numbers[] = {
        { "num_class", (double)setup->width, setup->width == 1 },
        { "nthread", (double)setup->threads, false },
        { "seed", (double)(o->seed != NULL ? *o->seed : setup->seed), false },
        { "seed_per_iteration", 1.0, false },
        { "verbosity", 0.0, false },
        { "eta", o->eta, false },
        { "max_depth", (double)o->max_depth, false },
        { "max_leaves", (double)o->max_leaves, o->max_leaves == 0 },
        { "gamma", o->gamma, false },
        { "min_child_weight", o->min_child_weight, false },
        { "max_delta_step", o->max_delta_step, o->max_delta_step <= 0.0 },
        { "subsample", o->subsample, false },
        { "colsample_bytree", o->colsample_bytree, false },
        { "colsample_bylevel", o->colsample_bylevel, false },
        { "colsample_bynode", o->colsample_bynode, false },
        { "lambda", o->lambda, false },
        { "alpha", o->alpha, false },
        { "max_bin", (double)o->max_bin, o->tree_method == EXACT },
        { "num_parallel_tree", (double)o->num_parallel_tree, false },
        { "scale_pos_weight", o->scale_pos_weight, setup->objective->kind != KILN_BOOST_CLASSES },
        { "max_cat_to_onehot", (double)o->max_cat_to_onehot, false },
        { "max_cat_threshold", (double)o->max_cat_threshold, false },
        { "tweedie_variance_power", o->tweedie_variance_power,
          strcmp(setup->objective->name, tweedie) != 0 },
        { "base_score", o->base_score != NULL ? *o->base_score : 0.0, o->base_score == NULL },
    };
    KilnStatus status = set_names(setup, booster, err);
    char text[32];

    for (size_t i = 0; i < KILN_COUNT(numbers) && status >= 0; i++) {
        if (numbers[i].left_out)
            continue;
        snprintf(text, sizeof(text), "%.17g", numbers[i].value);
        status = kiln_booster_set(booster, numbers[i].name, text, err);
    }
    return status;
}

/* The updater of hist has a sampler of columns, whose state is in no checkpoint, and which takes a
 * random number of the round in which it is made; the rows of that round are drawn after it. So a
 * round that samples either gets a new updater, as the first one after a resume does. exact draws
 * in the same way in every round.
 *
 * A changed sequence of updaters takes effect when the booster is configured, and makes new
 * updaters, with parameters only as they are set since then. */
KilnStatus kiln_boost_begin_round(const KilnBoostSetup *setup, KilnBooster *booster, KilnError *err)
{
    int64_t columns;

    if (setup->options->tree_method != HIST || !samples(setup->options))
        return KILN_OK;
    KilnStatus status = kiln_booster_set(booster, "updater", "prune", err);
    if (status >= 0)
        status = kiln_booster_columns(booster, &columns, err);
    if (status >= 0)
        status = kiln_boost_set_up(setup, booster, err);
    return status >= 0 ? kiln_booster_set(booster, "updater", "grow_quantile_histmaker", err)
                       : status;
}
