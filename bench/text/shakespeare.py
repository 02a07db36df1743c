"""nanoGPT's setting for processors on Tiny Shakespeare in PyTorch, the peer of experiment=tiny-shakespeare/gpt:

    PEER/bin/python bench/text/shakespeare.py INPUT.txt [--compile] [--threads 2] [--seed 1] [--steps 2000]

prints the seconds of training, without and with the evaluations (every 250 steps over the whole validation part), and
the last validation loss. The network is nanoGPT's: 4 layers, 4 heads, width 128, context 64, no biases; the
learning rate is the experiment's."""
import argparse
import math
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HEADS, WIDTH, CONTEXT, BATCH, WARMUP = 4, 4, 128, 64, 12, 100
RATE = 2e-3  # nanoGPT: 1e-3


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


def rate(step, steps):
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    share = (step - WARMUP) / (steps - WARMUP)
    return RATE * (0.1 + 0.45 * (1.0 + math.cos(math.pi * share)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("input")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    text = open(args.input, encoding="utf-8").read()
    ids = {c: i for i, c in enumerate(sorted(set(text)))}
    data = torch.tensor([ids[c] for c in text])
    train, val = data[:int(0.9 * len(data))], data[int(0.9 * len(data)):]
    n_val = (len(val) - 1) // CONTEXT
    val_x, val_y = (val[i:i + n_val * CONTEXT].view(n_val, CONTEXT) for i in (0, 1))
    model = Gpt(len(ids))
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=RATE, betas=(0.9, 0.99), fused=True)
    step_of = torch.compile(model) if args.compile else model

    @torch.no_grad()
    def evaluate():
        model.eval()
        total = sum(model(val_x[i:i + BATCH], val_y[i:i + BATCH]).item() * len(val_x[i:i + BATCH])
                    for i in range(0, n_val, BATCH))
        model.train()
        return total / n_val

    begin = time.time()
    evaluated, loss = 0.0, float("nan")
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
        if (step + 1) % 250 == 0 or step + 1 == args.steps:
            start = time.time()
            loss = evaluate()
            evaluated += time.time() - start
            print(f"step {step + 1}: val/loss {loss:.4f}", flush=True)
    seconds = time.time() - begin
    print(f"seconds {seconds - evaluated:.2f}, with evaluations {seconds:.2f}, val/loss {loss:.4f}")


if __name__ == "__main__":
    main()
