/* Flat functions for sweeps (see kiln/flat/config.h). */
#ifndef KILN_KILN_FLAT_SWEEP_H
#define KILN_KILN_FLAT_SWEEP_H

#include "kiln/flat/config.h"
#include "kiln/flat/run.h"

/* Run a sweep as `train -m` does; the lists as in kiln_flat_compose. `resume` is the folder of the
 * sweep to resume, NULL: a new one. The environment gives the registry and the console.
 *
 * Call it in a process of its own with one thread, from which each job is forked. SIGINT, SIGTERM
 * and SIGHUP end the sweep, whose jobs save; until it returns, it handles them and SIGUSR1.
 * Components of the caller (kiln/flat/component.h) are called in the jobs' processes.
 *
 * *ret_dir is the sweep's folder, owned by the caller (free); jobs that fail are no error. */
KILN_API KILN_NODISCARD KilnStatus kiln_flat_sweep(KilnFlatEnv *env, const char *config_path,
                                                   const char *config_name,
                                                   const char *const *config_dirs,
                                                   const char *const *overrides, const char *resume,
                                                   char **ret_dir, KilnErrors *errors);

#endif
