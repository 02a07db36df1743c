/* Sparse rows of numbers in text files, as LibSVM, XGBoost and LightGBM read them:
 *
 *     LABEL [qid:QUERY] INDEX:VALUE INDEX:VALUE ...   # comment
 *
 * Beside a file, FILE.query (or FILE.group) may have the number of rows of each query, one per
 * line, and FILE.weight a weight per row (LightGBM's side files). */
#ifndef KILN_LIBSVM_H
#define KILN_LIBSVM_H

#include "kiln/tools/text_data.h"

/* One row. A zeroed one is ready; it keeps its memory for the next row. */
typedef struct KilnLibsvmRow {
    bool has_label, has_query;
    float label;
    int32_t query;
    int64_t n;        /* values; indices ascend and differ */
    int32_t *indices; /* from 0 */
    float *values;    /* NaN: written as nan */
    size_t indices_capacity, values_capacity;
} KilnLibsvmRow;

/* Parse a line. KILN_E_FORMAT with the word that is wrong and what was expected. The label may be
 * absent. */
KILN_API KILN_NODISCARD KilnStatus kiln_libsvm_parse(KilnString line, KilnLibsvmRow *ret,
                                                     KilnError *err);
KILN_API void kiln_libsvm_row_release(KilnLibsvmRow *row);

typedef struct KilnLibsvmSpec {
    const char *const *paths;
    size_t n_paths;
    KilnOnError on_error; /* of bad rows */
    const char *cache;    /* KilnRecordsSpec.cache */
    const KilnPoll *poll; /* may be NULL */
} KilnLibsvmSpec;

/* All rows of some files, one after the other; empty lines and comments are none. */
typedef struct KilnLibsvm {
    int64_t n;
    int64_t *starts; /* [n + 1]: values of row i are those from starts[i] to starts[i + 1] - 1 */
    int32_t *indices;
    float *values;
    float *labels;          /* [n] */
    int32_t *queries;       /* [n]; NULL: the files have none */
    float *weights;         /* [n]; NULL: the files have none */
    int64_t *lines;         /* [n]: their rows in `records` */
    int32_t least, largest; /* index; -1: there is no value at all */
    KilnRecords *records;
    int64_t n_skipped; /* bad rows that were left out; the first as example: */
    char example[512], reason[512];
} KilnLibsvm;

/* Read files, packed ones (.gz, .zst), too. KILN_E_FORMAT with file and line: a bad row, a row
 * without label, side files that do not fit; rows of which some have queries and others not.
 * Release it also after a failure. */
KILN_API KILN_NODISCARD KilnStatus kiln_libsvm_read(const KilnLibsvmSpec *spec, KilnLibsvm *ret,
                                                    KilnError *err);
KILN_API void kiln_libsvm_release(KilnLibsvm *rows);
/* KilnDataModuleOps.left_out: bad rows of a split. */
KILN_API void kiln_libsvm_left_out(const KilnLibsvm *rows, KilnSplit split,
                                   void (*add)(void *ctx, const KilnOmission *omission), void *ctx);

/* Hold out a fraction of the rows for validation by the seed, of rows with queries whole queries:
 * the numbers of those that stay and of those held out, both ascending. KILN_E_RANGE if none stays,
 * with the option val_fraction. Lists are owned by the caller, also after a failure. */
KILN_API KILN_NODISCARD KilnStatus kiln_libsvm_hold_out(const KilnLibsvm *rows, double fraction,
                                                        uint64_t seed, int64_t **ret_kept,
                                                        int64_t *ret_n_kept, int64_t **ret_held,
                                                        int64_t *ret_n_held, KilnError *err);

/* KilnDataModuleOps.open_input: the lines of a file as texts of the only field. `ret` is valid
 * until the caller closes *ret_lines (kiln_records_close). */
KILN_API KILN_NODISCARD KilnStatus kiln_libsvm_open_input(const char *path, KilnRecords **ret_lines,
                                                          KilnRawSet *ret, KilnError *err);

#endif
