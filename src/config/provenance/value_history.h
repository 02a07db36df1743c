/* The histories of values: what --explain tells, and what origins.yaml keeps of a run.
 * They come from a config, or from the file that a run left. */
#ifndef KILN_CONFIG_PROVENANCE_VALUE_HISTORY_H
#define KILN_CONFIG_PROVENANCE_VALUE_HISTORY_H

#include "base/text.h"
#include "config/tree/node.h"

/* One thing that happened to a key: it was set, or taken away. */
typedef struct KilnValueChange {
    const KilnConfigNode *value; /* as it was written; NULL: the key was taken away */
    const char *place;           /* "conf/x.yaml:3:5", "argument 2 `lr=0.1`" */
    const char *why; /* it was taken away: "_target_ changed from sgd to adam"; NULL: asked for */
    const char *tag; /* "!append" and the like; NULL: none */
    const char **refers; /* the keys that its ${...} lead to, NULL-terminated; NULL: none */
} KilnValueChange;

typedef struct KilnValueHistory {
    const char *key;
    bool there;             /* it has a value: the first step's */
    KilnValueChange *steps; /* newest first */
    size_t count;
} KilnValueHistory;

typedef struct KilnValueHistories {
    KilnArena *arena;       /* of all that is in here */
    KilnValueHistory *list; /* in the order of the tree, keys that are gone last */
    size_t count, capacity;
    bool failed; /* memory ran out */
} KilnValueHistories;

/* The stories of a config: of every value, of mappings that replaced something, and of
 * keys that were taken away. A list is one value; items have stories of their own when
 * these tell more. */
KILN_NODISCARD KilnStatus kiln_histories_collect(const KilnConfig *config, KilnValueHistories *ret,
                                                 KilnError *err);
/* A new story, or a new step of the last one; zeroed; NULL when memory ran out. */
KilnValueHistory *kiln_histories_add(KilnValueHistories *histories, const char *key);
KilnValueChange *kiln_history_add_change(KilnValueHistories *histories, KilnValueHistory *history);

/* As YAML (origins.yaml), without the keys that `config` hides; and back. */
void kiln_histories_write(const KilnValueHistories *histories, const KilnConfig *config,
                          KilnText *text);
KILN_NODISCARD KilnStatus kiln_histories_read(KilnArena *arena, const char *path,
                                              KilnValueHistories *ret, KilnError *err);

/* Those of a run that goes on with the config that it left, which has its values alone: what the
 * run's origins.yaml at `path` tells, and in front of that what this command line changed. */
KILN_NODISCARD KilnStatus kiln_histories_resume(const KilnConfig *config, const char *path,
                                                KilnValueHistories *ret, KilnError *err);

/* Where the value at `key` ("": all) comes from, ready to print. Of a config, or, with
 * `config` NULL, of a run whose values are in the tree `values`. */
KILN_NODISCARD KilnStatus kiln_histories_explain(const KilnValueHistories *histories,
                                                 const KilnConfig *config,
                                                 const KilnConfigNode *values, const char *key,
                                                 KilnText *text, KilnError *err);

/* Explain a key of a past run from the files in its folder `dir`. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_run_explain(const char *dir, const char *key, char **ret,
                                           KilnError *err);

#endif
