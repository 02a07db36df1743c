/* Keys of a user's config in kiln's, and the keys that values refer to. */
#include <string.h>

#include "cli/hydra/rewrite.h"

const char *kiln_import_key(KilnImportRewrite *rewrite, const char *path)
{
    const char *dot = strrchr(path, '.'), *name = dot != NULL ? dot + 1 : path;
    const char *above = kiln_arena_strndup(rewrite->arena, path,
                                           dot != NULL ? (size_t)(dot - path) : 0);
    const KilnImportPlace *place;
    bool of_class = false;

    if (above == NULL ||
        kiln_import_moved(rewrite->places, rewrite->arena, rewrite->file, path, true) != NULL)
        return kiln_import_moved(rewrite->places, rewrite->arena, rewrite->file, path, false);
    for (size_t i = 0;
         above[0] != '\0' &&
         (place = kiln_import_place_at(rewrite->places, rewrite->file, above, i)) != NULL;
         i++) {
        const KilnImportOption *option = place->type != NULL
                                             ? kiln_import_option_find(place->type, name)
                                             : NULL;

        if (option != NULL && option->to != NULL)
            return kiln_arena_printf(
                rewrite->arena, "%s.%s",
                kiln_import_moved(rewrite->places, rewrite->arena, rewrite->file, above, false),
                option->to);
        of_class = of_class || place->kind != KILN_IMPORT_DATA;
    }
    if (of_class)
        return NULL;
    /* batch_size is one of every datamodule. */
    return kiln_import_moved(rewrite->places, rewrite->arena, rewrite->file, path, false);
}

/* A relative key ".a", "..b" from the path of the value: the root's. */
static const char *absolute(KilnArena *arena, const char *key, const char *path)
{
    char *above = kiln_arena_strdup(arena, path);

    for (; above != NULL && *key == '.'; key++) {
        char *dot = strrchr(above, '.');

        *(dot != NULL ? dot : above) = '\0';
    }
    return above != NULL ? kiln_import_path(arena, above, key, 0) : NULL;
}

const char *kiln_import_references(KilnImportRewrite *rewrite, const char *text, const char *path)
{
    KilnText out = { 0 };

    for (const char *at = text; *at != '\0';) {
        const char *key = at + 2;
        const size_t n = at[0] == '$' && at[1] == '{' ? strcspn(key, "}:$ [") : 0;
        const char *name = NULL, *moved = NULL;

        if (n > 0 && key[n] == '}')
            name = kiln_arena_strndup(rewrite->arena, key, n);
        if (name != NULL && name[0] == '.')
            name = absolute(rewrite->arena, name, path);
        if (name != NULL)
            moved = kiln_import_key(rewrite, name);
        /* A relative key stays one where all around it stays. */
        if (moved == NULL || (key[0] == '.' && strcmp(moved, name) == 0)) {
            kiln_text_char(&out, *at++);
        } else {
            kiln_text_printf(&out, "${%s", moved);
            at = key + n;
        }
    }
    return kiln_text_to_arena(&out, rewrite->arena);
}
