/* Components with every kind of option, for tests of schema and registry. */
#ifndef KILN_TESTS_SUPPORT_TOY_COMPONENTS_H
#define KILN_TESTS_SUPPORT_TOY_COMPONENTS_H

#include "kiln_embed.h"
#include "registry/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/compose_support.h"

extern const KilnChoice toy_modes[3];

typedef struct ToyAll {
    bool flag;
    int64_t count;
    double rate;
    char *label, *note;
    char *file, *spare;
    int64_t mode;
    int64_t *sizes;
    size_t sizes_count;
    double *weights;
    size_t weights_count;
    char **names;
    size_t names_count;
} ToyAll;

extern const KilnField toy_all_fields[12];

typedef struct ToyPad {
    int64_t left, *right;
} ToyPad;

typedef struct ToyWindow {
    int64_t length;
    char *shape;
    ToyPad pad;
} ToyWindow;

typedef struct ToyStage {
    char *name;
    int64_t width;
    ToyPad *pads;
    size_t pads_count;
    KilnInstance *filter;
} ToyStage;

typedef struct ToyStagePair {
    char *key;
    ToyStage value;
} ToyStagePair;

/* What ToyAll has not: every shape, and structs. */
typedef struct ToyRich {
    bool *maybe_flag;
    int64_t *maybe_count;
    double *maybe_rate;
    int64_t *maybe_mode;
    double timeout, *maybe_timeout;
    int64_t limit, *maybe_limit;
    bool *flags;
    size_t flags_count;
    char **paths;
    size_t paths_count;
    int64_t *modes;
    size_t modes_count;
    double *timeouts;
    size_t timeouts_count;
    int64_t *limits;
    size_t limits_count;
    int64_t *chosen;
    size_t chosen_count;
    KilnPairBool *switches;
    size_t switches_count;
    KilnPairI64 *counts;
    size_t counts_count;
    KilnPairF64 *rates;
    size_t rates_count;
    KilnPairStr *labels;
    size_t labels_count;
    KilnPairStr *env;
    size_t env_count;
    KilnPairI64 *map_modes;
    size_t map_modes_count;
    ToyWindow window, *extra;
    ToyStage *stages;
    size_t stages_count;
    ToyStagePair *named;
    size_t named_count;
    KilnInstance **filters;
    size_t filters_count;
} ToyRich;

extern const KilnField toy_rich_fields[28];

extern const KilnModelOps toy_model_ops;

typedef struct ToyNet {
    int64_t depth;
    double dropout;
} ToyNet;

extern const KilnComponent toy_net;

typedef struct ToyWide {
    int64_t width;
    char *name;
} ToyWide;

extern const KilnField toy_wide_fields[3];

extern const KilnComponent toy_wide;

/* The same name as the model. */
extern const KilnComponent toy_wide_transform;

typedef struct ToyFlip {
    double p;
} ToyFlip;

extern const KilnComponent toy_flip;

typedef struct ToySgd {
    double lr;
    bool nesterov;
} ToySgd;

typedef struct ToyTask {
    KilnInstance *model, *optimizer, *teacher;
    KilnInstance **transforms;
    size_t transforms_count;
    KilnInstance **hooks;
    size_t hooks_count;
    double smoothing;
} ToyTask;

extern const KilnField toy_task_fields[7];

extern const KilnComponent toy_task;

/* A model that holds a model: it can be told to contain itself. */
typedef struct ToyNest {
    KilnInstance *inner, *other;
} ToyNest;

extern const KilnComponent *const toy_components[11];

typedef struct ToyRoot {
    KilnInstance *task;
    KilnInstance **callbacks;
    size_t callbacks_count;
    KilnInstance **logger;
    size_t logger_count;
    int64_t seed;
} ToyRoot;

extern const KilnField toy_root_fields[5];

typedef struct ToyTrainer {
    int64_t max_epochs;
    char *precision;
} ToyTrainer;

extern const KilnField toy_trainer_fields[3];

const KilnSection *toy_root(void);

/* A registry of these and nothing else (kiln_registry_free). */
KilnRegistry *toy_registry_new(void);

#endif
