/* Building JSON over jansson. */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"

enum { LARGEST = 1 << 28 };

/* jansson frees the value in any case, and takes NULL for it or for where it goes as a failure. */
static void note(json_t **whole, int failed)
{
    if (failed == 0)
        return;
    json_decref(*whole);
    *whole = NULL;
}

void kiln_json_add(json_t **list, json_t *value)
{
    note(list, json_array_append_new(*list, value));
}

void kiln_json_put(json_t **object, const char *key, json_t *value)
{
    note(object, json_object_set_new(*object, key, value));
}

json_t *kiln_json_text(const char *text)
{
    json_t *json = json_string(text);
    char *copy = json == NULL ? kiln_strdup(text) : NULL;

    for (char *c = copy; c != NULL && *c != '\0'; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    json = json == NULL && copy != NULL ? json_string(copy) : json;
    free(copy);
    return json;
}

static int append(const char *part, size_t size, void *text)
{
    kiln_text_append_n(text, part, size);
    return ((KilnText *)text)->failed ? -1 : 0;
}

char *kiln_json_dump(const json_t *json, size_t flags)
{
    KilnText text = { 0 };

    if (json == NULL || json_dump_callback(json, append, &text, flags) != 0)
        text.failed = true;
    return kiln_text_take(&text);
}

KilnStatus kiln_json_read(const char *path, json_t **ret, KilnError *err)
{
    char *text = NULL;
    size_t size = 0;
    json_error_t why;
    KilnStatus status = kiln_file_read(path, LARGEST, &text, &size, err);

    if (status < 0)
        return status;
    json_t *json = json_loadb(text, size, 0, &why);
    free(text);
    why.text[strcspn(why.text, "\n")] = '\0';
    if (json == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s:%d: can't be read: %s", path, why.line,
                              why.text);
    *ret = json;
    return KILN_OK;
}
