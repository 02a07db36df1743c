/* The state of one completion: the word at the cursor, the config that the rest of the line
 * composes to, and the candidates found so far. */
#ifndef KILN_CLI_COMPLETE_COMPLETION_H
#define KILN_CLI_COMPLETE_COMPLETION_H

#include "base/arena.h"
#include "cli/commands/commands.h"
#include "config/tree/node.h"

typedef struct KilnCandidate {
    const char *text; /* the whole word */
    const char *note; /* one line about it; NULL: none */
    bool open;        /* the word continues: no blank follows */
} KilnCandidate;

/* Ready when zeroed and `word` and `typed` are set. Candidates are missing when memory runs out,
 * which is no error here. */
typedef struct KilnCompletion {
    const char *word;  /* at the cursor, without quotes; borrowed */
    const char *typed; /* the end of `word` that candidates continue: "res" of "model=mlp,res" */
    const char *value; /* the end of `word` after the = of an override; NULL: none */
    const char *item;  /* its last item, when there is a value */
    bool bracket;      /* that is in an open [ or (: something must follow */
    const KilnCommand *command; /* of the line; NULL: not known yet */
    const KilnArgs *args;       /* before the cursor; borrowed */
    KilnArena arena;            /* of all texts */
    KilnCandidate *list;
    size_t count, capacity;
    /* Set by kiln_completion_compose: */
    KilnRegistry *registry;
    KilnComposeRequest request; /* without overrides */
    KilnConfig *config;         /* NULL: nothing composes */
} KilnCompletion;

/* Add the candidates for the last of `words`, which is c->word. Words before the program's name
 * (VAR=x, sudo) are skipped. */
void kiln_complete_words(KilnCompletion *c, char **words, size_t count);
void kiln_completion_release(KilnCompletion *c);

/* Add a candidate: the word with `typed` replaced by the formatted text, if that starts with
 * `typed`. It is left out when it is in the list, or is an item of the value already. `note` is
 * borrowed. */
void kiln_candidate_add(KilnCompletion *c, bool open, const char *note, const char *format, ...)
    KILN_PRINTF(4, 5);
/* Add the files and folders whose paths start with `typed`. `end` restricts files by their names'
 * ends; "/": only folders; "": all. */
void kiln_candidates_paths(KilnCompletion *c, const char *end);

/* Compose with the arguments. Words that do not compose are left out; a sweep
 * counts with its first value. Commands on a past run have that run's config. */
void kiln_completion_compose(KilnCompletion *c);
/* The options of a group, or with `groups` the groups below it. NULL-terminated, in the arena. */
const char *const *kiln_completion_options(KilnCompletion *c, const char *group, bool groups);
/* kiln_path_expand into the arena; NULL when memory is out. */
char *kiln_completion_home_path(KilnCompletion *c, const char *path);

/* ---- Names and overrides (complete_keys.c) ------------------------------------------------- */

typedef enum KilnKeyUse {
    KILN_KEY_SET, /* key=value */
    KILN_KEY_ADD, /* +key=value: something new in a mapping */
    KILN_KEY_NAME /* the key alone: ~key, --explain key */
} KilnKeyUse;

/* Complete a path below a group ("": from the top) by one level. With `options` its options are
 * candidates, and with `end` its groups, followed by `end`. */
void kiln_complete_group(KilnCompletion *c, const char *group, bool options, const char *end);
/* Complete a key of the composed tree by one level. */
void kiln_complete_keys(KilnCompletion *c, KilnKeyUse use);
/* Complete an override: [+|++|~] and a key or group, or a value of one. */
void kiln_complete_override(KilnCompletion *c);

/* ---- Values (complete_values.c) ------------------------------------------------------------ */

/* Complete the value of an override, which is `typed`. `key` is its name without sign ("model",
 * "db@src", "optimizer.lr"), `sign` the + or - of key+=item and key-=item, else 0. */
void kiln_complete_value(KilnCompletion *c, const char *key, char sign);
/* A value as an override writes it: 0.5, [1,2]; in the arena. NULL: it has no short form. */
const char *kiln_complete_value_text(KilnCompletion *c, const KilnConfigNode *node);

#endif
