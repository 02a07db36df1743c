"""nanoGPT's setting for processors on Tiny Shakespeare: experiment=tiny-shakespeare/gpt beside the same network in
PyTorch, in turn on the same machine, with the same number of evaluations (every 250 steps over the whole validation part).

    PEER=python-with-torch python3 bench/text/shakespeare.py INPUT.txt [--steps 2000]

prints the seconds of both and the median of the ratio over paired rounds (ROUNDS, default 1). kiln's are those of the
whole process; PyTorch's begin after the first step, so neither imports nor compiling count, and are the better ones of
its eager and its compiled steps. The network is nanoGPT's: 4 layers, 4 heads, width 128, context 64, no biases; the learning
rate is the experiment's."""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEER = os.environ.get("PEER")
THREADS = os.environ.get("THREADS", "2")
ROUNDS = int(os.environ.get("ROUNDS", "1"))
LAYERS, HEADS, WIDTH, CONTEXT, BATCH, WARMUP, EVALUATE = 4, 4, 128, 64, 12, 100, 250
RATE = 2e-3  # nanoGPT: 1e-3


# ---- The peer's side, run by PEER ------------------------------------------------------------------

def network(vocabulary):
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
            self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
            self.c_fc, self.c_out = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(WIDTH, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))
            return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x))))

    class Gpt(nn.Module):
        def __init__(self, vocabulary):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(vocabulary, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.ln_f, self.head = nn.LayerNorm(WIDTH, bias=False), nn.Linear(WIDTH, vocabulary, bias=False)
            self.wte.weight = self.head.weight
            for name, p in self.named_parameters():
                if p.dim() == 2:
                    adds = name.endswith(("c_proj.weight", "c_out.weight"))
                    nn.init.normal_(p, 0.0, 0.02 / math.sqrt(2 * LAYERS) if adds else 0.02)

        def forward(self, tokens, next_tokens):
            x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return F.cross_entropy(self.head(self.ln_f(x)).flatten(0, 1), next_tokens.flatten())

    return Gpt(vocabulary)


def rate(step, steps):
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    share = (step - WARMUP) / (steps - WARMUP)
    return RATE * (0.1 + 0.45 * (1.0 + math.cos(math.pi * share)))


def train_peer(args):
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(int(THREADS))
    text = open(args.input, encoding="utf-8").read()
    ids = {c: i for i, c in enumerate(sorted(set(text)))}
    data = torch.tensor([ids[c] for c in text])
    train, val = data[:int(0.9 * len(data))], data[int(0.9 * len(data)):]
    n_val = (len(val) - 1) // CONTEXT
    val_x, val_y = (val[i:i + n_val * CONTEXT].view(n_val, CONTEXT) for i in (0, 1))
    model = network(len(ids))
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=RATE, betas=(0.9, 0.99), fused=True)
    step_of = torch.compile(model) if args.peer == "compile" else model

    @torch.no_grad()
    def evaluate():
        model.eval()
        total = sum(model(val_x[i:i + BATCH], val_y[i:i + BATCH]).item() * len(val_x[i:i + BATCH])
                    for i in range(0, n_val, BATCH))
        model.train()
        return total / n_val

    step_of(train[:BATCH * CONTEXT].view(BATCH, CONTEXT), train[:BATCH * CONTEXT].view(BATCH, CONTEXT)).backward()
    optimizer.zero_grad(set_to_none=True)
    begin = time.time()
    for step in range(args.steps):
        at = torch.randint(len(train) - CONTEXT, (BATCH,))
        x = torch.stack([train[i:i + CONTEXT] for i in at])
        y = torch.stack([train[i + 1:i + 1 + CONTEXT] for i in at])
        for group in optimizer.param_groups:
            group["lr"] = rate(step, args.steps)
        step_of(x, y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (step + 1) % EVALUATE == 0:
            print(f"step {step + 1}: val/loss {evaluate():.4f}", file=sys.stderr, flush=True)
    print(time.time() - begin)


# ---- Pairs ------------------------------------------------------------------------------------------

def kiln_seconds(args, folder):
    begin = time.time()
    subprocess.run([f"{ROOT}/build/release/train", "experiment=tiny-shakespeare/gpt",
                    f"datamodule.files=[{os.path.abspath(args.input)}]", f"trainer.max_steps={args.steps}",
                    "trainer.check_val_every_n_epoch=null", f"trainer.val_check_interval={EVALUATE}",
                    f"trainer.threads={THREADS}", "test=false", f"kiln.run.dir={tempfile.mkdtemp(dir=folder)}/run"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.time() - begin


def peer_seconds(args, way):
    text = subprocess.run([PEER, os.path.abspath(__file__), args.input, "--peer", way, "--steps", str(args.steps)],
                          check=True, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL).stdout
    return float(text.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", help="the text")
    parser.add_argument("--steps", type=int, default=2000, help="a multiple of 250")
    parser.add_argument("--peer", choices=["eager", "compile"], help="train the peer's network; run by PEER")
    args = parser.parse_args()
    if args.peer is not None:
        train_peer(args)
        return
    if PEER is None:
        sys.exit("shakespeare.py: set PEER to a Python with torch")
    ratios = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            ours = kiln_seconds(args, folder)
        theirs = {way: peer_seconds(args, way) for way in ("eager", "compile")}
        ratios.append(ours / min(theirs.values()))
        print(f"  kiln {ours:.1f} s", *(f"PyTorch {way} {seconds:.1f} s" for way, seconds in theirs.items()), sep=", ",
              flush=True)
    print(f"{args.steps} steps: {statistics.median(ratios):.2f} of PyTorch's time")


if __name__ == "__main__":
    main()
