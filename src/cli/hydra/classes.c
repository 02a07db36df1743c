/* Looks up classes and options in the tables. */
#include "cli/hydra/classes.h"

#include <string.h>

#include "base/text.h"

static const KilnImportClass *const tables[] = { kiln_import_torch, kiln_import_lightning,
                                                 kiln_import_vision, kiln_import_models,
                                                 kiln_import_metrics };

const KilnImportClass *kiln_import_class_at(size_t i)
{
    for (size_t t = 0; t < KILN_COUNT(tables); t++)
        for (const KilnImportClass *type = tables[t]; type->name != NULL; type++)
            if (i-- == 0)
                return type;
    return NULL;
}

/* The library of a target: "lightning" for pytorch_lightning.callbacks.Timer, too. */
static const char *library_of(const char *target, size_t *ret_length)
{
    static const char old[] = "pytorch_lightning";

    *ret_length = strcspn(target, ".");
    if (*ret_length != strlen(old) || strncmp(target, old, *ret_length) != 0)
        return target;
    *ret_length = strlen("lightning");
    return "lightning";
}

const KilnImportClass *kiln_import_class_find(const char *target)
{
    size_t length;
    const char *library = library_of(target, &length), *dot = strrchr(target, '.');
    const KilnImportClass *type;

    for (size_t i = 0; dot != NULL && (type = kiln_import_class_at(i)) != NULL; i++)
        if (strcmp(type->name, dot + 1) == 0 && strlen(type->library) == length &&
            strncmp(type->library, library, length) == 0)
            return type;
    return NULL;
}

bool kiln_import_is_library(const char *target)
{
    size_t length;
    const char *library = library_of(target, &length);
    const KilnImportClass *type;

    for (size_t i = 0; (type = kiln_import_class_at(i)) != NULL; i++)
        if (strlen(type->library) == length && strncmp(type->library, library, length) == 0)
            return true;
    return false;
}

const KilnImportOption *kiln_import_option_find(const KilnImportClass *type, const char *name)
{
    for (const KilnImportOption *o = type->options; o != NULL && o->from != NULL; o++)
        if (strcmp(o->from, name) == 0)
            return o;
    return NULL;
}

bool kiln_import_choice(const char *pairs, const char *name, char *ret, size_t size)
{
    const size_t length = strlen(name);

    while (pairs != NULL && *pairs != '\0') {
        const size_t pair = strcspn(pairs, " ");

        if (pair > length && pairs[length] == '=' && strncmp(pairs, name, length) == 0) {
            snprintf(ret, size, "%.*s", (int)(pair - length - 1), pairs + length + 1);
            return true;
        }
        pairs += pair + (pairs[pair] == ' ');
    }
    return false;
}

bool kiln_import_lists(const char *words, const char *word)
{
    const size_t length = strlen(word);

    while (words != NULL) {
        const size_t n = strcspn(words, " ");

        if (n == length && strncmp(words, word, n) == 0)
            return true;
        words = words[n] == ' ' ? words + n + 1 : NULL;
    }
    return false;
}
