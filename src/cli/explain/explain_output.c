/* Explanations as text for the screen and as JSON. */
#include "cli/explain/explain_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is explained ----------------------------------------------------------------------- */

const KilnAttribution *kiln_explained_image(const KilnExplained *explained)
{
    const KilnExplanation *explanation = explained->explanation;

    for (size_t i = 0; i < explanation->n; i++)
        if (explanation->list[i].feature->content == KILN_IMAGE)
            return &explanation->list[i];
    return NULL;
}

static bool is_tokens(const KilnAttribution *attribution)
{
    return attribution->texts != NULL;
}

static bool is_row(const KilnAttribution *attribution)
{
    return attribution->shape.rank == 1 && !is_tokens(attribution);
}

static void column_name(const KilnAttribution *attribution, int64_t i, KilnText *ret)
{
    const KilnFeature *feature = attribution->feature;

    if (feature->columns != NULL)
        kiln_text_append(ret, feature->columns[i].name);
    else
        kiln_text_printf(ret, "%s.%" PRId64, feature->name, i);
}

/* The value of a column: as the user gave it, else as the network got it. */
static void column_value(const KilnExplained *explained, const KilnAttribution *attribution,
                         int64_t i, KilnText *ret)
{
    const KilnFeature *feature = attribution->feature;
    const char *name = feature->columns != NULL ? feature->columns[i].name : "";

    for (size_t v = 0; v < explained->raw->n_values; v++) {
        const KilnRawValue *value = &explained->raw->values[v];

        if (value->name == NULL || strcmp(value->name, name) != 0)
            continue;
        if (value->type == KILN_RAW_TEXT) {
            kiln_text_append(ret, value->text);
            return;
        }
        if (value->type == KILN_RAW_NUMBER) {
            kiln_text_printf(ret, "%g", value->number);
            return;
        }
    }
    if (feature->dtype == KILN_F32)
        kiln_text_printf(ret, "%.4g", (double)((const float *)attribution->input)[i]);
    else
        kiln_text_printf(ret, "%" PRId32, ((const int32_t *)attribution->input)[i]);
}

const char *kiln_explained_method(KilnExplainMethod method)
{
    const KilnChoice *choice = kiln_explain_methods;

    while (choice->name != NULL && choice->value != (int64_t)method)
        choice++;
    return choice->name;
}

/* Whether the attributions should add up to the difference of the scores. */
static bool is_complete(KilnExplainMethod method)
{
    return method == KILN_EXPLAIN_INTEGRATED_GRADIENTS || method == KILN_EXPLAIN_CONTRIBUTIONS;
}

/* ---- The screen ------------------------------------------------------------------------------ */

void kiln_explained_head(const KilnExplained *explained, KilnPage *page)
{
    const KilnExplanation *explanation = explained->explanation;
    const double difference = explanation->score - explanation->baseline;
    const double error = fabs(explanation->sum - difference);

    if (explained->file != NULL)
        kiln_text_printf(&page->text, "%s: ", explained->file);
    else
        kiln_text_printf(&page->text, "sample %" PRId64 ": ", explained->index);
    if (explanation->target_name != NULL)
        kiln_text_printf(&page->text, "class %s, ", explanation->target_name);
    kiln_text_printf(&page->text, "score %.5g (baseline %.5g), %s\n", explanation->score,
                     explanation->baseline, kiln_explained_method(explanation->method));
    if (!is_complete(explanation->method))
        return;
    kiln_text_printf(&page->text, "  sum of attributions %.5g, difference of the scores %.5g\n",
                     explanation->sum, difference);
    if (error > 0.05 * fmax(fabs(difference), 1e-3))
        kiln_text_append(&page->text, "  they should agree: raise --steps\n");
}

/* A column of the table for the screen. */
typedef struct Line {
    const KilnAttribution *attribution;
    int64_t i;
    double size;
} Line;

static int by_size(const void *a, const void *b)
{
    const Line *x = a, *y = b;

    return (x->size < y->size) - (x->size > y->size);
}

/* All columns, those that matter most first. */
static KilnStatus put_columns(const KilnExplained *explained, KilnPage *page, KilnError *err)
{
    const KilnExplanation *explanation = explained->explanation;
    size_t n = 0, at = 0;

    for (size_t k = 0; k < explanation->n; k++)
        n += is_row(&explanation->list[k]) ? (size_t)explanation->list[k].shape.dim[0] : 0;
    Line *lines = calloc(n + 1, sizeof(*lines));
    if (lines == NULL)
        return kiln_error_nomem(err, n * sizeof(*lines));
    for (size_t k = 0; k < explanation->n; k++)
        for (int64_t i = 0; is_row(&explanation->list[k]) && i < explanation->list[k].shape.dim[0];
             i++)
            lines[at++] = (Line) { .attribution = &explanation->list[k],
                                   .i = i,
                                   .size = fabs((double)explanation->list[k].values[i]) };
    qsort(lines, n, sizeof(*lines), by_size);
    for (size_t l = 0; l < n; l++) {
        KilnText left = { 0 };

        column_name(lines[l].attribution, lines[l].i, &left);
        kiln_text_append(&left, " = ");
        column_value(explained, lines[l].attribution, lines[l].i, &left);
        kiln_text_printf(&page->text, "  %+9.4f  %s\n",
                         (double)lines[l].attribution->values[lines[l].i],
                         left.data != NULL ? left.data : "");
        kiln_text_release(&left);
    }
    free(lines);
    return KILN_OK;
}

KilnStatus kiln_explained_page(const KilnExplained *explained, KilnPage *page, KilnError *err)
{
    const KilnExplanation *explanation = explained->explanation;

    kiln_explained_head(explained, page);
    if (explained->picture != NULL)
        kiln_text_printf(&page->text, "  picture %s\n", explained->picture);
    KilnStatus status = put_columns(explained, page, err);
    for (size_t i = 0; i < explanation->n && status >= 0; i++)
        if (is_tokens(&explanation->list[i]))
            status = kiln_explained_tokens(&explanation->list[i], page, err);
    return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_columns_json(const KilnAttribution *attribution, KilnText *ret)
{
    KilnText name = { 0 };

    kiln_text_char(ret, '{');
    for (int64_t i = 0; i < attribution->shape.dim[0]; i++) {
        kiln_text_clear(&name);
        column_name(attribution, i, &name);
        kiln_text_append(ret, i > 0 ? ", " : "");
        kiln_text_json_string(ret, name.data != NULL ? name.data : "");
        kiln_text_append(ret, ": ");
        kiln_text_json_number(ret, (double)attribution->values[i]);
    }
    kiln_text_char(ret, '}');
    kiln_text_release(&name);
}

static void put_array_json(const KilnAttribution *attribution, KilnText *ret)
{
    const int64_t n = kiln_shape_count(&attribution->shape);

    kiln_text_append(ret, "{\"shape\": [");
    for (int i = 0; i < attribution->shape.rank; i++)
        kiln_text_printf(ret, "%s%" PRId64, i > 0 ? ", " : "", attribution->shape.dim[i]);
    kiln_text_append(ret, "], \"values\": [");
    for (int64_t i = 0; i < n; i++)
        kiln_text_printf(ret, "%s%.9g", i > 0 ? ", " : "", (double)attribution->values[i]);
    kiln_text_append(ret, "]}");
}

static void put_member(KilnText *ret, const char *name, double value)
{
    kiln_text_printf(ret, ", \"%s\": ", name);
    kiln_text_json_number(ret, value);
}

KilnStatus kiln_explained_json(const KilnExplained *explained, KilnText *ret, KilnError *err)
{
    const KilnExplanation *explanation = explained->explanation;

    kiln_text_printf(ret, "{\"index\": %" PRId64, explained->index);
    if (explained->file != NULL) {
        kiln_text_append(ret, ", \"file\": ");
        kiln_text_json_string(ret, explained->file);
    }
    kiln_text_printf(
        ret, ", \"method\": \"%s\", \"target\": ", kiln_explained_method(explanation->method));
    if (explanation->target_name != NULL)
        kiln_text_json_string(ret, explanation->target_name);
    else
        kiln_text_printf(ret, "%" PRId64, explanation->target);
    put_member(ret, "score", explanation->score);
    put_member(ret, "baseline", explanation->baseline);
    put_member(ret, "sum", explanation->sum);
    if (explained->picture != NULL) {
        kiln_text_append(ret, ", \"picture\": ");
        kiln_text_json_string(ret, explained->picture);
    }
    kiln_text_append(ret, ", \"attributions\": {");
    for (size_t i = 0; i < explanation->n; i++) {
        const KilnAttribution *attribution = &explanation->list[i];

        kiln_text_append(ret, i > 0 ? ", " : "");
        kiln_text_json_string(ret, attribution->feature->name);
        kiln_text_append(ret, ": ");
        if (is_tokens(attribution))
            kiln_explained_tokens_json(attribution, ret);
        else if (is_row(attribution))
            put_columns_json(attribution, ret);
        else
            put_array_json(attribution, ret);
    }
    kiln_text_append(ret, "}}\n");
    return ret->failed ? kiln_error_nomem(err, ret->length) : KILN_OK;
}
