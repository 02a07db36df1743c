"""kiln import-hydra: a tree of Hydra and Lightning becomes one that composes and trains, with its comments; the tables
of classes agree with kiln's components and with docs/lightning.md."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re
import shutil
import subprocess

from kilntest import BUILD, ROOT, TINY, Case, main, read

TREE = os.path.join(ROOT, "tests/data/hydra")
SMALL = ["datamodule=digits", "model=mlp", "datamodule.train_count=64", "datamodule.val_count=64", "datamodule.test_count=64",
         "trainer.max_steps=2", "trainer.threads=1", "trainer.precision=32-true"]


def tree(folder):
    return {os.path.relpath(os.path.join(at, name), folder): read(os.path.join(at, name), "r")
            for at, _, names in os.walk(folder) for name in names}


class Import(Case):
    maxDiff = None

    def convert(self, *words, source=TREE, status=0):
        shutil.copytree(source, self.path("hydra"), dirs_exist_ok=True)
        out, _ = self.run_kiln("import-hydra", "hydra", *words, program="kiln", status=status)
        return re.sub(r"\s+", " ", out)

    def test_report(self):
        out = self.convert()
        for text in [
                "hydra/model/optimizer/adamw.yaml:1 AdamW (torch) optimizer/adamw",
                "hydra/callbacks/default.yaml:2 ModelCheckpoint (lightning) callback/model_checkpoint",
                "hydra/model/net/resnet.yaml:2 resnet50 (torchvision) model/resnet",
                "hydra/callbacks/default.yaml:3 dirpath: left out: checkpoints are in the run folder's checkpoints/",
                "hydra/callbacks/default.yaml:4 monitor: val_acc is val/acc here",
                "hydra/trainer/default.yaml:7 precision: 16-mixed became bf16-mixed",
                "hydra/data/birds.yaml:1 birds.data.BirdData: your data: `kiln new FILE` writes",
                "hydra/model/optimizer/radam.yaml:1 torch.optim.RAdam: the nearest is optimizer/adamw",
                "hydra/model/gan.yaml:8 torch.optim.Adam: kiln's task has one optimizer",
                "val/acc metric/accuracy, as task.metrics.acc",
                "wrote conf: 23 files from 19"]:
            self.assertIn(text, out)
        self.assertNotIn("still wrong", out)
        self.assertTrue(out.endswith("train -cn train datamodule=digits "), out[-200:])

    def test_files(self):
        self.convert()
        conf = tree(self.path("conf"))
        self.assertEqual(conf["optimizer/adamw.yaml"], """\
_target_: optimizer/adamw
lr: 3e-4
weight_decay: 0.05  # decoupled
# foreach: null
# maximize: false
""")
        self.assertEqual(conf["model/resnet.yaml"], """\
_target_: model/resnet
depth: 50
stem: large
# num_classes: ${model.num_classes}
# weights: IMAGENET1K_V2
""")
        self.assertEqual(conf["scheduler/classifier.yaml"], """\
_target_: scheduler/cosine
# T_max: ${trainer.max_epochs}
min_factor: "${eval: 1e-5 / ${optimizer.lr}}"
# interval: epoch
# frequency: 1
""")
        self.assertEqual(conf["datamodule/folder.yaml"], """\
# torchvision's own data set behind a loader.
_target_: datamodule/image_folder
batch_size: 16
# shuffle: true
# num_workers: 2
root: ${paths.data}/birds
transforms:
  - _target_: transform/random_resized_crop
    size: 224
    scale: [0.3, 1.0]
  - _target_: transform/flip  # mirror
  - _target_: transform/rotation
    degrees: 15
    interpolation: bilinear
  # - _target_: torchvision.transforms.ToTensor
  # of ImageNet
  - _target_: transform/normalize
    mean: [0.485, 0.456, 0.406]
    std: [0.229, 0.224, 0.225]
""")
        self.assertEqual(conf["callbacks/default.yaml"], """\
model_checkpoint:
  _target_: callback/model_checkpoint
  # dirpath: ${paths.output}/checkpoints
  monitor: val/acc
  mode: max
  train_time_interval: 1h30m
early_stopping:
  _target_: callback/early_stopping
  monitor: val/f1
  mode: ${..model_checkpoint.mode}
  patience: ${patience}  # epochs

ema:
  _target_: callback/ema
  decay: 0.999
upload: null
  # _target_: birds.callbacks.Upload
  # bucket: s3://birds
""")
        self.assertEqual(conf["experiment/long.yaml"], """\
# @package _global_

defaults:
  - override /datamodule: folder
  - override /model: small
  - override /logger: csv

trainer:
  max_epochs: 90  # three times as long
  # benchmark: true

# task:
#   num_classes: 5
optimizer:
  lr: 1e-3

datamodule:
  batch_size: 64
""")
        self.assertEqual(conf["search/optuna.yaml"], """\
# @package _global_
defaults:
  - override /hydra/sweeper: tpe

hydra:
  sweeper:
    _target_: sweeper/random
    metric: val/acc
    mode: max
    n_trials: 12
    # n_jobs: 2
    seed: 7
    params:
      optimizer.lr: tag(log, interval(1e-5, 1e-2))
      datamodule.batch_size: choice(16, 32)
      # model.num_classes: choice(2, 3)
""")
        self.assertIn("  - callbacks: [default, default_trainer]  # checkpoints and early stopping\n", conf["train.yaml"])
        self.assertIn("\n  # recipes\n  - experiment: null\n", conf["train.yaml"])
        self.assertTrue(conf["extras/default.yaml"].startswith("# @package notes.extras\n"))

    def test_trains(self):
        self.convert()
        self.run_kiln("-cn", "train", *SMALL, "kiln.run.dir=one")
        config = read(self.path("one/.kiln/config.yaml"), "r")
        for text in ["_target_: optimizer/adamw", "lr: 0.0003", "_target_: scheduler/cosine", "label_smoothing: 0.1",
                     "_target_: callback/timer", "patience: 7"]:
            self.assertIn(text, config)
        self.assertIn("val/f1", read(self.path("one/summary.json"), "r"))
        out, _ = self.run_kiln("-cn", "train", "search=optuna", *SMALL, "-m", "--plan")
        self.assertEqual(len(re.findall(r"(?m)^#\d+ : optimizer.lr=.* datamodule.batch_size=", out)), 12, out)
        out, _ = self.run_kiln("-cn", "train", "experiment=long", "--cfg", "job", "--resolve")
        self.assertRegex(out, r"min_factor: 0\.01\n")
        self.assertIn("root: data/birds", out)

    def test_the_command_that_it_prints_trains(self):
        self.write("hydra/config.yaml", "defaults:\n  - model: lit\n  - data: mine\n  - trainer: cpu\n")
        self.write("hydra/model/lit.yaml", "_target_: my.LitNet\noptimizer: {_target_: torch.optim.SGD, lr: 0.1}\n"
                                           "net: {_target_: my.Net}\n")
        self.write("hydra/data/mine.yaml", "_target_: my.Data\nbatch_size: 8\n")
        self.write("hydra/trainer/cpu.yaml", "_target_: lightning.Trainer\naccelerator: cpu\nmax_epochs: null\n")
        out, _ = self.run_kiln("import-hydra", "hydra", program="kiln")
        line = out.rstrip().split("\n")[-1].split()
        self.assertEqual(line, ["train", "datamodule=digits", "model=mlp"])
        self.run_kiln(*line[1:], "datamodule.train_count=32", "datamodule.val_count=8", "datamodule.test_count=8",
                      "trainer.max_steps=1", "kiln.run.dir=run")
        self.assertIn("batch_size: 8", read(self.path("run/.kiln/config.yaml"), "r"))

    def test_same_bytes(self):
        self.convert("-o", "one")
        self.convert("-o", "two")
        self.assertEqual(tree(self.path("one")), tree(self.path("two")))

    def test_what_has_no_config_to_train(self):
        self.write("hydra/optimizer/adam.yaml", "_target_: torch.optim.Adam\nbogus: 1\n_args_: [2]\n")
        out, _ = self.run_kiln("import-hydra", "hydra", program="kiln")
        self.assertIn("there is no config to train", re.sub(r"\s+", " ", out))
        self.assertIn("kiln's component has no such option", re.sub(r"\s+", " ", out))
        self.assertIn("give the arguments their names", re.sub(r"\s+", " ", out))

    def test_overwrites_nothing(self):
        self.convert()
        self.write("conf/mine.yaml", "a: 1\n")
        self.write("conf/train.yaml", "old: 1\n")
        before = tree(self.path("conf"))
        self.refused("import-hydra", "hydra", program="kiln", status=2, says=["conf exists", "--output", "--force"])
        self.refused("import-hydra", "hidra", program="kiln", status=1, says=["hidra: is no folder"])  # whatever conf is
        self.assertEqual(tree(self.path("conf")), before)
        self.convert("--force")
        after = tree(self.path("conf"))
        self.assertEqual(after["mine.yaml"], "a: 1\n", "other files stay")
        self.assertIn("datamodule: birds", after["train.yaml"])

    def test_refused(self):
        self.write("hydra/model/a.yaml", "a: [1\n")
        self.refused("import-hydra", "hydra", program="kiln", says=["hydra/model/a.yaml:1:4: this [ is not closed"])
        self.refused("import-hydra", "none", program="kiln", says=["none", "is no folder"])
        self.refused("import-hydra", program="kiln", status=2, says=["takes one folder"])
        self.write("empty/a.txt", "")
        self.refused("import-hydra", "empty", program="kiln", says=["empty", "no .yaml files"])
        self.write("conf", "a file")
        os.remove(self.path("hydra/model/a.yaml"))
        self.write("hydra/a.yaml", "a: 1\n")
        self.refused("import-hydra", "hydra", "--force", program="kiln", says=["conf", "is a file"])

    def test_full_disk_leaves_nothing(self):
        self.convert("-o", "other")
        shutil.rmtree(self.path("other"))
        script = f"ulimit -f 0; trap '' XFSZ; exec {BUILD}/kiln import-hydra hydra"
        done = subprocess.run(["bash", "-c", script], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(os.listdir(self.dir), ["hydra"])


class Tables(Case):
    """What --classes prints: {"torch.Adam": (component, {option: kiln's option})}."""

    def setUp(self):
        super().setUp()
        out, _ = self.run_kiln("import-hydra", "--classes", program="kiln")
        self.classes = {}
        for line in out.splitlines():
            heading = re.match(r"(\w+\.\w+): ([\w/]+|-)(.*)$", line)
            option = re.match(r"  (\w+) {2,}(\(?[\w.]+)", line)
            if heading:
                self.classes[heading[1]] = (heading[2], {}, re.findall(r"(\w+):", re.sub(r"\{.*\}", "", heading[3])))
                options = self.classes[heading[1]][1]
            elif option:
                options[option[1]] = option[2]

    def options_of(self, name):
        out, _ = self.run_kiln("show", name, program="kiln")
        part = re.search(r"(?ms)^(?:options|\S+: .*?)\n(.*?)(?:\n\n|\Z)", out[out.index("\noptions") + 1:] if "\noptions" in out
                         else out).group(1)
        return set(re.findall(r"(?m)^  (\w+)", part))

    def test_components_and_options_exist(self):
        known, wrong = {}, []
        for name, (component, options, extra) in self.classes.items():
            if component == "-":
                continue
            if component not in known:
                known[component] = self.options_of(component)
                if component.startswith("sweeper/"):
                    known[component] |= self.options_of("kiln/sweeper") | {"params"}
            wrong += [f"{name}: {component} has no {to}" for to in [*options.values(), *extra]
                      if not to.startswith("(") and to.split(".")[0] not in known[component]]
        self.assertEqual(wrong, [])
        self.assertGreater(len(known), 80)
        trainer = self.options_of("trainer")
        for option, to in self.classes["lightning.Trainer"][1].items():
            self.assertTrue(to.startswith("(") or to in trainer, option)

    def test_all_of_kiln_that_has_a_counterpart(self):
        """A component of these kinds that no class becomes has none in those libraries; a new one needs a row."""
        own = {
            "optimizer": set(), "scheduler": {"wsd"}, "loss": {"focal"}, "logger": {"jsonl"},
            "callback": {"detection_writer", "flight_recorder", "histograms", "mask_writer", "plots", "prediction_plots",
                         "sample_detections", "sample_images", "sample_masks", "sample_text"},
            "metric": {"dice", "log_loss", "slot_f1"}, "transform": set(), "batch_transform": set(),
        }
        out, _ = self.run_kiln("list", program="kiln")
        used = {component for component, _, _ in self.classes.values()}
        for kind, rest in own.items():
            part = re.search(rf"(?ms)^{kind}\b[^\n]*\n(.*?)(?:\n\n|\Z)", out).group(1)
            names = set(re.findall(r"(?m)^  (\w+)(?:  |$)", part))
            self.assertTrue(names, kind)
            self.assertEqual({name for name in names if f"{kind}/{name}" not in used}, rest, kind)

    def test_agrees_with_the_page(self):
        """docs/lightning.md says of each option of the trainer and of each callback what became of it."""
        page = read(os.path.join(ROOT, "docs/lightning.md"), "r")
        trainer = self.classes["lightning.Trainer"][1]
        part = re.search(r"(?ms)^## Trainer options\n(.*?)^## ", page).group(1)
        rows = re.findall(r"(?m)^\| (`.*?) \| (\w+) \|", part)
        self.assertGreater(len(rows), 20)
        for names, verdict in rows:
            for name in re.findall(r"`(\w+)`", names):
                self.assertIn(name, trainer)
                if verdict == "absent":
                    self.assertTrue(trainer[name].startswith("("), f"{name} is absent")
                if verdict == "same":
                    self.assertEqual(trainer[name], name)
        part = re.search(r"(?ms)^### Callbacks, option by option\n(.*?)^## ", page).group(1)
        rows = [row.split("|")[1:-1] for row in re.findall(r"(?m)^\| `\w+` .*$", part)]
        self.assertGreater(len(rows), 20)
        for name, same, _, absent in rows:
            name = name.strip(" `")
            _, options, _ = self.classes["lightning." + name]
            for option in re.findall(r"`(\w+)`", same):
                if options:
                    self.assertIn(options[option].strip("("), (option, "left"), f"{name}.{option} is the same")
            for option in re.findall(r"`(\w+)`", absent):
                self.assertTrue(options.get(option, "(").startswith("("), f"{name}.{option} is absent")


if __name__ == "__main__":
    main()
