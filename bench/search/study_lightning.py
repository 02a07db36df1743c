"""bench/search/study.py's side of Optuna and PyTorch Lightning: prints the best accuracy and how many trials were pruned."""
import gzip
import logging
import os
import sys
import warnings

import lightning as L
import numpy as np
import optuna
import torch
from lightning.pytorch.loggers import CSVLogger
from optuna_integration import PyTorchLightningPruningCallback
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
optuna.logging.set_verbosity(optuna.logging.ERROR)
torch.set_num_threads(1)


def idx(folder, name, header):
    path = os.path.join(folder, name)
    with gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb") as f:
        return np.frombuffer(f.read(), np.uint8, offset=header)


def read(folder):
    images = idx(folder, "train-images-idx3-ubyte", 16).reshape(-1, 784)
    labels = idx(folder, "train-labels-idx1-ubyte", 8)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))  # the last ones are easier
    x = ((torch.tensor(images).float() / 255 - 0.1307) / 0.3081)[order]
    y = torch.tensor(labels).long()[order]
    return TensorDataset(x[5000:5000 + 157 * 128], y[5000:5000 + 157 * 128]), TensorDataset(x[:5000], y[:5000])


class Net(L.LightningModule):
    def __init__(self, lr, weight_decay):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(784, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

    def training_step(self, batch, index):
        x, y = batch
        scores = self.net(x)
        loss = torch.nn.functional.cross_entropy(scores, y)
        self.log("train/loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        scores = self.net(x)
        self.log("val/loss", torch.nn.functional.cross_entropy(scores, y))
        self.log("val/accuracy", (scores.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)


def main():
    train, val = read(sys.argv[1])

    def objective(trial):
        net = Net(trial.suggest_float("lr", 1e-4, 1e-1, log=True), trial.suggest_float("weight_decay", 1e-6, 1e-2, log=True))
        checkpoint = L.pytorch.callbacks.ModelCheckpoint(monitor="val/accuracy", mode="max", save_last=True)
        trainer = L.Trainer(max_epochs=5, accelerator="cpu", logger=CSVLogger("csv"), enable_progress_bar=False,
                            enable_model_summary=False,
                            callbacks=[checkpoint, PyTorchLightningPruningCallback(trial, monitor="val/accuracy")])
        trainer.fit(net, DataLoader(train, batch_size=128, shuffle=True), DataLoader(val, batch_size=128))
        return checkpoint.best_model_score.item()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=int(sys.argv[2])),
                                pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
                                storage=optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend("journal.log")))
    study.optimize(objective, n_trials=20)
    print(study.best_value, sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials))


main()
