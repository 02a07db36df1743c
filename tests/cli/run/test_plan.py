"""train --plan, kiln graph, the profile, and the number of threads of a run."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import os
import re
import xml.etree.ElementTree as xml

from kilntest import SHORT, SLOW_BF16, TINY, Case, build_plugin, main, read, read_json

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# Networks and batches that need more than any machine has, though no tensor is too large.
HUGE = ["model=mlp", "model.hidden=[" + ",".join(["40000"] * 300) + "]"]
DEEP = ["model=mlp", "datamodule.batch_size=1000000", "datamodule.train_count=1000000",
        "model.hidden=[" + ",".join(["500"] * 1000) + "]"]


def size(text, name):
    """The bytes of the line that begins with `name`."""
    number, unit = re.search(rf"^  {name} +([0-9.]+) (\w+)", text, re.M).groups()
    return float(number) * UNITS[unit]


def layer(text, name):
    """The cells of a layer's line."""
    line = re.search(rf"^{re.escape(name)} .*$", text, re.M).group()
    return re.split(r" {2,}", line)


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))


class Plan(Case):
    def plan(self, *args):
        before = os.listdir(self.dir)
        out, err = self.run_kiln(*args, "--plan")
        self.assertIn(err, ["", SLOW_BF16] if "trainer.precision=bf16-true" in args else [""])
        self.assertEqual(os.listdir(self.dir), before, "a plan writes nothing")
        return out

    def test_layers_and_sums(self):
        out = self.plan(*TINY)
        self.assertEqual(layer(out, "layers.0")[1:4], ["linear", "[32, 16]", "12,560"])
        # forward and the gradient of the weight: 2 x 32 x 784 x 16 each
        self.assertEqual(layer(out, "layers.0")[4], "1.61 M")
        # a middle layer has the gradient of its input too: 3 x 2 x 32 x 16 x 10
        self.assertEqual(layer(out, "layers.1")[4], "30.7 k")
        self.assertRegex(out, r"parameters +12,730")
        self.assertRegex(out, r"FLOPs +1.64 M: forward 813 k, gradients 823 k")
        self.assertRegex(out, r"plans +2: [\d.]+ [KM]iB, made in ")
        self.assertRegex(out, r"threads +1\n")
        for name in ["a step", "an epoch", "the run"]:
            self.assertRegex(out, rf"\n  {name} +[0-9.]+ \w+: ")
        self.assertRegex(out, r"an epoch .*: 8 steps, and validation")
        self.assertRegex(out, r"the run .*: 16 steps")

    def test_memory_is_what_a_run_takes(self):
        self.check_memory("f32", 4, [])
        self.assertNotIn("averaged weights", self.plan(*TINY))

    def test_memory_in_bf16_true(self):
        self.check_memory("bf16", 2, ["trainer.precision=bf16-true"])

    def test_memory_of_averaged_weights(self):
        for precision, each, average in [("32-true", 4, 4), ("bf16-true", 2, 6)]:
            out = self.check_memory(precision, each, [f"trainer.precision={precision}", "callbacks=ema"])
            self.assertAlmostEqual(size(out, "averaged weights") / size(out, "parameters {5}"), average / each, delta=0.01)

    def check_memory(self, name, each, more):
        run = self.path(name)
        wide = 500 if SHORT else 2000
        args = ["model=mlp", f"model.hidden=[{wide},{wide}]", "datamodule.train_count=1000", "datamodule.val_count=100",
                "datamodule.batch_size=200", "trainer.max_epochs=2", "~callbacks.plots", "trainer.threads=1", "optimizer=adam", "test=false",
                f"kiln.run.dir={run}", *more]
        out = self.plan(*args)
        values = each * (784 * wide + wide + wide * wide + wide + wide * 10 + 10)
        for name, want in [("parameters {5}", values), ("gradients", values), ("optimizer state", 2 * values)]:
            self.assertAlmostEqual(size(out, name) / want, 1, delta=0.01)
        self.run_kiln(*args)
        self.assertAlmostEqual(size(out, "a checkpoint") / folder_bytes(os.path.join(run, "checkpoints/last/")), 1, delta=0.01)
        if not SHORT:  # a sanitizer keeps more than the program does
            peak = read_json(os.path.join(run, "summary.json"))["peak_rss_bytes"]
            self.assertAlmostEqual(size(out, "peak") / peak, 1, delta=0.1)
        return out

    def test_peaks_of_many_kinds_of_runs(self):
        """What is forecast is not less than what is taken, and not much more."""
        if SHORT:
            self.skipTest("a sanitizer keeps more than the program does")
        mlp = ["model=mlp", "model.hidden=[2000,2000]", "datamodule.train_count=800", "datamodule.val_count=100", "datamodule.test_count=100",
               "batch_size=200", "optimizer=adam"]
        noise = ["model=linear", "datamodule=noise", "datamodule.shape=[4,4,1]", "datamodule.val_count=30000", "datamodule.classes=100", "test=false"]
        frozen = "+callbacks.finetuning={_target_: callback/finetuning, phases: {a: {params: ['layers.[01].*'], unfreeze_at_epoch: null}}}"
        swa = "callbacks.stochastic_weight_averaging."
        for name, args in {
                "plain": mlp, "ema": [*mlp, "callbacks=ema"], "accumulate": [*mlp, "batch_size=50", "trainer.accumulate_grad_batches=4"],
                "swa": [*mlp, "callbacks=stochastic_weight_averaging", swa + "swa_lrs=0.01", swa + "swa_epoch_start=1"],
                "pruning": [*mlp, "callbacks=pruning", "trainer.max_epochs=2"], "frozen": [*mlp, frozen],
                "bf16": [*mlp, "trainer.precision=bf16-true"], "cnn": ["datamodule.train_count=600", "batch_size=200"],
                "scores": [*noise, "datamodule.count=60000", "batch_size=500", "+task.metrics.auroc._target_=metric/auroc"],
                "small": TINY}.items():
            with self.subTest(name):
                # The last checkpoint is written without a copy, the one of the first epoch is not.
                args = ["trainer.max_epochs=2", "trainer.threads=1", *args, f"kiln.run.dir={name}"]
                forecast = size(self.run_kiln(*args, "--plan")[0], "peak")
                self.run_kiln(*args)
                peak = read_json(self.path(name, "summary.json"))["peak_rss_bytes"]
                self.assertGreater(forecast, 0.97 * peak)
                # Pictures are counted in full, although they are drawn when metrics have been computed.
                self.assertLess(forecast, 1.2 * peak + 12 * 2**20)

    def test_what_does_not_fit_is_refused_before_anything_is_written(self):
        for args in [HUGE, DEEP]:
            for flags in [[], ["--plan"]]:
                out, err = self.run_kiln(*args, *flags, status=1)
                self.assertRegex(err, r"need [0-9.]+ [GT]iB of memory|needs [0-9.]+ [GT]iB of memory")
                self.assertEqual(os.listdir(self.dir), [])
        self.assertRegex(err, r"activations [0-9.]+ [GT]iB, (converted weights .*, )?parameters .*optimizer state .*; "
                              r"try a smaller batch \(about \d+ samples fit, datamodule.batch_size=1000000 now\)")

    def test_without_an_end(self):
        self.assertRegex(self.plan(*TINY, "trainer.max_epochs=-1"), r"the run +without end")
        self.assertRegex(self.plan(*TINY, "trainer.max_epochs=-1", "trainer.max_steps=12"), r"the run .*: 12 steps")

    def test_a_slow_first_step_does_not_count(self):
        self.write("conf/datamodule/faulty.yaml", "_target_: faulty\n")
        flags = ["--plugin", build_plugin("faults", self.dir), "--config-dir", "conf"]
        # what comes before reads 248 samples
        out = self.plan(*flags, "model=mlp", "datamodule=faulty", "datamodule.count=600", "datamodule.what=slow", "datamodule.after=251",
                        "trainer.threads=1", "trainer.num_workers=0")
        self.assertRegex(out, r"time, from \d+ steps\n")

    def test_what_does_not_go_together_is_told_as_by_a_run(self):
        self.refused(*TINY, "model=cnn", "model.channels=[8,8,8,8,8,8,8]", "--plan", says=["train: error: "])
        self.refused(*TINY, "callbacks.model_checkpoint.monitor=val/los", "--plan", says=["val/loss"])

    def test_a_sweep_has_its_own(self):
        out, _ = self.run_kiln(*TINY, "lr=0.1,0.2", "-m", "--plan")
        self.assertIn("lr=0.2", out)
        self.assertNotIn("FLOPs", out)

    def test_narrow_terminals(self):
        out, _ = self.run_kiln(*TINY, "--plan")
        self.assertLessEqual(max(len(line) for line in out.splitlines()), 100)


class Replanning(Case):
    def test_an_attribute_that_changes(self):
        """One note for all steps that are planned again; none where the number is data, and the same losses."""
        args = [*TINY, "--plugin", build_plugin("annealed", self.dir, "-DKILN_BUILD_PLUGIN"), "task.loss=annealed", "model=mlp",
                "datamodule.train_count=1280", "trainer.max_epochs=1", "seed=1"]
        out = "".join(self.run_kiln(*args, "kiln.run.dir=attribute"))
        self.assertEqual(out.count("plans were made"), 1, out)
        self.assertRegex(out, r"warning: 1[78] plans were made, since the attribute of scale .*changes from step to step "
                              r"\(0\.\d+, then 0\.\d+\); make the number data.*kiln_graph_scalar")
        out = "".join(self.run_kiln(*args, "task.loss.data=true", "kiln.run.dir=data"))
        self.assertNotIn("plans were made", out)
        weights = [read(self.path(run, "checkpoints/last/model.safetensors")) for run in ("attribute", "data")]
        self.assertTrue(weights[0] == weights[1])

    def test_the_position_of_a_step(self):
        """A loss that depends on it: of several batches a step, and after a resume."""
        args = [*TINY, "--plugin", build_plugin("annealed", self.dir, "-DKILN_BUILD_PLUGIN"), "task.loss=annealed", "model=mlp",
                "task.loss.data=true", "task.scheduler=null", "trainer.accumulate_grad_batches=2", "trainer.log_every_n_steps=1", "seed=1"]
        self.run_kiln(*args, "trainer.max_epochs=3", "kiln.run.dir=whole")
        self.run_kiln(*args, "trainer.max_epochs=1", "kiln.run.dir=parts")
        self.run_kiln("resume=parts", "trainer.max_epochs=3")
        weights = [read(self.path(run, "checkpoints/last/model.safetensors")) for run in ("whole", "parts")]
        self.assertTrue(weights[0] == weights[1])
        with open(self.path("parts/metrics.csv")) as file:
            logged = [(int(row["step"]), float(row["train/weight"])) for row in csv.DictReader(file) if row["train/weight"]]
        self.assertEqual(len(logged), 12)
        for step, weight in logged:
            self.assertAlmostEqual(weight, 1 / (1 + (step - 1) / 64), places=6)


class Graph(Case):
    def graph(self, *args):
        out, err = self.run_kiln("graph", *TINY, *args, program="kiln")
        self.assertEqual(err, "")
        return out

    def test_every_call_in_order(self):
        out = self.graph()
        numbers = [int(n) for n in re.findall(r"^ *(\d+)  \w", out, re.M)]
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertLess(out.index("\nforward\n"), out.index("\nbackward\n"))
        self.assertLess(out.index("\nbackward\n"), out.index("\nupdate\n"))
        for word in ["layers.0", "layers.1", "linear", "matmul", "sgd_update", "cross_entropy", "loss and metrics"]:
            self.assertIn(word, out)
        shares = [float(share) for share in re.findall(r"([0-9.]+)%$", out, re.M)]
        self.assertAlmostEqual(sum(shares), 100, delta=3)
        self.assertEqual(os.listdir(self.dir), [])

    def test_a_phase(self):
        out = self.graph("--phase", "backward")
        self.assertIn("matmul", out)
        self.assertNotIn("sgd_update", out)
        self.assertNotIn("\nforward\n", out)

    def test_groups(self):
        out, _ = self.run_kiln("graph", "model=resnet", "datamodule.batch_size=2", "datamodule.size=8", "--depth", "1", program="kiln")
        names = re.findall(r"^(\S.*?) {2,}", out.split("\n\n")[1], re.M)
        if "relu" in names:  # else it is joined to what is before it
            names.remove("relu")
        self.assertEqual(names, ["layers", "conv1", "bn1", "layer1", "layer2", "layer3", "layer4", "avgpool", "fc",
                                 "loss and metrics", "optimizer"])

    def test_a_picture(self):
        self.run_kiln("graph", *TINY, "--svg", "step.svg", program="kiln")
        picture = xml.parse(self.path("step.svg"))
        texts = ["".join(node.itertext()) for node in picture.iter("{http://www.w3.org/2000/svg}text")]
        for text in ["forward", "backward"]:
            self.assertIn(text, texts)
        self.assertTrue(any(text.startswith("peak: ") for text in texts), texts)
        titles = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}title")]
        for layer in ["layers.0 ", "layers.1 "]:
            self.assertTrue(any(title.startswith(layer) and "calls" in title for title in titles), titles)

    def test_mistakes(self):
        for args, says in [(["--depth", "x"], "--depth x"), (["--phase", "sideways"], "expected one of forward, backward, update"),
                           (["--depth", "-1"], "--depth -1")]:
            self.refused("graph", *TINY, *args, program="kiln", status=2, says=[says])
        self.refused("graph", "--svg", "x.svg", "--phase", "update", program="kiln", status=2, says=["do not go together"])
        self.refused("graph", *TINY, "--svg", "no/such/folder.svg", program="kiln", says=["no/such"])
        self.refused("graph", *TINY, "lr=fast", program="kiln", says=["fast"])


class Profile(Case):
    def test_the_time_of_a_run(self):
        out, _ = self.run_kiln(*TINY, "trainer.profiler=simple")
        self.assertRegex(out, r"(?m)^operation +calls +time +share +FLOP/s$")
        self.assertRegex(out, r"(?m)^layer +calls +time +share +FLOP/s$")
        rows = list(csv.DictReader(read(os.path.join(self.run_folder(), "profile.csv"), "r").splitlines()))
        rest = [row for row in rows if row["phase"] in ("hook", "plan", "data", "checkpoint")]
        rows = [row for row in rows if row not in rest]
        self.assertAlmostEqual(sum(float(row["share"]) for row in rows), 1, delta=0.001)
        self.assertEqual({row["phase"] for row in rows}, {"forward", "backward", "update", "evaluation"})
        self.assertAlmostEqual(sum(float(row["share"]) for row in rest), 1, delta=0.001)
        calls = {(row["layer"], row["operation"]): int(row["calls"]) for row in rest}
        self.assertEqual(calls["the loop", "planning steps"], 2)
        self.assertEqual(calls["the loop", "waiting for data"], 16)
        self.assertEqual(calls["the loop", "copying a checkpoint"], 2)
        self.assertEqual(calls["callbacks.progress_bar", "on_train_batch_end"], 16)
        self.assertEqual(calls["callbacks.model_checkpoint", "on_train_epoch_end"], 2)
        self.assertIn("callbacks.progress_bar.on_train_batch_end", out)
        linear = [row for row in rows if row["layer"] == "layers.0" and row["phase"] == "forward" and float(row["flops"]) > 0]
        self.assertEqual(sum(int(row["calls"]) for row in linear), 16)
        self.assertEqual(sum(float(row["flops"]) for row in linear), 16 * 2 * 32 * 784 * 16)

    def test_none_unless_asked_for(self):
        out, _ = self.run_kiln(*TINY)
        self.assertNotIn("FLOP/s", out)
        self.assertFalse(os.path.exists(os.path.join(self.run_folder(), "profile.csv")))
        self.refused(*TINY, "trainer.profiler=fancy", says=["trainer.profiler", "simple"])

    def test_timing_changes_no_bytes(self):
        for name, more in [("a", []), ("b", ["trainer.profiler=simple"])]:
            self.run_kiln(*TINY, f"kiln.run.dir={name}", *more)
        model = "checkpoints/last/model.safetensors"
        self.assertEqual(read(self.path("a", model)), read(self.path("b", model)))


class Threads(Case):
    def threads(self, *args, **environment):
        out, _ = self.run_kiln(*[arg for arg in TINY if "threads" not in arg], *args, "kiln.run.dir=run", "test=false",
                               "trainer.max_epochs=1", "--verbose", env={**os.environ, **environment})
        return out, read_json(self.path("run", "summary.json"))["threads"]

    def test_the_environment_is_respected(self):
        out, threads = self.threads(OMP_NUM_THREADS="3")
        self.assertEqual(threads, 3)
        self.assertIn("3 threads: set by OMP_NUM_THREADS", out)

    def test_affinity_is_respected(self):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            out, threads = self.threads()
        finally:
            os.sched_setaffinity(0, allowed)
        self.assertEqual(threads, 1)
        if len(allowed) > 1:
            self.assertRegex(out, r"1 thread: the process may run on 1 of \d+ processors")

    def test_the_option_wins(self):
        _, threads = self.threads("trainer.threads=2", OMP_NUM_THREADS="3")
        self.assertEqual(threads, 2)

    def test_same_threads_same_bytes(self):
        """However many processors there are for them."""
        allowed = os.sched_getaffinity(0)
        args = ["model=cnn", "datamodule.train_count=256", "datamodule.val_count=64", "trainer.max_epochs=1",
                "test=false", "trainer.threads=3"]
        self.run_kiln(*args, "kiln.run.dir=a")
        os.sched_setaffinity(0, {min(allowed)})
        try:
            self.run_kiln(*args, "kiln.run.dir=b")
        finally:
            os.sched_setaffinity(0, allowed)
        model = "checkpoints/last/model.safetensors"
        self.assertEqual(read(self.path("a", model)), read(self.path("b", model)))


if __name__ == "__main__":
    main()
