/* What is in a folder of the user's data. */
#ifndef KILN_CLI_NEW_FOLDER_H
#define KILN_CLI_NEW_FOLDER_H

#include "cli/new/new_config.h"

typedef enum KilnNewFolderKind {
    KILN_FOLDER_UNKNOWN,
    KILN_FOLDER_IMAGE_CLASSES,
    KILN_FOLDER_MASKS,
    KILN_FOLDER_SEQUENCES,    /* train/seq.in, train/seq.out */
    KILN_FOLDER_TEXT_CLASSES, /* a folder of texts for each class */
    KILN_FOLDER_IDX,
    KILN_FOLDER_FILES,        /* tables or texts; images that a table lists */
    KILN_FOLDER_SPLIT_TABLES, /* tables in a folder for each split; images that they list */
    KILN_FOLDER_ONE_CLASS,
    KILN_FOLDER_BARE_IMAGES,
    KILN_FOLDER_MIXED
} KilnNewFolderKind;

/* Paths in the arena. */
typedef struct KilnNewPaths {
    const char **list;
    size_t n, capacity;
} KilnNewPaths;

typedef struct KilnNewFolder {
    KilnNewFolderKind kind;
    size_t n_entries;
    const char *first;                    /* an entry that shows what is in it */
    const char *splits[KILN_SPLIT_COUNT]; /* folders train, val, test; NULL: there is none */
    const char *images, *masks;           /* patterns of datamodule mask_folder */
    KilnNewPaths tables, texts;           /* files directly in it */
    KilnNewPaths split_tables[KILN_SPLIT_COUNT];
} KilnNewFolder;

/* Read the folder; lists are in the config's arena. */
KILN_NODISCARD KilnStatus kiln_new_folder_read(KilnNewConfig *config, const char *path,
                                               KilnNewFolder *ret, KilnError *err);
/* Append a path, borrowed. */
void kiln_new_add_path(KilnNewConfig *config, KilnNewPaths *paths, const char *path);
/* Whether a file's ending says that it stands beside the data: .weight, .query, ... */
bool kiln_new_is_side_ending(KilnString ending);

#endif
