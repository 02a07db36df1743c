"""Recommendation on MovieLens latest-small: the recipes movielens/two_tower and movielens/dlrm beside the same networks in
PyTorch, on the same rows, with the same schedule, and beside what needs no network.

    PEER=python-with-torch python3 bench/table/movielens.py FOLDER-OF-RATINGS.CSV [two_tower] [dlrm]

prints the metrics and seconds of SEEDS (default 3) runs: kiln's of the whole process, PyTorch's without imports and
reading. Ratings are shuffled and divided 8 : 1 : 1; of each user's films the last is the test's
and the one before it validation's."""
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEER = os.environ.get("PEER")
SEEDS = int(os.environ.get("SEEDS", "3"))
THREADS = os.environ.get("THREADS", "1")


# ---- Rows ------------------------------------------------------------------------------------------

def read(path):
    with open(path, encoding="utf-8") as file:
        return [(row["userId"], row["movieId"], float(row["rating"]), int(row["timestamp"])) for row in csv.DictReader(file)]


def shuffled_parts(rows):
    random.Random(0).shuffle(rows)
    n = len(rows)
    return rows[:n * 8 // 10], rows[n * 8 // 10:n * 9 // 10], rows[n * 9 // 10:]


def last_of_users(rows):
    """Training, validation and test rows; rows of the same time stand as in the file."""
    parts = [], [], []
    by_user = {}
    for row in rows:
        by_user.setdefault(row[0], []).append(row)
    for user in by_user.values():
        user.sort(key=lambda row: row[3])
        for row in user[:-2]:
            parts[0].append(row)
        parts[1].append(user[-2])
        parts[2].append(user[-1])
    return parts


# ---- Without a network -----------------------------------------------------------------------------

def frequent_items(train, test, k=10):
    """Hit rate of the items that training has most often, without those that it has for the user."""
    counts, has = {}, {}
    for user, item, *_ in train:
        counts[item] = counts.get(item, 0) + 1
        has.setdefault(user, set()).add(item)
    hits = 0
    for user, item, *_ in test:
        above = sum(n > counts.get(item, 0) and other not in has[user] for other, n in counts.items())
        hits += item in counts and above < k
    return hits / len(test)


def biases_alone(train, val, test):
    """RMSE of the mean with biases of users and items, whose damping validation chooses."""
    mean = sum(row[2] for row in train) / len(train)

    def fit(damping):
        biases = {}, {}
        for _ in range(15):
            for side in 1, 0:
                sums, counts = {}, {}
                for row in train:
                    sums[row[side]] = sums.get(row[side], 0.0) + row[2] - mean - biases[1 - side].get(row[1 - side], 0.0)
                    counts[row[side]] = counts.get(row[side], 0) + 1
                biases[side].update((key, total / (counts[key] + damping)) for key, total in sums.items())
        return [math.sqrt(sum((r - mean - biases[0].get(u, 0.0) - biases[1].get(i, 0.0)) ** 2 for u, i, r, _ in part) / len(part))
                for part in (val, test)]

    return min(fit(damping) for damping in (1, 2, 3, 5))[1]


# ---- kiln ------------------------------------------------------------------------------------------

def train_kiln(folder, recipe, seed, *args):
    run = os.path.join(folder, f"{recipe}-{seed}")
    began = time.monotonic()
    subprocess.run([os.path.join(ROOT, "build/release/train"), f"experiment=movielens/{recipe}", f"seed={seed}", f"trainer.threads={THREADS}",
                    "trainer.enable_progress_bar=false", f"kiln.run.dir={run}", *args], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        metrics = json.load(file)["metrics"]
    return metrics["test/hit_rate@10" if recipe == "two_tower" else "test/rmse"]["last"]["value"], seconds


# ---- PyTorch, run by PEER ---------------------------------------------------------------------------

def numbered(rows, train):
    """Ids of users and items: 0 for what training lacks."""
    import torch

    names = [{name: i + 1 for i, name in enumerate(sorted({row[side] for row in train}))} for side in (0, 1)]
    ids = torch.tensor([[names[side].get(row[side], 0) for side in (0, 1)] for row in rows])
    return ids, torch.tensor([row[2] for row in rows]), [len(n) + 1 for n in names]


def cosine(optimizer, steps):
    import torch

    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps)))


def two_tower(parts, seed):
    import torch
    import torch.nn.functional as F
    from torch import nn

    width, batch, epochs, temperature = 64, 1024, 8, 0.2
    torch.manual_seed(seed)
    (train, _, sizes), val, test = (numbered(rows, parts[0]) for rows in parts)
    towers = nn.ModuleList(nn.Sequential(nn.Embedding(n, width), nn.Linear(width, width)) for n in sizes)
    for tower in towers:
        nn.init.normal_(tower[0].weight, std=1 / math.sqrt(width))
    optimizer = torch.optim.Adam(towers.parameters(), lr=0.01, weight_decay=1e-4)
    schedule = cosine(optimizer, epochs * math.ceil(len(train) / batch))
    has = torch.zeros(sizes, dtype=torch.bool)
    has[train[:, 0], train[:, 1]] = True
    seen = torch.zeros(sizes[1])

    def evaluate(ids):
        with torch.no_grad():
            users, items = F.normalize(towers[0](ids[:, 0])), F.normalize(towers[1].forward(torch.arange(sizes[1])))
            scores = (users @ items.T).masked_fill(seen == 0, -1e9)
            right = scores.gather(1, ids[:, 1:])
            ranks = (scores.masked_fill(has[ids[:, 0]], -1e9) > right).sum(1)
        return (1 / (ranks + 1.0)).mean().item(), (ranks < 10).float().mean().item()

    best = (-1.0, 0.0)
    for _ in range(epochs):
        for rows in torch.randperm(len(train)).split(batch):
            users, items = train[rows].unbind(1)
            seen.index_add_(0, items, torch.ones(len(rows)))
            scores = F.normalize(towers[0](users)) @ F.normalize(towers[1](items)).T / temperature
            scores = scores - torch.log(seen[items] / seen.sum())
            same = (items[:, None] == items) & ~torch.eye(len(rows), dtype=torch.bool)
            loss = F.cross_entropy(scores.masked_fill(same, -1e9), torch.arange(len(rows)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        best = max(best, (evaluate(val[0])[0], evaluate(test[0])[1]))
    return best[1]


def dlrm(parts, seed):
    import torch
    import torch.nn.functional as F
    from torch import nn

    width, batch, epochs = 32, 512, 10
    torch.manual_seed(seed)
    (train, ratings, sizes), val, test = (numbered(rows, parts[0]) for rows in parts)
    vectors = nn.ModuleList(nn.Embedding(n, width) for n in sizes)
    biases = nn.ModuleList(nn.Embedding(n, 1) for n in sizes)
    top = nn.Sequential(nn.Linear(1, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    for v, b in zip(vectors, biases):
        nn.init.normal_(v.weight, std=0.01)
        nn.init.zeros_(b.weight)
    optimizer = torch.optim.AdamW([{"params": vectors.parameters(), "weight_decay": 10.0}, {"params": biases.parameters(), "weight_decay": 0.5},
                                   {"params": top.parameters(), "weight_decay": 0.0}], lr=0.002)
    schedule = cosine(optimizer, epochs * math.ceil(len(train) / batch))
    mean, deviation = ratings.mean(), ratings.std(unbiased=False)

    def predict(ids):
        product = (vectors[0](ids[:, 0]) * vectors[1](ids[:, 1])).sum(1, keepdim=True)
        return (top(product) + biases[0](ids[:, 0]) + biases[1](ids[:, 1])).squeeze(1)

    def rmse(ids, targets):
        with torch.no_grad():
            return ((predict(ids) * deviation + mean - targets) ** 2).mean().sqrt().item()

    best = (math.inf, 0.0)
    for _ in range(epochs):
        for rows in torch.randperm(len(train)).split(batch):
            loss = F.mse_loss(predict(train[rows]), (ratings[rows] - mean) / deviation)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        best = min(best, (rmse(*val[:2]), rmse(*test[:2])))
    return best[1]


def peer(recipe, path, seed):
    import torch

    torch.set_num_threads(int(THREADS))
    parts = last_of_users(read(path)) if recipe == "two_tower" else shuffled_parts(read(path))
    began = time.monotonic()
    metric = (two_tower if recipe == "two_tower" else dlrm)(parts, seed)
    print(json.dumps([metric, time.monotonic() - began]))


# ---- Both sides ------------------------------------------------------------------------------------

def show(name, results):
    metrics = ", ".join(f"{metric:.4f}" for metric, _ in results)
    print(f"  {name:8s} {sum(m for m, _ in results) / len(results):.4f} ({metrics})  {min(s for _, s in results):.1f} s", flush=True)


def main():
    if sys.argv[1] == "--peer":
        peer(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    path = os.path.join(sys.argv[1], "ratings.csv")
    with tempfile.TemporaryDirectory() as folder:
        for recipe in sys.argv[2:] or ["two_tower", "dlrm"]:
            if recipe == "two_tower":
                train, _, test = last_of_users(read(path))
                print(f"two_tower: hit rate@10; the most frequent films {frequent_items(train, test):.4f}")
                args = [f"datamodule.files.train=[{path}]"]
            else:
                parts = shuffled_parts(read(path))
                print(f"dlrm: RMSE; biases alone {biases_alone(*parts):.4f}")
                args = ["datamodule.val_fraction=0", "datamodule.test_fraction=0"]
                for name, rows in zip(("train", "val", "test"), parts):
                    file = os.path.join(folder, f"{name}.csv")
                    with open(file, "w", encoding="utf-8") as out:
                        out.write("userId,movieId,rating,timestamp\n" + "".join(f"{u},{i},{r},{t}\n" for u, i, r, t in rows))
                    args.append(f"datamodule.files.{name}=[{file}]")
            show("kiln", [train_kiln(folder, recipe, seed, *args) for seed in range(1, SEEDS + 1)])
            if PEER:
                show("PyTorch", [json.loads(subprocess.check_output([PEER, __file__, "--peer", recipe, path, str(seed)]))
                                 for seed in range(1, SEEDS + 1)])


if __name__ == "__main__":
    main()
