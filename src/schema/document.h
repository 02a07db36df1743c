/* The canonical document of a checked subtree, which libcyaml loads. */
#ifndef KILN_SCHEMA_DOCUMENT_H
#define KILN_SCHEMA_DOCUMENT_H

#include "base/text.h"
#include "config/tree/node.h"

typedef struct KilnDocument {
    KilnText text;  /* one flow mapping; what is null is left out, a map is a list of
                     * {key, value}, a choice its number, text is in double quotes */
    KilnText given; /* a letter for each optional list or map met, in order: y, or n for null */
} KilnDocument;

/* Write the document of `map` (NULL: nothing but defaults) into a zeroed `ret`, which
 * the caller releases also on failure. Parameters are kiln_bind's. */
KILN_NODISCARD KilnStatus kiln_document_write(const KilnConfig *config, const KilnConfigNode *map,
                                              const char *path, const KilnField *fields,
                                              KilnDocument *ret, KilnError *err);
void kiln_document_release(KilnDocument *document);

#endif
