/* One component while it is checked, in the child process: its answer, instances and configs of
 * it, and tiny runs of those. */
#ifndef KILN_CLI_CONTRACT_CASE_H
#define KILN_CLI_CONTRACT_CASE_H

#include "base/arena.h"
#include "cli/contract/child.h"
#include "kiln/embed/run.h"

typedef struct KilnCase {
    const KilnContractRequest *request;
    const KilnRegistry *registry;
    const KilnComponent *component;
    const char *const *words; /* the request's, after what a built-in component needs */
    KilnContractPage *page;
    const char *folder; /* of the component's runs, absolute; it exists */
    KilnArena arena;
} KilnCase;

/* ---- The answer; without one the check has passed -------------------------------------------- */

/* It passed, with a few words about what was checked. */
void kiln_case_pass(KilnCase *self, const char *format, ...) KILN_PRINTF(2, 3);
/* It could not be checked here, and what would make it possible ("": nothing). */
void kiln_case_skip(KilnCase *self, const char *advice, const char *format, ...) KILN_PRINTF(3, 4);
/* It failed, and how to mend it. Only the first failure counts. */
void kiln_case_fail(KilnCase *self, const char *advice, const char *format, ...) KILN_PRINTF(3, 4);
/* It failed with the component's own error. */
void kiln_case_fail_with(KilnCase *self, const KilnError *err);
bool kiln_case_failed(const KilnCase *self);

/* ---- Instances ------------------------------------------------------------------------------- */

/* An instance with the config that must outlive it. */
typedef struct KilnCaseInstance {
    KilnConfig *config;
    KilnInstance *instance;
} KilnCaseInstance;

/* Build the component with its defaults and the user's options. */
KILN_NODISCARD KilnStatus kiln_case_build(KilnCase *self, KilnCaseInstance *ret, KilnError *err);
/* The same of another component, with its defaults. */
KILN_NODISCARD KilnStatus kiln_case_build_other(KilnCase *self, KilnKind kind, const char *name,
                                                KilnCaseInstance *ret, KilnError *err);
/* What is wrong with these overrides of the config that comes with kiln; freed by the caller. NULL:
 * memory is out. */
KilnErrors *kiln_case_config_errors(KilnCase *self, const char *const *overrides);
/* Build it, or fail the check. */
bool kiln_case_open(KilnCase *self, KilnCaseInstance *ret);
void kiln_case_close(KilnCaseInstance *built);
/* The first required option that the user has not given; NULL: none. */
const char *kiln_case_missing(KilnCase *self);

/* ---- Tiny runs ------------------------------------------------------------------------------- */

/* A config in which the component is trained for two epochs of a few batches, checked; `more` are
 * overrides after all others, NULL-terminated. KILN_E_MISSING: no config that comes with kiln
 * trains it, with the reason. */
KILN_NODISCARD KilnStatus kiln_case_compose(KilnCase *self, const char *const *more,
                                            KilnConfig **ret, KilnError *err);
/* Where the run `name` is. */
const char *kiln_case_run_dir(KilnCase *self, const char *name);
/* Run such a config in the new folder `name`. `batches` is when to interrupt it; -1: never. */
KILN_NODISCARD KilnStatus kiln_case_fit(KilnCase *self, const char *name, const char *const *more,
                                        int64_t batches, KilnError *err);
/* Run it in a process that ends after so many batches, as if it were killed, after what stdio holds
 * in memory was written (`flushes`) or lost. KILN_E_RANGE: it is over before that. */
KILN_NODISCARD KilnStatus kiln_case_kill(KilnCase *self, const char *name, const char *const *more,
                                         int64_t batches, bool flushes, KilnError *err);
/* Resume that run, to its end, with the config that is stored in it. */
KILN_NODISCARD KilnStatus kiln_case_resume(KilnCase *self, const char *name, KilnError *err);

#endif
