/* XGBoost's C library: loading it, and everything that is called in it. This is the only file that
 * knows it. */
#ifdef KILN_WITH_XGBOOST

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

#include "base/parse.h"
#include "base/text.h"
#include "kiln/tools/boost.h"

struct KilnBooster {
    BoosterHandle handle;
};

struct KilnBoostData {
    DMatrixHandle handle;
    int64_t n, columns;
};

/* ---- The library ----------------------------------------------------------------- */

#define FUNCTIONS(X)                                                                               \
    X(XGBGetLastError)                                                                             \
    X(XGBRegisterLogCallback)                                                                      \
    X(XGDMatrixCreateFromMat_omp)                                                                  \
    X(XGDMatrixFree)                                                                               \
    X(XGDMatrixSetDenseInfo)                                                                       \
    X(XGDMatrixSetStrFeatureInfo)                                                                  \
    X(XGBoosterCreate)                                                                             \
    X(XGBoosterFree)                                                                               \
    X(XGBoosterSetParam)                                                                           \
    X(XGBoosterLoadModel)                                                                          \
    X(XGBoosterSaveModel)                                                                          \
    X(XGBoosterBoostedRounds)                                                                      \
    X(XGBoosterGetNumFeature)                                                                      \
    X(XGBoosterUpdateOneIter)                                                                      \
    X(XGBoosterEvalOneIter)                                                                        \
    X(XGBoosterPredictFromDMatrix)                                                                 \
    X(XGBoosterPredictFromDense)                                                                   \
    X(XGBoosterFeatureScore)                                                                       \
    X(XGBoosterSetStrFeatureInfo)

/* Written once, by load. */
static struct {
    bool loaded;
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} xgb;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* POSIX lets a function's address pass through dlsym's object pointer; C wants a copy of the bytes.
 */
static bool find(void *library, const char *name, void *ret_function, size_t size)
{
    void *address = dlsym(library, name);

    memcpy(ret_function, &address, size);
    return address != NULL;
}

static void load(void)
{
    void *library = dlopen("libxgboost.so.0", RTLD_NOW | RTLD_LOCAL);
    bool all = true;

    if (library == NULL)
        library = dlopen("libxgboost.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
#define FIND(name) all = all && find(library, #name, &xgb.name, sizeof(xgb.name));
    FUNCTIONS(FIND)
#undef FIND
    xgb.loaded = all;
    if (!all)
        dlclose(library);
}

static void discard(const char *message)
{
    (void)message;
}

/* Its messages go to a callback of each thread; what matters is in the errors. */
static void silence(void)
{
    static _Thread_local bool silent;

    if (!silent)
        (void)xgb.XGBRegisterLogCallback(discard);
    silent = true;
}

KilnStatus kiln_boost_supported(KilnError *err)
{
    if (pthread_once(&once, load) != 0 || !xgb.loaded)
        return kiln_error_set(err, KILN_E_MISSING,
                              "libxgboost.so.0 cannot be loaded; install XGBoost's C library "
                              "(Debian's package is libxgboost0)");
    silence();
    return KILN_OK;
}

/* ---- Errors ----------------------------------------------------------------------- */

/* "[12:00:00] ../src/learner.cc:12: Check failed: x == y (1 vs. 2) : why\nStack trace:\n..."
 * without the place in its source and the stack. */
static KilnStatus failed(const char *what, KilnError *err)
{
    const char *text = xgb.XGBGetLastError();
    const char *place = strstr(text, ".cc:"), *end = strstr(text, "\nStack trace");

    if (place == NULL)
        place = strstr(text, ".h:");
    const char *colon = place != NULL ? strstr(place, ": ") : NULL;
    const char *begin = colon != NULL && (end == NULL || colon < end) ? colon + 2 : text;
    int length = (int)(end != NULL && end > begin ? (size_t)(end - begin) : strlen(begin));

    while (length > 0 && strchr("\n\t ", begin[length - 1]) != NULL)
        length--;
    return kiln_error_set(err, KILN_E_RANGE, "XGBoost, %s: %.*s", what, length, begin);
}

static KilnStatus done(int result, const char *what, KilnError *err)
{
    return result == 0 ? KILN_OK : failed(what, err);
}

/* ---- Data ------------------------------------------------------------------------ */

enum { DATA_FLOAT = 1, DATA_UINT32 = 3 }; /* XGDMatrixSetDenseInfo */

static KilnStatus set_info(KilnBoostData *data, const char *field, const void *values, int64_t n,
                           int type, KilnError *err)
{
    if (values == NULL)
        return KILN_OK;
    return done(xgb.XGDMatrixSetDenseInfo(data->handle, field, values, (bst_ulong)n, type), field,
                err);
}

static KilnStatus set_groups(KilnBoostData *data, const KilnBoostRows *rows, KilnError *err)
{
    if (rows->groups == NULL)
        return KILN_OK;
    unsigned *sizes = malloc((size_t)rows->n_groups * sizeof(*sizes) + 1);
    if (sizes == NULL)
        return kiln_error_nomem(err, (size_t)rows->n_groups * sizeof(*sizes));
    for (int64_t i = 0; i < rows->n_groups; i++)
        sizes[i] = (unsigned)rows->groups[i];
    KilnStatus status = set_info(data, "group", sizes, rows->n_groups, DATA_UINT32, err);
    free(sizes);
    return status;
}

/* Names, which a model file keeps, and which columns are categories. */
static KilnStatus set_columns(KilnBoostData *data, const KilnBoostColumns *columns, KilnError *err)
{
    const bst_ulong n = (bst_ulong)columns->n;
    const char **types = calloc((size_t)n + 1, sizeof(*types));
    KilnStatus status = KILN_OK;

    if (types == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*types));
    for (bst_ulong i = 0; i < n; i++)
        types[i] = columns->categories[i] ? "c" : "float";
    if (columns->any_category)
        status = done(xgb.XGDMatrixSetStrFeatureInfo(data->handle, "feature_type", types, n),
                      "types of columns", err);
    if (status >= 0 && columns->named)
        status = done(xgb.XGDMatrixSetStrFeatureInfo(data->handle, "feature_name",
                                                     (const char **)columns->names, n),
                      "names of columns", err);
    free(types);
    return status;
}

KilnStatus kiln_boost_data_new(const KilnBoostColumns *columns, const KilnBoostRows *rows,
                               int threads, KilnBoostData **ret, KilnError *err)
{
    KilnBoostData *data = calloc(1, sizeof(*data));
    KilnStatus status = data != NULL ? kiln_boost_supported(err)
                                     : kiln_error_nomem(err, sizeof(*data));

    if (status >= 0) {
        *data = (KilnBoostData) { .n = rows->n, .columns = rows->columns };
        status = done(xgb.XGDMatrixCreateFromMat_omp(rows->values, (bst_ulong)rows->n,
                                                     (bst_ulong)rows->columns, NAN, &data->handle,
                                                     threads),
                      "reading a table", err);
    }
    if (status >= 0)
        status = set_info(data, "label", rows->targets, rows->n, DATA_FLOAT, err);
    if (status >= 0)
        status = set_groups(data, rows, err);
    if (status >= 0)
        status = set_info(data, "weight", rows->weights,
                          rows->groups != NULL ? rows->n_groups : rows->n, DATA_FLOAT, err);
    if (status >= 0)
        status = set_columns(data, columns, err);
    if (status < 0) {
        kiln_boost_data_free(data);
        return status;
    }
    *ret = data;
    return KILN_OK;
}

void kiln_boost_data_free(KilnBoostData *data)
{
    if (data != NULL && data->handle != NULL)
        (void)xgb.XGDMatrixFree(data->handle);
    free(data);
}

/* ---- Boosters ----------------------------------------------------------------------- */

KilnStatus kiln_booster_new(KilnBoostData *data, KilnBooster **ret, KilnError *err)
{
    KilnBooster *booster = calloc(1, sizeof(*booster));
    KilnStatus status = booster != NULL ? kiln_boost_supported(err)
                                        : kiln_error_nomem(err, sizeof(*booster));

    if (status >= 0)
        status = done(xgb.XGBoosterCreate(data != NULL ? &data->handle : NULL, data != NULL,
                                          &booster->handle),
                      "a new booster", err);
    if (status < 0) {
        free(booster);
        return status;
    }
    *ret = booster;
    return KILN_OK;
}

void kiln_booster_free(KilnBooster *booster)
{
    if (booster != NULL)
        (void)xgb.XGBoosterFree(booster->handle);
    free(booster);
}

KilnStatus kiln_booster_set(KilnBooster *booster, const char *name, const char *value,
                            KilnError *err)
{
    return done(xgb.XGBoosterSetParam(booster->handle, name, value), name, err);
}

KilnStatus kiln_booster_read(KilnBooster *booster, const char *path, KilnError *err)
{
    return done(xgb.XGBoosterLoadModel(booster->handle, path), path, err);
}

KilnStatus kiln_booster_write(KilnBooster *booster, const char *path, KilnError *err)
{
    return done(xgb.XGBoosterSaveModel(booster->handle, path), path, err);
}

KilnStatus kiln_booster_rounds(KilnBooster *booster, int64_t *ret, KilnError *err)
{
    int rounds = 0;
    KilnStatus status = done(xgb.XGBoosterBoostedRounds(booster->handle, &rounds), "rounds", err);

    if (status >= 0)
        *ret = rounds;
    return status;
}

KilnStatus kiln_booster_columns(KilnBooster *booster, int64_t *ret, KilnError *err)
{
    bst_ulong columns = 0;
    KilnStatus status = done(xgb.XGBoosterGetNumFeature(booster->handle, &columns), "columns", err);

    if (status >= 0)
        *ret = (int64_t)columns;
    return status;
}

KilnStatus kiln_booster_update(KilnBooster *booster, int64_t round, KilnBoostData *data,
                               KilnError *err)
{
    return done(xgb.XGBoosterUpdateOneIter(booster->handle, (int)round, data->handle),
                "a boosting round", err);
}

/* ---- Metrics ------------------------------------------------------------------------ */

/* One of "\tdata-rmse:0.5\tdata-ndcg@5-:nan"; NULL: no more. */
static const char *next_metric(const char *text, char *ret_name, size_t size, double *ret_value)
{
    static const char prefix[] = "\tdata-";
    char value[64];
    const char *begin = strstr(text, prefix);

    if (begin == NULL)
        return NULL;
    begin += sizeof(prefix) - 1;
    const char *end = begin + strcspn(begin, "\t");
    const char *colon = end;
    while (colon > begin && *colon != ':')
        colon--;
    snprintf(ret_name, size, "%.*s", (int)(colon - begin), begin);
    snprintf(value, sizeof(value), "%.*s", (int)(end - colon - 1), colon + 1);
    if (kiln_parse_f64(value, ret_value, NULL) < 0)
        *ret_value = strstr(value, "inf") != NULL ? (double)INFINITY : (double)NAN;
    return end;
}

KilnStatus kiln_booster_evaluate(KilnBooster *booster, KilnBoostData *data,
                                 void (*ret)(void *ctx, const char *name, double value), void *ctx,
                                 KilnError *err)
{
    const char *names[] = { "data" }, *text = NULL;
    char name[64];
    double value;
    KilnStatus status =
        done(xgb.XGBoosterEvalOneIter(booster->handle, 0, &data->handle, names, 1, &text),
             "metrics", err);

    while (status >= 0 && (text = next_metric(text, name, sizeof(name), &value)) != NULL)
        ret(ctx, name, value);
    return status;
}

/* ---- Predictions ----------------------------------------------------------------------- */

enum { VALUES = 0, SCORES = 1, CONTRIBUTIONS = 2 };

static void write_config(int type, char *ret, size_t size)
{
    snprintf(ret, size,
             "{\"type\": %d, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0, "
             "\"strict_shape\": true, \"cache_id\": 0, \"missing\": NaN}",
             type);
}

KilnStatus kiln_booster_scores(KilnBooster *booster, KilnBoostData *data, bool transformed,
                               const float **ret, int64_t *ret_width, KilnError *err)
{
    const bst_ulong *shape = NULL;
    bst_ulong rank = 0;
    const float *result = NULL;
    char config[160];

    write_config(transformed ? VALUES : SCORES, config, sizeof(config));
    KilnStatus status = done(xgb.XGBoosterPredictFromDMatrix(booster->handle, data->handle, config,
                                                             &shape, &rank, &result),
                             "scores", err);
    if (status < 0)
        return status;
    *ret_width = rank == 2 ? (int64_t)shape[1] : 1;
    *ret = result;
    return KILN_OK;
}

/* The caller has room for `count` numbers. */
static KilnStatus take(const bst_ulong *shape, bst_ulong rank, const float *result, int64_t count,
                       float *ret, KilnError *err)
{
    int64_t got = 1;

    for (bst_ulong axis = 0; axis < rank; axis++)
        got *= (int64_t)shape[axis];
    if (got != count)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "XGBoost gives %lld numbers for the rows; expected %lld: the model "
                              "was made for another task",
                              (long long)got, (long long)count);
    memcpy(ret, result, (size_t)count * sizeof(*ret));
    return KILN_OK;
}

KilnStatus kiln_booster_predict(KilnBooster *booster, const float *values, int64_t n,
                                int64_t columns, bool transformed, int64_t width, float *ret,
                                KilnError *err)
{
    const bst_ulong *shape = NULL;
    bst_ulong rank = 0;
    const float *result = NULL;
    char config[160], array[160];

    silence();
    write_config(transformed ? VALUES : SCORES, config, sizeof(config));
    snprintf(array, sizeof(array),
             "{\"data\": [%zu, true], \"shape\": [%lld, %lld], \"typestr\": \"<f4\", "
             "\"version\": 3}",
             (size_t)values, (long long)n, (long long)columns);
    KilnStatus status = done(
        xgb.XGBoosterPredictFromDense(booster->handle, array, config, NULL, &shape, &rank, &result),
        "a prediction", err);
    return status >= 0 ? take(shape, rank, result, n * width, ret, err) : status;
}

KilnStatus kiln_booster_contributions(KilnBooster *booster, const float *values, int64_t n,
                                      int64_t columns, int64_t width, float *ret, KilnError *err)
{
    const bst_ulong *shape = NULL;
    bst_ulong rank = 0;
    const float *result = NULL;
    DMatrixHandle data = NULL;
    char config[160];

    silence();
    write_config(CONTRIBUTIONS, config, sizeof(config));
    KilnStatus status = done(
        xgb.XGDMatrixCreateFromMat_omp(values, (bst_ulong)n, (bst_ulong)columns, NAN, &data, 1),
        "reading rows", err);
    if (status >= 0)
        status = done(
            xgb.XGBoosterPredictFromDMatrix(booster->handle, data, config, &shape, &rank, &result),
            "contributions", err);
    if (status >= 0)
        status = take(shape, rank, result, n * width * (columns + 1), ret, err);
    if (data != NULL)
        (void)xgb.XGDMatrixFree(data);
    return status;
}

/* ---- Importance ------------------------------------------------------------------------ */

/* {"importance_type": "gain", "feature_names": ["0", "1", ...]}: results name columns by number. */
static KilnStatus importance_config(const char *type, int64_t columns, char **ret, KilnError *err)
{
    KilnText config = { 0 };

    kiln_text_printf(&config, "{\"importance_type\": \"%s\", \"feature_names\": [", type);
    for (int64_t i = 0; i < columns; i++)
        kiln_text_printf(&config, "%s\"%lld\"", i > 0 ? ", " : "", (long long)i);
    kiln_text_append(&config, "]}");
    return kiln_text_finish(&config, KILN_OK, ret, err);
}

KilnStatus kiln_booster_importance(KilnBooster *booster, const char *type, int64_t columns,
                                   double *ret, KilnError *err)
{
    bst_ulong n = 0, rank = 0;
    const char **names = NULL;
    const bst_ulong *shape = NULL;
    const float *scores = NULL;
    char *config = NULL;
    KilnStatus status = importance_config(type, columns, &config, err);

    if (status < 0)
        return status;
    status =
        done(xgb.XGBoosterFeatureScore(booster->handle, config, &n, &names, &rank, &shape, &scores),
             "importance of columns", err);
    free(config);
    if (status < 0)
        return status;
    for (int64_t i = 0; i < columns; i++)
        ret[i] = 0.0;
    for (bst_ulong i = 0; i < n; i++) {
        int64_t column = 0;

        if (kiln_parse_i64(names[i], &column, NULL) >= 0 && column >= 0 && column < columns)
            ret[column] = (double)scores[i];
    }
    return KILN_OK;
}

#else
typedef int kiln_boost_left_out; /* ISO C wants a declaration in every file */
#endif
