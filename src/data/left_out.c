/* Collects what a search for files leaves out, by reason. */
#include "data/left_out.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_REASONS = 16 }; /* all further ones share the last */

bool kiln_left_out_add(KilnLeftOut *left_out, const char *what, const char *reason,
                       const char *folder, const char *name)
{
    KilnArena *arena = left_out->arena;
    KilnOmission *omission = NULL;

    if (left_out->list == NULL)
        left_out->list = kiln_arena_alloc(arena, MAX_REASONS * sizeof(*left_out->list));
    if (left_out->list == NULL)
        return false;
    for (size_t i = 0; i < left_out->n; i++)
        if (strcmp(left_out->list[i].what, what) == 0 &&
            strcmp(left_out->list[i].reason, reason) == 0)
            omission = &left_out->list[i];
    if (omission == NULL && left_out->n == MAX_REASONS) {
        omission = &left_out->list[MAX_REASONS - 1];
        omission->what = "other files";
    } else if (omission == NULL) {
        omission = &left_out->list[left_out->n++];
        *omission = (KilnOmission) {
            .what = kiln_arena_strdup(arena, what),
            .example = kiln_arena_printf(arena, "%s%s%s", folder != NULL ? folder : "",
                                         folder != NULL ? "/" : "", name),
            .reason = kiln_arena_strdup(arena, reason),
        };
    }
    omission->count++;
    return omission->what != NULL && omission->example != NULL && omission->reason != NULL;
}

bool kiln_left_out_add_file(KilnLeftOut *left_out, const char *reason, const char *folder,
                            const char *name)
{
    const char *dot = strrchr(name, '.');
    char what[32] = "files without an ending";

    if (dot != NULL && dot[1] != '\0' && strlen(dot) < 16) {
        snprintf(what, sizeof(what), "%s files", dot);
        for (char *c = what; *c != ' ' && *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
    }
    return kiln_left_out_add(left_out, what, reason, folder, name);
}
