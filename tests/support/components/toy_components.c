#include "tests/support/components/toy_components.h"

#include <math.h>
#include <stdlib.h>

const KilnChoice toy_modes[] = { { "min", 1 }, { "max", -7 }, { NULL, 0 } };

const KilnField toy_all_fields[] = {
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

static const KilnField toy_pad_fields[] = {
    KILN_FIELD_I64(ToyPad, left, "1", 0, 9, "zeros before"),
    KILN_FIELD_I64_OPT(ToyPad, right, "null", 0, 9, "zeros after"),
    KILN_FIELD_END,
};

static const KilnField toy_window_fields[] = {
    KILN_FIELD_I64(ToyWindow, length, "8", 1, 99, "samples"),
    KILN_FIELD_STR_OPT(ToyWindow, shape, "null", "name of the curve"),
    KILN_FIELD_STRUCT(ToyWindow, pad, ToyPad, toy_pad_fields, "zeros around"),
    KILN_FIELD_RENAMED("size", "length", "since 0.2"),
    KILN_FIELD_END,
};

static const KilnField toy_stage_fields[] = {
    KILN_FIELD_STR(ToyStage, name, NULL, "what it is called"),
    KILN_FIELD_I64(ToyStage, width, "16", 1, 99, "features"),
    KILN_FIELD_STRUCT_LIST_OPT(ToyStage, pads, ToyPad, toy_pad_fields, "null", "zeros"),
    KILN_FIELD_COMPONENT_OPT(ToyStage, filter, KILN_KIND_TRANSFORM, "null", "a filter"),
    KILN_FIELD_RENAMED("title", "name", "since 0.2"),
    KILN_FIELD_END,
};

const KilnField toy_rich_fields[] = {
    KILN_FIELD_BOOL_OPT(ToyRich, maybe_flag, "null", "a flag"),
    KILN_FIELD_I64_OPT(ToyRich, maybe_count, "null", 0, 10, "a count"),
    KILN_FIELD_F64_OPT(ToyRich, maybe_rate, "0.5", 0.0, 1.0, "a rate"),
    KILN_FIELD_ENUM_OPT(ToyRich, maybe_mode, "null", toy_modes, "a mode"),
    KILN_FIELD_DURATION(ToyRich, timeout, "90s", 0.0, 3600.0, "a time"),
    KILN_FIELD_DURATION_OPT(ToyRich, maybe_timeout, "null", 0.0, 3600.0, "a time"),
    KILN_FIELD_SIZE(ToyRich, limit, "64MiB", 1, 1e12, "a size"),
    KILN_FIELD_SIZE_OPT(ToyRich, maybe_limit, "null", 1, 1e12, "a size"),
    KILN_FIELD_BOOL_LIST(ToyRich, flags, "[true, false]", "flags"),
    KILN_FIELD_PATH_LIST(ToyRich, paths, "[]", "files"),
    KILN_FIELD_ENUM_LIST(ToyRich, modes, "[max]", toy_modes, "modes"),
    KILN_FIELD_DURATION_LIST(ToyRich, timeouts, "[1s, 2m]", 0.0, 3600.0, "times"),
    KILN_FIELD_SIZE_LIST(ToyRich, limits, "[1KiB]", 1, 1e12, "sizes"),
    KILN_FIELD_I64_LIST_OPT(ToyRich, chosen, "null", 0, 10, "some, or all"),
    KILN_FIELD_BOOL_MAP(ToyRich, switches, "{}", "switches"),
    KILN_FIELD_I64_MAP(ToyRich, counts, "{one: 1, two: 2}", 0, 10, "counts"),
    KILN_FIELD_F64_MAP(ToyRich, rates, "{}", 0.0, 1.0, "rates"),
    KILN_FIELD_STR_MAP(ToyRich, labels, "{}", "labels"),
    KILN_FIELD_STR_MAP_OPT(ToyRich, env, "null", "variables"),
    KILN_FIELD_ENUM_MAP(ToyRich, map_modes, "{}", toy_modes, "modes"),
    KILN_FIELD_STRUCT(ToyRich, window, ToyWindow, toy_window_fields, "a window"),
    KILN_FIELD_STRUCT_OPT(ToyRich, extra, ToyWindow, toy_window_fields, "null", "another"),
    KILN_FIELD_STRUCT_LIST(ToyRich, stages, ToyStage, toy_stage_fields, "[]", "stages"),
    KILN_FIELD_STRUCT_MAP(ToyRich, named, ToyStagePair, toy_stage_fields, "{}", "named stages"),
    KILN_FIELD_COMPONENT_LIST_OPT(ToyRich, filters, KILN_KIND_TRANSFORM, "null", "filters"),
    KILN_FIELD_RENAMED("time_limit", "timeout", "it may be longer than a day"),
    KILN_FIELD_RENAMED("span", "window.length", "since 0.3"),
    KILN_FIELD_END,
};

static KilnStatus open_log(KilnInstance *self, const KilnLogRun *run, KilnError *err)
{
    (void)self;
    (void)run;
    (void)err;
    return KILN_OK;
}

static KilnStatus log_metrics(KilnInstance *self, const KilnLogRow *row, KilnError *err)
{
    (void)self;
    (void)row;
    (void)err;
    return KILN_OK;
}

static const KilnLoggerOps toy_logger_ops = { .open = open_log, .log_metrics = log_metrics };

static const KilnCallbackOps toy_callback_ops = { 0 };

static const KilnTensorSpec toy_takes[] = {
    { .name = "x", .content = KILN_IMAGE | KILN_VECTOR, .dtype = KILN_F32 },
};

static const KilnTensorSpec toy_gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};

static const KilnSignature toy_signature = KILN_SIGNATURE(toy_takes, toy_gives);

static KilnStatus set_up_model(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                               KilnError *err)
{
    (void)self;
    (void)scope;
    (void)io;
    (void)err;
    return KILN_OK;
}

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    (void)self;
    (void)step;
    (void)inputs;
    (void)outputs;
}

const KilnModelOps toy_model_ops = {
    .signature = &toy_signature,
    .setup = set_up_model,
    .forward = forward,
};

static KilnStatus set_up_module(KilnInstance *self, const KilnScope *scope,
                                const KilnDataSpec *data, KilnError *err)
{
    (void)self;
    (void)scope;
    (void)data;
    (void)err;
    return KILN_OK;
}

static KilnTensor *training_step(KilnInstance *self, KilnStep *step)
{
    (void)self;
    (void)step;
    return NULL;
}

static const KilnModuleOps toy_module_ops = {
    .setup = set_up_module,
    .training_step = training_step,
};

static void update(const KilnInstance *self, const KilnFlat *flat)
{
    (void)self;
    (void)flat;
}

static const KilnOptimizerOps toy_optimizer_ops = { .update = update };

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    (void)self;
    (void)image;
    (void)scratch;
    (void)rng;
    (void)training;
    (void)err;
    return KILN_OK;
}

static const KilnTransformOps toy_transform_ops = { .apply = apply };

static const KilnComponent toy_all = {
    .kind = KILN_KIND_CALLBACK,
    .name = "all",
    .summary = "Every type of option",
    KILN_FIELDS(toy_all_fields),
    .opts_size = sizeof(ToyAll),
    .ops.callback = &toy_callback_ops,
};

static const KilnComponent toy_quiet = {
    .kind = KILN_KIND_CALLBACK,
    .name = "quiet",
    .summary = "No options",
    .ops.callback = &toy_callback_ops,
};

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

const KilnComponent toy_net = {
    .kind = KILN_KIND_MODEL,
    .name = "net",
    .summary = "A network",
    KILN_FIELDS(toy_net_fields),
    .opts_size = sizeof(ToyNet),
    .state_size = 16,
    .init = toy_net_init,
    .ops.model = &toy_model_ops,
};

const KilnField toy_wide_fields[] = {
    KILN_FIELD_I64(ToyWide, width, NULL, 1, 100, "features"),
    KILN_FIELD_STR(ToyWide, name, "wide", "a name"),
    KILN_FIELD_END,
};

const KilnComponent toy_wide = {
    .kind = KILN_KIND_MODEL,
    .name = "wide",
    .summary = "A network with a required option",
    KILN_FIELDS(toy_wide_fields),
    .opts_size = sizeof(ToyWide),
    .ops.model = &toy_model_ops,
};

const KilnComponent toy_wide_transform = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "wide",
    .summary = "A transform of the same name",
    .ops.transform = &toy_transform_ops,
};

static const KilnField toy_flip_fields[] = {
    KILN_FIELD_F64(ToyFlip, p, "0.5", 0.0, 1.0, "probability"),
    KILN_FIELD_END,
};

const KilnComponent toy_flip = {
    .kind = KILN_KIND_TRANSFORM,
    .name = "flip",
    .summary = "A transform",
    KILN_FIELDS(toy_flip_fields),
    .opts_size = sizeof(ToyFlip),
    .ops.transform = &toy_transform_ops,
};

static const KilnField toy_sgd_fields[] = {
    KILN_FIELD_F64(ToySgd, lr, "${lr}", 0.0, 100.0, "learning rate"),
    KILN_FIELD_BOOL(ToySgd, nesterov, "false", "look ahead"),
    KILN_FIELD_END,
};

static const KilnComponent toy_sgd = {
    .kind = KILN_KIND_OPTIMIZER,
    .name = "sgd",
    .summary = "An optimizer",
    KILN_FIELDS(toy_sgd_fields),
    .opts_size = sizeof(ToySgd),
    .ops.optimizer = &toy_optimizer_ops,
};

const KilnField toy_task_fields[] = {
    KILN_FIELD_COMPONENT(ToyTask, model, KILN_KIND_MODEL, "${model}", "the network"),
    KILN_FIELD_COMPONENT(ToyTask, optimizer, KILN_KIND_OPTIMIZER, "{_target_: sgd, nesterov: true}",
                         "the optimizer"),
    KILN_FIELD_COMPONENT_OPT(ToyTask, teacher, KILN_KIND_MODEL, "null", "another network"),
    KILN_FIELD_COMPONENT_LIST(ToyTask, transforms, KILN_KIND_TRANSFORM, "[]", "transforms"),
    KILN_FIELD_COMPONENT_MAP(ToyTask, hooks, KILN_KIND_CALLBACK, "{}", "callbacks"),
    KILN_FIELD_F64(ToyTask, smoothing, "0.0", 0.0, 1.0, "label smoothing"),
    KILN_FIELD_END,
};

const KilnComponent toy_task = {
    .kind = KILN_KIND_MODULE,
    .name = "toy",
    .summary = "A task",
    KILN_FIELDS(toy_task_fields),
    .opts_size = sizeof(ToyTask),
    .ops.module = &toy_module_ops,
};

static const KilnField toy_nest_fields[] = {
    KILN_FIELD_COMPONENT_OPT(ToyNest, inner, KILN_KIND_MODEL, "null", "a network within"),
    KILN_FIELD_COMPONENT_OPT(ToyNest, other, KILN_KIND_MODEL, "null", "another one"),
    KILN_FIELD_END,
};

static const KilnComponent toy_nest = {
    .kind = KILN_KIND_MODEL,
    .name = "nest",
    .summary = "A network of networks",
    KILN_FIELDS(toy_nest_fields),
    .opts_size = sizeof(ToyNest),
    .ops.model = &toy_model_ops,
};

/* Windows must not be longer than the count, when there is one. */
static KilnStatus toy_rich_check(const void *options, const char **ret_option, KilnError *err)
{
    const ToyRich *opts = options;

    if (opts->maybe_count == NULL || opts->window.length <= *opts->maybe_count)
        return KILN_OK;
    *ret_option = "window.length";
    return kiln_error_set(err, KILN_E_RANGE, "%lld is more than maybe_count, %lld",
                          (long long)opts->window.length, (long long)*opts->maybe_count);
}

static const KilnComponent toy_rich = {
    .kind = KILN_KIND_LOGGER,
    .name = "rich",
    .summary = "Every shape of option",
    KILN_FIELDS(toy_rich_fields),
    .opts_size = sizeof(ToyRich),
    .check = toy_rich_check,
    .ops.logger = &toy_logger_ops,
};

const KilnComponent *const toy_components[] = {
    &toy_all,  &toy_quiet, &toy_net,  &toy_wide, &toy_wide_transform, &toy_flip, &toy_sgd,
    &toy_task, &toy_nest,  &toy_rich, NULL,
};

const KilnField toy_root_fields[] = {
    KILN_FIELD_COMPONENT(ToyRoot, task, KILN_KIND_MODULE, NULL, "what is trained"),
    KILN_FIELD_COMPONENT_MAP(ToyRoot, callbacks, KILN_KIND_CALLBACK, "{}", "callbacks"),
    KILN_FIELD_COMPONENT_MAP(ToyRoot, logger, KILN_KIND_LOGGER, "{}", "loggers"),
    KILN_FIELD_I64(ToyRoot, seed, "42", 0, 1e15, "seed"),
    KILN_FIELD_END,
};

const KilnField toy_trainer_fields[] = {
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

const KilnSection *toy_root(void)
{
    return toy_sections;
}

KilnRegistry *toy_registry_new(void)
{
    KilnRegistry *registry = calloc(1, sizeof(*registry));
    KilnError err = { 0 };

    assert_non_null(registry);
    if (kiln_registry_insert(registry, toy_components, &err) < 0)
        fail_msg("%s", err.text);
    return registry;
}
