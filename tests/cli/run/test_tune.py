"""Learning rate and batch size search, weight averaging, finetuning and pruning."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import math
import os
import re
import resource
import shutil
import struct

from kilntest import SHORT, TINY, Case, main, read, read_json

BY_HAND = ["model=mlp", "model.hidden=[32]", "datamodule.train_count=640", "datamodule.val_count=64", "datamodule.test_count=64",
           "trainer.max_epochs=2", "trainer.threads=1"]


def tensors(path):
    """Name -> (dtype, shape, values or bytes) of a safetensors file."""
    data = read(path)
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    head.pop("__metadata__", None)
    out = {}
    for name, entry in head.items():
        begin, end = entry["data_offsets"]
        raw = data[8 + size + begin:8 + size + end]
        out[name] = struct.unpack(f"<{len(raw) // 4}f", raw) if entry["dtype"] == "F32" else raw
    return out


class Runs(Case):
    def train(self, name, *args, **options):
        return self.run_kiln(*args, f"kiln.run.dir={name}", **options)

    def model(self, run, checkpoint="last"):
        return read(self.path(run, "checkpoints", checkpoint, "model.safetensors"))

    def check_resumes(self, *args, epochs, steps):
        """A run that goes on from any of its checkpoints, in and between epochs, ends with the same bytes. Returns the
        names of those between."""
        args = [*args, "callbacks.model_checkpoint={monitor: null, save_top_k: -1, every_n_epochs: 1}",
                "callbacks.model_checkpoint.every_n_train_steps=5"]
        self.train("whole", *args)
        names = sorted(name for name in os.listdir(self.path("whole/checkpoints")) if name.startswith("epoch="))
        between = [name for name in names if int(name.split("step=")[1]) % steps == 0]
        self.assertEqual(len(between), epochs)
        self.assertGreater(len(names), epochs)
        for name in names[1::4] if SHORT else names:
            self.train(name, *args, f"ckpt_path=whole/checkpoints/{name}")
            self.assertEqual(self.model(name), self.model("whole"), f"from {name}")
            shutil.rmtree(self.path(name))
        return between


class LrFinder(Runs):
    FINDER = ["callbacks=[default,lr_finder]", "callbacks.lr_finder.num_training_steps=40", "callbacks.lr_finder.max_lr=10"]

    def test_a_run_equals_one_with_the_rate_written_by_hand(self):
        out, _ = self.train("found", *BY_HAND, *self.FINDER)
        lr = re.search(r"callbacks.lr_finder: lr=(\S+)$", out, re.M).group(1)
        self.assertTrue(1e-3 <= float(lr) <= 0.5, lr)
        self.assertIn(f"callbacks.lr_finder: lr={lr}", read(self.path("found/train.log"), "r"))
        self.train("hand", *BY_HAND, f"lr={lr}")
        self.assertEqual(self.model("found"), self.model("hand"))
        if "no lr_finder.png: this kiln was built without cairo" not in out:
            self.assertEqual(read(self.path("found/lr_finder.png"))[1:4], b"PNG")
        self.assertIn(f"lr: {lr}", read(self.path("found/.kiln/config.yaml"), "r"))
        out, _ = self.run_kiln("explain", "found", "lr", program="kiln")
        self.assertIn("callbacks.lr_finder", out)

    def test_a_run_that_goes_on_does_not_search_again(self):
        args = [*BY_HAND, *self.FINDER, "scheduler=constant"]
        self.train("whole", *args)
        self.train("part", *args, "trainer.max_steps=13")
        out, _ = self.train("rest", *args, "ckpt_path=part")
        self.assertIn("as when the run began", out)
        self.assertEqual(self.model("rest"), self.model("whole"))

    def test_only_told(self):
        out, _ = self.train("told", *BY_HAND, *self.FINDER, "callbacks.lr_finder.update_attr=false")
        self.assertIn("suggests lr=", out)
        self.train("plain", *BY_HAND)
        self.assertEqual(self.model("told"), self.model("plain"))

    def test_another_key_and_too_few_steps(self):
        out, _ = self.train("other", *BY_HAND, *self.FINDER, "optimizer.lr=0.1", "callbacks.lr_finder.attr_name=optimizer.lr")
        self.assertIn("callbacks.lr_finder: optimizer.lr=", out)
        out, _ = self.train("few", *BY_HAND, *self.FINDER, "callbacks.lr_finder.num_training_steps=9")
        self.assertIn("num_training_steps=9 is too small", out)
        out, _ = self.train("late", *BY_HAND, *self.FINDER, "callbacks.lr_finder.min_lr=5")
        self.assertIn("the loss does not fall from min_lr=5 on", out)
        out, _ = self.train("early", *BY_HAND, *self.FINDER, "callbacks.lr_finder.max_lr=0.05")
        self.assertIn("the loss still falls at max_lr=0.05; a higher callbacks.lr_finder.max_lr", out)
        self.refused(*BY_HAND, *self.FINDER, "callbacks.lr_finder.min_lr=11", says=["max_lr", "more than min_lr"])
        self.refused(*BY_HAND, *self.FINDER, "callbacks.lr_finder.attr_name=no.such", says=["attr_name: no.such"])
        self.refused(*BY_HAND, *self.FINDER, "callbacks.lr_finder.attr_name=batch_size", says=["attr_name", "expected an integer"])

    def test_command(self):
        out, _ = self.run_kiln("tune", "lr", *BY_HAND, "kiln.run.dir=t", "callbacks.lr_finder.num_training_steps=40", program="kiln")
        lr = re.search(r"callbacks.lr_finder: lr=(\S+)$", out, re.M).group(1)
        if "no lr_finder.png: this kiln was built without cairo" not in out:
            self.assertEqual(os.listdir(self.path("t")), ["lr_finder.png"])
        self.assertIn(f"train {' '.join(BY_HAND[:1])}", out)
        command = out.splitlines()[-1].split()
        self.assertEqual((command[0], command[-1]), ("train", f"lr={lr}"))
        self.assertNotIn("num_training_steps", out)
        if os.path.exists(self.path("t/lr_finder.png")):
            self.assertRegex(out, r"(?m)^  picture +t/lr_finder.png$")

    def test_what_went_wrong_is_told(self):
        self.refused("tune", "lr", "lr=fast", program="kiln", says=["fast"])
        self.refused("tune", "rl", program="kiln", says=["rl"])


class BatchSizeFinder(Runs):
    FINDER = ["callbacks=[default,batch_size_finder]"]

    def test_all_samples_when_they_fit(self):
        out, _ = self.train("r", *BY_HAND, *self.FINDER)
        self.assertRegex(out, r"callbacks.batch_size_finder: batch_size=640; the largest is 640 \(\d+ of \d+ MiB available\), "
                              r"the fastest \d+ with \S+ samples/s")
        self.train("hand", *BY_HAND, "batch_size=640")
        self.assertEqual(self.model("r"), self.model("hand"))
        out, _ = self.train("r2", *BY_HAND, *self.FINDER, "callbacks.batch_size_finder.max_val=100")
        self.assertIn("batch_size=100;", out)
        out, _ = self.train("r3", *BY_HAND, *self.FINDER, "callbacks.batch_size_finder.max_trials=4")
        self.assertIn("batch_size=16;", out)
        out, _ = self.train("r4", *BY_HAND, *self.FINDER, "callbacks.batch_size_finder.mode=binsearch", "callbacks.batch_size_finder.max_val=100")
        self.assertIn("batch_size=95;", out)
        out, _ = self.train("r5", *BY_HAND, *self.FINDER, "callbacks.batch_size_finder.prefer=fastest")
        found = re.search(r"batch_size=(\d+); .*the fastest (\d+)", out)
        self.assertEqual(found.group(1), found.group(2))

    def test_under_a_limit(self):
        if SHORT:
            self.skipTest("a sanitizer reserves all addresses")
        wide = ["model=linear", "datamodule=noise", "datamodule.shape=[48,48,3]", "datamodule.count=20000", "datamodule.val_count=16",
                "trainer.max_steps=2", "trainer.threads=1", "trainer.num_workers=0", "~callbacks.plots", "test=false"]
        sizes = {}
        for mib in [400, 520]:
            def limit(mib=mib):
                resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
            for mode in ["power", "binsearch"]:
                out, _ = self.train(f"{mode}{mib}", *wide, *self.FINDER, f"callbacks.batch_size_finder.mode={mode}",
                                    "callbacks.batch_size_finder.margin=0", "callbacks.batch_size_finder.max_val=20000",
                                    "callbacks.batch_size_finder.steps_per_trial=1", preexec_fn=limit)
                found = re.search(r"batch_size=(\d+); the largest is (\d+) \((\d+) of (\d+) MiB", out)
                sizes[mode, mib] = size = int(found.group(1))
                self.assertLessEqual(int(found.group(3)), int(found.group(4)))
                self.assertIn(f"batch_size: {size}", read(self.path(f"{mode}{mib}/.kiln/config.yaml"), "r"))
            self.assertLessEqual(sizes["power", mib], sizes["binsearch", mib])
            self.assertLess(sizes["binsearch", mib], 2 * sizes["power", mib])
            # what is some larger is refused before it runs
            _, err = self.run_kiln(*wide, f"batch_size={sizes['binsearch', mib] * 5 // 4}", status=1, preexec_fn=limit)
            self.assertRegex(err, r"the run needs .* are available \(the process has")
        self.assertGreater(sizes["binsearch", 520], sizes["binsearch", 400])

    def test_nothing_fits(self):
        self.refused(*BY_HAND, *self.FINDER, "callbacks.batch_size_finder.init_val=9000", says=["init_val", "at most max_val"])
        self.refused(*BY_HAND, *self.FINDER, "callbacks.batch_size_finder.batch_arg_name=lr", says=["batch_arg_name=lr", "does not change the memory"])

    def test_command(self):
        out, _ = self.run_kiln("tune", "batch_size", *BY_HAND, "callbacks.batch_size_finder.max_val=64", program="kiln")
        self.assertTrue(out.splitlines()[-1].endswith("trainer.threads=1 batch_size=64"))
        self.assertEqual(os.listdir(self.dir), [])
        out, _ = self.run_kiln("tune", *BY_HAND, "callbacks.batch_size_finder.max_val=64", "kiln.run.dir=t", program="kiln")
        self.assertRegex(out.splitlines()[-1], r" batch_size=64 lr=\S+$")


class Averaging(Runs):
    SWA = ["callbacks=stochastic_weight_averaging", "callbacks.stochastic_weight_averaging.swa_epoch_start=3",
           "callbacks.stochastic_weight_averaging.annealing_epochs=2"]

    def test_the_mean_of_the_last_epochs(self):
        args = [*TINY, *self.SWA, "trainer.max_epochs=5", "callbacks.stochastic_weight_averaging.swa_lrs=0.01", "scheduler=constant", "lr=0.1",
                "callbacks.learning_rate_monitor.logging_interval=epoch"]
        names = self.check_resumes(*args, epochs=5, steps=8)
        weights = []
        for epoch, name in enumerate(names):
            folder = self.path("whole/checkpoints", name)
            model, trainer = (tensors(os.path.join(folder, file)) for file in ["model.safetensors", "trainer.safetensors"])
            raw = {key[8:]: value for key, value in trainer.items() if key.startswith("weights.")}
            if epoch < 2:
                self.assertEqual(raw, {}, "no average yet")
                continue
            weights.append(raw)
            for key, value in model.items():
                mean = [math.fsum(v) / len(weights) for v in zip(*(w[key] for w in weights))]
                for got, want in zip(value, mean):
                    self.assertAlmostEqual(got, want, delta=1e-6)
        rows = [row for row in csv.DictReader(read(self.path("whole/metrics.csv"), "r").splitlines()) if row.get("lr")]
        rates = [float(row["lr"]) for row in rows]
        for want in [0.1, 0.055, 0.01]:
            self.assertTrue(any(abs(rate - want) < 1e-6 for rate in rates), (want, rates))

    def test_running_statistics_are_counted_anew(self):
        args = ["model=cnn", "model.channels=[4,8]", "datamodule.train_count=256", "datamodule.val_count=64", "datamodule.test_count=64",
                "batch_size=32", "trainer.max_epochs=4", "trainer.threads=1", *self.SWA]
        self.check_resumes(*args, epochs=4, steps=8)
        # without the pass they would be means of the epochs' running statistics
        before = tensors(self.path("whole/checkpoints/last/trainer.safetensors"))
        after = tensors(self.path("whole/checkpoints/last/model.safetensors"))
        self.assertNotEqual(before["weights.bn1.running_mean"], after["bn1.running_mean"])

    def test_what_does_not_go_together(self):
        self.refused(*TINY, *self.SWA, "+callbacks.ema._target_=callback/ema", says=["averages the weights already"])
        self.refused(*TINY, "callbacks=stochastic_weight_averaging", "trainer.max_epochs=-1", "trainer.max_steps=3", says=["swa_epoch_start", "max_epochs"])


class Finetuning(Runs):
    @staticmethod
    def phases(text, more=""):
        return f"+callbacks.finetuning={{_target_: callback/finetuning, phases: {text}{more}}}"

    def changed(self, run, names, prefix):
        """Between which checkpoints a parameter changed."""
        values = [{k: v for k, v in tensors(self.path(run, "checkpoints", n, "model.safetensors")).items() if k.startswith(prefix)} for n in names]
        return [a != b for a, b in zip(values, values[1:])]

    def test_frozen_until(self):
        args = [*TINY, self.phases("{first: {params: ['layers.0.*'], unfreeze_at_epoch: 2}}"), "trainer.max_epochs=5", "optimizer=adam", "lr=0.01"]
        names = self.check_resumes(*args, epochs=5, steps=8)
        self.assertEqual(self.changed("whole", names, "layers.0."), [False, True, True, True])
        self.assertEqual(self.changed("whole", names, "layers.1."), [True] * 4)

    def test_rates_grow(self):
        # one step an epoch of plain SGD at a constant rate: what moves is the rate times the gradient
        args = ["model=linear", "datamodule.train_count=64", "datamodule.val_count=64", "batch_size=64", "trainer.max_epochs=6", "trainer.threads=1",
                "scheduler=constant", "lr=1e-6", "optimizer.momentum=0", "callbacks.model_checkpoint.save_top_k=-1"]
        phases = "{all: {params: ['*weight'], unfreeze_at_epoch: 1, initial_ratio_lr: 0.25, growth: 2}}"
        self.train("run", *args, self.phases(phases))
        names = sorted(name for name in os.listdir(self.path("run/checkpoints")) if name.startswith("epoch="))
        values = [next(v for k, v in tensors(self.path("run/checkpoints", n, "model.safetensors")).items() if k.endswith("weight")) for n in names]
        moves = [math.sqrt(sum((a - b) ** 2 for a, b in zip(*pair))) for pair in zip(values, values[1:])]
        for got, want in zip(moves, [0.25, 0.5, 1, 1, 1]):
            self.assertAlmostEqual(got / moves[-1], want, delta=0.1)

    def test_batch_normalization(self):
        args = ["model=cnn", "model.channels=[4,8]", "datamodule.train_count=128", "datamodule.val_count=64", "batch_size=32", "trainer.max_epochs=2",
                "trainer.threads=1", "test=false", "callbacks.model_checkpoint.save_top_k=-1"]
        for train_bn in [True, False]:
            run = f"bn{train_bn}"
            self.train(run, *args, self.phases("{backbone: {params: ['conv*', 'bn*'], unfreeze_at_epoch: null}}", f", train_bn: {train_bn}".lower()))
            names = sorted(name for name in os.listdir(self.path(run, "checkpoints")) if name.startswith("epoch="))
            self.assertEqual(self.changed(run, names, "conv"), [False])
            self.assertEqual(self.changed(run, names, "bn1.weight"), [train_bn])
            self.assertEqual(self.changed(run, names, "bn1.running_mean"), [train_bn])
            self.assertEqual(self.changed(run, names, "fc"), [True])

    def test_mistakes(self):
        self.refused(*TINY, self.phases("{first: {params: ['layer.*']}}"), says=["layer.*", "matches no trained parameter", "layers.0"])
        self.refused(*TINY, self.phases("{all: {params: ['*']}}"), says=["freeze all parameters in epoch 0"])
        self.refused(*TINY, self.phases("{}"), says=["nothing to freeze"])


class Weights(Runs):
    def test_from_one_data_set_to_another(self):
        first = ["model=mlp", "model.hidden=[16]", "datamodule=noise", "datamodule.shape=[28,28,1]", "datamodule.count=256", "datamodule.val_count=64",
                 "datamodule.classes=4", "trainer.max_epochs=1", "trainer.threads=1", "test=false"]
        self.train("first", *first)
        err = self.refused(*TINY, "model.hidden=[16,8]", "weights=first",
                           says=["layers.1.weight ([4, 16] in the file, [8, 16] in this network)", "weights_strict=false"])
        self.assertNotIn("missing", err)
        # only the number of classes is another: the head is new
        out, _ = self.train("second", *TINY, "weights=first",
                            Finetuning.phases("{first: {params: ['layers.0.*'], unfreeze_at_epoch: null}}"))
        self.assertIn("weights: 2 of 4 tensors from", out)
        self.assertIn("weights: 4 classes in the file, 10 here; initialized randomly: layers.1.weight, layers.1.bias", out)
        a, b = (tensors(self.path(run, "checkpoints/last/model.safetensors")) for run in ["first", "second"])
        self.assertEqual(a["layers.0.weight"], b["layers.0.weight"], "frozen since it was taken")
        # the file itself, all of it
        model = self.path("second/checkpoints/last/model.safetensors")
        out, _ = self.train("third", *TINY, f"weights={model}", "trainer.max_steps=0")
        self.assertIn("weights: 4 of 4 tensors", out)

    def test_mistakes(self):
        self.refused(*TINY, "weights=nowhere.safetensors", says=["nowhere.safetensors"])
        self.train("cnn", "model=cnn", "model.channels=[4]", "datamodule.train_count=64", "datamodule.val_count=64", "trainer.max_steps=1", "test=false")
        self.refused(*TINY, "weights=cnn", "weights_strict=false", says=["nothing in", "fits this network"])
        self.refused(*TINY, "weights=cnn", says=["conv1.weight"])

    def test_nearest_name(self):
        self.train("first", *TINY, "trainer.max_steps=1")
        data = read(self.path("first/checkpoints/last/model.safetensors"))
        with open(self.path("other.safetensors"), "wb") as f:
            f.write(data.replace(b'"layers.0.weight"', b'"layers.0.wieght"'))
        self.refused(*TINY, "weights=other.safetensors",
                     says=["not in the file: layers.0.weight (nearest in the file: layers.0.wieght)", "only in the file: layers.0.wieght"])
        out, _ = self.train("second", *TINY, "weights=other.safetensors", "weights_strict=false", "trainer.max_steps=0")
        self.assertIn("weights: not used: layers.0.wieght", out)


class Pruning(Runs):
    PRUNE = ["callbacks=pruning", "callbacks.pruning.amount=0.5", "callbacks.pruning.parameters_to_prune=['*weight']"]

    def test_zeros_stay(self):
        args = [*TINY, *self.PRUNE, "trainer.max_epochs=4", "optimizer=adam", "lr=0.01", "trainer.gradient_clip_val=1.0"]
        names = self.check_resumes(*args, epochs=4, steps=8)
        zeros = []
        for name in names:
            model = tensors(self.path("whole/checkpoints", name, "model.safetensors"))
            weights = [value for key, values in model.items() if key.endswith("weight") for value in values]
            zeros.append([value == 0 for value in weights])
        for got, want in zip(zeros, [0.5, 0.75, 0.875, 0.875]):
            self.assertAlmostEqual(sum(got) / len(got), want, delta=0.001)
        for a, b in zip(zeros, zeros[1:]):
            self.assertFalse([i for i, zero in enumerate(a) if zero and not b[i]], "what was pruned came back")
        self.assertIn("pruning: ", read(self.path("whole/train.log"), "r"))
        rows = list(csv.DictReader(read(self.path("whole/metrics.csv"), "r").splitlines()))
        self.assertIn("0.875", [row["sparsity"][:5] for row in rows])

    def test_lottery_ticket(self):
        args = [*TINY, *self.PRUNE, "trainer.max_epochs=2", "callbacks.model_checkpoint.save_top_k=-1"]
        self.train("start", *TINY, "trainer.max_steps=0", "test=false")
        start = tensors(self.path("start/checkpoints/last/model.safetensors"))
        for lottery in [True, False]:
            run = f"run{lottery}"
            self.train(run, *args, f"callbacks.pruning.use_lottery_ticket_hypothesis={lottery}".lower())
            name = sorted(n for n in os.listdir(self.path(run, "checkpoints")) if n.startswith("epoch="))[0]
            model = tensors(self.path(run, "checkpoints", name, "model.safetensors"))
            left = [(a, b) for key in model if key.endswith("weight") for a, b in zip(model[key], start[key]) if a != 0]
            self.assertEqual(all(a == b for a, b in left), lottery)

    def test_channels(self):
        args = [*TINY, "callbacks=pruning", "callbacks.pruning.pruning_fn=ln_structured", "callbacks.pruning.pruning_dim=0",
                "callbacks.pruning.pruning_norm=2", "callbacks.pruning.amount=4", "callbacks.pruning.epochs=[1]", "trainer.max_epochs=2"]
        self.train("run", *args)
        weight = tensors(self.path("run/checkpoints/last/model.safetensors"))["layers.0.weight"]
        rows = [weight[i * 784:(i + 1) * 784] for i in range(16)]
        self.assertEqual(sum(not any(row) for row in rows), 4)

    def test_mistakes(self):
        prune = "callbacks.pruning."
        self.refused(*TINY, *self.PRUNE, prune + "pruning_fn=ln_structured", says=["pruning_dim"])
        self.refused(*TINY, *self.PRUNE, prune + "pruning_dim=0", says=["has no axis"])
        self.refused(*TINY, *self.PRUNE, prune + "amount=1.5", says=["a fraction from 0.0 to 1.0"])
        self.refused(*TINY, *self.PRUNE, prune + "parameters_to_prune=['nothing*']", says=["no trained parameter"])
        self.refused(*TINY, *self.PRUNE, prune + "pruning_fn=random_structured", prune + "pruning_dim=0", prune + "use_global_unstructured=true",
                     says=["parameter by parameter"])


if __name__ == "__main__":
    main()
