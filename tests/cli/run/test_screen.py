"""The console of a run: terminals of several widths, resized windows, pipes, --quiet, --verbose and NO_COLOR; the
summary and its tables; and `kiln top`."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from kilntest import BUILD, TINY, Braked, Case, main, read


class Screen:
    """What a terminal shows that wraps its lines anew when its window changes: lines without end,
    and the cursor in one of them."""

    def __init__(self, width):
        self.width, self.lines, self.line, self.column = width, [""], 0, 0
        self.colours = 0
        self.rest = ""

    def rows_of(self, line):
        return max(1, -(-len(line) // self.width))

    def up(self, n):
        for _ in range(n):
            if self.column >= self.width:
                self.column -= self.width
            elif self.line > 0:
                self.line -= 1
                last = (self.rows_of(self.lines[self.line]) - 1) * self.width
                self.column = last + self.column % self.width

    def put(self, char):
        line = self.lines[self.line].ljust(self.column)
        self.lines[self.line] = line[:self.column] + char + line[self.column + 1:]
        self.column += 1

    def feed(self, text):
        text = self.rest + text
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\033":
                found = re.match(r"\033\[(\??[0-9;]*)([A-Za-z])", text[at:])
                if found is None:
                    break
                self.escape(*found.groups())
                at += found.end()
                continue
            if char == "\r":
                # The start of the row; after a full one the cursor still stands in it.
                full = self.column > 0 and self.column % self.width == 0
                self.column -= self.width if full else self.column % self.width
            elif char == "\n":
                self.line += 1
                self.column = 0
                if self.line == len(self.lines):
                    self.lines.append("")
            else:
                assert ord(char) >= 32, repr(char)
                self.put(char)
            at += 1
        self.rest = text[at:]

    def escape(self, number, letter):
        if letter == "m":
            self.colours += 1
        elif letter == "A":
            self.up(int(number or 1))
        elif letter == "K":
            self.lines[self.line] = self.lines[self.line][:self.column]
        elif letter == "J":
            self.lines[self.line] = self.lines[self.line][:self.column]
            del self.lines[self.line + 1:]
        elif letter == "H":
            self.line = self.column = 0
        elif letter not in "hl":
            raise AssertionError(f"escape {number}{letter}")

    def text(self):
        return "\n".join(self.lines)


class Terminal:
    """The program in a pseudo terminal."""

    def __init__(self, case, *args, program="train", width=80, env=None):
        self.screen = Screen(width)
        self.master, slave = pty.openpty()
        self.resize(width, tell=False)
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
        environment.update({"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **(env or {})})
        self.process = subprocess.Popen([os.path.join(BUILD, program), *args], cwd=case.dir, stdin=slave,
                                        stdout=slave, stderr=slave, env=environment, start_new_session=True)
        os.close(slave)
        self.frames = []

    def resize(self, width, tell=True):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, width, 0, 0))
        self.screen.width = width
        if tell:
            os.kill(self.process.pid, signal.SIGWINCH)

    def read(self, seconds):
        """Everything that comes within the time; False at the end."""
        end = time.time() + seconds
        while time.time() < end:
            if select.select([self.master], [], [], 0.02)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    return False
                if not data:
                    return False
                # Every drawing begins with erasing the one before; several may come at once.
                for part in re.split("(?=\033\\[J)", data.decode("utf-8", "replace").replace("\r\n", "\n")):
                    self.screen.feed(part)
                    self.frames.append(self.screen.text())
        return True

    def until(self, pattern, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            alive = self.read(0.05)
            for frame in reversed(self.frames):
                if re.search(pattern, frame):
                    return frame
            if not alive:
                break
        raise AssertionError(f"no {pattern!r} on the screen:\n{self.screen.text()}")

    def close(self, status=0, seconds=120):
        end = time.time() + seconds
        while self.read(0.1):
            if time.time() > end:
                self.process.kill()
                raise AssertionError(f"still running:\n{self.screen.text()}")
        os.close(self.master)
        code = self.process.wait(seconds)
        assert code == status, f"exit status {code}:\n{self.screen.text()}"
        return self.screen.text()


RUN = TINY + ["callbacks.progress_bar.refresh_s=0.01"]
# 64 batches and 32 of validation: braked by 5 ms, a second and a half.
LONG = ["model=mlp", "model.hidden=[16]", "datamodule.train_count=1024", "datamodule.val_count=512",
        "datamodule.test_count=64", "datamodule.batch_size=16", "trainer.max_epochs=3", "trainer.threads=1",
        "callbacks.progress_bar.refresh_s=0.01", "trainer.num_sanity_val_steps=-1"]


class OnATerminal(Braked):
    def test_three_widths(self):
        self.brake(5)
        for width in [40, 80, 200]:
            terminal = Terminal(self, *LONG, *self.braked, f"kiln.run.dir=run{width}", width=width)
            text = terminal.close()
            for line in text.splitlines():
                # What is to be copied (paths, commands) and the model's table stand out on their own.
                if not re.match(r"(go on|evaluate|predict|run |the steps waited|run folder|layer|metric|\w+(/|\.)\w+ )", line):
                    self.assertLessEqual(len(line), width, line)
            for words in ["task vision", "model mlp", "trainer.max_epochs", "epoch 0/2", "epoch 2/2", "val/loss",
                          "metric", "best", "finished after", "resume", "evaluate", f"run{width}"]:
                self.assertIn(words, text)
            # The lines of the loops are gone at the end, and were there before.
            self.assertNotIn("━", text)
            self.assertNotRegex(text, "(?m)^validate ")
            training = [f for f in terminal.frames if re.search(r"(?m)^epoch 1/2 ━+─", f)]
            self.assertGreater(len(training), 3)
            row = re.search(r"(?m)^epoch 1/2 ━+─.*$", training[-1]).group()
            self.assertLess(len(row), width)
            self.assertRegex(row, r"\d+/64  " if width >= 60 else r"\d+%  ")
            self.assertRegex(row, r"loss \d")
            both = [f for f in terminal.frames if re.search(r"(?m)^epoch 1/2 ━+.*\nvalidate ━+", f)]
            self.assertGreater(len(both), 0, "validation below training")
            self.assertTrue(any(re.search(r"(?m)^check ━", f) for f in terminal.frames), "sanity check")
            # Nothing of a bar is left behind: never two lines of the same loop.
            for frame in terminal.frames:
                self.assertLessEqual(len(re.findall(r"(?m)^epoch \d/2 [━─]", frame)), 1, frame)
            if width >= 60:
                self.assertRegex(text, r"trainer\.max_epochs +3 +argument 7")

    def test_a_window_that_changes(self):
        self.brake(5)
        terminal = Terminal(self, *LONG, *self.braked, "trainer.max_epochs=4", width=100)
        for width, epoch in [(44, 0), (160, 1), (50, 1), (90, 2)]:
            terminal.until(rf"(?m)^epoch {epoch}/3 ━")
            terminal.resize(width)
            terminal.read(0.3)
        text = terminal.close()
        for epoch in range(4):
            self.assertEqual(len(re.findall(rf"(?m)^epoch {epoch}/3", text)), 1, text)
        self.assertNotIn("━", text)

    def test_a_signal_clears_the_bar(self):
        terminal = Terminal(self, *LONG, "trainer.max_epochs=1000", "kiln.run.dir=run")
        terminal.until(r"(?m)^epoch 1/999 ━")
        os.kill(terminal.process.pid, signal.SIGTERM)
        text = terminal.close(143)
        self.assertNotIn("━", text)
        self.assertIn("interrupted by SIGTERM", text)
        command = re.search(r"(?m)^resume +(train .*)$", text).group(1)
        os.rename(self.path("run"), self.path("moved"))
        os.rename(self.path("moved"), self.path("run"))
        out = subprocess.run(["sh", "-c", command + " trainer.max_epochs=2"], cwd=self.dir, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]})
        self.assertEqual(out.returncode, 0, out.stderr)
        evaluate = re.search(r"(?m)^evaluate +(kiln .*)$", out.stdout).group(1)
        out = subprocess.run(["sh", "-c", evaluate], cwd=self.dir, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env={**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]})
        self.assertIn("test/loss", json.loads(out.stdout)["metrics"])

    def test_colours(self):
        self.brake(20)
        run = RUN + self.braked
        terminal = Terminal(self, *run, "kiln.run.dir=a")
        terminal.close()
        self.assertGreater(terminal.screen.colours, 0)
        terminal = Terminal(self, *run, "kiln.run.dir=b", env={"NO_COLOR": "1"})
        terminal.close()
        self.assertEqual(terminal.screen.colours, 0)
        self.assertNotIn("\033", read(self.path("a/train.log"), "r"))
        terminal = Terminal(self, *run, "kiln.run.dir=c", env={"LC_ALL": "C", "LANG": "C"})
        terminal.close()
        self.assertTrue(any(re.search("(?m)^epoch 1/1 #", f) for f in terminal.frames))
        self.assertFalse(any("━" in f for f in terminal.frames))

    def test_epochs_that_do_not_stay(self):
        text = Terminal(self, *RUN, "callbacks.progress_bar.leave=false").close()
        self.assertNotIn("epoch 0/1", text)
        self.assertIn("finished", text)


class InAPipe(Braked):
    def test_plain_lines_within_an_epoch(self):
        self.brake(5)
        out, _ = self.run_kiln(*LONG, *self.braked, "callbacks.progress_bar.plain_s=0.05", "trainer.max_epochs=2",
                               env={**os.environ, "COLUMNS": "40"})
        self.assertNotIn("\033", out)
        self.assertNotIn("\r", out)
        self.assertRegex(out, r"(?m)^epoch 0/1  \d+/64  \d+:\d\d left  \d+ samples/s  train/loss_step ")
        lines = re.findall(r"(?m)^epoch 0/1  (\d+)/64", out)
        self.assertGreater(len(lines), 2)
        self.assertEqual(lines, sorted(lines, key=int))
        out, _ = self.run_kiln(*LONG, "trainer.max_epochs=2", "kiln.run.dir=b")
        self.assertEqual(len(re.findall("(?m)^epoch ", out)), 2)

    def test_quiet_and_verbose(self):
        out, err = self.run_kiln(*TINY, "--quiet", "kiln.run.dir=a")
        self.assertEqual(out + err, "")
        self.assertIn("epoch 1/1", read(self.path("a/train.log"), "r"))
        out, err = self.run_kiln(*TINY, "-q", "kiln.run.dir=a", status=1)
        self.assertEqual(out, "")
        self.assertIn("is there already", err)
        normal, _ = self.run_kiln(*TINY, "kiln.run.dir=b")
        verbose, _ = self.run_kiln(*TINY, "--verbose", "kiln.run.dir=c", "trainer.threads=0")
        self.assertNotIn("kiln:conf", normal)
        self.assertRegex(verbose, r"optimizer +optimizer/sgd +kiln:conf/optimizer/")
        self.assertRegex(verbose, r"saving checkpoints/epoch=000-step=8")
        self.assertRegex(verbose, r"(?m)^\d+ threads?")
        out, err = self.run_kiln("-q", "-v", status=2)
        self.assertIn("give one of them", err)
        out, err = self.run_kiln("eval", "ckpt_path=b", "--quiet", program="kiln")
        self.assertEqual(err, "")
        json.loads(out)


class Top(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("runtime"), 0o700)
        self.env = {**os.environ, "XDG_RUNTIME_DIR": self.path("runtime")}

    def top(self, *args):
        process = subprocess.run([os.path.join(BUILD, "kiln"), "top", *args], cwd=self.dir, env=self.env,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((process.returncode, process.stderr), (0, ""))
        return process.stdout

    def runs(self):
        mine = os.path.realpath(self.dir)
        return [r for r in json.loads(self.top("--json")) if r["run_dir"].startswith(mine)]

    def seen(self, ready, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            found = ready()
            if found:
                return found
            time.sleep(0.05)
        self.fail(f"not seen: {self.top()}")

    def begin(self, name, *more):
        return self.start(*LONG, "trainer.max_epochs=100000", f"kiln.run.dir={name}", *more, env=self.env)

    def test_runs_come_and_go(self):
        self.assertEqual(self.runs(), [])
        first, second = self.begin("a"), self.begin("b", "model.hidden=[32]")
        runs = self.seen(lambda: len(self.runs()) == 2 and all(r["step"] > 100 and r["loss"] is not None
                                                                  for r in self.runs()) and self.runs())
        self.assertEqual([os.path.basename(r["run_dir"]) for r in runs], ["a", "b"])
        self.assertEqual([r["pid"] for r in runs], [first.pid, second.pid])
        self.assertIn("model.hidden=[32]", runs[1]["overrides"])
        self.assertEqual(runs[0]["batches"], 64)
        self.assertGreater(runs[0]["samples_per_s"], 0)
        self.assertIn("train/loss_step", runs[0]["metrics"])
        text = self.top()
        self.assertRegex(text, r"(?m)^a  model=mlp ")
        self.assertRegex(text, r"(?m)^  (fit|validate \d+/32|saving)  epoch \d+/99999  [#-]{20}  0%")
        # One is killed: it is gone, and its link is tidied.
        second.kill()
        second.communicate()
        self.seen(lambda: len(self.runs()) == 1)
        self.assertEqual(len(os.listdir(self.path("runtime/kiln"))), 1)
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=60)
        self.assertEqual(self.runs(), [])
        self.assertEqual(os.listdir(self.path("runtime/kiln")), [])
        self.assertFalse(os.path.exists(self.path("a/.kiln/live")))

    def test_jobs_of_a_sweep(self):
        sweep = self.start("-m", *LONG, "trainer.max_epochs=100000", "optimizer.lr=0.1,0.01,0.001",
                           "kiln.sweep.dir=s", "kiln.launcher.n_jobs=2", env=self.env)
        runs = self.seen(lambda: len(self.runs()) == 2 and self.runs())
        self.assertEqual({r["sweep"] for r in runs}, {os.path.realpath(self.path("s"))})
        text = self.top()
        self.assertIn("sweep: 0 of 3 jobs done, 2 running", text)
        self.assertRegex(text, r"(?m)^  0  optimizer.lr=0.1$")
        sweep.send_signal(signal.SIGTERM)
        sweep.communicate(timeout=60)
        self.assertEqual(self.runs(), [])

    def test_what_is_no_run(self):
        """Torn pages, dead processes, other things in the folder, a folder of someone else."""
        folder = self.path("runtime/kiln")
        os.mkdir(folder, 0o700)
        os.makedirs(self.path("torn/.kiln"))
        self.write("torn/.kiln/live", b"kilnlive" + b"\xff" * 700)
        start = read("/proc/self/stat", "r").rsplit(")", 1)[1].split()[19]
        for name, target in [(f"{os.getpid()}-{start}", self.path("torn")), ("1-5", self.path("torn")),
                             ("999999999-1", "/nowhere"), ("x", "/"), ("-3", "/"), ("7", "/")]:
            os.symlink(target, os.path.join(folder, name))
        self.write("runtime/kiln/12-34", "text")
        self.assertEqual(self.runs(), [])
        self.assertNotIn("999999999-1", os.listdir(folder))
        self.assertIn(f"{os.getpid()}-{start}", os.listdir(folder))
        os.chmod(folder, 0o777)
        run = self.begin("a")
        self.seen(lambda: os.path.exists(self.path("a/.kiln/live")))
        self.assertFalse([n for n in os.listdir(folder) if n.startswith(str(run.pid))])
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)

    def test_on_a_terminal(self):
        run = self.begin("a")
        self.seen(self.runs)
        terminal = Terminal(self, "top", program="kiln", width=60, env={"XDG_RUNTIME_DIR": self.path("runtime")})
        terminal.until(r"(?m)^a  model=mlp")
        frame = terminal.until(r"(?sm)^  (fit|validate[^\n]*)  epoch \d+/99999  [━─].*^q: quit")
        for line in frame.splitlines():
            self.assertLess(len(line), 60)
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)
        terminal.frames.clear()
        # Runs of this user outside of the test may be left.
        terminal.until(r"(?sm)\A(?!.*^a  model=mlp).*(^q: quit|you have no live runs)")
        os.write(terminal.master, b"q")
        terminal.close()

    def test_words_are_refused(self):
        _, err = self.run_kiln("top", "lr=1", program="kiln", status=2)
        self.assertIn("top takes no words", err)


class Report(Case):
    def test_the_end_is_english(self):
        out, _ = self.run_kiln(*TINY, "trainer.max_epochs=1", "trainer.limit_train_batches=1", "kiln.run.dir=a")
        self.assertRegex(out, r"(?m)^run +finished after 1 epoch, 1 step, ")
        out, _ = self.run_kiln(*TINY, "kiln.run.dir=b")
        self.assertRegex(out, r"(?m)^run +finished after 2 epochs, 16 steps, ")
        out, _ = self.run_kiln(*TINY, "callbacks=early_stopping", "callbacks.early_stopping.stopping_threshold=0.01",
                               "kiln.run.dir=c")
        self.assertRegex(out, r"(?m)^run +stopped after 1 epoch, 8 steps, .*: early_stopping: ")

    def test_epoch_lines_are_columns(self):
        """Of what is logged with prog_bar; values by class are in the table."""
        out, _ = self.run_kiln(*TINY, "trainer.max_epochs=11", "+task.metrics.f1=f1", "task.metrics.f1.per_class=true",
                               "kiln.run.dir=run")
        lines = re.findall(r"(?m)^epoch .*$", out)
        self.assertEqual(len(lines), 11)
        for name in ["train/loss ", "val/loss ", "val/accuracy ", "val/f1 "]:
            self.assertEqual(len({line.index(name) for line in lines}), 1, name)
        self.assertLess(max(map(len, lines)), 130)
        self.assertNotIn("val/f1/3", "".join(lines))
        self.assertRegex(out, r"(?m)^val/f1/3 ")

    def test_a_resume_with_other_threads(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        out, _ = self.run_kiln("resume=run", "trainer.max_epochs=3", "trainer.threads=2")
        self.assertIn("made with 1 thread and this run has 2: convolutions round differently", out.split("epoch 2/2")[0])
        self.assertIn("set trainer.threads=1", out)
        for args in [["trainer.threads=2"], ["trainer.threads=0"]]:  # that of the checkpoint, then
            out, _ = self.run_kiln("resume=run", "trainer.max_epochs=4", *args)
            self.assertNotIn("convolutions round", out)

    def test_a_narrow_table_of_layers(self):
        """Whole words: columns go where there is no room for them."""
        for width in [40, 60]:
            terminal = Terminal(self, *TINY, "trainer.max_epochs=1", f"kiln.run.dir=run{width}", width=width)
            text = terminal.close()
            row = re.search(r"(?m)^layer .*$", text).group()
            self.assertTrue(row.endswith("parameters") or row.endswith("FLOPs a step"), row)
            self.assertLessEqual(len(row), width)
            self.assertRegex(text, r"(?m)^layers\.0 .* 12,560")


if __name__ == "__main__":
    main()
