/* Options that name what a run writes (KILN_FIELD_OUTPUT), in a config that comes from a run
 * folder: whoever made the folder chose them. */
#ifndef KILN_REGISTRY_OUTPUTS_H
#define KILN_REGISTRY_OUTPUTS_H

#include "kiln/config.h"

/* Of a config that was read from the folder `run`: what files say, other than arguments, may not
 * lead out of it, unless this user's own run in that folder wrote there
 * (kiln_config_allow_outputs). Everything else is an error. */
KILN_NODISCARD KilnStatus kiln_config_confine(KilnConfig *config, const KilnRegistry *registry,
                                              const char *run, KilnErrors *errors);
/* Remember, outside of the folder, where the run in the folder `run` may write. */
void kiln_config_allow_outputs(KilnConfig *config, const KilnRegistry *registry, const char *run);

#endif
