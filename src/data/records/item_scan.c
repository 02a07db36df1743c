/* Finds the values of a JSON list: where each begins and ends. They are read as JSON, and checked,
 * one by one (read_row.c), so a list may be larger than memory. */
#include <string.h>

#include "data/records/row_scan.h"

enum { POLL_ITEMS = 1 << 16 };

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool kiln_is_json_list(const KilnMappedFile *file)
{
    size_t at = file->begin;

    while (at < file->size && is_space(file->data[at]))
        at++;
    return at < file->size && file->data[at] == '[';
}

KilnString kiln_item_text(KilnString row)
{
    while (row.length > 0 && is_space(row.data[row.length - 1]))
        row.length--;
    row.length -= row.length > 0; /* the comma, or the list's end */
    while (row.length > 0 && is_space(row.data[row.length - 1]))
        row.length--;
    return row;
}

/* The next byte that is no white space. */
static size_t skip_space(KilnRowScan *scan, size_t at)
{
    const char *data = scan->file->data;

    for (; at < scan->size && is_space(data[at]); at++)
        scan->line += data[at] == '\n';
    return at;
}

/* The byte after the string at `at`; scan->size: it is never closed. */
static size_t string_end(const KilnRowScan *scan, size_t at)
{
    const char *data = scan->file->data;

    for (at++; at < scan->size && data[at] != '"'; at++)
        at += data[at] == '\\';
    return at < scan->size ? at + 1 : scan->size;
}

/* The comma after the value at `at`, or the end of the list; scan->size: there is none. */
static size_t value_end(KilnRowScan *scan, size_t at)
{
    const char *data = scan->file->data;
    int64_t depth = 0;

    while (at < scan->size) {
        const char c = data[at];

        if (depth == 0 && (c == ',' || c == ']'))
            return at;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        scan->line += c == '\n';
        at = c == '"' ? string_end(scan, at) : at + 1;
    }
    return scan->size;
}

static KilnStatus wrong(const KilnRowScan *scan, const char *what, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "%s:%lld: %s", scan->file->path,
                          (long long)scan->line, what);
}

KilnStatus kiln_item_scan(KilnRowScan *scan, const KilnPoll *poll, KilnError *err)
{
    const char *data = scan->file->data;
    size_t at = skip_space(scan, skip_space(scan, scan->file->begin) + 1); /* after the [ */
    KilnStatus status = KILN_OK;
    bool open = at >= scan->size || data[at] != ']';

    for (int64_t i = 0; open && status >= 0; i++) {
        const int64_t line = scan->line;
        const size_t end = value_end(scan, at);

        if (i % POLL_ITEMS == 0)
            status = kiln_poll_check(poll, "finding rows", (int64_t)at, (int64_t)scan->size, err);
        if (status >= 0 && end >= scan->size)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s:%lld: the list is not closed: the file ends in its value "
                                    "%lld, which begins here; is the file whole?",
                                    scan->file->path, (long long)line, (long long)i + 1);
        else if (status >= 0 && end == at)
            status = wrong(scan, "expected a value of the list", err);
        else if (status >= 0 && !kiln_row_scan_add(scan, at, line))
            status = kiln_error_nomem(err, (size_t)scan->count * sizeof(int64_t));
        if (status < 0)
            return status;
        open = data[end] == ',';
        at = open ? skip_space(scan, end + 1) : end;
    }
    return status < 0 || skip_space(scan, at + 1) >= scan->size
               ? status
               : wrong(scan, "text after the end of the list", err);
}
