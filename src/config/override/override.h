/* Overrides: arguments that change the config (`lr=0.1`, `+x=1`, `~model.norm`,
 * `model=resnet`). */
#ifndef KILN_CONFIG_OVERRIDE_OVERRIDE_H
#define KILN_CONFIG_OVERRIDE_OVERRIDE_H

#include "config/compose.h"
#include "config/sweep/sweep_value.h"

typedef enum KilnOverrideKind {
    KILN_OVERRIDE_SET,    /* key=value: the key must be there */
    KILN_OVERRIDE_ADD,    /* +key=value: the key must not be there */
    KILN_OVERRIDE_FORCE,  /* ++key=value: either */
    KILN_OVERRIDE_DELETE, /* ~key, ~key=value */
    KILN_OVERRIDE_APPEND, /* key+=value, key=extend_list(...): to the list that is there */
    KILN_OVERRIDE_REMOVE, /* key-=value: from the list that is there */
    KILN_OVERRIDE_REPLACE /* key:=value: in the place of a mapping, which = would merge */
} KilnOverrideKind;

typedef struct KilnOverride {
    KilnOverrideKind kind;
    const char *text;         /* the whole argument */
    const char *assignment;   /* the part after + or ~ */
    const char *value_text;   /* the part after =; NULL: none */
    KilnOrigin origin;        /* "argument 2 `lr=0.1`" */
    const char *key;          /* "optimizer.lr", or a group "model/optimizer"; "kiln" for "hydra" */
    const char *package;      /* behind @; NULL: none */
    KilnConfigNode *value;    /* NULL: only `~key`; of a sweep the first */
    const KilnError *problem; /* the value can't be read: what to tell unless it is typed text */
    KilnSweepValue *sweep;    /* several values: a comma, choice(...), ...; NULL: one */
    bool is_group;            /* set while composing: chooses an option */
} KilnOverride;

/* Parse argument number `number` (from 1). Everything lives in the arena. */
KILN_NODISCARD KilnStatus kiln_override_parse(KilnArena *arena, const char *text, size_t number,
                                              KilnOverride *ret, KilnError *err);
/* The same, but a value that can't be read is no error yet: it has no `value` then,
 * but a `problem`. */
KILN_NODISCARD KilnStatus kiln_override_read(KilnArena *arena, const char *text, size_t number,
                                             KilnOverride *ret, KilnError *err);
/* kiln_override_parse with another origin: text that is no argument. */
KILN_NODISCARD KilnStatus kiln_override_parse_from(KilnArena *arena, const char *text,
                                                   const KilnOrigin *origin, KilnOverride *ret,
                                                   KilnError *err);
/* An override whose value has a problem or is several with commas, but whose key is
 * typed text (hooks->is_text; `hooks` may be NULL), takes what stands behind = as plain
 * text: root=/data/a=b,c. Not what starts like a quote, a list, a mapping or a function. */
KILN_NODISCARD KilnStatus kiln_override_accept_text(KilnArena *arena, const KilnConfig *config,
                                                    const KilnComposeHooks *hooks,
                                                    KilnOverride *override, KilnError *err);
/* What stands in front of =: "+model@other", "tags+"; NULL when memory is out. */
const char *kiln_override_target(KilnArena *arena, const KilnOverride *override);
/* Is it about `kiln`, and not about the job? */
bool kiln_override_is_own(const KilnOverride *override);
/* The place of the key in the argument. */
KilnOrigin kiln_override_key_origin(const KilnOverride *override);
/* "model" or "model@other", the name that the defaults list knows it by. */
const char *kiln_override_group_key(KilnArena *arena, const KilnOverride *override);

#endif
