/* The contents of a composed config. */
#ifndef KILN_CONFIG_COMPOSED_H
#define KILN_CONFIG_COMPOSED_H

#include <time.h>

#include "config/tree/node.h"
#include "config/defaults/search_path.h"

/* A key that an override, a file or a change of component removed. */
typedef struct KilnRemoved {
    const char *path;
    KilnOrigin origin;
    const char *why;             /* "_target_ changed from sgd to adam"; NULL: removed on request */
    const KilnConfigNode *value; /* its last value, with history; NULL: unknown */
} KilnRemoved;

/* A warning from resolving a value. */
typedef struct KilnWarning {
    const char *text;
    KilnOrigin origin;
    bool reported;
    struct KilnWarning *next;
} KilnWarning;

/* An environment variable that a value used. */
typedef struct KilnVariable {
    const char *name, *value; /* NULL: it was not set */
    struct KilnVariable *next;
} KilnVariable;

/* Prints lines of components to the screen and the log of their run; details to the log, and to a
 * verbose screen. Any thread may call it. */
typedef struct KilnPrinter {
    void (*print)(void *ctx, bool detail, const char *line);
    void *ctx;
} KilnPrinter;

struct KilnConfig {
    KilnArena storage;
    KilnArena *arena; /* == &storage: readers of a const config may allocate */
    KilnConfigNode *root;
    const KilnSection *sections; /* borrowed */
    KilnSearch search;
    const char *config_name;
    struct KilnOverride *overrides; /* those that could be read */
    size_t n_overrides;
    struct KilnDefaultsList *defaults; /* the files that were merged, and their selections */
    KilnRemoved *removed;
    size_t n_removed, removed_capacity;
    bool foreign;                   /* made for Hydra: files name the node `kiln` `hydra` */
    bool partial;                   /* see kiln_config_compose_sweep */
    KilnWarning **warnings;         /* a list in the arena: readers of a const config may add */
    const char *const *environment; /* of the request; borrowed */
    KilnVariable **variables;       /* each once; a list like `warnings` */
    struct tm started;              /* local time, for ${now:...} */
    KilnPrinter printer;            /* for components that are built from it; zeroed: none */
};

/* Record a removed key, or that the arena has no memory. */
void kiln_removal_add(KilnConfig *config, const KilnRemoved *removal);

/* The newest removal of the key at `path`; NULL: none. */
const KilnRemoved *kiln_removal_find(const KilnConfig *config, const char *path);

/* "hydra" as the first name of a path means "kiln": is `name` (`n` bytes) that? */
bool kiln_is_foreign_node(const char *name, size_t n);
/* A group or path with "kiln" for its first part "hydra"; in the arena, or `path` itself, which may
 * be NULL. NULL when memory is out. */
const char *kiln_own_path(KilnArena *arena, const char *path);

#endif
