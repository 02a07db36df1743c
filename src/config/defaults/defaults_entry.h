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
    const char *base_dir;       /* group of the config that lists it */
    const char *parent_package; /* package of that config */
    const char *header;         /* package in the file's header, absolute */
    const KilnDefaultsEntry *parent;
    KilnDefaultsEntry **children; /* in order; NULL: none */
    size_t n_children, children_capacity;
};

/* The *ret_count entries of a defaults list (a list node), in the arena; NULL when memory is out.
 * Invalid entries go to `errors` and are left out. */
KilnDefaultsEntry **kiln_defaults_entries_read(KilnArena *arena, const KilnConfigNode *list,
                                               KilnErrors *errors, size_t *ret_count);
/* Set the config that lists the entry: its group, its package, its entry. False when memory is
 * out. */
bool kiln_defaults_entry_attach(KilnArena *arena, KilnDefaultsEntry *entry, const char *base_dir,
                                const char *parent_package, const KilnDefaultsEntry *parent);

/* All of these are NULL when memory is out; text in the arena. */
/* "model" of `model: resnet`, the folder of a config. */
const char *kiln_defaults_entry_group(KilnArena *arena, const KilnDefaultsEntry *entry);
/* "model/resnet" */
const char *kiln_defaults_entry_path(KilnArena *arena, const KilnDefaultsEntry *entry);
/* The package of its content: "model", "" for the top. */
const char *kiln_defaults_entry_package(KilnArena *arena, const KilnDefaultsEntry *entry,
                                        bool use_header);
/* "model", or "model@other" for another package: the key for overrides. */
const char *kiln_defaults_entry_key(KilnArena *arena, const KilnDefaultsEntry *entry);

#endif
