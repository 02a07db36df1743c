/* Collects what a check of data finds (KilnDataModuleOps.check): write a text, then add it. */
#ifndef KILN_DATA_FINDINGS_H
#define KILN_DATA_FINDINGS_H

#include "base/text.h"
#include "kiln/data.h"

typedef struct KilnFindings {
    void (*add)(void *ctx, const KilnDataFinding *finding);
    void *ctx;
    KilnText text; /* of the next finding */
} KilnFindings;

/* Add a finding with the text so far, and clear the text. Nothing was found if `count` is 0: the
 * check is passed, whatever `level` and `advice` say. */
void kiln_findings_add(KilnFindings *findings, KilnCheckLevel level, const char *check,
                       int64_t count, const char *advice);

#endif
