/* Splits the arguments of a sweep into axes: `lr=0.1,0.01 model=glob(r*)`, and
 * kiln.sweeper.params of the config. */
#ifndef KILN_CONFIG_SWEEP_SWEEP_ARGUMENTS_H
#define KILN_CONFIG_SWEEP_SWEEP_ARGUMENTS_H

#include "config/compose.h"
#include "kiln/sweep.h"

/* Where the values of an axis are written. */
typedef struct KilnAxisSource {
    size_t number;     /* of the argument, from 1; 0: it is no argument */
    KilnOrigin origin; /* else: in a file */
} KilnAxisSource;

typedef struct KilnSweepArguments {
    KilnSpace space;
    const KilnAxisSource *sources; /* by axis */
    const char *const *own;        /* overrides of `kiln`, which belong to the sweep and to no job;
                                    * NULL-terminated, as written */
    const size_t *own_numbers;     /* of these arguments, from 1 */
} KilnSweepArguments;

/* Split kiln.sweeper.params of `config` (made by kiln_config_compose_sweep() from the request) and
 * then request->overrides. A repeated key has the later values at the earlier position. Values are
 * written as Hydra writes them. `errors` collects errors (syntax, an interval on a logarithmic
 * scale from 0, zip() of unequal lengths) and warnings (glob() without a match); the status is that
 * of the first error. Overrides that a job's config refuses are not found here. Everything lives in
 * the arena. */
KILN_NODISCARD KilnStatus kiln_sweep_arguments(const KilnComposeRequest *request,
                                               const KilnComposeHooks *hooks,
                                               const KilnConfig *config, KilnArena *arena,
                                               KilnSweepArguments *ret, KilnErrors *errors);

#endif
