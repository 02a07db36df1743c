"""Standard output that cannot be written: a full device, a closed pipe, a missing stream."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re
import shutil
import subprocess

from kilntest import BUILD, TINY, Case, main, png, read

SHORT_RUN = [*TINY, "trainer.max_epochs=1"]
FULL = "cannot write standard output: No space left on device"

# Each command of `kiln --help`, as often as it prints in different ways. RUN is a run with a flight record, SWEEP a sweep.
COMMANDS = {
    "train": [["--help"], ["--cfg", "job"], ["--cfg", "all", "--origins"], ["--explain", "lr"], ["--info"],
              ["--version"], [*TINY, "--plan"], ["-m", *TINY, "lr=0.1,0.2", "--plan"],
              [*SHORT_RUN, "kiln.run.dir=run1"], ["-m", *SHORT_RUN, "lr=0.1,0.2", "kiln.sweep.dir=sweep1"]],
    "sweep": [["report", "SWEEP"], ["report", "SWEEP", "--json"], ["add", "SWEEP", "lr=0.3"]],
    "new": [["t.csv", "-o", "new.yaml", "--force"]],
    "check-data": [TINY, ["--json", *TINY]],
    "eval": [["RUN"], ["--help"]],
    "predict": [["RUN", "split=val"]],
    "explain-prediction": [["RUN", "x.png"], ["RUN", "x.png", "--json"]],
    "generate": [["--help"]],
    "graph": [TINY],
    "ckpt": [["ls"], ["show", "RUN"], ["verify", "RUN"], ["diff", "RUN", "RUN"]],
    "verify-resume": [["-n", "1", *SHORT_RUN]],
    "tune": [["lr", *TINY]],
    "replay": [["RUN"]],
    "list": [[]],
    "show": [["mlp"], ["trainer"], ["experiment/mnist/cnn"]],
    "schema": [[], ["model"]],
    "init": [["project"]],
    "import-hydra": [["configs", "-o", "kiln-conf", "--force"], ["--classes"]],
    "plugin": [["check", "metric/accuracy"]],
    "completion": [["bash"], ["zsh"], ["fish"]],
    "explain": [["RUN"], ["RUN", "lr"]],
    "top": [[], ["--json"]],
    "doctor": [[], ["--json"]],
    "tokenizer": [["show", "t.json"]],
    "version": [[]],
}
FOLDERS = {"RUN": "outputs/a", "SWEEP": "swept"}


class Output(Case):
    def setUp(self):
        super().setUp()
        self.run_kiln(*TINY, "callbacks=[default,flight_recorder]", "callbacks.flight_recorder.keep=true",
                      "kiln.run.dir=outputs/a")
        self.run_kiln("-m", *SHORT_RUN, "lr=0.1,0.2", "kiln.sweep.dir=swept")
        self.write("a.txt", "to be\n")
        self.write("configs/optimizer/adam.yaml", "_target_: torch.optim.Adam\n")
        self.write("t.csv", "size,price\n" + "".join(f"{i * i % 17},{i * i % 23}\n" for i in range(60)))
        with open(self.path("x.png"), "wb") as image:
            image.write(png(28, 28))
        self.run_kiln("tokenizer", "train", "files=a.txt", "output=t.json", program="kiln")

    def lines(self):
        for command, lists in COMMANDS.items():
            for words in lists:
                yield [os.path.join(BUILD, "kiln"), command, *(FOLDERS.get(w, w) for w in words)]

    def test_every_command_is_here(self):
        out, _ = self.run_kiln("--help", program="kiln")
        self.assertEqual(sorted(re.findall(r"(?m)^  ([\w-]+) ", out)), sorted(COMMANDS))

    def test_full_device(self):
        for line in [[os.path.join(BUILD, "kiln"), "--help"], *self.lines()]:
            with self.subTest(line=line[1:]), open("/dev/full", "w") as full:
                done = subprocess.run(line, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=full,
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(done.stderr.count(FULL), 1, done.stderr)
        self.assertIn('"status": "finished"', read(self.path("run1/summary.json"), "r"))

    def test_closed_pipe_ends_quietly(self):
        for ignored in [False, True]:  # SIGPIPE, as what started the program left it
            for line in self.lines():
                if line[1] in ("tune", "verify-resume") and ignored:
                    continue
                with self.subTest(line=line[1:], ignored=ignored):
                    for folder in ["run1", "sweep1", "project"]:
                        shutil.rmtree(self.path(folder), ignore_errors=True)
                    ours, theirs = os.pipe()
                    os.close(ours)
                    process = subprocess.Popen(line, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=theirs,
                                               stderr=subprocess.PIPE, text=True, restore_signals=not ignored)
                    os.close(theirs)
                    _, err = process.communicate()
                    self.assertNotIn("standard output", err)
                    self.assertNotIn("roken pipe", err)
                    self.assertIn(process.returncode, (-13, 141), err)

    def test_missing_streams(self):
        """What is printed never lands in a file of the run."""
        kiln = os.path.join(BUILD, "kiln")
        done = subprocess.run(["sh", "-c", f"'{kiln}' list >&-"], cwd=self.dir, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write standard output: Bad file descriptor", done.stderr)
        words = " ".join(f"'{w}'" for w in SHORT_RUN)
        done = subprocess.run(["sh", "-c", f"'{kiln}' train {words} -q kiln.run.dir=closed <&- >&- 2>&-"], cwd=self.dir)
        self.assertEqual(done.returncode, 0)
        self.run_kiln("ckpt", "verify", "closed", program="kiln")


if __name__ == "__main__":
    main()
