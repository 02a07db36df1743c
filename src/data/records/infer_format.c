/* What the format of files is if no option says it: by their endings, or by how they begin. */
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "data/records/records_internal.h"
#include "kiln/array.h"

enum { LINES = 100 /* that are looked at */ };

/* The end of a file's name without .gz and .zst: "de" of train.de.gz, all of a name without dot. */
KilnString kiln_path_ending(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    size_t end = strlen(name);

    if (kiln_is_packed(name))
        end = (size_t)(strrchr(name, '.') - name);
    size_t begin = end;
    while (begin > 0 && name[begin - 1] != '.')
        begin--;
    return (KilnString) { name + begin, end - begin };
}

static bool same(KilnString a, KilnString b)
{
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

/* The format that an ending stands for; KILN_RECORDS_AUTO: none. */
static KilnRecordFormat format_of_ending(const char *path)
{
    static const struct {
        const char *ending;
        KilnRecordFormat format;
    } endings[] = {
        { "csv", KILN_RECORDS_CSV },
        { "tsv", KILN_RECORDS_TSV },
        { "jsonl", KILN_RECORDS_JSONL },
        { "ndjson", KILN_RECORDS_JSONL },
        { "json", KILN_RECORDS_JSONL },
        { "conll", KILN_RECORDS_CONLL },
        { "iob", KILN_RECORDS_CONLL },
        { "iob2", KILN_RECORDS_CONLL },
        { "bio", KILN_RECORDS_CONLL },
        { "parquet", KILN_RECORDS_CSV }, /* as which it is unpacked */
    };
    const KilnString ending = kiln_path_ending(path);

    for (size_t i = 0; i < KILN_COUNT(endings); i++)
        if (same(ending, (KilnString) { endings[i].ending, strlen(endings[i].ending) }))
            return endings[i].format;
    return KILN_RECORDS_AUTO;
}

KilnRecordFormat kiln_records_format_of_path(const char *path)
{
    return kiln_is_dir(path) ? KILN_RECORDS_FOLDERS : format_of_ending(path);
}

/* Several files, each with an ending of its own that says nothing: a column each. */
static bool are_parallel(const KilnRecordsSpec *spec)
{
    if (spec->n_paths < 2 || (spec->columns != NULL && spec->n_columns != spec->n_paths))
        return false;
    for (size_t i = 0; i < spec->n_paths; i++) {
        if (kiln_records_format_of_path(spec->paths[i]) != KILN_RECORDS_AUTO)
            return false;
        for (size_t k = 0; k < i; k++)
            if (same(kiln_path_ending(spec->paths[i]), kiln_path_ending(spec->paths[k])))
                return false;
    }
    return true;
}

/* The next line that is not blank, without white space before it; false: the text has ended. */
static bool next_line(KilnString *rest, KilnString *ret)
{
    while (rest->length > 0 && strchr(" \t\r\n", rest->data[0]) != NULL)
        *rest = (KilnString) { rest->data + 1, rest->length - 1 };
    if (rest->length == 0)
        return false;
    const char *end = memchr(rest->data, '\n', rest->length);
    const size_t n = end != NULL ? (size_t)(end - rest->data) : rest->length;
    *ret = (KilnString) { rest->data, n };
    *rest = (KilnString) { rest->data + n, rest->length - n };
    return true;
}

static bool has(KilnString text, const char *part)
{
    const size_t n = strlen(part);

    for (size_t i = 0; n > 0 && i + n <= text.length; i++)
        if (memcmp(text.data + i, part, n) == 0)
            return true;
    return false;
}

/* Whether the first word of each of the first lines has the end of a label in it. */
static bool begin_with_labels(KilnString text, const char *label_end)
{
    KilnString line;
    int n = 0;

    for (; n < LINES && next_line(&text, &line); n++) {
        size_t word = 0;

        while (word < line.length && strchr(" \t\r", line.data[word]) == NULL)
            word++;
        if (word == line.length || !has((KilnString) { line.data, word }, label_end))
            return false;
    }
    return n > 0;
}

KilnRecordFormat kiln_records_infer_format(const KilnRecordsSpec *spec, const KilnMappedFile *first)
{
    const KilnRecordFormat known = kiln_records_format_of_path(spec->paths[0]);
    const size_t prefix = strlen(KILN_LABEL_PREFIX);
    KilnString text = { first->data + first->begin, first->size - first->begin }, line = { 0 };

    if (known != KILN_RECORDS_AUTO)
        return known;
    KilnString rest = text;
    if (first->size > first->begin && next_line(&rest, &line) && line.length >= prefix &&
        memcmp(line.data, KILN_LABEL_PREFIX, prefix) == 0)
        return KILN_RECORDS_LABELED;
    if (spec->label_end != NULL && begin_with_labels(text, spec->label_end))
        return KILN_RECORDS_LABEL_FIRST;
    if (are_parallel(spec))
        return KILN_RECORDS_PARALLEL;
    return spec->fallback != KILN_RECORDS_AUTO ? spec->fallback : KILN_RECORDS_LINES;
}
