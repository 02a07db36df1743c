/* The table of kinds that `kiln plugin new` knows. */
#include "cli/plugin/new_kinds.h"

#include <string.h>

/* A run of the default task, in less than a second. */
#define DIGITS "datamodule.train_count=64 datamodule.val_count=32 datamodule.test_count=32"
#define SMALL "model=mlp model.hidden=[16] " DIGITS
#define RATES "lr=0.01,0.1"
/* Two grey images of 8 x 8 pixels. */
#define IMAGES                                                                                     \
    "for folder in train/a train/b val/a val/b test/a test/b; do\n"                                \
    "    mkdir -p \"$out/images/$folder\"\n"                                                       \
    "    case $folder in\n"                                                                        \
    "        */a) image="                                                                          \
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAI0lEQVR4nGNggAE5KGCwgQKGKChgqIAChmlQwLAFCh"   \
    "guQQEATwYaQSNSAQ4AAAAASUVORK5CYII= ;;\n"                                                      \
    "        */b) image="                                                                          \
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAAFElEQVR4nGNgkLOJqpi25RIDZQwAihUaQUzX9bkAAAAA" \
    "SUVORK5CYII= ;;\n"                                                                            \
    "    esac\n"                                                                                   \
    "    for i in 1 2 3 4; do echo $image | base64 -d >\"$out/images/$folder/$i.png\"; done\n"     \
    "done\n"
#define TEXTS                                                                                      \
    "echo text,label >\"$out/texts.csv\"\n"                                                        \
    "for i in 1 2 3 4 5 6 7 8; do\n"                                                               \
    "    printf 'a good one %d,yes\\na bad one %d,no\\n' $i $i >>\"$out/texts.csv\"\n"             \
    "done\n"
#define LINES                                                                                      \
    "for i in 1 2 3 4 5 6 7 8; do printf '0 0.%d 0.1\\n1 2.%d 1.9\\n' $i $i "                      \
    ">>\"$out/train.txt\"; done\n"                                                                 \
    "printf '0 0.3 0.2\\n1 2.1 1.8\\n' >\"$out/val.txt\"\n"

static const KilnNewKind kinds[] = {
    { .name = "callback",
      .kind = KILN_KIND_CALLBACK,
      .page = "components.md",
      .select = "callbacks=%",
      .vary = "callbacks.%.value=0.1,5",
      .rest = SMALL },
    { .name = "datamodule",
      .kind = KILN_KIND_DATAMODULE,
      .page = "components/data.md",
      .select = "datamodule=% task=classification model=mlp",
      .vary = "datamodule.gap=0.1,0.3",
      .rest = "datamodule.count=128 model.hidden=[16]" },
    { .name = "file_datamodule",
      .kind = KILN_KIND_DATAMODULE,
      .page = "components/data.md#files",
      .select = "datamodule=% task=classification model=linear",
      .vary = "lr=0.01,0.1",
      .rest = "datamodule.root=\"$out\"",
      .before = LINES },
    { .name = "transform",
      .kind = KILN_KIND_TRANSFORM,
      .page = "components/data.md#a-transform",
      .select = "+datamodule/transforms=% datamodule=image_folder",
      .vary = "datamodule.transforms.0.p=0,1",
      .rest = "datamodule.root=\"$out/images\" model=linear",
      .before = IMAGES },
    { .name = "sampler",
      .kind = KILN_KIND_SAMPLER,
      .page = "components/data.md#a-sampler",
      .select = "+datamodule/sampler=%",
      .vary = "datamodule.sampler.share=0.5,2",
      .rest = SMALL },
    { .name = "batch_transform",
      .kind = KILN_KIND_BATCH_TRANSFORM,
      .page = "components/data.md#a-batch-transform",
      .select = "+datamodule/batch_transforms=%",
      .vary = "datamodule.batch_transforms.0.sigma=0.01,0.1",
      .rest = SMALL },
    { .name = "module",
      .kind = KILN_KIND_MODULE,
      .page = "components/models.md#a-module",
      .select = "task=%",
      .vary = "task.margin=0.5,1",
      .rest = SMALL },
    { .name = "model",
      .kind = KILN_KIND_MODEL,
      .page = "components/models.md#a-model",
      .select = "model=%",
      .vary = "model.width=16,32",
      .rest = DIGITS },
    { .name = "loss",
      .kind = KILN_KIND_LOSS,
      .page = "components/models.md#a-loss",
      .select = "+task/loss=%",
      .vary = "task.loss.smoothing=0,0.1",
      .rest = SMALL },
    { .name = "metric",
      .kind = KILN_KIND_METRIC,
      .page = "components/models.md#a-metric",
      .select = "+task/metrics=%",
      .vary = "task.metrics.%.most=1,10",
      .rest = SMALL },
    { .name = "operation",
      .kind = KILN_KIND_MODEL,
      .page = "components/models.md#an-operation",
      .select = "model=%",
      .vary = "model.slope=0.5,1",
      .rest = DIGITS },
    { .name = "optimizer",
      .kind = KILN_KIND_OPTIMIZER,
      .page = "components/training.md#an-optimizer",
      .select = "optimizer=%",
      .vary = "optimizer.momentum=0.5,0.9",
      .rest = SMALL },
    { .name = "scheduler",
      .kind = KILN_KIND_SCHEDULER,
      .page = "components/training.md#a-scheduler",
      .select = "scheduler=%",
      .vary = "scheduler.share=0.2,0.5",
      .rest = SMALL },
    { .name = "logger",
      .kind = KILN_KIND_LOGGER,
      .page = "components/training.md#a-logger",
      .select = "logger=[csv,%]",
      .vary = "logger.%.digits=3,9",
      .rest = SMALL },
    { .name = "strategy",
      .kind = KILN_KIND_STRATEGY,
      .page = "components/training.md#a-strategy",
      .select = "+trainer/strategy=%",
      .vary = "trainer.strategy.timeout=30s,60s",
      .rest = SMALL,
      .after = "for rank in 0 1; do\n"
               "    RANK=$rank WORLD_SIZE=2 \"$train\" --plugin ./%.so +trainer/strategy=% " SMALL
               " \\\n        batch_size=16 trainer.max_epochs=1 "
               "trainer.strategy.path=\"$out/ranks.shared\" \\\n"
               "        kiln.run.dir=\"$out/ranks\" &\n"
               "done\n"
               "wait\n"
               "test -f \"$out/ranks/summary.json\"\n" },
    { .name = "sweeper",
      .kind = KILN_KIND_SWEEPER,
      .page = "components/sweeps.md",
      .select = "kiln/sweeper=%",
      .vary = "kiln.sweeper.trials=3 'lr=interval(0.01,0.1)'",
      .rest = SMALL },
    { .name = "pruner",
      .kind = KILN_KIND_PRUNER,
      .page = "components/sweeps.md#a-pruner",
      .select = "kiln/pruner=%",
      .vary = RATES,
      .rest = SMALL },
    { .name = "launcher",
      .kind = KILN_KIND_LAUNCHER,
      .page = "components/sweeps.md#a-launcher",
      .select = "kiln/launcher=%",
      .vary = RATES,
      .rest = SMALL },
    { .name = "tokenizer",
      .kind = KILN_KIND_TOKENIZER,
      .page = "components/text.md",
      .select = "+tokenizer@datamodule.tokenizer=% datamodule=labeled_text task=classification "
                "model=bag_of_tokens",
      .vary = "datamodule.tokenizer.vocab_size=5,10",
      .rest =
          "datamodule.files.train=[\"$out/texts.csv\"] datamodule.files.val=[\"$out/texts.csv\"] "
          "datamodule.files.test=[\"$out/texts.csv\"]",
      .before = TEXTS },
};

const KilnNewKind *kiln_new_kind_at(size_t i)
{
    return i < KILN_COUNT(kinds) ? &kinds[i] : NULL;
}

const KilnNewKind *kiln_new_kind_find(const char *word)
{
    if (strcmp(word, "task") == 0) /* as its config group is called */
        word = "module";
    for (size_t i = 0; i < KILN_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, word) == 0)
            return &kinds[i];
    return NULL;
}
