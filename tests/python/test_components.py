"""Callbacks, metrics and datamodules in Python: in configs and as objects, with options, state, threads and errors."""
import contextlib
import math
import threading
import unittest
from typing import Dict

import numpy as np
from experiment import Patience, Rings, TopTwo, Words
from pythontest import TINY, Case

import kiln

CIRCLE = ["task=classification", "model=mlp", "model.hidden=[16]", "optimizer=adam", "lr=0.02", "trainer.threads=1", "test=false"]


class Callbacks(Case):
    def test_object(self):
        stop = Patience(epochs=1, monitor="val/accuracy", mode="min")
        run = kiln.fit(*TINY[:-2], "trainer.max_epochs=30", callbacks=[stop], progress=False)
        self.assertEqual(run.status, "stopped")
        self.assertEqual(run.summary["reason"], "val/accuracy did not improve for 1 epochs")
        self.assertLess(len(stop.seen), 30)
        self.assertEqual(run.rows()["seen"][:2], [1, 2])
        self.assertEqual(run.config["callbacks.patience"],
                         {"_target_": "callback/patience", "monitor": "val/accuracy", "epochs": 1, "factor": 1.0, "mode": "min",
                          "note": None, "steps": []})

    def test_named_in_a_config(self):
        run = kiln.fit(*TINY[:-2], "trainer.max_epochs=30", progress=False,
                       *["+callbacks.patience={_target_:patience,monitor:val/accuracy,epochs:2,steps:[1,2],note:'it is'}"])
        self.assertEqual(run.summary["reason"], "val/accuracy did not improve for 2 epochs")
        config = kiln.compose("+callbacks.patience={_target_:patience}")
        self.assertEqual(config.origin("callbacks.patience.epochs"), "default of callback/patience")

    def test_options_are_checked(self):
        for options, says in [("epochs:few", 'expected an integer, got "few"'), ("mode:most", "min"), ("epoch:3", '"epochs"'),
                              ("steps:[1,x]", "steps"), ("epochs:null", "epochs")]:
            with self.assertRaisesRegex(kiln.ConfigError, says):
                kiln.compose(f"+callbacks.patience={{_target_:patience,{options}}}")
        with self.assertRaisesRegex(TypeError, "has no option epoch"):
            Patience(epoch=3)

    def test_state(self):
        """A resumed run has the callback's state."""
        words = [*TINY[:-2], "trainer.threads=1", "trainer.max_epochs=4", "kiln.run.dir=run"]
        callback = Patience(epochs=9)
        with contextlib.suppress(StopIteration), kiln.Fit(*words, callbacks=[callback], progress=False) as training:
            for _ in range(20):  # into the third epoch
                training.step()
        self.assertEqual(len(callback.seen), 2)
        run = training.run.resume(progress=False)
        self.assertEqual(run.rows()["seen"][:4], [1, 2, 3, 4])

    def test_errors(self):
        """What a hook raises ends the run, and is the cause of the error."""

        class Fails(kiln.Callback):
            hook: str = "on_train_batch_end"

            def _fail(self, trainer):
                raise LookupError("not this one")

        for hook in ("setup", "on_fit_start", "on_train_batch_end", "on_validation_end", "teardown"):
            cls = type("Fails_" + hook, (Fails,), {"name": "fails_" + hook, hook: Fails._fail})
            with self.assertRaisesRegex(kiln.KilnError, f"{hook}.*LookupError: not this one|LookupError: not this one") as caught:
                kiln.fit(*TINY, callbacks=[cls()], progress=False)
            self.assertIsInstance(caught.exception.__cause__, LookupError)
            self.assertEqual(caught.exception.__cause__.__traceback__.tb_next.tb_frame.f_code.co_name, "_hook")

    def test_values_of_a_batch(self):
        seen = {}

        class Watch(kiln.Callback):
            def on_validation_batch_end(self, trainer):
                seen["phase"] = trainer.phase
                seen["outputs"] = trainer.outputs
                seen["image"], seen["label"] = trainer.feature("image"), trainer.feature("label")
                seen["none"] = trainer.feature("nothing")
                seen["trainer"] = trainer
                trainer.print("seen by Python")

        run = kiln.fit(*TINY, callbacks=[Watch()], progress=False)
        self.assertEqual(seen["image"].shape, (32, 28, 28, 1))
        self.assertEqual((seen["label"].shape, seen["label"].dtype), ((32,), np.int32))
        self.assertEqual(seen["phase"], "validate")
        self.assertIsNone(seen["none"])
        self.assertIn("seen by Python", run.log)
        with self.assertRaises(RuntimeError):
            seen["trainer"].epoch

    def test_what_it_logs_can_be_monitored(self):
        class Gap(kiln.Callback):
            logs = {"gap": "min"}

            def on_validation_end(self, trainer):
                trainer.log("gap", 1.0)

        words = [*TINY[:-2], "trainer.max_epochs=30", "+callbacks.early_stopping={_target_: early_stopping, monitor: gap, patience: 1}"]
        run = kiln.fit(*words, callbacks=[Gap()], progress=False)
        self.assertEqual(run.summary["metrics"]["gap"]["mode"], "min")
        self.assertIn("gap has not improved", run.summary["reason"])

    def test_bad_classes(self):
        """Refused where they are defined; what is used later does not see them."""
        for base, members, says in [(kiln.Callback, {"__annotations__": {"counts": Dict[str, int]}}, "Bad.counts: an option is"),
                                    (kiln.Callback, {"on_train_epoch_ende": print}, "is no hook; did you mean on_train_epoch_end"),
                                    (kiln.Callback, {"logs": {"gap": "least"}}, "Bad.logs: gap: expected"),
                                    (kiln.Metric, {"takes": "klasses"}, 'Bad.takes: expected "classes" or "values"')]:
            with self.assertRaisesRegex(TypeError, says):
                type("Bad", (base,), members)
        kiln.compose("model=mlp")
        with self.assertRaisesRegex(TypeError, "kiln.Callback"):
            kiln.fit(*TINY, callbacks=[TopTwo()])


    def test_overrides_of_an_object(self):
        stop = Patience(epochs=1)
        kiln.fit("callbacks.patience.epochs=3", *TINY, callbacks=[stop], progress=False)
        self.assertEqual(stop.epochs, 3)
        with self.assertRaisesRegex(ValueError, "two components are called patience"):
            kiln.fit(*TINY, callbacks=[stop, Patience()])


class Metrics(Case):
    def test_metric(self):
        run = kiln.fit(*TINY, "callbacks.model_checkpoint.monitor=val/top_two", metrics=[TopTwo()], progress=False)
        rows = run.rows()
        self.assertGreaterEqual(rows["val/top_two"][1], rows["val/accuracy"][1])
        self.assertEqual(rows["val/top_two/rows"][:2], [64, 64])
        half = kiln.fit(*TINY, "+task.metrics.half={_target_:top_two,weight:0.5}", progress=False)
        self.assertAlmostEqual(half.rows()["val/half"][1], rows["val/top_two"][1] / 2, places=6)

    def test_of_values(self):
        class Worst(kiln.Metric):
            takes = "values"
            mode = "min"

            def compute(self, scores, truth):
                return np.abs(scores - truth).max()

        x = np.linspace(-1, 1, 200, dtype=np.float32)[:, None]
        run = kiln.fit("datamodule=arrays", "task=regression", "model=mlp", "trainer.max_epochs=2", metrics=[Worst()],
                       data={"train": {"x": x, "target": x[:, 0]}}, progress=False)
        self.assertGreater(run.rows()["val/worst"][1], 0)

    def test_error(self):
        class Broken(kiln.Metric):
            def compute(self, scores, truth):
                return truth[10 ** 9]

        with self.assertRaisesRegex(kiln.KilnError, "IndexError"):
            kiln.fit(*TINY, metrics=[Broken()], progress=False)


class Datamodules(Case):
    def test_arrays_and_samples(self):
        """Both ways give the same bytes, with any number of threads that read."""
        runs = [kiln.fit(*CIRCLE, datamodule=Rings(arrays=True), progress=False),
                kiln.fit(*CIRCLE, "trainer.num_workers=3", datamodule=Rings(arrays=False), progress=False),
                kiln.fit(*CIRCLE, "datamodule=rings", "datamodule.arrays=false", "trainer.num_workers=0", progress=False)]
        for run in runs[1:]:
            self.assert_same_files(runs[0].dir / "checkpoints/last", run.dir / "checkpoints/last",
                                   ("model.safetensors", "trainer.safetensors"))
        self.assertGreater(max(runs[0].rows()["val/accuracy"]), 0.75)
        self.assertEqual(runs[0].config["datamodule.count"], 600)
        model = runs[0].model()
        self.assertEqual(model.classes, ["outside", "inside"])
        self.assertGreater(model.predict(np.zeros(2, np.float32))["probabilities"][1], 0.5)
        with self.assertRaisesRegex(kiln.KilnError, r"\[3\]; expected f32 \[2\]|\[3\]; expected \[2\]"):
            model.predict(np.zeros((1, 3), np.float32)[0])

    def test_varying(self):
        run = kiln.fit("task=classification", "model=text_lstm", "trainer.threads=1", "trainer.max_epochs=2", "test=false",
                       datamodule=Words(), progress=False)
        self.assertTrue(math.isfinite(run.rows()["val/loss"][1]))
        predicted = run.model().predict([np.array([1, 2, 3]), np.array([1, 1, 1, 1, 2])])
        self.assertEqual(predicted["probabilities"].shape, (2, 2))

    def test_refused(self):
        words = ["task=classification", "model=text_lstm", "trainer.threads=1", "trainer.max_epochs=1", "test=false"]
        with self.assertRaisesRegex(kiln.KilnError, r"sample 7 of (train|val): tokens has shape \(13,\); expected at most \(12,\)"):
            kiln.fit(*words, datamodule=Words(broken=7), progress=False)

        class Nothing(kiln.DataModule):
            def features(self):
                return {"x": kiln.vector(3), "label": kiln.label(2)}

            def dataset(self, split):
                return {"x": np.zeros((4, 3)), "label": np.array([0, 1, 2, 0])}

        with self.assertRaisesRegex(kiln.KilnError, "id 2; expected 0 to 1") as caught:
            kiln.fit("task=classification", "model=mlp", datamodule=Nothing(), progress=False)
        self.assertIsInstance(caught.exception.__cause__, ValueError)

    def test_threads_of_python_run_meanwhile(self):
        """Training holds the interpreter's lock only while Python's own functions run."""
        counted, done = [0], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        try:
            kiln.fit(*CIRCLE, datamodule=Rings(arrays=False), progress=False)
        finally:
            done.set()
            thread.join()
        self.assertGreater(counted[0], 1000)


if __name__ == "__main__":
    unittest.main()
