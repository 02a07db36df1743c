/* Explanations as text for the screen, as JSON and as HTML. */
#include "cli/explain/explain_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tokenizer.h"

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
    return attribution->feature->content == KILN_TOKENS;
}

static bool is_row(const KilnAttribution *attribution)
{
    return attribution->shape.rank == 1 && !is_tokens(attribution);
}

KilnStatus kiln_explained_token(const KilnExplained *explained, const KilnAttribution *attribution,
                                int64_t i, KilnText *ret, KilnError *err)
{
    const int32_t id = ((const int32_t *)attribution->input)[i];
    const KilnFeature *feature = attribution->feature;
    const size_t before = ret->length;

    if (explained->tokenizer != NULL && strcmp(feature->name, "tokens") == 0) {
        KilnStatus status = kiln_tokenizer_decode(explained->tokenizer, &id, 1, false, ret, err);
        if (status < 0)
            return status;
        const KilnString token = kiln_tokenizer_token(explained->tokenizer, id);
        if (ret->length == before && token.length > 0)
            kiln_text_append_n(ret, token.data, token.length);
    } else if (feature->id_names != NULL && id < feature->n_ids) {
        kiln_text_append(ret, feature->id_names[id]);
    }
    if (ret->length == before)
        kiln_text_printf(ret, "#%" PRId32, id);
    return ret->failed ? kiln_error_nomem(err, 64) : KILN_OK;
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

static const char *method_name(KilnExplainMethod method)
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

static double most_of(const KilnAttribution *attribution)
{
    const int64_t n = kiln_shape_count(&attribution->shape);
    double most = 0.0;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)attribution->values[i]));
    return most;
}

/* ---- The screen ------------------------------------------------------------------------------ */

static void put_head(const KilnExplained *explained, KilnPage *page)
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
                     explanation->baseline, method_name(explanation->method));
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

/* A background between black and green (for) or red (against), of the terminal's 6×6×6 cube. */
static int colour_of(double share)
{
    const int level = (int)(5.0 * fabs(share) + 0.5);

    return 16 + (share >= 0.0 ? 6 : 36) * level;
}

/* Append a token with white space as blanks. */
static void put_token(KilnText *text, const char *token)
{
    for (; *token != '\0'; token++)
        kiln_text_char(text, (unsigned char)*token < 0x20 || *token == 0x7f ? ' ' : *token);
}

static KilnStatus put_tokens(const KilnExplained *explained, const KilnAttribution *attribution,
                             KilnPage *page, KilnError *err)
{
    const double most = most_of(attribution);
    KilnText token = { 0 };
    KilnStatus status = KILN_OK;

    if (page->colour)
        kiln_text_append(&page->text, "  ");
    for (int64_t i = 0; i < attribution->shape.dim[0] && status >= 0; i++) {
        const double value = (double)attribution->values[i];

        kiln_text_clear(&token);
        status = kiln_explained_token(explained, attribution, i, &token, err);
        if (status < 0)
            break;
        if (page->colour)
            kiln_text_printf(&page->text, "\033[97;48;5;%dm",
                             colour_of(most > 0 ? value / most : 0));
        else
            kiln_text_printf(&page->text, "  %+9.4f  ", value);
        put_token(&page->text, token.data);
        kiln_text_append(&page->text, page->colour ? "\033[0m " : "\n");
    }
    if (page->colour)
        kiln_text_char(&page->text, '\n');
    kiln_text_release(&token);
    return status;
}

KilnStatus kiln_explained_page(const KilnExplained *explained, KilnPage *page, KilnError *err)
{
    const KilnExplanation *explanation = explained->explanation;

    put_head(explained, page);
    if (explained->picture != NULL)
        kiln_text_printf(&page->text, "  picture %s\n", explained->picture);
    KilnStatus status = put_columns(explained, page, err);
    for (size_t i = 0; i < explanation->n && status >= 0; i++)
        if (is_tokens(&explanation->list[i]))
            status = put_tokens(explained, &explanation->list[i], page, err);
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

static KilnStatus put_tokens_json(const KilnExplained *explained,
                                  const KilnAttribution *attribution, KilnText *ret, KilnError *err)
{
    KilnText token = { 0 };
    KilnStatus status = KILN_OK;

    kiln_text_char(ret, '[');
    for (int64_t i = 0; i < attribution->shape.dim[0] && status >= 0; i++) {
        kiln_text_clear(&token);
        status = kiln_explained_token(explained, attribution, i, &token, err);
        if (status < 0)
            break;
        kiln_text_append(ret, i > 0 ? ", {\"token\": " : "{\"token\": ");
        kiln_text_json_string(ret, token.data);
        kiln_text_append(ret, ", \"weight\": ");
        kiln_text_json_number(ret, (double)attribution->values[i]);
        kiln_text_char(ret, '}');
    }
    kiln_text_char(ret, ']');
    kiln_text_release(&token);
    return status;
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
    KilnStatus status = KILN_OK;

    kiln_text_printf(ret, "{\"index\": %" PRId64, explained->index);
    if (explained->file != NULL) {
        kiln_text_append(ret, ", \"file\": ");
        kiln_text_json_string(ret, explained->file);
    }
    kiln_text_printf(ret, ", \"method\": \"%s\", \"target\": ", method_name(explanation->method));
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
    for (size_t i = 0; i < explanation->n && status >= 0; i++) {
        const KilnAttribution *attribution = &explanation->list[i];

        kiln_text_append(ret, i > 0 ? ", " : "");
        kiln_text_json_string(ret, attribution->feature->name);
        kiln_text_append(ret, ": ");
        if (is_tokens(attribution))
            status = put_tokens_json(explained, attribution, ret, err);
        else if (is_row(attribution))
            put_columns_json(attribution, ret);
        else
            put_array_json(attribution, ret);
    }
    kiln_text_append(ret, "}}\n");
    return status;
}

/* ---- HTML ------------------------------------------------------------------------------------ */

static void put_escaped(KilnText *ret, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<')
            kiln_text_append(ret, "&lt;");
        else if (*text == '&')
            kiln_text_append(ret, "&amp;");
        else if (*text == '"')
            kiln_text_append(ret, "&quot;");
        else
            kiln_text_char(ret, *text);
    }
}

static KilnStatus put_tokens_html(const KilnExplained *explained,
                                  const KilnAttribution *attribution, KilnText *ret, KilnError *err)
{
    const double most = most_of(attribution);
    KilnText token = { 0 };
    KilnStatus status = KILN_OK;

    kiln_text_append(ret, "<p>");
    for (int64_t i = 0; i < attribution->shape.dim[0] && status >= 0; i++) {
        const double value = (double)attribution->values[i];

        kiln_text_clear(&token);
        status = kiln_explained_token(explained, attribution, i, &token, err);
        if (status < 0)
            break;
        kiln_text_printf(ret, "<span title=\"%.4g\" style=\"background: rgba(%s, %.3f)\">", value,
                         value >= 0.0 ? "0, 150, 60" : "210, 40, 40",
                         most > 0.0 ? fabs(value) / most : 0.0);
        put_escaped(ret, token.data);
        kiln_text_append(ret, "</span> ");
    }
    kiln_text_append(ret, "</p>\n");
    kiln_text_release(&token);
    return status;
}

KilnStatus kiln_explained_html(const KilnExplained *explained, KilnText *ret, KilnError *err)
{
    const KilnExplanation *explanation = explained->explanation;
    KilnPage head = { .width = 100 };
    KilnStatus status = KILN_OK;

    put_head(explained, &head);
    kiln_text_append(ret,
                     "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Token weights</title>\n"
                     "<pre>");
    put_escaped(ret, head.text.data != NULL ? head.text.data : "");
    kiln_text_append(ret, "</pre>\n");
    kiln_text_release(&head.text);
    for (size_t i = 0; i < explanation->n && status >= 0; i++)
        if (is_tokens(&explanation->list[i]))
            status = put_tokens_html(explained, &explanation->list[i], ret, err);
    return status;
}
