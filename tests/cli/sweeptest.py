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
