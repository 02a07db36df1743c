/* The histories of values: what --explain prints, and what origins.yaml records of a run.
 * They come from a config, or from the origins.yaml of a past run. */
#ifndef KILN_CONFIG_PROVENANCE_VALUE_HISTORY_H
#define KILN_CONFIG_PROVENANCE_VALUE_HISTORY_H

#include "base/text.h"
#include "config/tree/node.h"

/* A key was set, or removed. */
typedef struct KilnValueChange {
    const KilnConfigNode *value; /* as written; NULL: the key was removed */
    const char *origin;          /* "conf/x.yaml:3:5", "argument 2 `lr=0.1`" */
    const char *why;             /* "_target_ changed from sgd to adam"; NULL: removed on request */
    const char *tag;             /* "!append" and the like; NULL: none */
    const char **references;     /* the keys that its ${...} name, NULL-terminated; NULL: none */
} KilnValueChange;

typedef struct KilnValueHistory {
    const char *key;
    bool is_set;              /* false: the key was removed */
    KilnValueChange *changes; /* newest first */
    size_t count, capacity;
} KilnValueHistory;

typedef struct KilnValueHistories {
    const KilnConfig *config; /* NULL: a past run */
    KilnArena *arena;         /* holds everything in here */
    KilnValueHistory *list;   /* in the order of the tree; removed keys last */
    size_t count, capacity;
} KilnValueHistories;

/* The histories of a config: of every scalar and list, of mappings that replaced something, and
 * of removed keys. A list's items have histories of their own when their origins differ. */
KILN_NODISCARD KilnStatus kiln_histories_collect(const KilnConfig *config, KilnValueHistories *ret,
                                                 KilnError *err);
/* A new history without changes; NULL when memory ran out. */
KilnValueHistory *kiln_histories_add(KilnValueHistories *histories, const char *key);
/* A new change at the end of a history, zeroed; NULL when memory ran out, or `history` is NULL. */
KilnValueChange *kiln_history_add_change(KilnValueHistories *histories, KilnValueHistory *history);
/* The history of `key`; NULL: it has none. */
KilnValueHistory *kiln_histories_find(const KilnValueHistories *histories, const char *key);

/* Print the histories of `key` and of the keys in it ("": of all). `values` is the config's root,
 * or the recorded tree of a past run. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_histories_explain(const KilnValueHistories *histories,
                                                 const KilnConfigNode *values, const char *key,
                                                 char **ret, KilnError *err);

#endif
