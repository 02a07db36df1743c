/* Names of the kinds of components, and choices that options of several kinds share. */
#include "kiln/component.h"

const char *kiln_kind_name(KilnKind kind)
{
    static const char *const names[] = {
#define ROW(name, text) [KILN_KIND_##name] = text,
        KILN_KIND_TABLE(ROW)
#undef ROW
    };

    return (size_t)kind < KILN_COUNT(names) ? names[kind] : "unknown kind";
}

const KilnChoice kiln_modes[] = {
    [KILN_MODE_AUTO] = { "auto", KILN_MODE_AUTO },
    [KILN_MODE_MIN] = { "min", KILN_MODE_MIN },
    [KILN_MODE_MAX] = { "max", KILN_MODE_MAX },
    { NULL, 0 },
};
