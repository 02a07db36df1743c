/* From arguments of a sweep to its axes: `lr=0.1,0.01 model=glob(r*)`, and
 * kiln.sweeper.params of the config. */
#ifndef KILN_CONFIG_SWEEP_SWEEP_ARGUMENTS_H
#define KILN_CONFIG_SWEEP_SWEEP_ARGUMENTS_H

#include "config/compose.h"
#include "kiln/sweep.h"

/* A sweep's arguments taken apart. */
typedef struct KilnSweepArguments {
    KilnSpace space;
    const char *const *own; /* overrides of `kiln`, which are the sweep's and no job's;
                             * NULL-terminated, as they were written */
} KilnSweepArguments;

/* Take request->overrides apart. kiln.sweeper.params of `config`, which
 * kiln_config_compose_sweep() made of the request, come before them; a key that is
 * given twice has the later values in the earlier place. Values are written as Hydra
 * writes them. `errors` collects what is wrong (syntax, interval(), zip() of unequal
 * lengths), and warnings (glob() that matches nothing); the status is the first
 * error's. What a job's config does not take is not found here. Everything lives in
 * the arena. */
KILN_NODISCARD KilnStatus kiln_sweep_arguments(const KilnComposeRequest *request,
                                               const KilnComposeHooks *hooks,
                                               const KilnConfig *config, KilnArena *arena,
                                               KilnSweepArguments *ret, KilnErrors *errors);

#endif
