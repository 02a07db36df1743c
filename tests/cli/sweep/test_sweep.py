"""Sweeps: planning, freezing, parallel jobs, failed jobs, resuming."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import math
import os
import pty
import signal
import time
import unittest

from kilntest import BUILD, Braked, build_plugin, main, read, read_json

# A job of some hundredths of a second.
JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32",
       "datamodule.test_count=32", "datamodule.batch_size=16", "trainer.max_epochs=2",
       "trainer.threads=1"]
ASAN = "asan" in BUILD


class Sweep(Braked):
    def sweep(self, *args, status=0, **options):
        return self.run_kiln("-m", *args, status=status, **options)

    def plan(self, *args):
        out, _ = self.sweep("--plan", *args)
        return [line.split(" : ", 1)[1] for line in out.splitlines() if line.startswith("#")]

    def results(self, folder="s"):
        with open(self.path(folder, "results.csv"), newline="") as f:
            return list(csv.DictReader(f))

    def statuses(self, folder="s"):
        return [row["status"] for row in self.results(folder)]

    def journal(self, folder="s"):
        with open(self.path(folder, "journal.jsonl")) as f:
            return [json.loads(line) for line in f]

    def starts(self, folder="s"):
        return [line["job"] for line in self.journal(folder) if line["event"] == "started"]


class Plan(Sweep):
    def test_grid_zip_glob_and_ranges(self):
        self.assertEqual(self.plan("lr=0.1,0.01", "seed=1,2"),
                         ["lr=0.1 seed=1", "lr=0.1 seed=2", "lr=0.01 seed=1", "lr=0.01 seed=2"])
        self.assertEqual(self.plan("lr=zip(0.1,0.01)", "seed=zip(1,2)", "batch_size=16,32"),
                         ["lr=0.1 seed=1 batch_size=16", "lr=0.1 seed=1 batch_size=32",
                          "lr=0.01 seed=2 batch_size=16", "lr=0.01 seed=2 batch_size=32"])
        self.assertEqual(self.plan("optimizer=glob(adam*)"), ["optimizer=adam", "optimizer=adamw"])
        self.assertEqual(self.plan("seed=range(1,4)"), ["seed=1", "seed=2", "seed=3"])
        self.assertEqual(os.listdir(self.dir), [], "a plan wrote something")

    def test_params_of_a_file(self):
        self.write("conf/grid.yaml", "defaults: [config, _self_]\n"
                   "kiln: {sweeper: {params: {lr: '0.1,0.01', seed: 'choice(1,2)'}}}\n")
        self.assertEqual(self.plan("--config-name", "grid", "seed=7"),
                         ["lr=0.1 seed=7", "lr=0.01 seed=7"])

    def test_wrong_values_are_told_before_anything_runs(self):
        for flags in (["-m"], ["-m", "--plan"]):
            self.refused(*flags, *JOB, "lr=0.1,fast", says=["optimizer.lr", '"fast"'])
            self.refused(*flags, *JOB, "model=mlp,resmet", says=["resmet", "resnet"])
            self.refused(*flags, *JOB, "trainer.max_epoch=1,2", says=["max_epochs"])

    def test_a_message_stands_once_with_its_jobs(self):
        err = self.refused("-m", *JOB, "lr=0.1,fast", "seed=1,2,3", says=["in jobs #3, #4, #5"])
        self.assertEqual(err.count('got "fast"'), 1, err)

    def test_a_message_names_the_argument_or_the_file(self):
        """The number is that of the command, whatever goes to the sweep or does not apply to a job."""
        self.refused("-m", "kiln/sweeper=random", "optimizer.momentum=when(optimizer,sgd,0.5)", "optimizer=adam,sgd", "lr=0.1,fast",
                     says=["argument 4 `lr=fast`: optimizer.lr"])
        self.write("own/search/lr.yaml", "# @package kiln.sweeper\nparams:\n  lr: 0.1,fast\n  lrr: 1\n")
        err = self.refused("-m", "+search=lr", "--config-dir", "own", "batch_size=x",
                           says=["search/lr.yaml:3:7: optimizer.lr", "search/lr.yaml:4:8: ", "did you mean 'lr'?",
                                 "argument 2 `batch_size=x`"])
        self.assertNotIn("argument 1", err)

    def test_flags_that_do_not_go_together(self):
        self.refused("--plan", "lr=1,2", says=["-m"], status=2)
        self.refused("-m", "--retry-failed", says=["--resume"], status=2)
        self.refused("-m", "--resume", "nowhere", says=["nowhere: No such file or directory"])
        self.refused("-m", "--resume", "last", says=["multirun"])

    def test_the_folder_of_a_run_is_not_a_sweep_s(self):
        _, err = self.sweep("--plan", "lr=0.1,0.01", "kiln.run.dir=here")
        self.assertIn("kiln.run.dir=here is ignored: kiln.sweep.dir names", err)

    def test_too_many_jobs(self):
        self.refused("-m", "seed=range(0,10001)", says=["10001 jobs", "kiln.sweep.max_jobs=10001"])
        self.assertEqual(len(self.plan("seed=range(0,20)", "kiln.sweep.max_jobs=20")), 20)
        wide = [f"{k}=range(0,19000)" for k in ("seed", "lr", "batch_size", "trainer.max_steps",
                                                "trainer.max_epochs")]
        self.refused("-m", *wide, says=["more jobs than can be counted"])
        self.refused("-m", "seed=range(0,60000)", "lr=range(0,60000)", says=["more than 100000 values"])

    def test_ten_thousand_jobs_are_planned(self):
        jobs = self.plan("seed=range(0,100)", "batch_size=range(1,101)")
        self.assertEqual(len(jobs), 10000)


class Run(Sweep):
    def test_the_config_may_ask_for_a_sweep(self):
        self.write("own/search/lr.yaml", "# @package kiln\nmode: MULTIRUN\nsweeper: {params: {lr: '0.1,0.2'}}\n")
        own = [*JOB, "+search=lr", "--config-dir", "own", "kiln.sweep.dir=s", "kiln.run.dir=r"]
        self.run_kiln(*own)
        self.assertEqual([row["lr"] for row in self.results()], ["0.1", "0.2"])
        self.run_kiln(*own, "hydra.mode=RUN")
        self.assertTrue(os.path.exists(self.path("r/summary.json")))

    def test_jobs_run_and_are_ranked(self):
        out, _ = self.sweep(*JOB, "lr=0.1,0.01", "seed=1,2", "kiln.sweep.dir=s")
        rows = self.results()
        self.assertEqual([(r["job"], r["lr"], r["seed"]) for r in rows],
                         [("0", "0.1", "1"), ("1", "0.1", "2"), ("2", "0.01", "1"), ("3", "0.01", "2")])
        self.assertEqual({r["status"] for r in rows}, {"ok"})
        with open(self.path("s/results.json")) as f:
            results = json.load(f)
        self.assertEqual(results["metric"], "val/accuracy")
        scores = {str(job["job"]): job["metrics"]["val/accuracy"]["best"] for job in results["jobs"]}
        order = sorted(scores, key=lambda job: (-scores[job], int(job)))
        self.assertEqual([str(n) for n in results["ranked"]], order)
        self.assertIn(f"best run: s/{order[0]}", out)
        for n, row in enumerate(rows):
            with open(self.path("s", str(n), "summary.json")) as f:
                summary = json.load(f)
            self.assertEqual(float(row["val/accuracy"]), summary["metrics"]["val/accuracy"]["last"]["value"])
            self.assertTrue(os.path.isdir(self.path("s", str(n), "checkpoints/last")))
        self.assertEqual([line["event"] for line in self.journal()][:5], ["begun"] + 4 * ["submitted"])

    def test_metric_and_mode(self):
        self.sweep(*JOB, "lr=0.1,0.01,0.001", "kiln.sweep.dir=s", "kiln.sweeper.metric=val/loss")
        rows = self.results()
        with open(self.path("s/results.json")) as f:
            ranked = json.load(f)["ranked"]
        self.assertEqual(ranked, sorted(range(3), key=lambda n: float(rows[n]["val/loss_best"])))

    def test_a_mode_that_contradicts_the_metric(self):
        """Jobs are refused before they train; without a direction there is no ranking, and a line says why."""
        out, _ = self.sweep(*JOB, "lr=0.1,0.01", "kiln.sweep.dir=s", "kiln.sweeper.metric=val/loss",
                            "kiln.sweeper.mode=max", status=1)
        self.assertIn("kiln.sweeper.mode=max: val/loss gets better as it falls; write kiln.sweeper.mode=min", out)
        self.assertEqual(self.statuses(), ["failed", "failed"])
        self.assertFalse(os.path.exists(self.path("s/0/metrics.csv")))
        out, _ = self.sweep(*JOB, "lr=0.1,0.01", "kiln.sweeper.metric=lr")
        self.assertIn("no ranking: lr does not declare whether a larger or a smaller value is better; write "
                      "kiln.sweeper.mode=max", out)
        self.assertNotIn("best run", out)

    def test_a_metric_that_no_job_logs(self):
        out, err = self.sweep(*JOB, "lr=0.1,0.01", "kiln.sweeper.metric=val/los", "kiln.sweep.dir=s", status=1)
        self.assertIn("job #0 has ended, and logs no val/los (did you mean val/loss?); it logs ", err)
        self.assertNotIn("best run", out)
        self.assertEqual(self.statuses(), ["ok", "waiting"])

    def test_a_job_equals_a_run_of_its_own(self):
        self.sweep(*JOB, "lr=0.1,0.01", "seed=3", "kiln.sweep.dir=s")
        self.run_kiln(*JOB, "lr=0.01", "seed=3", "kiln.run.dir=run")
        self.assertEqual(read(self.path("s/1/checkpoints/last/model.safetensors")),
                         read(self.path("run/checkpoints/last/model.safetensors")))
        self.assertEqual(read(self.path("s/1/.kiln/config.yaml")), read(self.path("run/.kiln/config.yaml")))
        self.assertIn(b"lr=0.01", read(self.path("s/1/.kiln/overrides.yaml")))

    def test_names_of_jobs(self):
        self.sweep(*JOB, "lr=0.1,0.01", "kiln.sweep.dir=s", "kiln.sweep.subdir=job_${kiln.job.num}",
                   "+note='${kiln.job.id} of ${kiln.sweep.dir} in ${kiln.run.dir}'")
        self.assertIn(b"note: 1 of s in s/job_1", read(self.path("s/job_1/.kiln/config.yaml")))
        self.sweep("lr=0.1,0.01", *JOB[:3], "trainer.max_steps=1", "kiln.sweep.dir=t",
                   "kiln.sweep.subdir=${kiln.job.override_dirname}",
                   "kiln.job.config.override_dirname.exclude_keys="
                   "[model,model.hidden,datamodule.train_count,trainer.max_steps]")
        self.assertEqual(self.statuses("t"), ["ok", "ok"])
        self.assertTrue(os.path.isdir(self.path("t/lr=0.01/checkpoints")))
        self.refused("-m", *JOB, "lr=0.1,0.01", "kiln.sweep.subdir=same", says=["#0 and #1", "same"])
        self.refused("-m", *JOB, "lr=0.1,0.01", "kiln.sweep.subdir=../x${kiln.job.num}", says=["subdir"])
        self.refused("-m", *JOB, "lr=0.1,0.01", "kiln.sweep.dir=s", says=["--resume s"])

    def test_several_at_a_time_share_threads(self):
        self.sweep(*[a for a in JOB if "threads" not in a], "seed=1,2,3,4", "kiln.sweep.dir=s",
                   "kiln.launcher.n_jobs=2")
        self.assertEqual(self.statuses(), 4 * ["ok"])
        share = max(1, len(os.sched_getaffinity(0)) // 2)
        for n in range(4):
            self.assertIn(f"threads: {share}\n".encode(), read(self.path("s", str(n), ".kiln/config.yaml")))
        _, err = self.sweep(*JOB[:-1], "trainer.threads=1000", "seed=1,2", "kiln.launcher.n_jobs=2",
                            "trainer.max_epochs=0", "kiln.sweep.dir=t")
        self.assertIn("more threads than", err)

    def test_editing_the_config_meanwhile_changes_nothing(self):
        self.write("conf/config.yaml", "defaults: [trainer: default, datamodule: digits, task: vision, "
                   "model: mlp, optimizer: sgd, scheduler: constant, callbacks: default, logger: csv, _self_]\n"
                   "lr: ${oc.decode:${oc.env:RATE}}\nbatch_size: 16\nseed: 1\n")
        self.hold(after=0)
        process = self.start("-m", *self.braked, *JOB, "seed=1,2,3", "kiln.sweep.dir=s",
                             env={**os.environ, "RATE": "0.05"})
        self.wait_for("s/0/train.log", process)
        self.write("conf/config.yaml", "nonsense: [")
        self.let_go()
        process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.statuses(), 3 * ["ok"])
        self.assertIn(b"lr: 0.05", read(self.path("s/2/.kiln/config.yaml")))

    def test_files_and_environment_are_those_of_the_beginning(self):
        """Also after a kill, for jobs that were not frozen, and for files that no job had used."""
        self.write("conf/model/small.yaml", "_target_: model/mlp\nhidden: [8]\n")
        self.write("conf/model/spare.yaml", "_target_: model/mlp\nhidden: [6]\n")
        job = [*JOB[2:], "model=small", "lr=${oc.decode:${oc.env:RATE}}", "seed=${oc.decode:${oc.env:SEED,3}}",
               "optimizer.momentum=0.1,0.2,0.3"]
        env = {name: value for name, value in os.environ.items() if name not in ("RATE", "SEED")}
        self.hold(after=0)
        process = self.start("-m", *self.braked, *job, "kiln.sweep.dir=s", env={**env, "RATE": "0.05"})
        self.wait_for("s/0/train.log", process)
        self.assertFalse(os.path.exists(self.path("s/1")), "a job is frozen before it starts")
        process.kill()
        process.communicate()
        self.let_go()
        for name in ("small", "spare"):
            self.write(f"conf/model/{name}.yaml", "_target_: model/mlp\nhidden: [9]\n")
        self.sweep("--resume", "s", env={**env, "RATE": "0.07", "SEED": "4"})
        self.assertEqual(self.statuses(), 3 * ["ok"])
        for number in range(3):
            config = read(self.path("s", str(number), ".kiln/config.yaml"))
            for line in (b"lr: 0.05", b"hidden: [8]", b"seed: 3"):
                self.assertIn(line, config)
        self.sweep("--resume", "s", "model=spare", env={**env, "RATE": "0.07"})
        self.assertIn(b"hidden: [6]", read(self.path("s/3/.kiln/config.yaml")))

    def test_equal_jobs(self):
        self.assertEqual(self.plan("seed=1,1"), ["seed=1", "seed=1"])
        self.sweep(*JOB, "seed=1,1", "kiln.sweep.dir=s")
        self.sweep("--resume", "s", "seed=1,1,2,1")
        self.assertEqual([r["seed"] for r in self.results()], ["1", "1", "2", "1"])

    def test_an_empty_sweep(self):
        _, err = self.sweep("seed=range(5,5)")
        self.assertIn("no jobs", err)
        self.assertEqual(os.listdir(self.dir), [])


class Trouble(Sweep):
    def trouble(self, *args, **options):
        return self.sweep("--plugin", build_plugin("trouble", self.dir), *JOB, "kiln.sweep.dir=s",
                          "+callbacks.trouble._target_=callback/trouble", *args, **options)

    def seconds_of_a_job(self, *args):
        """As long as a job takes on this machine, now."""
        began = time.monotonic()
        self.run_kiln(*JOB, *args, "kiln.run.dir=run")
        return time.monotonic() - began

    def test_crash_failure_and_hang_leave_the_rest_unharmed(self):
        limit = math.ceil(8 * self.seconds_of_a_job())
        out, _ = self.trouble("callbacks.trouble.what=none,abort,hang,fail,none", "callbacks.trouble.epoch=1",
                              "kiln.launcher.n_jobs=2", f"kiln.launcher.timeout={limit}s",
                              "kiln.launcher.grace=200ms", status=1)
        self.assertEqual(self.statuses(), ["ok", "failed", "timeout", "failed", "ok"])
        self.assertIn("killed by SIGABRT", out)
        self.assertIn(f"timeout after {limit}s", out)
        self.assertIn("exit status 4: callbacks.trouble: trouble was", out)
        self.assertIn("trouble was asked for", out)
        self.assertIn("    | ", out, "no end of the log")
        ranked = read_json(self.path("s/results.json"))["ranked"]
        self.assertEqual(sorted(ranked), [0, 4], "only what ended well is ranked")
        self.assertEqual([row["rank"] for row in self.results()],
                         [str(ranked.index(n) + 1) if n in ranked else "" for n in range(5)])
        self.assertIn("--retry-failed", out)

        # Again: those that ended well are not run twice, those that failed only when asked.
        self.sweep("--resume", "s", status=1)
        self.assertEqual(sorted(self.starts()), [0, 1, 2, 3, 4])
        self.sweep("--resume", "s", "--retry-failed", status=1)
        self.assertEqual(sorted(self.starts()), [0, 1, 1, 2, 2, 3, 3, 4])

    def test_a_loss_that_is_no_number(self):
        """The job ends as a single run does, and its reason is on the screen and in both tables."""
        wrong = [*JOB, "optimizer.momentum=0", "lr=1e6"]
        self.run_kiln(*wrong, "kiln.run.dir=run", status=3)
        reason = read_json(self.path("run/summary.json"))["reason"]
        self.assertIn("the loss is NaN", reason)
        out, _ = self.sweep(*JOB, "optimizer.momentum=0", "lr=0.1,1e6", "kiln.sweep.dir=s", status=1)
        self.assertIn(f"    exit status 3: {reason.splitlines()[0]}\n", out)
        self.assertIn(f"#1 failed: exit status 3: {reason.splitlines()[0]}\n", out)
        self.assertEqual([row["reason"] for row in self.results()], ["", f"exit status 3: {reason.splitlines()[0]}"])
        job = read_json(self.path("s/results.json"))["jobs"][1]
        self.assertEqual([job["status"], job["reason"]], ["failed", self.results()[1]["reason"]])
        self.assertEqual(self.results()[1]["rank"], "")

    @unittest.skipIf(ASAN, "the sanitizer needs more address space than any limit")
    def test_memory_limit(self):
        out, _ = self.trouble("callbacks.trouble.what=allocate,none", "kiln.launcher.memory=512MiB", status=1)
        self.assertEqual(self.statuses(), ["failed", "ok"])
        self.assertIn("out of memory, limit 512MiB", out)

    def test_a_timeout_leaves_a_checkpoint_to_go_on_from(self):
        limit = 8 * self.seconds_of_a_job("trainer.max_epochs=12")
        self.brake(math.ceil(1000 * 2 * limit / (11 * 4)), after=4)  # all but the first epoch take twice the time
        self.sweep(*self.braked, *JOB, "kiln.sweep.dir=s", "trainer.max_epochs=12",
                   f"kiln.launcher.timeout={math.ceil(1000 * limit)}ms", status=1)
        self.assertEqual(self.statuses(), ["timeout"])
        self.let_go()
        self.sweep("--resume", "s", "--retry-failed", "kiln.launcher.timeout=0")
        self.assertEqual(self.statuses(), ["ok"])
        self.assertIn(b"resuming from", read(self.path("s/0/train.log")))
        self.assertEqual(read(self.path("s/0/checkpoints/last/model.safetensors")),
                         read(self.path("run/checkpoints/last/model.safetensors")))

    def test_interrupt_stops_with_checkpoints_and_resume_goes_on(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            folder = f"int{status}"
            self.brake(500, after=5)
            process = self.start("-m", *self.braked, *JOB, f"kiln.sweep.dir={folder}", "seed=1,2,3",
                                 "kiln.launcher.n_jobs=2", "trainer.max_epochs=8")
            for job in [0, 1]:
                self.wait_for(f"{folder}/{job}/checkpoints/last", process)
            process.send_signal(number)
            out, _ = process.communicate(timeout=120)
            self.let_go()
            self.assertEqual(process.returncode, status)
            self.assertIn(f"train -m --resume {folder}", out)
            self.assertEqual(self.statuses(folder), ["interrupted", "interrupted", "waiting"])
            self.assertEqual(self.journal(folder)[-1]["event"], "interrupted")
            self.sweep("--resume", folder)
            self.assertEqual(self.statuses(folder), 3 * ["ok"])
            self.assertIn(b"resuming from", read(self.path(folder, "1/train.log")))
        self.assertEqual(read(self.path("int130/1/checkpoints/last/model.safetensors")),
                         read(self.path("int143/1/checkpoints/last/model.safetensors")))

    def test_a_job_that_is_killed_goes_on(self):
        self.hold(after=5)
        process = self.start("-m", *self.braked, *JOB, "kiln.sweep.dir=s", "trainer.max_epochs=8", "seed=1,2")
        self.wait_for("s/0/checkpoints/last", process)
        os.kill([line["pid"] for line in self.journal() if line["event"] == "started"][0], signal.SIGKILL)
        self.let_go()
        out, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(self.statuses(), ["killed", "ok"])
        self.assertIn("killed by SIGKILL", out)
        self.sweep("--resume", "s")
        self.assertEqual(self.statuses(), ["ok", "ok"])
        self.assertIn(b"resuming from", read(self.path("s/0/train.log")))

    def test_workers_end_with_their_launcher(self):
        self.hold(after=5)
        process = self.start("-m", *self.braked, *JOB, "kiln.sweep.dir=s", "seed=1,2", "kiln.launcher.n_jobs=2")
        self.wait_for("s/1/checkpoints/last", process)
        self.assertEqual(len(os.listdir(f"/proc/{process.pid}/task")), 1, "the launcher has threads")
        workers = [line["pid"] for line in self.journal() if line["event"] == "started"]
        self.assertEqual(len(workers), 2)
        process.kill()
        process.communicate()
        end = time.monotonic() + 60
        while any(os.path.exists(f"/proc/{pid}/exe") for pid in workers):
            self.assertLess(time.monotonic(), end, "a worker outlived its launcher")
            time.sleep(0.01)

    def test_the_status_area_of_a_terminal(self):
        self.brake(30)
        pid, screen = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.environ.update(COLUMNS="60", TERM="xterm")
            os.execv(os.path.join(BUILD, "train"), ["train", "-m", *self.braked, *JOB, "trainer.max_epochs=8",
                     "seed=1,2", "kiln.launcher.n_jobs=2"])
        out = b""
        try:
            while data := os.read(screen, 4096):
                out += data
        except OSError:
            pass  # how a terminal whose programs have ended reads
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        os.close(screen)
        text = out.decode()
        self.assertIn("0 of 2 jobs done, 2 running, about ", text)
        self.assertRegex(text, r"#1  \d+\.\d s  epoch \d/8  val/accuracy 0\.\d+  seed=2")
        self.assertIn("\x1b[3A\r\x1b[J", text)
        for line in text.split("\n"):
            if " s  epoch " in line:
                self.assertLess(len(line.strip("\r")), 60 + len("\x1b[3A\r\x1b[J"))

    def test_only_one_launcher_owns_a_sweep(self):
        self.hold(after=0)
        process = self.start("-m", *self.braked, *JOB, "kiln.sweep.dir=s")
        self.wait_for("s/0/train.log", process)
        self.refused("-m", "--resume", "s", says=["another process runs this"])
        process.kill()
        process.communicate()


class Extend(Sweep):
    def test_more_values_keep_finished_jobs(self):
        self.sweep(*JOB, "lr=0.1,0.01", "kiln.sweep.dir=s")
        before = read(self.path("s/1/checkpoints/last/model.safetensors"))
        out, _ = self.sweep("--resume", "s", "lr=0.1,0.05,0.01", "--plan")
        self.assertEqual([line[:2] for line in out.splitlines()], ["#2"])
        self.sweep("--resume", "s", "lr=0.1,0.05,0.01")
        self.assertEqual([r["lr"] for r in self.results()], ["0.1", "0.01", "0.05"])
        self.assertEqual(self.starts(), [0, 1, 2])
        self.assertEqual(read(self.path("s/1/checkpoints/last/model.safetensors")), before)
        self.sweep("--resume", "s")
        self.assertEqual(self.starts(), [0, 1, 2])

    def test_old_files_stay_as_they_were(self):
        self.write("conf/model/small.yaml", "_target_: model/mlp\nhidden: [8]\n")
        self.sweep(*JOB[2:], "model=small", "lr=0.1", "kiln.sweep.dir=s")
        self.write("conf/model/small.yaml", "_target_: model/mlp\nhidden: [9]\n")
        self.write("conf/model/new.yaml", "_target_: model/mlp\nhidden: [7]\n")
        self.sweep("--resume", "s", "model=small,new", "lr=0.1,0.2")
        self.assertEqual(self.statuses(), 4 * ["ok"])
        small = [r for r in self.results() if r["model"] == "small"]
        self.assertEqual([r["job"] for r in small], ["0", "1"])
        self.assertIn(b"hidden: [8]", read(self.path("s/1/.kiln/config.yaml")))
        self.assertIn(b"hidden: [7]", read(self.path("s/2/.kiln/config.yaml")))

    def test_from_another_folder(self):
        self.sweep(*JOB, "lr=0.1,0.01")
        os.makedirs(self.path("elsewhere"))
        day = os.listdir(self.path("multirun"))[0]
        folder = self.path("multirun", day, os.listdir(self.path("multirun", day))[0])
        here, self.dir = self.dir, self.path("elsewhere")
        self.sweep("--resume", folder, "lr=0.1,0.01,0.001")
        self.assertEqual(os.listdir(self.dir), [])
        self.dir = here
        self.assertEqual(self.statuses(folder), 3 * ["ok"])
        self.sweep("--resume", "last")

    def test_a_wrong_new_value_changes_nothing(self):
        self.sweep(*JOB, "lr=0.1,0.01", "kiln.sweep.dir=s")
        before = {name: read(self.path("s", name)) for name in ("journal.jsonl", "results.csv")}
        self.refused("-m", "--resume", "s", "lr=0.1,fast", says=['"fast"'])
        self.assertEqual(before, {name: read(self.path("s", name)) for name in before})
        self.assertFalse(os.path.exists(self.path("s/2")))


if __name__ == "__main__":
    main()
