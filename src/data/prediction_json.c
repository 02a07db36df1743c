/* Rows of predictions as lines of JSON. */
#include "kiln/tools/prediction_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void begin_member(KilnText *line, const char *name)
{
    kiln_text_append(line, ", ");
    kiln_text_json_string(line, name);
    kiln_text_append(line, ": ");
}

void kiln_prediction_json_begin(KilnText *line, int64_t index, const char *file)
{
    kiln_text_printf(line, "{\"index\": %" PRId64, index);
    kiln_prediction_json_text(line, "file", file);
}

void kiln_prediction_json_text(KilnText *line, const char *name, const char *value)
{
    if (value == NULL)
        return;
    begin_member(line, name);
    kiln_text_json_string(line, value);
}

void kiln_prediction_json_value(KilnText *line, const char *name, const char *json)
{
    if (json == NULL)
        return;
    begin_member(line, name);
    kiln_text_append(line, json);
}

/* Always with a point or an exponent, so that all readers take it for a float. */
static void append_number(KilnText *line, double value)
{
    char number[32];

    if (!isfinite(value)) {
        kiln_text_append(line, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
        return;
    }
    snprintf(number, sizeof(number), "%.9g", value);
    kiln_text_append(line, number);
    if (strpbrk(number, ".e") == NULL)
        kiln_text_append(line, ".0");
}

const char *kiln_prediction_class(const KilnDataSpec *spec, const char *name, const float *values,
                                  int64_t n)
{
    int64_t best = 0;

    if (n < 1 || n != spec->n_classes || strcmp(name, "probabilities") != 0 ||
        kiln_spec_labels(spec) != NULL)
        return NULL;
    for (int64_t i = 1; i < n; i++)
        if (values[i] > values[best])
            best = i;
    return spec->class_names[best];
}

/* The labels whose value is not 0, as a list of names. */
static void append_labels(KilnText *line, const KilnDataSpec *spec, const float *values)
{
    const char *comma = "";

    begin_member(line, "labels");
    kiln_text_append(line, "[");
    for (int64_t i = 0; i < spec->n_classes; i++) {
        if (values[i] == 0.0f)
            continue;
        kiln_text_append(line, comma);
        kiln_text_json_string(line, spec->class_names[i]);
        comma = ", ";
    }
    kiln_text_append(line, "]");
}

/* A value for each label, under its name. */
static void append_by_label(KilnText *line, const KilnDataSpec *spec, const char *name,
                            const float *values)
{
    begin_member(line, name);
    for (int64_t i = 0; i < spec->n_classes; i++) {
        kiln_text_append(line, i == 0 ? "{" : ", ");
        kiln_text_json_string(line, spec->class_names[i]);
        kiln_text_append(line, ": ");
        append_number(line, (double)values[i]);
    }
    kiln_text_append(line, "}");
}

void kiln_prediction_json_output(KilnText *line, const KilnDataSpec *spec, const char *name,
                                 const float *values, int64_t n)
{
    const bool labels = n == spec->n_classes && kiln_spec_labels(spec) != NULL;

    if (labels && strcmp(name, "labels") == 0) {
        append_labels(line, spec, values);
        return;
    }
    if (labels && strcmp(name, "probabilities") == 0) {
        append_by_label(line, spec, name, values);
        return;
    }
    kiln_prediction_json_text(line, "class", kiln_prediction_class(spec, name, values, n));
    begin_member(line, name);
    for (int64_t i = 0; i < n; i++) {
        kiln_text_append(line, i == 0 ? "[" : ", ");
        append_number(line, (double)values[i]);
    }
    kiln_text_append(line, n > 0 ? "]" : "[]");
}

void kiln_prediction_json_end(KilnText *line)
{
    kiln_text_append(line, "}\n");
}
