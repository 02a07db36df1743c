/* The files of kiln's config: those of a user's tree, split where kiln has groups of their own. */
#ifndef KILN_CLI_HYDRA_OUTPUTS_H
#define KILN_CLI_HYDRA_OUTPUTS_H

#include "cli/hydra/rewrite.h"
#include "kiln/embed/config.h"

/* One file that is written. */
typedef struct KilnImportOutput {
    const KilnImportFile *source;
    const char *group, *option;    /* group "": a primary config, or a file beside it */
    const char *header;            /* the package; NULL: none */
    const KilnImportNode *content; /* its children */
    bool whole;                    /* it has all of the source, or its main part */
    KilnImportNode defaults;       /* the defaults list; without children: none */
    const char *path;              /* "task/mnist.yaml" */
    const char *text;              /* once everything is known */
} KilnImportOutput;

/* Something that the tree does not say, and what was assumed. */
typedef struct KilnImportAssumption {
    const char *what, *text;
} KilnImportAssumption;

typedef struct KilnImportOutputs {
    const KilnImportSource *source;
    KilnImportPlaces *places;
    KilnImportOutput *items;
    size_t n, capacity;
    KilnImportNode **trees; /* of each file of the source: its new content */
    KilnImportChanges changes;
    const char *task;    /* "vision" */
    const char *primary; /* the config to train: "train"; NULL: there is none */
    KilnImportAssumption assumed[8];
    size_t n_assumed;
    KilnArena arena;
} KilnImportOutputs;

/* Make all files. `places` may get moves for keys that nothing reads in kiln. The caller releases
 * `outputs` in any case; the places must outlive it. */
KILN_NODISCARD KilnStatus kiln_import_outputs_make(KilnImportOutputs *outputs,
                                                   KilnImportPlaces *places, KilnError *err);
void kiln_import_outputs_release(KilnImportOutputs *outputs);

/* Write the defaults lists of all outputs; `primary` gets the groups that kiln needs, too.
 * (defaults.c) */
KILN_NODISCARD KilnStatus kiln_import_defaults(KilnImportOutputs *outputs, KilnError *err);

/* Write the files below a new folder `path`, or with `force` into an existing one, whose other
 * files stay; all or none. (publish.c) */
KILN_NODISCARD KilnStatus kiln_import_publish(const KilnImportOutputs *outputs, const char *path,
                                              bool force, KilnError *err);

#endif
