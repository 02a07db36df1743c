/* Completes overrides: keys, groups, and their values. */
#ifndef KILN_CLI_COMPLETE_COMPLETE_KEYS_H
#define KILN_CLI_COMPLETE_COMPLETE_KEYS_H

#include "cli/complete/candidates.h"
#include "cli/complete/complete_context.h"
#include "config/tree/node.h"

typedef enum KilnKeyUse {
    KILN_KEY_SET, /* key=value */
    KILN_KEY_ADD, /* +key=value: something new in a mapping */
    KILN_KEY_NAME /* the key alone: ~key, --explain key */
} KilnKeyUse;

/* Add the keys of the composed tree that continue `typed` by one level, after `before`. */
void kiln_complete_keys(KilnCompletionContext *context, KilnCandidates *candidates,
                        const char *before, const char *typed, KilnKeyUse use);
/* Complete an override: [+|++|~] and a key or group, or a value of one. */
void kiln_complete_override(KilnCompletionContext *context, KilnCandidates *candidates);

/* Complete the value of an override. `before` is the word up to the = ("+model="), `key` the name
 * without sign ("model", "db@src", "optimizer.lr"), `value` the rest of the word. */
void kiln_complete_value(KilnCompletionContext *context, KilnCandidates *candidates,
                         const char *before, const char *key, const char *value);
/* A value as an override writes it: 0.5, [1,2]; in the arena. NULL: it has no short form. */
const char *kiln_complete_value_text(KilnArena *arena, const KilnConfig *config,
                                     const KilnConfigNode *node);

#endif
