/* The content of one file of a user's tree in kiln's terms, and what happened on the way. */
#ifndef KILN_CLI_HYDRA_REWRITE_H
#define KILN_CLI_HYDRA_REWRITE_H

#include "cli/hydra/yaml_lines.h"
#include "cli/hydra/places.h"

/* An option that is no longer what it was. */
typedef struct KilnImportChange {
    KilnOrigin origin; /* of its key */
    const char *what;  /* "dirpath" */
    const char *text;  /* what became of it, or what to do */
} KilnImportChange;

/* A metric that an option names. */
typedef struct KilnImportMetric {
    const char *name;      /* "acc" of val/acc */
    const char *component; /* "metric/accuracy"; NULL: not known */
    const char *whole;     /* "val/acc" */
    KilnOrigin origin;
} KilnImportMetric;

typedef struct KilnImportChanges {
    KilnImportChange *items;
    size_t n, capacity;
    KilnImportMetric *metrics; /* each once */
    size_t n_metrics, metrics_capacity;
} KilnImportChanges;

typedef struct KilnImportRewrite {
    const KilnImportPlaces *places;
    const KilnImportFile *file;
    KilnArena *arena;
    KilnImportChanges *changes;
    const char *task; /* what stands in for a LightningModule: "module/vision" */
    bool raw;         /* what is copied becomes a comment: it stays as it is */
    KilnImportNode root;
    bool failed; /* memory ran out */
} KilnImportRewrite;

/* Fill rewrite->root with the file's content, from the root of the config; the defaults list is
 * left out. Set the other members first; all that it makes is in the arena. */
KILN_NODISCARD KilnStatus kiln_import_rewrite(KilnImportRewrite *rewrite, KilnError *err);
/* Text with the keys in ${...} as kiln's config has them. `path` is that of the value, to which
 * ${.key} is relative. (references.c) */
const char *kiln_import_references(KilnImportRewrite *rewrite, const char *text, const char *path);
/* A key of the user's config in kiln's; NULL: kiln has no such option. */
const char *kiln_import_key(KilnImportRewrite *rewrite, const char *path);
/* Note a change of the option at an entry. */
void kiln_import_changed(KilnImportRewrite *rewrite, KilnOrigin origin, const char *what,
                         const char *format, ...) KILN_PRINTF(4, 5);

/* The value of an option by its rule: text for one line, or NULL when it is left out. `map` is the
 * mapping that it is in. (values.c) */
const char *kiln_import_value(KilnImportRewrite *rewrite, const KilnImportOption *option,
                              const KilnEntry *entry, const char *path);

#endif
