/* Interpolation: ${a.b}, ${.x}, ${oc.env:X}, and text with them. */
#ifndef KILN_CONFIG_INTERPOLATE_INTERPOLATE_H
#define KILN_CONFIG_INTERPOLATE_INTERPOLATE_H

#include "config/override/value.h"

#define KILN_INTERPOLATION_DEPTH 64
/* Interpolations resolved for one value: more is an endless expansion. */
#define KILN_INTERPOLATION_STEPS 20000
#define KILN_INTERPOLATION_BYTES (1u << 20)

/* A resolution at work. */
typedef struct KilnResolution {
    const KilnConfig *config;
    const KilnConfigNode *root;      /* where absolute paths start */
    const struct KilnActive *active; /* the nodes that are being resolved */
    int depth;                       /* nodes within nodes */
    int nesting; /* interpolations within interpolations, through whatever resolvers read */
    size_t steps;
    KilnError *err;
} KilnResolution;

/* Resolve `node` if it is an interpolation (*ret is then a node of the tree or a
 * new one), else *ret is node. */
KILN_NODISCARD KilnStatus kiln_resolve_node(KilnResolution *resolution, const KilnConfigNode *node,
                                            const KilnConfigNode **ret);
/* Append the text of a resolved node as Python's str() has it; what is in lists and
 * mappings is resolved too. */
KILN_NODISCARD KilnStatus kiln_resolve_text(KilnResolution *resolution, const KilnConfigNode *node,
                                            KilnText *text);
/* The resolved node at `path` from `base`, through interpolations; dots in front
 * of the path go up from `base` (one dot: base itself). *ret is NULL when nothing
 * is there. */
KILN_NODISCARD KilnStatus kiln_resolve_path(KilnResolution *resolution, const KilnConfigNode *base,
                                            const char *path, const KilnConfigNode **ret);
/* Value of the interpolation ${...} at value->at, written in `node`. */
KILN_NODISCARD KilnStatus kiln_resolve_interpolation(KilnResolution *resolution,
                                                     const KilnConfigNode *node,
                                                     KilnValueText *value,
                                                     const KilnConfigNode **ret);
/* What a resolver yields for its arguments (a list of resolved nodes). */
KILN_NODISCARD KilnStatus kiln_resolver_call(KilnResolution *resolution, const KilnConfigNode *node,
                                             const char *name, const KilnConfigNode *arguments,
                                             const KilnConfigNode **ret);
/* Value of the expression of ${eval:...}, which starts behind the colon at value->at;
 * that moves behind the closing brace. `start` is where the ${ stands. */
KILN_NODISCARD KilnStatus kiln_eval_call(KilnResolution *resolution, const KilnConfigNode *node,
                                         KilnValueText *value, size_t start,
                                         const KilnConfigNode **ret);
/* "there is no key 'x'; did you mean 'y'?" for a path that leads nowhere. */
KilnStatus kiln_resolve_missing(const KilnConfigNode *base, const char *path, KilnError *err);

/* Where an interpolation that is all of a node points (one step: on the way to
 * ${a.b.c}, a.b if that is an interpolation itself); NULL when it is none, or leads
 * nowhere. */
const KilnConfigNode *kiln_interpolation_target(const KilnConfig *config,
                                                const KilnConfigNode *node);

#endif
