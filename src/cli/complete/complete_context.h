/* What the words on a half-typed command line compose to: the ground on which
 * completion stands. */
#ifndef KILN_CLI_COMPLETE_COMPLETE_CONTEXT_H
#define KILN_CLI_COMPLETE_COMPLETE_CONTEXT_H

#include "base/arena.h"
#include "cli/args.h"
#include "kiln/config.h"

typedef struct KilnCompletionContext {
    KilnArena arena;
    KilnRegistry *registry;
    KilnComposeRequest request; /* without overrides */
    KilnConfig *config;         /* NULL: nothing composes */
} KilnCompletionContext;

/* Compose with the flags and words of `args`, which are borrowed. Words that do not
 * compose are left out; of a sweep's values the first is taken. `command`: "eval" and
 * "predict" have the config that the checkpoint remembers, "explain" a run folder's. */
void kiln_completion_context_set(const KilnArgs *args, const char *command,
                                 KilnCompletionContext *ret);
void kiln_completion_context_release(KilnCompletionContext *context);

/* Names in the config's search path: options of a group, or with `groups` the groups
 * below it. NULL-terminated, in the arena; NULL: none. */
const char **kiln_completion_context_options(KilnCompletionContext *context, const char *group,
                                             bool groups);
/* The first comment of an option's file, or what its component says of itself; in the
 * arena; NULL: nothing. */
const char *kiln_completion_context_option_note(KilnCompletionContext *context, const char *group,
                                                const char *option);

#endif
