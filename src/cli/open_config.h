/* What a command that needs a config does first: loads plugins, composes and checks the config. */
#ifndef KILN_CLI_OPEN_CONFIG_H
#define KILN_CLI_OPEN_CONFIG_H

#include "cli/args.h"
#include "kiln/embed/config.h"

/* All these functions print their errors. */

/* A registry with all plugins (cli/find_plugins.h), owned by the caller. */
KILN_NODISCARD KilnStatus kiln_command_registry(const KilnArgs *args, KilnRegistry **ret);
/* The request for the config that the command line describes; borrows from args. */
KilnComposeRequest kiln_command_request(const KilnArgs *args, const KilnRegistry *registry);
/* Compose that config and, with `check`, check it. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_command_compose(const KilnArgs *args, const KilnRegistry *registry,
                                               bool check, KilnConfig **ret);
/* Compose and check the config of a single run; *ret is NULL if it sets `kiln.mode: MULTIRUN`. */
KILN_NODISCARD KilnStatus kiln_command_compose_single(const KilnArgs *args,
                                                      const KilnRegistry *registry,
                                                      KilnConfig **ret);
/* The same as kiln_command_compose for any request. `run` is the run folder that the config comes
 * from, whose outputs are checked too (cli/untrusted.h); NULL: the user's own config. *ret_first
 * (may be NULL) gets the first of the errors that were printed. */
KILN_NODISCARD KilnStatus kiln_command_compose_request(const KilnArgs *args,
                                                       const KilnComposeRequest *request,
                                                       bool check, const char *run,
                                                       KilnConfig **ret, KilnError *ret_first);

/* After the message of an unknown key or a wrong command line: name the words that are nearly ones
 * which the command takes itself (kiln_args_take). */
void kiln_command_advise(const KilnArgs *args, KilnStatus status);
/* Print the error of a wrong command line, with that advice. Returns the exit status of the
 * process. */
int kiln_command_refuse(const KilnArgs *args, KilnStatus status, const KilnError *err);

/* What a command does; `config` is NULL when it composes none, `ctx` is its own. */
typedef KilnStatus KilnCommandAction(KilnArgs *args, const KilnRegistry *registry,
                                     KilnConfig *config, void *ctx, KilnError *err);
/* Load plugins, with `compose` compose and check the config that the command line describes, and
 * run the action. Returns the exit status of the process. */
int kiln_command_run(KilnArgs *args, bool compose, KilnCommandAction *action, void *ctx);

#endif
