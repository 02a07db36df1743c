/* What the files of records share. */
#ifndef KILN_DATA_RECORDS_RECORDS_INTERNAL_H
#define KILN_DATA_RECORDS_RECORDS_INTERNAL_H

#include "data/records/row_index.h"
#include "kiln/files/text_records.h"

#define KILN_LABEL_PREFIX "__label__"

/* A file and its rows. */
typedef struct KilnRecordsPart {
    KilnMappedFile file;
    KilnRowIndex index;
    bool is_list;      /* JSONL: the file is a JSON list of objects */
    int64_t header;    /* rows before the first sample: 1 with a header */
    int64_t first_row; /* number of its first row among all */
} KilnRecordsPart;

/* A file of a folder per class. */
typedef struct KilnClassFile {
    char *path;
    const char *class_name;
} KilnClassFile;

struct KilnRecords {
    KilnRecordFormat format; /* never auto */
    KilnTextEncoding encoding;
    char delimiter;
    char **columns; /* JSONL: those of the first row, for messages */
    size_t n_columns, columns_capacity;
    KilnRecordsPart *parts;
    size_t n_parts;
    int64_t count;
    KilnClassFile *class_files; /* of KILN_RECORDS_FOLDERS; else NULL */
    size_t class_files_capacity;
    char **class_names;
    size_t n_class_names, class_names_capacity;
};

/* A row that is read: its text, and which of its columns are wanted. */
typedef struct KilnRow {
    const KilnRecords *records;
    const char *text;
    size_t length;
    const size_t *columns;
    size_t n;
    KilnRecord *record; /* gets them */
    int64_t line_error; /* set with a failure: lines after the row's first, where it is */
} KilnRow;

/* The bytes of row i of a file. */
KilnString kiln_part_row(const KilnRecordsPart *part, int64_t i);
/* JSON without white space after it. */
KilnString kiln_json_trimmed(KilnString text);
/* Check the bytes of a row, and make UTF-8 of them. `offset` is that of its first byte in the file.
 */
KILN_NODISCARD KilnStatus kiln_row_check_bytes(const KilnRecords *records, KilnString *text,
                                               int64_t offset, KilnRecord *record, KilnError *err);
/* Start a row of n fields, all empty; and end it: offsets become pointers. */
KILN_NODISCARD KilnStatus kiln_record_clear(KilnRecord *record, size_t n, KilnError *err);
KILN_NODISCARD KilnStatus kiln_record_finish(KilnRecord *record, size_t n, KilnError *err);

/* Take the value of file column `column`, or append to it: begin, append to record->text, end. */
void kiln_row_begin(KilnRow *row, size_t column);
void kiln_row_end(KilnRow *row, size_t column);
/* Give the wanted columns of a row of CSV or TSV; returns how many columns it has. */
size_t kiln_row_split(KilnRow *row);
/* One function per format: find all columns of a row and give the wanted ones. Messages don't say
 * where the row is. */
KILN_NODISCARD KilnStatus kiln_row_read_delimited(KilnRow *row, KilnError *err);
KILN_NODISCARD KilnStatus kiln_row_read_json(KilnRow *row, KilnError *err);
KILN_NODISCARD KilnStatus kiln_row_read_labeled(KilnRow *row, KilnError *err);
KILN_NODISCARD KilnStatus kiln_row_read_block(KilnRow *row, KilnError *err);

/* The number of columns in the first line of a block. */
size_t kiln_block_columns(const KilnRecords *records, KilnString text);

/* The format of a path: a folder, or a known ending; else KILN_RECORDS_AUTO. (infer_format.c) */
KilnRecordFormat kiln_records_format_of_path(const char *path);
/* The format of files for KILN_RECORDS_AUTO; `first` is the first of them. */
KilnRecordFormat kiln_records_infer_format(const KilnRecordsSpec *spec,
                                           const KilnMappedFile *first);
/* The end of a file's name without .gz and .zst: "de" of train.de.gz. */
KilnString kiln_path_ending(const char *path);

/* Append a copy of `name` to the columns; KILN_E_NOMEM. */
KILN_NODISCARD KilnStatus kiln_records_add_column(KilnRecords *records, const char *name, size_t n,
                                                  KilnError *err);
/* List the files in the class folders of `root`. (class_folders.c) */
KILN_NODISCARD KilnStatus kiln_records_add_folders(KilnRecords *records, const char *root,
                                                   KilnError *err);

#endif
