/* Spans (chunks, slots, named entities) in sequences of tags. Tags are B-, I-, E-, S- with a type,
 * and O, in any of the schemes IOB1, IOB2, IOE, IOBES (Tjong Kim Sang and Veenstra 1999); the rules
 * are conlleval's, which never refuses a sequence, and so seqeval's. */
#ifndef KILN_TAG_SPANS_H
#define KILN_TAG_SPANS_H

#include "kiln/data.h"
#include "kiln/tokenizer.h"

typedef struct KilnTagSpan {
    KilnString type;     /* within the tag that it was read from */
    int64_t first, last; /* words */
} KilnTagSpan;

/* The state between the tags of a sequence. A zeroed one is ready. */
typedef struct KilnSpanFinder {
    char letter; /* of the tag before; 0: there is none */
    KilnString type;
    int64_t at, first;
} KilnSpanFinder;

/* Take the next tag, which must stay valid for the tag after it. True: a span ended before it, and
 * *ret is that span. */
KILN_API bool kiln_span_next(KilnSpanFinder *finder, KilnString tag, KilnTagSpan *ret);
/* The same for the end of the sequence. */
KILN_API bool kiln_span_end(KilnSpanFinder *finder, KilnTagSpan *ret);

#endif
