/* The composed tree: nodes with origin and history. Nodes live in the config's
 * arena; nothing in the tree is overwritten, a value that replaces another
 * keeps the other in its history. */
#ifndef KILN_CONFIG_TREE_NODE_H
#define KILN_CONFIG_TREE_NODE_H

#include "base/arena.h"
#include "kiln/config.h"

typedef enum KilnNodeKind { KILN_NODE_SCALAR, KILN_NODE_MAP, KILN_NODE_LIST } KilnNodeKind;

/* What a scalar is, by OmegaConf's reading of YAML 1.1. */
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
    bool key_typed; /* the key is no text in YAML: 0, true, 1.5 (canonical spelling) */
    KilnOrigin key_origin;
    KilnConfigNode *value;
} KilnEntry;

/* What a value does to the one that it meets when trees are merged, as its tag in a
 * file (or the operator of an argument) says. A node that was merged keeps it. */
typedef enum KilnEdit {
    KILN_EDIT_NONE,
    KILN_EDIT_APPEND,  /* its items go behind those that are there */
    KILN_EDIT_REMOVE,  /* its items are taken out of the list */
    KILN_EDIT_REPLACE, /* it takes the place, nothing is merged */
    KILN_EDIT_DELETE   /* the key goes */
} KilnEdit;

/* How a node came to stand where it stands; explain prints these. */
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
    bool grown;   /* a list that kiln_list_append made, and may make longer */
    bool shared;  /* its entries and items are those of its history too: see kiln_list_freeze */
    KilnEdit mark;
    KilnLayer layer;
    uint32_t at; /* in its parent's entries, when it came there */
    KilnOrigin origin;
    const char *text;   /* scalar, as written without quotes; NUL-terminated */
    KilnEntry *entries; /* map, list */
    size_t count, capacity;
    KilnConfigNode *parent;
    KilnConfigNode *replaced; /* history: the value that this one replaced; NULL: none */
};

/* A resolved scalar: no interpolation left. Text of strings is as it came. */

/* The child of a mapping; NULL when there is none or `map` is no mapping. */
KilnConfigNode *kiln_node_get(const KilnConfigNode *map, const char *key);
/* The node at "a.b[0].c" or "a.b.0.c" below `root`, through maps and lists as
 * written (no interpolation); NULL when there is none. */
KilnConfigNode *kiln_node_find(const KilnConfigNode *root, const char *path);
/* The same, and follow interpolations that stand for whole nodes (`model:
 * ${other}`) on the way and at the end; a scalar with ${...} in its text comes
 * back as a new resolved node in the config's arena that keeps the
 * origin of the text; its chain of interpolations is in err's message on
 * failure. *ret is NULL with KILN_OK when nothing is there. */
KILN_NODISCARD KilnStatus kiln_config_resolve(const KilnConfig *config, const KilnConfigNode *node,
                                              const KilnConfigNode **ret, KilnError *err);
/* The root of a config's tree (mapping), and its arena. */
KilnConfigNode *kiln_config_root(const KilnConfig *config);
KilnArena *kiln_config_arena(const KilnConfig *config);
/* "optimizer.betas[0]" of a node, in the config's arena. */
const char *kiln_node_path(const KilnConfig *config, const KilnConfigNode *node);
/* Parse YAML text (an option's default) to a node with that origin source. */
KILN_NODISCARD KilnStatus kiln_node_parse(KilnArena *arena, const char *yaml, const char *source,
                                          KilnConfigNode **ret, KilnError *err);
/* Append "from conf/x.yaml:3:5" / "from argument 2 `lr=fast`, through ${lr} in
 * conf/optimizer/sgd.yaml:3:5" for messages about `node` (as written) whose
 * resolved value is `value`. */
void kiln_node_where(const KilnConfig *config, const KilnConfigNode *node,
                     const KilnConfigNode *value, char *buf, size_t size);

/* The message in err is about `node` (as written; NULL: nothing that has a place), whose
 * resolved value is `value` (NULL: none): set err->origin to the place of the value, and append
 * "through ${lr} in conf/x.yaml:3:5". A value that nobody wrote, a default, is told at the nearest
 * place around it that somebody did. Returns err->status. */
KilnStatus kiln_error_about(const KilnConfig *config, const KilnConfigNode *node,
                            const KilnConfigNode *value, KilnError *err);
/* Put "PLACE: PATH: " in front of a message that has an origin in err->origin only; one
 * with its place in front already stays as it is. Returns err->status. */
KilnStatus kiln_error_placed(KilnError *err, const char *path);

/* Hand over what resolving values warned of since the last call (oc.deprecated). */
void kiln_config_warnings(const KilnConfig *config, KilnErrors *errors);
/* How many of them are errors, not warnings. */
size_t kiln_errors_failures(const KilnErrors *errors);
/* Add all of `from`, which may be NULL. */
void kiln_errors_append(KilnErrors *errors, const KilnErrors *from);
/* Put the messages in order of their places, stable. Files come in the order in which
 * `config` read them, which is remembered; NULL: in the order remembered already. */
void kiln_errors_sort(KilnErrors *errors, const KilnConfig *config);
/* Add a message to a collection (kiln_errors_*), with a copy of its place. Returns
 * err->status. */
KilnStatus kiln_errors_add(KilnErrors *errors, const KilnError *err);
/* The same for what is accepted all the same. */
void kiln_errors_warn(KilnErrors *errors, const KilnError *err);

#endif
