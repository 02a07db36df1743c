/* Interpolation: ${a.b}, ${.x}, ${oc.env:X}, and text with them. */
#ifndef KILN_CONFIG_INTERPOLATE_INTERPOLATE_H
#define KILN_CONFIG_INTERPOLATE_INTERPOLATE_H

#include "config/override/value.h"

#define KILN_INTERPOLATION_DEPTH 64
/* Interpolations resolved for one value; more is an endless expansion. */
#define KILN_INTERPOLATION_STEPS 20000
#define KILN_INTERPOLATION_BYTES (1u << 20)

/* State of resolving a value. */
typedef struct KilnResolution {
    const KilnConfig *config;
    const KilnConfigNode *root;      /* where absolute paths start */
    const struct KilnActive *active; /* the nodes that are being resolved */
    int depth;                       /* nodes within nodes */
    int nesting;                     /* interpolations within interpolations and resolvers */
    size_t steps;
    bool used_time; /* ${now:...} */
    KilnError *err;
} KilnResolution;

/* Resolve `node` if it is an interpolation: *ret is a node of the tree or a new one. Else *ret is
 * `node`. */
KILN_NODISCARD KilnStatus kiln_resolve_node(KilnResolution *resolution, const KilnConfigNode *node,
                                            const KilnConfigNode **ret);
/* Append a resolved node as Python's str() prints it; values in lists and mappings are resolved
 * first. */
KILN_NODISCARD KilnStatus kiln_resolve_text(KilnResolution *resolution, const KilnConfigNode *node,
                                            KilnText *text);
/* The resolved node at `path`, through interpolations. Dots before the path start at `base` (one
 * dot) and above, else the path starts at the root. *ret is NULL when there is none. */
KILN_NODISCARD KilnStatus kiln_resolve_path(KilnResolution *resolution, const KilnConfigNode *base,
                                            const char *path, const KilnConfigNode **ret);
/* The value of the interpolation ${...} at parser->at, which moves past it. */
KILN_NODISCARD KilnStatus kiln_resolve_interpolation(KilnValueParser *parser,
                                                     const KilnConfigNode **ret);
/* Does the value at `key` depend on ${now:...}, also through other values? */
bool kiln_config_uses_time(const KilnConfig *config, const char *key);
/* Call a resolver (resolvers.c) with a list of resolved arguments. */
KILN_NODISCARD KilnStatus kiln_resolver_call(const KilnValueParser *parser, const char *name,
                                             const KilnConfigNode *arguments,
                                             const KilnConfigNode **ret);
/* The value of ${eval:...} (expression.c). The ${ is at `start`, the colon at parser->at,
 * which moves past the closing brace. */
KILN_NODISCARD KilnStatus kiln_eval_call(KilnValueParser *parser, size_t start,
                                         const KilnConfigNode **ret);
/* Set "there is no key 'x'; did you mean 'y'?" for a path below `base`. */
KilnStatus kiln_resolve_missing(const KilnConfigNode *base, const char *path, KilnError *err);

/* The node that an interpolation which is the whole text of a node refers to: the first step
 * (for ${a.b.c}, a.b if that is an interpolation itself). NULL when there is none. */
const KilnConfigNode *kiln_interpolation_target(const KilnConfig *config,
                                                const KilnConfigNode *node);
/* The same for the ${path} at `text`, which is in the text of `node`; NULL for any other ${...}. */
const KilnConfigNode *kiln_interpolation_at(const KilnConfig *config, const KilnConfigNode *node,
                                            const char *text);

#endif
