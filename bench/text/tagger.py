"""The BiLSTM-CNN-CRF of experiment=wnut17/tagger in PyTorch with pytorch-crf: the same network, data and schedule.

    PEER/bin/python bench/text/tagger.py FOLDER [--seed 1] [--epochs 20] [--lr 0.003] [--embedding-dropout 0.3]

prints the F1 of seqeval on the development set after each epoch, and on the test set with the weights of the best epoch.
FOLDER has wnut17train.conll, emerging.dev.conll and emerging.test.annotated."""
import argparse
import collections
import copy
import math
import pathlib
import re
import time

import torch
from seqeval.metrics import f1_score
from torch import nn
from torchcrf import CRF

BATCH, WORD_LENGTH = 16, 16


def read(path):
    sentences, words = [], []
    for line in path.read_text(encoding="utf-8").split("\n") + [""]:
        if line.strip():
            words.append(line.split("\t"))
        elif words:
            sentences.append(([w for w, _ in words], [t for _, t in words]))
            words = []
    return sentences


def normal(word):
    return re.sub(r"\d", "0", word.lower())


def vocabulary(items, least):
    counts = collections.Counter(items)
    return {item: i + 2 for i, item in enumerate(sorted(i for i in counts if counts[i] >= least))}  # 0 padding, 1 unknown


class Tagger(nn.Module):
    def __init__(self, words, characters, tags, args):
        super().__init__()
        self.words = nn.Embedding(words, 100, padding_idx=0)
        self.characters = nn.Embedding(characters, 30, padding_idx=0)
        for embedding in self.words, self.characters:
            nn.init.uniform_(embedding.weight, -0.25, 0.25)
            nn.init.zeros_(embedding.weight[0])
        self.conv = nn.Conv1d(30, 30, 3, padding=1)
        self.drop_embedding, self.drop = nn.Dropout(args.embedding_dropout), nn.Dropout(0.5)
        self.lstm = nn.LSTM(130, 128, batch_first=True, bidirectional=True)
        self.head = nn.Linear(256, tags)
        self.crf = CRF(tags, batch_first=True)

    def forward(self, words, characters, lengths):
        batch, time, length = characters.shape
        spelling = self.characters(characters).reshape(batch * time, length, 30).transpose(1, 2)
        spelling = self.conv(spelling).amax(2).reshape(batch, time, 30)
        x = self.drop_embedding(torch.cat([self.words(words), spelling], 2))
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=time)
        return self.head(self.drop(y))


class Data:
    def __init__(self, folder):
        self.splits = [read(folder / name) for name in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")]
        train = self.splits[0]
        self.words = vocabulary((normal(w) for words, _ in train for w in words), 2)
        self.characters = vocabulary((c for words, _ in train for w in words for c in w), 3)
        self.tags = sorted({t for _, tags in train for t in tags})

    def batch(self, sentences):
        lengths = torch.tensor([len(words) for words, _ in sentences])
        words = torch.zeros(len(sentences), int(lengths.max()), dtype=torch.long)
        tags, characters = torch.zeros_like(words), torch.zeros(*words.shape, WORD_LENGTH, dtype=torch.long)
        for i, (names, true) in enumerate(sentences):
            for j, word in enumerate(names):
                words[i, j] = self.words.get(normal(word), 1)
                tags[i, j] = self.tags.index(true[j])
                ids = [self.characters.get(c, 1) for c in word[:WORD_LENGTH]]
                characters[i, j, :len(ids)] = torch.tensor(ids)
        mask = torch.arange(words.shape[1])[None] < lengths[:, None]
        return words, characters, lengths, tags, mask


def score(model, data, batches, sentences):
    model.eval()
    found = []
    with torch.inference_mode():
        for words, characters, lengths, _, mask in batches:
            found += model.crf.decode(model(words, characters, lengths), mask)
    return f1_score([tags for _, tags in sentences], [[data.tags[t] for t in tags] for tags in found])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--embedding-dropout", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    data = Data(args.folder)
    train, dev, test = data.splits
    dev_batches, test_batches = [[data.batch(split[i:i + BATCH]) for i in range(0, len(split), BATCH)] for split in (dev, test)]
    model = Tagger(len(data.words) + 2, len(data.characters) + 2, len(data.tags), args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    steps, step, best, kept, start = math.ceil(len(train) / BATCH) * args.epochs, 0, -1.0, None, time.time()
    for epoch in range(args.epochs):
        model.train()
        order = torch.randperm(len(train)).tolist()
        # as kiln's buckets: batches of sentences of similar length, in random order
        order = [i for k in range(0, len(order), BATCH * 100)
                 for i in sorted(order[k:k + BATCH * 100], key=lambda i: len(train[i][0]))]
        batches = [order[i:i + BATCH] for i in range(0, len(order), BATCH)]
        for k in torch.randperm(len(batches)).tolist():
            words, characters, lengths, tags, mask = data.batch([train[i] for i in batches[k]])
            for group in optimizer.param_groups:
                group["lr"] = args.lr * 0.5 * (1 + math.cos(math.pi * step / steps))
            emissions = model(words, characters, lengths)
            loss = -model.crf(emissions, tags, mask, reduction="sum") / lengths.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        f1 = score(model, data, dev_batches, dev)
        if f1 > best:
            best, kept = f1, copy.deepcopy(model.state_dict())
        print(f"epoch {epoch} dev F1 {f1:.4f} {time.time() - start:.0f} s", flush=True)
    model.load_state_dict(kept)
    print(f"test F1 {score(model, data, test_batches, test):.4f} (dev {best:.4f})")


if __name__ == "__main__":
    main()
