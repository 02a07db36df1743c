/* What `kiln explain-prediction` shows and writes of an explanation. */
#ifndef KILN_CLI_EXPLAIN_EXPLAIN_OUTPUT_H
#define KILN_CLI_EXPLAIN_EXPLAIN_OUTPUT_H

#include "base/page.h"
#include "kiln/embed/explanation.h"

/* One explained sample; all borrowed. */
typedef struct KilnExplained {
    const KilnExplanation *explanation;
    const KilnRawSample *raw;
    const KilnInstance *tokenizer; /* NULL: none */
    int64_t index;
    const char *file;    /* its name; NULL: none */
    const char *picture; /* that was written; NULL: none */
} KilnExplained;

/* The image that is explained; NULL: there is none. */
const KilnAttribution *kiln_explained_image(const KilnExplained *explained);
/* Append the text of number i of an attribution's ids, "" if it has none. */
KILN_NODISCARD KilnStatus kiln_explained_token(const KilnExplained *explained,
                                               const KilnAttribution *attribution, int64_t i,
                                               KilnText *ret, KilnError *err);

/* Append lines for the screen: the score, and columns by their weight, or coloured tokens. */
KILN_NODISCARD KilnStatus kiln_explained_page(const KilnExplained *explained, KilnPage *page,
                                              KilnError *err);
/* Append a line of JSON with all attributions. */
KILN_NODISCARD KilnStatus kiln_explained_json(const KilnExplained *explained, KilnText *ret,
                                              KilnError *err);
/* Append a page of HTML with the tokens of a text, coloured. */
KILN_NODISCARD KilnStatus kiln_explained_html(const KilnExplained *explained, KilnText *ret,
                                              KilnError *err);
/* Write the image in grey with the attributions over it as a PNG file: red for the target, blue
 * against it. Small images are enlarged. (picture.c) */
KILN_NODISCARD KilnStatus kiln_explained_picture(const KilnAttribution *image, const char *path,
                                                 KilnError *err);

#endif
