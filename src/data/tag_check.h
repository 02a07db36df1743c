/* Looks for mistakes of annotators in tags of words. */
#ifndef KILN_DATA_TAG_CHECK_H
#define KILN_DATA_TAG_CHECK_H

#include "kiln/data.h"
#include "kiln/tokenizer.h"

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
void kiln_tag_check_add(KilnTagCheck *check, const KilnString *words, const KilnString *tags,
                        int64_t n, const char *place);
/* For KilnDataModuleOps.check: report what was found in the sentences of a split. */
void kiln_tag_check_report(const KilnTagCheck *check, const char *split,
                           void (*add)(void *ctx, const KilnDataFinding *finding), void *ctx);

#endif
