"""kiln ckpt average: the mean of checkpoints, what can be done with it, and what is refused."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import struct
import subprocess

from kilntest import BUILD, Case, main, read_json

RUN = ["model=mlp", "model.hidden=[8]", "trainer.max_epochs=3", "trainer.limit_train_batches=10", "trainer.threads=1", "test=false",
       "callbacks.model_checkpoint.save_top_k=-1"]


def tensors(path):
    """Name -> (dtype, shape, values) of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    kinds = {"F32": "f", "I64": "q"}
    return {name: (t["dtype"], t["shape"], [v for v, in struct.iter_unpack("<" + kinds[t["dtype"]], data[8 + size:][slice(*t["data_offsets"])])])
            for name, t in header.items()}


class Average(Case):
    def kiln(self, *args, status=0):
        done = subprocess.run([os.path.join(BUILD, "kiln"), *args], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def setUp(self):
        super().setUp()
        self.kiln("train", *RUN, "kiln.run.dir=run")
        self.names = [f"run/checkpoints/{name}" for name in sorted(os.listdir(self.path("run/checkpoints"))) if name.startswith("epoch")]

    def test_mean(self):
        """Sums in f64, in the order of the checkpoints, rounded once."""
        self.assertEqual(len(self.names), 3)
        out, _ = self.kiln("ckpt", "average", "run", "last=2", "output=new/averaged")
        self.assertEqual([os.path.basename(line) for line in out.splitlines()[:2]], [os.path.basename(n) for n in self.names[1:]])
        parts = [tensors(self.path(f"{name}/model.safetensors")) for name in self.names[1:]]
        mean = tensors(self.path("new/averaged/model.safetensors"))
        self.assertEqual(set(mean), set(parts[0]))
        for name, (dtype, shape, values) in mean.items():
            self.assertEqual((dtype, shape), parts[0][name][:2])
            for value, a, b in zip(values, parts[0][name][2], parts[1][name][2]):
                self.assertEqual(value, struct.unpack("<f", struct.pack("<f", (0.0 + a + b) / 2))[0], name)
        self.assertEqual(os.listdir(self.path("new")), ["averaged"])
        self.kiln("ckpt", "verify", "new/averaged", *self.names)

    def test_use(self):
        """The mean of one checkpoint is the checkpoint; it is tested, predicts, and gives weights, but is not resumed."""
        self.kiln("ckpt", "average", self.names[2], self.names[2], "output=run/checkpoints/same")
        self.kiln("eval", self.names[2], "split=val", "-q")
        for command in (["eval", "run/checkpoints/same", "split=val", "-q"], ["predict", "run/checkpoints/same", "split=val", "output=p.jsonl", "-q"],
                        ["train", *RUN, "weights=run/checkpoints/same", "kiln.run.dir=second"]):
            self.kiln(*command)
        self.kiln("predict", self.names[2], "split=val", "output=q.jsonl", "-q")
        self.assertEqual(pathlib.Path(self.path("p.jsonl")).read_bytes(), pathlib.Path(self.path("q.jsonl")).read_bytes())
        _, err = self.kiln("train", "ckpt_path=run/checkpoints/same", *RUN, status=1)
        self.assertIn("has only weights", err)
        out, _ = self.kiln("ckpt", "ls", "run")
        self.assertRegex(out, r"same .*\(weights only\)")
        state = read_json(self.path("run/checkpoints/same/state.json"))
        self.assertEqual([os.path.relpath(p, os.path.realpath(self.dir)) for p in state["averaged"]], [self.names[2]] * 2)
        # it is none of the run's own
        _, err = self.kiln("ckpt", "average", "run", "last=4", "output=x", status=1)
        self.assertIn("last=4: run has 3 checkpoints; callbacks.model_checkpoint.save_top_k=-1", err)

    def test_refusals(self):
        self.kiln("train", *RUN, "model.hidden=[9]", "kiln.run.dir=other")
        for args, status, says in [
                (["run", "last=2"], 2, "average: needs the folder to write: output=FOLDER"),
                (["run", "last=two", "output=x"], 2, "last=two: expected a number from 1"),
                (["run", "output=x"], 2, "expected several checkpoints, or one run and last=N"),
                (["run", "run", "last=2", "output=x"], 2, "expected several checkpoints, or one run and last=N"),
                (["run", "last=2", "output=run"], 2, "output=run: it exists"),
                (["run", "nowhere", "output=x"], 1, "nowhere: there is no such folder"),
                (["run", "other", "output=x"], 1, "are of different models: ")]:
            _, err = self.kiln("ckpt", "average", *args, status=status)
            self.assertIn(says, err)
            self.assertFalse(os.path.exists(self.path("x")))
        self.assertRegex(err, r"weight is \[8, \d+\] in the first and \[9, \d+\] in the second")


main()
