"""Manual optimization: two networks that train each other, and one without gradients."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import struct
import unittest

from kilntest import SHARED, SHORT, Case, build_plugin, main, read, read_json

MNIST = os.path.join(SHARED, "data/mnist")

DATA = ["datamodule=digits", "datamodule.train_count=512", "datamodule.val_count=128", "datamodule.test_count=128",
        "datamodule.size=12", "trainer.threads=1", "batch_size=32", "logger=csv"]
GAN = ["experiment=gan/digits", *DATA, "task.generator.hidden=[48]", "task.discriminator.hidden=[32]",
       "task.latent=8", "lr=0.002"]


def tensors(path):
    """The names in a safetensors file."""
    data = read(path)
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    return sorted(name for name in header if name != "__metadata__")


class Gan(Case):
    def metric(self, run, name):
        return read_json(self.path(run, "summary.json"))["metrics"][name]["last"]["value"]

    @unittest.skipIf(SHORT, "what is learned is the same with a sanitizer")
    def test_learns_what_the_data_looks_like(self):
        """The distance between generated images and the data's, of networks as they are drawn and when trained."""
        self.run_kiln(*GAN, "trainer.max_steps=1", "lr=1e-12", "kiln.run.dir=drawn")
        self.run_kiln(*GAN, "trainer.max_epochs=25", "kiln.run.dir=trained")
        before, after = self.metric("drawn", "test/distance"), self.metric("trained", "test/distance")
        self.assertLess(after, before / 2)

    @unittest.skipIf(SHORT, "what is learned is the same with a sanitizer")
    @unittest.skipUnless(os.path.isdir(MNIST), "needs ../shared/data/mnist")
    def test_learns_mnist(self):
        gan = ["experiment=gan/mnist", "datamodule.root=" + MNIST, "trainer.threads=1", "trainer.limit_val_batches=8",
               "trainer.limit_test_batches=8"]
        self.run_kiln(*gan, "trainer.max_steps=1", "lr=1e-12", "kiln.run.dir=drawn")
        self.run_kiln(*gan, "trainer.max_steps=600", "lr=0.001", "kiln.run.dir=trained")
        self.assertLess(self.metric("trained", "test/distance"), 0.8 * self.metric("drawn", "test/distance"))

    def test_resume_is_exact(self):
        gan = GAN + ["trainer.max_epochs=2", "test=false", "task.gradient_clip_val=0.5", "trainer.log_every_n_steps=1"]
        self.run_kiln(*gan, "kiln.run.dir=whole")
        for steps in [7, 16, 21]:
            run = f"part{steps}"
            self.run_kiln(*gan, f"trainer.max_steps={steps}", f"kiln.run.dir={run}")
            self.run_kiln(*gan, f"ckpt_path={run}", f"kiln.run.dir={run}")
            for name in ["model.safetensors", "trainer.safetensors"]:
                self.assertEqual(read(self.path("whole/checkpoints/last", name)),
                                 read(self.path(run, "checkpoints/last", name)))

    def test_states_have_their_optimizers_names(self):
        self.run_kiln(*GAN, "trainer.max_epochs=1", "test=false", "kiln.run.dir=run")
        names = tensors(self.path("run/checkpoints/last/trainer.safetensors"))
        self.assertIn("optimizer.generator.exp_avg.generator.layers.0.weight", names)
        self.assertIn("optimizer.discriminator.exp_avg_sq.discriminator.layers.1.bias", names)
        self.assertFalse([name for name in names if name.startswith("optimizer.generator.exp_avg.discriminator")])
        state = read_json(self.path("run/checkpoints/last/state.json"))
        self.assertEqual([(one["name"], one["updates"]) for one in state["optimizers"]],
                         [("discriminator", 16), ("generator", 16)])
        self.assertEqual(state["step"], 16)

    def test_picture(self):
        """A logger that takes images gets a grid of generated ones in each validation."""
        self.needs_tensorboard()
        gan = [word for word in GAN if word != "logger=csv"] + ["logger=tensorboard", "test=false"]
        self.run_kiln(*gan, "trainer.max_epochs=2", "kiln.run.dir=run")
        events = [os.path.join(folder, name) for folder, _, names in os.walk(self.path("run")) for name in names
                  if "tfevents" in name]
        data = read(events[0])
        self.assertEqual(data.count(b"\x89PNG"), 2)
        width, height = struct.unpack(">II", data[data.index(b"IHDR") + 4:][:8])
        self.assertEqual((width, height), (48, 48))  # 4 x 4 of 12 x 12

    def test_refused(self):
        self.refused(*GAN, "trainer.accumulate_grad_batches=2",
                     says=["trainer.accumulate_grad_batches: task gan drives its own steps"])
        self.refused(*GAN, "trainer.gradient_clip_val=1", says=["trainer.gradient_clip_val: task gan drives"])
        self.refused(*GAN, "+callbacks.a={_target_: gradient_accumulation_scheduler, scheduling: {0: 2}}",
                     says=["callbacks.a sets how many batches make a step, but the task drives its own"])
        self.refused(*GAN, "+task.generator_optimizer.groups.a={params: ['discriminator.*']}",
                     says=["task.generator_optimizer.groups.a.params"])


class Centroids(Case):
    """A plugin whose state is a text, and which has no parameters."""

    def setUp(self):
        super().setUp()
        self.plugin = build_plugin("centroids", self.dir)
        self.words = ["--plugin", self.plugin, *DATA, "task={_target_: module/nearest_centroid}",
                      "~model", "~optimizer", "~scheduler"]

    def state(self, run):
        return read_json(self.path(run, "checkpoints/last/state.json"))

    def test_trains_and_is_used(self):
        self.run_kiln(*self.words, "trainer.max_epochs=1", "kiln.run.dir=run")
        summary = read_json(self.path("run/summary.json"))
        self.assertEqual((summary["steps"], summary["parameters"]), (16, 0))
        accuracy = summary["metrics"]["test/accuracy"]["last"]["value"]
        self.assertGreater(accuracy, 0.5)
        self.assertEqual(tensors(self.path("run/checkpoints/last/model.safetensors")), [])
        out, _ = self.run_kiln("eval", "--plugin", self.plugin, "ckpt_path=run", program="kiln")
        self.assertEqual(json.loads(out)["metrics"]["test/accuracy"], accuracy)

    def test_resume_is_exact(self):
        self.run_kiln(*self.words, "trainer.max_epochs=2", "kiln.run.dir=whole")
        for steps in [5, 16, 23]:
            run = f"part{steps}"
            self.run_kiln(*self.words, "trainer.max_epochs=2", f"trainer.max_steps={steps}", "test=false",
                          f"kiln.run.dir={run}")
            self.assertNotEqual(self.state(run)["callbacks"]["task"], self.state("whole")["callbacks"]["task"])
            self.run_kiln(*self.words, "trainer.max_epochs=2", f"ckpt_path={run}", f"kiln.run.dir={run}")
            self.assertEqual(self.state(run)["callbacks"]["task"], self.state("whole")["callbacks"]["task"])
            self.assertEqual(self.state(run)["step"], 32)


class Tables(Case):
    """A module that learns from a whole table."""

    def setUp(self):
        super().setUp()
        self.words = ["--plugin", build_plugin("stump", self.dir), "datamodule=lengths", "task={_target_: module/stump}",
                      "~model", "~optimizer", "~scheduler", "trainer.max_epochs=1", "kiln.run.dir=run"]

    def test_trains_and_is_used(self):
        self.run_kiln(*self.words)
        self.assertEqual(read_json(self.path("run/summary.json"))["metrics"]["test/accuracy"]["last"]["value"], 1)
        state = read_json(self.path("run/checkpoints/last/state.json"))["callbacks"]["task"]
        self.assertEqual(state["column"], 1)
        self.assertTrue(3 < state["threshold"] < 5.5)
        out, _ = self.run_kiln("eval", *self.words[:2], "ckpt_path=run", program="kiln")
        self.assertEqual(json.loads(out)["metrics"]["test/accuracy"], 1)

    def test_no_table(self):
        _, err = self.run_kiln(*self.words, "datamodule.tables=false", status=1)
        self.assertIn("tables: is false", err)


main()
