/* A line of LibSVM's format. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "kiln/array.h"
#include "kiln/files/libsvm.h"

enum { LONGEST = 64 }; /* bytes of a word */

/* The next word, a copy with an end; false: there is none. */
static bool next_word(KilnString *line, char ret[LONGEST + 1], size_t *ret_length)
{
    size_t n = 0;

    while (line->length > 0 && isspace((unsigned char)line->data[0])) {
        line->data++;
        line->length--;
    }
    while (n < line->length && !isspace((unsigned char)line->data[n]) && line->data[n] != '#')
        n++;
    if (n == 0)
        return false; /* the end, or a comment */
    const size_t kept = n < LONGEST ? n : LONGEST;
    memcpy(ret, line->data, kept);
    ret[kept] = '\0';
    *ret_length = n;
    line->data += n;
    line->length -= n;
    return true;
}

/* A number as float; "nan" and an empty text are NaN. */
static bool parse_value(const char *text, float *ret)
{
    double value = 0.0;

    if (strcasecmp(text, "nan") == 0) {
        *ret = NAN;
        return true;
    }
    if (kiln_parse_f64(text, &value, NULL) < 0 || !(fabs(value) <= 3.4028234e38))
        return false;
    *ret = (float)value;
    return true;
}

static KilnStatus bad_word(const char *word, const char *expected, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "\"%s\" is no %s", word, expected);
}

static KilnStatus add_value(KilnLibsvmRow *row, int32_t index, float value, KilnError *err)
{
    const size_t n = (size_t)row->n + 1;

    if (row->n > 0 && index <= row->indices[row->n - 1])
        return kiln_error_set(err, KILN_E_FORMAT,
                              "index %d comes after %d; indices must ascend, each once", index,
                              row->indices[row->n - 1]);
    if (!KILN_RESERVE(row->indices, row->indices_capacity, n) ||
        !KILN_RESERVE(row->values, row->values_capacity, n))
        return kiln_error_nomem(err, n * sizeof(float));
    row->indices[row->n] = index;
    row->values[row->n] = value;
    row->n++;
    return KILN_OK;
}

/* "qid:3" or "12:0.5". */
static KilnStatus parse_pair(char *word, KilnLibsvmRow *row, KilnError *err)
{
    char *colon = strchr(word, ':');
    int64_t number = 0;
    float value = 0.0f;

    *colon = '\0';
    const bool query = strcmp(word, "qid") == 0;
    const bool fits = kiln_parse_i64(query ? colon + 1 : word, &number, NULL) >= 0 && number >= 0 &&
                      number < INT32_MAX && (query || parse_value(colon + 1, &value));
    *colon = ':';
    if (!fits)
        return bad_word(
            word, query ? "query (qid:NUMBER)" : "INDEX:VALUE with an index from 0 and a number",
            err);
    if (!query)
        return add_value(row, (int32_t)number, value, err);
    if (row->has_query || row->n > 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s must follow the label, once", word);
    row->has_query = true;
    row->query = (int32_t)number;
    return KILN_OK;
}

static KilnStatus parse_word(char *word, bool first, KilnLibsvmRow *row, KilnError *err)
{
    if (strchr(word, ':') != NULL)
        return parse_pair(word, row, err);
    if (!first || !parse_value(word, &row->label) || isnan(row->label))
        return bad_word(word, first ? "label (a number)" : "INDEX:VALUE", err);
    row->has_label = true;
    return KILN_OK;
}

KilnStatus kiln_libsvm_parse(KilnString line, KilnLibsvmRow *ret, KilnError *err)
{
    char word[LONGEST + 1];
    size_t length = 0;
    bool first = true;
    KilnStatus status = KILN_OK;

    ret->has_label = ret->has_query = false;
    ret->n = 0;
    for (; status >= 0 && next_word(&line, word, &length); first = false)
        status = length <= LONGEST ? parse_word(word, first, ret, err)
                                   : bad_word(word, "label or INDEX:VALUE (it is too long)", err);
    return status;
}

void kiln_libsvm_row_release(KilnLibsvmRow *row)
{
    free(row->indices);
    free(row->values);
    *row = (KilnLibsvmRow) { 0 };
}
