"""What tests of sweeps share: the journal, the results, and a kill with a resume."""
import csv
import json
import os

from kilntest import Braked, read


class SweepCase(Braked):
    def journal(self, *events, folder="s"):
        """Whole records, without the times: the last one may be half written."""
        lines = [json.loads(line) for line in read(self.path(folder, "journal.jsonl"), "r").split("\n")[:-1]]
        return [{k: v for k, v in line.items() if k not in ("time", "seconds", "pid")} for line in lines
                if line["event"] in events]

    def results(self, folder="s"):
        with open(self.path(folder, "results.csv"), newline="") as f:
            return list(csv.DictReader(f))

    def statuses(self, folder="s"):
        return [row["status"] for row in self.results(folder)]

    def kill_and_resume(self, *sweep, folder, started):
        """Kill the launcher of a sweep, whose jobs take the brake, once so many jobs have started; resume it."""
        self.brake(20)
        process = self.start(*sweep, f"kiln.sweep.dir={folder}")
        self.wait_for(lambda: os.path.exists(self.path(folder, "journal.jsonl")) and
                      len(self.journal("started", folder=folder)) >= started, process)
        process.kill()
        process.communicate()
        self.let_go()
        self.run_kiln("-m", "--resume", folder)

    def story(self, folder):
        """What happened to each job, without what kills add: its point, values by epoch, why it was stopped."""
        jobs = {}
        for record in self.journal("submitted", "reported", "stopping", folder=folder):
            job = jobs.setdefault(record["job"], {"reported": {}, "stopping": []})
            if record["event"] == "submitted":
                job["submitted"] = record["overrides"], record.get("parent")
            elif record["event"] == "reported":
                job["reported"][record["epoch"]] = record["value"]
            elif record["reason"] not in job["stopping"]:
                job["stopping"].append(record["reason"])
        return jobs

    def same(self, folder):
        """The sweep has done what the undisturbed one, whole, has, and each job was done once."""
        self.assertEqual(self.story(folder), self.story("whole"))
        self.assertEqual([{k: v for k, v in row.items() if k != "seconds"} for row in self.results(folder)],
                         [{k: v for k, v in row.items() if k != "seconds"} for row in self.results("whole")])
        done = set()
        for record in self.journal("started", "ended", folder=folder):
            if record["event"] == "started":
                self.assertNotIn(record["job"], done, "a finished job started again")
            elif record["status"] == "ok":
                done.add(record["job"])
        for row in self.results(folder):
            model = f"{row['job']}/checkpoints/last/model.safetensors"
            self.assertEqual(read(self.path(folder, model)), read(self.path("whole", model)), f"{folder}/{model}")
