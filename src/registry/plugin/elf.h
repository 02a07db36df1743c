/* Checks, without running any of it, that a file is a complete shared object with a symbol. */
#ifndef KILN_REGISTRY_PLUGIN_ELF_H
#define KILN_REGISTRY_PLUGIN_ELF_H

#include "kiln/base.h"

/* KILN_OK when the file has an ELF header and all segments, and exports `symbol`. (dlopen of a
 * truncated file ends in SIGBUS.) */
KILN_NODISCARD KilnStatus kiln_elf_check(const char *path, const char *symbol, KilnError *err);

#endif
