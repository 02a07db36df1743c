/* What each group's config files configure, and their JSON Schema. */
#ifndef KILN_REGISTRY_CONFIG_SCHEMA_H
#define KILN_REGISTRY_CONFIG_SCHEMA_H

#include "registry/registry.h"

/* What the files of a group configure. */
typedef enum KilnGroupForm {
    KILN_GROUP_ROOT,      /* keys of the root: "", and groups of `@package _global_` files */
    KILN_GROUP_COMPONENT, /* one component of a kind */
    KILN_GROUP_MAP,       /* several named components of a kind */
    KILN_GROUP_SECTION,   /* a section with an options table */
    KILN_GROUP_FREE       /* anything */
} KilnGroupForm;

typedef struct KilnGroupType {
    KilnGroupForm form;
    KilnKind kind;              /* COMPONENT, MAP */
    const KilnSection *section; /* ROOT (NULL when the request has none), SECTION */
} KilnGroupType;

/* Find the type of a group ("": primary configs). KILN_E_KEY with the nearest name when there is no
 * such group. */
KILN_NODISCARD KilnStatus kiln_group_type(const KilnComposeRequest *request, const char *group,
                                          KilnGroupType *ret, KilnError *err);
/* The JSON Schema (draft-07) of those files, as text; owned by the caller (free). */
KILN_NODISCARD KilnStatus kiln_group_schema(const KilnComposeRequest *request, const char *group,
                                            char **ret, KilnError *err);

#endif
