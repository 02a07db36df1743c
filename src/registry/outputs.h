/* Options that name what a run writes (KILN_FIELD_OUTPUT), in a config from a run folder, where
 * whoever made the folder wrote them. */
#ifndef KILN_REGISTRY_OUTPUTS_H
#define KILN_REGISTRY_OUTPUTS_H

#include "kiln/embed/config.h"

/* Report each output outside of the folder `run`, from which the config was read. Accepted are
 * those that arguments set and those that this user's own run in the folder wrote
 * (kiln_config_allow_outputs). */
KILN_NODISCARD KilnStatus kiln_config_confine(KilnConfig *config, const KilnRegistry *registry,
                                              const char *run, KilnErrors *errors);
/* Remember, in the user's own state folder, where the run in the folder `run` may write. */
void kiln_config_allow_outputs(KilnConfig *config, const KilnRegistry *registry, const char *run);

#endif
