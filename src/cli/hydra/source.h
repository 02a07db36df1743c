/* A user's Hydra tree: its files with their values, and the comments and spellings of each. */
#ifndef KILN_CLI_HYDRA_SOURCE_H
#define KILN_CLI_HYDRA_SOURCE_H

#include "config/tree/node.h"

/* The comments of a key or list item: whole lines with their #, or "" for an empty line. */
typedef struct KilnImportComments {
    const KilnEntry *entry; /* NULL: of the end of the file */
    const char *before;     /* lines above it, each with its line end; NULL: none */
    const char *after;      /* on its line: "# text" */
    const char *below;      /* lines below it that are indented at least as deep */
} KilnImportComments;

/* The text of a scalar or a flow collection in its file. */
typedef struct KilnImportSpan {
    int line, column;
    bool flow;        /* a collection in brackets */
    const char *text; /* on one line; NULL: it has several */
} KilnImportSpan;

typedef struct KilnImportFile {
    const char *name;    /* "model/mnist.yaml": below the folder */
    const char *group;   /* "model"; "": beside the groups */
    const char *option;  /* "mnist" */
    const char *header;  /* of "# @package": "_global_"; NULL: none */
    const char *package; /* where its content goes: "model"; "": the root */
    KilnConfigNode *root;
    KilnImportComments *comments; /* in the order of the file */
    size_t n_comments;
    KilnImportSpan *spans; /* likewise */
    size_t n_spans;
} KilnImportFile;

typedef struct KilnImportSource {
    const char *dir;
    KilnImportFile *files; /* in byte order of name */
    size_t n_files, capacity;
    KilnArena arena; /* of all that it points to */
} KilnImportSource;

/* Read all *.yaml and *.yml files below the folder. The first file that is no YAML fails. The
 * caller releases `source` in any case. */
KILN_NODISCARD KilnStatus kiln_import_read(KilnImportSource *source, const char *dir,
                                           KilnError *err);
void kiln_import_source_release(KilnImportSource *source);
/* The file of a group's option; NULL: there is none. */
const KilnImportFile *kiln_import_file_find(const KilnImportSource *source, const char *group,
                                            const char *option);
/* NULL: it has none. `entry` NULL: those at the end of the file. */
const KilnImportComments *kiln_import_comments_of(const KilnImportFile *file,
                                                  const KilnEntry *entry);
/* The key or scalar that begins there, as it is written, with `flow` the collection in brackets;
 * NULL: none does. */
const KilnImportSpan *kiln_import_span(const KilnImportFile *file, KilnOrigin origin, bool flow);
/* The text of a key that begins there; NULL: on several lines. */
const char *kiln_import_spelling(const KilnImportFile *file, KilnOrigin origin);
/* The text of a value likewise, also of a flow collection. */
const char *kiln_import_value_text(const KilnImportFile *file, const KilnConfigNode *value);
/* Whether the value is a mapping or list in block style, with a key or item per line. */
bool kiln_import_is_block(const KilnImportFile *file, const KilnConfigNode *value);

/* Find the comments and spans of a file whose nodes have been read; `size` bytes of text.
 * (comments.c) */
KILN_NODISCARD KilnStatus kiln_import_scan(KilnArena *arena, KilnImportFile *file, const char *text,
                                           size_t size, KilnError *err);

#endif
