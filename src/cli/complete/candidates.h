/* What can stand at the cursor: candidates, which several sources add. */
#ifndef KILN_CLI_COMPLETE_CANDIDATES_H
#define KILN_CLI_COMPLETE_CANDIDATES_H

#include "base/arena.h"

typedef struct KilnCandidate {
    const char *text; /* the whole word */
    const char *note; /* one line about it; NULL: none */
    bool open;        /* the word goes on behind it: no blank follows */
} KilnCandidate;

/* Zeroed but for `typed` it is ready. When memory is out candidates are missing, which
 * is no error here. */
typedef struct KilnCandidates {
    const char *typed; /* the word up to the cursor, without quotes; borrowed */
    KilnArena arena;   /* of the texts */
    KilnCandidate *list;
    size_t count, capacity;
} KilnCandidates;

/* Add `text` if it goes on from what is typed and is not there yet. Text and note are
 * copied; a NULL text is nothing. */
void kiln_candidates_add(KilnCandidates *candidates, bool open, const char *text, const char *note);
/* Add files and folders that go on from `path`, with `before` in front. `end`: only
 * files whose names end so, and folders; "/": only folders; "": all. */
void kiln_candidates_paths(KilnCandidates *candidates, const char *before, const char *path,
                           const char *end);
void kiln_candidates_release(KilnCandidates *candidates);

/* `path` with a leading ~/ as the home folder: in the arena, or `path` itself. */
const char *kiln_home_path(KilnArena *arena, const char *path);

#endif
