"""kiln sweep simulate: what other sweepers and pruners would have done with recorded trials."""
import csv
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kilntest import ROOT, Case, main

CURVES = str(pathlib.Path(ROOT) / "bench/search/curves.csv")
# A job of some hundredths of a second.
JOB = ["model=mlp", "datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32",
       "datamodule.batch_size=16", "trainer.max_epochs=3", "trainer.threads=1"]
SMALL = "lr,layers,1,2,3\n0.1,2,0.9,0.8,0.7\n0.01,3,1.0,0.7,0.5\n0.001,2,1.2,1.1,1.0\n"


class Simulate(Case):
    def simulate(self, *args):
        out, _ = self.run_kiln("sweep", "simulate", *args, "--json", program="kiln")
        return json.loads(out)

    def wrong(self, text, *says, words=(), status=1):
        self.write("curves.csv", text)
        self.refused("sweep", "simulate", "curves.csv", *words, program="kiln", says=says, status=status)

    def test_asha_finds_the_best_with_fewer_epochs(self):
        asha = ["kiln/sweeper=random", "kiln.sweeper.n_trials=81", "kiln/pruner=asha"]
        whole = self.simulate(CURVES, *asha[:2])["runs"][0]
        self.assertEqual((whole["trials"], whole["epochs"], whole["stopped"]), (81, 81 * 27, 0))
        self.assertEqual(whole["best"], whole["best_tried"])
        runs = self.simulate(CURVES, *asha, "--runs", "30")["runs"]
        self.assertEqual([run["seed"] for run in runs], list(range(runs[0]["seed"], runs[0]["seed"] + 30)))
        self.assertLess(sorted(run["epochs"] for run in runs)[15], 81 * 27 / 4)
        self.assertGreater(sum(run["best"] == run["best_tried"] for run in runs), 20)
        # A curve is tried once.
        self.assertEqual(len(set(runs[0]["recorded"])), 81)

    def test_workers_and_stragglers(self):
        args = [CURVES, "kiln/sweeper=random", "kiln.sweeper.n_trials=40"]
        one = self.simulate(*args)["runs"][0]
        four = self.simulate(*args, "kiln.launcher.n_jobs=4")["runs"][0]
        self.assertEqual((one["seconds"], four["seconds"]), (40 * 27, 10 * 27))
        self.assertEqual(one["recorded"], four["recorded"])
        self.assertEqual(self.simulate(*args, "kiln.launcher.n_jobs=0"), self.simulate(*args, "kiln.launcher.n_jobs=-1"))
        slow = self.simulate(*args, "kiln.launcher.n_jobs=4", "--straggle", "1")
        self.assertGreater(slow["runs"][0]["seconds"], 1.3 * four["seconds"])
        self.assertEqual(slow, self.simulate(*args, "kiln.launcher.n_jobs=4", "--straggle", "1"))
        short = self.simulate(*args, "kiln.sweep.timeout=100")["runs"][0]
        self.assertEqual(short["trials"], 4)

    def test_learning_sweepers_and_pbt(self):
        for sweeper in "tpe", "gp", "nsga2", "halton":
            run = self.simulate(CURVES, f"kiln/sweeper={sweeper}", "kiln.sweeper.n_trials=30")["runs"][0]
            self.assertEqual((run["trials"], len(set(run["recorded"]))), (30, 30), sweeper)
        events = self.simulate(CURVES, "kiln/sweeper=pbt", "kiln.launcher.n_jobs=3")["runs"][0]["events"]
        self.assertIn("resume", {event["event"] for event in events})

    def test_the_jobs_of_a_sweep(self):
        self.run_kiln("-m", *JOB, "lr=0.3,0.1,0.01,0.001", "optimizer=sgd,adam", "kiln.sweep.dir=s")
        whole = self.simulate("s")
        self.assertEqual((whole["sweeper"], whole["recorded"], whole["metric"], whole["mode"]),
                         ("grid", 8, "val/accuracy", "max"))
        self.assertEqual(whole["runs"][0]["recorded"][1], "job #1 lr=0.3 optimizer=adam")
        with open(self.path("s/results.csv"), newline="") as f:
            self.assertAlmostEqual(whole["best_recorded"], max(float(row["val/accuracy"]) for row in csv.DictReader(f)), 6)
        self.assertEqual([event["epoch"] for event in whole["runs"][0]["events"]], 8 * [0, 3])
        out, _ = self.run_kiln("sweep", "simulate", "s", "kiln/pruner=median", "kiln/sweeper=random", "kiln.sweeper.n_trials=20",
                               "--verbose", program="kiln")
        self.assertIn("8 recorded jobs of s: random with percentile, 1 at a time", out)
        self.assertIn("stopped", out)
        losses = self.simulate("s", "kiln.sweeper.metric=train/loss_epoch")
        self.assertEqual((losses["metric"], losses["mode"]), ("train/loss_epoch", "min"))
        self.refused("sweep", "simulate", "s", "kiln.sweeper.metric=val/los", program="kiln",
                     says=['no column "val/los" (did you mean "val/loss"?)'])

    def test_a_list_of_trials_and_its_ends(self):
        self.write("curves.csv", "lr,model,seconds,1,2,3\n0.1,mlp,2,0.9,0.8,0.7\n0.01,cnn,5,1.0,0.7,\n")
        run = self.simulate("curves.csv")["runs"][0]
        self.assertEqual((run["trials"], run["epochs"], run["seconds"], run["best"]), (2, 5, 16, 0.7))
        run = self.simulate("curves.csv", "kiln.sweeper.mode=max")["runs"][0]
        self.assertEqual(run["best"], 1.0)

    def test_wrong_files(self):
        self.wrong("lr,layers\n0.1,2\n", "curves.csv: has no columns of epochs")
        self.wrong("1,2\n0.1,2\n", "curves.csv: has no columns of parameters")
        self.wrong("lr,1,3\n0.1,2,3\n", "column `3`: expected `2`")
        self.wrong("lr,1,2\n", "curves.csv: has no rows")
        self.wrong(SMALL.replace("0.8", "x"), "curves.csv:2: column `2`: expected a number, got `x`")
        self.wrong(SMALL.replace("0.8", ""), "curves.csv:2: no value in column `2`, but in `3`")
        self.wrong(SMALL.replace("0.01", ""), "curves.csv:3: no value in column `lr`")
        self.wrong(SMALL.replace("1.2,1.1,1.0", ",,"), "curves.csv:4: no value in column `1`")
        self.wrong(SMALL.replace(",1.0\n", "\n"), "curves.csv:4")
        self.wrong("lr,seconds,1\n1,0,2\n", "column `seconds`: expected more than 0")
        self.wrong(SMALL, "lr: takes no values here", words=["lr=1,2"], status=2)
        self.wrong(SMALL, "sweeper/grid has no seed", words=["--runs", "3"], status=2)
        self.wrong(SMALL, "did you mean 'asha'?", words=["kiln/pruner=ash"])

    def test_wrong_command_lines(self):
        for words, says in ([], "expected recorded trials"), ([CURVES, "--runs", "0"], "--runs 0"), \
                ([CURVES, "--straggle", "-1"], "--straggle -1"), ([CURVES, "--straggle", "x"], "--straggle x"):
            self.refused("sweep", "simulate", *words, program="kiln", status=2, says=[says])
        self.refused("sweep", "simulate", "nothing", program="kiln", says=["nothing: No such file or directory; `last` means"])
        os.mkdir(self.path("empty"))
        self.refused("sweep", "simulate", "empty", program="kiln", says=["empty: not a sweep's folder (it has no journal.jsonl)"])


if __name__ == "__main__":
    main()
