"""How a run reads: its last lines, and its tables in narrow windows."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import re

from kilntest import TINY, Case, main
from test_screen import Terminal


class Looks(Case):
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
        self.assertIn("trainer.threads=1 would be", out)
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
