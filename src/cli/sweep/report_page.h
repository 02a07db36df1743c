/* The report of a sweep on the screen. */
#ifndef KILN_CLI_SWEEP_REPORT_PAGE_H
#define KILN_CLI_SWEEP_REPORT_PAGE_H

#include "base/page.h"
#include "kiln/trainer.h"
#include "sweep/report/sweep_report.h"

/* Append the report. Bars are drawn where the console is a terminal. */
void kiln_sweep_report_put_page(const KilnSweepReport *report, const KilnConsole *console,
                                KilnPage *page);

#endif
