"""Sweepers: random and even points, and a plugin that stops, resumes and clones trials."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os

from kilntest import Braked, build_plugin, main, read

# A job of some hundredths of a second.
JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32",
       "datamodule.test_count=32", "datamodule.batch_size=16", "trainer.max_epochs=2",
       "trainer.threads=1"]


class Sweepers(Braked):
    def sweep(self, *args, status=0, **options):
        return self.run_kiln("-m", *args, status=status, **options)

    def plan(self, *args):
        out, _ = self.sweep("--plan", *args)
        return [line.split(" : ", 1)[1] for line in out.splitlines() if line.startswith("#")]

    def results(self, folder="s"):
        with open(self.path(folder, "results.csv"), newline="") as f:
            return list(csv.DictReader(f))


class Random(Sweepers):
    random = ["kiln/sweeper=random"]

    def test_points_come_from_the_seed(self):
        space = [*self.random, "lr=tag(log,interval(1e-3,1))", "batch_size=int(interval(8,32))", "model=mlp,resnet",
                 "seed=zip(1,2)", "trainer.max_epochs=zip(3,4)", "kiln.sweeper.n_trials=12"]
        points = self.plan(*space)
        self.assertEqual(points, self.plan(*space))
        self.assertNotEqual(points, self.plan(*space, "kiln.sweeper.seed=2"))
        self.assertEqual(points[:5], self.plan(*space, "kiln.sweeper.n_trials=5"))
        self.assertEqual(len(points), 12)
        rates, seeds = [], set()
        for point in points:
            values = dict(value.split("=") for value in point.split())
            rates.append(float(values["lr"]))
            self.assertIn(int(values["batch_size"]), range(8, 33))
            self.assertEqual(int(values["trainer.max_epochs"]), int(values["seed"]) + 2)
            seeds.add(values["seed"])
        self.assertEqual(seeds, {"1", "2"})
        self.assertTrue(all(1e-3 <= rate <= 1 for rate in rates))
        self.assertTrue(any(rate < 0.03 for rate in rates), "not on a logarithmic scale")

    def test_a_sweep_runs_and_is_extended(self):
        sweep = [*self.random, *JOB, "lr=interval(0.01,0.1)", "kiln.sweeper.n_trials=3", "kiln.sweep.dir=s"]
        self.sweep(*sweep)
        first = self.results()
        self.assertEqual([row["status"] for row in first], 3 * ["ok"])
        self.assertEqual([f"lr={row['lr']}" for row in first],
                         [word for point in self.plan(*sweep[:-1]) for word in point.split() if word.startswith("lr=")])
        self.sweep("--resume", "s", "kiln.sweeper.n_trials=5")
        rows = self.results()
        self.assertEqual([row["status"] for row in rows], 5 * ["ok"])
        self.assertEqual([row["lr"] for row in rows[:3]], [row["lr"] for row in first])

    def test_more_trials(self):
        sweep = [*self.random, *JOB, "lr=interval(0.01,0.1)", "kiln.sweep.dir=s"]
        self.sweep(*sweep, "kiln.sweeper.n_trials=2", "trainer.max_epochs=1")
        self.assertEqual(len([line for line in self.sweep("--resume", "s", "--extend", "3", "--plan")[0].splitlines()
                              if line.startswith("#")]), 3)
        self.sweep("--resume", "s", "--extend", "1")
        self.sweep("--resume", "s", "--extend", "1")
        self.sweep("--resume", "s")  # which has the raised number
        points = self.plan(*sweep[:-1], "kiln.sweeper.n_trials=4", "trainer.max_epochs=1")
        self.assertEqual([f"lr={row['lr']}" for row in self.results()],
                         [word for point in points for word in point.split() if word.startswith("lr=")])
        self.refused("-m", "--resume", "s", "--extend", "0", says=["expected a number of trials"], status=2)
        self.refused("-m", *sweep, "--extend", "5", says=["--resume"], status=2)
        self.sweep(*JOB, "lr=0.1,0.01", "kiln.sweep.dir=grid", "trainer.max_epochs=1")
        self.refused("-m", "--resume", "grid", "--extend", "5",
                     says=["--extend 5: this sweeper has no option n_trials"], status=2)

    def test_trials_without_a_number(self):
        """The option has its default, which --extend raises."""
        self.sweep(*self.random, *JOB, "lr=interval(0.01,0.1)", "kiln.sweep.dir=s", "trainer.max_epochs=1",
                   "kiln.sweep.max_steps=1")
        self.assertEqual(len(self.results()), 50)
        plan = self.sweep("--resume", "s", "--extend", "2", "--plan")[0]
        self.assertIn("#51 : ", plan)
        self.assertNotIn("#52 : ", plan)

    def test_an_interval_of_the_grid(self):
        for flags in (["-m"], ["-m", "--plan"]):
            self.refused(*flags, *JOB, "lr=interval(0.01,0.1)",
                         says=["lr: sweeper/grid does not accept interval(), which has no end of values",
                               "range(start,stop,step)", "kiln/sweeper=halton, ", "kiln/sweeper=tpe"])
        self.refused("-m", "lr=int(interval(1,8))", says=["does not accept int(interval())"])

    def test_both_ends_of_an_interval_are_checked(self):
        self.refused("-m", *self.random, *JOB, "optimizer.momentum=interval(0,2)", says=["optimizer.momentum", "2.0"])
        self.refused("-m", "--plan", *self.random, *JOB, "model.dropout=interval(-1,0.5)", says=["model.dropout", "-1.0"])


    def test_even_points(self):
        """Each eighth of an axis has one point of eight, each half and third of two axes as many as its share."""
        space = ["kiln/sweeper=halton", "lr=interval(0,1)", "optimizer.momentum=interval(0,1)"]
        points = [[float(word.split("=")[1]) for word in point.split()] for point in self.plan(*space, "kiln.sweeper.n_trials=24")]
        self.assertEqual(sorted(int(8 * lr) for lr, _ in points), sorted(3 * list(range(8))))
        self.assertEqual(sorted((int(8 * lr), int(3 * momentum)) for lr, momentum in points),
                         [(i, j) for i in range(8) for j in range(3)])
        self.assertNotEqual(points[0], [0, 0])


    def test_steps_and_weights(self):
        points = [dict(word.split("=") for word in point.split()) for point in self.plan(
            *self.random, "optimizer.momentum=interval(0,0.9,step=0.3)", "batch_size=tag(log,int(interval(16,100,step=16)))",
            "model=choice(mlp,cnn,weights=[9,1])", "kiln.sweeper.n_trials=200")]
        self.assertEqual({point["optimizer.momentum"] for point in points}, {"0.0", "0.3", "0.6", "0.9"})
        sizes = [int(point["batch_size"]) for point in points]
        self.assertEqual(set(sizes), {16, 32, 48, 64, 80, 96})
        self.assertGreater(sizes.count(16), 2 * sizes.count(96))
        self.assertTrue(5 < sum(point["model"] == "cnn" for point in points) < 40)


class Forbidden(Sweepers):
    """kiln.sweeper.forbid: combinations that do not run."""

    def test_plan(self):
        points = self.plan("model=mlp,cnn", "lr=0.1,0.01", "batch_size=range(32,128,32)",
                           'kiln.sweeper.forbid=["model=cnn batch_size>32","lr=0.1 batch_size>=64"]')
        self.assertEqual(points, ["model=mlp lr=0.1 batch_size=32", "model=mlp lr=0.01 batch_size=32",
                                  "model=mlp lr=0.01 batch_size=64", "model=mlp lr=0.01 batch_size=96",
                                  "model=cnn lr=0.1 batch_size=32", "model=cnn lr=0.01 batch_size=32"])
        points = self.plan("kiln/sweeper=random", "lr=interval(0,1)", "model=linear,mlp,cnn", "kiln.sweeper.n_trials=60",
                           "optimizer.momentum=when(model,mlp,interval(0,0.9))",
                           'kiln.sweeper.forbid=["lr<0.5 model=linear,cnn","optimizer.momentum<0.4"]')
        self.assertTrue(20 < len(points) < 50)
        for point in points:
            values = dict(word.split("=") for word in point.split())
            if values["model"] == "mlp":
                self.assertGreaterEqual(float(values["optimizer.momentum"]), 0.4)
            else:
                self.assertGreaterEqual(float(values["lr"]), 0.5)

    def test_a_sweep(self):
        self.sweep(*JOB, "lr=0.1,0.2", "seed=1,2", 'kiln.sweeper.forbid=["lr=0.2 seed=2"]', "kiln.sweep.dir=s")
        rows = self.results()
        self.assertEqual([row["status"] for row in rows], 3 * ["ok"] + ["forbidden"])
        self.assertEqual((rows[3]["reason"], rows[3]["rank"]), ("lr=0.2 seed=2", ""))
        self.assertFalse(os.path.exists(self.path("s/3")))
        self.sweep("--resume", "s", "lr=0.1,0.2,0.3")
        self.assertEqual([row["status"] for row in self.results()], 3 * ["ok"] + ["forbidden"] + 2 * ["ok"])

    def test_mistakes(self):
        for text, says in (("modle=cnn", "'modle' is no key of the sweep (did you mean model?)"),
                           ("model=cnm", "'cnm' is no value of the key (did you mean cnn?)"),
                           ("model", "'model' is no comparison"), ("lr>fast", "'fast' is no number"),
                           ("", "'' forbids everything")):
            self.refused("-m", "model=mlp,cnn", "lr=0.1,0.01", f'kiln.sweeper.forbid=["{text}"]', says=[says])


class Conditions(Sweepers):
    """when(KEY,VALUE,...): values for some values of another key."""

    def test_the_grid_has_only_what_is_active(self):
        self.assertEqual(self.plan("model=mlp,linear", "model.hidden=when(model,mlp,[4],[8])", "lr=0.1,0.01"),
                         ["model=mlp model.hidden=[4] lr=0.1", "model=mlp model.hidden=[4] lr=0.01",
                          "model=mlp model.hidden=[8] lr=0.1", "model=mlp model.hidden=[8] lr=0.01",
                          "model=linear lr=0.1", "model=linear lr=0.01"])
        # One value, of a key that the other option does not have; and values of the same key for each option.
        self.assertEqual(self.plan("model=mlp,cnn", "model.dropout=when(model,mlp,0.1,0.2)", "model.dropout=when(model,cnn,0.5)"),
                         ["model=mlp model.dropout=0.1", "model=mlp model.dropout=0.2", "model=cnn model.dropout=0.5"])

    def test_a_sweep_runs_resumes_and_is_extended(self):
        job = [*JOB[2:], "model=linear,mlp", "seed=1,2"]
        self.sweep(*job, "model.hidden=when(model,mlp,[4])", "kiln.sweep.dir=s")
        rows = self.results()
        self.assertEqual([(row["status"], row["model"], row["model.hidden"], row["seed"]) for row in rows],
                         [("ok", "linear", "", "1"), ("ok", "linear", "", "2"), ("ok", "mlp", "[4]", "1"),
                          ("ok", "mlp", "[4]", "2")])
        self.run_kiln(*JOB[2:], "model=mlp", "model.hidden=[4]", "seed=1", "kiln.run.dir=run")
        self.assertEqual(read(self.path("s/2/checkpoints/last/model.safetensors")),
                         read(self.path("run/checkpoints/last/model.safetensors")))
        self.sweep("--resume", "s", "model.hidden=when(model,mlp,[4],[8])")
        rows = self.results()
        self.assertEqual([row["model.hidden"] for row in rows], ["", "", "[4]", "[4]", "[8]", "[8]"])
        self.assertEqual({row["status"] for row in rows}, {"ok"})

    def test_values_are_checked_where_they_are_active(self):
        for flags in (["-m"], ["-m", "--plan"]):
            self.refused(*flags, "model=linear,mlp", "model.hidden=when(model,mlp,[4],[-4])", says=["model.hidden", "-4"])
            self.refused(*flags, "model=linear,mlp", "model.hiden=when(model,mlp,[4])", says=["did you mean 'model.hidden'?"])
            self.refused(*flags, "model=linear,mlp", "model.hidden=when(model,mpl,[4])", status=2,
                         says=["model has no value mpl (did you mean mlp?); it has linear, mlp"])

    def test_params_of_a_file(self):
        self.write("conf/config.yaml", "defaults: [model: mlp, optimizer: sgd]\n"
                   "kiln: {sweeper: {params: {optimizer.momentum: 'when(optimizer,sgd,0.5,0.9)', optimizer: 'sgd,adam'}}}\n")
        self.assertEqual(self.plan(), ["optimizer=sgd optimizer.momentum=0.5", "optimizer=sgd optimizer.momentum=0.9",
                                       "optimizer=adam"])

    def test_random_search(self):
        random = ["kiln/sweeper=random"]
        points = self.plan(*random, "optimizer=sgd,adam", "optimizer.momentum=when(optimizer,sgd,interval(0.1,0.9))",
                           "kiln.sweeper.n_trials=20")
        self.assertEqual({("optimizer=sgd" in point, "momentum" in point) for point in points},
                         {(True, True), (False, False)})
        self.refused("-m", *random, "optimizer=adam,sgd", "optimizer.momentum=when(optimizer,sgd,interval(0,2))",
                     says=["optimizer.momentum", "2.0"])


class Learning(Sweepers):
    def setUp(self):
        super().setUp()
        self.halving = ["--plugin", build_plugin("halving", self.dir), "kiln/sweeper=halving", *JOB[:6],
                        "trainer.max_epochs=4", "trainer.threads=1"]

    def journal(self, *events):
        """What was decided, without the times."""
        with open(self.path("s/journal.jsonl")) as f:
            lines = [json.loads(line) for line in f if line.endswith("\n")]
        return [{k: v for k, v in line.items() if k not in ("time", "seconds", "pid")} for line in lines
                if line["event"] in events]

    def check_results(self):
        """Three stopped at the first epoch, the best of them resumed, and a fourth that started from another."""
        rows = self.results()
        best = max(range(3), key=lambda n: float(self.first_values[n]))
        statuses = ["ok" if n in (best, 3) else "stopped" for n in range(4)]
        self.assertEqual([row["status"] for row in rows], statuses)
        for n in range(3):
            if n != best:
                self.assertEqual(rows[n]["reason"], f"halved at epoch 1: {self.first_values[n]:.3f}")
        return best

    @property
    def first_values(self):
        return {line["job"]: line["value"] for line in self.journal("reported") if line["epoch"] == 1}

    def test_a_promoted_trial_has_the_bytes_of_an_uninterrupted_run(self):
        out, _ = self.sweep(*self.halving, "lr=0.1,0.01,0.001", "kiln.sweep.dir=s")
        best = self.check_results()
        self.assertIn("jobs that halving chooses, 1 at a time: s", out)
        self.assertIn("#0 stopped  ", out)
        lr = [0.1, 0.01, 0.001]
        self.run_kiln(*self.halving[3:], f"lr={lr[best]}", "kiln.run.dir=run")
        self.assertEqual(read(self.path(f"s/{best}/checkpoints/last/model.safetensors")),
                         read(self.path("run/checkpoints/last/model.safetensors")))

        # The fourth continued from the checkpoint of one that is still stopped, with the first rate.
        parent = 1 if best == 0 else 0
        self.assertEqual(self.journal("submitted")[3]["parent"], parent)
        self.assertEqual(read(self.path("s/3/.kiln/start/model.safetensors")),
                         read(self.path(f"s/{parent}/checkpoints/last/model.safetensors")))
        self.run_kiln(*self.halving[3:], "lr=0.1", f"ckpt_path=s/{parent}", "kiln.run.dir=clone")
        self.assertEqual(read(self.path("s/3/checkpoints/last/model.safetensors")),
                         read(self.path("clone/checkpoints/last/model.safetensors")))
        before = self.journal("submitted", "started", "reported", "stopping", "ended")
        self.sweep("--resume", "s")
        self.assertEqual(self.journal("submitted", "started", "reported", "stopping", "ended"), before)

    def test_decisions_are_the_same_after_a_kill(self):
        decisions = ("submitted", "reported", "stopping")
        sweep = ["-m", *self.halving, *self.braked, "lr=0.1,0.01,0.001", "kiln.sweep.dir=s"]
        self.run_kiln(*sweep)
        whole = self.journal(*decisions)
        os.rename(self.path("s"), self.path("whole"))
        for after in (0, 6):  # in the first epoch of the first trial, and in the resumed one
            self.hold(after=after)
            process = self.start(*sweep)
            self.wait_for(lambda: os.path.exists(self.path("s/journal.jsonl")) and
                          len(self.journal("started")) >= (1 if after == 0 else 4), process)
            process.kill()
            process.communicate()
            self.let_go()
            self.sweep("--resume", "s")
            self.assertEqual(self.journal(*decisions), whole)
            self.check_results()
            os.rename(self.path("s"), self.path(f"killed{after}"))

    def test_a_kill_between_a_decision_and_the_end(self):
        """The checkpoint of the stop is there, the journal's record of the end is not."""
        sweep = [*self.halving, "lr=0.1,0.01,0.001", "kiln.sweep.dir=s"]
        self.sweep(*sweep)
        whole = self.journal("submitted", "reported", "stopping")
        os.rename(self.path("s"), self.path("whole"))
        self.sweep(*sweep, "kiln.sweep.max_jobs=1", status=1)
        lines = read(self.path("s/journal.jsonl"), "r").splitlines(keepends=True)
        stopping = next(n for n, line in enumerate(lines) if '"stopping"' in line)
        self.write("s/journal.jsonl", "".join(lines[:stopping + 1]))
        self.sweep("--resume", "s", "kiln.sweep.max_jobs=9")
        self.assertEqual(self.journal("submitted", "reported", "stopping"), whole)
        # It starts once more, to end where it had saved.
        self.assertEqual([line["job"] for line in self.journal("started")].count(0), 2 + (self.check_results() == 0))

    def test_several_at_a_time(self):
        self.sweep(*self.halving, "lr=0.1,0.01,0.001", "kiln.sweep.dir=s", "kiln.launcher.n_jobs=2")
        self.check_results()

    def test_a_config_that_is_wrong_when_it_starts(self):
        """The check of values does not see it: only this job fails."""
        out, _ = self.sweep(*self.halving, "lr=0.1,0.01", "kiln.sweep.dir=s", "kiln.sweep.subdir=same", status=1)
        self.assertIn("#1 failed: config: kiln.sweep.subdir: job #0 has the folder 'same' already", out)
        self.assertEqual([row["status"] for row in self.results()], ["stopped", "failed", "failed"])

    def test_wrong_answers_of_a_sweeper(self):
        for wrong, says in (("wait", "sweeper/halving waits, but no trial runs"),
                            ("value", "its trial 0 has a value of model that the space does not have"),
                            ("resume", "sweeper/halving cannot resume trial 7, which is not there"),
                            ("parent", "sweeper/halving cannot start from trial 7, which is not there")):
            _, err = self.sweep(*self.halving, "lr=0.1,0.01", f"kiln.sweeper.wrong={wrong}", f"kiln.sweep.dir={wrong}",
                                status=1)
            self.assertIn(says, err)
        self.refused("-m", *self.halving, "kiln.sweeper.worng=x", says=["kiln.sweeper", "worng"])

    def test_points_are_not_known_before(self):
        self.assertEqual(self.plan(*self.halving, "lr=0.1,0.01"), [])
        for flags in (["-m"], ["-m", "--plan"]):
            self.refused(*flags, *self.halving, "lr=0.1,fast", says=["optimizer.lr", '"fast"'])
        _, err = self.sweep(*self.halving, "lr=range(0)")
        self.assertIn("no jobs", err)
        _, err = self.sweep(*self.halving, "lr=0.1,0.01,0.001", "kiln.sweep.max_jobs=2", "kiln.sweep.dir=s", status=1)
        self.assertIn("kiln.sweep.max_jobs", err)


if __name__ == "__main__":
    main()
