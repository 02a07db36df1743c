/* Reads a mapping with an options table: values strictly, defaults filled in, interpolations
 * resolved. The result is the canonical document that libcyaml loads (bind.c), and what libcyaml
 * does not load. */
#ifndef KILN_SCHEMA_DOCUMENT_H
#define KILN_SCHEMA_DOCUMENT_H

#include "base/text.h"
#include "config/tree/node.h"

/* A component of an option, or a file that an option names. */
typedef struct KilnPart {
    const char *key;
    const KilnConfigNode *written, *value; /* as written, and resolved; not null */
} KilnPart;

/* An option that holds components, or names a file that is written, or is a list or mapping that
 * may be null. */
typedef struct KilnSlot {
    const KilnField *field;
    KilnPart *parts; /* of components and files */
    size_t count;
    bool null;
    char *base; /* the options struct that has the member; set by kiln_options_load */
} KilnSlot;

typedef struct KilnDocument {
    KilnText text;   /* one flow mapping without null values and components; a map is a list of
                      * {key, value}, a choice its number, text is in double quotes */
    KilnSlot *slots; /* in the order of the tables, closed by one without a field */
    size_t slot_count, slot_capacity;
    KilnArena arena; /* of slots, keys and defaults */
} KilnDocument;

/* A mapping and its table. */
typedef struct KilnOptionsScope {
    const KilnField *fields;
    const KilnConfigNode *map;     /* resolved; NULL: only defaults */
    const KilnConfigNode *missing; /* where a missing option is reported: `map`, or around it */
    const KilnConfigNode *via;     /* the reference through which the mapping came; NULL: none */
    const char *name;              /* of the table, for messages: "model/resnet" */
    const struct KilnOptionsScope *outer; /* of a nested mapping: where its option `name` is */
    bool open, target, plain; /* other keys are allowed; _target_ is; components are left out */
} KilnOptionsScope;

/* Where errors go. Their messages have no key. */
typedef struct KilnReport {
    void *ctx;
    void (*refused)(void *ctx, const KilnOptionsScope *scope, const char *key,
                    const KilnConfigNode *written, const KilnConfigNode *value, KilnError *err);
    /* `written` does not resolve; the message names its key and origin. */
    void (*unresolved)(void *ctx, const KilnConfigNode *written, const KilnError *err);
    /* A key that is no option, or a former name of one. */
    void (*unknown)(void *ctx, const KilnOptionsScope *scope, const char *key,
                    const KilnEntry *entry);
} KilnReport;

/* Read the mapping at `key` into a zeroed `ret`, which the caller releases also after a failure.
 * `config` NULL: nothing to resolve. With `report` reading continues after errors, all of which go
 * there, and `err` is not set. Without it, unknown keys are ignored, and `err` is the first error,
 * which names the key. Returns the status of the first error. */
KILN_NODISCARD KilnStatus kiln_document_read(const KilnConfig *config, const char *key,
                                             const KilnOptionsScope *scope,
                                             const KilnReport *report, KilnDocument *ret,
                                             KilnError *err);
void kiln_document_release(KilnDocument *document);

#endif
