"""Weights move between kiln and torchvision as they are, and mean the same.

    python tests/peers/resnet_torch.py CHECKPOINT IMAGES [--kiln build/release/kiln]

CHECKPOINT is a checkpoint folder of a run with model=resnet on an image_folder,
IMAGES a folder of PNG files of the size that it was trained on. Both ways:
kiln's model.safetensors loads into torchvision's network (strict), and a state
dict of torchvision put in its place predicts the same in kiln. Needs torch,
torchvision, safetensors and PyYAML; without them it says so and does nothing."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import torch
    import torchvision
    import yaml
    from safetensors.torch import load_file, save_file
    from torchvision.io import ImageReadMode, read_image
except ImportError as error:
    print(f"skip: {error.name} is not installed")
    sys.exit(0)


def network(state):
    """torchvision's network that such a state dict belongs to."""
    depth = 50 if "layer1.0.conv3.weight" in state else 34 if "layer3.5.conv1.weight" in state else 18
    classes, (width, channels, kernel, _) = state["fc.weight"].shape[0], state["conv1.weight"].shape
    model = getattr(torchvision.models, f"resnet{depth}")(num_classes=classes)
    if kernel == 3:  # the stem for small images
        model.conv1 = torch.nn.Conv2d(channels, width, 3, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    elif channels != 3:
        model.conv1 = torch.nn.Conv2d(channels, width, 7, stride=2, padding=3, bias=False)
    return model


def normalization(config):
    """Mean and standard deviation of the run's normalize transform."""
    for transform in config["datamodule"].get("transforms") or []:
        if str(transform.get("_target_", "")).split("/")[-1] == "normalize":
            return [torch.tensor(transform[k], dtype=torch.float32).reshape(-1, 1, 1) for k in ("mean", "std")]
    return torch.zeros(1, 1, 1), torch.ones(1, 1, 1)


def load_image(path, channels, mean, std):
    mode = ImageReadMode.RGB if channels == 3 else ImageReadMode.GRAY
    return (read_image(path, mode).float() / 255 - mean) / std


def kiln_predict(kiln, checkpoint, images):
    done = subprocess.run([kiln, "predict", f"ckpt_path={checkpoint}", f"input={images}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"kiln predict ends with status {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(what, model, rows, read, tolerance):
    """The largest difference of logits: of log probabilities, which differ from
    logits by a constant in each row."""
    model.eval()
    worst = 0.0
    with torch.no_grad():
        for row in rows:
            theirs = torch.log_softmax(model.double()(read(row["file"]).double()[None])[0], 0)
            ours = torch.tensor(row["probabilities"], dtype=torch.float64)
            seen = ours > 1e-6  # below, a probability in f32 has few digits left
            worst = max(worst, (ours.clamp_min(1e-30).log() - theirs)[seen].abs().max().item())
    print(f"{what}: {len(rows)} images, largest difference of log probabilities {worst:.2e}")
    if not rows or worst > tolerance:
        sys.exit(f"{what}: more than {tolerance} apart" if rows else f"{what}: no predictions")


def randomized(model, channels, size):
    """Weights of torchvision's own, with running statistics from a few batches."""
    torch.manual_seed(7)
    model.train()
    with torch.no_grad():
        for parameter in model.fc.parameters():
            parameter.normal_(0, 0.05)
        for _ in range(3):
            model(torch.randn(8, channels, *size) * 0.8 + 0.3)
    return {k: v.contiguous() for k, v in model.state_dict().items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("images")
    parser.add_argument("--kiln", default="build/release/kiln")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    args = parser.parse_args()
    with open(os.path.join(args.checkpoint, "config.yaml")) as f:
        config = yaml.safe_load(f)
    state = load_file(os.path.join(args.checkpoint, "model.safetensors"))
    channels = state["conv1.weight"].shape[1]
    mean, std = normalization(config)

    def read(path):
        name = path if os.path.exists(path) else os.path.join(args.images, path)
        return load_image(name, channels, mean, std)

    model = network(state)
    model.load_state_dict(state, strict=True)
    rows = kiln_predict(args.kiln, args.checkpoint, args.images)
    compare("kiln to torchvision", model, rows, read, args.tolerance)

    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(args.checkpoint, os.path.join(folder, "checkpoint"))
        model = network(state)
        size = read(rows[0]["file"]).shape[1:]
        save_file(randomized(model, channels, size), os.path.join(copy, "model.safetensors"))
        compare("torchvision to kiln", model, kiln_predict(args.kiln, copy, args.images), read,
                args.tolerance)


if __name__ == "__main__":
    main()
