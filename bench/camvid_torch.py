"""The recipe camvid/unet in PyTorch: the same network, augmentation, optimizer and schedule.

    python bench/camvid_torch.py DIR [--epochs 40] [--threads 2] [--seed 1]

DIR has train/, trainannot/, val/, ... of CamVid at 160×120. Prints mean IoU of validation after each
epoch, and of the test of the best one. Needs torch and torchvision."""
import argparse
import glob
import os
import sys
import time

import torch
import torch.nn.functional as F
from torchvision.io import ImageReadMode, read_image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "record"))
from image_nets import UNet  # noqa: E402

CLASSES, PADDING = 11, 8
MEAN, STD = (torch.tensor(v).reshape(1, 3, 1, 1) for v in ((0.412, 0.425, 0.433), (0.300, 0.304, 0.300)))


def load(root, split):
    images = sorted(glob.glob(f"{root}/{split}/*.png"))
    x = torch.stack([read_image(f, ImageReadMode.RGB) for f in images]).float() / 255
    y = torch.stack([read_image(f.replace(f"/{split}/", f"/{split}annot/"), ImageReadMode.GRAY)[0] for f in images]).long()
    return (x, torch.where(y == CLASSES, -100, y))


def augment(x, y, generator):
    """Moves and flips each image and its mask; pixels from outside are black and have no class."""
    height, width = x.shape[2:]
    x, y = F.pad(x, [PADDING] * 4), F.pad(y, [PADDING] * 4, value=-100)
    xs, ys = [], []
    for i in range(len(x)):
        top, left = torch.randint(0, 2 * PADDING + 1, (2,), generator=generator).tolist()
        a, b = x[i, :, top:top + height, left:left + width], y[i, top:top + height, left:left + width]
        if torch.rand((), generator=generator) < 0.5:
            a, b = a.flip(2), b.flip(1)
        xs.append(a)
        ys.append(b)
    return torch.stack(xs), torch.stack(ys)


def evaluate(model, data):
    """Mean IoU and pixel accuracy."""
    table = torch.zeros(CLASSES, CLASSES, dtype=torch.long)
    model.eval()
    with torch.no_grad():
        for x, y in zip(*(v.split(8) for v in data)):
            guess = model((x - MEAN) / STD).argmax(1)
            counted = y >= 0
            table += torch.bincount(y[counted] * CLASSES + guess[counted], minlength=CLASSES**2).reshape(CLASSES, CLASSES)
    hits, union = table.diag(), table.sum(0) + table.sum(1) - table.diag()
    return (hits[union > 0] / union[union > 0]).mean().item(), (hits.sum() / table.sum()).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    train, val, test = (load(options.root, split) for split in ("train", "val", "test"))
    model = UNet(3, CLASSES, 16).to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    steps = -(-len(train[0]) // 8)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.002, total_steps=steps * options.epochs, cycle_momentum=False)
    best, state, start = -1.0, None, time.time()
    for epoch in range(options.epochs):
        model.train()
        for index in torch.randperm(len(train[0]), generator=generator).split(8):
            x, y = augment(train[0][index], train[1][index], generator)
            optimizer.zero_grad()
            F.cross_entropy(model((x - MEAN) / STD), y).backward()
            optimizer.step()
            schedule.step()
        iou, accuracy = evaluate(model, val)
        print(f"epoch {epoch + 1}: val iou {iou:.4f}, accuracy {accuracy:.4f}, {time.time() - start:.0f} s", flush=True)
        if iou > best:
            best, state = iou, {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    iou, accuracy = evaluate(model, test)
    print(f"test iou {iou:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
