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

/* ---- Checking ---------------------------------------------------------------------------------
 */

static int shown(KilnString text)
{
    return (int)(text.length < 64 ? text.length : 64);
}

static KilnStatus check_label(const KilnLabelRule *rule, KilnString label, KilnNameList *classes,
                              bool adds, KilnError *err)
{
    if (memchr(label.data, '\n', label.length) != NULL)
        return kiln_error_set(err, KILN_E_TYPE, "the label has several lines");
    if (kiln_name_list_find(classes, label) >= 0)
        return KILN_OK;
    if (adds)
        return kiln_name_list_add(classes, label, err);
    return kiln_error_set(err, KILN_E_KEY, "the label \"%.*s\" is not one of the %zu classes%s",
                          shown(label), label.data, classes->n,
                          rule->given ? " of datamodule.classes" : " of the training files");
}

static KilnStatus check_flags(const KilnLabelFormat *format, const KilnString *fields,
                              KilnError *err)
{
    for (size_t i = 0; i < format->n_columns; i++) {
        bool on;

        if (!kiln_label_flag(fields[i], &on))
            return kiln_error_set(err, KILN_E_TYPE, "column \"%s\" has \"%.*s\"; expected 0 or 1",
                                  format->columns[i], shown(fields[i]), fields[i].data);
    }
    return KILN_OK;
}

KilnStatus kiln_row_labels_check(const KilnLabelRule *rule, const KilnString *fields,
                                 KilnNameList *classes, bool adds, KilnError *err)
{
    KilnRowLabels labels = kiln_row_labels(rule->format, fields), count = labels;
    KilnString label;
    KilnStatus status = check_flags(rule->format, fields, err);

    if (status >= 0 && !rule->several && !kiln_row_labels_next(&count, &label))
        return kiln_error_set(err, KILN_E_MISSING, "the label (column \"%s\") is empty",
                              rule->column);
    if (status >= 0 && !rule->several && kiln_row_labels_next(&count, &label))
        return kiln_error_set(
            err, KILN_E_TYPE,
            "the row has several labels; expected one (datamodule.multilabel=true "
            "takes any number)");
    while (status >= 0 && kiln_row_labels_next(&labels, &label))
        status = check_label(rule, label, classes, adds, err);
    return status;
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
