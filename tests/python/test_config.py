"""Composing: values, origins, every error at once."""
import math
import unittest
import warnings
from typing import List, Optional

from pythontest import TINY, Case

import kiln
from kiln.config import literal


class Compose(Case):
    def test_values(self):
        config = kiln.compose("model=mlp", {"lr": 0.25, "trainer.max_epochs": 7, "model.hidden": [8, 4]}, "~ckpt_path")
        self.assertEqual(config["lr"], 0.25)
        self.assertEqual(config["optimizer.lr"], 0.25)
        self.assertEqual(config["model.hidden"], [8, 4])
        self.assertEqual(config["model.hidden.1"], 4)
        self.assertIs(config["test"], True)
        self.assertIs(type(config["optimizer.momentum"]), float)
        self.assertEqual(config["model"]["_target_"], "model/mlp")
        self.assertIn("trainer.max_epochs", config)
        self.assertNotIn("trainer.max_epoch", config)
        self.assertEqual(config.get("nothing", 3), 3)
        self.assertEqual(dict(config)["trainer.max_epochs"], 7)
        self.assertEqual(config.to_dict()["optimizer"]["lr"], 0.25)
        self.assertIn("lr: ${lr}", config.to_yaml("optimizer", resolve=False))
        self.assertIn("lr: 0.25", config.to_yaml("optimizer"))
        self.assertNotIn("kiln", config.to_dict())

    def test_origins(self):
        self.dir.joinpath("conf/optimizer").mkdir(parents=True)
        self.dir.joinpath("conf/optimizer/mine.yaml").write_text("_target_: adam\nlr: 0.5\n")
        config = kiln.compose("optimizer=mine", config_dirs=["conf"])
        self.assertEqual(config.origin("optimizer.lr"), "conf/optimizer/mine.yaml:2:5")
        self.assertEqual(config.origin("optimizer.eps"), "default of optimizer/adam")
        self.assertEqual(kiln.compose("lr=0.3").origin("lr"), "argument 1 `lr=0.3`")
        self.assertRegex(kiln.compose("lr=0.3").explain("lr"), r"set to +0.3 .*\n +over +0.05 +kiln:conf/config.yaml")
        with self.assertRaises(KeyError):
            config.origin("optimizer.no")
        with self.assertRaisesRegex(KeyError, "mapping"):
            config.origin("optimizer")

    def test_all_errors(self):
        with self.assertRaises(kiln.ConfigError) as caught:
            kiln.compose("lr=fast", "trainer.max_epoch=3", "model.hidden=[-1]")
        self.assertEqual(len(caught.exception.messages), 3)
        self.assertIn('optimizer.lr: expected a number, got "fast"', caught.exception.messages[0])
        self.assertIn("did you mean 'trainer.max_epochs'?", str(caught.exception))
        self.assertIn(caught.exception.status, ("wrong type", "unknown name", "out of range"))
        with self.assertRaisesRegex(TypeError, "override 3"):
            kiln.compose(3)
        with self.assertRaisesRegex(TypeError, r"as an argument of its own: \*\['lr=0.1', 'seed=2'\]"):
            kiln.compose(["lr=0.1", "seed=2"])

    def test_warning(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kiln.compose(*TINY)
        self.assertEqual([str(w.message) for w in caught], [])

    def test_literals(self):
        """Values of Python arrive as they are."""
        for text in ["it's", 'say "x"', "a,b", "", " ", "\\", "null", "3", "ä", "a=b: {c}", "[1]", "~/x", "- a"]:
            config = kiln.compose(f"+callbacks.note={literal({'_target_': 'note', 'text': text})}")
            self.assertEqual(config["callbacks.note.text"], text)
        for number in [0.1, -2.5e-8, 1e300, math.inf, 3, -7, None]:
            config = kiln.compose({"+callbacks.note": {"_target_": "note", "text": "", "number": number, "more": [number or 0]}})
            self.assertEqual(config["callbacks.note.number"], number)
        with self.assertRaises(TypeError):
            literal(object())


class Note(kiln.Callback):
    text: str
    number: Optional[float] = None
    more: List[float] = [1.5]


if __name__ == "__main__":
    unittest.main()
