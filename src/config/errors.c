/* A collection of errors: found in one pass, told together. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/node.h"

enum { MOST_ERRORS = 100 }; /* more than anybody reads */

typedef struct Message {
    char *text;
    bool warning;
} Message;

struct KilnErrors {
    Message *messages;
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
        free(errors->messages[i].text);
    free(errors->messages);
    free(errors);
}

size_t kiln_errors_count(const KilnErrors *errors)
{
    return errors->count;
}

const char *kiln_errors_text(const KilnErrors *errors, size_t i)
{
    return i < errors->count ? errors->messages[i].text : "";
}

bool kiln_errors_is_warning(const KilnErrors *errors, size_t i)
{
    return i < errors->count && errors->messages[i].warning;
}

size_t kiln_errors_failures(const KilnErrors *errors)
{
    size_t n = 0;

    for (size_t i = 0; i < errors->count; i++)
        n += !errors->messages[i].warning;
    return n;
}

static void add(KilnErrors *errors, const char *message, bool warning)
{
    char *text;

    if (errors == NULL || errors->count == MOST_ERRORS)
        return;
    /* The same cause is often met twice: a bottom layer is laid more than once. */
    for (size_t i = 0; i < errors->count; i++)
        if (strcmp(errors->messages[i].text, message) == 0)
            return;
    if (errors->count == errors->capacity) {
        size_t capacity = errors->capacity > 0 ? errors->capacity * 2 : 8;
        Message *messages = realloc(errors->messages, capacity * sizeof(*messages));

        if (messages == NULL)
            return;
        errors->messages = messages;
        errors->capacity = capacity;
    }
    text = kiln_strdup(message);
    if (text != NULL)
        errors->messages[errors->count++] = (Message) { .text = text, .warning = warning };
}

KilnStatus kiln_errors_add(KilnErrors *errors, const KilnError *err)
{
    add(errors, err->text, false);
    return err->status;
}

void kiln_errors_warn(KilnErrors *errors, const KilnError *err)
{
    add(errors, err->text, true);
}

void kiln_errors_append(KilnErrors *errors, const KilnErrors *from)
{
    for (size_t i = 0; from != NULL && i < from->count; i++)
        add(errors, from->messages[i].text, from->messages[i].warning);
}
