/* The files of a starting project, inside the program. */
#ifndef KILN_CLI_INIT_FILES_H
#define KILN_CLI_INIT_FILES_H

#include "config/defaults/shipped.h"

/* From src/cli/init, in byte order of path; made by tools/gen_files.sh. */
extern const KilnShippedFile kiln_init_files[];
extern const size_t kiln_init_files_count;

#endif
