/* The state of a check of a whole config (kiln_config_check), for the files that take part:
 * check_config.c walks the tree and its components, check_table.c checks one mapping against its
 * options table, unread_keys.c looks for keys without effect. */
#ifndef KILN_REGISTRY_CHECK_H
#define KILN_REGISTRY_CHECK_H

#include "base/text.h"
#include "registry/registry.h"

/* A component that was met. */
typedef struct KilnCheckVisit {
    const KilnConfigNode *map;
    const KilnComponent *component; /* NULL: it names none, which was reported */
    bool open;                      /* being checked right now */
} KilnCheckVisit;

typedef struct KilnCheck {
    const KilnConfig *config;
    const KilnRegistry *registry;
    KilnErrors *errors; /* NULL: errors are not reported */
    KilnOutputVisit *visit_output;
    void *visit_ctx;
    KilnStatus status; /* of the first error */
    KilnText key;      /* of the value that is being checked */
    KilnCheckVisit *visits;
    size_t visit_count, visit_capacity;
    int depth;  /* components within components */
    bool fault; /* the options of the current component have an error */
} KilnCheck;

/* Add a complete message. NULL: an error that is reported at another node of the tree. */
void kiln_check_add(KilnCheck *check, const KilnError *err);
/* Add "ORIGIN: KEY: MESSAGE" about `written`: the origin of its `value`, and below it the
 * interpolation through which it came. `value` NULL: the origin is in err->origin. `key` NULL:
 * check->key. */
void kiln_check_report(KilnCheck *check, const char *key, const KilnConfigNode *written,
                       const KilnConfigNode *value, const KilnError *err);
/* Report that `written` does not resolve; the message names key and origin. Nothing is reported
 * when the error is that of another node in the tree, which is reported itself. */
void kiln_check_unresolved(KilnCheck *check, const KilnConfigNode *written, const KilnError *err);
/* Check `map` (resolved; NULL: only defaults) at check->key against `fields`. `owner`
 * ("model/resnet") names the table in messages. Without `open` a key that is no option is an
 * error; _target_ too unless `target`. */
void kiln_check_table(KilnCheck *check, const KilnConfigNode *map, const char *owner,
                      const KilnField *fields, bool open, bool target);
/* Check the component of `kind` at check->key: `written`, which resolves to a mapping or a plain
 * name. */
void kiln_check_component(KilnCheck *check, KilnKind kind, const KilnConfigNode *written,
                          const KilnConfigNode *value);
/* The key of the only option `name` in the config ("optimizer.momentum"), for suggestions, in the
 * config's arena; NULL: there is none, or several. */
const char *kiln_check_elsewhere(const KilnCheck *check, const char *name);

#endif
