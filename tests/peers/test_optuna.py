"""Optuna and optuna-dashboard read the optuna.log of a sweep.
make check-peers PEER=python-that-has-them"""
import json
import os
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from kilntest import Braked, read_json  # noqa: E402

try:
    import optuna
    import optuna_dashboard  # noqa: F401
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
except ImportError as error:
    if __name__ != "__main__":
        raise unittest.SkipTest(f"{error.name} is not installed")
    print(f"skip: {error.name} is not installed")
    sys.exit()

optuna.logging.set_verbosity(optuna.logging.WARNING)
JOB = ["datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32", "trainer.max_epochs=4",
       "trainer.threads=1", "optimizer.momentum=0", "kiln.sweep.optuna=true", "kiln.sweep.dir=s"]
SPACE = ["model=mlp,linear", "model.hidden=when(model,mlp,[8],[16])", "lr=tag(log,interval(1e-3,0.3))",
         "batch_size=int(interval(8,32))", "seed=range(0,6,2)", "optimizer.weight_decay=range(0.25,1,0.25)",
         "+note=choice(1,true,text)"]
RANDOM = ["kiln/sweeper=random", "kiln.sweeper.n_trials=16", "kiln/pruner=median"]
STATES = {"ok": "COMPLETE", "stopped": "PRUNED", "failed": "FAIL"}


def python_value(text):
    """A value of results.json as Python has it."""
    try:
        return {"True": True}.get(text) or float(text)
    except ValueError:
        return text


class Optuna(Braked):
    def study(self):
        return optuna.load_study(study_name="s", storage=JournalStorage(JournalFileBackend(self.path("s/optuna.log"))))

    def reports(self):
        """{job: {epoch: value}} of kiln's own journal."""
        found = {}
        with open(self.path("s/journal.jsonl")) as f:
            for record in map(json.loads, f):
                if record["event"] == "reported" and record["value"] is not None:
                    found.setdefault(record["job"], {})[record["epoch"]] = record["value"]
        return found

    def check(self):
        study, results = self.study(), read_json(self.path("s/results.json"))
        reports = self.reports()
        self.assertEqual(len(study.trials), len(results["jobs"]))
        for trial, job in zip(study.trials, results["jobs"], strict=True):
            self.assertEqual((trial.number, trial.user_attrs["job"]), (job["job"], job["job"]))
            self.assertEqual(trial.state.name, STATES[job["status"]], job)
            self.assertEqual(trial.intermediate_values, reports.get(job["job"], {}))
            self.assertEqual(trial.user_attrs["folder"], job["dir"])
            self.assertEqual(trial.user_attrs["reason"], job["reason"])
            self.assertLessEqual(trial.datetime_start, trial.datetime_complete)
            self.assertEqual(trial.params, {key: python_value(value) for key, value in job["values"].items()
                                            if value is not None})
            for key, distribution in trial.distributions.items():
                self.assertTrue(distribution._contains(distribution.to_internal_repr(trial.params[key])), key)
            if job["status"] == "ok":
                self.assertEqual(trial.value, job["metrics"][results["metric"]]["best"])
            elif job["status"] == "stopped":
                self.assertEqual(trial.value, trial.intermediate_values[trial.last_step])
        self.assertEqual(study.best_trial.number, results["ranked"][0])
        self.assertEqual(study.metric_names, [results["metric"]])
        return study, results

    def test_several_objectives(self):
        """The best trials are the jobs of the first rank."""
        self.run_kiln("-m", *JOB, "trainer.max_epochs=1", *SPACE[:4], "kiln/sweeper=nsga2", "kiln.sweeper.n_trials=12",
                      "kiln.sweeper.metrics=[val/accuracy,val/loss]")
        study, results = self.study(), read_json(self.path("s/results.json"))
        self.assertEqual([direction.name for direction in study.directions], ["MAXIMIZE", "MINIMIZE"])
        self.assertEqual(study.metric_names, ["val/accuracy", "val/loss"])
        for trial, job in zip(study.trials, results["jobs"], strict=True):
            self.assertEqual(trial.values, [job["metrics"][name]["best"] for name in study.metric_names])
        self.assertEqual({trial.number for trial in study.best_trials},
                         {job["job"] for job in results["jobs"] if job["rank"] == 1})

    def test_a_sweep(self):
        self.run_kiln("-m", *JOB, *SPACE, *RANDOM)
        # A failed job, with a loss that is not a number.
        self.run_kiln("-m", "--resume", "s", "lr=tag(log,interval(5e5,1e6))", "kiln.sweeper.n_trials=4", status=1)
        study, results = self.check()
        self.assertEqual({trial.state.name for trial in study.trials}, {"COMPLETE", "PRUNED", "FAIL"})
        distributions = study.trials[0].distributions
        self.assertEqual(distributions["batch_size"], IntDistribution(8, 32))
        self.assertEqual(distributions["seed"], IntDistribution(0, 4, step=2))
        self.assertEqual(distributions["optimizer.weight_decay"], FloatDistribution(0.25, 0.75, step=0.25))
        self.assertEqual(distributions["model"], CategoricalDistribution(["mlp", "linear"]))
        self.assertEqual(distributions["note"], CategoricalDistribution([1, True, "text"]))
        self.assertTrue(distributions["lr"].log)
        self.assertEqual(len({trial.distributions["lr"] for trial in study.trials}), 1)
        self.assertEqual(study.direction, optuna.study.StudyDirection.MAXIMIZE)

        importance = optuna.importance.get_param_importances(study)
        self.assertIn("lr", importance)
        self.assertAlmostEqual(sum(importance.values()), 1.0)
        self.check_dashboard(results)

    def check_dashboard(self, results):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        dashboard = os.path.join(os.path.dirname(sys.executable), "optuna-dashboard")
        with subprocess.Popen([dashboard, self.path("s/optuna.log"), "--host", "127.0.0.1", "--port", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                study = self.fetch(process, f"http://127.0.0.1:{port}/api/studies/0?after=0")
            finally:
                process.terminate()
        states = {"COMPLETE": "Complete", "PRUNED": "Pruned", "FAIL": "Fail"}
        self.assertEqual([trial["state"] for trial in study["trials"]],
                         [states[STATES[job["status"]]] for job in results["jobs"]])
        self.assertEqual(study["best_trials"][0]["number"], results["ranked"][0])

    def fetch(self, process, url, seconds=60):
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end:
            try:
                with urllib.request.urlopen(url, timeout=seconds) as answer:
                    return json.load(answer)
            except (ConnectionError, urllib.error.URLError):
                time.sleep(0.1)
        self.fail("the dashboard does not answer")

    def test_a_running_sweep(self):
        """Optuna sees what happens in the file that it has open already."""
        self.hold(after=6)  # in the second epoch
        process = self.start("-m", *JOB[:3], *JOB[4:], *self.braked, "trainer.max_epochs=2", "model=mlp", "lr=0.1,0.01",
                             "model.hidden=[8]", "datamodule.batch_size=16")
        self.wait_for("s/optuna.log", process)
        study = self.study()
        self.assertEqual([trial.state.name for trial in study.trials], ["RUNNING", "WAITING"])
        self.assertEqual(list(study.trials[0].intermediate_values), [1])
        self.let_go()
        process.communicate()
        self.assertEqual([trial.state.name for trial in study.trials], ["COMPLETE", "COMPLETE"])
        self.check()


if __name__ == "__main__":
    unittest.main()
