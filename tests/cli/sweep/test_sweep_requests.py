"""kiln sweep add, kiln sweep stop: requests to a sweep that runs, or will."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os
import shutil
import signal

from kilntest import Braked, build_plugin, main, read, read_json

# A job of some hundredths of a second, with four batches in an epoch.
JOB = ["model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32",
       "datamodule.batch_size=16", "trainer.max_epochs=3", "trainer.threads=1", "kiln.sweep.dir=s"]
NOT_RUNNING = "the sweep does not run now; it takes the request with: train -m --resume s\n"


class Requests(Braked):
    def kiln(self, *args, **options):
        return self.run_kiln("sweep", *args, program="kiln", **options)[0]

    def wrong(self, *args, says, status=1):
        _, err = self.run_kiln("sweep", *args, program="kiln", status=status)
        for text in says:
            self.assertIn(text, err)

    def resume(self, *args, status=0):
        return self.run_kiln("-m", "--resume", "s", *args, status=status)[0]

    def results(self):
        with open(self.path("s/results.csv"), newline="") as f:
            return list(csv.DictReader(f))

    def column(self, name):
        return [row[name] for row in self.results()]

    def journal(self, event):
        lines = read(self.path("s/journal.jsonl"), "r").split("\n")[:-1]
        return [record for record in map(json.loads, lines) if record["event"] == event]

    def starts(self):
        return [record["job"] for record in self.journal("started")]

    def requests(self):
        folder = self.path("s/.kiln/requests")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def held(self, *args, after=6):
        """A sweep whose first job is held after so many batches."""
        self.hold(after=after)
        process = self.start("-m", *JOB, *self.braked, "kiln.sweep.optuna=true", *args)
        self.wait_for(lambda: os.path.exists(self.path("s/0/metrics.csv")), process)
        return process

    def finish(self, process, status=0):
        self.let_go()
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, status, out + err)
        self.assertEqual(self.requests(), [])
        return out

    def kill(self, process):
        process.kill()
        process.communicate()
        self.let_go()


class Add(Requests):
    def test_to_a_running_sweep(self):
        process = self.held("model=mlp", "lr=0.1,0.01")
        self.assertEqual(self.kiln("add", "s", "lr=0.10"), "job 2 is added\n")  # written as 0.1
        self.assertEqual(self.kiln("add", "s", "lr=0.3", "seed=7"),
                         "job 3 is added; sweepers and pruners do not learn from it, since it is no point of the "
                         "sweep's space\n")
        out = self.finish(process)
        self.assertIn("#3 added on request", out)
        self.assertIn("[4/4] #3 ok", out)
        self.assertEqual(self.column("lr"), ["0.1", "0.01", "0.1", "0.3"])
        self.assertEqual(self.column("seed"), ["", "", "", "7"])
        self.assertEqual(self.column("status"), 4 * ["ok"])
        # Its bytes are those of a job of the grid, and of a single run.
        self.assertEqual(read(self.path("s/2/checkpoints/last/model.safetensors")),
                         read(self.path("s/0/checkpoints/last/model.safetensors")))
        self.run_kiln(*JOB[:-1], "model=mlp", "lr=0.3", "seed=7", "kiln.run.dir=run")
        self.assertEqual(read(self.path("s/3/checkpoints/last/model.safetensors")),
                         read(self.path("run/checkpoints/last/model.safetensors")))
        # The grid, extended, has it already.
        self.resume("lr=0.1,0.01,0.3")
        self.assertEqual(self.starts(), [0, 1, 2, 3, 4])
        self.assertEqual(self.column("seed")[4], "")
        with open(self.path("s/optuna.log")) as f:
            trials = [log for log in map(json.loads, f) if log["op_code"] == 4]
        self.assertEqual([trial["params"]["lr"] for trial in trials], [0, 1, 0, 2, 2])

    def test_what_is_refused(self):
        self.run_kiln("-m", *JOB, "trainer.max_epochs=1", "model=mlp,linear", "model.hidden=when(model,mlp,[8],[4])",
                      "lr=0.1,0.01")
        for words, says in [
                (["lr=0.3", "modle=linear"], ["argument 2 `modle=linear`", "did you mean 'model'?"]),
                (["lr=fast", "model=linear"], ['optimizer.lr: expected a number, got "fast"']),
                (["lr=0.3", "model=liner"], ["linear"]),
                (["model=linear"], ["lr: the sweep varies it, so a job needs a value: add lr=VALUE"]),
                (["lr=0.3", "model=mlp"], ["model.hidden: the sweep varies it"]),
                (["lr=0.3", "model=linear", "model.hidden=[8]"], ["only for other values of model"])]:
            self.wrong("add", "s", *words, says=says)
        for words, says in [(["lr=0.1,0.2", "model=linear"], "one value of each key"),
                            (["lr=0.1", "lr=0.2", "model=linear"], "lr is given twice"),
                            (["lr=0.1", "kiln.launcher.n_jobs=2"], "the same for all jobs")]:
            self.wrong("add", "s", *words, says=[says], status=2)
        self.wrong("add", "s", says=["expected the folder"], status=2)
        self.wrong("add", "nowhere", "lr=1", says=["nowhere: No such file or directory"])
        self.wrong("ad", "s", says=["expected a verb: report, add, stop, simulate; did you mean add?"], status=2)
        self.assertEqual(self.requests(), [])

    def test_intervals(self):
        sweep = ["model=mlp", "lr=tag(log,interval(1e-3,0.3))", "batch_size=int(interval(8,32))", "kiln/sweeper=random",
                 "kiln.sweeper.n_trials=2", "trainer.max_epochs=1"]
        self.run_kiln("-m", *JOB[:4], *JOB[5:], *sweep)
        self.wrong("add", "s", "lr=0.5", "batch_size=8", says=["lr: 0.5 is not in the sweep's interval(0.001,0.3)"])
        self.wrong("add", "s", "lr=0.1", "batch_size=64", says=["batch_size: 64 is not in the sweep's int(interval(8,32))"])
        self.wrong("add", "s", "lr=0.1", "batch_size=8.5", says=["batch_size", "8.5"])
        self.assertEqual(self.kiln("add", "s", "batch_size=16", "lr=0.1"), NOT_RUNNING)
        self.resume()
        self.assertEqual(self.column("status"), 3 * ["ok"])
        self.assertEqual((self.column("lr")[2], self.column("batch_size")[2]), ("0.1", "16"))

    def test_a_point_of_the_space_is_a_trial(self):
        """The pruner stops it; a job that is no point runs to its end."""
        process = self.held("model=mlp", "lr=0.1,0.09,0.08,0.07,1e-7", "kiln/pruner=median")
        self.assertEqual(self.kiln("add", "s", "lr=1e-07"), "job 5 is added\n")
        self.assertIn("no point", self.kiln("add", "s", "lr=2e-7"))
        self.finish(process)
        self.assertEqual(self.column("status")[5:], ["stopped", "ok"])

    def test_a_learning_sweeper_counts_it(self):
        halving = ["--plugin", build_plugin("halving", self.dir), "kiln/sweeper=halving", "model=mlp"]
        process = self.held(*halving, "lr=0.1,0.01,0.001", "trainer.max_epochs=4", after=2)
        self.kiln("add", "s", "lr=0.01")
        self.finish(process)
        # Its trials are the first three, one of which it did not suggest.
        self.assertEqual(self.column("lr")[:3], ["0.1", "0.01", "0.001"])
        self.assertEqual([record.get("request") is not None for record in self.journal("submitted")][:3],
                         [False, True, False])

    def test_two_at_once(self):
        process = self.held("model=mlp", "lr=0.1,0.01")
        both = [self.start("sweep", "add", "s", f"lr={rate}", program="kiln") for rate in (0.2, 0.3)]
        answers = [one.communicate()[0] for one in both]
        self.assertEqual(sorted(answer[:14] for answer in answers), ["job 2 is added", "job 3 is added"])
        self.finish(process)
        self.assertEqual(sorted(self.column("lr")), ["0.01", "0.1", "0.2", "0.3"])

    def test_no_more_than_allowed(self):
        process = self.held("model=mlp", "lr=0.1,0.01", "kiln.sweep.max_jobs=2")
        self.wrong("add", "s", "lr=0.2", says=["the sweep has 2 jobs, and no more are allowed"])
        self.finish(process)
        self.assertEqual(len(self.results()), 2)


class Kills(Requests):
    def test_between_the_request_and_the_job(self):
        process = self.held("model=mlp", "lr=0.1,0.01")
        process.send_signal(signal.SIGSTOP)
        asking = self.start("sweep", "add", "s", "lr=0.2", program="kiln")
        self.wait_for(lambda: any(name.endswith(".json") for name in self.requests()), asking)
        kept = self.path("s/.kiln/requests", self.requests()[0])
        self.kill(process)
        self.assertEqual(asking.communicate()[0], NOT_RUNNING)
        copy = shutil.copy(kept, self.path("copy"))
        self.resume()
        self.assertEqual(self.column("lr"), ["0.1", "0.01", "0.2"])
        self.assertEqual(self.requests(), [])

        # Killed after the journal had it, before the file was removed.
        shutil.copy(copy, kept)
        self.resume()
        self.assertEqual(self.column("lr"), ["0.1", "0.01", "0.2"])
        self.assertEqual(self.requests(), [])

    def test_between_a_stop_and_the_end_of_the_job(self):
        process = self.held("model=mlp", "lr=0.1,0.01")
        self.assertEqual(self.kiln("stop", "s", "0"), "job 0 stops with a checkpoint\n")
        self.kill(process)
        self.resume()
        self.assertEqual(self.column("status"), ["stopped", "ok"])
        self.assertEqual(self.column("reason"), ["on request", ""])
        self.assertEqual(self.starts(), [0, 1])

    def test_no_launcher(self):
        """A job that was interrupted stays where it is, although its pruner would resume it."""
        process = self.held("model=mlp", "lr=0.1,0.09,0.08", "kiln/pruner=hyperband", "kiln.pruner.brackets=1")
        self.kill(process)
        self.assertEqual(self.kiln("stop", "s", "0"), NOT_RUNNING)
        self.resume()
        self.assertEqual((self.column("status")[0], self.column("reason")[0]), ("stopped", "on request"))
        self.assertEqual(self.starts().count(0), 1)

    def test_a_damaged_request(self):
        self.run_kiln("-m", *JOB, "model=mlp", "lr=0.1,0.01")
        for n, text in enumerate(['{"request":"ad', '{"request":"dance"}', '{"request":"stop","job":-1}', "[]"]):
            self.write(f"s/.kiln/requests/{n}.json", text)
        self.write("s/.kiln/requests/4.json.17.tmp", "")
        out = self.resume()
        self.assertEqual(out.count("a request is refused: "), 4, out)
        self.assertEqual(self.requests(), ["4.json.17.tmp"])
        self.assertEqual(len(self.journal("refused")), 4)


class Stop(Requests):
    def test_a_running_job(self):
        process = self.held("model=mlp", "lr=0.1,0.01")
        self.assertEqual(self.kiln("stop", "s", "0"), "job 0 stops with a checkpoint\n")
        self.wrong("stop", "s", "0", says=["job 0 is about to stop, on request"])
        self.brake(200)  # it ends long before the other batches
        self.wait_for(lambda: any(record["job"] == 0 for record in self.journal("ended")), process)
        out = self.finish(process)
        self.assertIn("#0 stops on request", out)
        self.assertIn("#0 stopped  ", out)
        self.assertEqual(self.column("status"), ["stopped", "ok"])
        self.assertEqual(self.column("reason"), ["on request", ""])
        step = read_json(self.path("s/0/checkpoints/last/state.json"))["step"]
        self.assertIn(step, range(6, 12))
        self.resume()
        self.assertEqual(self.starts(), [0, 1])
        # By hand it can go on, to the bytes of a whole run.
        self.run_kiln(*JOB[:-1], "model=mlp", "lr=0.1", "kiln.run.dir=whole")
        self.run_kiln("resume=s/0")
        self.assertEqual(read(self.path("s/0/checkpoints/last/model.safetensors")),
                         read(self.path("whole/checkpoints/last/model.safetensors")))

    def test_with_a_pruner(self):
        """The job, which asks the launcher after each epoch, gets one signal."""
        process = self.held("model=mlp", "lr=0.1,0.01", "kiln/pruner=median")
        self.kiln("stop", "s", "0")
        self.finish(process)
        self.assertEqual(self.column("status"), ["stopped", "ok"])
        self.assertTrue(os.path.exists(self.path("s/0/checkpoints/last/state.json")))
        with open(self.path("s/optuna.log")) as f:
            states = {log["trial_id"]: log["state"] for log in map(json.loads, f) if log["op_code"] == 6}
        self.assertEqual(states, {0: 2, 1: 1})

    def test_a_waiting_job(self):
        process = self.held("model=mlp", "lr=0.1,0.01,0.001")
        self.assertEqual(self.kiln("stop", "s", "1"), "job 1 is stopped and will not start\n")
        self.wrong("stop", "s", "1", says=["job 1 has ended (stopped)"])
        out = self.finish(process)
        self.assertIn("[2/2] #2 ok", out)
        self.assertEqual(self.column("status"), ["ok", "stopped", "ok"])
        self.assertEqual(self.column("reason")[1], "on request")
        self.assertEqual(self.starts(), [0, 2])
        self.resume()
        self.assertEqual(self.starts(), [0, 2])

    def test_the_last_job_of_all(self):
        process = self.held("model=mlp", "lr=0.1")
        self.kiln("stop", "s", "0")
        self.finish(process)
        self.assertEqual(self.column("status"), ["stopped"])

    def test_what_is_refused(self):
        self.run_kiln("-m", *JOB, "model=mlp", "lr=0.1,0.01", "trainer.max_epochs=1")
        self.wrong("stop", "s", "0", says=["job 0 has ended (ok)"])
        self.wrong("stop", "s", "2", says=["there is no job 2: the sweep has 2 jobs"])
        for words in (["s"], ["s", "x"], ["s", "-1"], ["s", "1", "2"]):
            self.wrong("stop", *words, says=["expected the folder of a sweep and the number of a job"], status=2)
        self.assertEqual(self.requests(), [])

    def test_at_the_moment_when_it_ends(self):
        """The job has ended by the time the launcher reads the request."""
        process = self.held("model=mlp", "lr=0.1,0.01")
        process.send_signal(signal.SIGSTOP)
        asking = self.start("sweep", "stop", "s", "0", program="kiln")
        self.wait_for(lambda: any(name.endswith(".json") for name in self.requests()), asking)
        self.let_go()
        self.wait_for("s/0/summary.json", asking)
        process.send_signal(signal.SIGCONT)
        out, err = asking.communicate()
        process.communicate()
        # The launcher sees either first.
        self.assertIn((out, "job 0 has ended (ok)" in err), [("", True), ("job 0 stops with a checkpoint\n", False)])
        self.assertEqual(self.column("status"), ["ok", "ok"])


if __name__ == "__main__":
    main()
