/* Explained tokens: for the screen, as JSON and as HTML. Of a bag, whose ids have no order, the
 * n-grams with the largest weights come first, each with all its occurrences. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain/explain_output.h"

enum { SHOWN = 20 }; /* n-grams on the screen */

typedef struct Token {
    const char *text; /* borrowed */
    double weight;
    int64_t n; /* occurrences */
} Token;

static bool is_tokens(const KilnAttribution *attribution)
{
    return attribution->texts != NULL;
}

static double most_of(const Token *tokens, size_t n)
{
    double most = 0.0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(tokens[i].weight));
    return most;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const Token *)a)->text, ((const Token *)b)->text);
}

/* The largest first, equal ones in the order of their texts. */
static int by_size(const void *a, const void *b)
{
    const double x = fabs(((const Token *)a)->weight), y = fabs(((const Token *)b)->weight);

    return x != y ? (x < y) - (x > y) : by_text(a, b);
}

/* Join equal texts; returns how many are left. */
static size_t join(Token *tokens, size_t n)
{
    size_t kept = 0;

    qsort(tokens, n, sizeof(*tokens), by_text);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || strcmp(tokens[kept - 1].text, tokens[i].text) != 0) {
            tokens[kept++] = tokens[i];
            continue;
        }
        tokens[kept - 1].weight += tokens[i].weight;
        tokens[kept - 1].n += tokens[i].n;
    }
    qsort(tokens, kept, sizeof(*tokens), by_size);
    return kept;
}

/* The tokens as they are shown: of a bag joined and sorted. *ret is owned by the caller. */
static KilnStatus tokens_of(const KilnAttribution *attribution, Token **ret, size_t *ret_n,
                            KilnError *err)
{
    const size_t n = (size_t)attribution->shape.dim[0];
    Token *tokens = calloc(n + 1, sizeof(*tokens));

    if (tokens == NULL)
        return kiln_error_nomem(err, n * sizeof(*tokens));
    for (size_t i = 0; i < n; i++)
        tokens[i] = (Token) { .text = attribution->texts[i],
                              .weight = (double)attribution->values[i],
                              .n = 1 };
    *ret = tokens;
    *ret_n = attribution->is_bag && n > 0 ? join(tokens, n) : n;
    return KILN_OK;
}

/* ---- The screen ------------------------------------------------------------------------------ */

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

/* A text with its tokens in colours. */
static void put_coloured(const Token *tokens, size_t n, KilnText *ret)
{
    const double most = most_of(tokens, n);

    kiln_text_append(ret, "  ");
    for (size_t i = 0; i < n; i++) {
        kiln_text_printf(ret, "\033[97;48;5;%dm",
                         colour_of(most > 0.0 ? tokens[i].weight / most : 0.0));
        put_token(ret, tokens[i].text);
        kiln_text_append(ret, "\033[0m ");
    }
    kiln_text_char(ret, '\n');
}

/* A line for each of the first `shown`, and one for the others together. */
static void put_lines(const Token *tokens, size_t n, size_t shown, KilnText *ret)
{
    double rest = 0.0;

    for (size_t i = 0; i < n && i < shown; i++) {
        kiln_text_printf(ret, "  %+9.4f  ", tokens[i].weight);
        put_token(ret, tokens[i].text);
        if (tokens[i].n > 1)
            kiln_text_printf(ret, "  (%" PRId64 " times)", tokens[i].n);
        kiln_text_char(ret, '\n');
    }
    for (size_t i = shown; i < n; i++)
        rest += tokens[i].weight;
    if (shown < n)
        kiln_text_printf(ret, "  %+9.4f  the other %zu together\n", rest, n - shown);
}

KilnStatus kiln_explained_tokens(const KilnAttribution *attribution, KilnPage *page, KilnError *err)
{
    Token *tokens = NULL;
    size_t n = 0;
    KilnStatus status = tokens_of(attribution, &tokens, &n, err);

    if (status < 0)
        return status;
    if (page->colour && !attribution->is_bag)
        put_coloured(tokens, n, &page->text);
    else
        put_lines(tokens, n, attribution->is_bag ? SHOWN : n, &page->text);
    free(tokens);
    return KILN_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void kiln_explained_tokens_json(const KilnAttribution *attribution, KilnText *ret)
{
    kiln_text_char(ret, '[');
    for (int64_t i = 0; i < attribution->shape.dim[0]; i++) {
        kiln_text_append(ret, i > 0 ? ", {\"token\": " : "{\"token\": ");
        kiln_text_json_string(ret, attribution->texts[i]);
        kiln_text_append(ret, ", \"weight\": ");
        kiln_text_json_number(ret, (double)attribution->values[i]);
        kiln_text_char(ret, '}');
    }
    kiln_text_char(ret, ']');
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

static KilnStatus put_tokens_html(const KilnAttribution *attribution, KilnText *ret, KilnError *err)
{
    Token *tokens = NULL;
    size_t n = 0;
    KilnStatus status = tokens_of(attribution, &tokens, &n, err);

    if (status < 0)
        return status;
    const double most = most_of(tokens, n);
    kiln_text_append(ret, "<p>");
    for (size_t i = 0; i < n; i++) {
        const double weight = tokens[i].weight;

        kiln_text_printf(ret, "<span title=\"%.4g\" style=\"background: rgba(%s, %.3f)\">", weight,
                         weight >= 0.0 ? "0, 150, 60" : "210, 40, 40",
                         most > 0.0 ? fabs(weight) / most : 0.0);
        put_escaped(ret, tokens[i].text);
        kiln_text_append(ret, attribution->is_bag ? "</span><br>\n" : "</span> ");
    }
    kiln_text_append(ret, "</p>\n");
    free(tokens);
    return KILN_OK;
}

KilnStatus kiln_explained_html(const KilnExplained *explained, KilnText *ret, KilnError *err)
{
    const KilnExplanation *explanation = explained->explanation;
    KilnPage head = { .width = 100 };
    KilnStatus status = KILN_OK;

    kiln_explained_head(explained, &head);
    kiln_text_append(ret,
                     "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Token weights</title>\n"
                     "<pre>");
    put_escaped(ret, head.text.data != NULL ? head.text.data : "");
    kiln_text_append(ret, "</pre>\n");
    kiln_text_release(&head.text);
    for (size_t i = 0; i < explanation->n && status >= 0; i++)
        if (is_tokens(&explanation->list[i]))
            status = put_tokens_html(&explanation->list[i], ret, err);
    return status;
}
