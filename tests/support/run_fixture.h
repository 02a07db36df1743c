/* Runs a config in a scratch folder, with the components of the tests. */
#ifndef KILN_TESTS_SUPPORT_RUN_FIXTURE_H
#define KILN_TESTS_SUPPORT_RUN_FIXTURE_H

#include <sys/resource.h>

#include "kiln_embed.h"
#include "registry/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/components/plane_task.h"
#include "tests/support/data/points_data.h"
#include "tests/support/recorder.h"
#include "tests/support/run_files.h"

void sleep_ms(int64_t ms);

/* Files of this process cannot grow beyond this size. */
void limit_files(rlim_t bytes);

/* The scratch folder of the current test, in memory if possible: runs flush to disk often. */
extern char work[64];

int make_work(void **unused);

int remove_work(void **unused);

/* A composed config, its registry and the environment of its run. */
typedef struct Composed {
    KilnRegistry *registry;
    KilnConfig *config;
    KilnRunEnv env;
} Composed;

/* Components of the test itself, NULL-terminated; NULL: none. */
extern const KilnComponent *const *extra_components;

/* `overrides` is NULL-terminated and must outlive `ret`. */
void compose(Composed *ret, const char *const *overrides);

void composed_free(Composed *composed);

/* Train with up to 23 overrides, separated by blanks, and kiln.run.dir=work/NAME unless `name` is
 * NULL. */
KilnStatus fit(const char *name, const char *overrides, KilnRunResult *result, KilnError *err);

/* The same; fails the test unless the run ends with this status, such as "completed". */
void fit_well(const char *name, const char *overrides, const char *status);

#endif
