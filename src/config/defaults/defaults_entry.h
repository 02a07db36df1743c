/* One entry of a defaults list: what it names, and where that goes. */
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
    const char *name;     /* path of a config, or group; "/" in front: from the top */
    const char *package;  /* behind @; NULL: none */
    const char *option;   /* of a group; NULL: null */
    const char **options; /* of a group: a list, NULL-terminated; NULL: no list */
    bool optional, override;
    bool appended; /* by an argument +group=option */
    bool primary;
    bool gone;         /* deleted, null, optional and not there, or an error */
    bool deleted;      /* by an argument ~group */
    bool overridden;   /* option and origin come from an argument or an `override` entry */
    bool interpolated; /* option came from an interpolation, or below one that did */
    KilnOrigin origin;
    KilnOrigin option_origin;
    const KilnOrigin *origins; /* of each of options; NULL: option_origin for all */
    /* Set when the entry is placed in a tree. */
    const char *base_dir;       /* group of the config that lists it */
    const char *parent_package; /* where that config goes */
    const char *header;         /* package in the file's header, absolute */
    const KilnDefaultsEntry *parent;
    KilnDefaultsEntry **children; /* in order; NULL: none */
    size_t n_children, children_capacity;
};

/* The entries of a defaults list (a list node), NULL-terminated, in the arena. What
 * is wrong goes to `errors`, such entries are left out; NULL when memory is out. */
KilnDefaultsEntry **kiln_defaults_entries_read(KilnArena *arena, const KilnConfigNode *list,
                                               KilnErrors *errors, size_t *ret_count);
/* Say which config lists the entry. */
bool kiln_defaults_entry_attach(KilnArena *arena, KilnDefaultsEntry *entry, const char *base_dir,
                                const char *parent_package, const KilnDefaultsEntry *parent);

/* All of these are NULL when memory is out; text in the arena. */
/* "model" of `model: resnet`, the folder of a config. */
const char *kiln_defaults_entry_group(KilnArena *arena, const KilnDefaultsEntry *entry);
/* "model/resnet" */
const char *kiln_defaults_entry_path(KilnArena *arena, const KilnDefaultsEntry *entry);
/* Where its content goes: "model", "" for the top. */
const char *kiln_defaults_entry_package(KilnArena *arena, const KilnDefaultsEntry *entry,
                                        bool use_header);
/* "model", or "model@other" when it goes elsewhere: the name for overrides. */
const char *kiln_defaults_entry_key(KilnArena *arena, const KilnDefaultsEntry *entry);

#endif
