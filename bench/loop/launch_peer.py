"""bench/loop/launch.py's side of PyTorch + Lightning + Hydra, written as its users write it; says "first step"
when the first optimizer step is done."""
import hydra
import lightning as L
import torch
from omegaconf import DictConfig


class Classifier(L.LightningModule):
    def __init__(self, net, optimizer):
        super().__init__()
        self.net = net
        self.optimizer = optimizer

    def training_step(self, batch, index):
        images, labels = batch
        scores = self.net(images)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return self.optimizer(self.parameters())


class Noise(L.LightningDataModule):
    """As large as MNIST."""

    def __init__(self, batch_size):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        self.data = torch.utils.data.TensorDataset(torch.randn(60000, 1, 28, 28), torch.randint(0, 10, (60000,)))

    def train_dataloader(self):
        return torch.utils.data.DataLoader(self.data, batch_size=self.batch_size, shuffle=True)


class Mark(L.Callback):
    def on_train_batch_end(self, *unused):
        print("first step", flush=True)


@hydra.main(config_path="launch_conf", config_name="config", version_base="1.3")
def main(config: DictConfig):
    L.seed_everything(1)
    model = Classifier(hydra.utils.instantiate(config.model), hydra.utils.instantiate(config.optimizer))
    trainer = hydra.utils.instantiate(config.trainer, logger=hydra.utils.instantiate(config.logger), callbacks=[Mark()])
    trainer.fit(model, Noise(config.batch_size))


if __name__ == "__main__":
    main()
