"""Record what transformers' BERT and peft's LoRA compute.

    PEER/bin/python tests/record/finetuning.py     (a Python with torch, transformers and peft)

writes to tests/data/finetuning: bert.safetensors, a small classifier as save_pretrained writes it, and bert.txt with its hidden
states and logits (tests/unit/components/test_transformer.c); lora/, an adapter of tests/data/language_models/gpt2.safetensors as
peft saves it, lora_step/, the same after a step of SGD, and lora.json with the losses before and after it and their text,
and layer_decay.json, how much three steps of AdamW with parameter groups change each tensor of that GPT-2
(tests/cli/text/test_finetuning.py)."""
import json
import os
import shutil
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from transformers import BertConfig, BertForSequenceClassification, GPT2LMHeadModel

from language_models import GPT2, IDS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests/data/finetuning")
SEPARATOR = 3
BERT = BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
                  max_position_embeddings=12, type_vocab_size=2, num_labels=3)
SAMPLES = [[2, 10, 11, 12, 3, 20, 21, 3], [2, 30, 31, 3]]
TEXT = b"To be, or not to be, that is it"  # with one more token than the context
RATE = 0.5
DECAY_RATE, DECAY = 0.01, 0.6


def rows(out, name, values):
    for row in values.reshape(-1, values.shape[-1]).tolist():
        out.write(name + " " + " ".join(f"{v:.7g}" for v in row) + "\n")


def bert():
    model = BertForSequenceClassification(BERT).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            is_norm = "LayerNorm.weight" in key
            parameter.copy_((0.2 if parameter.dim() == 1 else 0.4) * torch.randn_like(parameter) + is_norm)
    folder = tempfile.mkdtemp()
    model.save_pretrained(folder, safe_serialization=True)
    shutil.copy(os.path.join(folder, "model.safetensors"), os.path.join(DATA, "bert.safetensors"))
    shutil.rmtree(folder)
    longest = max(map(len, SAMPLES))
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in SAMPLES])
    mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in SAMPLES])
    ends = (ids == SEPARATOR).long()
    types = (ends.cumsum(1) - ends).clamp(max=1) * mask
    with torch.no_grad(), open(os.path.join(DATA, "bert.txt"), "w") as out:
        result = model(ids, attention_mask=mask, token_type_ids=types, output_hidden_states=True)
        for sample in SAMPLES:
            out.write("tokens " + " ".join(map(str, sample)) + "\n")
        for sample, states in zip(SAMPLES, result.hidden_states[-1]):
            rows(out, "hidden", states[:len(sample)])
        rows(out, "logits", result.logits)


def lora():
    base = GPT2LMHeadModel(GPT2).eval()
    base.load_state_dict(load_file(os.path.join(ROOT, "tests/data/language_models/gpt2.safetensors")), strict=False)
    base.tie_weights()
    model = get_peft_model(base, LoraConfig(r=3, lora_alpha=6, target_modules=["c_attn", "mlp.c_fc"], fan_in_fan_out=True)).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lora_B" in key:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(os.path.join(DATA, "lora"))
    ids = torch.tensor([[IDS[byte] for byte in TEXT]])
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
    loss = torch.nn.functional.cross_entropy(model(ids[:, :-1]).logits[0], ids[0, 1:])
    loss.backward()
    optimizer.step()
    model.save_pretrained(os.path.join(DATA, "lora_step"))
    with torch.no_grad():
        after = torch.nn.functional.cross_entropy(model(ids[:, :-1]).logits[0], ids[0, 1:])
    for folder in ["lora", "lora_step"]:
        os.remove(os.path.join(DATA, folder, "README.md"))
    os.remove(os.path.join(DATA, "lora_step/adapter_config.json"))
    with open(os.path.join(DATA, "lora.json"), "w") as out:
        json.dump({"text": TEXT.decode(), "lr": RATE, "loss": loss.item(), "after": after.item()}, out, indent=1)
        out.write("\n")


def depth_of(name):
    """Layers below the last: the final norm is the last of 2 blocks and it, embeddings are below all."""
    return 3 if "wte" in name or "wpe" in name else 2 - int(name.split(".h.")[1].split(".")[0]) if ".h." in name else 0


def layer_decay():
    model = GPT2LMHeadModel(GPT2).eval()
    model.load_state_dict(load_file(os.path.join(ROOT, "tests/data/language_models/gpt2.safetensors")), strict=False)
    model.tie_weights()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    groups = [{"params": [p], "lr": DECAY_RATE * DECAY ** depth_of(name)} for name, p in model.named_parameters()]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    ids = torch.tensor([[IDS[byte] for byte in TEXT]])
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(ids[:, :-1]).logits[0], ids[0, 1:]).backward()
        optimizer.step()
    changes = {name: (p - before[name]).norm().item() for name, p in model.named_parameters()}
    with open(os.path.join(DATA, "layer_decay.json"), "w") as out:
        json.dump({"lr": DECAY_RATE, "layer_decay": DECAY, "steps": 3, "changes": changes}, out, indent=1)
        out.write("\n")


def main():
    shutil.rmtree(DATA, ignore_errors=True)
    os.makedirs(DATA)
    torch.manual_seed(11)
    bert()
    lora()
    layer_decay()


if __name__ == "__main__":
    main()
