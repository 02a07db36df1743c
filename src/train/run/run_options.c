/* The tables of the options at the root, of trainer.*, of lora.* and of kiln.run.*. */
#include "train/run/run_options.h"

#include "graph/backend.h"
#include "graph/passes/pass_list.h"
#include "kiln/sweep.h"

static const KilnField root_fields[] = {
    KILN_FIELD_COMPONENT(KilnRootOptions, task, KILN_KIND_MODULE, NULL, "what is trained"),
    KILN_FIELD_COMPONENT(KilnRootOptions, datamodule, KILN_KIND_DATAMODULE, NULL,
                         "what it is trained on"),
    KILN_FIELD_COMPONENT_MAP(KilnRootOptions, callbacks, KILN_KIND_CALLBACK, "{}",
                             "what happens besides training"),
    KILN_FIELD_COMPONENT_MAP(KilnRootOptions, logger, KILN_KIND_LOGGER, "{}",
                             "where metrics are written"),
    KILN_FIELD_I64(KilnRootOptions, seed, "1", 0, 9007199254740992.0,
                   "start of all random numbers"),
    KILN_FIELD_PATH_OPT(KilnRootOptions, ckpt_path, "null",
                        "checkpoint to resume from: a checkpoint or run folder, last or best"),
    KILN_FIELD_PATH_OPT(KilnRootOptions, weights, "null",
                        "weights to start from, of another run or program: a .safetensors file, a "
                        "checkpoint or run folder, last or best"),
    KILN_FIELD_BOOL(KilnRootOptions, weights_strict, "true",
                    "the file must have exactly the network's tensors; false: load those that "
                    "fit"),
    KILN_FIELD_PATH_MAP(
        KilnRootOptions, weights_of, "{}",
        "weights of parts of the network, after `weights`: a file, run or "
        "checkpoint by the beginning of the part's names (image_encoder: RUN; "
        "all: the whole network), and #PART after it for a part of that run; heads of another "
        "size stay as they are"),
    KILN_FIELD_BOOL(KilnRootOptions, test, "true", "test the best checkpoint after training"),
    KILN_FIELD_END,
};

enum { FIRST_PLAIN_ROOT_FIELD = 4 }; /* those before it are components */

static const KilnChoice passes[] = {
#define PASS(name, merges, summary) { #name, KILN_PASS_##name },
    KILN_PASS_TABLE(PASS)
#undef PASS
        { NULL, 0 },
};

static const KilnChoice convolutions[] = {
    { "auto", KILN_CONVOLUTION_AUTO },
    { "direct", KILN_CONVOLUTION_DIRECT },
    { NULL, 0 },
};

static const KilnChoice profilers[] = { { "simple", KILN_PROFILER_SIMPLE }, { NULL, 0 } };
/* Lightning's names; it takes 64 and 32 for the -true ones and bf16 for bf16-mixed, too. */
static const KilnChoice precisions[] = {
    { "32-true", KILN_PRECISION_32 },  { "32", KILN_PRECISION_32 },
    { "bf16-mixed", KILN_BF16_MIXED }, { "bf16", KILN_BF16_MIXED },
    { "bf16-true", KILN_BF16_TRUE },   { "64-true", KILN_PRECISION_64 },
    { "64", KILN_PRECISION_64 },       { NULL, 0 },
};
static const KilnChoice clips[] = {
    { "norm", KILN_CLIP_NORM },
    { "value", KILN_CLIP_VALUE },
    { NULL, 0 },
};

static const KilnChoice always[] = { { "true", 1 }, { NULL, 0 } };

enum { LIMIT = KILN_ALLOW_COUNT | KILN_ALLOW_FRACTION };

static const KilnField trainer_fields[] = {
    KILN_FIELD_COMPONENT(KilnTrainerOptions, strategy, KILN_KIND_STRATEGY, "single",
                         "how processes train together: single, alone; others are plugins"),
    KILN_FIELD_I64(KilnTrainerOptions, max_epochs, "10", -1, 1e9,
                   "epochs after which training ends; -1: no limit"),
    KILN_FIELD_I64(KilnTrainerOptions, max_steps, "-1", -1, 1e15,
                   "optimizer steps after which training ends; -1: no limit"),
    KILN_FIELD_I64_OPT(KilnTrainerOptions, min_epochs, "null", 0, 1e9,
                       "epochs before which no callback ends training"),
    KILN_FIELD_I64_OPT(KilnTrainerOptions, min_steps, "null", 0, 1e15,
                       "optimizer steps before which no callback ends training; also one whole "
                       "epoch"),
    KILN_FIELD_DURATION_OPT(KilnTrainerOptions, max_time, "null", 0, 1e9,
                            "time after which training ends, of this session: 90m, 00:12:00:00"),
    KILN_FIELD_QUANTITY(KilnTrainerOptions, limit_train_batches, "1.0", LIMIT,
                        "training batches an epoch: a count or a fraction; 1.0: all"),
    KILN_FIELD_QUANTITY(KilnTrainerOptions, limit_val_batches, "1.0", LIMIT,
                        "validation batches: a count or a fraction; 0: no validation"),
    KILN_FIELD_QUANTITY(KilnTrainerOptions, limit_test_batches, "1.0", LIMIT,
                        "test batches: a count or a fraction; 0: no test"),
    KILN_FIELD_QUANTITY(KilnTrainerOptions, limit_predict_batches, "1.0", LIMIT,
                        "batches that are predicted: a count or a fraction"),
    KILN_FIELD_QUANTITY(
        KilnTrainerOptions, overfit_batches, "0.0", LIMIT,
        "train and validate on so many batches, in the same order each epoch, to see "
        "that the network can learn them; 0: no"),
    KILN_FIELD_QUANTITY(KilnTrainerOptions, fast_dev_run, "false",
                        KILN_ALLOW_BOOL | KILN_ALLOW_COUNT,
                        "run so many batches of each loop (true: 1) to see that they work; no "
                        "loggers, checkpoints or early stopping"),
    KILN_FIELD_QUANTITY(
        KilnTrainerOptions, val_check_interval, "1.0", LIMIT | KILN_ALLOW_DURATION,
        "validate so often within an epoch: after a fraction of its batches, a count of "
        "batches, or a time"),
    KILN_FIELD_I64_OPT(KilnTrainerOptions, check_val_every_n_epoch, "1", 1, 1e9,
                       "validate in every n-th epoch; null: val_check_interval counts batches over "
                       "epochs"),
    KILN_FIELD_I64(KilnTrainerOptions, num_sanity_val_steps, "2", -1, 1e9,
                   "validation batches that are run before training, to see that they can be; -1: "
                   "all"),
    KILN_FIELD_I64(KilnTrainerOptions, log_every_n_steps, "50", 0, 1e9,
                   "steps between two rows of step values; 0: none"),
    KILN_FIELD_I64(KilnTrainerOptions, reload_dataloaders_every_n_epochs, "0", 0, 1e9,
                   "have the datamodule reload its data before every n-th epoch; 0: never"),
    KILN_FIELD_PATH(KilnTrainerOptions, default_root_dir, "outputs",
                    "folder for the folders of runs, kiln.run.dir"),
    KILN_FIELD_I64(KilnTrainerOptions, accumulate_grad_batches, "1", 1, 1e6,
                   "batches whose gradients, each divided by this, make one optimizer step; the "
                   "last step of an epoch may have fewer"),
    KILN_FIELD_BOOL(KilnTrainerOptions, enable_checkpointing, "true",
                    "save checkpoints; false: none, and callbacks that save are left out"),
    KILN_FIELD_BOOL(KilnTrainerOptions, enable_progress_bar, "true",
                    "false: callbacks that show progress are left out"),
    KILN_FIELD_BOOL(KilnTrainerOptions, enable_model_summary, "true",
                    "false: callbacks that show the network are left out"),
    KILN_FIELD_BOOL(KilnTrainerOptions, barebones, "false",
                    "the bare loop, to measure its cost: no loggers, log(), checkpoints, progress "
                    "bar, model summary or sanity check"),
    KILN_FIELD_ENUM(KilnTrainerOptions, accelerator, "auto", kiln_accelerators,
                    "what computes: the processor, which is all there is (auto, cpu)"),
    KILN_FIELD_ENUM(KilnTrainerOptions, deterministic, "true", always,
                    "the same bytes for the same seed and threads; it is always so"),
    KILN_FIELD_I64(KilnTrainerOptions, threads, "0", 0, 1024,
                   "threads that compute; 0: the cores that the process may use"),
    KILN_FIELD_I64(KilnTrainerOptions, num_workers, "1", 0, 256,
                   "threads that load data; 0: load between steps"),
    KILN_FIELD_ENUM(KilnTrainerOptions, convolution, "auto", convolutions,
                    "auto: Winograd where it is faster, with larger rounding; direct"),
    KILN_FIELD_ENUM_OPT(KilnTrainerOptions, profiler, "null", profilers,
                        "simple: print at the end how long each operation took; null: no profile"),
    KILN_FIELD_ENUM(
        KilnTrainerOptions, precision, "32-true", precisions,
        "bf16-mixed: products, convolutions and activations in bf16, parameters in f32; bf16-true: "
        "parameters and optimizer state kept as bf16, too; 64-true: everything in f64, slow"),
    KILN_FIELD_STR_LIST(KilnTrainerOptions, recompute, "[]",
                        "layers computed twice to save memory, by path: [layers.*]"),
    KILN_FIELD_ENUM_LIST(KilnTrainerOptions, passes_off, "[]", passes,
                         "passes over the step's graph to leave out, to look for a fault"),
    KILN_FIELD_SIZE(KilnTrainerOptions, plan_cache, "256MiB", 0, 1e15,
                    "memory for the plans of steps; an evicted plan is made again"),
    KILN_FIELD_F64_OPT(KilnTrainerOptions, gradient_clip_val, "null", 0.0, 1e9,
                       "gradients are clipped to this; null or 0: not at all"),
    KILN_FIELD_ENUM(KilnTrainerOptions, gradient_clip_algorithm, "norm", clips,
                    "norm: all gradients together are scaled down to that norm; value: each "
                    "element is limited"),
    KILN_FIELD_BOOL(KilnTrainerOptions, track_grad_norm, "false",
                    "log train/grad_norm, the norm of all gradients before clipping"),
    KILN_FIELD_BOOL(KilnTrainerOptions, detect_anomaly, "false",
                    "check every result of a step and name the operation that made the first NaN "
                    "or infinity; without fusion, about two times slower"),
    KILN_FIELD_END,
};

enum { FIRST_PLAIN_TRAINER_FIELD = 1 };

/* Names and meaning are peft's LoraConfig's. */
static const KilnField lora_fields[] = {
    KILN_FIELD_STR_LIST(KilnLoraOptions, targets, "[]",
                        "patterns of the weights of linear layers that get adapters, such as "
                        "['*.qkv.weight']; everything else is then frozen; empty: no adapters"),
    KILN_FIELD_I64_OPT(KilnLoraOptions, r, "null", 1, 65536,
                       "rank of the adapters; null: 8, or that of lora.weights"),
    KILN_FIELD_F64_OPT(KilnLoraOptions, alpha, "null", 0.0, 1e9,
                       "adapters are multiplied by alpha / r; null: 8, or that of lora.weights"),
    KILN_FIELD_F64(KilnLoraOptions, dropout, "0.0", 0.0, 0.99,
                   "dropout of what adapters read, in training"),
    KILN_FIELD_STR_LIST(KilnLoraOptions, train, "[]",
                        "patterns of parameters that train besides the adapters, such as a new "
                        "head: ['heads.*']"),
    KILN_FIELD_PATH_OPT(KilnLoraOptions, weights, "null",
                        "adapters to load: a folder with adapter_model.safetensors and "
                        "adapter_config.json, a checkpoint or run folder, last or best"),
    KILN_FIELD_END,
};

static const KilnField run_fields[] = {
    KILN_FIELD_PATH(KilnRunDirOptions, dir,
                    "${oc.select:trainer.default_root_dir,outputs}/${now:%Y-%m-%d}/${now:%H-%M-%S}",
                    "the run folder"),
    KILN_FIELD_END,
};

const KilnSection *kiln_run_sections(void)
{
    static const KilnSection sections[] = {
        {
            .key = "",
            .fields = root_fields,
            .size = sizeof(KilnRootOptions),
            .open = true,
            .summary = "The run",
        },
        {
            .key = "trainer",
            .fields = trainer_fields,
            .size = sizeof(KilnTrainerOptions),
            .summary = "How long and how to train",
        },
        {
            .key = "lora",
            .fields = lora_fields,
            .size = sizeof(KilnLoraOptions),
            .summary = "Adapters that train in place of the network",
        },
        {
            .key = "kiln.run",
            .fields = run_fields,
            .size = sizeof(KilnRunDirOptions),
            .hidden = true,
            .summary = "Where a run writes",
        },
        {
            .key = "kiln",
            .fields = kiln_own_fields,
            .size = sizeof(KilnOwnOptions),
            .open = true,
            .hidden = true,
            .summary = "How kiln runs jobs",
        },
        {
            .key = "kiln.needs",
            .fields = kiln_needs_fields,
            .size = sizeof(KilnJobNeeds),
            .hidden = true,
            .summary = "What a job of a sweep needs",
        },
        {
            .key = "kiln.sweep",
            .fields = kiln_sweep_fields,
            .size = sizeof(KilnSweepOptions),
            .open = true,
            .hidden = true,
            .summary = "Where a sweep writes",
        },
        {
            .key = "kiln.sweeper",
            .fields = kiln_rank_fields,
            .size = sizeof(KilnRankOptions),
            .open = true,
            .hidden = true,
            .summary = "What a sweep optimizes",
        },
        { .key = NULL },
    };

    return sections;
}

/* ---- Options that change others --------------------------------------------------------- */

static void turn_off_outputs(KilnOptions *options)
{
    options->logs = false;
    options->trainer->enable_checkpointing = false;
    options->trainer->num_sanity_val_steps = 0;
}

static void run_fast(KilnOptions *options)
{
    KilnTrainerOptions *trainer = options->trainer;
    const KilnQuantity n = trainer->fast_dev_run;

    turn_off_outputs(options);
    options->monitors = false;
    trainer->limit_train_batches = trainer->limit_val_batches = n;
    trainer->limit_test_batches = trainer->limit_predict_batches = n;
    trainer->max_steps = (int64_t)n.value;
    trainer->max_epochs = 1;
    trainer->val_check_interval = (KilnQuantity) { .of = KILN_QUANTITY_FRACTION, .value = 1.0 };
    if (trainer->check_val_every_n_epoch != NULL)
        *trainer->check_val_every_n_epoch = 1;
}

static KilnStatus strip(KilnOptions *options, KilnError *err)
{
    KilnTrainerOptions *trainer = options->trainer;
    const char *other = trainer->fast_dev_run.value > 0.0 ? "fast_dev_run"
                        : trainer->detect_anomaly         ? "detect_anomaly"
                        : trainer->profiler != NULL       ? "profiler"
                                                          : NULL;

    if (other != NULL)
        return kiln_error_set(err, KILN_E_RANGE,
                              "trainer.barebones=true: can't be combined with trainer.%s; remove "
                              "one of them",
                              other);
    turn_off_outputs(options);
    options->tracks = options->monitors = false;
    trainer->enable_progress_bar = trainer->enable_model_summary = false;
    trainer->log_every_n_steps = 0;
    return KILN_OK;
}

static KilnStatus apply(KilnOptions *options, KilnError *err)
{
    KilnTrainerOptions *trainer = options->trainer;

    options->logs = options->monitors = options->tracks = true;
    if (trainer->barebones && strip(options, err) < 0)
        return KILN_E_RANGE;
    if (trainer->fast_dev_run.value > 0.0)
        run_fast(options);
    if (trainer->overfit_batches.value > 0.0)
        trainer->limit_train_batches = trainer->limit_val_batches = trainer->overfit_batches;
    return KILN_OK;
}

/* ---- Reading ------------------------------------------------------------------------------ */

KilnStatus kiln_options_read(const KilnConfig *config, KilnOptions *ret, KilnError *err)
{
    KilnOptions options = { 0 };
    void *part = NULL;
    KilnStatus status = kiln_config_options(config, "", root_fields + FIRST_PLAIN_ROOT_FIELD,
                                            sizeof(KilnRootOptions), &part, err);

    if (status >= 0) {
        options.root = part;
        status = kiln_config_options(config, "trainer", trainer_fields + FIRST_PLAIN_TRAINER_FIELD,
                                     sizeof(KilnTrainerOptions), &part, err);
    }
    if (status >= 0) {
        options.trainer = part;
        status = kiln_config_options(config, "lora", lora_fields, sizeof(KilnLoraOptions), &part,
                                     err);
    }
    if (status >= 0) {
        options.lora = part;
        status = kiln_config_options(config, "kiln.run", run_fields, sizeof(KilnRunDirOptions),
                                     &part, err);
    }
    if (status >= 0) {
        options.run = part;
        status = apply(&options, err);
    }
    if (status < 0) {
        kiln_options_release(&options);
        return status;
    }
    *ret = options;
    return KILN_OK;
}

void kiln_options_release(KilnOptions *options)
{
    kiln_options_free(root_fields + FIRST_PLAIN_ROOT_FIELD, sizeof(KilnRootOptions), options->root);
    kiln_options_free(trainer_fields + FIRST_PLAIN_TRAINER_FIELD, sizeof(KilnTrainerOptions),
                      options->trainer);
    kiln_options_free(lora_fields, sizeof(KilnLoraOptions), options->lora);
    kiln_options_free(run_fields, sizeof(KilnRunDirOptions), options->run);
    *options = (KilnOptions) { 0 };
}
