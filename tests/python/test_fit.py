"""Training from Python: the bytes of the command, batch by batch, Ctrl-C, and errors."""
import contextlib
import io
import math
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest

import numpy as np
from pythontest import ROOT, TINY, Case

import kiln


def quiet(function, *args, **options):
    """Without output, which is returned with the result."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        return function(*args, **options), out.getvalue()


class Fit(Case):
    def test_same_bytes_as_the_command(self):
        for model in (["model=mlp", "model.hidden=[16]"], ["model=cnn", "optimizer=adam"]):
            words = [*TINY[2:], *model, "lr=0.02", "trainer.threads=2", "callbacks.model_checkpoint.save_top_k=-1"]
            self.train(*words, "kiln.run.dir=command")
            run = kiln.fit(*words, "kiln.run.dir=package", progress=False)
            self.assertEqual(run.status, "finished")
            stepped = kiln.Fit(*words, "kiln.run.dir=steps", progress=False)
            with stepped as training:
                self.assertEqual([trainer.step for trainer in training], list(range(1, 17)))
            names = [checkpoint.name for checkpoint in run.checkpoints]
            self.assertEqual(names, ["epoch=000-step=8", "epoch=001-step=16"])
            for other in (run.dir, stepped.run.dir):
                for name in names:
                    self.assert_same_files(f"command/checkpoints/{name}", other / "checkpoints" / name)
                self.assertEqual([row.split(",")[:5] + row.split(",")[6:] for row in (other / "metrics.csv").read_text().splitlines()],
                                 [row.split(",")[:5] + row.split(",")[6:] for row in pathlib.Path("command/metrics.csv").read_text().splitlines()])
                same = (pathlib.Path("command/.kiln/job.yaml"), other / ".kiln/job.yaml")
                self.assertEqual(same[0].read_text(), same[1].read_text())
            for folder in ("command", "package", "steps"):
                subprocess.run(["rm", "-r", folder], check=True)

    def test_output(self):
        run, out = quiet(kiln.fit, *TINY)
        self.assertIn("epoch 1/1  train/loss ", out)
        self.assertIn("run folder ", out)
        self.assertEqual(run.dir.parents[2], self.dir)
        self.assertEqual(quiet(kiln.fit, *TINY, "kiln.run.dir=other", progress=False)[1], "")

    def test_config_object(self):
        config = kiln.compose(*TINY, "kiln.run.dir=run")
        self.assertEqual(kiln.fit(config, progress=False).dir, self.dir / "run")
        with self.assertRaises(TypeError):
            kiln.fit(config, "lr=1")

    def test_errors(self):
        with self.assertRaisesRegex(kiln.ConfigError, "did you mean"):
            kiln.fit("model=mpl", progress=False)
        kiln.fit(*TINY, "kiln.run.dir=run", progress=False)
        with self.assertRaisesRegex(kiln.KilnError, "not empty") as caught:
            kiln.fit(*TINY, "kiln.run.dir=run", progress=False)
        self.assertEqual(caught.exception.status, "input or output failed")
        with self.assertRaisesRegex(kiln.KilnError, "the loss is NaN"):
            kiln.fit(*TINY, "optimizer.lr=1000000", "kiln.run.dir=bad", "trainer.max_epochs=40", progress=False)
        self.assertEqual(kiln.Run("bad").status, "failed")

    def test_resume(self):
        whole = kiln.fit(*TINY, "trainer.max_epochs=3", "kiln.run.dir=whole", progress=False)
        run = kiln.fit(*TINY, "trainer.max_epochs=1", "kiln.run.dir=run", progress=False)
        again = run.resume("trainer.max_epochs=3", progress=False)
        self.assertEqual(again.dir, run.dir)
        # The cosine schedule knows only the epochs that its own options have: the resumed run differs, the interrupted one does not.
        with kiln.Fit(*TINY, "trainer.max_epochs=3", "kiln.run.dir=stopped", progress=False) as training:
            for _ in range(11):
                training.step()
        self.assertEqual(training.run.status, "interrupted")
        kiln.fit(resume="stopped", progress=False)
        self.assert_same_files("stopped/checkpoints/last", whole.dir / "checkpoints/last", ("model.safetensors", "trainer.safetensors"))

    def test_steps(self):
        with self.assertRaises(ZeroDivisionError):
            with kiln.Fit(*TINY, "kiln.run.dir=run", progress=False) as training:
                trainer = training.trainer
                self.assertTrue(math.isnan(trainer.loss))
                self.assertTrue(training.step())
                self.assertTrue(0 < trainer.loss < 5)
                self.assertEqual((trainer.step, trainer.epoch, trainer.batch, trainer.batches), (1, 0, 1, 8))
                trainer.learning_rate = 0.0
                trainer.log("mine", 2.5)
                trainer.save("kept")
                training.step()
                self.assertEqual(trainer.learning_rate, 0.0)
                self.assertEqual(trainer.metric("mine"), 2.5)
                self.assertIsNone(trainer.metric("none"))
                self.assertEqual(trainer.run_dir, str(self.dir / "run"))
                1 / 0
        self.assertEqual(training.run.status, "interrupted")
        self.assertIn("kept", [checkpoint.name for checkpoint in training.run.checkpoints])
        with self.assertRaises(RuntimeError):
            trainer.step

    def test_two_at_once(self):
        """Runs in two threads, which leave the bytes of one alone."""
        alone = kiln.fit(*TINY, "kiln.run.dir=alone", progress=False)
        runs = {}
        threads = [threading.Thread(target=lambda i=i: runs.update({i: kiln.fit(*TINY, f"kiln.run.dir=run{i}", progress=False)}))
                   for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(2):
            self.assert_same_files(runs[i].dir / "checkpoints/last", alone.dir / "checkpoints/last")

    def test_fork(self):
        """A process that is forked after training can train and predict."""
        words = [*TINY[:-1], "trainer.threads=2"]
        run = kiln.fit(*words, "kiln.run.dir=run", progress=False)
        model = run.model()
        pixels = np.random.default_rng(0).random((3, 28, 28, 1), np.float32)
        want = model.predict(pixels)["probabilities"]
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            same = np.array_equal(model.predict(pixels)["probabilities"], want)
            other = kiln.fit(*words, "kiln.run.dir=child", progress=False)
            os._exit(0 if same and other.status == "finished" else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assert_same_files("run/checkpoints/last", "child/checkpoints/last")


class Arrays(Case):
    @staticmethod
    def data(n, seed):
        rng = np.random.default_rng(seed)
        point = rng.uniform(-1, 1, (n, 2)).astype(np.float32)
        return {"point": point, "label": (np.hypot(*point.T) < 0.8).astype(np.int64)}

    def test_classes(self):
        words = ["datamodule=arrays", "task=classification", "model=mlp", "optimizer=adam", "lr=0.01", "trainer.threads=1"]
        data = {"train": self.data(2000, 1), "test": self.data(300, 2)}
        run = kiln.fit(*words, data=data, classes=["outside", "inside"], progress=False)
        result = run.evaluate(data={"test": data["test"]}, classes=["outside", "inside"])
        self.assertGreater(result["test/accuracy"], 0.93)
        model = run.model()
        predicted = model.predict(data["test"]["point"])
        self.assertEqual(predicted.classes, ["outside", "inside"])
        right = (predicted["probabilities"].argmax(1) == data["test"]["label"]).mean()
        self.assertAlmostEqual(right, result["test/accuracy"], places=6)

    def test_numbers(self):
        x = np.linspace(-1, 1, 500, dtype=np.float32)[:, None]
        run = kiln.fit("datamodule=arrays", "task=regression", "model=mlp", "optimizer=adam", "lr=0.01", "trainer.max_epochs=20",
                       data={"train": {"x": x, "target": (3 * x[:, 0] - 1).astype(np.float32)}}, progress=False)
        self.assertLess(abs(run.model().predict(x)["value"].ravel() - (3 * x[:, 0] - 1)).mean(), 0.2)

    def test_refused(self):
        words = ["datamodule=arrays", "task=classification", "model=mlp"]
        good = self.data(50, 1)
        for data, says in [({"test": good}, "train"), ({"train": {**good, "label": good["label"][:9]}}, "numbers of samples"),
                           ({"train": {**good, "words": np.zeros((50, 7), np.int32)}}, "say what it is"),
                           ({"train": good, "val": {**good, "label": good["label"] + 5}}, "id 6; expected 0 to 1"),
                           ({"train": good, "val": {**good, "point": np.zeros((50, 3), np.float32)}}, r"expected \(2,\)")]:
            with self.assertRaisesRegex(ValueError, says):
                kiln.fit(*words, data=data, progress=False)
        with self.assertRaisesRegex(kiln.KilnError, "gives none"):
            kiln.fit(*words, progress=False)


class Interrupt(Case):
    SCRIPT = textwrap.dedent("""
        import kiln, os, sys, threading
        class Ready(kiln.Callback):
            def on_train_epoch_end(self, trainer):
                open("ready", "w").close()
        run = kiln.fit(*sys.argv[1:], callbacks=[Ready()], progress=False)
        import time
        try:
            print(run.status, run.checkpoint("last").step > 0, flush=True)
            time.sleep(30)
        except KeyboardInterrupt:
            print("again")
    """)

    def test_ctrl_c(self):
        """The run saves and returns; later Ctrl-C is KeyboardInterrupt again; the run resumes."""
        words = [*TINY[:-2], "trainer.max_epochs=100000", "trainer.threads=1", "kiln.run.dir=run"]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        process = subprocess.Popen([sys.executable, "-c", self.SCRIPT, *words], env=env, stdout=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while not os.path.exists("ready") and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "interrupted True\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=60)[0], "again\n")
        self.assertEqual(process.returncode, 0)
        run = kiln.Run("run")
        self.assertEqual(run.status, "interrupted")
        done = run.checkpoint("last").epoch

        class Ready(kiln.Callback):  # the run's config names it
            def on_train_epoch_end(self, trainer):
                pass

        again = run.resume({"trainer.max_epochs": done + 3}, progress=False)
        self.assertEqual(again.checkpoint("last").epoch, done + 2)


if __name__ == "__main__":
    unittest.main()
