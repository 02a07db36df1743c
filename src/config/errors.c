/* A collection of errors: found in one pass, told together. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/node.h"

enum { MOST_ERRORS = 100 }; /* more than anybody reads */

struct KilnErrors {
    char **texts;
    size_t count, capacity;
};

KilnStatus kiln_errors_new(KilnErrors **ret)
{
    KilnErrors *errors = calloc(1, sizeof(*errors));

    if (errors == NULL)
        return KILN_E_NOMEM;
    *ret = errors;
    return KILN_OK;
}

void kiln_errors_free(KilnErrors *errors)
{
    if (errors == NULL)
        return;
    for (size_t i = 0; i < errors->count; i++)
        free(errors->texts[i]);
    free(errors->texts);
    free(errors);
}

size_t kiln_errors_count(const KilnErrors *errors)
{
    return errors->count;
}

const char *kiln_errors_text(const KilnErrors *errors, size_t i)
{
    return i < errors->count ? errors->texts[i] : "";
}

KilnStatus kiln_errors_add(KilnErrors *errors, const KilnError *err)
{
    char *text;

    if (errors == NULL || errors->count == MOST_ERRORS)
        return err->status;
    /* The same cause is often met twice: a bottom layer is laid more than once. */
    for (size_t i = 0; i < errors->count; i++)
        if (strcmp(errors->texts[i], err->text) == 0)
            return err->status;
    if (errors->count == errors->capacity) {
        size_t capacity = errors->capacity > 0 ? errors->capacity * 2 : 8;
        char **texts = realloc(errors->texts, capacity * sizeof(*texts));

        if (texts == NULL)
            return err->status;
        errors->texts = texts;
        errors->capacity = capacity;
    }
    text = kiln_strdup(err->text);
    if (text != NULL)
        errors->texts[errors->count++] = text;
    return err->status;
}
