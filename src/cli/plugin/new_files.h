/* The files that `kiln plugin new` writes. */
#ifndef KILN_CLI_PLUGIN_NEW_FILES_H
#define KILN_CLI_PLUGIN_NEW_FILES_H

#include "base/text.h"
#include "cli/plugin/new_kinds.h"

enum { KILN_NEW_FILES = 4 };

typedef struct KilnNewFile {
    const char *path; /* in the component's folder */
    const char *text, *purpose;
} KilnNewFile;

/* Append a text of the table of kinds, with the name for %. */
void kiln_plugin_append(KilnText *text, const char *from, const char *name);
/* Make the files of a component of that name. Texts live in the arena. */
KILN_NODISCARD KilnStatus kiln_plugin_files(const KilnNewKind *kind, const char *name,
                                            KilnArena *arena, KilnNewFile ret[KILN_NEW_FILES],
                                            KilnError *err);

#endif
