/* What `kiln explain-prediction` shows and writes of an explanation. */
#ifndef KILN_CLI_EXPLAIN_EXPLAIN_OUTPUT_H
#define KILN_CLI_EXPLAIN_EXPLAIN_OUTPUT_H

#include "base/page.h"
#include "kiln/embed/explanation.h"

/* One explained sample; all borrowed. */
typedef struct KilnExplained {
    const KilnExplanation *explanation;
    const KilnRawSample *raw;
    int64_t index;
    const char *file;    /* its name; NULL: none */
    const char *picture; /* that was written; NULL: none */
} KilnExplained;

/* The image that is explained; NULL: there is none. */
const KilnAttribution *kiln_explained_image(const KilnExplained *explained);

/* Append lines for the screen: the score, and columns by their weight, or coloured tokens. */
KILN_NODISCARD KilnStatus kiln_explained_page(const KilnExplained *explained, KilnPage *page,
                                              KilnError *err);
/* The first lines of that. */
void kiln_explained_head(const KilnExplained *explained, KilnPage *page);
/* Append tokens, or the n-grams of a bag, as lines or coloured. (explain_tokens.c) */
KILN_NODISCARD KilnStatus kiln_explained_tokens(const KilnAttribution *attribution, KilnPage *page,
                                                KilnError *err);
/* Append them as a JSON list, in the order of the text. */
void kiln_explained_tokens_json(const KilnAttribution *attribution, KilnText *ret);
/* Append a line of JSON with all attributions. */
KILN_NODISCARD KilnStatus kiln_explained_json(const KilnExplained *explained, KilnText *ret,
                                              KilnError *err);
/* Append a page of HTML with the tokens of a text, coloured. (explain_tokens.c) */
KILN_NODISCARD KilnStatus kiln_explained_html(const KilnExplained *explained, KilnText *ret,
                                              KilnError *err);
/* Write a PNG file with the image, and beside it the attributions over the image in grey: red for
 * the target, blue against it. Small images are enlarged. Title and numbers need a build with
 * cairo. (picture.c) */
KILN_NODISCARD KilnStatus kiln_explained_picture(const KilnExplained *explained,
                                                 const KilnAttribution *image, const char *path,
                                                 KilnError *err);
/* integrated_gradients, occlusion, ... */
const char *kiln_explained_method(KilnExplainMethod method);

#endif
