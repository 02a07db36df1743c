/* The config that an unfinished command line composes to; completion offers what it holds. */
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

/* Compose with the flags and words of `args`, which are borrowed; ~/ in its paths is expanded.
 * Words that do not compose are left out; a sweep counts with its first value. Commands on a past
 * run have that run's config. */
void kiln_completion_context_set(KilnArgs *args, const char *command, KilnCompletionContext *ret);
void kiln_completion_context_release(KilnCompletionContext *context);

/* The options of a group, or with `groups` the groups below it; some may be there twice.
 * NULL-terminated, in the arena; NULL: none. */
const char **kiln_completion_context_options(KilnCompletionContext *context, const char *group,
                                             bool groups);
/* The first comment of an option's file, or its component's summary; in the arena; NULL: none. */
const char *kiln_completion_context_option_note(KilnCompletionContext *context, const char *group,
                                                const char *option);

#endif
