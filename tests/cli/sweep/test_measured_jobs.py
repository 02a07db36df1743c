"""kiln.launcher.n_jobs=0: the number of jobs at a time is measured. Which one is fastest depends on the machine, so the
tests accept any; the journal, the printed line and the threads of the jobs must agree."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import re
import signal
import tempfile
import unittest

from kilntest import Case, build_plugin, main, read

JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32",
       "datamodule.batch_size=16", "trainer.max_epochs=1"]
MEASURED = [*JOB, "kiln.launcher.n_jobs=0"]
PROCESSORS = len(os.sched_getaffinity(0))
several = unittest.skipIf(PROCESSORS == 1, "one processor: there is nothing to measure")


class MeasuredJobs(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._plugins = tempfile.TemporaryDirectory(prefix="kiln-plugins-")
        cls._in_setup = build_plugin("in_setup", cls._plugins.name)

    @classmethod
    def tearDownClass(cls):
        cls._plugins.cleanup()
        super().tearDownClass()

    def in_setup(self, **options):
        """Arguments for tests/plugins/in_setup.c in each job."""
        text = ", ".join(f"{key}: {value}" for key, value in options.items())
        return ["--plugin", self._in_setup, f"+callbacks.in_setup={{_target_: in_setup, {text}}}"]

    def journal(self, folder="s"):
        return [json.loads(line) for line in read(self.path(folder, "journal.jsonl"), "r").splitlines()]

    def measured(self, folder="s"):
        """The record of the measurement, of which there is one."""
        records = [line for line in self.journal(folder) if line["event"] == "measured"]
        self.assertEqual(len(records), 1, records)
        return records[0]

    def threads(self, folder="s"):
        """trainer.threads of each job, by number."""
        names = sorted((name for name in os.listdir(self.path(folder)) if name.isdigit()), key=int)
        return [int(re.search(r"^  threads: (\d+)$", read(self.path(folder, name, ".kiln/config.yaml"), "r"), re.M).group(1))
                for name in names]

    def at_once(self, folder="s"):
        """The most jobs that ran at a time."""
        running = most = 0
        for line in self.journal(folder):
            running += (line["event"] == "started") - (line["event"] == "ended")
            most = max(most, running)
        return most

    def check_agreement(self, out, jobs, folder="s"):
        """The journal, the lines on the screen and the configs of all jobs agree. Returns the record."""
        record = self.measured(folder)
        n_jobs, threads = record["n_jobs"], record["threads"]
        self.assertIn({"n_jobs": n_jobs, "threads": threads},
                      [{key: one[key] for key in ("n_jobs", "threads")} for one in record["divisions"]])
        self.assertEqual(self.threads(folder), jobs * [threads])
        self.assertLessEqual(self.at_once(folder), n_jobs)
        self.assertIn(f", {n_jobs} at a time: {folder}\n", out)
        if "steps_per_s" in json.dumps(record):
            first = "one job at a time" if n_jobs == 1 else f"{n_jobs} jobs at a time"
            each = " with a thread" if threads == 1 else f" with {threads} threads"
            self.assertIn(f"{first}{each}{' each' if n_jobs > 1 else ''}: ", out)
            self.assertEqual(len(re.findall(r"(\d|e\+\d\d) steps/s", out)),
                             sum("steps_per_s" in one for one in record["divisions"]))
        return record

    # ---- What is measured

    def test_choice_is_printed_recorded_and_used(self):
        out, _ = self.run_kiln("-m", *MEASURED, "seed=range(4)", "kiln.sweep.dir=s")
        record = self.check_agreement(out, 4)
        for one in record["divisions"]:
            self.assertGreater(one["steps_per_s"], 0)
            self.assertLessEqual(one["n_jobs"] * one["threads"], PROCESSORS)
            self.assertLessEqual(one["n_jobs"], 4)
        self.assertEqual([one["n_jobs"] for one in record["divisions"]][0], 1)
        self.assertEqual(record["divisions"][-1]["n_jobs"], min(PROCESSORS, 4))
        events = [line["event"] for line in self.journal()]
        self.assertLess(events.index("measured"), events.index("started"))

    def test_no_more_jobs_than_the_sweep_has(self):
        out, _ = self.run_kiln("-m", *MEASURED, "seed=1", "kiln.sweep.dir=s")
        self.assertEqual([one["n_jobs"] for one in self.check_agreement(out, 1)["divisions"]], [1])
        self.assertEqual(self.threads(), [PROCESSORS])
        self.assertNotIn("measuring", out)

    def test_needs_are_respected(self):
        out, _ = self.run_kiln("-m", *MEASURED, "seed=range(3)", f"kiln.needs.cpus={PROCESSORS}", "kiln.sweep.dir=s")
        self.assertEqual(self.check_agreement(out, 3)["n_jobs"], 1)
        self.assertEqual(self.threads(), 3 * [PROCESSORS])
        out, _ = self.run_kiln("-m", *MEASURED, "seed=range(3)", "kiln.needs.memory=100TB", "kiln.sweep.dir=t")
        self.assertEqual(self.check_agreement(out, 3, "t")["n_jobs"], 1)
        out, _ = self.run_kiln("-m", *MEASURED, "seed=range(3)", "kiln.needs.cpus=1", "kiln.sweep.dir=u")
        record = self.check_agreement(out, 3, "u")
        self.assertEqual({one["threads"] for one in record["divisions"]}, {1})
        self.assertEqual(record["divisions"][-1]["n_jobs"], min(PROCESSORS, 3))

    def test_threads_that_are_given_stay(self):
        out, _ = self.run_kiln("-m", *MEASURED, "trainer.threads=1", "seed=range(3)", "kiln.sweep.dir=s")
        record = self.check_agreement(out, 3)
        self.assertEqual({one["threads"] for one in record["divisions"]}, {1})
        self.assertEqual(record["divisions"][-1]["n_jobs"], min(PROCESSORS, 3))
        out, _ = self.run_kiln("-m", *MEASURED, f"trainer.threads={PROCESSORS + 1}", "seed=1,2", "kiln.sweep.dir=t")
        self.assertEqual(self.check_agreement(out, 2, "t")["n_jobs"], 1)

    def test_one_job_for_each_processor(self):
        out, _ = self.run_kiln("-m", *JOB, "kiln.launcher.n_jobs=-1", "seed=range(3)", "kiln.sweep.dir=s")
        self.assertIn(f"3 jobs of 3 to run, {PROCESSORS} at a time", out)
        self.assertEqual(self.threads(), 3 * [1])
        self.assertNotIn("measured", [line["event"] for line in self.journal()])
        self.refused("-m", *JOB, "kiln.launcher.n_jobs=-2", "seed=1,2", says=["kiln.launcher.n_jobs"])

    def test_plan_measures_nothing(self):
        out, err = self.run_kiln("-m", "--plan", *MEASURED, *self.in_setup(reached=self.path("reached")), "seed=1,2")
        self.assertEqual(len(out.splitlines()), 2, out)
        self.assertEqual(os.listdir(self.dir), [])

    # ---- Where it fails

    @several
    def test_a_division_that_fails_is_left_out(self):
        out, _ = self.run_kiln("-m", *MEASURED, *self.in_setup(crash_threads=PROCESSORS), "seed=range(4)", "kiln.sweep.dir=s")
        record = self.check_agreement(out, 4)
        self.assertGreater(record["n_jobs"], 1)
        self.assertEqual(record["divisions"][0]["failed"], "killed by SIGABRT")
        self.assertIn("; one with ", out)
        self.assertIn("failed (killed by SIGABRT)", out)

    @several
    def test_job_reports_its_own_error_where_all_fail(self):
        out, _ = self.run_kiln("-m", *MEASURED, *self.in_setup(crash_threads=0), "seed=1,2", "kiln.sweep.dir=s", status=1)
        record = self.check_failure(out, "killed by SIGABRT")
        self.assertNotIn("steps_per_s", json.dumps(record))
        self.assertEqual([line["reason"] for line in self.journal() if line["event"] == "ended"], 2 * ["killed by SIGABRT"])

    def check_failure(self, out, why):
        record = self.measured()
        self.assertEqual((record["n_jobs"], record["threads"]), (1, PROCESSORS))
        self.assertIn(f"one job at a time, as no speed could be measured: {why}", out)
        self.assertIn("2 jobs of 2 to run, 1 at a time", out)
        return record

    @several
    def test_data_that_is_not_there(self):
        out, _ = self.run_kiln("-m", "datamodule=mnist", "datamodule.root=nowhere", "model=mlp", "seed=1,2", "kiln.launcher.n_jobs=0",
                               "kiln.sweep.dir=s", status=1)
        self.check_failure(out, "")
        reasons = [line["reason"] for line in self.journal() if line["event"] == "ended"]
        self.assertEqual(len(reasons), 2)
        for reason in reasons:
            self.assertIn("nowhere", reason)

    # ---- Later

    @several
    def test_resume_keeps_the_choice(self):
        crash = self.in_setup(crash_threads=PROCESSORS)
        self.run_kiln("-m", *MEASURED, *crash, "seed=range(3)", "kiln.sweep.dir=s")
        first = self.measured()
        out, _ = self.run_kiln("-m", "--resume", "s", "seed=8,9", "callbacks.in_setup.crash_threads=-1")
        self.assertNotIn("measuring", out)
        self.assertIn(f"2 jobs of 5 to run, {first['n_jobs']} at a time", out)
        self.assertEqual(self.measured(), first)
        self.assertEqual(self.threads(), 5 * [first["threads"]])
        out, _ = self.run_kiln("-m", "--resume", "s", "seed=10,11", "kiln.launcher.n_jobs=1")
        self.assertEqual(self.threads()[5:], 2 * [PROCESSORS], "an option that is given later holds")

    def test_choice_of_another_machine_is_kept(self):
        """The journal decides, not the processors of this machine."""
        self.run_kiln("-m", *MEASURED, "seed=1", "kiln.sweep.dir=s")
        journal = [line if line["event"] != "measured" else {**line, "n_jobs": 3, "threads": 5} for line in self.journal()]
        self.write("s/journal.jsonl", "".join(json.dumps(line) + "\n" for line in journal))
        out, _ = self.run_kiln("-m", "--resume", "s", "seed=8,9")
        self.assertIn("2 jobs of 3 to run, 3 at a time", out)
        self.assertEqual(self.threads()[1:], [5, 5])

    def test_sweeper_that_learns(self):
        search = ["kiln/sweeper=tpe", "kiln.sweeper.n_trials=3", "lr=tag(log,interval(1e-3,0.1))"]
        out, _ = self.run_kiln("-m", *MEASURED, *search, "kiln.sweep.dir=s")
        first = self.check_agreement(out, 3)
        self.assertLessEqual(first["divisions"][-1]["n_jobs"], 3)
        out, _ = self.run_kiln("-m", "--resume", "s", "--extend", "2")
        self.assertNotIn("measuring", out)
        self.assertEqual(self.measured(), first)
        self.assertEqual(self.threads(), 5 * [first["threads"]])

    def test_measuring_changes_no_job(self):
        """Nor which ones there are. The first trials of tpe are random, so they depend on no order."""
        search = [*JOB, "trainer.threads=1", "kiln/sweeper=tpe", "kiln.sweeper.n_trials=2", "lr=tag(log,interval(1e-3,0.1))"]
        self.run_kiln("-m", *search, "kiln.launcher.n_jobs=0", "kiln.sweep.dir=s")
        self.run_kiln("-m", *search, "kiln.launcher.n_jobs=1", "kiln.sweep.dir=t")
        for job in "01":
            self.assertEqual(read(self.path("s", job, "checkpoints/last/model.safetensors")),
                             read(self.path("t", job, "checkpoints/last/model.safetensors")))

    # ---- While it is measured

    def hold(self):
        """Start a sweep, and hold it in its measurement."""
        wait = self.write("wait", "")
        process = self.start("-m", *MEASURED, *self.in_setup(wait=wait, reached=self.path("reached")), "seed=1,2", "kiln.sweep.dir=s")
        self.wait_for("reached", process)
        return process

    def check_resume(self):
        os.remove(self.path("wait"))
        out, _ = self.run_kiln("-m", "--resume", "s")
        self.check_agreement(out, 2)

    @several
    def test_measuring_writes_nothing(self):
        process = self.hold()
        self.assertEqual(sorted(os.listdir(self.path("s"))), [".kiln", "journal.jsonl", "results.csv", "results.json"])
        self.assertEqual([line["event"] for line in self.journal()], ["begun", *2 * ["submitted"]])
        os.remove(self.path("wait"))
        out, err = process.communicate(timeout=100)
        self.assertEqual((process.returncode, err), (0, ""))
        self.check_agreement(out, 2)

    @several
    def test_interrupt(self):
        process = self.hold()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=100)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertNotIn("measured", [line["event"] for line in self.journal()])
        self.assertFalse(os.path.exists(self.path("s/0")))
        self.check_resume()

    @several
    def test_kill(self):
        """The processes end with their launcher, so that another one can take the folder."""
        process = self.hold()
        process.kill()
        process.communicate(timeout=100)
        self.check_resume()


if __name__ == "__main__":
    main()
