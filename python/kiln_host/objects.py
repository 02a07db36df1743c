"""Transforms, callbacks, metrics and loggers."""
import json
import math
import random
import typing

from kiln_host import describe, values


class Transform:
    def __init__(self, channel, cls, options):
        self.channel = channel
        self.object = cls(**options)
        call = cls.__call__
        self.takes = describe.parameters(call)
        self.python_rng = "rng" in self.takes and typing.get_type_hints(call).get("rng") is random.Random

    def apply(self, image, seed, training):
        array = values.get(self.channel, image, "a transform of Python")
        extra = {"training": training} if "training" in self.takes else {}
        if "rng" in self.takes:
            extra["rng"] = random.Random(seed) if self.python_rng else values.numpy("rng").random.default_rng(seed)
        return {"place": values.put(self.channel, self.object(array, **extra))}

    def size(self, size):
        return {"size": [int(x) for x in self.object.size(*size)]}


class Trainer:
    """The trainer as hooks see it."""

    def __init__(self, channel, facts):
        self._channel = channel
        self.__dict__.update(facts)
        self._done = []

    def _ask(self, **question):
        self._channel.write(question)
        return self._channel.read()

    @property
    def metrics(self):
        """The last value of each logged metric."""
        found = self._ask(ask="metrics")["metrics"]
        return {name: math.nan if value is None else value for name, value in found.items()}

    @property
    def outputs(self):
        """Outputs of the step that just ran, by name, as numpy arrays: in hooks that end a batch."""
        return {name: values.get(self._channel, place, "trainer.outputs")
                for name, place in self._ask(ask="outputs")["outputs"].items()}

    def feature(self, name):
        """A feature of the current batch, as a numpy array; None: it has no such feature."""
        place = self._ask(ask="feature", name=name)["place"]
        return values.get(self._channel, place, "trainer.feature") if place is not None else None

    def log(self, name, value, prog_bar=False):
        self._done.append({"log": str(name), "value": repr(float(value)), "prog_bar": bool(prog_bar)})

    def print(self, *words):
        self._done.append({"print": " ".join(map(str, words))})

    def stop(self, reason="stopped by a callback"):
        """End training after this batch."""
        self._done.append({"stop": str(reason)})

    def save(self, name):
        """Save a checkpoint, checkpoints/NAME, which stays."""
        self._done.append({"save": str(name)})


class Stateful:
    def __init__(self, channel, cls, options):
        self.channel = channel
        self.object = cls(**options)

    def state_dict(self):
        return {"state": values.save_state(self.object)}

    def load_state_dict(self, state):
        values.load_state(self.object, state)
        return {}


class Callback(Stateful):
    def hook(self, name, facts):
        trainer = Trainer(self.channel, facts)
        getattr(self.object, name)(trainer)
        return {"done": trainer._done}


class Metric:
    """Made again for each value: kiln keeps the rows of an epoch, so a checkpoint within it has them."""

    def __init__(self, channel, cls, options):
        self.channel, self.cls, self.options = channel, cls, options
        cls(**options)  # options that it refuses are refused before the run

    def compute(self, rows, truth, names):
        metric = self.cls(**self.options)
        if "class_names" in describe.parameters(metric.update):
            metric.update(values.get(self.channel, rows, "a metric of Python"), values.get(self.channel, truth, "a metric"),
                          class_names=names)
        else:
            metric.update(values.get(self.channel, rows, "a metric of Python"), values.get(self.channel, truth, "a metric"))
        value = metric.compute()
        results = value if isinstance(value, dict) else {"": value}
        return {"values": [[str(name), repr(float(x))] for name, x in results.items()]}


class Logger(Stateful):
    def __init__(self, channel, cls, options):
        super().__init__(channel, cls, options)
        self.takes = describe.parameters(cls.log)

    def open(self, run):
        run["state"] = values.state_in(json.loads(run["state"])) if run["state"] is not None else None
        self.object.open(run)
        return {}

    def log(self, metrics, step, row):
        self.object.log({name: float(x) for name, x in metrics}, step, **{k: v for k, v in row.items() if k in self.takes})
        return {}

    def flush(self):
        self.object.flush()
        return {}

    def close(self, status):
        self.object.close(status)
        return {}


KINDS = {"transform": Transform, "callback": Callback, "metric": Metric, "logger": Logger}
