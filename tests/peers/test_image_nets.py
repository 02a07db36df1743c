"""Networks for images at full size against torchvision: random weights of torchvision load as they are, and the networks
give the same logits for random images. make check-peers PEER=python-that-has-torchvision; for some networks alone:

    PEER tests/peers/test_image_nets.py build/release -k resnet18
"""
import json
import os
import sys
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from kilntest import Case, main  # noqa: E402

try:
    import torch
    import torchvision
    from safetensors.torch import load_file, save_file
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed") if __name__ != "__main__" else SystemExit(f"skip: {error.name} is not installed")

warnings.filterwarnings("ignore", module="torchvision")
CLASSES, IMAGES, SIZE = 10, 2, 224
# torchvision's name: arguments of kiln.
NETS = {
    **{f"resnet{depth}": f"model=resnet model.depth={depth}" for depth in (18, 34, 50, 101, 152)},
    "resnext50_32x4d": "model=resnet model.depth=50 model.groups=32 model.width_per_group=4",
    "resnext101_32x8d": "model=resnet model.depth=101 model.groups=32 model.width_per_group=8",
    "wide_resnet50_2": "model=resnet model.depth=50 model.width_per_group=128",
    "wide_resnet101_2": "model=resnet model.depth=101 model.width_per_group=128",
    **{f"convnext_{size}": f"model=convnext model.size={size}" for size in ("tiny", "small", "base", "large")},
    **{f"mobilenet_v3_{size}": f"model=mobilenet_v3 model.size={size}" for size in ("small", "large")},
    **{f"efficientnet_b{i}": f"model=efficientnet model.size=b{i}" for i in range(8)},
    "vit_b_16": "model=vit_b_16",
    "vit_b_32": "model=vit_b_16 model.embed.patch_size=32",
    "vit_l_16": "model=vit_b_16 model.width=1024 model.layers=24 model.heads=16 model.mlp_dim=4096",
}
MAPS = {f"deeplabv3_resnet{depth}": f"model=deeplab_v3 model.depth={depth}" for depth in (50, 101)}


def random_network(make, **options):
    """With running statistics that are not 0 and 1, and a head that is not 0."""
    torch.manual_seed(1)
    model = make(num_classes=CLASSES, **options).eval()
    for name, value in model.state_dict().items():
        if name.endswith("running_mean"):
            value.normal_(0, 0.1)
        elif name.endswith("running_var"):
            value.uniform_(0.7, 1.5)
        elif name.endswith("layer_scale"):
            value.normal_(0, 0.5)
        elif name.startswith("heads.head") or (name.startswith("classifier") and value.dim() == 2):
            value.normal_(0, 0.1)
        elif value.dim() == 1 and name.endswith("weight"):
            value.uniform_(0.8, 1.5)
        elif value.dim() == 1 and name.endswith("bias"):
            value.normal_(0, 0.1)
    for module in model.modules():  # branches of residual networks stay small, or their sums grow with each block
        last = getattr(module, "bn3", getattr(module, "bn2", None))
        if last is not None:
            torch.nn.init.uniform_(last.weight, 0.1, 0.4)
    return model


class Networks(Case):
    def run_net(self, arguments, *more):
        self.run_kiln(*arguments.split(), "weights=net.safetensors", "trainer.max_steps=0", "test=false", "kiln.run.dir=run",
                      "batch_size=2", *more)

    def write_images(self, folder, n):
        pixels = torch.randint(0, 256, (n, 3, SIZE, SIZE), dtype=torch.uint8)
        for i in range(n):
            path = self.path(folder.format(i), f"{i}.png")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            torchvision.io.write_png(pixels[i], path)
        return pixels[:IMAGES].float() / 255

    def classifies(self, name):
        model = random_network(getattr(torchvision.models, name))
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, self.path("net.safetensors"))
        x = self.write_images("data/train/{}", CLASSES)
        self.run_net(NETS[name], "datamodule=image_folder", "datamodule.root=data")
        for i in range(IMAGES):
            os.makedirs(self.path("input"), exist_ok=True)
            os.link(self.path(f"data/train/{i}/{i}.png"), self.path(f"input/{i}.png"))
        self.run_kiln("predict", "run", "input", "output=out.safetensors", program="kiln")
        got = load_file(self.path("out.safetensors"))["probabilities"].double().log()
        with torch.no_grad():
            logits = model(x).double()
        want = logits.log_softmax(1)
        difference = (got - want).abs().max().item()
        print(f"{name:20} largest difference {difference:.1e} of logits from {logits.min():.2f} to {logits.max():.2f}", flush=True)
        self.assertLess(difference, 1e-4 * max(1.0, logits.abs().max().item()))

    def segments(self, name):
        model = random_network(getattr(torchvision.models.segmentation, name), weights_backbone=None)
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, self.path("net.safetensors"))
        x = self.write_images("data/images/train", IMAGES)
        self.write_images("data/images/val", IMAGES)  # others than those of train
        x = torch.stack([torchvision.io.read_image(self.path(f"data/images/val/{i}.png")) for i in range(IMAGES)]).float() / 255
        masks = torch.randint(0, CLASSES, (IMAGES, 1, SIZE, SIZE), dtype=torch.uint8)
        for split in ("train", "val"):
            os.makedirs(self.path("data/masks", split))
            for i in range(IMAGES):
                torchvision.io.write_png(masks[i], self.path("data/masks", split, f"{i}.png"))
        self.run_net(MAPS[name], "task=segmentation", "datamodule=mask_folder", "datamodule.root=data",
                     f"datamodule.classes=[{','.join('abcdefghij')}]", "callbacks.model_checkpoint.monitor=null")
        out, _ = self.run_kiln("eval", "run", "split=val", program="kiln")
        self.run_kiln("predict", "run", "data/images/val", "output=out.safetensors", program="kiln")
        with torch.no_grad():
            want = model(x)["out"]
        best = want.topk(2, dim=1).values
        sure = (best[:, 0] - best[:, 1]) > 1e-4 * max(1.0, want.abs().max().item())
        wrong = ((load_file(self.path("out.safetensors"))["classes"] != want.argmax(1)) & sure).sum().item()
        self.assertEqual(wrong, 0)
        self.assertGreater(sure.float().mean().item(), 0.99)
        loss = torch.nn.functional.cross_entropy(want.double(), masks[:, 0].long()).item()
        got = json.loads(out)["metrics"]["val/loss"]
        print(f"{name:20} the same class at each of {sure.sum().item()} pixels; loss {got:.7f}, torchvision's {loss:.7f}", flush=True)
        self.assertAlmostEqual(got, loss, delta=1e-5 * loss)


for _name in NETS:
    setattr(Networks, f"test_{_name}", lambda self, name=_name: self.classifies(name))
for _name in MAPS:
    setattr(Networks, f"test_{_name}", lambda self, name=_name: self.segments(name))

if __name__ == "__main__":
    main()
