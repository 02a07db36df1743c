/* What commands are for, as text. */
#ifndef KILN_CLI_HELP_COMMAND_HELP_H
#define KILN_CLI_HELP_COMMAND_HELP_H

#include "base/page.h"

/* Usage of a command (not train, whose help is composed), what it does, examples and flags. */
void kiln_command_help(KilnPage *page, const char *name, const char *usage, const char *summary);

#endif
