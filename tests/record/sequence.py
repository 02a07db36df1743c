"""Record what PyTorch says about recurrent layers, attention and transformers, for
tests/unit/nn/test_nn_sequence.c.
Needs torch; run from the root:

    python tests/record/sequence.py

Writes tests/data/models/sequence.txt. Weights and inputs are patterns, as in
models.py. Everything is computed in float64."""
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(__file__))
from models import HERE, fill, numbers, pattern, summary  # noqa: E402

torch.set_default_dtype(torch.float64)


def leaf(key, *shape):
    n = int(torch.tensor(shape).prod())
    x = torch.from_numpy(pattern(key, n).astype("float32")).double()
    return x.reshape(shape).requires_grad_()


def record(out, name, model, run, x):
    """The outputs, and the gradients of the sum of each times a pattern."""
    fill(model)
    outputs = run(model, x)
    loss = sum((y * leaf(700 + i, *y.shape).detach()).sum() for i, y in enumerate(outputs))
    loss.backward()
    out.write(f"case {name}\n")
    for y in outputs:
        out.write(f"output {numbers(y.reshape(-1))}\n")
    out.write(f"dx {numbers(x.grad.reshape(-1))}\n")
    for k, (key, p) in enumerate(model.named_parameters()):
        out.write(f"grad {key} {summary(k, p.grad)}\n")
    out.write("end\n")


def flat(result):
    """y, (h, c) or y, h as a list."""
    y, state = result
    return [y, *state] if isinstance(state, tuple) else [y, state]


def packed(model, x):
    lengths = torch.tensor([6, 2, 5])
    y, state = model(nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
    y, _ = nn.utils.rnn.pad_packed_sequence(y, total_length=6)
    return flat((y, state))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x, memory=None):
        t = x.shape[1]
        if memory is None:
            hidden = torch.tensor([[False] * 5, [False, False, False, True, True]])
            mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
            return [self.attn(x, x, x, key_padding_mask=hidden, attn_mask=mask, need_weights=False)[0]]
        return [self.attn(x, memory, memory, need_weights=False)[0]]


class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(12, 3, batch_first=True, kdim=8, vdim=8)

    def forward(self, x, memory):
        return [self.attn(x, memory, memory, need_weights=False)[0]]


def record_layers(out):
    record(out, "lstm", nn.LSTM(5, 7, 2, batch_first=True, bidirectional=True),
           lambda m, x: flat(m(x, (leaf(601, 4, 3, 7), leaf(602, 4, 3, 7)))), leaf(600, 3, 6, 5))
    record(out, "lstm_packed", nn.LSTM(5, 4, bidirectional=True), packed, leaf(600, 6, 3, 5))
    record(out, "gru", nn.GRU(5, 7, 2), lambda m, x: flat(m(x)), leaf(600, 6, 3, 5))
    record(out, "gru_packed", nn.GRU(5, 4, bidirectional=True, bias=False), packed, leaf(600, 6, 3, 5))
    record(out, "attention", Attention(), lambda m, x: m(x), leaf(600, 2, 5, 12))
    record(out, "attention_memory", Attention(), lambda m, x: m(x, leaf(601, 2, 7, 12)), leaf(600, 2, 5, 12))
    record(out, "attention_memory_width", CrossAttention(), lambda m, x: m(x, leaf(601, 2, 7, 8)),
           leaf(600, 2, 5, 12))
    for name, options in (("post", {}), ("pre", {"norm_first": True, "activation": "gelu"})):
        options = {"dropout": 0.0, "batch_first": True, "dim_feedforward": 20, **options}
        record(out, f"encoder_{name}",
               nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 3, **options), 2, nn.LayerNorm(12),
                                     enable_nested_tensor=False),
               lambda m, x: [m(x)], leaf(600, 2, 5, 12))
        causal = nn.Transformer.generate_square_subsequent_mask(5)
        record(out, f"decoder_{name}", nn.TransformerDecoder(nn.TransformerDecoderLayer(12, 3, **options), 2),
               lambda m, x: [m(x, leaf(601, 2, 7, 12), tgt_mask=causal)], leaf(600, 2, 5, 12))
    layer = nn.TransformerDecoderLayer(12, 3, **options)
    layer.multihead_attn = nn.MultiheadAttention(12, 3, batch_first=True, kdim=8, vdim=8)
    record(out, "decoder_memory_width", nn.TransformerDecoder(layer, 2),
           lambda m, x: [m(x, leaf(601, 2, 7, 8), tgt_mask=causal)], leaf(600, 2, 5, 12))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with open(os.path.join(HERE, "sequence.txt"), "w") as out:
        record_layers(out)
