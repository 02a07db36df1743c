"""PyTorch's side of the accuracy comparison: what conf/experiment/cifar10/
resnet18.yaml trains, with the same network, augmentation and schedule.

    python bench/cifar_torch.py FOLDER [--epochs 30] [--stem large] [--bf16]

FOLDER holds train/<class>/*.png and val/ or test/ or both, 32×32 colour. --stem large: torchvision's
network as it is, as with model.stem=large. Prints the training loss of each epoch and the accuracy
on val and test."""
import argparse
import math
import os
import time

import numpy as np
import torch
import torchvision
from torchvision.io import ImageReadMode, read_image


def load(folder):
    """uint8 [N, 3, 32, 32] and labels of a folder of classes."""
    classes = sorted(d for d in os.listdir(folder) if os.path.isdir(os.path.join(folder, d)))
    images, labels = [], []
    for k, name in enumerate(classes):
        for file in sorted(os.listdir(os.path.join(folder, name))):
            if file.lower().endswith(".png"):
                images.append(read_image(os.path.join(folder, name, file), ImageReadMode.RGB))
                labels.append(k)
    return torch.stack(images), torch.tensor(labels), classes


def augment(images, generator):
    """Random crop of 32 from 4 pixels of zero padding, and a flip for every other one."""
    n = len(images)
    padded = torch.nn.functional.pad(images, (4, 4, 4, 4))
    top = torch.randint(9, (n,), generator=generator)
    left = torch.randint(9, (n,), generator=generator)
    flip = torch.rand(n, generator=generator) < 0.5
    out = torch.empty_like(images)
    for i in range(n):
        crop = padded[i, :, top[i]:top[i] + 32, left[i]:left[i] + 32]
        out[i] = crop.flip(2) if flip[i] else crop
    return out


def accuracy(model, images, labels, batch, bf16):
    model.eval()
    right = 0
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        for i in range(0, len(images), batch):
            right += (model(images[i:i + batch]).argmax(1) == labels[i:i + batch]).sum().item()
    model.train()
    return right / len(images)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--mean", type=float, nargs=3, default=[0.49140, 0.48216, 0.44653])
    parser.add_argument("--std", type=float, nargs=3, default=[0.24703, 0.24349, 0.26159])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stem", choices=["small", "large"], default="small")
    parser.add_argument("--bf16", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)

    train_images, train_labels, classes = load(os.path.join(args.folder, "train"))
    held_out = [(name, *load(os.path.join(args.folder, name))[:2]) for name in ("val", "test")
                if os.path.isdir(os.path.join(args.folder, name))]
    mean = torch.tensor(args.mean).reshape(1, 3, 1, 1)
    std = torch.tensor(args.std).reshape(1, 3, 1, 1)

    # Padding is black, as before normalizing: kiln crops first too.
    def normalize(images):
        x = (images.float() / 255 - mean) / std
        return x.to(memory_format=torch.channels_last)

    model = torchvision.models.resnet18(num_classes=len(classes))
    if args.stem == "small":
        model.conv1 = torch.nn.Conv2d(3, 64, 3, padding=1, bias=False)
        model.conv1.weight.data.normal_(0, math.sqrt(2 / (64 * 9)))
        model.maxpool = torch.nn.Identity()
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True,
                                weight_decay=5e-4)
    steps = math.ceil(len(train_images) / args.batch)
    total = steps * args.epochs

    def factor(step):
        if step < steps:
            return (step + 1) / steps
        return 0.5 * (1 + math.cos(math.pi * (step - steps) / max(1, total - steps)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    held_out = [(name, normalize(images), labels) for name, images, labels in held_out]

    def measure():
        return ", ".join(f"{name} accuracy {accuracy(model, x, y, args.batch, args.bf16):.4f}"
                         for name, x, y in held_out)

    begin = time.time()
    for epoch in range(args.epochs):
        order = torch.randperm(len(train_images), generator=generator)
        losses = []
        for i in range(0, len(order), args.batch):
            index = order[i:i + args.batch]
            x = normalize(augment(train_images[index], generator))
            with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
                guess = model(x)
            loss = torch.nn.functional.cross_entropy(guess.float(), train_labels[index])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}, {measure()}, "
              f"{time.time() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
