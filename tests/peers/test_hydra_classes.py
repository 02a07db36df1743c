"""The classes and options that kiln import-hydra knows are those of PyTorch, Lightning, torchvision and
torchmetrics: each exists there, and each of their options is known. Hydra composes the tree of the tests, too.
make check-peers PEER=python-that-has-them"""
import importlib
import inspect
import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
KILN = os.path.join(ROOT, sys.argv.pop(1) if len(sys.argv) > 1 else "build/release", "kiln")
MODULES = {
    "torch": ["torch.optim", "torch.optim.lr_scheduler", "torch.nn", "torch.utils.data"],
    "lightning": ["lightning.pytorch", "lightning.pytorch.callbacks", "lightning.pytorch.loggers"],
    "torchvision": ["torchvision.transforms.v2", "torchvision.transforms", "torchvision.datasets", "torchvision.models",
                    "torchvision.models.segmentation", "torchvision.models.detection"],
    "torchmetrics": ["torchmetrics", "torchmetrics.classification", "torchmetrics.text", "torchmetrics.retrieval",
                     "torchmetrics.detection"],
}
NOT_INSTALLED = {"NeptuneLogger"}  # moved to a package of its own
# Options of the base classes, which pass them on.
PASSED_ON = {
    "resnet.ResNet": "zero_init_residual groups width_per_group replace_stride_with_dilation norm_layer num_classes",
    "convnext.ConvNeXt": "stochastic_depth_prob layer_scale num_classes norm_layer",
    "mobilenetv3.MobileNetV3": "dropout num_classes norm_layer",
    "efficientnet.EfficientNet": "dropout stochastic_depth_prob num_classes norm_layer",
    "vision_transformer.VisionTransformer": "image_size dropout attention_dropout num_classes representation_size norm_layer",
}


def classes():
    """{"torch.Adam": {option: text}}"""
    out = subprocess.run([KILN, "import-hydra", "--classes"], stdout=subprocess.PIPE, text=True, check=True).stdout
    found, options = {}, {}
    for line in out.splitlines():
        heading = re.match(r"(\w+\.\w+): ", line)
        option = re.match(r"  (\w+) {2,}(\S.*)$", line)
        if heading:
            options = found.setdefault(heading[1], {})
        elif option:
            options[option[1]] = option[2]
    return found


def find(library, name):
    for module in MODULES[library]:
        thing = getattr(importlib.import_module(module), name, None)
        if thing is not None:
            return thing
    return None


def parameters(thing):
    """*ret_open: it also takes others, by **kwargs."""
    function = thing
    if inspect.isclass(thing):
        own_new = thing.__new__ is not object.__new__ and "task" in inspect.signature(thing.__new__).parameters
        function = thing.__new__ if own_new else thing.__init__
    listed = inspect.signature(function).parameters.values()
    names = [p.name for p in listed if p.name not in ("self", "cls", "args", "kwargs")]
    return names, any(p.kind == p.VAR_KEYWORD for p in listed)


class Classes(unittest.TestCase):
    maxDiff = None

    def test_they_are_there_with_all_their_options(self):
        known = classes()
        self.assertGreater(len(known), 150)
        missing, wrong = [], []
        for name, options in known.items():
            library, short = name.split(".")
            if library not in MODULES or short in NOT_INSTALLED:
                continue
            thing = find(library, short)
            if thing is None:
                missing.append(name)
                continue
            if not options:
                continue  # has no counterpart
            names, is_open = parameters(thing)
            wrong += [f"{name}: {option} is not known" for option in names if option not in options]
            if not is_open:  # rows that leave something out are shared by classes
                wrong += [f"{name}: has no {option}" for option, text in options.items()
                          if option not in names and not text.startswith("(")]
        self.assertEqual(missing, [])
        self.assertEqual(wrong, [])

    def test_what_networks_pass_on(self):
        known = classes()
        for base, options in PASSED_ON.items():
            module, name = base.split(".")
            names, _ = parameters(getattr(importlib.import_module("torchvision.models." + module), name))
            for option in options.split():
                self.assertIn(option, names, base)

    def test_hydra_composes_the_tree_of_the_tests(self):
        from hydra import compose, initialize_config_dir
        with initialize_config_dir(version_base="1.3", config_dir=os.path.abspath(os.path.join(ROOT, "tests/data/hydra"))):
            config = compose("train", overrides=["experiment=long"])
        self.assertEqual(config.model.optimizer.lr, 1e-3)
        self.assertEqual(config.model.net._target_, "torchvision.models.mobilenet_v3_small")
        self.assertEqual(config.data.dataset._target_, "torchvision.datasets.ImageFolder")
        self.assertEqual(config.callbacks.early_stopping.mode, "max")


if __name__ == "__main__":
    unittest.main()
