"""Components of the tests, in a module: jobs of a sweep import them."""
from typing import ClassVar, List, Literal, Optional

import numpy as np

import kiln


class Patience(kiln.Callback):
    """Stop when a metric no longer falls."""

    monitor: str = "val/loss"  # the metric to watch
    epochs: int = 2
    factor: float = 1.0
    mode: Literal["min", "max"] = "min"
    note: Optional[str] = None
    steps: List[int] = []

    def __init__(self, **options):
        super().__init__(**options)
        self.seen = []

    def on_train_epoch_end(self, trainer):
        value = trainer.metric(self.monitor)
        self.seen.append(value)
        trainer.log("seen", len(self.seen), on_epoch=True)
        best = min(self.seen) if self.mode == "min" else max(self.seen)
        if len(self.seen) - 1 - self.seen.index(best) >= self.epochs:
            trainer.stop(f"{self.monitor} did not improve for {self.epochs} epochs")

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


class TopTwo(kiln.Metric):
    """How often the label is among the two highest scores."""

    mode = "max"
    weight: float = 1.0

    def compute(self, scores, truth):
        two = np.argsort(scores, 1)[:, -2:]
        return {"": self.weight * float((two == truth[:, None]).any(1).mean()), "rows": len(truth)}


class Rings(kiln.DataModule):
    """Points within a circle, or outside."""

    count: int = 600
    arrays: bool = True
    seed: ClassVar[int] = 0

    def setup(self, stage, seed):
        rng = np.random.default_rng(seed)
        self.points = rng.uniform(-1, 1, (2 * self.count, 2)).astype(np.float32)
        self.labels = (np.hypot(*self.points.T) < 0.8).astype(np.int32)

    def features(self):
        return {"point": kiln.vector(2), "label": kiln.label(["outside", "inside"])}

    def dataset(self, split):
        part = {"train": slice(0, self.count), "val": slice(self.count, None)}.get(split)
        if part is None:
            return None
        both = {"point": self.points[part], "label": self.labels[part]}
        return both if self.arrays else Rows(both)


class Rows:
    """Samples one by one."""

    def __init__(self, arrays):
        self.arrays = arrays

    def __len__(self):
        return len(self.arrays["label"])

    def __getitem__(self, i):
        return {name: values[i] for name, values in self.arrays.items()}


class Words(kiln.DataModule):
    """Sequences of their own length, with the class of their longest run."""

    broken: int = -1

    def features(self):
        return {"tokens": kiln.tokens(12, ids=5), "label": kiln.label(2)}

    def dataset(self, split):
        if split == "test":
            return None
        rng = np.random.default_rng(len(split))
        rows = [rng.integers(1, 5, rng.integers(3, 13)) for _ in range(200 if split == "train" else 50)]
        samples = [{"tokens": row, "label": int((row == 1).sum() > len(row) / 4)} for row in rows]
        if 0 <= self.broken < len(samples):
            samples[self.broken] = {"tokens": np.full(13, 1), "label": 0}
        return samples
