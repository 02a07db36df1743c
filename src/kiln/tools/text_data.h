/* What datamodules of texts share: their files and columns as options, a validation split held out,
 * bad rows, a tokenizer that is trained on the training split and saved with the checkpoint, and
 * texts as ids.
 *
 * In setup: kiln_text_data_open(), kiln_text_tokenizer_prepare() for each tokenizer, then
 * kiln_text_tokens_encode() for each split and column (datamodules/labeled_text.c). */
#ifndef KILN_TEXT_DATA_H
#define KILN_TEXT_DATA_H

#include "kiln/files/text_records.h"
#include "kiln/loading.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* Files of each split, as KilnRecordsSpec.paths. */
typedef struct KilnTextFiles {
    char **train, **val, **test;
    size_t train_count, val_count, test_count;
} KilnTextFiles;
KILN_API_TABLE const KilnField kiln_text_files_fields[4];

typedef enum KilnOnError { KILN_ON_ERROR_STOP, KILN_ON_ERROR_SKIP } KilnOnError;
/* stop, skip. */
KILN_API_TABLE const KilnChoice kiln_on_error_choices[3];

/* Members of a datamodule's options struct, and their rows in the options table. */
#define KILN_TEXT_OPTIONS                                                                          \
    KilnTextFiles files;                                                                           \
    int64_t format;                                                                                \
    char **columns;                                                                                \
    size_t columns_count;                                                                          \
    char *delimiter;                                                                               \
    int64_t encoding;                                                                              \
    double val_fraction;                                                                           \
    int64_t on_error;                                                                              \
    char *cache
#define KILN_TEXT_FIELDS(T)                                                                        \
    KILN_FIELD_STRUCT(T, files, KilnTextFiles, kiln_text_files_fields, "the files of each split"), \
        KILN_FIELD_ENUM(T, format, "auto", kiln_record_formats,                                    \
                        "of the files; auto: by their endings (.csv, .tsv, .jsonl, .conll), else " \
                        "by how they begin"),                                                      \
        KILN_FIELD_STR_LIST_OPT(T, columns, "null",                                                \
                                "names of the columns of files without a header, in order; a "     \
                                "first row that has all of them is a header"),                     \
        KILN_FIELD_STR_OPT(T, delimiter, "null",                                                   \
                           "the character between columns; null: that of the format"),             \
        KILN_FIELD_ENUM(T, encoding, "utf-8", kiln_text_encodings,                                 \
                        "of the files; utf-8-or-latin-1: each row that is not UTF-8 is latin-1"),  \
        KILN_FIELD_F64(T, val_fraction, "0.1", 0.0, 0.9,                                           \
                       "training samples held out for validation, if there are no files for it"),  \
        KILN_FIELD_ENUM(T, on_error, "stop", kiln_on_error_choices,                                \
                        "what a bad row does: stop with its file and line, or skip it and "        \
                        "count it"),                                                               \
        KILN_FIELD_OUTPUT_OPT(T, cache, "null",                                                    \
                              "folder for unpacked files, row indexes and ids, used again by "     \
                              "later runs; ids are then mapped instead of kept in memory")

/* The options, borrowed. */
typedef struct KilnTextSource {
    const KilnTextFiles *files;
    KilnRecordFormat format;
    const char *const *columns;
    size_t n_columns;
    const char *delimiter;
    KilnTextEncoding encoding;
    double val_fraction;
    KilnOnError on_error;
    const char *cache;
    const char *label_end; /* KilnRecordsSpec.label_end, .fallback; not of KILN_TEXT_SOURCE */
    KilnRecordFormat fallback;
} KilnTextSource;
#define KILN_TEXT_SOURCE(opts)                                                                     \
    ((KilnTextSource) { .files = &(opts)->files,                                                   \
                        .format = (KilnRecordFormat)(opts)->format,                                \
                        .columns = (const char *const *)(opts)->columns,                           \
                        .n_columns = (opts)->columns_count,                                        \
                        .delimiter = (opts)->delimiter,                                            \
                        .encoding = (KilnTextEncoding)(opts)->encoding,                            \
                        .val_fraction = (opts)->val_fraction,                                      \
                        .on_error = (KilnOnError)(opts)->on_error,                                 \
                        .cache = (opts)->cache })

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Refuse a row that can't be a sample: KILN_E_FORMAT, KILN_E_TYPE, KILN_E_MISSING, KILN_E_KEY or
 * KILN_E_RANGE; the message gets its place. */
typedef KilnStatus KilnRowCheck(void *ctx, KilnSplit split, const KilnRecord *record,
                                KilnError *err);

/* Which columns a datamodule reads, and how it checks them. */
typedef struct KilnTextWanted {
    const char *const *columns; /* names; KilnRecord.fields are in this order */
    const char *const *options; /* options that name them, for messages; NULL: none */
    size_t n_columns;
    /* Optional. Called once per row in order, for train, val and test. Held-out rows count as
     * train. */
    KilnRowCheck *check;
    void *ctx;
    /* The columns of files that lack these names are the wanted ones in order, unless the option
     * `columns` names them: those of parallel files, and the first and the last one of CoNLL. */
    bool in_order;
} KilnTextWanted;

/* Rows of all splits. Any number of threads may read it. */
typedef struct KilnTextData KilnTextData;

/* Open the files that `context->stage` needs, check every row, and hold rows out for validation.
 * Bad rows are left out where the options say so. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_data_open(const KilnTextSource *source,
                                                       const KilnTextWanted *wanted,
                                                       const KilnDataContext *context,
                                                       KilnTextData **ret, KilnError *err);
/* Check the samples of a split again, once each in order, by what was not known before: a tokenizer
 * that is trained on them. Bad ones are left out or end it, as in kiln_text_data_open(), so samples
 * may get lower numbers; kiln_text_tokens_encode() comes after it. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_data_recheck(KilnTextData *data, KilnSplit split,
                                                          KilnRowCheck *check, void *ctx,
                                                          const KilnPoll *poll, KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_text_data_free(KilnTextData *data);
KILN_API int64_t kiln_text_data_count(const KilnTextData *data, KilnSplit split);
/* Read the wanted columns of sample i. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_data_read(const KilnTextData *data, KilnSplit split,
                                                       int64_t i, KilnRecord *ret, KilnError *err);
/* Write "train.csv:17", where sample i is, to ret[size]. Returns ret. */
KILN_API const char *kiln_text_data_location(const KilnTextData *data, KilnSplit split, int64_t i,
                                             char *ret, size_t size);
/* KilnDataModuleOps.left_out: rows that were skipped. */
KILN_API void kiln_text_data_left_out(const KilnTextData *data,
                                      void (*add)(void *ctx, const KilnOmission *omission),
                                      void *ctx);

/* KilnDataModuleOps.files: the formats and columns that were inferred. */
KILN_API void kiln_text_data_files(const KilnTextData *data,
                                   void (*add)(void *ctx, const char *text), void *ctx);

/* For KilnDataModuleOps.check: look for mistakes of annotators in the tags of words, split by
 * split: tags that continue no span, blanks and punctuation at the ends of spans. `words` and
 * `tags` are wanted columns. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_data_check_tags(
    const KilnTextData *data, size_t words, size_t tags, const KilnPoll *poll,
    void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx, KilnError *err);

/* True: there are only ASCII blanks, or nothing. */
KILN_API bool kiln_text_is_blank(KilnString text);

/* ---- Tokenizers ------------------------------------------------------------------------------ */

/* Make a tokenizer ready: read NAME in context->fitted if there is a checkpoint, else train it on
 * wanted columns columns[0..n-1] of the training split; each item of a list is a text of its own.
 * (A pretrained one reads its own file.)
 * KILN_E_MISSING in KILN_STAGE_PREDICT without a saved one. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_tokenizer_prepare(
    KilnInstance *tokenizer, const char *name, const KilnTextData *data, const size_t *columns,
    size_t n, const KilnDataContext *context, KilnError *err);
/* Write it to NAME ("tokenizer.json") in `dir`, for KilnDataModuleOps.save_preprocessing. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_tokenizer_save(const KilnInstance *tokenizer,
                                                            const char *dir, const char *name,
                                                            KilnError *err);

/* ---- Ids ------------------------------------------------------------------------------------- */

/* The ids of a split's texts, one after the other. Immutable. */
typedef struct KilnTextTokens {
    int64_t n;             /* texts */
    const int64_t *starts; /* [n + 1]: ids of text i are ids[starts[i]] to ids[starts[i + 1] - 1] */
    const int32_t *ids;
    int64_t longest; /* ids of the longest text */
    int64_t cut;     /* texts that were longer than max_length */
    void *map;       /* the file of the cache that they point into; NULL: they are allocated */
    size_t mapped;   /* its bytes */
} KilnTextTokens;

typedef struct KilnTextEncode {
    const KilnInstance *tokenizer;
    size_t column; /* of the wanted ones */
    int64_t pair;  /* the column of the second text of a pair; -1: none */
    bool add_special_tokens;
    int64_t max_length; /* later ids are cut; 0: no limit */
    const char *cache;  /* KilnTextSource.cache */
    const KilnPoll *poll;
} KilnTextEncode;

/* Encode a split in all threads. Every text has at least one id: one without tokens has that of
 * KILN_TOKEN_UNK, or 0. With a cache the ids are a file there, which later runs with the same
 * files, rows and tokenizer map again. Release it also after a failure. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_tokens_encode(const KilnTextData *data,
                                                           KilnSplit split,
                                                           const KilnTextEncode *encode,
                                                           KilnTextTokens *ret, KilnError *err);
KILN_API void kiln_text_tokens_release(KilnTextTokens *tokens);
/* Encode one text as kiln_text_tokens_encode() does, into ret[max_length], for preprocess.
 * `pair` NULL: none. */
KILN_API KILN_NODISCARD KilnStatus kiln_text_encode_one(const KilnTextEncode *encode,
                                                        KilnString text, const KilnString *pair,
                                                        int32_t *ret, int64_t *ret_length,
                                                        KilnError *err);

/* ---- Batches --------------------------------------------------------------------------------- */

/* Lengths for KilnLoading.buckets up to max_length: 8, 12, ... 32, then each about a quarter longer
 * than the one before. */
typedef struct KilnTextBuckets {
    int64_t lengths[64];
    size_t n;
} KilnTextBuckets;

KILN_API void kiln_text_buckets_init(KilnTextBuckets *buckets, int64_t max_length);
/* Set the buckets of KILN_LENGTH_LOADING(opts) if the user gives none. Borrows `buckets`. */
KILN_API void kiln_text_buckets_set(const KilnTextBuckets *buckets, KilnLoading *loading);

#endif
