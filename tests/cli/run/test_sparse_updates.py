"""optimizer.sparse: updates of the rows of embeddings that a step used."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]

import unittest

from kilntest import ROOT, TINY, Case


class SparseUpdates(Case):
    """The plugin word_pairs, whose model looks up the words of two texts in one embedding."""

    def setUp(self):
        super().setUp()
        subprocess.run(["cc", "-std=c17", "-O2", "-fPIC", "-shared", "-DKILN_BUILD_PLUGIN", "-D_POSIX_C_SOURCE=200809L", "-I",
                        os.path.join(ROOT, "src"), "-o", self.path("word_pairs.so"),
                        os.path.join(ROOT, "examples/plugin/word_pairs.c")], check=True)
        self.words = ["--plugin", "./word_pairs.so", "datamodule=word_pairs", "task=longer_list", "model=two_encoders",
                      "datamodule.count=96", "datamodule.batch_size=4", "lr=0.02", "trainer.max_steps=11", "trainer.log_every_n_steps=1",
                      "seed=1", "trainer.threads=2"]

    def digest(self, run, file="model.safetensors"):
        return hashlib.sha256(pathlib.Path(self.path(run, "checkpoints/last", file)).read_bytes()).hexdigest()

    def trains(self, name, *args):
        self.run_kiln(*self.words, *args, f"kiln.run.dir={name}")
        return self.digest(name)

    def test_same_as_all_rows(self):
        """What leaves rows without a gradient alone anyway gives the same bytes, also clipped and accumulated."""
        for name, *optimizer in ["sgd", "optimizer.momentum=0"], ["adagrad", "optimizer.initial_accumulator_value=0.1"]:
            for i, args in enumerate(([], ["trainer.gradient_clip_val=0.01", "trainer.gradient_clip_algorithm=value"], \
                    ["trainer.accumulate_grad_batches=3"])):
                args = [f"optimizer={name}", *optimizer, "optimizer.weight_decay=0", *args]
                self.assertEqual(self.trains(f"{name}{i}-rows", *args, "optimizer.sparse=true"),
                                 self.trains(f"{name}{i}", *args))

    def test_adam_leaves_unused_rows(self):
        """One step from the same weights is the same; the next ones keep what a step does not use."""
        args = ["optimizer=adam", "trainer.gradient_clip_val=0.5", "trainer.track_grad_norm=true", "datamodule.batch_size=1"]
        one = [*args, "trainer.max_steps=1"]
        self.assertEqual(self.trains("one", *one, "optimizer.sparse=true"), self.trains("one-all", *one))
        self.assertNotEqual(self.trains("rows", *args, "optimizer.sparse=true"), self.trains("all", *args))

    def test_resume(self):
        """Also between the batches of a step, where the rows of the gradient are part of the checkpoint."""
        args = [*self.words, "optimizer=adam", "optimizer.sparse=true", "datamodule.batch_size=1", "trainer.max_steps=8",
                "trainer.accumulate_grad_batches=7", "trainer.val_check_interval=10", "callbacks.model_checkpoint.save_top_k=-1"]
        self.run_kiln(*args, "kiln.run.dir=whole")
        for step, in_group in (2, 6), (4, 2):
            checkpoint = f"whole/checkpoints/epoch=000-step={step}"
            self.assertEqual(json.loads(pathlib.Path(self.path(checkpoint, "state.json")).read_text())["in_group"], in_group)
            self.run_kiln(*args, f"ckpt_path='{checkpoint}'", f"kiln.run.dir=from{step}")
            for file in "model.safetensors", "trainer.safetensors":
                self.assertEqual(self.digest("whole", file), self.digest(f"from{step}", file))

    def test_refused(self):
        for args, says in (
                (["optimizer=sgd", "optimizer.momentum=0.9"], ["optimizer.sparse", "momentum=0"]),
                (["optimizer=adamw"], ["optimizer.weight_decay", "words.weight", "weight_decay=0"]),
                (["optimizer=adam", "trainer.precision=bf16-true"], ["optimizer.sparse", "bf16-mixed"]),
                (["optimizer=lion"], ["sparse"])):
            self.refused(*self.words, *args, "optimizer.sparse=true", says=says)
        self.refused(*TINY, "optimizer=adam", "optimizer.sparse=true", says=["optimizer.sparse", "no embedding"])

    def test_groups(self):
        """Weight decay of the other parameters, and an embedding that is frozen."""
        groups = "+optimizer.groups={{words: {{params: ['*words.weight'], weight_decay: 0, lr_scale: {}}}}}"
        self.trains("decay", "optimizer=adamw", "optimizer.sparse=true", groups.format(1))
        self.trains("frozen", "optimizer=adamw", "optimizer.sparse=true", groups.format(0))

    def test_double(self):
        self.trains("double", "optimizer=adam", "optimizer.sparse=true", "trainer.precision=64-true")


if __name__ == "__main__":
    unittest.main()
