/* Names of the kinds of components. */
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
