"""Record how PyTorch trains networks that are bf16 throughout (model.bfloat16()), for
the unit tests. Needs torch; run from the root:

    python tests/record/bf16.py

Writes tests/data/models/bf16.txt: per network and optimizer fifty losses in f32, and
fifty of the same network with parameters, gradients, statistics and optimizer state in
bf16. Losses are computed in f32 from the logits in both. Weights and inputs come from
the formula of models.py; weights are rounded to bf16 before either begins."""
import copy

import torch
from torch import nn

from models import HERE, fill, images, pattern

torch.set_num_threads(1)
STEPS = 50
LR = {"sgd": 0.02, "adamw": 1e-3}


def mlp():
    return nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 4 * 4, 10))


def data(name):
    if name == "mlp":
        x = torch.from_numpy(pattern(70, 64 * 32).astype("float32")).reshape(64, 32)
    else:
        x = images(70, 64, 8, 8, 3).float().contiguous()
    return x, torch.tensor([(7 * i + 3) % 10 for i in range(64)])


def optimizer_of(name, model):
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=LR[name], momentum=0.9)
    return torch.optim.AdamW(model.parameters(), lr=LR[name], weight_decay=0.01)


def curve(model, optimizer, x, labels):
    optimizer = optimizer_of(optimizer, model)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).float(), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    with open(f"{HERE}/bf16.txt", "w") as out:
        for net in [mlp, cnn]:
            x, labels = data(net.__name__)
            start = net().double()
            fill(start)
            start = start.bfloat16().float()
            for optimizer in LR:
                wide = curve(copy.deepcopy(start), optimizer, x, labels)
                narrow = curve(copy.deepcopy(start).bfloat16(), optimizer, x.bfloat16(), labels)
                worst = max(abs(a - b) / a for a, b in zip(wide, narrow))
                print(net.__name__, optimizer, wide[0], wide[-1], f"{worst:.4f}")
                out.write(f"network {net.__name__} {optimizer} {LR[optimizer]!r}\n")
                out.write("f32 " + " ".join(f"{v:.6g}" for v in wide) + "\n")
                out.write("bf16 " + " ".join(f"{v:.6g}" for v in narrow) + "\n")


if __name__ == "__main__":
    main()
