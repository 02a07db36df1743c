/* Names with numbers (kiln/tools/name_list.h). */
#include "kiln/tools/name_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"

static int compare(KilnString name, const char *other)
{
    const int order = strncmp(name.data, other, name.length);

    return order != 0 ? order : other[name.length] != '\0' ? -1 : 0;
}

/* The place of a name in a sorted list, or where it would be. */
static size_t search(const KilnNameList *list, KilnString name, bool *ret_found)
{
    size_t low = 0, high = list->n;

    *ret_found = false;
    while (low < high && !*ret_found) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(name, list->names[middle]);

        *ret_found = order == 0;
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return *ret_found ? high : low;
}

int64_t kiln_name_list_find(const KilnNameList *list, KilnString name)
{
    if (list->sorted) {
        bool found;
        const size_t at = search(list, name, &found);

        return found ? (int64_t)at : -1;
    }
    for (size_t i = 0; i < list->n; i++)
        if (compare(name, list->names[i]) == 0)
            return (int64_t)i;
    return -1;
}

static KilnStatus insert(KilnNameList *list, size_t at, KilnString name, KilnError *err)
{
    char *copy = strndup(name.data, name.length);

    if (copy == NULL || !KILN_RESERVE(list->names, list->capacity, list->n + 1)) {
        free(copy);
        return kiln_error_nomem(err, name.length);
    }
    memmove(list->names + at + 1, list->names + at, (list->n - at) * sizeof(*list->names));
    list->names[at] = copy;
    list->n++;
    return KILN_OK;
}

KilnStatus kiln_name_list_add(KilnNameList *list, KilnString name, KilnError *err)
{
    bool found = false;
    size_t at = list->n;

    if (list->sorted)
        at = search(list, name, &found);
    else
        found = kiln_name_list_find(list, name) >= 0;
    return found ? KILN_OK : insert(list, at, name, err);
}

KilnStatus kiln_name_list_read(KilnNameList *list, const char *folder, const char *file,
                               KilnError *err)
{
    char path[4096], *line = NULL;
    size_t room = 0;
    ssize_t n;
    KilnStatus status = KILN_OK;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    FILE *stream = kiln_file_open(path, "r");
    if (stream == NULL)
        return kiln_error_errno(err, path);
    while (status >= 0 && (n = getline(&line, &room, stream)) > 0) {
        const KilnString name = { line, (size_t)n - (line[n - 1] == '\n') };

        status = insert(list, list->n, name, err);
    }
    free(line);
    fclose(stream);
    return status;
}

KilnStatus kiln_name_list_write(const KilnNameList *list, const char *folder, const char *file,
                                KilnError *err)
{
    char path[4096];
    bool good = true;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    FILE *stream = kiln_file_open(path, "w");
    for (size_t i = 0; i < list->n && stream != NULL; i++)
        good = fprintf(stream, "%s\n", list->names[i]) > 0 && good;
    good = stream != NULL && fclose(stream) == 0 && good;
    return good ? KILN_OK : kiln_error_errno(err, path);
}

void kiln_name_list_release(KilnNameList *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
    *list = (KilnNameList) { 0 };
}
