/* Overrides: arguments that change the config (`lr=0.1`, `+x=1`, `~model.norm`,
 * `model=resnet`). */
#ifndef KILN_CONFIG_OVERRIDE_OVERRIDE_H
#define KILN_CONFIG_OVERRIDE_OVERRIDE_H

#include "config/compose.h"
#include "config/sweep/sweep_value.h"

typedef enum KilnOverrideKind {
    KILN_OVERRIDE_SET,    /* key=value: the key must exist */
    KILN_OVERRIDE_ADD,    /* +key=value: the key must not exist */
    KILN_OVERRIDE_FORCE,  /* ++key=value: either */
    KILN_OVERRIDE_DELETE, /* ~key, ~key=value */
    KILN_OVERRIDE_APPEND, /* key+=value, key=extend_list(...): to a list */
    KILN_OVERRIDE_REMOVE, /* key-=value: from a list */
    KILN_OVERRIDE_REPLACE /* key:=value: replaces a mapping, which = would merge */
} KilnOverrideKind;

typedef struct KilnOverride {
    KilnOverrideKind kind;
    const char *text;         /* the whole argument */
    const char *assignment;   /* the part after + or ~ */
    const char *value_text;   /* the part after =; NULL: none */
    KilnOrigin origin;        /* "argument 2 `lr=0.1`" */
    const char *key;          /* "optimizer.lr", or a group "model/optimizer"; "kiln" for "hydra" */
    const char *package;      /* the part after @; NULL: none */
    KilnConfigNode *value;    /* NULL: only `~key`; of a sweep the first */
    const KilnError *problem; /* why the value could not be parsed; NULL: it was */
    KilnSweepValue *sweep;    /* several values: a comma, choice(...), ...; NULL: one */
    bool is_group;            /* it selects an option; set while composing */
} KilnOverride;

/* Parse argument number `number` (from 1). A value that cannot be parsed sets `problem` and is not
 * an error yet. Everything lives in the arena. */
KILN_NODISCARD KilnStatus kiln_override_read(KilnArena *arena, const char *text, size_t number,
                                             KilnOverride *ret, KilnError *err);
/* The origin of argument number `number`; the source lives in the arena. */
KilnOrigin kiln_override_origin(KilnArena *arena, const char *text, size_t number);
/* The same for text that is not an argument, with its origin. */
KILN_NODISCARD KilnStatus kiln_override_read_from(KilnArena *arena, const char *text,
                                                  const KilnOrigin *origin, KilnOverride *ret,
                                                  KilnError *err);
/* Take the value of a key that is typed text (hooks->is_text; `hooks` may be NULL) as plain text
 * when it has a problem or commas: root=/data/a=b,c. Not when it starts with a quote, a list, a
 * mapping or a function. */
void kiln_override_accept_text(KilnArena *arena, const KilnConfig *config,
                               const KilnComposeHooks *hooks, KilnOverride *override);
/* The part before =: "+model@other", "tags+"; NULL when memory is out. */
const char *kiln_override_target(KilnArena *arena, const KilnOverride *override);
/* Does it change the node `kiln`, and not the job? */
bool kiln_override_is_own(const KilnOverride *override);
/* Append "KEY='VALUE'", quoted as an override needs it. */
void kiln_override_quote(KilnText *text, const char *key, const char *value);
/* The origin of the key. */
KilnOrigin kiln_override_key_origin(const KilnOverride *override);

#endif
