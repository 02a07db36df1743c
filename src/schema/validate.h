/* Checking one subtree against an options table. Components are known here only
 * as places; who checks what stands there is the caller's affair. */
#ifndef KILN_SCHEMA_VALIDATE_H
#define KILN_SCHEMA_VALIDATE_H

#include "config/tree/node.h"

typedef struct KilnCheck {
    const KilnConfig *config;
    void *ctx;
    /* A complete message, with the place to edit as its origin. Out of memory comes
     * here too. NULL: something is wrong that is told at another node of the tree. */
    void (*report)(void *ctx, const KilnError *err);
    /* One node, as written, where a component of field's kind is expected;
     * null ones where they are allowed do not come here. */
    void (*component)(void *ctx, const KilnField *field, const char *path,
                      const KilnConfigNode *node);
    /* The key of the option `name` of something else in the tree ("optimizer.momentum"),
     * for messages about an unknown one at `path`; NULL: none, or no single one. In
     * the config's arena. The hook may be NULL. */
    const char *(*elsewhere)(void *ctx, const char *path, const char *name);
    /* The value of an option that names what is written, which is right for itself: as written,
     * and resolved. May be NULL. */
    void (*output)(void *ctx, const char *path, const KilnConfigNode *written,
                   const KilnConfigNode *value);
} KilnCheck;

/* Check `map` (resolved; NULL: nothing but defaults) at `path` against
 * `fields`. `owner` ("model/resnet") names the table in messages. Without
 * `open`, keys that are no options are errors; _target_ is one if `target`. */
void kiln_check_table(const KilnCheck *check, const KilnConfigNode *map, const char *path,
                      const char *owner, const KilnField *fields, bool open, bool target);
/* Report "PLACE: PATH: MESSAGE" about `written`: the place of its `value`, and below
 * it through which interpolation it came; NULL: the place is in err->origin. */
void kiln_check_report(const KilnCheck *check, const char *path, const KilnConfigNode *written,
                       const KilnConfigNode *value, const KilnError *err);
/* Report that `written` does not resolve; the message names key and place. Not
 * when the fault is another node's of the tree, which will be reported itself. */
void kiln_check_unresolved(const KilnCheck *check, const KilnConfigNode *written,
                           const KilnError *err);

#endif
