"""Record what Lightning's ModelCheckpoint, EarlyStopping and EMAWeightAveraging (PyTorch's AveragedModel) do, for
tests/unit/train/checkpoint/test_lightning_callbacks.c.
Needs lightning (2.6.6 when the data was made); run from the root:

    python tests/record/lightning_callbacks.py

Writes tests/data/train/lightning.json. A run has epochs of seven batches and scripted metrics:
"m" and "val/m" follow a list, one value a validation, and "a" is 5 * step % 7 at each step."""
import json
import logging
import math
import os
import shutil
import tempfile
import warnings

import torch
from torch.utils.data import DataLoader

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L  # noqa: E402
from lightning.pytorch.callbacks import Callback, EarlyStopping, EMAWeightAveraging, ModelCheckpoint  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BATCHES = 7
NAN = math.nan


class Net(L.LightningModule):
    def __init__(self, script):
        super().__init__()
        self.layer, self.script, self.validations = torch.nn.Linear(1, 1), script, 0

    def training_step(self, batch, i):
        return self.layer(batch).sum()

    def validation_step(self, batch, i):
        pass

    def on_validation_epoch_end(self):
        value = self.script[self.validations % len(self.script)]
        self.validations += 1
        self.log_dict({"m": value, "val/m": value})

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.0)

    def train_dataloader(self):
        return DataLoader(torch.ones(BATCHES, 1), batch_size=1)

    def val_dataloader(self):
        return DataLoader(torch.ones(2, 1), batch_size=1)


class Watch(Callback):
    """Logs "a", notes what is in the folder when an epoch begins and training ends, and may fail."""

    def __init__(self, folder, fail_at):
        self.folder, self.fail_at, self.files = folder, fail_at, []

    def listing(self):
        return sorted(os.path.relpath(os.path.join(at, name), self.folder)[:-len(".ckpt")]
                      for at, _, names in os.walk(self.folder) for name in names if not name.startswith("last"))

    def on_train_batch_end(self, trainer, module, outputs, batch, i):
        module.log("a", float(5 * trainer.global_step % 7))
        if self.fail_at and trainer.global_step == self.fail_at:
            raise RuntimeError("as asked")

    def on_train_epoch_start(self, trainer, module):
        if trainer.current_epoch > 0:
            self.files.append(self.listing())

    def on_train_end(self, trainer, module):
        self.files.append(self.listing())


def trainer_of(callbacks, options):
    return L.Trainer(**{"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False,
                        "num_sanity_val_steps": 0, "max_epochs": 4, "callbacks": callbacks, **options})


def text(value):
    return json.dumps(value) if not isinstance(value, bool) else str(value).lower()


def overrides(callback, options, trainer):
    return ([f"callbacks.{callback}.{key}={text(value)}" for key, value in options.items()] +
            [f"trainer.{key}={text(value)}" for key, value in trainer.items()])


FALLING = [0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002]
MIXED = [0.5, 0.3, 0.4, 0.2, 0.6, 0.1, 0.7, 0.8]
WITH_NAN = [0.5, NAN, 0.4, 0.3]

# name: (options of the callback, of the trainer, values of m, step at which a callback fails)
CHECKPOINTS = {
    "newest": ({}, {}, FALLING, 0),
    "best": ({"monitor": "m"}, {}, MIXED, 0),
    "best two": ({"monitor": "m", "save_top_k": 2}, {}, MIXED, 0),
    "largest two": ({"monitor": "m", "save_top_k": 2, "mode": "max"}, {}, MIXED, 0),
    "all": ({"monitor": "m", "save_top_k": -1}, {}, MIXED, 0),
    "none": ({"monitor": "m", "save_top_k": 0}, {}, MIXED, 0),
    "not a number fills a place": ({"monitor": "m", "save_top_k": 2}, {"max_epochs": 2}, WITH_NAN, 0),
    "not a number goes first": ({"monitor": "m", "save_top_k": 2}, {}, WITH_NAN, 0),
    "equals": ({"monitor": "m", "save_top_k": 2}, {}, [0.3, 0.3, 0.3, 0.3], 0),
    "every second epoch": ({"save_top_k": -1, "every_n_epochs": 2}, {}, MIXED, 0),
    "every third step": ({"save_top_k": -1, "every_n_train_steps": 3}, {}, MIXED, 0),
    "every third step, newest": ({"every_n_train_steps": 3}, {}, MIXED, 0),
    "steps by a metric of steps": ({"monitor": "a", "save_top_k": 2, "every_n_train_steps": 2}, {}, MIXED, 0),
    "steps by a metric of validation": ({"monitor": "m", "save_top_k": -1, "every_n_train_steps": 3}, {}, FALLING, 0),
    "steps that validation follows": ({"monitor": "m", "save_top_k": -1, "every_n_train_steps": 3},
                                      {"val_check_interval": 3}, FALLING, 0),
    "steps that are validated": ({"monitor": "m", "save_top_k": 2, "every_n_train_steps": 3},
                                 {"val_check_interval": 3, "check_val_every_n_epoch": None}, FALLING, 0),
    "accumulation": ({"save_top_k": -1, "every_n_train_steps": 2}, {"accumulate_grad_batches": 2}, MIXED, 0),
    "versions": ({"monitor": "m", "save_top_k": 2, "filename": "fixed"}, {}, FALLING, 0),
    "no versions": ({"monitor": "m", "save_top_k": 2, "filename": "fixed", "enable_version_counter": False}, {}, FALLING, 0),
    "one name, rewritten": ({"filename": "fixed"}, {}, MIXED, 0),
    "metric in the name": ({"monitor": "m", "save_top_k": 2, "filename": "{epoch}-{m:.2f}"}, {}, MIXED, 0),
    "name as written": ({"monitor": "val/m", "save_top_k": 2, "filename": "e{epoch:03d}_{val/m:.2f}",
                         "auto_insert_metric_name": False}, {}, MIXED, 0),
    "slash in a name": ({"monitor": "val/m", "save_top_k": -1, "filename": "{epoch}-{val/m:.2f}"}, {}, MIXED, 0),
    "validations within an epoch": ({"save_top_k": -1}, {"val_check_interval": 0.5}, MIXED, 0),
    "best of validations within an epoch": ({"monitor": "m", "save_top_k": 2}, {"val_check_interval": 0.5}, MIXED, 0),
    "end of epoch, though validated within": ({"save_top_k": -1, "save_on_train_epoch_end": True},
                                              {"val_check_interval": 0.5}, MIXED, 0),
    "behind validation": ({"save_top_k": -1, "save_on_train_epoch_end": False}, {}, MIXED, 0),
    "validation in every second epoch": ({"monitor": "m", "save_top_k": -1}, {"check_val_every_n_epoch": 2}, MIXED, 0),
    "end of each epoch, every second validated": ({"save_top_k": -1, "save_on_train_epoch_end": True},
                                                  {"check_val_every_n_epoch": 2}, MIXED, 0),
    "no validation": ({"save_top_k": -1}, {"limit_val_batches": 0}, MIXED, 0),
    "exception": ({"save_top_k": -1, "save_on_exception": True}, {}, MIXED, 10),
    "exception, nothing asked": ({"save_top_k": -1}, {}, MIXED, 10),
}


def keep(name):
    options, trainer, script, fail_at = CHECKPOINTS[name]
    folder = tempfile.mkdtemp()
    saver = ModelCheckpoint(dirpath=folder, **{"filename": "{epoch}-{step}", **options})
    watch = Watch(folder, fail_at)
    run = trainer_of([watch, saver], trainer)
    try:
        run.fit(Net(script))
    except RuntimeError:
        watch.files.append(watch.listing())
    best = os.path.relpath(saver.best_model_path, folder)[:-len(".ckpt")] if saver.best_model_path else None
    shutil.rmtree(folder)
    return {"name": name, "overrides": overrides("model_checkpoint", {"filename": "{epoch}-{step}", **options}, trainer),
            "script": [None if math.isnan(v) else v for v in script], "fail_at": fail_at, "files": watch.files, "best": best}


# name: (options, trainer's options, values of m)
STOPPING = {
    "patience": ({"patience": 2}, {}, [0.5, 0.4, 0.45, 0.41, 0.3]),
    "patience of one": ({"patience": 1}, {}, [0.5, 0.4, 0.4, 0.3]),
    "no patience": ({"patience": 0}, {}, [0.5, 0.4, 0.4, 0.3]),
    "progress starts the count anew": ({"patience": 2}, {}, [0.5, 0.6, 0.4, 0.6, 0.6, 0.1]),
    "too small a change": ({"patience": 2, "min_delta": 0.1}, {}, [0.5, 0.45, 0.42, 0.1]),
    "small changes add up": ({"patience": 2, "min_delta": 0.1}, {}, [0.5, 0.45, 0.38, 0.35, 0.3, 0.29]),
    "largest": ({"patience": 2, "mode": "max", "min_delta": 0.05}, {}, [0.1, 0.3, 0.32, 0.34, 0.9]),
    "not finite": ({"patience": 5}, {}, [0.5, NAN, 0.3]),
    "not finite, not checked": ({"patience": 3, "check_finite": False}, {}, [0.5, NAN, NAN, 0.3, NAN, NAN, NAN]),
    "not a number first": ({"patience": 2, "check_finite": False}, {}, [NAN, 0.5, 0.6, 0.7]),
    "good enough": ({"patience": 9, "stopping_threshold": 0.3}, {}, [0.5, 0.3, 0.29, 0.2]),
    "good enough, largest": ({"patience": 9, "stopping_threshold": 0.3, "mode": "max"}, {}, [0.1, 0.3, 0.31, 0.4]),
    "hopeless": ({"patience": 9, "divergence_threshold": 1.0}, {}, [0.5, 1.0, 1.5, 0.1]),
    "hopeless, largest": ({"patience": 9, "divergence_threshold": 0.2, "mode": "max"}, {}, [0.5, 0.2, 0.1, 0.9]),
    "checks within an epoch": ({"patience": 2}, {"val_check_interval": 0.5}, [0.5, 0.4, 0.41, 0.42, 0.1]),
    "each check is one of validation": ({"patience": 1}, {"check_val_every_n_epoch": 2}, [0.5, 0.6, 0.1]),
}


def stop(name):
    options, trainer, script = STOPPING[name]
    options = {"monitor": "m", **options}
    module, callback = Net(script), EarlyStopping(**options)
    run = trainer_of([callback], {"max_epochs": 8, "enable_checkpointing": False, **trainer})
    run.fit(module)
    return {"name": name, "overrides": overrides("early_stopping", options, {"max_epochs": 8, **trainer}),
            "script": [None if math.isnan(v) else v for v in script], "stopped": callback.stopping_reason.name != "NOT_STOPPED",
            "steps": run.global_step, "validations": module.validations, "waited": callback.wait_count,
            "best": callback.best_score.item()}


# name: (options, trainer's options)
AVERAGES = {
    "each step": ({"decay": 0.9}, {}),
    "every third step": ({"decay": 0.9, "update_every_n_steps": 3}, {}),
    "from a step": ({"decay": 0.9, "update_starting_at_step": 5}, {}),
    "every second step from a step": ({"decay": 0.8, "update_every_n_steps": 2, "update_starting_at_step": 3}, {}),
    "accumulation": ({"decay": 0.9}, {"accumulate_grad_batches": 3}),
}


class Unit(Net):
    """Its weights are a unit vector, another one behind each optimizer step, so that an average of
    them is the list of their shares."""

    def __init__(self, steps):
        super().__init__([0.0])
        self.layer = torch.nn.Linear(steps, 1, bias=False)

    def training_step(self, batch, i):
        return self.layer.weight.sum() * 0.0


class Place(Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, i):
        with torch.no_grad():
            module.layer.weight.zero_()
            module.layer.weight[0, trainer.global_step - 1] = 1.0


def average(name):
    options, trainer = AVERAGES[name]
    steps = 2 * -(-BATCHES // trainer.get("accumulate_grad_batches", 1))
    callback = EMAWeightAveraging(**options)
    module = Unit(steps)
    run = trainer_of([Place(), callback], {"max_epochs": 2, "enable_checkpointing": False, "limit_val_batches": 0, **trainer})
    run.fit(module)
    assert run.global_step == steps
    return {"name": name, "overrides": overrides("ema", options, {"max_epochs": 2, **trainer}),
            "shares": module.layer.weight[0].tolist()}


data = {"lightning": L.__version__, "checkpoints": [keep(name) for name in CHECKPOINTS],
        "stopping": [stop(name) for name in STOPPING], "averages": [average(name) for name in AVERAGES]}
with open(os.path.join(HERE, "..", "data", "train", "lightning.json"), "w") as file:
    json.dump(data, file, indent=1)
    file.write("\n")
