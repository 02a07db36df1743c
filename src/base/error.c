/* Status names and the filling of errors. */
#include "kiln/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *kiln_status_name(KilnStatus status)
{
    static const struct {
        KilnStatus status;
        const char *name;
    } names[] = {
#define ROW(name, value, text) { KILN_##name, text },
        KILN_STATUS_TABLE(ROW)
#undef ROW
    };

    for (size_t i = 0; i < KILN_COUNT(names); i++)
        if (names[i].status == status)
            return names[i].name;
    return "unknown status";
}

KilnStatus kiln_error_vset(KilnError *err, KilnStatus status, const char *format, va_list args)
{
    if (err != NULL) {
        err->status = status;
        err->origin = (KilnOrigin) { 0 };
        vsnprintf(err->text, sizeof(err->text), format, args);
    }
    return status;
}

KilnStatus kiln_error_set(KilnError *err, KilnStatus status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    kiln_error_vset(err, status, format, args);
    va_end(args);
    return status;
}

KilnStatus kiln_error_prefix(KilnError *err, const char *format, ...)
{
    char text[KILN_ERROR_TEXT];
    va_list args;

    if (err == NULL)
        return KILN_E_INTERNAL;
    va_start(args, format);
    int used = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (used > 0 && (size_t)used < sizeof(text)) {
        size_t room = sizeof(text) - (size_t)used - 1, length = strlen(err->text);

        if (length > room)
            length = room;
        memcpy(text + used, err->text, length);
        text[(size_t)used + length] = '\0';
        memcpy(err->text, text, (size_t)used + length + 1);
    }
    return err->status;
}

KilnStatus kiln_error_at(KilnError *err, const KilnOrigin *origin)
{
    if (origin == NULL || origin->source == NULL)
        return err != NULL ? err->status : KILN_E_INTERNAL;
    if (err != NULL && err->origin.source == NULL)
        err->origin = *origin;
    if (origin->line > 0)
        return kiln_error_prefix(err, "%s:%d:%d: ", origin->source, origin->line, origin->column);
    return kiln_error_prefix(err, "%s: ", origin->source);
}

KilnStatus kiln_error_nomem(KilnError *err, size_t bytes)
{
    return kiln_error_set(err, KILN_E_NOMEM, "out of memory: %zu bytes could not be had", bytes);
}

KilnStatus kiln_error_errno(KilnError *err, const char *path)
{
    int code = errno;
    char text[128] = "unknown error";

    if (code == ENOMEM)
        return kiln_error_set(err, KILN_E_NOMEM, "%s: out of memory", path);
    if (code == ELOOP)
        return kiln_error_set(err, KILN_E_IO,
                              "%s: a symbolic link, which is not followed here: put a file in its "
                              "place",
                              path);
    if (code == ENXIO)
        return kiln_error_set(err, KILN_E_IO, "%s: not a regular file", path);
    (void)strerror_r(code, text, sizeof(text));
    return kiln_error_set(err, KILN_E_IO, "%s: %s", path, text);
}
