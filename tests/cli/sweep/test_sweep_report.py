"""`kiln sweep report`: what a sweep has shown, its files, and the experiment of the best job."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os
import shutil
import subprocess

from kilntest import BUILD, Braked, main, read

# A job of some hundredths of a second.
JOB = ["datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32", "datamodule.batch_size=16",
       "trainer.max_epochs=2", "callbacks=none", "logger=none", "trainer.threads=1"]
PICTURES = ["history.png", "importance.png", "parallel.png", "slice.png"]


class Reports(Braked):
    def report(self, *args, status=0, **options):
        return self.run_kiln("sweep", "report", *args, program="kiln", status=status, **options)

    def json(self, folder="s"):
        out, err = self.report(folder, "--json")
        self.assertEqual(err, "")
        return json.loads(out)

    def check_reproduced(self, *train, folder="s"):
        """`train experiment=...` composes the config of the best job and gives its bytes."""
        best = self.json(folder)["best"]["dir"]
        self.run_kiln("-q", *train, "kiln.run.dir=again")
        again = self.config("again")
        job = self.config(f"{folder}/{best}")
        self.assertEqual(again, job)
        self.assertEqual(read(self.path("again/checkpoints/last/model.safetensors")),
                         read(self.path(folder, best, "checkpoints/last/model.safetensors")))

    def config(self, run):
        """The lines of a run's config, which has no anchors: the order of keys may differ."""
        out, stack = [], []
        for line in read(self.path(run, ".kiln/config.yaml"), "r").splitlines():
            indent = len(line) - len(line.lstrip())
            del stack[indent // 2:]
            stack.append(line.strip())
            out.append(" ".join(stack))
        return sorted(out)


class Report(Reports):
    def test_a_random_search(self):
        self.run_kiln("-m", *JOB, "model=mlp,linear", "model.hidden=when(model,mlp,[4],[16])", "kiln.sweep.dir=s",
                      "lr=tag(log,interval(1e-4,0.05))", "optimizer.nesterov=true,false", "kiln/sweeper=random",
                      "kiln.sweeper.n_trials=24")
        before = read(self.path("s/journal.jsonl"))
        out, err = self.report("s")
        self.assertEqual(err, "")
        for text in ("s: 24 jobs: 24 ok; ", "\nbest\n  val/loss ", "\nthe best 10 of 24\n", "\nimportance\n  ",
                     "kiln sweep report s --write best\n", "train experiment=best\n", "files in s/report\n"):
            self.assertIn(text, out)
        self.assertNotIn("\033", out)
        self.assertEqual(read(self.path("s/journal.jsonl")), before)

        found = self.json()
        self.assertEqual(found, json.loads(read(self.path("s/report/report.json"))))
        self.assertEqual(found["jobs"], {"all": 24, "ok": 24, "stopped": 0, "failed": 0, "running": 0, "waiting": 0,
                                         "forbidden": 0})
        with open(self.path("s/results.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([job["job"] for job in found["ranked"]],
                         sorted(range(24), key=lambda n: int(rows[n]["rank"])))
        self.assertEqual(found["best"], found["ranked"][0])
        self.assertEqual([p["key"] for p in found["parameters"]], ["model", "model.hidden", "lr", "optimizer.nesterov"])
        shares = {p["key"]: p["importance"] for p in found["parameters"]}
        self.assertLess(shares["optimizer.nesterov"], 0.1)
        self.assertEqual(found["analysed_jobs"], 24)
        with open(self.path("s/report/importance.csv"), newline="") as f:
            table = list(csv.DictReader(f))
        self.assertEqual(len(table), 4 + 6)
        self.assertEqual({row["parameter"]: float(row["importance"]) for row in table if not row["with"]}, shares)
        if "no pictures" not in out:
            for name in PICTURES:
                self.assertEqual(read(self.path("s/report", name))[:8], b"\x89PNG\r\n\x1a\n", name)
        self.assertFalse(os.path.exists(self.path("conf")))

    def test_the_best_job_again(self):
        self.run_kiln("-m", *JOB[:-1], "model=mlp,linear", "model.hidden=when(model,mlp,[4],[16])", "lr=zip(0.001,0.02)",
                      "seed=zip(3,4)", "+note='a: b # c',x", "kiln.launcher.n_jobs=2", "kiln.sweep.dir=s")
        out, _ = self.report("s", "--write", "tuned/small")
        self.assertIn("wrote conf/experiment/tuned/small.yaml", out)
        text = read(self.path("conf/experiment/tuned/small.yaml"), "r")
        self.assertTrue(text.startswith("# @package _global_\n# The best of "), text)
        for line in ("  - override /model: ", "  - override /callbacks: none", "#   train experiment=tuned/small\n",
                     "best of 2 values tried", "# the same in all jobs\n", "the bytes depend on it\n"):
            self.assertIn(line, text)
        self.assertEqual(text.replace("tuned/small", "best"), read(self.path("s/report/best.yaml"), "r"))
        self.check_reproduced("experiment=tuned/small")

        _, err = self.report("s", "--write", "tuned/small", status=2)
        self.assertIn("conf/experiment/tuned/small.yaml exists; --force replaces it", err)
        self.report("s", "--write", "tuned/small", "--force", "--json")

    def test_a_sweep_of_an_experiment(self):
        """The best config of jobs that began with an experiment, of a config of another name and folder."""
        self.write("my/main.yaml", "defaults: [/task: vision, datamodule: digits, model: mlp, optimizer: sgd, scheduler: cosine, "
                   "callbacks: none, logger: none, trainer: default, _self_]\n"
                   "lr: 0.1\nseed: 1\nckpt_path: null\ntest: false\nbatch_size: 16\ntags: [y]\n")
        self.write("my/experiment/base.yaml", "# @package _global_\ndefaults: [override /model: linear]\n"
                   "optimizer: {momentum: 0.5}\n")
        main = ["-cp", "my", "-cn", "main"]
        self.run_kiln("-m", *main, *JOB[:-3], "+experiment=base", "lr=0.001,0.02", "tags+=a,b", "kiln.sweep.dir=s")
        self.report("s", "--write", "best")
        self.assertIn("\n  - base\n", read(self.path("conf/experiment/best.yaml"), "r"))
        self.assertIn("tags: ['y', 'a']", read(self.path("conf/experiment/best.yaml"), "r"))
        line = self.json()["commands"][1]["command"]
        self.assertEqual(line, f"train -cp {os.path.realpath(self.path('my'))} -cn main +experiment=best")
        shutil.copy(self.path("conf/experiment/best.yaml"), self.path("my/experiment/best.yaml"))
        shutil.rmtree(self.path("conf"))
        self.check_reproduced(*main, "+experiment=best")

    def test_suggested_commands(self):
        """The best values are the largest: the next one, and a wider interval."""
        self.run_kiln("-m", *JOB, "model=linear", "lr=0.0001,0.001,0.01", "optimizer.weight_decay=0.0,1e-4,1e-3",
                      "kiln.sweep.dir=s")
        found = self.json()
        self.assertIn(("widen", "lr"), [(s["kind"], s["parameter"]) for s in found["suggestions"]])
        command = [c["command"] for c in found["commands"]][-1]
        self.assertEqual(command, "train -m --resume s lr=0.0001,0.001,0.01,0.1")
        self.run_kiln(*command.split()[1:])
        self.assertEqual(self.json()["jobs"]["all"], 12)

        self.run_kiln("-m", *JOB, "model=linear", "lr=tag(log,interval(1e-5,5e-3))", "kiln/sweeper=random",
                      "kiln.sweeper.n_trials=20", "kiln.sweep.dir=r")
        command = [c["command"] for c in self.json("r")["commands"]][-1]
        self.assertIn("'lr=tag(log,interval(1e-05,0.05))'", command)
        self.assertNotIn("kiln.sweep.dir", command)
        plan = subprocess.run(["bash", "-c", command.replace("train", os.path.join(BUILD, "train"), 1) +
                               " --plan"], cwd=self.dir, stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(plan.stdout.count("#"), 20)

    def test_few_jobs(self):
        self.run_kiln("-m", *JOB, "model=linear", "lr=0.01,0.001", "kiln.sweep.dir=multirun/a/b")
        out, _ = self.report("last")
        self.assertIn("multirun/a/b: 2 jobs: 2 ok;", out)
        self.assertIn("needs at least 8 jobs with a value of val/loss; there are 2", out)
        found = self.json("last")
        self.assertEqual([p["importance"] for p in found["parameters"]], [None])
        self.assertFalse(os.path.exists(self.path("multirun/a/b/report/importance.png")))
        # One job, and nothing that varies.
        self.run_kiln("-m", *JOB, "model=linear", "kiln.sweep.dir=one")
        self.report("one", "--write", "one")
        self.check_reproduced("experiment=one", folder="one")

    def test_a_running_sweep(self):
        self.brake(0)
        process = self.start("-m", *self.braked, *JOB, "model=linear", "lr=0.01,0.001", "kiln.sweep.dir=s")
        self.wait_for(lambda: os.path.exists(self.path("s/journal.jsonl")) and
                      b'"ended"' in read(self.path("s/journal.jsonl")), process)
        out, _ = self.report("s")
        self.assertIn("s: 2 jobs: ", out)
        self.assertEqual(process.wait(60), 0)
        process.communicate()


class Errors(Reports):
    def refuse(self, *args, says, status=1):
        return self.refused("sweep", *args, says=says, status=status, program="kiln")

    def test_wrong_command_lines(self):
        self.refuse(says=["sweep: error: expected a verb: report"], status=2)
        self.refuse("reprot", "x", says=["reprot: expected a verb: report, add, stop, simulate; did you mean report?"], status=2)
        self.refuse("report", says=["report: needs the folder of a sweep, or `last`"], status=2)
        self.refuse("report", "a", "b", says=["expected one folder, got `b` too"], status=2)
        self.refuse("report", "a", "--force", says=["--force goes with --write"], status=2)
        for name in ("", "/x", "../x", "a/../b", "x.yaml", "a b"):
            self.refuse("report", "a", "--write", name, says=["--write", "expected the name of an experiment"], status=2)

    def test_no_sweep(self):
        self.refuse("report", "last", says=["last: there is no sweep below multirun/"])
        self.refuse("report", "none", says=["none: No such file or directory; `last` means the newest sweep below multirun/"])

    def test_no_values(self):
        self.run_kiln("-m", *JOB, "model=linear", "lr=0.01,0.001", "kiln.sweep.dir=s", "kiln.sweeper.metric=val/loss",
                      "kiln.sweeper.mode=max", status=1)  # which the metric contradicts
        self.refuse("report", "s", says=["s: no job has finished: of 2 jobs 0 are running, 0 wait, 0 were stopped and 2 failed",
                                         "`train -m --resume s --retry-failed` runs them"])
        self.run_kiln("-m", *JOB, "model=linear", "lr=0.01,0.001", "kiln.sweeper.metric=val/f1", "kiln.sweep.dir=t", status=1)
        self.refuse("report", "t", says=["t: no job logged val/f1", "job #0 logged ", "val/loss",
                                         "`train -m --resume t kiln.sweeper.metric=NAME`"])
        self.run_kiln("-m", "--resume", "t", "kiln.sweeper.metric=val/accuracy")
        self.assertEqual(self.json("t")["metric"], "val/accuracy")

    def test_damage(self):
        self.run_kiln("-m", *JOB, "model=linear", "lr=0.01,0.001", "kiln.sweep.dir=s")
        best = self.json()["best"]["job"]
        shutil.move(self.path("s", str(best)), self.path("moved"))
        out, err = self.report("s", status=1)
        self.assertIn(f"s/{best}: the folder of job #{best}, the best one, lacks .kiln/job.yaml", err)
        self.assertIn("lr=0.01", err)
        self.assertIn("the best 2 of 2", out)
        self.assertTrue(os.path.exists(self.path("s/report/report.json")))
        journal = read(self.path("s/journal.jsonl"))
        with open(self.path("s/journal.jsonl"), "wb") as f:
            f.write(journal.replace(b'{"event":"ended"', b'{"event:"ended"', 1))
        line = journal[:journal.index(b'{"event":"ended"')].count(b"\n") + 1
        self.refuse("report", "s", says=[f"s/journal.jsonl:{line}: the line is damaged: "])


if __name__ == "__main__":
    main()
