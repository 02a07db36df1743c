"""Writes tests/data/models/flops.txt: what PyTorch's FlopCounterMode counts for a training
step of torchvision's networks. Run with a Python that has torch and torchvision:

    python tests/record/flops.py
"""
import os

import torch
import torchvision
from torch.utils.flop_counter import FlopCounterMode

TARGET = os.path.join(os.path.dirname(__file__), "../data/models/flops.txt")
BATCH, SIZE = 2, 224


def count(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


with open(TARGET, "w") as f:
    for depth in (18, 34, 50):
        network = getattr(torchvision.models, f"resnet{depth}")()
        x = torch.randn(BATCH, 3, SIZE, SIZE)
        forward = count(lambda: network(x))
        step = count(lambda: network(x).sum().backward())
        f.write(f"{depth} {BATCH} {SIZE} {forward} {step - forward}\n")
