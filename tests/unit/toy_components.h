/* A few components with every kind of option, for tests of schema and registry. */
#ifndef TESTS_UNIT_TOY_COMPONENTS_H
#define TESTS_UNIT_TOY_COMPONENTS_H

#include <math.h>

#include "compose_support.h"
#include "kiln.h"
#include "registry/registry.h"

static const KilnChoice toy_modes[] = { { "min", 1 }, { "max", -7 }, { NULL, 0 } };

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

static const KilnField toy_all_fields[] = {
    KILN_FIELD_BOOL(ToyAll, flag, "true", "a flag"),
    KILN_FIELD_I64(ToyAll, count, "3", -5, 1000, "a count"),
    KILN_FIELD_F64(ToyAll, rate, "0.5", 0.0, (double)INFINITY, "a rate"),
    KILN_FIELD_STR(ToyAll, label, "plain", "a label"),
    KILN_FIELD_STR_OPT(ToyAll, note, "null", "a note"),
    KILN_FIELD_PATH(ToyAll, file, "~/x", "a file"),
    KILN_FIELD_PATH_OPT(ToyAll, spare, "null", "another file"),
    KILN_FIELD_ENUM(ToyAll, mode, "min", toy_modes, "a mode"),
    KILN_FIELD_I64_LIST(ToyAll, sizes, "[1, 2]", 0, 100, "some sizes"),
    KILN_FIELD_F64_LIST(ToyAll, weights, "[]", -1.0, 1.0, "some weights"),
    KILN_FIELD_STR_LIST(ToyAll, names, "[a, b]", "some names"),
    KILN_FIELD_END,
};

static const KilnCallbackOps toy_callback_ops = { 0 };
static const KilnModelOps toy_model_ops = { 0 };
static const KilnModuleOps toy_module_ops = { 0 };
static const KilnOptimizerOps toy_optimizer_ops = { 0 };
static const KilnTransformOps toy_transform_ops = { 0 };

static const KilnComponent toy_all = {
    .kind = KILN_KIND_CALLBACK,
    .name = "all",
    .summary = "Every type of option",
    .fields = toy_all_fields,
    .opts_size = sizeof(ToyAll),
    .ops.callback = &toy_callback_ops,
};

static const KilnComponent toy_quiet = {
    .kind = KILN_KIND_CALLBACK,
    .name = "quiet",
    .summary = "No options",
    .ops.callback = &toy_callback_ops,
};

typedef struct ToyNet {
    int64_t depth;
    double dropout;
} ToyNet;

static const KilnField toy_net_fields[] = {
    KILN_FIELD_I64(ToyNet, depth, "18", 1, 200, "layers"),
    KILN_FIELD_F64(ToyNet, dropout, "0.0", 0.0, 0.9, "dropout"),
    KILN_FIELD_END,
};

static KilnStatus toy_net_init(KilnInstance *self, KilnError *err)
{
    const ToyNet *opts = kiln_opts(self);

    if (opts->depth == 19)
        return kiln_error_set(err, KILN_E_RANGE, "depth 19 is none of 18, 34, 50");
    return KILN_OK;
}

static const KilnComponent toy_net = {
    .kind = KILN_KIND_MODEL,
    .name = "net",
    .summary = "A network",
    .fields = toy_net_fields,
    .opts_size = sizeof(ToyNet),
    .state_size = 16,
    .init = toy_net_init,
    .ops.model = &toy_model_ops,
};

typedef struct ToyWide {
    int64_t width;
    char *name;
} ToyWide;

static const KilnField toy_wide_fields[] = {
    KILN_FIELD_I64(ToyWide, width, NULL, 1, 100, "features"),
    KILN_FIELD_STR(ToyWide, name, "wide", "a name"),
    KILN_FIELD_END,
};

static const KilnComponent toy_wide = {
    .kind = KILN_KIND_MODEL,
    .name = "wide",
    .summary = "A network with a required option",
    .fields = toy_wide_fields,
    .opts_size = sizeof(ToyWide),
    .ops.model = &toy_model_ops,
};

/* The same name as the model. */
static const KilnComponent toy_wide_transform = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "wide",
    .summary = "A transform of the same name",
    .ops.transform = &toy_transform_ops,
};

typedef struct ToyFlip {
    double p;
} ToyFlip;

static const KilnField toy_flip_fields[] = {
    KILN_FIELD_F64(ToyFlip, p, "0.5", 0.0, 1.0, "probability"),
    KILN_FIELD_END,
};

static const KilnComponent toy_flip = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "flip",
    .summary = "A transform",
    .fields = toy_flip_fields,
    .opts_size = sizeof(ToyFlip),
    .ops.transform = &toy_transform_ops,
};

typedef struct ToySgd {
    double lr;
    bool nesterov;
} ToySgd;

static const KilnField toy_sgd_fields[] = {
    KILN_FIELD_F64(ToySgd, lr, "${lr}", 0.0, 100.0, "learning rate"),
    KILN_FIELD_BOOL(ToySgd, nesterov, "false", "look ahead"),
    KILN_FIELD_END,
};

static const KilnComponent toy_sgd = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "sgd",
    .summary = "An optimizer",
    .fields = toy_sgd_fields,
    .opts_size = sizeof(ToySgd),
    .ops.optimizer = &toy_optimizer_ops,
};

typedef struct ToyTask {
    KilnInstance *model, *optimizer, *teacher;
    KilnInstance **transforms;
    size_t transforms_count;
    KilnInstance **hooks;
    size_t hooks_count;
    double smoothing;
} ToyTask;

static const KilnField toy_task_fields[] = {
    KILN_FIELD_COMPONENT(ToyTask, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(ToyTask, optimizer, KILN_KIND_OPTIMIZER, "{_target_: sgd, nesterov: true}",
                         "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(ToyTask, teacher, KILN_KIND_MODEL, "null", "another network"),
    KILN_FIELD_COMPONENT_LIST(ToyTask, transforms, KILN_KIND_TRANSFORM, "[]", "transforms"),
    KILN_FIELD_COMPONENT_MAP(ToyTask, hooks, KILN_KIND_CALLBACK, "{}", "callbacks"),
    KILN_FIELD_F64(ToyTask, smoothing, "0.0", 0.0, 1.0, "label smoothing"),
    KILN_FIELD_END,
};

static const KilnComponent toy_task = {
    .kind = KILN_KIND_MODULE,
    .name = "toy",
    .summary = "A task",
    .fields = toy_task_fields,
    .opts_size = sizeof(ToyTask),
    .ops.module = &toy_module_ops,
};

/* A model that holds a model: it can be told to contain itself. */
typedef struct ToyNest {
    KilnInstance *inner, *other;
} ToyNest;

static const KilnField toy_nest_fields[] = {
    KILN_FIELD_COMPONENT_OPT(ToyNest, inner, KILN_KIND_MODEL, "null", "a network within"),
    KILN_FIELD_COMPONENT_OPT(ToyNest, other, KILN_KIND_MODEL, "null", "another one"),
    KILN_FIELD_END,
};

static const KilnComponent toy_nest = {
    .kind = KILN_KIND_MODEL,
    .name = "nest",
    .summary = "A network of networks",
    .fields = toy_nest_fields,
    .opts_size = sizeof(ToyNest),
    .ops.model = &toy_model_ops,
};

static const KilnComponent *const toy_components[] = {
    &toy_all,  &toy_quiet, &toy_net,  &toy_wide, &toy_wide_transform,
    &toy_flip, &toy_sgd,   &toy_task, &toy_nest, NULL,
};

typedef struct ToyRoot {
    KilnInstance *task;
    KilnInstance **callbacks;
    size_t callbacks_count;
    int64_t seed;
} ToyRoot;

static const KilnField toy_root_fields[] = {
    KILN_FIELD_COMPONENT(ToyRoot, task, KILN_KIND_MODULE, NULL, "what is trained"),
    KILN_FIELD_COMPONENT_MAP(ToyRoot, callbacks, KILN_KIND_CALLBACK, "{}", "callbacks"),
    KILN_FIELD_I64(ToyRoot, seed, "42", 0, 1e15, "seed"),
    KILN_FIELD_END,
};

typedef struct ToyTrainer {
    int64_t max_epochs;
    char *precision;
} ToyTrainer;

static const KilnField toy_trainer_fields[] = {
    KILN_FIELD_I64(ToyTrainer, max_epochs, "10", -1, 1e9, "epochs"),
    KILN_FIELD_STR_OPT(ToyTrainer, precision, "null", "number format"),
    KILN_FIELD_END,
};

static const KilnSection toy_sections[] = {
    { .key = "",
      .fields = toy_root_fields,
      .size = sizeof(ToyRoot),
      .open = true,
      .summary = "the run" },
    { .key = "trainer",
      .fields = toy_trainer_fields,
      .size = sizeof(ToyTrainer),
      .summary = "the loop" },
    { .key = "kiln.run",
      .fields = toy_trainer_fields,
      .size = sizeof(ToyTrainer),
      .hidden = true,
      .summary = "the folder" },
    { .key = NULL },
};

static inline const KilnSection *toy_root(void)
{
    return toy_sections;
}

/* A registry of these and nothing else (kiln_registry_free). */
static inline KilnRegistry *toy_registry_new(void)
{
    KilnRegistry *registry = calloc(1, sizeof(*registry));
    KilnError err = { 0 };

    assert_non_null(registry);
    if (kiln_registry_add(registry, toy_components, &err) < 0)
        fail_msg("%s", err.text);
    return registry;
}

#endif
