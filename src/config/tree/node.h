/* The composed tree. Nodes have an origin and a history: an overridden value stays in the history
 * of the new one. They live in the config's arena. */
#ifndef KILN_CONFIG_TREE_NODE_H
#define KILN_CONFIG_TREE_NODE_H

#include "base/arena.h"
#include "kiln/embed/config.h"

typedef enum KilnNodeKind { KILN_NODE_SCALAR, KILN_NODE_MAP, KILN_NODE_LIST } KilnNodeKind;

/* The type of a scalar, as OmegaConf reads YAML 1.1. */
typedef enum KilnScalar {
    KILN_SCALAR_STR,
    KILN_SCALAR_NULL,
    KILN_SCALAR_BOOL,
    KILN_SCALAR_INT,
    KILN_SCALAR_FLOAT,
    KILN_SCALAR_MISSING,      /* ??? */
    KILN_SCALAR_INTERPOLATION /* text with ${...}, not resolved */
} KilnScalar;

typedef struct KilnConfigNode KilnConfigNode;

/* One child of a mapping (key) or a list (key NULL). */
typedef struct KilnEntry {
    const char *key;
    bool key_typed; /* the key is not text in YAML: 0, true, 1.5 (canonical spelling) */
    KilnOrigin key_origin;
    KilnConfigNode *value;
} KilnEntry;

/* What a value does to the value that it is merged with: given by its tag in a file, or by the
 * operator of an argument. A merged node still has it. */
typedef enum KilnEdit {
    KILN_EDIT_NONE,
    KILN_EDIT_APPEND,  /* append the items to the list */
    KILN_EDIT_REMOVE,  /* remove the items from the list */
    KILN_EDIT_REPLACE, /* replace, do not merge */
    KILN_EDIT_DELETE   /* delete the key */
} KilnEdit;

/* Which layer a node came from. */
typedef enum KilnLayer {
    KILN_LAYER_DEFAULT, /* a component's options table */
    KILN_LAYER_FILE,
    KILN_LAYER_ARGUMENT
} KilnLayer;

struct KilnConfigNode {
    KilnNodeKind kind;
    KilnScalar scalar;
    bool quoted;
    char quote;   /* of an argument's quoted text, ' or "; '\0' otherwise */
    bool aliased; /* an alias in its file repeats it */
    bool grown;   /* a list that kiln_list_append made, and may extend in place */
    bool shared;  /* its entries and items also belong to its history: see kiln_list_freeze */
    KilnEdit mark;
    KilnLayer layer;
    uint32_t at; /* index in its parent's entries, when it was added */
    KilnOrigin origin;
    const char *text;   /* scalar, as written without quotes; NUL-terminated */
    KilnEntry *entries; /* map, list */
    size_t count, capacity;
    KilnConfigNode *parent;
    KilnConfigNode *replaced; /* history: the value that this one overrode; NULL: none */
};

/* Is it a scalar of that type? NULL is none. */
bool kiln_node_is_scalar(const KilnConfigNode *node, KilnScalar type);
/* The child of a mapping; NULL when there is none or `map` is not a mapping. */
KilnConfigNode *kiln_node_get(const KilnConfigNode *map, const char *key);
/* The text of the scalar at the key; NULL when there is none. */
const char *kiln_node_text(const KilnConfigNode *map, const char *key);
/* The node at "a.b[0].c" or "a.b.0.c" from `root`, through maps and lists as written (no
 * interpolation); NULL when there is none. */
KilnConfigNode *kiln_node_find(const KilnConfigNode *root, const char *path);
/* Resolve a node as written: follow ${...} that stands for a whole node; a scalar with ${...} in
 * its text becomes a new node in the config's arena with the origin of the text. On failure, err's
 * message has the chain of interpolations. */
KILN_NODISCARD KilnStatus kiln_config_resolve(const KilnConfig *config, const KilnConfigNode *node,
                                              const KilnConfigNode **ret, KilnError *err);
/* The root mapping of a config's tree, and its arena. */
KilnConfigNode *kiln_config_root(const KilnConfig *config);
KilnArena *kiln_config_arena(const KilnConfig *config);
/* "optimizer.betas[0]" of a node, in the config's arena. */
const char *kiln_node_path(const KilnConfig *config, const KilnConfigNode *node);
/* Parse YAML text (an option's default); every node gets the origin `source`. */
KILN_NODISCARD KilnStatus kiln_node_parse(KilnArena *arena, const char *yaml, const char *source,
                                          KilnConfigNode **ret, KilnError *err);
#endif
