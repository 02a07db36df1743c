"""kiln.needs: how many jobs run at a time depends on what they need."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import re

from kilntest import Case, main, read

JOB = ["model=mlp", "model.hidden=[8]", "datamodule.train_count=64", "datamodule.val_count=32", "datamodule.test_count=32",
       "datamodule.batch_size=16", "trainer.max_epochs=1"]


def available():
    return 1024 * int(re.search(r"^MemAvailable: +(\d+) kB", read("/proc/meminfo", "r"), re.M).group(1))


class Needs(Case):
    def at_once(self):
        """The most jobs that ran at a time, in the order of the journal."""
        running, most = 0, 0
        for line in read(self.path("s/journal.jsonl"), "r").splitlines():
            event = json.loads(line)["event"]
            running += (event == "started") - (event == "ended")
            most = max(most, running)
        return most

    def test_memory(self):
        self.run_kiln("-m", *JOB, "seed=range(4)", "kiln.launcher.n_jobs=4", f"kiln.needs.memory={available() * 2 // 3}",
                      "kiln.sweep.dir=s")
        self.assertEqual(self.at_once(), 1)

    def test_small_and_large_ones(self):
        """The need comes from the option that a job selects."""
        self.write("conf/config.yaml", "defaults: [task: vision, datamodule: digits, model: mlp, optimizer: sgd, scheduler: constant, size: small]\n"
                   "lr: 0.1\nbatch_size: 16\ntrainer: {max_epochs: 1}\n")
        for name, share in (("small", 8), ("large", 2)):
            self.write(f"conf/size/{name}.yaml", "# @package _global_\nkiln: {needs: {memory: %d}}\n" % (available() * 3 // 2 // share))
        self.run_kiln("-m", *JOB[1:-1], "size=small,large", "seed=range(3)", "kiln.launcher.n_jobs=3", "kiln.sweep.dir=s")
        order = [json.loads(line) for line in read(self.path("s/journal.jsonl"), "r").splitlines()]
        running, seen = set(), set()
        for line in order:
            if line["event"] == "started":
                running.add(line["job"])
                seen.add(tuple(sorted(running)))
            elif line["event"] == "ended":
                running.discard(line["job"])
        self.assertFalse([jobs for jobs in seen if sum(job >= 3 for job in jobs) > 1], "two large ones at a time")
        self.assertEqual(len(order), len([line for line in order if line.get("status") != "failed"]))

    def test_processors(self):
        self.run_kiln("-m", *JOB, "seed=1,2", "kiln.launcher.n_jobs=2", "kiln.needs.cpus=1000", "trainer.threads=1",
                      "kiln.sweep.dir=s")
        self.assertEqual(self.at_once(), 1)
        self.run_kiln("-m", *JOB, "seed=1,2", "kiln.launcher.n_jobs=2", "kiln.needs.cpus=1", "kiln.sweep.dir=t")
        self.assertIn("threads: 1\n", read(self.path("t/0/.kiln/config.yaml"), "r"))

    def test_a_job_alone_always_runs(self):
        self.run_kiln("-m", *JOB, "seed=1,2", "kiln.launcher.n_jobs=2", "kiln.needs.memory=100TB", "kiln.sweep.dir=s")
        self.assertEqual(self.at_once(), 1)

    def test_mistakes(self):
        self.refused("-m", *JOB, "seed=1,2", "kiln.needs.memroy=1GB", says=["did you mean 'kiln.needs.memory'?"])
        self.refused("-m", *JOB, "seed=1,2", "kiln.needs.cpus=-1", says=["kiln.needs.cpus", "from 0"])


if __name__ == "__main__":
    main()
