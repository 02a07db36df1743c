/* Is a file a whole shared object? */
#ifndef KILN_REGISTRY_ELF_H
#define KILN_REGISTRY_ELF_H

#include "kiln/base.h"

/* KILN_OK when the file has an ELF header and all that its program headers name.
 * dlopen maps a file that was cut short and dies of SIGBUS when it reads there. */
KILN_NODISCARD KilnStatus kiln_elf_check(const char *path, KilnError *err);

#endif
