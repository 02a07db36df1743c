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

/* ---- Mistakes in tags -------------------------------------------------------------------------
 */

/* Mistakes of annotators in sentences. A zeroed one is ready. */
typedef struct KilnTagCheck {
    int64_t sentences, words, spans;
    int64_t begins;     /* tags B- and S-: without any, the tags are no IOB2 or IOBES */
    int64_t strays;     /* tags I- and E- that continue no span of their type */
    int64_t spaces;     /* words of spans with white space in them */
    int64_t punctuated; /* spans that begin or end with punctuation, or are nothing else */
    int64_t outside;    /* sentences of nothing but O */
    char stray[256], space[256], punctuation[256]; /* the first of them, with their places */
} KilnTagCheck;

/* Take the words and tags of a sentence, n of each; `place` says where it is. */
KILN_API void kiln_tag_check_add(KilnTagCheck *check, const KilnString *words,
                                 const KilnString *tags, int64_t n, const char *place);
/* For KilnDataModuleOps.check: report what was found in the sentences of a split. */
KILN_API void kiln_tag_check_report(const KilnTagCheck *check, const char *split,
                                    void (*add)(void *ctx, const KilnDataFinding *finding),
                                    void *ctx);

#endif
