/* Opens the config of a past run, for commands that resume, evaluate or replay it. */
#ifndef KILN_CLI_OPEN_RUN_H
#define KILN_CLI_OPEN_RUN_H

#include "cli/args.h"
#include "kiln/embed/config.h"

/* Where a past run's config is, and the overrides on top of it. NULL members: none. */
typedef struct KilnRunRequest {
    const char *run;           /* the run folder */
    const char *folder, *name; /* of the config; by default it is the job config of the run */
    const char *const *before; /* overrides before the words of the command line; NULL-terminated */
    const char *run_dir, *checkpoint; /* kiln.run.dir and ckpt_path, set after those words */
} KilnRunRequest;

/* Compose that config and, with `check`, check it. Owned by the caller; errors are printed. */
KILN_NODISCARD KilnStatus kiln_command_compose_run(const KilnArgs *args,
                                                   const KilnRegistry *registry,
                                                   const KilnRunRequest *request, bool check,
                                                   KilnConfig **ret);
/* The config of the run that args->run names, for `train resume=RUN`; *ret_run is its folder,
 * absolute, owned by the caller. Errors are printed. */
KILN_NODISCARD KilnStatus kiln_command_compose_resumed(const KilnArgs *args,
                                                       const KilnRegistry *registry, bool check,
                                                       KilnConfig **ret, char **ret_run);
/* The config that made a checkpoint, with the words as overrides. Errors are printed. */
KILN_NODISCARD KilnStatus kiln_command_compose_checkpoint(const KilnArgs *args,
                                                          const KilnRegistry *registry,
                                                          const char *checkpoint, KilnConfig **ret);
/* Take RUN or ckpt_path=RUN from the words, as args->run. */
void kiln_command_take_run(KilnArgs *args);
/* Refuse words that are no overrides; `input` (NULL: none) was taken from them. */
KILN_NODISCARD KilnStatus kiln_command_check_words(KilnArgs *args, const char *input,
                                                   KilnError *err);
/* The checkpoint that args->run names: absolute, owned by the caller. When `args` has no plugins it
 * takes those of the checkpoint's run. Errors are printed. */
KILN_NODISCARD KilnStatus kiln_command_checkpoint(KilnArgs *args, char **ret);

#endif
