"""The launcher slurm, on a Slurm of this machine: jobs end as with the launcher local, whatever ends or moves them."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re
import signal
import subprocess
import tempfile
import time

import slurm_cluster
from kilntest import main, read
from slurmtest import SlurmCase, is_daemon, is_job
from sweeptest import SweepCase

JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=128", "datamodule.val_count=32", "datamodule.test_count=32",
       "datamodule.batch_size=32", "trainer.max_epochs=3"]
SLURM = ["kiln/launcher=slurm"]
MODEL = "checkpoints/last/model.safetensors"


def is_daemon_of_step(command):
    return is_daemon(command) and not command[0].endswith(".batch]")


class Sweep(SweepCase):
    def results(self, folder="s"):
        return [{k: v for k, v in row.items() if k != "seconds"} for row in super().results(folder)]


class OnSlurm(SlurmCase, Sweep):
    def until(self, ready, process):
        return self.wait_for(ready, process, seconds=60)

    def finish(self, process, status=0):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, status, f"{out}\n{err}\n{self.slurm.logs()}")
        return out

    def begun(self, n=1, folder="s"):
        """Have n jobs begun training?"""
        return lambda: sum(os.path.exists(self.path(folder, str(i), "train.log")) for i in range(10)) >= n

    def whole(self, *args):
        """The same jobs with the launcher local."""
        self.run_kiln("-m", *JOB, *args, "kiln.sweep.dir=whole", "kiln.launcher.n_jobs=2")

    def check_equal(self, jobs):
        for row, whole in zip(self.results(), self.results("whole"), strict=True):
            self.assertEqual(row, whole)
        for job in range(jobs):
            self.assertEqual(read(self.path(f"s/{job}", MODEL)), read(self.path(f"whole/{job}", MODEL)))


class Jobs(OnSlurm):
    def test_results_equal_those_of_the_launcher_local(self):
        self.whole("seed=1,2,3,4")
        out, _ = self.run_kiln("-m", *JOB, "seed=1,2,3,4", *SLURM, "kiln.sweep.dir=s")
        self.check_equal(4)
        self.assertRegex(out, r"4 jobs submitted as Slurm job \d+")
        self.assertEqual(sorted(os.listdir(self.dir)), ["s", "whole"])
        self.assertEqual(read(self.path("s/0/train.log")).count(b"\nepoch"), read(self.path("whole/0/train.log")).count(b"\nepoch"))
        for line in self.journal("started"):
            self.assertRegex(line["where"], rf"^Slurm job \d+_{line['job']} on node \S+$")
        # Nothing is left to do.
        self.run_kiln("-m", "--resume", "s")
        self.assertEqual(len(self.journal("started")), 4)

    def test_pruner(self):
        """One job at a time: the decisions are those of the launcher local."""
        sweep = [*JOB, "lr=3,0.05,1e-05,0.1", "kiln/pruner=asha"]
        self.run_kiln("-m", *sweep, "kiln.sweep.dir=whole")
        self.run_kiln("-m", *sweep, *SLURM, "kiln.launcher.array_parallelism=1", "kiln.sweep.dir=s")
        self.assertEqual(*[self.journal("reported", "stopping", folder=folder) for folder in ("s", "whole")])
        self.assertEqual(self.results(), self.results("whole"))
        self.assertIn("stopped", self.statuses())

    def test_failing_job(self):
        """In a folder whose name needs quotes."""
        out, _ = self.run_kiln("-m", *JOB, "lr=0.1,1e6", "optimizer.momentum=0", *SLURM, 'kiln.sweep.dir="it\'s 100%A $x"', status=1)
        self.assertEqual(self.statuses("it's 100%A $x"), ["ok", "failed"])
        self.assertRegex(self.results("it's 100%A $x")[1]["reason"], r"^exit status 3 \(Slurm job \d+_1 on node \S+\): .*loss")
        self.assertIn("    | ", out)

    def test_setup_fails(self):
        out, _ = self.run_kiln("-m", *JOB, "seed=1,2", *SLURM, "kiln.launcher.setup=['echo no such module >&2','exit 3']",
                               "kiln.sweep.dir=s", status=1)
        self.assertRegex(out, r"Slurm job \d+_0 ended before the job began: no such module")
        self.assertEqual(self.statuses(), ["failed", "failed"])

    def test_cancelled(self):
        """By scancel: the job is not done, and a resume runs it from its checkpoint."""
        self.hold(6)
        process = self.start("-m", *JOB, "seed=1", *self.braked, *SLURM, "kiln.sweep.dir=s")
        self.until(self.begun(), process)
        self.slurm.output("scancel", *self.slurm.queue())
        self.let_go()
        out = self.finish(process)
        self.assertRegex(out, r"#0 interrupted .*\n.*Slurm job \d+_0 was cancelled")
        self.run_kiln("-m", "--resume", "s")
        self.assertEqual(self.statuses(), ["ok"])


    def test_stop_one(self):
        """kiln sweep stop: a job that runs saves a checkpoint, one that waits leaves the queue; the others run."""
        self.brake(1500)
        process = self.start("-m", *JOB, "seed=1,2,3", *self.braked, *SLURM, "kiln.launcher.array_parallelism=1", "kiln.sweep.dir=s")
        self.until(self.begun(), process)
        for job in ("2", "0"):  # when the running one is stopped, the other has left the queue
            self.run_kiln("sweep", "stop", "s", job, program="kiln")
        self.until(lambda: len(self.journal("ended")) >= 1, process)
        self.let_go()
        self.finish(process)
        self.assertEqual(self.statuses(), ["stopped", "ok", "stopped"])
        self.assertEqual([row["reason"] for row in self.results()], ["on request", "", "on request"])
        self.assertFalse(os.path.exists(self.path("s/2/train.log")))
        self.assertEqual([record["job"] for record in self.journal("queued")], [0, 1, 2], "one was submitted again")

    def test_objectives(self):
        metrics = "kiln.sweeper.metrics=[val/accuracy,val/loss]"
        self.whole("seed=1,2", metrics)
        self.run_kiln("-m", *JOB, "seed=1,2", metrics, *SLURM, "kiln.sweep.dir=s")
        self.check_equal(2)


class Requeue(OnSlurm):
    """A job that Slurm stops continues where it was, with the same bytes."""

    def one_job(self, *args):
        self.hold(6)
        process = self.start("-m", *JOB, "seed=1", *self.braked, *SLURM, "kiln.sweep.dir=s", *args)
        self.until(self.begun(), process)
        self.until(lambda: os.path.exists(self.path("s/0/metrics.csv")), process)
        return process

    def check(self, n, reason):
        self.whole("seed=1", *self.braked)
        self.check_equal(1)
        self.assertEqual(len(self.journal("started")), n + 1)
        self.assertEqual([line["status"] for line in self.journal("ended")][-1], "ok")
        for line in self.journal("ended")[:-1]:
            self.assertRegex(line["reason"], reason)

    def test_time_limit(self):
        """As Slurm's --signal, scancel --signal reaches the step, not the script."""
        process = self.one_job()
        self.slurm.output("scancel", "--signal=USR1", *self.slurm.queue())
        time.sleep(0.3)
        self.let_go()
        out = self.finish(process)
        self.assertRegex(out, r"#0 is queued again: time limit of 60 min: requeued \(Slurm job \d+_0 on node ")
        self.check(1, "time limit of 60 min: requeued")

    def test_too_many_time_limits(self):
        process = self.one_job("kiln.launcher.max_num_timeout=0")
        self.slurm.output("scancel", "--signal=USR1", *self.slurm.queue())
        time.sleep(0.3)
        self.let_go()
        self.finish(process, status=1)
        self.assertEqual(self.statuses(), ["timeout"])
        self.assertIn("time limit of 60 min", self.results()[0]["reason"])
        self.run_kiln("-m", "--resume", "s", "--retry-failed")
        self.check(1, "time limit")

    def test_preemption(self):
        process = self.one_job("kiln.launcher.cpus_per_task=2", "trainer.threads=1")
        self.slurm.output("sbatch", "-p", "urgent", "-c", "2", "-o", "/dev/null", "--wrap", "sleep 1")
        time.sleep(1.5)
        self.let_go()
        out = self.finish(process)
        self.assertRegex(out, r"#0 is queued again: Slurm job \d+_0 .*requeued by Slurm")
        self.check(1, "requeued by Slurm")

    def test_killed_process(self):
        """With nothing written: Slurm does not run it again, so the launcher submits it."""
        process = self.one_job()
        for pid in self.slurm.steps(is_job):
            os.kill(pid, signal.SIGKILL)
        self.let_go()
        out = self.finish(process)
        self.assertRegex(out, r"#0 is queued again: Slurm job \d+_0 ended, and the job wrote no end")
        self.check(1, "the job wrote no end")

    def test_killed_child(self):
        """The process that watches the job writes that; it is submitted again, too."""
        process = self.one_job()
        os.kill(max(self.slurm.steps(is_job)), signal.SIGKILL)
        self.let_go()
        out = self.finish(process)
        self.assertRegex(out, r"#0 is queued again: killed by SIGKILL.* \(Slurm job \d+_0 on node ")
        self.check(1, "killed by SIGKILL")

    def test_killed_child_of_a_task_that_does_not_end(self):
        """Its script waits for a step whose slurmstepd was killed before."""
        process = self.one_job()
        for pid in self.slurm.steps(is_daemon_of_step):
            os.kill(pid, signal.SIGKILL)
        os.kill(max(self.slurm.steps(is_job)), signal.SIGKILL)
        self.let_go()
        self.finish(process)
        self.check(1, "killed by SIGKILL")

    def test_slow_start_after_a_kill(self):
        """How the killed process ended is not taken for the end of the one that Slurm starts in its place."""
        process = self.one_job(f"kiln.launcher.setup=['test -e {self.path('seen')} && sleep 25','touch {self.path('seen')}']")
        for pid in self.slurm.steps(is_daemon):
            os.kill(pid, signal.SIGKILL)
        os.kill(max(self.slurm.steps(is_job)), signal.SIGKILL)
        self.slurm.output("scontrol", "requeue", *self.slurm.queue())
        self.let_go()
        self.finish(process)
        self.check(1, "requeued by Slurm")

    def test_held(self):
        """Slurm cannot start a script, and holds its task: the job is submitted again."""
        self.slurm.set_prolog("exit 1")
        try:
            process = self.start("-m", *JOB, "seed=1", *SLURM, "kiln.sweep.dir=s")
            self.until(lambda: self.slurm.states() == ["drained"], process)
        finally:
            self.slurm.set_prolog("exit 0")
        self.until(lambda: len(self.journal("queued")) > 1, process)
        self.slurm.resume_drained()
        out = self.finish(process)
        self.assertRegex(out, r"#0 is queued again: Slurm job \d+_0 is held, as Slurm could not launch it")
        self.assertEqual(self.statuses(), ["ok"])
        self.assertEqual(self.slurm.queue(), {})

    def test_process_that_slurm_lost(self):
        """Its slurmstepd was killed, so Slurm runs the task again while the process lives: the new one waits, and does nothing."""
        process = self.one_job()
        self.assertEqual(len(self.slurm.steps(is_job)), 2)
        for pid in self.slurm.steps(is_daemon):
            os.kill(pid, signal.SIGKILL)
        self.slurm.output("scontrol", "requeue", *self.slurm.queue())
        self.until(lambda: len(self.slurm.steps(is_job)) == 3, process)
        self.let_go()
        self.finish(process)
        self.slurm.wait(lambda: not self.slurm.steps(is_job))
        self.whole("seed=1", *self.braked)
        self.check_equal(1)
        self.assertEqual(read(self.path("s/0/.kiln/reports.jsonl")).count(b"begins"), 1, "it ran twice")
        self.assertEqual([line["status"] for line in self.journal("ended")][-1], "ok")

    def test_task_of_an_ended_job(self):
        """Its script waits for a step whose slurmstepd was killed: it does not block the node until the time limit."""
        process = self.one_job()
        for pid in self.slurm.steps(is_daemon_of_step):
            os.kill(pid, signal.SIGKILL)
        self.let_go()
        self.finish(process)
        self.slurm.wait(lambda: not self.slurm.queue())
        self.check(0, "")

    def test_script_that_fails(self):
        """Once other jobs have begun, it may be the node: it is submitted again."""
        once = f"if test $SLURM_ARRAY_TASK_ID -eq 1 -a ! -e {self.path('seen')}; then touch {self.path('seen')}; exit 3; fi"
        self.run_kiln("-m", *JOB, "seed=1,2", *SLURM, "kiln.launcher.array_parallelism=1", f"kiln.launcher.setup=['{once}']",
                      "kiln.sweep.dir=s")
        self.assertEqual(self.statuses(), ["ok", "ok"])
        self.assertRegex(self.journal("ended")[1]["reason"], r"^Slurm job \d+_1 ended before the job began")

    def test_node_failure(self):
        process = self.one_job()
        self.slurm.fail_node()
        self.let_go()
        out = self.finish(process)
        self.assertRegex(out, r"#0 is queued again: ")
        self.check(1, "requeued by Slurm|its process was lost|its node failed")


class Launcher(OnSlurm):
    """The launcher ends before its jobs do."""

    def test_killed(self):
        """Jobs go on; a resume takes what has ended, and waits for the rest."""
        self.whole("seed=1,2,3,4")
        self.hold(6)
        process = self.start("-m", *JOB, "seed=1,2,3,4", *self.braked, *SLURM, "kiln.sweep.dir=s")
        self.until(self.begun(2), process)
        process.kill()
        process.communicate()
        _, err = self.run_kiln("-m", "--resume", "s", "kiln/launcher=local", status=2)
        self.assertIn("job #0 may still run with kiln/launcher=slurm", err)
        self.brake(100)
        self.slurm.wait(lambda: len(self.slurm.queue()) < 4)
        process = self.start("-m", "--resume", "s")
        self.until(self.begun(3), process)
        self.let_go()
        self.finish(process)
        for job in range(4):
            self.assertEqual(read(self.path(f"s/{job}", MODEL)), read(self.path(f"whole/{job}", MODEL)))
            self.assertEqual(read(self.path(f"s/{job}/.kiln/reports.jsonl")).count(b"begins"), 1, "it ran twice")
        self.assertEqual([line["status"] for line in self.journal("ended")], 4 * ["ok"])

    def lose_answer(self, n):
        """sbatch submits jobs the nth time, and fails: the task is found, not submitted twice."""
        sbatch = slurm_cluster.find("sbatch")
        os.mkdir(self.path("bin"))
        self.write("bin/sbatch", f"#!/bin/sh\necho >> {self.path('calls')}\ntest $(wc -l < {self.path('calls')}) -eq {n} || "
                                 f"exec {sbatch} \"$@\"\n{sbatch} \"$@\" > {self.path('array')}\necho lost >&2\nexit 1\n")
        os.chmod(self.path("bin/sbatch"), 0o755)
        env = dict(self.slurm.env, PATH=f"{self.path('bin')}:{os.environ['PATH']}")
        out, _ = self.run_kiln("-m", *JOB, "lr=interval(0.01,0.1)", "kiln/sweeper=tpe", "kiln.sweeper.n_trials=3", *SLURM,
                               "kiln.launcher.array_parallelism=1", "kiln.sweep.dir=s", env=env)
        self.assertIn("sbatch refused the jobs (exit status 1): lost\n", out)
        self.assertEqual(read(self.path("calls")).count(b"\n"), 3)
        [where] = [line["where"] for line in self.journal("started") if line["job"] == n - 1]
        self.assertTrue(where.startswith(f"Slurm job {read(self.path('array'), 'r').strip()}_{n - 1} "), where)

    def test_lost_answer(self):
        self.lose_answer(2)

    def test_lost_first_answer(self):
        self.lose_answer(1)

    def test_interrupt(self):
        self.whole("seed=1,2,3,4")
        self.hold(6)
        process = self.start("-m", *JOB, "seed=1,2,3,4", *self.braked, *SLURM, "kiln.sweep.dir=s")
        self.until(self.begun(2), process)
        process.send_signal(signal.SIGINT)
        self.slurm.wait(lambda: len(self.slurm.queue()) < 3)
        self.let_go()
        out = self.finish(process, status=130)
        self.assertEqual(self.statuses(), 2 * ["interrupted"] + 2 * ["waiting"])
        self.assertIn("4 jobs are not done; continue with: train -m --resume s", out)
        self.assertEqual(self.slurm.queue(), {})
        self.run_kiln("-m", "--resume", "s", "kiln/launcher=local")
        for job in range(4):
            self.assertEqual(read(self.path(f"s/{job}", MODEL)), read(self.path(f"whole/{job}", MODEL)))

    def test_refused(self):
        _, err = self.run_kiln("-m", *JOB, "seed=1,2", *SLURM, "kiln.launcher.partition=none", "kiln.sweep.dir=s", status=1)
        self.assertIn("sbatch refused the jobs (exit status 1): sbatch: error: ", err)
        self.assertIn("invalid partition specified: none", err)
        self.run_kiln("-m", "--resume", "s", "kiln.launcher.partition=main")
        self.assertEqual(self.statuses(), ["ok", "ok"])


class WithoutSlurm(Sweep):
    def test_no_sbatch(self):
        self.refused("-m", *JOB, "seed=1,2", *SLURM, env=dict(os.environ, PATH=self.dir), says=["sbatch is not on the PATH; "])

    def test_options(self):
        self.refused("-m", *JOB, "seed=1,2", *SLURM, "kiln.launcher.timeout=3", says=["did you mean 'kiln.launcher.timeout_min'?"])
        self.refused("-m", *JOB, "seed=1,2", *SLURM, "+kiln.launcher.additional_parameters={a+b: 1}", "--plan",
                     says=["'a+b' is no name of an option of sbatch"])

    def test_plan(self):
        out, _ = self.run_kiln("-m", *JOB, "seed=range(4)", *SLURM, "kiln.launcher.array_parallelism=2", "kiln.launcher.mem_gb=1.5",
                               "kiln.launcher.timeout_min=null", "kiln.launcher.gres=gpu:2", "kiln.launcher.comment=a b",
                               "+kiln.launcher.additional_parameters={mail_type: FAIL, exclusive: 'true'}",
                               "kiln.launcher.setup=[module load gcc]", "kiln.launcher.srun_args=[--label,a b]",
                               "kiln.sweep.dir=it's 100%", "--plan")
        self.assertEqual(os.listdir(self.dir), [])
        line, script = out.rstrip().split("\n\n")[-2:]
        self.assertRegex(line, r"^sbatch --parsable --job-name=kiln --array=0-3%2 ")
        for word in ("--mem=1536M", "--gres=gpu:2", "--mail-type=FAIL", "--exclusive", "--signal=USR1@120"):
            self.assertIn(f" {word} ", line)
        self.assertIn(" '--comment=a b' ", line)
        self.assertNotIn("--time", line)
        self.assertIn("module load gcc\nsrun --label 'a b' ", script)
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
            file.write(script)
            file.flush()
            subprocess.run(["sh", "-n", file.name], check=True)


if __name__ == "__main__":
    main()
