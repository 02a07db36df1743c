/* What `kiln import-hydra` says. */
#ifndef KILN_CLI_HYDRA_REPORT_H
#define KILN_CLI_HYDRA_REPORT_H

#include "base/page.h"
#include "cli/hydra/outputs.h"

/* The command that trains, and what is wrong with its config. */
typedef struct KilnImportTrial {
    const char *path;      /* of the new folder */
    const char *stand_ins; /* " model=mlp": what the user's own code has to be replaced by, or "" */
    const KilnErrors *errors; /* of the composed config; none: it can train */
} KilnImportTrial;

/* Append the report. */
void kiln_import_report(KilnPage *page, const KilnImportOutputs *outputs,
                        const KilnImportTrial *trial);
/* Append the tables of classes and options. */
void kiln_import_report_classes(KilnPage *page);

#endif
