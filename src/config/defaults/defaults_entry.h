/* One entry of a defaults list: the config or group that it names, and its package. */
#ifndef KILN_CONFIG_DEFAULTS_DEFAULTS_ENTRY_H
#define KILN_CONFIG_DEFAULTS_DEFAULTS_ENTRY_H

#include "config/defaults/search_path.h"

typedef enum KilnDefaultsEntryKind {
    KILN_DEFAULTS_SELF,   /* _self_ */
    KILN_DEFAULTS_CONFIG, /* - name */
    KILN_DEFAULTS_GROUP   /* - group: option */
} KilnDefaultsEntryKind;

typedef struct KilnDefaultsEntry KilnDefaultsEntry;

struct KilnDefaultsEntry {
    KilnDefaultsEntryKind kind;
    const char *name;     /* path of a config, or group; with a leading "/" from the top */
    const char *package;  /* the part after @; NULL: none */
    const char *option;   /* of a group; NULL: null */
    const char **options; /* of a group: a list, NULL-terminated; NULL: no list */
    bool optional, override;
    bool appended; /* by an argument +group=option */
    bool primary;
    bool gone;         /* deleted, null, optional and missing, or an error */
    bool deleted;      /* by an argument ~group */
    bool overridden;   /* option and origin come from an argument or an `override` entry */
    bool interpolated; /* option came from an interpolation, or below one that did */
    KilnOrigin origin;
    KilnOrigin option_origin;
    const KilnOrigin *origins; /* of each of options; NULL: option_origin for all */
    /* Set by kiln_defaults_entry_attach. */
    const KilnDefaultsEntry *parent; /* the config that lists it; NULL: none */
    const char *group;               /* "model" of `model: resnet`, the folder of a config */
    const char *key;                 /* "model", or "model@other" for another package: for
                                      * overrides */
    const char *path;                /* "model/resnet" of a config; of a group once its option is
                                      * known */
    const char *into;                /* the package of its content: "model", "" for the top */
    /* Set when it is expanded. */
    const char *header;           /* the package in the file's header, absolute; NULL: none */
    KilnConfigFile *file;         /* NULL: not read */
    KilnDefaultsEntry **children; /* in order; NULL: none */
    size_t n_children, children_capacity;
};

/* The entry of an item of a defaults list, in the arena; NULL when it is invalid, which goes to
 * `errors`, or memory is out. */
KilnDefaultsEntry *kiln_defaults_entry_read(KilnArena *arena, const KilnConfigNode *item,
                                            KilnErrors *errors);
/* Set the config that lists the entry, and what follows from it. False when memory is out. */
bool kiln_defaults_entry_attach(KilnArena *arena, KilnDefaultsEntry *entry,
                                const KilnDefaultsEntry *parent);
/* Set the package of the file's header ("# @package"; NULL: none). */
void kiln_defaults_entry_set_header(KilnArena *arena, KilnDefaultsEntry *entry,
                                    const char *package);

#endif
