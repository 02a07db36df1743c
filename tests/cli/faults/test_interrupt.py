"""Ctrl-C and other stop requests are answered at once, however long a batch takes."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "run"))

import os
import re
import select
import signal
import time

from kilntest import TINY, Braked, live, main, read
from test_screen import LONG, Terminal

ANSWER = "stopping after this batch, saving; press again to end at once"


class Interrupt(Braked):
    def held(self, *args, **options):
        """A run in the middle of its fourth batch, which does not end."""
        self.hold(3)
        process = self.start(*TINY, *self.braked, "kiln.run.dir=run", *args, **options)
        self.wait_for("run/train.log", process)
        self.wait_for(lambda: (at := live(self.path("run"))) is not None and at.batch >= 3, process)
        return process

    def test_answered_within_a_batch(self):
        for number, answer in [(signal.SIGINT, ANSWER),
                               (signal.SIGTERM, "SIGTERM: stopping after this batch, saving; a second one ends at once"),
                               (signal.SIGXCPU, "SIGXCPU: stopping after this batch, saving")]:
            process = self.held()
            process.send_signal(number)
            self.wait_for(lambda: answer in read(self.path("run/train.log"), "r"), process, seconds=20)
            self.assertIsNone(process.poll(), "its batch has not ended")
            self.let_go()
            out, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + number)
            self.assertEqual(len(re.findall(f"(?m)^{re.escape(answer)}$", out)), 1)
            self.assertLess(out.index(answer), out.index("interrupted by"))
            self.assertTrue(os.path.exists(self.path("run/checkpoints/last/model.safetensors")))
            os.rename(self.path("run"), self.path(f"run{number}"))

    def test_what_it_says_is_what_it_does(self):
        process = self.held("trainer.enable_checkpointing=false", "~callbacks.model_checkpoint")
        process.send_signal(signal.SIGINT)
        self.wait_for(lambda: "stopping after this batch; press" in read(self.path("run/train.log"), "r"), process, seconds=20)
        time.sleep(0.3)  # a second one at once is the same
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)

    def test_quiet(self):
        process = self.held("--quiet")
        process.send_signal(signal.SIGINT)
        self.wait_for(lambda: ANSWER in read(self.path("run/train.log"), "r"), process, seconds=20)
        self.let_go()
        self.assertEqual(process.communicate(timeout=60), ("", ""))

    def test_of_an_evaluation(self):
        self.run_kiln(*TINY, *self.braked, f"callbacks.brake.report={self.path('waits')}", "kiln.run.dir=run")
        self.hold(0)
        process = self.start("eval", "run", *self.braked[:2], program="kiln")
        self.wait_for("waits", process)
        process.send_signal(signal.SIGINT)
        found = b""
        while b"; press again to end at once\n" not in found:
            self.assertTrue(select.select([process.stderr], [], [], 20)[0], found)
            more = os.read(process.stderr.fileno(), 4096)
            self.assertNotEqual(more, b"", f"it ended: {found}")
            found += more
        self.assertIn(b"stopping after this batch; press", found)
        self.assertIsNone(process.poll())
        self.let_go()
        self.assertEqual(process.wait(60), 130)
        process.stdout.close()
        process.stderr.close()

    def held_under_a_bar(self, *args, **options):
        """A run on a terminal that shows its bar and stays in a batch of the second epoch."""
        self.brake(50, 64)  # slow enough to be drawn
        terminal = Terminal(self, *LONG, *self.braked, *args, **options)
        terminal.until(r"(?m)^epoch 1/2 [━─]")
        self.hold(0)
        terminal.read(0.3)
        return terminal

    def test_on_a_terminal(self):
        """The bar stays whole, and what the terminal echoes goes."""
        for width in [40, 80, 120]:
            terminal = self.held_under_a_bar(f"kiln.run.dir=run{width}", width=width)
            os.write(terminal.master, b"\x03")  # echoed: it is nobody's controlling terminal
            terminal.until(r"\^C")
            os.kill(terminal.process.pid, signal.SIGINT)
            frame = terminal.until(ANSWER.split(";")[0], seconds=20)
            self.assertNotIn("^C", frame)
            self.assertEqual(len(re.findall(r"(?m)^epoch 1/2 [━─]", frame)), 1, frame)
            self.let_go()
            text = terminal.close(130)
            self.assertNotIn("^C", text)
            self.assertNotIn("━", text)
            self.assertIn("interrupted by SIGINT", text)

    def test_the_second_ends_the_line(self):
        terminal = self.held_under_a_bar("kiln.run.dir=run")
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.until(ANSWER.split(";")[0], seconds=20)
        terminal.read(0.3)
        os.kill(terminal.process.pid, signal.SIGINT)
        text = terminal.close(130)
        self.assertTrue(text.endswith("\n"), text)


if __name__ == "__main__":
    main()
