/* A decision tree of one node, as a plugin: a module without network that learns from a whole table
 * on the host, and a datamodule that gives one, with a column of texts. */
#include "kiln.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 2, CLASSES = 2 };

/* ---- Data -------------------------------------------------------------------------------- */

typedef struct DataOpts {
    KILN_LOADING_OPTIONS;
    int64_t count;
    bool tables;
} DataOpts;

static const KilnField data_fields[] = {
    KILN_LOADING_FIELDS(DataOpts, "8"),
    KILN_FIELD_I64(DataOpts, count, "64", 2, 1e6, "rows of each split"),
    KILN_FIELD_BOOL(DataOpts, tables, "true", "also give whole tables"),
    KILN_FIELD_END,
};

/* The rows of all splits. */
typedef struct DataState {
    float *numbers[NUMBERS];
    int32_t *labels;
    const char **texts;
    KilnColumn columns[NUMBERS + 2];
} DataState;

static const char *const names[] = { "short", "long" };

/* Rows of class 1 are longer than 5; widths say nothing. */
static void fill(DataState *data, int64_t n)
{
    KilnRng rng;

    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        data->labels[i] = (int32_t)(i % CLASSES);
        data->numbers[0][i] = kiln_rng_range(&rng, 0.0f, 9.0f);
        data->numbers[1][i] = (float)data->labels[i] * 5.5f + kiln_rng_range(&rng, 0.0f, 4.0f);
        data->texts[i] = names[data->labels[i]];
    }
}

static KilnStatus data_setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    DataState *data = kiln_state(self);
    const size_t n = (size_t)((const DataOpts *)kiln_opts(self))->count;
    bool good = true;

    (void)context;
    for (size_t c = 0; c < NUMBERS; c++) {
        data->numbers[c] = calloc(n, sizeof(float));
        good = good && data->numbers[c] != NULL;
        data->columns[c] = (KilnColumn) { .name = c == 0 ? "width" : "length",
                                          .dtype = KILN_F32,
                                          .data = data->numbers[c] };
    }
    data->labels = calloc(n, sizeof(*data->labels));
    data->texts = calloc(n, sizeof(*data->texts));
    if (!good || data->labels == NULL || data->texts == NULL)
        return kiln_error_nomem(err, n * sizeof(*data->texts));
    fill(data, (int64_t)n);
    data->columns[NUMBERS] = (KilnColumn) { .name = "note", .texts = data->texts };
    data->columns[NUMBERS + 1] =
        (KilnColumn) { .name = "label", .dtype = KILN_I32, .data = data->labels };
    return KILN_OK;
}

static void data_release(KilnInstance *self)
{
    DataState *data = kiln_state(self);

    for (size_t c = 0; c < NUMBERS; c++)
        free(data->numbers[c]);
    free(data->labels);
    free(data->texts);
}

static KilnStatus data_spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    static const KilnFeature features[] = {
        { .name = "row",
          .content = KILN_ROW,
          .dtype = KILN_F32,
          .shape = { .rank = 1, .dim = { NUMBERS } } },
        { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
    };

    (void)self;
    (void)err;
    *ret = (KilnDataSpec) {
        .features = features,
        .n_features = KILN_COUNT(features),
        .n_classes = CLASSES,
        .class_names = names,
    };
    return KILN_OK;
}

static KilnStatus data_get(void *ctx, int64_t index, KilnRng *rng, KilnSample *sample,
                           KilnError *err)
{
    const DataState *data = ctx;

    (void)rng;
    (void)err;
    for (size_t c = 0; c < NUMBERS; c++)
        ((float *)sample->data[0])[c] = data->numbers[c][index];
    *(int32_t *)sample->data[1] = data->labels[index];
    return KILN_OK;
}

static KilnStatus data_set(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                           KilnError *err)
{
    (void)split;
    (void)set;
    (void)err;
    *ret = (KilnDataset) {
        .count = ((const DataOpts *)kiln_opts(self))->count,
        .ctx = kiln_state(self),
        .get = data_get,
    };
    return KILN_OK;
}

static KilnStatus data_table(KilnInstance *self, KilnSplit split, size_t set, KilnTable *ret,
                             KilnError *err)
{
    const DataOpts *opts = kiln_opts(self);
    const DataState *data = kiln_state(self);

    (void)split;
    (void)set;
    if (!opts->tables)
        return kiln_error_set(err, KILN_E_RANGE, "tables: is false");
    *ret = (KilnTable) {
        .n_rows = opts->count,
        .columns = data->columns,
        .n_columns = KILN_COUNT(data->columns),
        .label = NUMBERS + 1,
    };
    return KILN_OK;
}

static void data_loading(const KilnInstance *self, KilnLoading *ret)
{
    *ret = KILN_LOADING((const DataOpts *)kiln_opts(self));
}

static const KilnDataModuleOps data_ops = {
    .setup = data_setup,
    .spec = data_spec,
    .dataset = data_set,
    .loading = data_loading,
    .table = data_table,
};

static const KilnComponent lengths = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "lengths",
    .summary = "Rows of two numbers, a text and a class",
    KILN_FIELDS(data_fields),
    .opts_size = sizeof(DataOpts),
    .state_size = sizeof(DataState),
    .release = data_release,
    .ops.datamodule = &data_ops,
};

/* ---- The module -------------------------------------------------------------------------- */

typedef struct Opts {
    KilnInstance **metrics;
    size_t metrics_count;
    char *monitor;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_COMPONENT_MAP(Opts, metrics, KILN_KIND_METRIC, "{accuracy: metric/accuracy}",
                             "what is logged: val/NAME, test/NAME"),
    KILN_FIELD_MONITOR(Opts, "val/accuracy"),
    KILN_FIELD_END,
};

/* Class 1 where the column is above the threshold. */
typedef struct Stump {
    int64_t column;
    double threshold;
} Stump;

static const KilnTensorSpec reads[] = {
    { .name = "row", .content = KILN_ROW, .dtype = KILN_F32, .axes = "columns" },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "" },
};

static KilnStatus setup(KilnInstance *self, const KilnScope *scope, const KilnDataSpec *data,
                        KilnError *err)
{
    (void)self;
    (void)scope; /* no parameters */
    (void)data;
    (void)err;
    return KILN_OK;
}

/* Rows of the table on the right side of the threshold. */
static int64_t count_right(const KilnTable *table, size_t column, float threshold)
{
    const float *values = table->columns[column].data;
    const int32_t *labels = table->columns[table->label].data;
    int64_t right = 0;

    for (int64_t i = 0; i < table->n_rows; i++)
        right += (values[i] > threshold) == (labels[i] == 1);
    return right;
}

static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    Stump *stump = kiln_state(self);
    int64_t most = -1;
    const KilnTable *table;
    KilnStatus status = kiln_trainer_table(trainer, KILN_TRAIN, 0, &table, err);

    for (size_t c = 0; status >= 0 && c < table->n_columns; c++) {
        const float *values = table->columns[c].data;

        if (table->columns[c].dtype != KILN_F32 || values == NULL || c == table->label)
            continue;
        for (int64_t i = 0; i < table->n_rows; i++) {
            const int64_t right = count_right(table, c, values[i]);

            if (right <= most)
                continue;
            most = right;
            *stump = (Stump) { (int64_t)c, (double)values[i] };
        }
    }
    return status;
}

/* Everything was learnt at the start. */
static KilnStatus manual_step(KilnInstance *self, KilnManual *manual, KilnError *err)
{
    (void)err;
    kiln_manual_log(manual, "train/threshold", ((const Stump *)kiln_state(self))->threshold,
                    KILN_LOG_EPOCH);
    return KILN_OK;
}

static void evaluate(KilnInstance *self, KilnStep *step)
{
    const Opts *opts = kiln_opts(self);
    const Stump *stump = kiln_state(self);
    KilnTensor *above = kiln_shift(kiln_narrow(kiln_step_input(step, "row"), 1, stump->column, 1),
                                   -stump->threshold);
    KilnTensor *scores = kiln_concat((KilnTensor *[]) { kiln_neg(above), above }, 2, 1);

    for (size_t i = 0; i < opts->metrics_count; i++)
        kiln_step_metric(step, opts->metrics[i], scores, kiln_step_input(step, "label"), 0);
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const Stump *stump = kiln_state(self);

    kiln_state_set_i64(saved, "column", stump->column);
    kiln_state_set_f64(saved, "threshold", stump->threshold);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *saved, KilnError *err)
{
    Stump *stump = kiln_state(self);

    if (!kiln_state_get_i64(saved, "column", &stump->column) || stump->column < 0 ||
        stump->column >= NUMBERS || !kiln_state_get_f64(saved, "threshold", &stump->threshold))
        return kiln_error_set(err, KILN_E_FORMAT, "has no column and threshold");
    return KILN_OK;
}

static const KilnCallbackOps hooks = {
    .on_fit_start = on_fit_start,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
};

static const KilnModuleOps ops = {
    .features = reads,
    .n_features = KILN_COUNT(reads),
    .setup = setup,
    .manual_step = manual_step,
    .validation_step = evaluate,
    .hooks = &hooks,
};

static const KilnComponent stump = {
    .kind = KILN_KIND_MODULE,
    .name = "stump",
    .summary = "One threshold on the best column of a table",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(Stump),
    .ops.module = &ops,
};

static const KilnComponent *const list[] = { &lengths, &stump, NULL };
KILN_PLUGIN_DEFINE(list)
