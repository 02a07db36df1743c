/* The labels of a row of text data. */
#include "kiln/tools/row_labels.h"

#include <string.h>

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
