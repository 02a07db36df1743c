"""Record small models of transformers in the shapes of GPT-2 and Llama, and what they compute.

    PEER/bin/python tests/record/language_models.py     (a Python with torch and transformers)

writes tests/data/language_models/{gpt2,llama}.safetensors as save_pretrained does, and NAME.txt with lines that
tests/unit/train/predict/test_generate.c reads: `tokens` of a text, the `logits` of each of their successors, and for some
prompts the ids and the tokens that greedy decoding (generate, with cache) gives."""
import os
import shutil
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests/data/language_models")
PROMPTS = [b"To be, or", b"q", b"kiln 123"]
TEXT = b"A word."
NEW = 12

# The ids of kiln's tokenizer bytes without special tokens: bytes in GPT-2's order.
PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
IDS = {byte: i for i, byte in enumerate([*PRINTED, *(b for b in range(256) if b not in PRINTED)])}

GPT2 = GPT2Config(vocab_size=256, n_positions=32, n_embd=16, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None)
LLAMA = LlamaConfig(vocab_size=256, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, max_position_embeddings=32, rms_norm_eps=1e-5, rope_theta=10000.0,
                    tie_word_embeddings=False, bos_token_id=None, eos_token_id=None, pad_token_id=None)


def record(name, model):
    model = model.eval().float()
    with torch.no_grad():
        for key, parameter in model.named_parameters():  # far from zero, so that every part of the network counts
            deviation = 0.2 if parameter.dim() == 1 else 0.3 if "wte" in key else 0.8
            parameter.copy_(deviation * torch.randn_like(parameter) + (key.endswith("weight") and parameter.dim() == 1))
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder, safe_serialization=True)
    shutil.copy(os.path.join(folder, "model.safetensors"), os.path.join(DATA, f"{name}.safetensors"))
    shutil.rmtree(folder)
    with torch.no_grad(), open(os.path.join(DATA, f"{name}.txt"), "w") as out:
        ids = torch.tensor([list(TEXT)])
        out.write("tokens " + " ".join(map(str, TEXT)) + "\n")
        for row in model(ids).logits[0]:
            out.write("logits " + " ".join(f"{v:.6g}" for v in row.tolist()) + "\n")
        for prompt in PROMPTS:
            ids = torch.tensor([[IDS[byte] for byte in prompt]])
            new = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False,
                                 pad_token_id=0, eos_token_id=None)[0, len(prompt):]
            out.write(f"prompt {prompt.decode()}\nids " + " ".join(map(str, ids[0].tolist())) + "\n")
            out.write("greedy " + " ".join(map(str, new.tolist())) + "\n")


def main():
    os.makedirs(DATA, exist_ok=True)
    torch.manual_seed(7)
    record("gpt2", GPT2LMHeadModel(GPT2))
    record("llama", LlamaForCausalLM(LLAMA))


if __name__ == "__main__":
    main()
