"""Generating with transformers on PyTorch, the peer of `kiln generate`: GPT-2 small's shape with random weights, greedy,
batch 1, a prompt of 16 tokens.

    PEER/bin/python bench/text/generate.py [--dtype f32|bf16] [--compile] [--threads 2] [--tokens 256] [--repeat 3]

prints tokens a second of each repetition and the bandwidth that the weights alone need."""
import argparse
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    model = GPT2LMHeadModel(GPT2Config()).eval().to(torch.bfloat16 if args.dtype == "bf16" else torch.float32)
    weights = sum(p.numel() * p.element_size() for name, p in model.named_parameters() if "wpe" not in name)
    options = {"max_new_tokens": args.tokens, "min_new_tokens": args.tokens, "do_sample": False, "pad_token_id": 0}
    if args.compile:
        model.forward = torch.compile(model.forward)
        options["cache_implementation"] = "static"
    prompt = torch.arange(16).unsqueeze(0)
    with torch.inference_mode():
        model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)
        for _ in range(args.repeat):
            start = time.time()
            model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)
            rate = args.tokens / (time.time() - start)
            print(f"{rate:.1f} tokens/s, {rate * weights / 1e9:.1f} GB/s of weights", flush=True)


if __name__ == "__main__":
    main()
