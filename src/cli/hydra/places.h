/* Where the classes of a user's tree are, and where kiln's config has what they do. */
#ifndef KILN_CLI_HYDRA_PLACES_H
#define KILN_CLI_HYDRA_PLACES_H

#include "cli/hydra/classes.h"
#include "cli/hydra/source.h"

/* A mapping with _target_, or one that is read like that. */
typedef struct KilnImportPlace {
    const char *path;            /* in the composed tree: "model.optimizer"; "": the root */
    const char *target;          /* as written; NULL: there is no _target_ */
    const KilnImportClass *type; /* NULL: in none of the tables */
    KilnImportKind kind;
    const char *to;             /* its path in kiln's config; NULL: it stays */
    bool second;                /* kiln has one of them, and another one in the file is it */
    const KilnImportFile *file; /* NULL: of all files */
    KilnOrigin origin;
} KilnImportPlace;

/* The content of a key goes elsewhere. */
typedef struct KilnImportMove {
    const char *from, *to;
    const KilnImportFile *file; /* that has it; NULL: all */
    bool own;                   /* only in that file */
} KilnImportMove;

typedef struct KilnImportPlaces {
    const KilnImportSource *source;
    KilnImportPlace *places;
    size_t n, capacity;
    KilnImportMove *moves;
    size_t n_moves, moves_capacity;
    KilnArena arena;
} KilnImportPlaces;

/* What kiln's config has for a kind without a counterpart. */
typedef enum KilnImportGap {
    KILN_IMPORT_LEFT_OUT, /* it becomes a comment */
    KILN_IMPORT_NULL,     /* the key stays, with null */
    KILN_IMPORT_STAND_IN  /* a component stands in, or the user has to name one: ??? */
} KilnImportGap;

/* Find all places of a tree. The caller releases `places` in any case. */
KILN_NODISCARD KilnStatus kiln_import_places_find(KilnImportPlaces *places,
                                                  const KilnImportSource *source, KilnError *err);
void kiln_import_places_release(KilnImportPlaces *places);
/* Add a move of all files; false: memory is out. */
bool kiln_import_move(KilnImportPlaces *places, const char *from, const char *to);
/* The i-th place at a path, those of the file first; NULL after the last. */
const KilnImportPlace *kiln_import_place_at(const KilnImportPlaces *places,
                                            const KilnImportFile *file, const char *path, size_t i);
/* Where the path goes, by the longest move that it begins with: in `arena`, or `path` itself. With
 * `exact`: NULL unless a move is of just this path. */
const char *kiln_import_moved(const KilnImportPlaces *places, KilnArena *arena,
                              const KilnImportFile *file, const char *path, bool exact);
/* What stands in for a kind; *ret_target is then its _target_. */
KilnImportGap kiln_import_gap(KilnImportKind kind, const char **ret_target);
/* "a.b" and "c" make "a.b.c". */
const char *kiln_import_path(KilnArena *arena, const char *path, const char *key, size_t i);

#endif
