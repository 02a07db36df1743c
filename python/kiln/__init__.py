"""kiln: configs in, trained models out, from Python.

>>> import kiln
>>> run = kiln.fit("model=mlp", "lr=0.1", "trainer.max_epochs=3")
>>> run.metrics["val/accuracy"], run.checkpoint("best").path
>>> run.model("best").predict(images)["probabilities"]

The package calls libkiln through ctypes; numpy is its only dependency. Configs, overrides, run folders and bytes are those
of the command `train`.
"""
from ._library import ConfigError, KilnError, __version__
from .components import (Callback, DataModule, Feature, Metric, image, label, row, sequence, target, tokens, vector)
from .config import Config, compose
from .fit import Fit, evaluate, fit
from .model import Model, Predictions, load
from .run import Checkpoint, Run
from .sweeps import Sweep, sweep
from .trainer import Trainer

__all__ = ["Callback", "Checkpoint", "Config", "ConfigError", "DataModule", "Feature", "Fit", "KilnError", "Metric", "Model",
           "Predictions", "Run", "Sweep", "Trainer", "__version__", "compose", "evaluate", "fit", "image", "label", "load", "row",
           "sequence", "sweep", "target", "tokens", "vector"]
