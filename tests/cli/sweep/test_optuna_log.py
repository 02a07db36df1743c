"""optuna.log: the jobs of a sweep in Optuna's journal format. tests/peers/test_optuna.py reads it with Optuna itself."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import random
import time

from kilntest import SHORT, Braked, main, read, read_json

# A job of some hundredths of a second.
JOB = ["model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32",
       "datamodule.batch_size=16", "trainer.threads=1", "kiln.sweep.optuna=true", "kiln.sweep.dir=s"]
RUNNING, COMPLETE, PRUNED, FAIL, WAITING = range(5)
STATES = {"ok": COMPLETE, "stopped": PRUNED, "failed": FAIL, "waiting": WAITING, "interrupted": WAITING}


def replay(path):
    """The study and the trials of a log. Optuna ignores an operation on a trial that has ended; here it is an error."""
    study, trials = None, []
    text = read(path, "r")
    assert text.endswith("\n"), "a torn line"
    for line in text.splitlines():
        log = json.loads(line)
        op = log["op_code"]
        assert log["worker_id"] == "kiln"
        if op == 0:
            assert study is None
            study = {"name": log["study_name"], "directions": log["directions"]}
        elif op == 3:
            study.update(log["system_attr"])
        elif op == 4:
            assert log["study_id"] == 0
            trials.append({"state": log["state"], "params": log["params"], "values": None, "reports": {},
                           "attrs": log["user_attrs"], "distributions": {
                               name: json.loads(text) for name, text in log["distributions"].items()}})
        else:
            trial = trials[log["trial_id"]]
            assert trial["state"] not in (COMPLETE, PRUNED, FAIL), f"{line}: the trial has ended"
            if op == 6:
                assert ("datetime_start" in log) == (log["state"] == RUNNING)
                assert ("datetime_complete" in log) == (log["state"] in (COMPLETE, PRUNED, FAIL))
                trial["state"] = log["state"]
                trial["values"] = log["values"] or trial["values"]
            elif op == 7:
                assert log["step"] not in trial["reports"], f"{line}: reported twice"
                trial["reports"][log["step"]] = log["intermediate_value"]
            else:
                assert op == 8, line
                trial["attrs"].update(log["user_attr"])
    return study, trials


class OptunaLog(Braked):
    def sweep(self, *args, status=0):
        return self.run_kiln("-m", *args, status=status)

    def reports(self, folder):
        """{job: {epoch: value}} of kiln's own journal."""
        found = {}
        for line in read(self.path(folder, "journal.jsonl"), "r").splitlines():
            record = json.loads(line)
            if record["event"] == "reported" and record["value"] is not None:
                found.setdefault(record["job"], {})[record["epoch"]] = record["value"]
        return found

    def check(self, folder="s"):
        """The log has what results.json and the journal have."""
        reports = self.reports(folder)
        study, trials = replay(self.path(folder, "optuna.log"))
        results = read_json(self.path(folder, "results.json"))
        self.assertEqual(study["study:metric_names"], [results["metric"]])
        self.assertEqual([trial["attrs"]["job"] for trial in trials], list(range(len(results["jobs"]))))
        for trial, job in zip(trials, results["jobs"], strict=True):
            self.assertEqual(trial["state"], STATES[job["status"]], job)
            self.assertEqual(trial["reports"], reports.get(job["job"], {}))
            if job["status"] != "waiting":
                self.assertEqual(trial["attrs"]["status"], job["status"])
                self.assertEqual(trial["attrs"]["reason"], job["reason"])
                self.assertEqual(trial["attrs"].get("folder"), job["dir"])
            if job["status"] == "ok":
                metric = job["metrics"][results["metric"]]
                self.assertEqual(trial["values"], [metric["best"]])
                self.assertIn(trial["attrs"]["best_epoch"], trial["reports"])
        return study, trials

    def test_not_unless_wanted(self):
        self.sweep(*JOB, "kiln.sweep.optuna=false", "model=mlp", "trainer.max_epochs=1", "lr=0.1,0.01")
        self.assertFalse(os.path.exists(self.path("s/optuna.log")))

    def test_parameters_and_states(self):
        self.sweep(*JOB[1:], "model=mlp,linear", "model.hidden=when(model,mlp,[8])", "lr=0.1,1e6", "optimizer.momentum=0",
                   "seed=range(1,4,2)", "trainer.gradient_clip_val=range(1,1.25,0.1)", "trainer.max_epochs=2",
                   "kiln.sweeper.metric=val/loss", status=1)
        study, trials = self.check()
        self.assertEqual((study["name"], study["directions"]), ("s", [1]))
        self.assertEqual(len(trials), 2 * 2 * 2 * 3)
        first = trials[0]
        self.assertEqual(first["params"], {"model": 0, "model.hidden": 0, "lr": 0, "seed": 1,
                                           "trainer.gradient_clip_val": 1})
        self.assertEqual(first["distributions"], {
            "model": {"name": "CategoricalDistribution", "attributes": {"choices": ["mlp", "linear"]}},
            "model.hidden": {"name": "CategoricalDistribution", "attributes": {"choices": ["[8]"]}},
            "lr": {"name": "CategoricalDistribution", "attributes": {"choices": [0.1, 1e6]}},
            "seed": {"name": "IntDistribution", "attributes": {"log": False, "step": 2, "low": 1, "high": 3}},
            "trainer.gradient_clip_val": {"name": "FloatDistribution",
                                          "attributes": {"log": False, "step": 0.1, "low": 1.0, "high": 1.2}}})
        self.assertEqual(set(trials[-1]["params"]), {"model", "lr", "seed", "trainer.gradient_clip_val"})
        self.assertEqual({trial["state"] for trial in trials}, {COMPLETE, FAIL})
        self.assertTrue(all(sorted(trial["reports"]) == [1, 2] for trial in trials if trial["state"] == COMPLETE))

    def test_a_sweep_that_is_extended(self):
        """All trials have the values of before and after as choices."""
        self.sweep(*JOB, "model=mlp", "trainer.max_epochs=1", "lr=0.1,0.01")
        before = self.check()
        self.sweep("--resume", "s")
        self.assertEqual(self.check(), before)
        self.sweep("--resume", "s", "lr=0.001,0.1")
        _, trials = self.check()
        self.assertEqual([trial["params"]["lr"] for trial in trials], [1, 2, 0])
        self.assertEqual({tuple(trial["distributions"]["lr"]["attributes"]["choices"]) for trial in trials},
                         {(0.001, 0.1, 0.01)})

    def test_a_trial_that_is_stopped_and_resumed(self):
        """It is not PRUNED before it is known that it stays stopped."""
        self.sweep(*JOB, "model=mlp", "trainer.max_epochs=3", "lr=range(0.01,0.07,0.01)", "kiln/pruner=hyperband",
                   "kiln.pruner.brackets=1")
        _, trials = self.check()
        starts = [json.loads(line)["job"] for line in read(self.path("s/journal.jsonl"), "r").splitlines()
                  if '"started"' in line]
        resumed = {job for job in starts if starts.count(job) > 1}
        self.assertTrue(resumed, "none was resumed")
        self.assertIn(PRUNED, {trial["state"] for trial in trials})
        for job in resumed:
            self.assertEqual(sorted(trials[job]["reports"]), [1, 2, 3])
            self.assertEqual(trials[job]["state"], COMPLETE)

    def test_an_unknown_direction(self):
        out, _ = self.sweep(*JOB, "model=mlp", "trainer.max_epochs=1", "lr=0.1,0.01", "kiln.sweeper.metric=lr")
        self.assertIn("no ranking", out)
        self.assertFalse(os.path.exists(self.path("s/optuna.log")))

    def test_live(self):
        self.hold(after=6)  # in the second epoch
        process = self.start("-m", *JOB, *self.braked, "model=mlp", "trainer.max_epochs=2", "lr=0.1,0.01")
        self.wait_for(lambda: os.path.exists(self.path("s/optuna.log")), process)
        _, trials = replay(self.path("s/optuna.log"))
        self.assertEqual([trial["state"] for trial in trials], [RUNNING, WAITING])
        self.assertEqual(list(trials[0]["reports"]), [1])
        process.kill()
        process.communicate()
        # Half a line at the end, as after a power cut.
        with open(self.path("s/optuna.log"), "a") as f:
            f.write('{"trial_id":0,"st')
        self.let_go()
        self.sweep("--resume", "s")
        self.check()

    def test_kills(self):
        sweep = ["-m", *JOB[:-1], "model=mlp", "trainer.max_epochs=6", "seed=range(0,4)", "lr=0.1,0.01",
                 "kiln/pruner=median", "kiln.launcher.n_jobs=1"]
        began = time.monotonic()
        self.run_kiln(*sweep, "kiln.sweep.dir=whole")
        seconds = time.monotonic() - began
        rng = random.Random(os.environ.get("KILN_TEST_SEED", "3"))
        resume, moments = [*sweep, "kiln.sweep.dir=s"], 3 if SHORT else 8
        for _ in range(moments):
            process = self.start(*resume)
            time.sleep(rng.uniform(0.0, 1.5 * seconds / moments))
            process.kill()
            process.communicate()
            if os.path.exists(self.path("s/journal.jsonl")) and b"\n" in read(self.path("s/journal.jsonl")):
                resume = ["-m", "--resume", "s"]
        self.run_kiln(*resume)
        study, trials = self.check()
        whole_study, whole = self.check("whole")
        self.assertEqual(study["directions"], whole_study["directions"])
        # A job that is killed after its last checkpoint, but before its report, does not report again.
        for trial in trials + whole:
            del trial["reports"], trial["attrs"]["best_epoch"]
        self.assertEqual(trials, whole)


if __name__ == "__main__":
    main()
