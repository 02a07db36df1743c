/* Collects the errors of one pass and sorts them by origin. Printing is not done here. */
#include "config/provenance/error_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "config/composed.h"
#include "config/provenance/origin.h"

enum { MAX_ERRORS = 1000 }; /* more than anybody reads */

/* Messages are ordered by this, then by line and column. */
typedef struct Rank {
    enum { IN_FILE, IN_DEFAULTS, IN_ARGUMENT, NO_ORIGIN } kind;
    size_t number; /* of the file or argument */
} Rank;

typedef struct Message {
    const char *text;
    KilnOrigin origin;
    bool warning;
    Rank rank; /* set while sorting */
} Message;

struct KilnErrors {
    KilnArena arena; /* holds everything in here */
    Message *messages;
    size_t count, capacity;
    size_t left_out, left_out_failures;
    const char **files; /* sources in the order in which they were read */
    size_t n_files, files_capacity;
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
    kiln_arena_release(&errors->arena);
    free(errors);
}

size_t kiln_errors_count(const KilnErrors *errors)
{
    return errors->count;
}

size_t kiln_errors_left_out(const KilnErrors *errors)
{
    return errors->left_out;
}

const char *kiln_errors_text(const KilnErrors *errors, size_t i)
{
    return i < errors->count ? errors->messages[i].text : "";
}

KilnOrigin kiln_errors_origin(const KilnErrors *errors, size_t i)
{
    return i < errors->count ? errors->messages[i].origin : (KilnOrigin) { 0 };
}

bool kiln_errors_is_warning(const KilnErrors *errors, size_t i)
{
    return i < errors->count && errors->messages[i].warning;
}

size_t kiln_errors_failures(const KilnErrors *errors)
{
    size_t n = errors->left_out_failures;

    for (size_t i = 0; i < errors->count; i++)
        n += !errors->messages[i].warning;
    return n;
}

/* ---- Adding ------------------------------------------------------------------------ */

static void add(KilnErrors *errors, const char *text, const KilnOrigin *origin, bool warning)
{
    Message message = { .origin = *origin, .warning = warning };

    if (errors == NULL)
        return;
    /* Causes are often found twice: the defaults layer is merged more than once. */
    for (size_t i = 0; i < errors->count; i++)
        if (strcmp(errors->messages[i].text, text) == 0)
            return;
    if (errors->count == MAX_ERRORS) {
        errors->left_out++;
        errors->left_out_failures += !warning;
        return;
    }
    if (!KILN_ARENA_RESERVE(&errors->arena, errors->messages, errors->capacity,
                            errors->count + 1) ||
        (message.text = kiln_arena_strdup(&errors->arena, text)) == NULL)
        return;
    if (origin->source != NULL)
        message.origin.source = kiln_arena_strdup(&errors->arena, origin->source);
    errors->messages[errors->count++] = message;
}

KilnStatus kiln_errors_add(KilnErrors *errors, const KilnError *err)
{
    add(errors, err->text, &err->origin, false);
    return err->status;
}

KilnStatus kiln_errors_report(KilnErrors *errors, const KilnOrigin *origin, KilnStatus status,
                              const char *format, ...)
{
    KilnError err = { 0 };
    va_list args;

    va_start(args, format);
    kiln_error_vset(&err, status, format, args);
    va_end(args);
    kiln_error_at(&err, origin);
    return kiln_errors_add(errors, &err);
}

void kiln_errors_warn(KilnErrors *errors, const KilnError *err)
{
    add(errors, err->text, &err->origin, true);
}

void kiln_config_warnings(const KilnConfig *config, KilnErrors *errors)
{
    for (KilnWarning *warning = *config->warnings; warning != NULL; warning = warning->next) {
        KilnError err = { 0 };

        if (warning->reported)
            continue;
        warning->reported = true;
        kiln_error_set(&err, KILN_OK, "%s", warning->text);
        kiln_error_at(&err, &warning->origin);
        kiln_errors_warn(errors, &err);
    }
}

static void add_file(KilnErrors *errors, const char *source)
{
    for (size_t i = 0; i < errors->n_files; i++)
        if (strcmp(errors->files[i], source) == 0)
            return;
    /* Without memory the order is not the best. */
    if (!KILN_ARENA_RESERVE(&errors->arena, errors->files, errors->files_capacity,
                            errors->n_files + 1))
        return;
    errors->files[errors->n_files] = kiln_arena_strdup(&errors->arena, source);
    if (errors->files[errors->n_files] != NULL)
        errors->n_files++;
}

void kiln_errors_append(KilnErrors *errors, const KilnErrors *from)
{
    if (errors == NULL || from == NULL)
        return;
    for (size_t i = 0; i < from->n_files; i++)
        add_file(errors, from->files[i]);
    for (size_t i = 0; i < from->count; i++)
        add(errors, from->messages[i].text, &from->messages[i].origin, from->messages[i].warning);
    errors->left_out += from->left_out;
    errors->left_out_failures += from->left_out_failures;
}

/* ---- Order -------------------------------------------------------------------------- */

static Rank rank_of(const KilnErrors *errors, const Message *message)
{
    const char *source = message->origin.source;
    size_t n = 0;

    if (source == NULL)
        return (Rank) { NO_ORIGIN, 0 };
    if (kiln_origin_argument(source, &n) != NULL)
        return (Rank) { IN_ARGUMENT, n };
    while (n < errors->n_files && strcmp(errors->files[n], source) != 0)
        n++;
    return (Rank) { n < errors->n_files ? IN_FILE : IN_DEFAULTS, n };
}

static bool is_before(const Message *a, const Message *b)
{
    if (a->rank.kind != b->rank.kind)
        return a->rank.kind < b->rank.kind;
    if (a->rank.number != b->rank.number)
        return a->rank.number < b->rank.number;
    if (a->origin.line != b->origin.line)
        return a->origin.line < b->origin.line;
    return a->origin.column < b->origin.column;
}

/* The list of files grows at its front: the last one was read first. */
static void remember_files(KilnErrors *errors, const KilnConfigFile *file)
{
    if (file == NULL)
        return;
    remember_files(errors, file->next);
    if (file->source != NULL)
        add_file(errors, file->source);
}

void kiln_errors_sort(KilnErrors *errors, const KilnConfig *config)
{
    if (errors == NULL || errors->count == 0)
        return;
    if (config != NULL)
        remember_files(errors, config->search.files);
    for (size_t i = 0; i < errors->count; i++) {
        Message *message = &errors->messages[i];

        if (message->origin.line > 0 && kiln_origin_argument(message->origin.source, NULL) == NULL)
            add_file(errors, message->origin.source); /* one that no composition read */
        message->rank = rank_of(errors, message);
    }
    for (size_t i = 1; i < errors->count; i++) {
        Message now = errors->messages[i];
        size_t j = i;

        for (; j > 0 && is_before(&now, &errors->messages[j - 1]); j--)
            errors->messages[j] = errors->messages[j - 1];
        errors->messages[j] = now;
    }
}
