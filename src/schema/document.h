/* The canonical document of a checked subtree, which libcyaml loads (bind.c). */
#ifndef KILN_SCHEMA_DOCUMENT_H
#define KILN_SCHEMA_DOCUMENT_H

#include "base/text.h"
#include "config/tree/node.h"

typedef struct KilnDocument {
    KilnText text;  /* one flow mapping without null values; a map is a list of {key, value}, a
                     * choice  its number, text is in double quotes */
    KilnText given; /* a letter for each optional list or map, in order: y, or n for null */
} KilnDocument;

/* Write the document of `map` (NULL: only defaults) into a zeroed `ret`, which the caller releases
 * also after a failure. Parameters are those of kiln_bind. */
KILN_NODISCARD KilnStatus kiln_document_write(const KilnConfig *config, const KilnConfigNode *map,
                                              const char *path, const KilnField *fields,
                                              KilnDocument *ret, KilnError *err);

#endif
