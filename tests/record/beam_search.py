"""Record what beam search of Hugging Face's transformers finds, with a model whose logits are sums of two tables:
of the token before and of the place.

    PEER/bin/python tests/record/beam_search.py     (a Python with torch and transformers)

writes tests/data/beam_search.h, which tests/unit/train/step/test_beams_transformers.c reads."""
import pathlib

import torch
import transformers
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

IDS, END, SAMPLES, PLACES, BEAMS = 9, 2, 4, 12, 5
torch.manual_seed(3)
# The row IDS of `before` is of the first token, where nothing comes before.
before, place = 2 * torch.randn(SAMPLES, IDS + 1, IDS), torch.randn(SAMPLES, PLACES, IDS)
place[:, :, END] -= 1  # sequences of several tokens


class Tables(PreTrainedModel, GenerationMixin):
    """Ids IDS + s begin the text of sample s, and have no probability."""
    config_class = PretrainedConfig

    def __init__(self, config):
        super().__init__(config)
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def prepare_inputs_for_generation(self, input_ids, **_):
        return {"input_ids": input_ids}

    def forward(self, input_ids, attention_mask=None, return_dict=True, **_):
        sample, last, n = input_ids[:, 0] - IDS, input_ids[:, -1].clamp(max=IDS), input_ids.shape[1] - 1
        logits = torch.full((len(input_ids), IDS + SAMPLES), -torch.inf)
        logits[:, :IDS] = before[sample, last] + place[sample, n]
        return CausalLMOutput(logits=logits[:, None, :])


def floats(name, values):
    text = [f"{value:.9g}" for value in values.flatten().tolist()]
    text = [value + ("f" if "." in value or "e" in value else ".0f") for value in text]
    lines = ["    " + ", ".join(text[i:i + 8]) + "," for i in range(0, len(text), 8)]
    return f"static const float {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


config = PretrainedConfig(vocab_size=IDS + SAMPLES, num_hidden_layers=1, is_encoder_decoder=False)
model = Tables(config).eval()
out = pathlib.Path(__file__).resolve().parents[1] / "data" / "beam_search.h"
with out.open("w") as file:
    file.write(f"/* Written by tests/record/beam_search.py with transformers {transformers.__version__}. */\n")
    file.write(f"enum {{ IDS = {IDS}, END = {END}, SAMPLES = {SAMPLES}, PLACES = {PLACES} }};\n")
    file.write(floats("before", before) + floats("place", place))
    file.write("static const Search searches[] = {\n")
    for beams, length_penalty in [(1, 1.0), (2, 1.0), (4, 0.6), (BEAMS, 1.0), (BEAMS, 0.0), (BEAMS, 0.6), (BEAMS, 2.0), (BEAMS, -0.5)]:
        torch_out = model.generate(
            torch.arange(IDS, IDS + SAMPLES)[:, None], num_beams=beams,
            num_return_sequences=beams, length_penalty=length_penalty, early_stopping=False, do_sample=False, max_new_tokens=PLACES,
            eos_token_id=END, pad_token_id=0, use_cache=False, return_dict_in_generate=True, output_scores=True)
        file.write(f"    {{ {beams}, {length_penalty}, {{\n")
        scores = torch_out.sequences_scores.tolist() if beams > 1 else [0.0] * SAMPLES
        for row, score in zip(torch_out.sequences[:, 1:].tolist(), scores, strict=True):
            ids = row[:row.index(END)] if END in row else row
            text = f"{score:.9g}"
            file.write(f"        {{ {len(ids)}, {{ {', '.join(map(str, ids)) or 0} }}, {text if '.' in text else text + '.0'} }},\n")
        file.write("    } },\n")
    file.write("};\n")
