/* Rows of a table in CSV, TSV, JSON lines or Parquet, or of an SQL query: numbers, categories and
 * dates with a class or a number to predict. What a column is, is inferred from the training rows.
 */
#include "kiln.h"
#include "kiln/tools/table_data.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KILN_LOADING_OPTIONS;
    KilnTextFiles files;
    int64_t format;
    char **names;
    size_t names_count;
    char *delimiter, *decimal;
    int64_t encoding;
    char *query;
    char *target;
    int64_t target_type;
    char *target_end;
    KilnPairI64 *columns;
    size_t columns_count;
    KilnPairI64 *hash_buckets;
    size_t hash_buckets_count;
    char **missing_values;
    size_t missing_values_count;
    int64_t missing;
    bool missing_indicators;
    int64_t scaling;
    double val_fraction, test_fraction;
    bool stratify;
    int64_t *split_seed;
    char *split_column, *split_order, *leave_last_out, *group;
    KilnInstance *tokenizer;
    int64_t max_length;
    int64_t on_error;
    char *cache;
} Opts;

static const KilnField fields[] = {
    KILN_LOADING_FIELDS(Opts, "256"),
    KILN_FIELD_STRUCT(Opts, files, KilnTextFiles, kiln_text_files_fields,
                      "the files of each split"),
    KILN_FIELD_ENUM(Opts, format, "auto", kiln_record_formats,
                    "of the files: csv (also of .parquet), tsv or jsonl; auto: by their endings"),
    KILN_FIELD_STR_LIST_OPT(Opts, names, "null",
                            "names of the columns of files without a header, in order; a first row "
                            "that has all of them is a header"),
    KILN_FIELD_STR_OPT(Opts, delimiter, "null",
                       "the character between columns; null: that of the format"),
    KILN_FIELD_STR(Opts, decimal, "'.'", "the character before a number's fraction: . or ,"),
    KILN_FIELD_ENUM(Opts, encoding, "utf-8", kiln_text_encodings,
                    "of the files; utf-8-or-latin-1: each row that is not UTF-8 is latin-1"),
    KILN_FIELD_STR_OPT(Opts, query, "null",
                       "the files are SQLite databases, and the rows are those of this SELECT"),
    KILN_FIELD_STR_OPT(Opts, target, "null", "the column to predict; null: none"),
    KILN_FIELD_ENUM(Opts, target_type, "auto", kiln_target_types,
                    "classes give the feature label, a number gives target; auto: texts, and at "
                    "most 20 different whole numbers, are classes"),
    KILN_FIELD_STR_OPT(Opts, target_end, "null",
                       "a class ends before this text: with \".\" >50K. is the class >50K"),
    KILN_FIELD_ENUM_MAP(Opts, columns, "{}", kiln_column_kinds,
                        "kinds of columns by name: number, category, date, text (see tokenizer), "
                        "ignored; others are inferred from the training rows"),
    KILN_FIELD_I64_MAP(Opts, hash_buckets, "{}", 1, 2147483645,
                       "columns of categories whose values are hashed into so many ids, instead "
                       "of one for each value of the training rows; values that training lacks "
                       "have one, too"),
    KILN_FIELD_STR_LIST(Opts, missing_values,
                        "['?', NA, N/A, n/a, nan, NaN, NAN, 'null', 'NULL', None, '#N/A']",
                        "values that mean that there is none, beside an empty field"),
    KILN_FIELD_ENUM(Opts, missing, "mean", kiln_table_missing,
                    "missing numbers: the mean of the training rows; 'nan' in quotes: they stay "
                    "NaN, for trees"),
    KILN_FIELD_BOOL(Opts, missing_indicators, "false",
                    "add a column NAME.missing of 0 and 1 for each number that is missing in some "
                    "training row"),
    KILN_FIELD_ENUM(Opts, scaling, "standard", kiln_table_scalings,
                    "of numbers, by the training rows: standard (mean 0, deviation 1), quantile "
                    "(to a normal distribution), none"),
    KILN_FIELD_F64(Opts, val_fraction, "0.1", 0.0, 0.9,
                   "of the training files' rows, held out for validation if there are no files "
                   "for it"),
    KILN_FIELD_F64(Opts, test_fraction, "0.0", 0.0, 0.9,
                   "the same for the test; of all rows of the training files"),
    KILN_FIELD_BOOL(Opts, stratify, "true", "held-out parts have the same shares of the classes"),
    KILN_FIELD_I64_OPT(Opts, split_seed, "null", 0, 9.2e18,
                       "which rows are held out; null: by the run's seed"),
    KILN_FIELD_STR_OPT(Opts, split_column, "null",
                       "the column of the training files that says train, val or test, instead of "
                       "fractions"),
    KILN_FIELD_STR_OPT(Opts, split_order, "null",
                       "the column of numbers or dates by which the last rows are held out, such "
                       "as a time; null: they are drawn"),
    KILN_FIELD_STR_OPT(Opts, leave_last_out, "null",
                       "the column of a group, such as a user: the last row of each is the test's "
                       "and the one before it validation's, instead of fractions, by split_order "
                       "or as they stand; groups of one row are trained on"),
    KILN_FIELD_STR_OPT(Opts, group, "null",
                       "the column of the group that a row belongs to, as the feature query, for "
                       "ranking"),
    KILN_FIELD_COMPONENT_OPT(Opts, tokenizer, KILN_KIND_TOKENIZER, "null",
                             "makes the feature tokens of the columns of kind text, joined, for a "
                             "text encoder; it is trained on the training rows; null: they are "
                             "left out"),
    KILN_FIELD_I64(Opts, max_length, "64", 1, 1e6, "tokens of a row; later ones are cut"),
    KILN_FIELD_ENUM(Opts, on_error, "stop", kiln_on_error_choices,
                    "what a bad row does: stop with its file and line, or skip it and count it"),
    KILN_FIELD_OUTPUT_OPT(Opts, cache, "null",
                          "folder for unpacked files and row indexes, used again by later runs"),
    KILN_FIELD_END,
};

typedef struct State {
    KilnTableData *data;
} State;

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;
    const KilnRecordFormat format = (KilnRecordFormat)opts->format;

    *ret_option = "format";
    if (format != KILN_RECORDS_AUTO && format != KILN_RECORDS_CSV && format != KILN_RECORDS_TSV &&
        format != KILN_RECORDS_JSONL)
        return kiln_error_set(err, KILN_E_RANGE, "a table is csv, tsv or jsonl");
    *ret_option = "split_column";
    if (opts->split_column != NULL && (opts->split_order != NULL || opts->leave_last_out != NULL))
        return kiln_error_set(err, KILN_E_RANGE, "says which rows are held out; %s has no use then",
                              opts->split_order != NULL ? "split_order" : "leave_last_out");
    *ret_option = "test_fraction";
    if (opts->val_fraction + opts->test_fraction >= 1.0)
        return kiln_error_set(err, KILN_E_RANGE, "with val_fraction it leaves no rows to train on");
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, const KilnDataContext *context, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    const KilnTableSource source = {
        .files = &opts->files,
        .format = (KilnRecordFormat)opts->format,
        .names = (const char *const *)opts->names,
        .n_names = opts->names_count,
        .delimiter = opts->delimiter,
        .decimal = opts->decimal,
        .encoding = (KilnTextEncoding)opts->encoding,
        .query = opts->query,
        .on_error = (KilnOnError)opts->on_error,
        .cache = opts->cache,
        .missing_values = (const char *const *)opts->missing_values,
        .n_missing_values = opts->missing_values_count,
        .kinds = opts->columns,
        .n_kinds = opts->columns_count,
        .hash_buckets = opts->hash_buckets,
        .n_hash_buckets = opts->hash_buckets_count,
        .target = opts->target,
        .target_type = (KilnTargetType)opts->target_type,
        .target_end = opts->target_end,
        .group = opts->group,
        .missing = (KilnTableMissing)opts->missing,
        .missing_indicators = opts->missing_indicators,
        .scaling = (KilnTableScaling)opts->scaling,
        .val_fraction = opts->val_fraction,
        .test_fraction = opts->test_fraction,
        .stratify = opts->stratify,
        .split_seed = opts->split_seed,
        .split_column = opts->split_column,
        .split_order = opts->split_order,
        .leave_last_out = opts->leave_last_out,
        .tokenizer = opts->tokenizer,
        .max_length = opts->max_length,
    };

    return kiln_table_data_open(&source, context, &state->data, err);
}

static void release(KilnInstance *self)
{
    kiln_table_data_free(((State *)kiln_state(self))->data);
}

static const KilnTableData *data_of(const KilnInstance *self)
{
    return ((const State *)kiln_state((KilnInstance *)self))->data;
}

static KilnStatus spec(KilnInstance *self, KilnDataSpec *ret, KilnError *err)
{
    (void)err;
    kiln_table_data_spec(data_of(self), ret);
    return KILN_OK;
}

static KilnStatus dataset(KilnInstance *self, KilnSplit split, size_t set, KilnDataset *ret,
                          KilnError *err)
{
    (void)set;
    (void)err;
    kiln_table_data_dataset(((State *)kiln_state(self))->data, split, ret);
    return KILN_OK;
}

static KilnStatus table(KilnInstance *self, KilnSplit split, size_t set, KilnTable *ret,
                        KilnError *err)
{
    (void)set;
    return kiln_table_data_table(((State *)kiln_state(self))->data, split, ret, err);
}

static size_t raw_fields(KilnInstance *self, const KilnRawField **ret)
{
    return kiln_table_data_raw_fields(data_of(self), ret);
}

static KilnStatus preprocess(KilnInstance *self, const KilnRawValue *values, KilnSample *sample,
                             KilnError *err)
{
    return kiln_table_data_preprocess(data_of(self), values, sample, err);
}

static KilnStatus open_input(KilnInstance *self, const char *path, KilnRawSet *ret, KilnError *err)
{
    return kiln_table_data_open_input(((State *)kiln_state(self))->data, path, ret, err);
}

static KilnStatus check_data(KilnInstance *self, const KilnPoll *poll,
                             void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx,
                             KilnError *err)
{
    return kiln_table_data_check(data_of(self), poll, add, ctx, err);
}

static KilnStatus save_preprocessing(KilnInstance *self, const char *dir, KilnError *err)
{
    return kiln_table_data_save(data_of(self), dir, err);
}

static void loading(const KilnInstance *self, KilnLoading *ret)
{
    const Opts *opts = kiln_opts(self);

    *ret = KILN_LOADING(opts);
}

static void left_out(KilnInstance *self, void (*add)(void *ctx, const KilnOmission *omission),
                     void *ctx)
{
    kiln_table_data_left_out(data_of(self), add, ctx);
}

static void columns(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx)
{
    kiln_table_data_columns(data_of(self), add, ctx);
}

static void files(KilnInstance *self, void (*add)(void *ctx, const char *text), void *ctx)
{
    kiln_table_data_notes(data_of(self), add, ctx);
}

static void inferred(KilnInstance *self, void (*add)(void *ctx, const KilnInferredOption *option),
                     void *ctx)
{
    kiln_table_data_inferred(data_of(self), add, ctx);
}

static const KilnInstance *tokenizer_of(const KilnInstance *self)
{
    return ((const Opts *)kiln_opts(self))->tokenizer;
}

static const KilnTensorSpec declared[] = {
    { .name = "x", .content = KILN_ROW, .dtype = KILN_F32, .axes = "numbers", .optional = true },
    { .name = "ids",
      .content = KILN_ROW,
      .dtype = KILN_I32,
      .axes = "categories",
      .optional = true },
    { .name = "tokens",
      .content = KILN_TOKENS,
      .dtype = KILN_I32,
      .axes = "time",
      .varies = true,
      .optional = true },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "", .optional = true },
    { .name = "target", .content = KILN_LABEL, .dtype = KILN_F32, .axes = "", .optional = true },
    { .name = "query", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "", .optional = true },
};

static const KilnDataModuleOps ops = {
    .shareable = true,
    .features = declared,
    .n_features = KILN_COUNT(declared),
    .setup = setup,
    .spec = spec,
    .dataset = dataset,
    .raw_fields = raw_fields,
    .preprocess = preprocess,
    .open_input = open_input,
    .save_preprocessing = save_preprocessing,
    .loading = loading,
    .left_out = left_out,
    .table = table,
    .tokenizer = tokenizer_of,
    .files = files,
    .columns = columns,
    .check = check_data,
    .inferred = inferred,
};

const KilnComponent kiln_datamodule_table = {
    .kind = KILN_KIND_DATAMODULE,
    .name = "table",
    .summary =
        "Rows of a table in CSV, TSV, JSON lines, Parquet or SQLite, with a class or a number",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.datamodule = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_datamodule_table, NULL };
KILN_PLUGIN_DEFINE(list)
#endif
