"""Tokens a second of `kiln generate` beside transformers on PyTorch, in turn on the same machine: GPT-2 small's shape
with random weights, greedy, batch 1, a prompt of 16 tokens.

    PEER=python-with-transformers python3 bench/text/generate.py [--dtype f32|bf16] [--compile] [--tokens 256]

PEER writes the weights (0.5 GB) and a tokenizer of GPT-2's size to a temporary folder, which kiln's run of one step
then reads; --folder DIR keeps both for the next time. Prints the rates, the median of the ratio over paired rounds
(ROUNDS, default 3), and the gigabytes of weights that each token reads: by it the memory limits both sides."""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build/release")
PEER = os.environ.get("PEER")
THREADS = os.environ.get("THREADS", "2")
ROUNDS = int(os.environ.get("ROUNDS", "3"))
PROMPT = "abcdefghijklmnopqrstuvwxyzabcdef"  # 16 tokens of two letters
PARAMETERS = 50257 * 768 + 12 * (12 * 768 * 768 + 13 * 768) + 2 * 768  # that each token reads


# ---- The peer's side, run by PEER ------------------------------------------------------------------

def make_model(folder):
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    GPT2LMHeadModel(GPT2Config()).save_pretrained(folder)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [(a, b) for a in letters for b in letters][:50256 - len(letters)]
    vocabulary = {piece: i for i, piece in enumerate(letters + [a + b for a, b in pairs])}
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|none|>"])  # no name of an end token: nothing ends a text early
    tokenizer.save(os.path.join(folder, "tokenizer.json"))


def peer_rate(args):
    import time

    import torch
    from tokenizers import Tokenizer
    from transformers import GPT2LMHeadModel

    torch.set_num_threads(int(THREADS))
    model = GPT2LMHeadModel.from_pretrained(args.folder).eval()
    model = model.to(torch.bfloat16 if args.dtype == "bf16" else torch.float32)
    options = {"max_new_tokens": args.tokens, "min_new_tokens": args.tokens, "do_sample": False, "pad_token_id": 0}
    if args.compile:
        model.forward = torch.compile(model.forward)
        options["cache_implementation"] = "static"
    prompt = torch.tensor([Tokenizer.from_file(os.path.join(args.folder, "tokenizer.json")).encode(PROMPT).ids])
    with torch.inference_mode():
        for turn in range(2):  # the first warms up
            start = time.time()
            model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)
            seconds = time.time() - start
    print(args.tokens / seconds)


# ---- Pairs ------------------------------------------------------------------------------------------

def make_run(folder):
    text = os.path.join(folder, "text.txt")
    with open(text, "w") as f:
        f.write("abcdefgh " * 4000)
    subprocess.run([f"{BUILD}/train", "task=language_model", "datamodule=text_blocks", f"datamodule.files=[{text}]",
                    "datamodule.context=288", "model=gpt2", "model.context=1024", f"weights={folder}/model.safetensors",
                    "datamodule.tokenizer={_target_: tokenizer/pretrained, path: " + folder + "/tokenizer.json}",
                    "batch_size=1", "optimizer=sgd", "lr=1e-30", "trainer.max_steps=1", "trainer.limit_val_batches=1",
                    "test=false", f"kiln.run.dir={folder}/run"],
                   check=True, stdout=subprocess.DEVNULL)


def kiln_rate(args):
    more = ["trainer.precision=bf16-true"] if args.dtype == "bf16" else []
    text = subprocess.run([f"{BUILD}/kiln", "generate", f"{args.folder}/run", f"prompt={PROMPT}", "temperature=0",
                           f"max_tokens={args.tokens}", f"trainer.threads={THREADS}", *more],
                          check=True, capture_output=True, text=True).stderr
    count, rate = re.search(r"(\d+) tokens in .*\(([\d.]+) tokens/s\)", text).groups()
    if int(count) != args.tokens:
        sys.exit(f"generate.py: kiln generated {count} tokens, not {args.tokens}")
    return float(rate)


def by_peer(args, what):
    command = [PEER, os.path.abspath(__file__), "--peer", what, "--folder", args.folder, "--dtype", args.dtype,
               "--tokens", str(args.tokens), *(["--compile"] if args.compile else [])]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def measure(args):
    if not os.path.exists(f"{args.folder}/run"):
        by_peer(args, "model")
        make_run(args.folder)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(kiln_rate(args))
        theirs.append(float(by_peer(args, "rate")[-1]))
        print(f"  kiln {ours[-1]:.1f}, transformers {theirs[-1]:.1f} tokens/s", flush=True)
    gigabytes = PARAMETERS * (2 if args.dtype == "bf16" else 4) / 1e9
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    print(f"{args.dtype}: kiln {statistics.median(ours):.1f} tokens/s, transformers "
          f"({'compiled' if args.compile else 'eager'}) {statistics.median(theirs):.1f}: {ratio:.2f} times as many; "
          f"{gigabytes:.3f} GB of weights a token, {statistics.median(ours) * gigabytes:.1f} GB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--compile", action="store_true", help="compile the peer's network")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--folder", help="keep the model and kiln's run here")
    parser.add_argument("--peer", choices=["model", "rate"], help="the peer's side; run by PEER")
    args = parser.parse_args()
    if args.peer == "model":
        make_model(args.folder)
    elif args.peer == "rate":
        peer_rate(args)
    elif PEER is None:
        sys.exit("generate.py: set PEER to a Python with torch, transformers and tokenizers")
    elif args.folder is not None:
        os.makedirs(args.folder, exist_ok=True)
        args.folder = os.path.abspath(args.folder)
        measure(args)
    else:
        with tempfile.TemporaryDirectory() as args.folder:
            measure(args)


if __name__ == "__main__":
    main()
