"""Population based training: decisions do not depend on how many jobs run at a time, or on kills."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json

from kilntest import main, read
from sweeptest import SweepCase

JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=256", "datamodule.val_count=64", "datamodule.test_count=32",
       "datamodule.batch_size=32", "trainer.threads=1", "trainer.max_epochs=6"]
PBT = ["-m", *JOB, "kiln/sweeper=pbt", "lr=tag(log,interval(1e-4,1))", "optimizer.weight_decay=0,0.01", "kiln.sweeper.population=4",
       "kiln.sweeper.interval_epochs=2"]


class Population(SweepCase):
    def decisions(self, folder="s"):
        """By job: its values, its parent, what it reported."""
        reports = {}
        for line in self.journal("reported", folder=folder):
            reports.setdefault(line["job"], []).append((line["epoch"], line["value"]))
        return [(line["overrides"], line.get("parent"), reports[line["job"]]) for line in
                self.journal("submitted", folder=folder)]

    def models(self, folder="s"):
        return [read(self.path(folder, str(n), "checkpoints/last/model.safetensors"))
                for n in range(len(self.journal("submitted", folder=folder)))]

    def test_generations(self):
        self.run_kiln(*PBT, "kiln.sweep.dir=s")
        decisions = self.decisions()
        self.assertEqual(len(decisions), 6)
        # After two epochs, and after four, the worst is replaced by a copy of the best, with other values.
        for copy, epoch, members in ((4, 2, [0, 1, 2, 3]), (5, 4, None)):
            values = {n: dict(reports)[epoch] for n, (_, _, reports) in enumerate(decisions) if epoch in dict(reports) and n < copy}
            if members is None:
                members = list(values)
            self.assertEqual(sorted(values), sorted(members))
            parent = decisions[copy][1]
            self.assertEqual(values[parent], max(values.values()))
            worst = min(values, key=lambda n: (values[n], -n))
            self.assertEqual(decisions[worst][2][-1][0], epoch, "the worst went on")
            self.assertNotEqual(decisions[copy][0], decisions[parent][0])
            self.assertEqual(decisions[copy][2][0][0], epoch + 1)
        self.assertEqual(sum(reports[-1][0] == 6 for _, _, reports in decisions), 4)

        # A copy is its parent's run, continued with its own values.
        parent = decisions[4][1]
        self.assertEqual(read(self.path("s/4/.kiln/start/state.json"), "r").count('"epoch": 2'), 1)
        self.run_kiln(*decisions[4][0], "ckpt_path=s/4/.kiln/start", "kiln.run.dir=run")
        self.assertEqual(read(self.path("run/checkpoints/last/model.safetensors")), self.models()[4])
        self.assertNotEqual(read(self.path("run/checkpoints/last/model.safetensors")), self.models()[parent])

    def test_jobs_at_a_time_change_nothing(self):
        self.run_kiln(*PBT, "kiln.sweep.dir=s")
        self.run_kiln(*PBT, "kiln.sweep.dir=t", "kiln.launcher.n_jobs=3")
        self.assertEqual(self.decisions(), self.decisions("t"))
        self.assertEqual(self.models(), self.models("t"))

    def test_kills_change_nothing(self):
        self.run_kiln(*PBT, *self.braked, "kiln.sweep.dir=s")
        for jobs, started in ((1, 3), (2, 7)):
            folder = f"killed{jobs}"
            self.kill_and_resume(*PBT, *self.braked, f"kiln.launcher.n_jobs={jobs}", folder=folder, started=started)
            self.assertEqual(self.decisions(folder), self.decisions())
            self.assertEqual(self.models(folder), self.models())

    def test_the_schedule_trains_the_same_bytes(self):
        for seed in range(1, 9):
            self.run_kiln(*PBT, f"kiln.sweeper.seed={seed}", f"kiln.sweep.dir=s{seed}")
            self.run_kiln("sweep", "report", f"s{seed}", "--write", "best", "--force", program="kiln")
            if "sweeper/schedule" in read(self.path("conf/experiment/best.yaml"), "r"):
                break
        else:
            self.fail("the best job is a copy in no sweep")
        with open(self.path(f"s{seed}", "report/report.json")) as f:
            best = json.load(f)["best"]["job"]
        out, _ = self.run_kiln("experiment=best", "kiln.sweep.dir=again")
        self.assertIn("jobs that schedule chooses", out)
        self.assertIn("phase 1 of ", out)
        last = len(self.journal("submitted", folder="again")) - 1
        self.assertEqual(read(self.path("again", str(last), "checkpoints/last/model.safetensors")),
                         read(self.path(f"s{seed}", str(best), "checkpoints/last/model.safetensors")))

    def test_phases(self):
        self.run_kiln("-m", *JOB, "kiln/sweeper=schedule", "lr=zip(0.1,0.01,0.001)", "kiln.sweeper.until=[1,4]", "kiln.sweep.dir=s")
        self.assertEqual([[epoch for epoch, _ in reports] for _, _, reports in self.decisions()], [[1], [2, 3, 4], [5, 6]])
        self.assertEqual([parent for _, parent, _ in self.decisions()], [None, 0, 1])
        self.refused("-m", *JOB, "kiln/sweeper=schedule", "lr=zip(0.1,0.01,0.001)", "kiln.sweeper.until=[4,1]",
                     says=["kiln.sweeper.until", "1 after 4: expected ascending epochs"])
        self.refused("-m", *JOB, "kiln/sweeper=schedule", "lr=zip(0.1,0.01)", "kiln.sweeper.until=[1,4]",
                     says=["lr has 2 values, and there are 3 phases (until)"])

    def test_a_member_that_fails_is_replaced(self):
        """A rate of 1e6 gives a loss that is no number."""
        self.run_kiln("-m", *JOB, "kiln/sweeper=pbt", "lr=choice(0.05,1e6)", "kiln.sweeper.population=4",
                      "kiln.sweeper.interval_epochs=2", "kiln.sweeper.resample=0", "kiln.sweep.dir=s", status=1)
        failed = [line["job"] for line in self.journal("ended") if line["status"] == "failed"]
        self.assertTrue(failed)
        copies = self.journal("submitted")[4:]
        self.assertGreaterEqual(len(copies), len(failed))
        self.assertTrue(all(copy["parent"] not in failed for copy in copies))

    def test_all_fail(self):
        out, _ = self.run_kiln("-m", *JOB, "kiln/sweeper=pbt", "lr=choice(1e5,1e6)", "kiln.sweeper.population=3",
                               "kiln.sweep.dir=s", status=1)
        self.assertEqual(len(self.journal("submitted")), 3)


if __name__ == "__main__":
    main()
