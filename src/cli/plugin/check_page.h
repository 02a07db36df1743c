/* Prints what checks of components found. */
#ifndef KILN_CLI_PLUGIN_CHECK_PAGE_H
#define KILN_CLI_PLUGIN_CHECK_PAGE_H

#include "base/page.h"
#include "cli/contract/contract.h"

/* Append a heading per component with a line per check, and the counts. `brief`: of components
 * without a failure only the counts. */
void kiln_check_page_write(KilnPage *page, const KilnContractReport *report, const char *target,
                           bool brief);
/* Print the report as JSON on standard output. */
KILN_NODISCARD KilnStatus kiln_check_print_json(const KilnContractReport *report,
                                                const char *target, KilnError *err);

#endif
