/* The contract of components: what each kind must do so that every config can use it. Each check
 * runs in a process of its own, so that a component that crashes, hangs or ends the process is
 * reported, and the next check follows. Prints nothing. */
#ifndef KILN_CLI_CONTRACT_CONTRACT_H
#define KILN_CLI_CONTRACT_CONTRACT_H

#include "kiln/base.h"

typedef enum KilnContractLevel {
    KILN_CONTRACT_PASSED,
    KILN_CONTRACT_SKIPPED, /* it could not be checked here */
    KILN_CONTRACT_FAILED,
    KILN_CONTRACT_LEVELS
} KilnContractLevel;

/* What a check found. Texts belong to the report. */
typedef struct KilnContractFinding {
    const char *component; /* "callback/target"; "": the file itself */
    const char *check;     /* "same bytes" */
    KilnContractLevel level;
    const char *text;   /* what was found */
    const char *advice; /* how to mend it; "": nothing to do */
    double seconds;
} KilnContractFinding;

typedef struct KilnContractReport {
    KilnContractFinding *list;
    size_t n, capacity;
    size_t levels[KILN_CONTRACT_LEVELS]; /* findings of each level */
    size_t components;                   /* that were checked */
} KilnContractReport;

/* What to check. Borrowed for the call. */
typedef struct KilnContractRequest {
    const char *file;           /* a plugin, whose components are checked; NULL: built-in ones */
    const char *name;           /* KIND/NAME of one component; NULL: all */
    const char *const *plugins; /* loaded before; NULL-terminated */
    /* Overrides, NULL-terminated: KIND.OPTION=VALUE is an option of the checked component, any
     * other one of the configs that it is trained in. */
    const char *const *words;
    double timeout;           /* seconds that one check may take */
    const volatile int *stop; /* not 0: stop after the current check */
    /* Called before each check; may be NULL. */
    void (*progress)(void *ctx, const char *component, const char *check);
    void *ctx;
} KilnContractRequest;

/* Check the components, and add to *report (zeroed before) what was found. A failed check is no
 * error. KILN_E_KEY: there is no such component; KILN_E_IO: processes or files can't be made. */
KILN_NODISCARD KilnStatus kiln_contract_check(const KilnContractRequest *request,
                                              KilnContractReport *report, KilnError *err);
/* Free the findings; accepts a zeroed report. */
void kiln_contract_report_release(KilnContractReport *report);

#endif
