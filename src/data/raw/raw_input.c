/* Chooses the reader of a user's file or folder. */
#include "data/raw/raw_input.h"

#include <sys/stat.h>

#include "data/raw/raw_text.h"

/* The only required field, if it takes `type`; without a required one, the only optional one that
 * does. NULL: none or several do. */
static const KilnRawField *only_field(const KilnRawField *fields, size_t n, KilnRawType type)
{
    const KilnRawField *required = NULL, *optional = NULL;
    size_t n_required = 0, n_optional = 0;

    for (size_t i = 0; i < n; i++) {
        const bool takes = (fields[i].types & type) != 0;

        if (!fields[i].optional) {
            n_required++;
            required = takes ? &fields[i] : NULL;
        } else if (takes) {
            n_optional++;
            optional = &fields[i];
        }
    }
    if (n_required > 0)
        return n_required == 1 ? required : NULL;
    return n_optional == 1 ? optional : NULL;
}

/* Some field takes one of these types. */
static bool takes(const KilnRawField *fields, size_t n, unsigned types)
{
    bool found = false;

    for (size_t i = 0; i < n; i++)
        found = found || (fields[i].types & types) != 0;
    return found;
}

static bool takes_arrays(const KilnRawField *fields, size_t n)
{
    return takes(fields, n, KILN_RAW_ARRAY | KILN_RAW_NUMBER);
}

static bool takes_cells(const KilnRawField *fields, size_t n)
{
    return takes(fields, n, KILN_RAW_TEXT | KILN_RAW_NUMBER | KILN_RAW_PATH);
}

/* What can be read, as a list: "a .jsonl file (...), a .txt file (...)". */
static KilnStatus refuse(const char *path, bool folder, const KilnRawField *fields, size_t n,
                         KilnError *err)
{
    KilnText text = { 0 };

    kiln_text_printf(&text,
                     "%s: %s; expected a .jsonl or .json file (a JSON object per "
                     "line, or a list of them)",
                     path,
                     folder ? "is a folder, and samples are no files here"
                            : "is no kind of file that has samples");
    if (takes_cells(fields, n))
        kiln_text_append(&text, ", a .csv, .tsv or .parquet file (the header has the names)");
    if (only_field(fields, n, KILN_RAW_TEXT) != NULL)
        kiln_text_append(&text, ", a .txt file (a sample per line)");
    if (takes_arrays(fields, n))
        kiln_text_append(&text, ", a .safetensors file (the first axis is the samples)");
    kiln_text_append(&text, " with ");
    kiln_raw_fields_text(fields, n, &text);
    kiln_error_set(err, KILN_E_FORMAT, "%s", text.data != NULL ? text.data : path);
    kiln_text_release(&text);
    return KILN_E_FORMAT;
}

static KilnStatus open_json(const char *path, const KilnRawField *fields, size_t n_fields,
                            const KilnPoll *poll, KilnRawInput *ret, KilnError *err)
{
    bool is_list = false;
    const KilnStatus status = kiln_raw_json_list_open(path, fields, n_fields, poll, &is_list, ret,
                                                      err);

    return status < 0 || is_list ? status
                                 : kiln_raw_jsonl_open(path, fields, n_fields, poll, ret, err);
}

KilnStatus kiln_raw_input_open(const char *path, const KilnRawField *fields, size_t n_fields,
                               const KilnPoll *poll, KilnRawInput *ret, KilnError *err)
{
    static const char *const jsonl[] = { ".jsonl", ".json", NULL }, *const txt[] = { ".txt", NULL };
    static const char *const safetensors[] = { ".safetensors", NULL };
    static const char *const tables[] = { ".csv",    ".csv.gz",  ".csv.zst", ".tsv",
                                          ".tsv.gz", ".tsv.zst", ".parquet", NULL };
    const KilnRawField *file = only_field(fields, n_fields, KILN_RAW_PATH);
    const KilnRawField *text = only_field(fields, n_fields, KILN_RAW_TEXT);
    struct stat st;

    if (stat(path, &st) != 0)
        return kiln_error_errno(err, path);
    const bool folder = S_ISDIR(st.st_mode);
    if (!folder && file != NULL && file->endings != NULL &&
        kiln_raw_has_ending(path, file->endings))
        return kiln_raw_paths_open(path, file, poll, ret, err);
    if (!folder && kiln_raw_has_ending(path, jsonl))
        return open_json(path, fields, n_fields, poll, ret, err);
    if (!folder && takes_cells(fields, n_fields) && kiln_raw_has_ending(path, tables))
        return kiln_raw_table_open(path, fields, n_fields, poll, ret, err);
    if (!folder && text != NULL && kiln_raw_has_ending(path, txt))
        return kiln_raw_text_lines_open(path, text, poll, ret, err);
    if (!folder && takes_arrays(fields, n_fields) && kiln_raw_has_ending(path, safetensors))
        return kiln_raw_arrays_open(path, fields, n_fields, ret, err);
    return file != NULL ? kiln_raw_paths_open(path, file, poll, ret, err)
                        : refuse(path, folder, fields, n_fields, err);
}

void kiln_raw_input_release(KilnRawInput *input)
{
    if (input->release != NULL)
        input->release(input->set.ctx);
    *input = (KilnRawInput) { 0 };
}
