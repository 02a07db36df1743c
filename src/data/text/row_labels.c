/* The labels of rows of text data. */
#include "kiln/tools/row_labels.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"

KilnString kiln_label_cut(KilnString label, const char *end)
{
    const size_t n = end != NULL ? strlen(end) : 0;

    for (size_t i = 0; n > 0 && i + n <= label.length; i++)
        if (memcmp(label.data + i, end, n) == 0)
            label.length = i;
    return label;
}

static bool is(KilnString value, const char *text)
{
    return value.length == strlen(text) && memcmp(value.data, text, value.length) == 0;
}

bool kiln_label_flag(KilnString value, bool *ret)
{
    *ret = is(value, "1") || is(value, "true");
    return *ret || is(value, "0") || is(value, "false");
}

KilnRowLabels kiln_row_labels(const KilnLabelFormat *format, const KilnString *fields)
{
    return (KilnRowLabels) { .format = format, .fields = fields, .list = fields[0] };
}

/* The next column whose flag is set. */
static bool next_flag(KilnRowLabels *labels, KilnString *ret)
{
    while (labels->column < labels->format->n_columns) {
        const size_t i = labels->column++;
        const char *name = labels->format->columns[i];
        bool on;

        *ret = (KilnString) { name, strlen(name) };
        if (kiln_label_flag(labels->fields[i], &on) && on)
            return true;
    }
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Take what is before the separator, or all, off *rest; without blanks around it. */
static KilnString split_off(KilnString *rest, const char *separator)
{
    const size_t n = separator != NULL ? strlen(separator) : 0;
    size_t end = 0;

    while (end < rest->length &&
           (n == 0 || end + n > rest->length || memcmp(rest->data + end, separator, n) != 0))
        end++;
    const size_t used = end < rest->length ? end + n : end;
    KilnString part = { rest->data, end };
    *rest = (KilnString) { rest->data + used, rest->length - used };
    for (; part.length > 0 && is_blank(part.data[0]); part.length--)
        part.data++;
    while (part.length > 0 && is_blank(part.data[part.length - 1]))
        part.length--;
    return part;
}

bool kiln_row_labels_next(KilnRowLabels *labels, KilnString *ret)
{
    if (labels->format->n_columns > 0)
        return next_flag(labels, ret);
    do {
        if (labels->item.length == 0 && !kiln_record_next_item(&labels->list, &labels->item))
            return false;
        *ret = kiln_label_cut(split_off(&labels->item, labels->format->separator),
                              labels->format->end);
    } while (ret->length == 0);
    return true;
}

/* ---- Labels of all rows ---------------------------------------------------------------------- */

static bool has(const KilnLabelNumbers *labels, int64_t from, int64_t end, int32_t number)
{
    for (int64_t i = from; i < end; i++)
        if (labels->numbers[i] == number)
            return true;
    return false;
}

KilnStatus kiln_label_numbers_add(KilnLabelNumbers *to, const KilnLabelFormat *format,
                                  const KilnString *fields, const KilnNameList *names,
                                  KilnError *err)
{
    KilnRowLabels labels = kiln_row_labels(format, fields);
    KilnString name;

    if (!KILN_RESERVE(to->starts, to->starts_room, (size_t)to->n + 2))
        return kiln_error_nomem(err, (size_t)to->n * sizeof(*to->starts));
    if (to->n == 0)
        to->starts[0] = 0;
    const int64_t from = to->starts[to->n];
    int64_t end = from;
    while (kiln_row_labels_next(&labels, &name)) {
        const int32_t number = (int32_t)kiln_name_list_find(names, name);

        if (has(to, from, end, number))
            continue;
        if (!KILN_RESERVE(to->numbers, to->room, (size_t)end + 1))
            return kiln_error_nomem(err, (size_t)end * sizeof(*to->numbers));
        to->numbers[end++] = number;
    }
    to->starts[++to->n] = end;
    return KILN_OK;
}

void kiln_label_numbers_flags(const KilnLabelNumbers *labels, int64_t i, size_t n_names, float *ret)
{
    memset(ret, 0, n_names * sizeof(*ret));
    for (int64_t k = labels->starts[i]; k < labels->starts[i + 1]; k++)
        ret[labels->numbers[k]] = 1.0f;
}

void kiln_label_numbers_release(KilnLabelNumbers *labels)
{
    free(labels->numbers);
    free(labels->starts);
    *labels = (KilnLabelNumbers) { 0 };
}
