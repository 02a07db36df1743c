#include "data/findings.h"

void kiln_findings_add(KilnFindings *findings, KilnCheckLevel level, const char *check,
                       int64_t count, const char *advice)
{
    const bool passed = level == KILN_CHECK_PASSED || count == 0;
    const char *text = findings->text.data != NULL ? findings->text.data : "";

    findings->add(findings->ctx, &(KilnDataFinding) { passed ? KILN_CHECK_PASSED : level, check,
                                                      count, text, passed ? NULL : advice });
    kiln_text_clear(&findings->text);
}
