/* Where the config that made a checkpoint is, and composing it again. */
#ifndef KILN_TRAIN_RUN_CHECKPOINT_CONFIG_H
#define KILN_TRAIN_RUN_CHECKPOINT_CONFIG_H

#include "kiln/embed/config.h"

/* For KilnComposeRequest. */
typedef struct KilnCheckpointConfig {
    char *run;        /* RUN of RUN/checkpoints/NAME */
    char *folder;     /* config_path */
    const char *name; /* config_name */
} KilnCheckpointConfig;

/* Find the config of the checkpoint folder at that absolute path: the job config of its run, whose
 * values still refer to each other, so that an override of one reaches all; or, if the run was
 * resumed with other values since, the checkpoint's own. */
KILN_NODISCARD KilnStatus kiln_checkpoint_config_find(const char *checkpoint,
                                                      const KilnRegistry *registry,
                                                      KilnCheckpointConfig *ret, KilnError *err);
/* Accepts a zeroed struct. */
void kiln_checkpoint_config_release(KilnCheckpointConfig *config);
/* Compose that config with the overrides (NULL-terminated; NULL: none) and ckpt_path=CHECKPOINT on
 * top, and check it. Outputs of a config that another user wrote must stay in its run folder, as
 * for commands (docs/security.md). The error is the first of all. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_checkpoint_config_compose(const char *checkpoint,
                                                         const KilnRegistry *registry,
                                                         const char *const *overrides,
                                                         KilnConfig **ret, KilnError *err);

#endif
