"""A datamodule: an object of a class with __len__ and __getitem__ for each split."""
import random
import typing

from kiln_host import describe, raw, values

NAMES_OF_PAIR = ("", "label")  # of samples that are tuples: the first is named by its shape
CONTENTS = ("image", "tokens", "row", "vector", "sequence", "map", "label", "text")


class Wrong(Exception):
    """The samples are not what kiln can use; the message says what to do."""


def _names_of(classes):
    """Class names from `classes`: a list of names, their number, or an object with `names`."""
    names = getattr(classes, "names", classes)
    if isinstance(names, int):
        return [str(i) for i in range(names)]
    return [str(name) for name in names] if names is not None else None


def _declared(obj):
    """What the class declares of its features: {"tokens": {"length": 128, "ids": 30522}}; and a Hugging Face
    dataset's `features`, of which only the classes of the label count."""
    features = getattr(obj, "features", None)
    if not hasattr(features, "items"):
        return {}
    found = {}
    for name, says in features.items():
        if isinstance(says, str):
            found[name] = {"content": says}
        elif isinstance(says, dict):
            found[name] = dict(says)
        elif name == "label" and getattr(says, "names", None) is not None:
            found[name] = {"classes": list(says.names)}
        content = found.get(name, {}).get("content")
        if content is not None and content not in CONTENTS:
            raise Wrong(f"features: \"{name}\" has the content \"{content}\"; expected one of {', '.join(CONTENTS)}")
    return found


def _guess(name, dtype, shape):
    """The content of a feature that nothing declares, from its name, type and axes; None: there is none."""
    whole = dtype in ("i64", "i32")
    if dtype == "text":
        return "text"
    if name in ("image", "img") or (name == "" and len(shape) == 3):
        return "image" if len(shape) in (2, 3) else None
    if name in ("label", "labels", "target", "y"):
        return "label" if len(shape) <= 2 else None
    if name in ("tokens", "input_ids", "row", "vector", "sequence", "map"):
        return "tokens" if name == "input_ids" else name
    if len(shape) == 0:
        return "label" if name == "label" else None
    return {1: "row" if whole else "vector", 2: "sequence", 3: "map"}.get(len(shape))


USUAL_NAMES = {"img": "image", "input_ids": "tokens", "pixel_values": "image"}


def _name(key, content, dtype, shape):
    """kiln's name of a feature: tasks look for "label", a class, and "target", a number."""
    if content == "label" and key in ("label", "target", "y") and not shape:
        return "target" if dtype == "f32" else "label"
    return USUAL_NAMES.get(key, key) or content


def _encode(key, value):
    try:
        return values.encode(value)
    except TypeError as error:
        raise Wrong(f"\"{key}\" is {error}") from None


def _channels_first(content, shape):
    """As torch has images."""
    return content in ("image", "map") and len(shape) == 3 and shape[0] in (1, 3) and shape[2] not in (1, 3)


class Split:
    def __init__(self, obj):
        self.obj = obj
        self.rng = None
        hint = None
        getitem = type(obj).__getitem__
        if "rng" in describe.parameters(getitem):
            hint = typing.get_type_hints(getitem).get("rng")
            self.rng = random.Random if hint is random.Random else self._numpy_rng

    @staticmethod
    def _numpy_rng(seed):
        return values.numpy("the parameter rng of __getitem__ (without the annotation random.Random)").random.default_rng(seed)

    def read(self, index, seed):
        sample = self.obj.__getitem__(index, rng=self.rng(seed)) if self.rng else self.obj[index]
        if sample is None or isinstance(sample, dict):
            return sample
        if isinstance(sample, (tuple, list)) and len(sample) == 2:
            return dict(zip(NAMES_OF_PAIR, sample))
        if isinstance(sample, (tuple, list)):
            raise Wrong(f"a sample is a {type(sample).__name__} of {len(sample)}: expected a dict of names and values, or a "
                        "pair of input and label")
        return {"": sample}


class Data:
    def __init__(self, channel, cls, options):
        self.channel = channel
        self.cls = cls
        self.options = options
        self.splits = {}
        self.state = None  # as save_state has it
        self.features = []  # name in samples, kiln's name, whether channels come first

    def open(self, splits, state):
        """Make the objects of these splits; describe their samples by the first one. `state`: of a checkpoint, or None."""
        given = describe.splits_of(self.cls)
        if given is None:
            self.splits["train"] = Split(self.cls(**self.options))
        for split in splits if given is not None else []:
            if split in given:
                self.splits[split] = Split(self.cls(**self.options, split=given[split]))
        self._share_state(state)
        counts = {split: len(made.obj) for split, made in self.splits.items()}
        first = next((split for split in splits if counts.get(split)), None) or next((s for s in counts if counts[s]), None)
        reply = {"counts": counts, "has_splits": given is not None, "features": [], "classes": None, "present": {}}
        if first is None:
            return reply
        obj = self.splits[first].obj
        reply["features"] = self._describe(self._first(first), _declared(obj))
        reply["classes"] = self._classes(obj, reply["features"])
        for split, made in self.splits.items():
            if counts[split]:
                reply["present"][split] = [f["name"] for f, (key, _, _) in zip(reply["features"], self.features)
                                           if key in self._first(split)]
        return reply

    def _share_state(self, state):
        """Give all objects what the training object fitted: now, or when the checkpoint was trained."""
        if not all(describe.has(self.cls, method) for method in ("state_dict", "load_state_dict")):
            return
        fitted = None
        if state is None and "train" in self.splits:
            fitted = self.splits["train"]
            state = values.save_state(fitted.obj)
        for made in self.splits.values():
            if made is not fitted and state is not None:
                values.load_state(made.obj, state)
        self.state = state

    def state_dict(self):
        return {"state": self.state}

    def _first(self, split):
        for index in range(min(len(self.splits[split].obj), 100)):
            sample = self.splits[split].read(index, 0)
            if sample is not None:
                return sample
        raise Wrong(f"{split}: __getitem__ returned None for each of the first 100 samples")

    def _describe(self, sample, declared):
        unknown = next((name for name in declared if name not in sample and set(declared[name]) - {"classes"}), None)
        if unknown is not None:
            raise Wrong(f"features declares \"{unknown}\", which samples lack: they have {', '.join(sample) or 'nothing'}")
        return [self._feature(key, value, declared.get(key, {})) for key, value in sample.items()]

    def _feature(self, key, value, says):
        try:
            dtype, shape, _ = values.encode(value)
        except TypeError as error:
            raise Wrong(f"\"{key}\" of a sample is {error}") from None
        content = says.get("content") or _guess(key, dtype, shape)
        if content is None:
            raise Wrong(f"\"{key}\" of a sample is {dtype} {shape}, and its name does not say what it is: declare it in the "
                        f"class, features = {{\"{key}\": \"...\"}}, with one of {', '.join(CONTENTS)}; or leave it out of "
                        "samples")
        first = _channels_first(content, shape)
        shape = shape[1:] + shape[:1] if first else shape + [1] if content in ("image", "map") and len(shape) == 2 else shape
        whole = dtype in ("i64", "i32", "u8")
        kept = {"image": "f32", "vector": "f32", "tokens": "i32"}.get(content, "i32" if whole else "f32")
        name = says.get("name") or _name(key, content, kept, shape)
        self.features.append((key, name, first))
        if name == "labels" and content == "label":
            kept = "f32"
        longest = says.get("length")
        if longest is not None and shape:
            shape = [int(longest)] + shape[1:]
        return {"name": name, "content": content, "dtype": kept, "shape": [] if content == "text" else shape,
                "varies": longest is not None, "ids": int(says.get("ids", 0)), "pad": float(says.get("pad", 0))}

    def _classes(self, obj, features):
        label = next((f for f in features if f["name"] in ("label", "labels") and f["content"] == "label"), None)
        if label is None:
            return None
        key = next(k for k, name, _ in self.features if name == label["name"])
        names = _names_of(getattr(obj, "classes", None)) or _declared(obj).get(key, {}).get("classes")
        if names is None and getattr(obj, "targets", None) is not None and label["name"] == "label":
            names = [str(i) for i in range(int(max(obj.targets)) + 1)]
        if names is None and label["name"] == "labels":
            names = [str(i) for i in range(label["shape"][0])]
        if names is None:
            raise Wrong(f"\"{key}\" is a class, but nothing says how many there are: give the class an attribute `classes`, a "
                        "list of names or their number; of numbers to predict, return float(...)")
        return names

    def known(self, split):
        """What the object says of all its samples without reading them: their classes in `targets`, and in `lengths` those
        of features of varying length."""
        obj = self.splits[split].obj
        targets, lengths = getattr(obj, "targets", None), getattr(obj, "lengths", None)
        if lengths is not None and not hasattr(lengths, "items"):
            varying = [key for key, _, _ in self.features if "length" in _declared(obj).get(key, {})]
            lengths = {key: lengths for key in varying[:1]}
        names = {key: name for key, name, _ in self.features}
        return {
            "labels": None if targets is None else values.put(self.channel, [int(x) for x in targets]),
            "lengths": {names[key]: values.put(self.channel, [int(x) for x in of_key]) for key, of_key in (lengths or {}).items()
                        if key in names},
        }

    def get(self, split, index, seed):
        """A sample in the shared memory: the places of its features, null where it lacks one."""
        sample = self.splits[split].read(index, seed)
        if sample is None:
            return {"skipped": True}
        return {"places": [None if sample.get(key) is None else self._place(_encode(key, sample[key]), first)
                           for key, _, first in self.features]}

    def _place(self, encoded, first):
        dtype, shape, data = encoded
        if first:
            data = values.numpy("an image with its channels first").frombuffer(
                data, dtype=values.FORMATS[dtype]).reshape(shape).transpose(1, 2, 0).tobytes()
            shape = shape[1:] + shape[:1]
        return [dtype, shape, self.channel.put(data), len(data)]

    # ---- A user's samples ----

    def prepare(self, features, state):
        """Make the object that preprocesses them; `features` are [name, content] as training had them, `state` is what the
        training object fitted, or None."""
        split = {} if describe.splits_of(self.cls) is None else {"split": describe.split_of_a_user(self.cls)}
        self.user = self.cls(**self.options, **split)
        if state is not None:
            values.load_state(self.user, state)
        self.forms = raw.forms(self.cls)
        self.wanted = [(name, content) for name, content in features if content != "label"]
        self.names = [name for name, _ in features]
        return {}

    def preprocess(self, given):
        """The places of the features that preprocess makes of these values, null where it makes none."""
        sample = self.user.preprocess(**{name: raw.argument(self.channel, self.forms[name], *value)
                                         for name, value in given.items()})
        if sample is None:
            raise Wrong("preprocess returned None")
        if isinstance(sample, tuple) and len(sample) == 2:
            sample = {"": sample[0]}  # with a label, as in training
        if not isinstance(sample, dict):
            sample = {"": sample}
        found = self._by_feature(sample)
        missing = next((name for name, content in self.wanted if content != "text" and found.get(name) is None), None)
        if missing is not None:
            raise Wrong(f"preprocess returned no \"{missing}\": it returned {', '.join(found) or 'nothing'}; expected what "
                        "__getitem__ returns, without a label")
        places = {}
        for name, content in self.wanted:
            if found.get(name) is not None:
                encoded = _encode(name, found[name])
                places[name] = self._place(encoded, _channels_first(content, encoded[1]))
        return {"places": [places.get(name) for name in self.names]}

    def _by_feature(self, sample):
        """The values of a sample by kiln's names; one without a name is the first input."""
        declared, first = _declared(self.user), self.wanted[0][0] if self.wanted else ""
        return {declared.get(key, {}).get("name") or USUAL_NAMES.get(key, key) or first: value for key, value in sample.items()}
