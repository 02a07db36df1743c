/* The --help pages of commands. */
#ifndef KILN_CLI_HELP_COMMAND_HELP_H
#define KILN_CLI_HELP_COMMAND_HELP_H

#include "base/page.h"
#include "cli/commands/commands.h"

/* Append the usage of a command, what it does, examples and flags. The help of train is composed:
 * cli/train/train_help.c. */
void kiln_command_help(KilnPage *page, const KilnCommand *command);

#endif
