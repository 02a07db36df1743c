/* Which kiln component does the work of a class of PyTorch, Lightning, torchvision or torchmetrics,
 * and what became of each of its options: tables, which `kiln import-hydra` follows and
 * `--classes` prints. */
#ifndef KILN_CLI_HYDRA_CLASSES_H
#define KILN_CLI_HYDRA_CLASSES_H

#include "kiln/base.h"

/* What happens to the value of an option. */
typedef enum KilnImportRule {
    KILN_IMPORT_SAME,     /* it stays; `arg`: only for these components of its scheduler */
    KILN_IMPORT_NOT_NULL, /* it stays; null, which means the default there, is left out */
    KILN_IMPORT_CHOICE,   /* `arg` lists words as there=here; others are left out */
    KILN_IMPORT_FRACTION, /* a learning rate becomes a fraction of the optimizer's */
    KILN_IMPORT_DURATION, /* a mapping of days, hours, minutes, seconds becomes text */
    KILN_IMPORT_METRIC,   /* the name of a metric; `arg` likewise */
    KILN_IMPORT_FOLDER,   /* the folder `arg` below it */
    KILN_IMPORT_SHORTER,  /* one number is the length of an image's shorter side */
    KILN_IMPORT_SPAN,     /* of [-30, 30] or 30 the largest */
    KILN_IMPORT_INSIDE,   /* its own options are those of the component */
    KILN_IMPORT_PARAMS,   /* a mapping from keys of the config to values of a sweep */
    KILN_IMPORT_NEEDLESS, /* left out: without effect on a kiln run */
    KILN_IMPORT_ABSENT    /* left out and reported, unless `arg` lists the value */
} KilnImportRule;

typedef struct KilnImportOption {
    const char *from; /* the class's keyword; NULL closes a table */
    const char *to;   /* kiln's option, with dots if it is nested; NULL: none */
    KilnImportRule rule;
    const char *arg;  /* see the rules */
    const char *note; /* for the report: what differs, or what to do instead; NULL: nothing */
} KilnImportOption;

/* Where a component goes in kiln's config. */
typedef enum KilnImportKind {
    KILN_IMPORT_OPTIMIZER,
    KILN_IMPORT_SCHEDULER,
    KILN_IMPORT_LOSS,
    KILN_IMPORT_METRICS,
    KILN_IMPORT_MODEL,
    KILN_IMPORT_DATA,
    KILN_IMPORT_TRANSFORM,
    KILN_IMPORT_CALLBACK,
    KILN_IMPORT_LOGGER,
    KILN_IMPORT_TRAINER,
    KILN_IMPORT_TASK,
    KILN_IMPORT_SWEEPER,
    KILN_IMPORT_SAMPLER, /* of a sweeper: names its component */
    KILN_IMPORT_WRAPPER, /* stands for what is in it: torchvision's Compose */
    KILN_IMPORT_OTHER    /* where it is */
} KilnImportKind;

typedef struct KilnImportClass {
    const char *library; /* the first name of its module: "torch" */
    const char *name;    /* "Adam": of torch.optim.Adam and torch.optim.adam.Adam */
    KilnImportKind kind;
    const char *component; /* "optimizer/adam"; NULL: none */
    const char *extra;     /* options that follow from the class: "depth: 50, groups: 32" */
    const char *note;      /* for the report: what differs, or what to do; NULL: nothing */
    const KilnImportOption *options; /* NULL: none */
} KilnImportClass;

/* A table of classes; `classes` ends with a class without a name. */
typedef struct KilnImportLibrary {
    const KilnImportClass *classes;
    const char *summary; /* "optimizers" */
} KilnImportLibrary;

extern const KilnImportClass kiln_import_torch[];
extern const KilnImportClass kiln_import_lightning[];
extern const KilnImportClass kiln_import_vision[];
extern const KilnImportClass kiln_import_models[];
extern const KilnImportClass kiln_import_metrics[];
/* Options that are not a class's: of the root, and of code of the user's own, by its kind. */
extern const KilnImportClass kiln_import_root;
extern const KilnImportClass kiln_import_trainer;
extern const KilnImportClass kiln_import_schedule; /* Lightning's {scheduler: ..., interval: ...} */
extern const KilnImportClass kiln_import_own_data;
extern const KilnImportClass kiln_import_own_task;

/* The i-th class of all tables; NULL after the last. */
const KilnImportClass *kiln_import_class_at(size_t i);
/* The class that a _target_ names, whatever the modules between; NULL: none of the tables. */
const KilnImportClass *kiln_import_class_find(const char *target);
/* Whether the target is in a library whose classes the tables list, so that it is not the user's
 * own code. */
bool kiln_import_is_library(const char *target);
/* NULL: the class has no such option, or it is not known. */
const KilnImportOption *kiln_import_option_find(const KilnImportClass *type, const char *name);
/* Copy the word after "name=" in a list of such pairs; false: there is none. */
bool kiln_import_choice(const char *pairs, const char *name, char *ret, size_t size);
/* Whether the words of a list include one. */
bool kiln_import_lists(const char *words, const char *word);

#endif
