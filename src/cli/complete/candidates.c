/* Collects completion candidates. */
#include "cli/complete/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "kiln/array.h"

static void append(KilnCandidates *candidates, bool open, const char *text, const char *note)
{
    text = text != NULL ? kiln_arena_strdup(&candidates->arena, text) : NULL;
    note = note != NULL ? kiln_arena_strdup(&candidates->arena, note) : NULL;
    if (text != NULL && KILN_RESERVE(candidates->list, candidates->capacity, candidates->count + 1))
        candidates->list[candidates->count++] =
            (KilnCandidate) { .text = text, .note = note, .open = open };
}

void kiln_candidates_add(KilnCandidates *candidates, bool open, const char *text, const char *note)
{
    if (text == NULL || !kiln_starts_with(text, candidates->typed))
        return;
    for (size_t i = 0; i < candidates->count; i++)
        if (strcmp(candidates->list[i].text, text) == 0)
            return;
    append(candidates, open, text, note);
}

/* ---- Files -------------------------------------------------------------------------- */

const char *kiln_home_path(KilnArena *arena, const char *path)
{
    char *whole = kiln_path_expand(path);
    const char *copy = whole != NULL ? kiln_arena_strdup(arena, whole) : NULL;

    free(whole);
    return copy != NULL ? copy : path;
}

/* Add one name of a folder. `shown`: the folder as it is typed, after the text before it. */
static void add_path(KilnCandidates *candidates, const char *shown, const char *folder,
                     const char *name, const char *end)
{
    char *path = kiln_path_join(folder, name);
    bool is_dir = path != NULL && kiln_is_dir(path);

    if (is_dir || (strcmp(end, "/") != 0 && kiln_ends_with(name, end)))
        append(candidates, is_dir,
               kiln_arena_printf(&candidates->arena, "%s%s%s", shown, name, is_dir ? "/" : ""),
               NULL);
    free(path);
}

void kiln_candidates_paths(KilnCandidates *candidates, const char *before, const char *path,
                           const char *end)
{
    KilnArena *arena = &candidates->arena;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const char *typed = kiln_arena_strndup(arena, path, (size_t)(name - path));
    const char *shown = typed != NULL ? kiln_arena_printf(arena, "%s%s", before, typed) : NULL;
    char **names = NULL;
    size_t count = 0;

    if (shown == NULL)
        return;
    const char *folder = *typed != '\0' ? kiln_home_path(arena, typed) : ".";
    if (kiln_dir_list(folder, &names, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        if (kiln_starts_with(names[i], name) && (names[i][0] != '.' || name[0] == '.'))
            add_path(candidates, shown, folder, names[i], end);
    kiln_names_free(names, count);
}

void kiln_candidates_release(KilnCandidates *candidates)
{
    free(candidates->list);
    kiln_arena_release(&candidates->arena);
    *candidates = (KilnCandidates) { 0 };
}
