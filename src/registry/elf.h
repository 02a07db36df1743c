/* Is a file a whole shared object, with a certain symbol? Looked at without running any of it. */
#ifndef KILN_REGISTRY_ELF_H
#define KILN_REGISTRY_ELF_H

#include "kiln/base.h"

/* KILN_OK when the file has an ELF header, all that its program headers name, and exports `symbol`.
 * dlopen maps a file that was cut short and dies of SIGBUS when it reads there. */
KILN_NODISCARD KilnStatus kiln_elf_check(const char *path, const char *symbol, KilnError *err);

#endif
