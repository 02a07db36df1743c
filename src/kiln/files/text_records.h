/* Rows of named text columns in files: CSV, TSV, JSON lines, lines, parallel files, a folder per
 * class, CoNLL columns. Files are mapped, not loaded, and their rows are found once, so they may be
 * larger than memory; .gz and .zst files are unpacked once, and .parquet files as CSV. */
#ifndef KILN_TEXT_RECORDS_H
#define KILN_TEXT_RECORDS_H

#include "kiln/component.h"
#include "kiln/tokenizer.h"

typedef enum KilnRecordFormat {
    /* By the ending, without .gz and .zst: .csv or .parquet, .tsv, .jsonl, .ndjson or .json,
     * .conll, .bio or .iob; a folder: folders. Other files are labeled if the first line begins
     * with __label__, label_first if the spec has a label_end that the first word of each line has
     * in it, parallel if there are several with different endings; else they are as spec.fallback
     * says, or lines */
    KILN_RECORDS_AUTO,
    KILN_RECORDS_CSV,   /* RFC 4180: fields may be quoted, with "" for a quote */
    KILN_RECORDS_TSV,   /* tabs; quotes are ordinary characters */
    KILN_RECORDS_JSONL, /* a JSON object per line, or one list of objects; keys are the columns */
    KILN_RECORDS_LINES, /* a row per line; its only column is "text" */
    /* Lines that begin with words __label__NAME; columns "label", a list, and "text" */
    KILN_RECORDS_LABELED,
    /* A file per column, row i being line i of each; all have the same number of lines. Columns are
     * called as spec.columns says, or as the files end: "de" of train.de.gz */
    KILN_RECORDS_PARALLEL,
    KILN_RECORDS_FOLDERS, /* a folder per class with a file per row; columns "label" and "text" */
    /* A token per line with tags beside it, blank lines between rows; columns are lists */
    KILN_RECORDS_CONLL,
    KILN_RECORDS_LABEL_FIRST /* lines whose first word is the label; columns "label" and "text" */
} KilnRecordFormat;

/* The choices of an option for the format, in the order of the enumeration. */
KILN_API_TABLE const KilnChoice kiln_record_formats[11];

typedef enum KilnTextEncoding {
    KILN_UTF8,
    KILN_LATIN1,
    KILN_UTF8_OR_LATIN1 /* each row that is not UTF-8 is ISO-8859-1 */
} KilnTextEncoding;
/* utf-8, latin-1, utf-8-or-latin-1. */
KILN_API_TABLE const KilnChoice kiln_text_encodings[4];

/* Ends each item of a value that is a list: one of a CoNLL column, of a JSON list, of the labels of
 * KILN_RECORDS_LABELED. (U+001F, the unit separator) */
#define KILN_RECORDS_ITEM_END '\x1f'

/* The longest row, in bytes; a longer one is an error of that row. */
#define KILN_RECORDS_ROW_MAX (64 << 20)

typedef struct KilnRecordsSpec {
    /* One after the other, with the same columns; of KILN_RECORDS_PARALLEL one per column. */
    const char *const *paths;
    size_t n_paths;
    KilnRecordFormat format;
    /* Names of the columns. Of CSV and TSV the first row has them if this is NULL, or if all of
     * these are in it; of CoNLL they are "0", "1", ... if this is NULL. */
    const char *const *columns;
    size_t n_columns;
    char delimiter; /* of CSV, TSV and CoNLL; 0: comma, tab, and tab or spaces */
    KilnTextEncoding encoding;
    /* Folder for unpacked files and for the rows of large ones, used again by later runs; made when
     * needed. NULL: unpack to a temporary file ($TMPDIR), and find rows each time. */
    const char *cache;
    const KilnPoll *poll; /* may be NULL */
    /* With KILN_RECORDS_AUTO. */
    const char *label_end;     /* NULL: no file is label_first */
    KilnRecordFormat fallback; /* if nothing shows the format; KILN_RECORDS_AUTO: lines */
} KilnRecordsSpec;

/* Immutable once open: any number of threads may read it. A file must not be truncated meanwhile.
 */
typedef struct KilnRecords KilnRecords;

/* Map the files and find their rows. KILN_E_FORMAT, with file and row: an unterminated quote, a
 * header without names, parallel files of different lengths, UTF-16, a JSON list that is not
 * closed, one JSON object. Rows themselves are checked when they are read. Owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_records_open(const KilnRecordsSpec *spec, KilnRecords **ret,
                                                     KilnError *err);
/* Accepts NULL. */
KILN_API void kiln_records_close(KilnRecords *records);

KILN_API int64_t kiln_records_count(const KilnRecords *records);
/* Never KILN_RECORDS_AUTO. */
KILN_API KilnRecordFormat kiln_records_format(const KilnRecords *records);
/* Whether the first row of CSV or TSV has the names of the columns. */
KILN_API bool kiln_records_has_header(const KilnRecords *records);
/* Borrowed names of the columns; returns their number. Column N without a name in its file's header
 * is columnN. */
KILN_API size_t kiln_records_columns(const KilnRecords *records, const char *const **ret);
/* The number of a column, for kiln_records_read. KILN_E_KEY with the nearest name. */
KILN_API KILN_NODISCARD KilnStatus kiln_records_column(const KilnRecords *records, const char *name,
                                                       size_t *ret, KilnError *err);

/* The columns of a row. A zeroed one is ready; it keeps its memory for the next row. */
typedef struct KilnRecord {
    KilnString *fields; /* one per requested column, and the row's file; until the next read */
    size_t capacity;
    KilnText text;      /* what they point into */
    KilnText converted; /* the row, if the file is not UTF-8 */
} KilnRecord;

/* Read columns columns[0..n-1] of row `row`: UTF-8 without NUL. KILN_E_FORMAT with file, line and,
 * of a wrong encoding, the offset of the byte in the file: a row with too few or too many columns,
 * invalid JSON, a NUL byte, bytes that are not UTF-8, a row that is too long. KILN_E_MISSING: a
 * JSON object lacks a key. */
KILN_API KILN_NODISCARD KilnStatus kiln_records_read(const KilnRecords *records, int64_t row,
                                                     const size_t *columns, size_t n,
                                                     KilnRecord *ret, KilnError *err);
/* Free the memory; zeroed afterwards. */
KILN_API void kiln_record_release(KilnRecord *record);

/* Append the path in field `column` of a record of n columns: an absolute one as it is, another one
 * below `root` or, if that is NULL, below the folder of the row's file. */
KILN_API void kiln_record_append_path(const KilnRecord *record, size_t n, size_t column,
                                      const char *root, KilnText *to);

/* The next item of a list: advances *list and returns true; false: there is none left. A value
 * without KILN_RECORDS_ITEM_END is one item. */
KILN_API bool kiln_record_next_item(KilnString *list, KilnString *ret);

/* Write "train.csv:17" (file and line of a row's beginning; of KILN_RECORDS_FOLDERS the file) to
 * ret[size], cut if it does not fit. Returns ret. */
KILN_API const char *kiln_records_location(const KilnRecords *records, int64_t row, char *ret,
                                           size_t size);

#endif
