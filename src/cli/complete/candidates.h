/* The list of completion candidates. */
#ifndef KILN_CLI_COMPLETE_CANDIDATES_H
#define KILN_CLI_COMPLETE_CANDIDATES_H

#include "base/arena.h"

typedef struct KilnCandidate {
    const char *text; /* the whole word */
    const char *note; /* one line about it; NULL: none */
    bool open;        /* the word continues: no blank follows */
} KilnCandidate;

/* Ready when zeroed and `typed` is set. Candidates are missing when memory runs out, which is no
 * error here. */
typedef struct KilnCandidates {
    const char *typed; /* the word up to the cursor, without quotes; borrowed */
    KilnArena arena;   /* of the texts */
    KilnCandidate *list;
    size_t count, capacity;
} KilnCandidates;

/* Add `text` if it starts with what is typed and is not in the list. Text and note are copied; NULL
 * text is skipped. */
void kiln_candidates_add(KilnCandidates *candidates, bool open, const char *text, const char *note);
/* Add `before` + path for files and folders whose paths start with `path`. `end` restricts files by
 * their names' ends; "/": only folders; "": all. */
void kiln_candidates_paths(KilnCandidates *candidates, const char *before, const char *path,
                           const char *end);
void kiln_candidates_release(KilnCandidates *candidates);

/* kiln_path_expand into the arena; `path` itself when memory is out. */
const char *kiln_home_path(KilnArena *arena, const char *path);

#endif
