/* Reads the raw samples of a user's file or folder by the fields that a datamodule takes: files
 * themselves, lines of .jsonl and .txt files, rows of .csv, .tsv and .safetensors files. */
#ifndef KILN_DATA_RAW_RAW_INPUT_H
#define KILN_DATA_RAW_RAW_INPUT_H

#include "kiln/data.h"

/* A zeroed one can be released. */
typedef struct KilnRawInput {
    KilnRawSet set;               /* valid until release */
    const KilnOmission *left_out; /* what the input has besides */
    size_t n_left_out;
    void (*release)(void *ctx); /* frees set.ctx; NULL: it is not owned */
} KilnRawInput;

/* Open `path`. `fields` must outlive the input; `poll` may be NULL. KILN_E_FORMAT, with what is
 * read, for an input that has no samples or is of no known kind. Release it after success. */
KILN_NODISCARD KilnStatus kiln_raw_input_open(const char *path, const KilnRawField *fields,
                                              size_t n_fields, const KilnPoll *poll,
                                              KilnRawInput *ret, KilnError *err);
void kiln_raw_input_release(KilnRawInput *input);

/* ---- Its kinds ----------------------------------------------------------------------------- */

/* The file `path`, or all files below that folder with an ending of the field, in byte order; each
 * is the value of `field`. Links to folders are not followed; they and other files are in left_out.
 * (paths.c) */
KILN_NODISCARD KilnStatus kiln_raw_paths_open(const char *path, const KilnRawField *field,
                                              const KilnPoll *poll, KilnRawInput *ret,
                                              KilnError *err);
/* How raw samples are read from JSON objects. */
typedef struct KilnRawJson {
    const KilnRawField *fields;
    size_t n_fields;
    const char *folder; /* that paths are relative to; NULL: the current one */
} KilnRawJson;

/* Read a JSON object: its members are the values of fields; others, and those that are null, are
 * left out. A string is a text where its field takes one, else a path; a list is an array, i32
 * where all its numbers are whole and f32 otherwise. KILN_E_FORMAT, KILN_E_TYPE: it is not such an
 * object. *ret is released by kiln_raw_json_release. (jsonl.c) */
KILN_NODISCARD KilnStatus kiln_raw_json_parse(const KilnRawJson *json, const char *text,
                                              size_t length, KilnRawSample *ret, KilnError *err);
void kiln_raw_json_release(KilnRawSample *sample);
/* Lines of the .jsonl file `path`, such objects; paths are relative to the file's folder. A line
 * that is no such object is an error of `get`. (jsonl.c) */
KILN_NODISCARD KilnStatus kiln_raw_jsonl_open(const char *path, const KilnRawField *fields,
                                              size_t n_fields, const KilnPoll *poll,
                                              KilnRawInput *ret, KilnError *err);
/* The same for a file that is one JSON list of objects; *ret_list is false, and *ret untouched, if
 * the file is no list. (json_list.c) */
KILN_NODISCARD KilnStatus kiln_raw_json_list_open(const char *path, const KilnRawField *fields,
                                                  size_t n_fields, const KilnPoll *poll,
                                                  bool *ret_list, KilnRawInput *ret,
                                                  KilnError *err);
/* Lines of the UTF-8 file `path` that are not blank, each the text of `field`. (text_lines.c) */
KILN_NODISCARD KilnStatus kiln_raw_text_lines_open(const char *path, const KilnRawField *field,
                                                   const KilnPoll *poll, KilnRawInput *ret,
                                                   KilnError *err);
/* Rows of the .csv or .tsv file `path`, also with .gz or .zst after that, or of a .parquet file:
 * its columns are the values of fields, texts and numbers, or paths relative to the file's folder;
 * further columns are left out, and empty values of optional fields. KILN_E_KEY: the column of a
 * required field is missing. (table_rows.c) */
KILN_NODISCARD KilnStatus kiln_raw_table_open(const char *path, const KilnRawField *fields,
                                              size_t n_fields, const KilnPoll *poll,
                                              KilnRawInput *ret, KilnError *err);
/* Rows of the arrays in the .safetensors file `path`, by the names of fields; the only array is
 * that of the only required field. An array [samples] gives numbers where its field takes them. All
 * are read now. (arrays.c) */
KILN_NODISCARD KilnStatus kiln_raw_arrays_open(const char *path, const KilnRawField *fields,
                                               size_t n_fields, KilnRawInput *ret, KilnError *err);
/* Whether `name` ends with one of `endings`, in letters of any case; NULL: with anything. */
bool kiln_raw_has_ending(const char *name, const char *const *endings);

#endif
