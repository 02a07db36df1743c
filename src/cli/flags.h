/* What flags and commands are for, as text. */
#ifndef KILN_CLI_FLAGS_H
#define KILN_CLI_FLAGS_H

#include "base/page.h"

/* The flags of train, in groups. */
void kiln_flags_train(KilnPage *page);
/* Usage, what it does, examples and flags of any other command. */
void kiln_flags_command(KilnPage *page, const char *name, const char *usage, const char *summary);
/* What a flag ("--cfg") is for; NULL: nothing is said. */
const char *kiln_flags_text(const char *flag);

#endif
