"""bench/loop/loop.py's side of PyTorch Lightning: prints microseconds a step, from two numbers of steps."""
import logging
import sys
import time
import warnings

import lightning as L
import torch
from lightning.pytorch.loggers import CSVLogger

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class Linear(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(784, 10)

    def training_step(self, batch, index):
        x, y = batch
        scores = self.layer(x)
        loss = torch.nn.functional.cross_entropy(scores, y)
        self.log("train/loss", loss, prog_bar=True)
        self.log("train/accuracy", (scores.argmax(1) == y).float().mean(), on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0001)


def seconds(steps):
    data = torch.utils.data.TensorDataset(torch.randn(steps, 784), torch.randint(0, 10, (steps,)))
    loader = torch.utils.data.DataLoader(data, batch_size=1, shuffle=True)
    trainer = L.Trainer(max_epochs=1, accelerator="cpu", logger=CSVLogger("csv"),
                        callbacks=[L.pytorch.callbacks.LearningRateMonitor()])
    begin = time.perf_counter()
    trainer.fit(Linear(), loader)
    return time.perf_counter() - begin


few, many = map(int, sys.argv[1:])
seconds(few)  # what is made once
print(1e6 * (seconds(many) - seconds(few)) / (many - few))
