/* Runs a function in a child process with a time limit, and says how the child ended. */
#ifndef KILN_CLI_CONTRACT_CHILD_H
#define KILN_CLI_CONTRACT_CHILD_H

#include "base/call.h"
#include "cli/contract/contract.h"

enum { KILN_TRACE_HOOKS = 64 };

/* A hook of the checked component that was called, and how often. */
typedef struct KilnTracedHook {
    const char *hook; /* static text */
    int64_t count;
} KilnTracedHook;

/* What a child and its parent share. */
typedef struct KilnContractPage {
    bool answered;
    int level; /* KilnContractLevel */
    char text[KILN_ERROR_TEXT], advice[KILN_ERROR_TEXT];
    /* The function of a component that the child's first thread is in ("init of callback/target"),
     * the last one of the checked component, and the last one of another thread; "": none. */
    char now[160], last[160], elsewhere[160];
    char unwritten[256]; /* what a kernel left unwritten; "": nothing */
    char list[1 << 16];  /* of the load: the names of the components, a line each */
} KilnContractPage;

typedef struct KilnContractChild {
    KilnContractPage *page; /* shared memory */
    const char *output;     /* the file that the child prints to */
    double timeout;
    const volatile int *stop;
} KilnContractChild;

/* Allocate the page; KILN_E_NOMEM. */
KILN_NODISCARD KilnStatus kiln_contract_child_open(KilnContractChild *child, KilnError *err);
void kiln_contract_child_close(KilnContractChild *child);

/* Run `body` in a child process, and fill the page: with its answer, or with how the child ended
 * instead. KILN_E_IO: there is no child; KILN_E_INTERRUPTED: the user stopped it. */
KILN_NODISCARD KilnStatus kiln_contract_child_run(KilnContractChild *child, void (*body)(void *ctx),
                                                  void *ctx, KilnError *err);

/* In the child: that component is checked. Trace its hooks from now on, in the order of their first
 * call. The trace lives as long as the process. */
void kiln_contract_trace(const KilnComponent *component);
size_t kiln_contract_traced(const KilnTracedHook **ret);

#endif
