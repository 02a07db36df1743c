/* Options tables of the root, of `trainer` and of `kiln.run`. */
#include "train/options.h"

#include "graph/passes/list.h"
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
                        "checkpoint to go on from: a checkpoint or run folder, last or best"),
    KILN_FIELD_BOOL(KilnRootOptions, test, "true", "test the best checkpoint after training"),
    KILN_FIELD_END,
};

enum { FIRST_PLAIN_ROOT_FIELD = 4 }; /* those before it are components */

static const KilnChoice passes[] = {
#define PASS(name, joins, summary) { #name, KILN_PASS_##name },
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
/* Lightning's names; it takes 32 for 32-true and bf16 for bf16-mixed, too. */
static const KilnChoice precisions[] = {
    { "32-true", KILN_PRECISION_32 },  { "32", KILN_PRECISION_32 },
    { "bf16-mixed", KILN_BF16_MIXED }, { "bf16", KILN_BF16_MIXED },
    { "bf16-true", KILN_BF16_TRUE },   { NULL, 0 },
};
static const KilnChoice clips[] = {
    { "norm", KILN_CLIP_NORM },
    { "value", KILN_CLIP_VALUE },
    { NULL, 0 },
};

static const KilnField trainer_fields[] = {
    KILN_FIELD_I64(KilnTrainerOptions, max_epochs, "10", -1, 1e9,
                   "epochs after which training ends; -1: no limit"),
    KILN_FIELD_I64(KilnTrainerOptions, max_steps, "-1", -1, 1e15,
                   "optimizer steps after which training ends; -1: no limit"),
    KILN_FIELD_I64(KilnTrainerOptions, limit_train_batches, "-1", -1, 1e12,
                   "training batches an epoch; -1: all"),
    KILN_FIELD_I64(KilnTrainerOptions, limit_val_batches, "-1", -1, 1e12,
                   "validation batches; 0: no validation; -1: all"),
    KILN_FIELD_I64(KilnTrainerOptions, limit_test_batches, "-1", -1, 1e12,
                   "test batches; 0: no test; -1: all"),
    KILN_FIELD_I64(KilnTrainerOptions, check_val_every_n_epoch, "1", 1, 1e9,
                   "validate after every n-th epoch"),
    KILN_FIELD_I64(KilnTrainerOptions, log_every_n_steps, "50", 1, 1e9,
                   "steps between two rows of step values"),
    KILN_FIELD_I64(KilnTrainerOptions, threads, "0", 0, 1024,
                   "threads that compute; 0: the cores that the process may use"),
    KILN_FIELD_I64(KilnTrainerOptions, num_workers, "1", 0, 256,
                   "threads that load data; 0: load between steps"),
    KILN_FIELD_ENUM(KilnTrainerOptions, convolution, "auto", convolutions,
                    "auto: Winograd where it is faster, with larger rounding; direct"),
    KILN_FIELD_ENUM_OPT(KilnTrainerOptions, profiler, "null", profilers,
                        "simple: tell at the end which operations took how long; null"),
    KILN_FIELD_ENUM(
        KilnTrainerOptions, precision, "32-true", precisions,
        "bf16-mixed: products, convolutions and activations in bf16, parameters in f32; bf16-true: "
        "parameters and optimizer state kept as bf16, too"),
    KILN_FIELD_STR_LIST(KilnTrainerOptions, recompute, "[]",
                        "layers computed twice to save memory, by path: [layers.*]"),
    KILN_FIELD_ENUM_LIST(KilnTrainerOptions, passes_off, "[]", passes,
                         "passes over the step's graph to leave out, to look for a fault"),
    KILN_FIELD_F64(KilnTrainerOptions, gradient_clip_val, "0.0", 0.0, 1e9,
                   "gradients are clipped to this; 0: not at all"),
    KILN_FIELD_ENUM(KilnTrainerOptions, gradient_clip_algorithm, "norm", clips,
                    "norm: all gradients together are scaled down to that norm; value: each "
                    "element is limited"),
    KILN_FIELD_BOOL(KilnTrainerOptions, track_grad_norm, "false",
                    "log train/grad_norm, the norm of all gradients before clipping"),
    KILN_FIELD_BOOL(KilnTrainerOptions, detect_anomaly, "false",
                    "look at every result of a step and name the operation that made the first "
                    "NaN or infinity; without fusion, and some two times slower"),
    KILN_FIELD_END,
};

static const KilnField run_fields[] = {
    KILN_FIELD_PATH(KilnRunDirOptions, dir, "outputs/${now:%Y-%m-%d}/${now:%H-%M-%S}",
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
            .summary = "What is run",
        },
        {
            .key = "trainer",
            .fields = trainer_fields,
            .size = sizeof(KilnTrainerOptions),
            .summary = "How long and how to train",
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
            .summary = "What a sweep is after",
        },
        { .key = NULL },
    };

    return sections;
}

KilnStatus kiln_options_read(const KilnConfig *config, KilnOptions *ret, KilnError *err)
{
    KilnOptions options = { 0 };
    void *part = NULL;
    KilnStatus status = kiln_config_options(config, "", root_fields + FIRST_PLAIN_ROOT_FIELD,
                                            sizeof(KilnRootOptions), &part, err);

    if (status >= 0) {
        options.root = part;
        status = kiln_config_options(config, "trainer", trainer_fields, sizeof(KilnTrainerOptions),
                                     &part, err);
    }
    if (status >= 0) {
        options.trainer = part;
        status = kiln_config_options(config, "kiln.run", run_fields, sizeof(KilnRunDirOptions),
                                     &part, err);
    }
    if (status < 0) {
        kiln_options_release(&options);
        return status;
    }
    options.run = part;
    *ret = options;
    return KILN_OK;
}

void kiln_options_release(KilnOptions *options)
{
    kiln_options_free(root_fields + FIRST_PLAIN_ROOT_FIELD, sizeof(KilnRootOptions), options->root);
    kiln_options_free(trainer_fields, sizeof(KilnTrainerOptions), options->trainer);
    kiln_options_free(run_fields, sizeof(KilnRunDirOptions), options->run);
    *options = (KilnOptions) { 0 };
}
