/* Completion of keys and groups, and of their values. */
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

/* Keys of the composed tree that go on from `typed` by one level; `before` stands in
 * front of them in the word. */
void kiln_complete_keys(KilnCompletionContext *context, KilnCandidates *candidates,
                        const char *before, const char *typed, KilnKeyUse use);
/* An override: [+|++|~] and a key, a group, or a value of theirs. */
void kiln_complete_override(KilnCompletionContext *context, KilnCandidates *candidates);

/* Values for what stands in front of the = in `before` ("+model="). `key` is the name
 * without sign ("model", "db@src", "optimizer.lr"), `value` what is typed of the value. */
void kiln_complete_value(KilnCompletionContext *context, KilnCandidates *candidates,
                         const char *before, const char *key, const char *value);
/* The value in one line as an override has it: 0.5, [1,2]; in the arena; NULL: it has
 * no such form, or none that is short. */
const char *kiln_complete_value_text(KilnArena *arena, const KilnConfig *config,
                                     const KilnConfigNode *node);

#endif
