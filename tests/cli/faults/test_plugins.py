"""Faulty plugins: what the program reports after a crash, or after a failure without a reason."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import signal
import unittest

from kilntest import TINY, Case, build_plugin


class Crashes(Case):
    def crash(self, plugin, *args, number, says):
        process = self.start("--plugin", plugin, *TINY, *args)
        _, err = process.communicate(timeout=120)
        if "AddressSanitizer" not in err:  # which reports it, too, and ends as it likes
            self.assertEqual(process.returncode, -number, err)
        for text in says:
            self.assertIn(text, err)

    def callback(self, **options):
        return "+callbacks.bad={_target_: crashes, %s}" % ", ".join(f"{k}: {v}" for k, v in options.items())

    def test_hook_of_a_plugin(self):
        plugin = build_plugin("crashes", self.dir)
        where = ["train: error: crashed with ", " in on_train_start of callback/crashes (callbacks.bad), of the plugin "
                 + plugin]
        self.crash(plugin, self.callback(how="memory"), number=signal.SIGSEGV,
                   says=[*where, "SIGSEGV", "it declares no state_size, so kiln_state gives NULL; to use it, set .state_size"])
        self.crash(plugin, self.callback(how="stack"), number=signal.SIGSEGV, says=[*where, "SIGSEGV"])
        self.crash(plugin, self.callback(how="abort"), number=signal.SIGABRT, says=[*where, "SIGABRT"])
        self.crash(plugin, self.callback(how="memory", hook="init"), number=signal.SIGSEGV,
                   says=["in init of callback/crashes (callbacks.bad)"])

    def test_constructor_of_a_plugin(self):
        plugin = build_plugin("crashes", self.dir, "-DIN_CONSTRUCTOR")
        self.crash(plugin, number=signal.SIGSEGV, says=["while the plugin " + plugin + " was loaded"])

    def test_outside_of_components(self):
        """A signal that was sent ends the process as before, with a word."""
        plugin = build_plugin("brake", self.dir)
        process = self.start("--plugin", plugin, *TINY, "+callbacks.brake={_target_: brake, file: pace}",
                             "kiln.run.dir=run")
        self.wait_for("run/.kiln/config.yaml", process)
        process.send_signal(signal.SIGBUS)
        _, err = process.communicate(timeout=60)
        if "AddressSanitizer" not in err:
            self.assertEqual(process.returncode, -signal.SIGBUS, err)
        self.assertIn("train: error: crashed with SIGBUS", err)

    def test_job_of_a_sweep(self):
        plugin = build_plugin("crashes", self.dir)
        self.run_kiln("--plugin", plugin, *TINY, self.callback(hook="on_train_start"), "seed=1,2", "-m",
                      "kiln.sweep.dir=sweep", status=1)
        with open(self.path("sweep/0/train.log"), errors="replace") as log:
            self.assertIn("in on_train_start of callback/crashes (callbacks.bad)", log.read())

    def test_failure_without_a_reason(self):
        plugin = build_plugin("crashes", self.dir)
        for hook in "on_train_start", "init":
            _, err = self.run_kiln("--plugin", plugin, *TINY, self.callback(how="silent", hook=hook), status=1)
            self.assertIn(f"callback/crashes failed in {hook} and gave no reason", err)
            self.assertIn("callbacks.bad", err)


if __name__ == "__main__":
    unittest.main()
