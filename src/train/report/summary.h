/* The summary of a run: summary.json and the closing table. */
#ifndef KILN_TRAIN_REPORT_SUMMARY_H
#define KILN_TRAIN_REPORT_SUMMARY_H

#include "kiln/trainer.h"

/* Write summary.json; `status` as in KilnRunResult or "failed", `reason` why it ended ("": nothing
 * to say). */
KILN_NODISCARD KilnStatus kiln_summary_write(const KilnTrainer *trainer, const char *status,
                                             const char *reason, KilnError *err);
/* Print the closing table; `status` as above. */
void kiln_summary_print(KilnTrainer *trainer, const char *status);

#endif
