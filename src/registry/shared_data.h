/* Data for several runs: one process sets up a datamodule, and processes that are forked from it
 * then take it in place of one of their own. What this needs is static, as it belongs to the
 * process. */
#ifndef KILN_REGISTRY_SHARED_DATA_H
#define KILN_REGISTRY_SHARED_DATA_H

#include "registry/instance.h"

/* What the set-up of a datamodule depends on, its resolved options and the seed, as a number; equal
 * ones may share it. 0: the config has no datamodule, or an error. */
uint64_t kiln_shared_data_key(const KilnConfig *config);

/* Ask for the next datamodule that is offered. `ready` is called once, with `good`: it has this key
 * and can be shared. Processes forked in `ready` may take it. */
void kiln_shared_data_ask(uint64_t key, void (*ready)(void *ctx, bool good), void *ctx);
/* Offer the config's datamodule right after its set-up; NULL: it may not be shared. `poll` is the
 * KilnDataContext.poll that it has. */
void kiln_shared_data_offer(const KilnConfig *config, KilnInstance *datamodule, KilnPoll *poll);
/* Take the datamodule that was offered, set up as the config wants it; owned by the caller. From
 * now on it polls and prints for this run. NULL: there is none. */
KilnInstance *kiln_shared_data_take(const KilnConfig *config, KilnPoll poll);

#endif
