"""Flight records: what they contain, also after a kill, and what `kiln replay` finds in them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re
import signal
import unittest

from kilntest import BUILD, TINY, Braked, build_plugin, live, main, read

FAST = TINY + ["test=false", "callbacks=[default,flight_recorder]"]
ASAN = "asan" in BUILD


class Replay(Braked):
    def replay(self, *args, **options):
        return self.run_kiln("replay", *args, program="kiln", **options)[0]

    def poisoned(self, *args, **options):
        """8 batches of 32 in order; sample 101, in batch 3, may be bad."""
        self.plugin = build_plugin("poison", self.dir)
        return self.run_kiln("--plugin", self.plugin, "datamodule._target_=datamodule/poison",
                             "datamodule.sampler=sequential", "model=mlp", "model.hidden=[8]", "trainer.threads=1",
                             "trainer.max_epochs=2", "test=false", "datamodule.bad=101", "kiln.run.dir=run",
                             "callbacks=flight_recorder", *args, **options)

    def test_a_bad_sample(self):
        for what, word in [("not_a_number", "NaN"), ("infinite", "infinity")]:
            run = f"kiln.run.dir={what}"
            _, err = self.poisoned(f"datamodule.what={what}", run, status=3)
            self.assertIn("the loss is NaN at epoch 0, step 4", err)
            out = self.replay(what, "--plugin", self.plugin)
            self.assertIn("replay of epoch 0, batch 3, step 3, from the beginning", out)
            self.assertIn("samples 96, 97, 98, 99, 100, 101, 102, 103, ... (32)", out)
            self.assertIn(f'the data: sample 101 holds {word} in "image"', out)
            self.assertRegex(out, r"reproduced: epoch 0, step 4 \(batch 4 of the epoch\): layers\.0: linear\S*: the result .* holds")
            self.assertEqual(len(re.findall("equal$", out, re.M)), 3, out)

    def test_an_exploding_rate(self):
        _, err = self.run_kiln(*FAST, "lr=1e6", "scheduler=constant", "kiln.run.dir=run", status=3)
        self.assertIn("kiln replay", read(self.path("run/train.log"), "r"))
        out = self.replay("run/flight.kiln")
        self.assertNotIn("the data:", out)
        self.assertRegex(out, r"reproduced: epoch 0, step \d+ \(batch \d+ of the epoch\): .*(holds|infinity|NaN)")

    def test_after_a_kill(self):
        """The record of a run that was killed; the replay goes from the nearest checkpoint."""
        self.hold(after=60)
        process = self.start(*FAST, *self.braked, "model.dropout=0.2", "trainer.max_epochs=100000", "kiln.run.dir=run",
                             "callbacks.model_checkpoint.every_n_epochs=1")
        self.wait_for(lambda: (at := live(self.path("run"))) and at.step == 60, process)
        self.wait_for(lambda: "epoch=006-step=56" in os.listdir(self.path("run/checkpoints")), process)
        process.kill()
        process.communicate()
        self.let_go()
        os.mkdir(self.path("tmp"))
        out = self.replay("run", "--plugin", self._brake, env={**os.environ, "TMPDIR": self.path("tmp")})
        self.assertIn("the run was cut off", out)
        self.assertRegex(out, r"from epoch=\d+-step=\d+")
        self.assertIn("equal: every loss and gradient norm", out)
        self.assertEqual(os.listdir(self.path("tmp")), [])

    @unittest.skipIf(ASAN, "the sanitizer catches the signal")
    def test_a_crash(self):
        self.plugin = build_plugin("poison", self.dir)
        process = self.start("--plugin", self.plugin, "datamodule._target_=datamodule/poison",
                             "datamodule.sampler=sequential", "model=mlp", "model.hidden=[8]", "trainer.threads=1",
                             "trainer.num_workers=0", "test=false", "datamodule.bad=101", "datamodule.what=crash",
                             "callbacks=flight_recorder", "kiln.run.dir=run")
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGSEGV)
        out = self.replay("run", "--plugin", self.plugin)
        self.assertIn("the run was cut off", out)
        self.assertIn(f"reproduced: the replay ended by signal {int(signal.SIGSEGV)}", out)

    def test_other_results(self):
        """Of the same run with another seed of dropout nothing is equal."""
        self.run_kiln(*FAST, "model.dropout=0.5", "callbacks.flight_recorder.keep=true", "kiln.run.dir=run")
        out = self.replay("run")
        self.assertIn("the run ended: well", out)
        self.assertIn("equal: every loss", out)
        out = self.replay("run", "model.dropout=0.4", status=1)
        self.assertIn("16 batches differ", out)
        self.assertIn("15 batches differ", self.replay("run", "lr=0.5", status=1))

    def test_the_record_of_a_bad_end_outlives_a_resume(self):
        self.run_kiln(*FAST, "lr=1e6", "optimizer.momentum=0", "kiln.run.dir=run", status=3)
        self.run_kiln("resume=run", "lr=0.01")
        self.assertFalse(os.path.exists(self.path("run/flight.kiln")))
        out, _ = self.run_kiln("replay", "run/flight.before.kiln", "lr=1e6", program="kiln")
        self.assertRegex(out, "reproduced: .*linear: the result")

    def test_accumulation(self):
        self.run_kiln(*FAST, "trainer.accumulate_grad_batches=3", "callbacks.flight_recorder.keep=true",
                      "callbacks.flight_recorder.batches=5", "kiln.run.dir=run")
        out = self.replay("run")
        self.assertIn("recorded: 5 batches", out)
        self.assertEqual(len(re.findall("no step$", out, re.M)), 3, out)
        self.assertEqual(len(re.findall("equal$", out, re.M)), 2, out)

    def test_a_run_that_ends_well_keeps_none(self):
        self.run_kiln(*FAST, "kiln.run.dir=run")
        self.assertFalse(os.path.exists(self.path("run/flight.kiln")))

    def test_bad_records(self):
        _, err = self.run_kiln("replay", program="kiln", status=2)
        self.assertIn("last, best or a flight record", err)
        _, err = self.run_kiln("replay", "none", program="kiln", status=1)
        self.assertIn("none: there is no such folder", err)
        self.write("bad.kiln", b"kilnfl1\0" + b"\xff" * 5000)
        _, err = self.run_kiln("replay", "bad.kiln", program="kiln", status=1)
        self.assertIn("is not a flight record", err)


if __name__ == "__main__":
    main()
