/* The commands of the program, one file each in this folder: `kiln graph` is graph.c. Each takes
 * its arguments and returns the exit status of the process. cli/main.c has the table. */
#ifndef KILN_CLI_COMMANDS_COMMANDS_H
#define KILN_CLI_COMMANDS_COMMANDS_H

#include "cli/args.h"
#include "kiln/embed/config.h"
#include "sweep/sweep.h"

int kiln_command_train(KilnArgs *args);
/* train -m, --plan and --resume: many jobs. */
int kiln_command_train_sweep(KilnArgs *args);
/* Take the plugins and the working folder of a sweep, as its jobs have them. */
KILN_NODISCARD KilnStatus kiln_command_enter_sweep(KilnArgs *args, const KilnSweepFolder *folder,
                                                   KilnError *err);
/* train --plan of one run, whose config has been checked. */
int kiln_command_plan(const KilnArgs *args, KilnConfig *config, const KilnRegistry *registry);
/* train --info: search path, defaults list, plugins. */
int kiln_command_info(const KilnArgs *args, const KilnRegistry *registry);
/* train --help: usage, groups, and the options of the selected components. */
int kiln_command_train_help(const KilnArgs *args, const KilnRegistry *registry);
int kiln_command_eval(KilnArgs *args);
int kiln_command_predict(KilnArgs *args);
/* predict with the input "-". */
int kiln_command_predict_lines(KilnArgs *args);
int kiln_command_explain_prediction(KilnArgs *args);
int kiln_command_generate(KilnArgs *args);
int kiln_command_graph(KilnArgs *args);
int kiln_command_ckpt(KilnArgs *args);
/* ckpt average. `words`: NULL-terminated; `last`, `output`: NULL if they were not given. */
KilnStatus kiln_ckpt_average(const char *const *words, const char *last, const char *output,
                             KilnError *err);
int kiln_command_verify_resume(KilnArgs *args);
int kiln_command_sweep(KilnArgs *args);
int kiln_command_plugin(KilnArgs *args);
int kiln_command_tune(KilnArgs *args);
int kiln_command_replay(KilnArgs *args);
int kiln_command_tokenizer(KilnArgs *args);
/* tokenizer train; for kiln_command_run. */
KilnStatus kiln_command_tokenizer_train(KilnArgs *args, const KilnRegistry *registry,
                                        KilnConfig *unused, void *ctx, KilnError *err);
int kiln_command_plugin(KilnArgs *args);
int kiln_command_list(KilnArgs *args);
int kiln_command_show(KilnArgs *args);
int kiln_command_schema(KilnArgs *args);
int kiln_command_init(KilnArgs *args);
int kiln_command_new(KilnArgs *args);
int kiln_command_check_data(KilnArgs *args);
/* cli/hydra/import_hydra.c */
int kiln_command_import_hydra(KilnArgs *args);
int kiln_command_top(KilnArgs *args);
int kiln_command_doctor(KilnArgs *args);
int kiln_command_explain(KilnArgs *args);
int kiln_command_version(KilnArgs *args);
int kiln_command_completion(KilnArgs *args);
/* What the shells' completion scripts call at a Tab: `complete bash BREAKS LINE`,
 * `complete fish LINE`, `complete zsh WORD...`. Always 0, and no messages. */
int kiln_command_complete(int argc, char **argv);

typedef struct KilnCommand {
    const char *name;
    int (*run)(KilnArgs *args);
    bool computes;     /* it runs a network, unless flags make it print something instead */
    const char *usage; /* of its words: "RUN [plots=DIR] [OVERRIDE...]"; completion reads it too */
    const char *summary;
} KilnCommand;

/* The i-th command of the table in cli/main.c; NULL after the last. */
const KilnCommand *kiln_command_at(size_t i);
/* NULL: there is no such command. */
const KilnCommand *kiln_command_find(const char *name);

#endif
