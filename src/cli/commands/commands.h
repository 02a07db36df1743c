/* The commands of the program: each takes its arguments and returns the exit
 * status of the process. */
#ifndef KILN_CLI_COMMANDS_COMMANDS_H
#define KILN_CLI_COMMANDS_COMMANDS_H

#include "cli/args.h"
#include "kiln/config.h"

/* The config in a run's .kiln folder that commands go on from. */
#define KILN_JOB_CONFIG "job"

int kiln_command_train(KilnArgs *args);
/* train -m, --plan, --resume: many jobs. */
int kiln_command_sweep(KilnArgs *args);
/* train --plan of one run, whose config has been checked. */
int kiln_command_plan(const KilnArgs *args, KilnConfig *config, const KilnRegistry *registry);
int kiln_command_eval(KilnArgs *args);
int kiln_command_predict(KilnArgs *args);
int kiln_command_graph(KilnArgs *args);
int kiln_command_ckpt(KilnArgs *args);
int kiln_command_verify_resume(KilnArgs *args);
int kiln_command_tune(KilnArgs *args);
int kiln_command_replay(KilnArgs *args);
int kiln_command_list(KilnArgs *args);
int kiln_command_show(KilnArgs *args);
int kiln_command_schema(KilnArgs *args);
int kiln_command_init(KilnArgs *args);
int kiln_command_top(KilnArgs *args);
int kiln_command_explain(KilnArgs *args);
int kiln_command_version(KilnArgs *args);
int kiln_command_completion(KilnArgs *args);
/* What the scripts of the shells call at a Tab: `complete bash BREAKS LINE`,
 * `complete fish LINE`, `complete zsh WORD...`. Always 0, never a message. */
int kiln_command_complete(int argc, char **argv);
/* The i-th command and its summary; NULL behind the last. */
const char *kiln_command_name(size_t i, const char **ret_summary);

/* A registry with the plugins of the command line; the error is printed. */
KilnStatus kiln_command_registry(const KilnArgs *args, KilnRegistry **ret);
/* What the command line asks to be composed; borrows from args. */
KilnComposeRequest kiln_command_request(const KilnArgs *args, const KilnRegistry *registry);
/* Compose (and, with `check`, check) what the command line says; everything
 * found wrong is printed. */
KilnStatus kiln_command_compose(const KilnArgs *args, const KilnRegistry *registry, bool check,
                                KilnConfig **ret);
/* The same of a request; `run`: the run folder that its config comes from, NULL: the user's own
 * config. */
KilnStatus kiln_command_compose_request(const KilnArgs *args, const KilnComposeRequest *request,
                                        bool check, const char *run, KilnConfig **ret);
/* The config of the run that args->run names, with the words on top; *ret_run is its folder,
 * absolute, owned by the caller. Errors are printed. */
KilnStatus kiln_command_resumed(const KilnArgs *args, const KilnRegistry *registry, bool check,
                                KilnConfig **ret, char **ret_run);
/* The config that made a checkpoint, with the words as overrides; errors are printed. */
KilnStatus kiln_command_remembered(const KilnArgs *args, const KilnRegistry *registry,
                                   const char *checkpoint, KilnConfig **ret);
/* Take RUN or ckpt_path=RUN from the words, as args->run. */
void kiln_command_take_run(KilnArgs *args);
/* The checkpoint that args->run names: absolute, owned by the caller. The plugins of its run are
 * taken as those of `args` if these have none. Errors are printed. */
KilnStatus kiln_command_checkpoint(KilnArgs *args, char **ret);
/* --info of train: search path, defaults list, plugins. */
int kiln_command_info(const KilnArgs *args, const KilnRegistry *registry);
/* --help of train: usage, groups, and the options of what is chosen. */
int kiln_command_train_help(const KilnArgs *args, const KilnRegistry *registry);

#endif
