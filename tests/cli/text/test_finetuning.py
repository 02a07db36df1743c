"""Fine-tuning: LoRA as peft computes and saves it, merging, resuming, messages; layer-wise learning rates as PyTorch's parameter
groups give them; freezing. Recorded values: tests/record/finetuning.py."""
import array
import json
import math
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import kilntest
from kilntest import ROOT, read, read_json

DATA = os.path.join(ROOT, "tests/data")
LORA = os.path.join(DATA, "finetuning/lora")
GPT2 = os.path.join(DATA, "language_models/gpt2.safetensors")
PEFT = read_json(os.path.join(DATA, "finetuning/lora.json"))


def tensors(path):
    """The f32 tensors of a safetensors file as arrays."""
    data = read(path)
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: array.array("f", data[8 + size + at["data_offsets"][0]:8 + size + at["data_offsets"][1]])
            for name, at in header.items() if at["dtype"] == "F32"}


def largest_difference(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


class Finetuning(kilntest.Case):
    def setUp(self):
        super().setUp()
        self.write("text.txt", PEFT["text"])
        self.gpt = ["task=language_model", "datamodule=text_blocks", "datamodule.files=[text.txt]",
                    "datamodule.val_files=[text.txt]", "datamodule.context=30", "datamodule.blocks=consecutive",
                    "datamodule.batch_size=1", "datamodule.tokenizer={_target_: tokenizer/bytes, special_tokens: []}",
                    "model=gpt", "model.width=16", "model.layers=2", "model.heads=4", "model.context=32",
                    "model.feed_forward=gelu_tanh", "optimizer=sgd", "optimizer.weight_decay=0",
                    f"lr={PEFT['lr']}", "scheduler=constant", "test=false",
                    "trainer.threads=1", f"weights={GPT2}"]

    def gpt_run(self, name, *args, steps=1):
        return self.run_kiln(*self.gpt, f"trainer.max_steps={steps}", f"kiln.run.dir={name}", *args)

    def loss(self, run, *args):
        out, _ = self.run_kiln("eval", run, "split=val", *args, program="kiln")
        return json.loads(out)["metrics"]["val/loss"]


class Lora(Finetuning):
    def test_forward_and_step_are_pefts(self):
        self.gpt_run("base", steps=0)
        self.assertAlmostEqual(self.loss("base", f"lora.weights={LORA}"), PEFT["loss"], places=5)
        self.gpt_run("tuned", f"lora.weights={LORA}")
        got = tensors(self.path("tuned/checkpoints/last/adapter_model.safetensors"))
        want = tensors(os.path.join(DATA, "finetuning/lora_step/adapter_model.safetensors"))
        self.assertEqual(set(got), set(want))
        for name in want:
            self.assertLess(largest_difference(got[name], want[name]), 1e-5, name)
        self.assertAlmostEqual(self.loss("tuned"), PEFT["after"], places=5)
        self.assertAlmostEqual(self.loss("base", "lora.weights=tuned"), PEFT["after"], places=5)

    def test_other_shape_of_other_names(self):
        """A tensor that the file has under Hugging Face's name, in another shape, is not called missing."""
        _, err = self.run_kiln(*self.gpt, "model.context=64", "trainer.max_steps=0", "kiln.run.dir=wide", status=1)
        self.assertIn("does not fit this network; different shape: position_embedding.weight (transformer.wpe.weight is [32, 16] in "
                      "the file, [64, 16] in this network)", " ".join(err.split()))

    def test_head_of_another_program(self):
        """A classifier under Hugging Face's name, of another number of classes, is initialized randomly, as one under kiln's is."""
        for name, labels in [("two", "ab"), ("three", "abc")]:
            self.write(f"{name}.csv", "text,label\n" + "".join(f"word {i},{labels[i % len(labels)]}\n" for i in range(30)))
        bert = ["task=classification", "datamodule=labeled_text", "datamodule.max_length=8", "model=bert", "model.width=16", "model.layers=1",
                "model.heads=2", "model.mlp_dim=32", "model.max_length=8", "lr=0.001", "trainer.threads=1", "test=false", "trainer.max_steps=1",
                "datamodule.tokenizer={_target_: tokenizer/bytes}"]
        self.run_kiln(*bert, "datamodule.files.train=[two.csv]", "kiln.run.dir=two")
        model = read(self.path("two/checkpoints/last/model.safetensors"))
        self.assertEqual(model.count(b'"heads.head.'), 2)
        with open(self.path("hf.safetensors"), "wb") as file:
            file.write(model.replace(b'"heads.head.', b'"classifier.'))
        out, _ = self.run_kiln(*bert, "datamodule.files.train=[two.csv]", "kiln.run.dir=same", "weights=hf.safetensors")
        self.assertRegex(out, r"weights: (\d+) of \1 tensors from")
        out, _ = self.run_kiln(*bert, "datamodule.files.train=[three.csv]", "kiln.run.dir=three", "weights=hf.safetensors")
        self.assertIn("weights: 2 classes in the file, 3 here; initialized randomly: heads.head.weight, heads.head.bias", out)

    def test_part_of_a_matrix_in_another_shape(self):
        """The message compares what the file should have: the matrices of GPT-2 have their axes the other way round."""
        data = read(GPT2)
        size, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + size])
        weight = header["transformer.h.0.attn.c_attn.weight"]
        self.assertEqual(weight["shape"], [16, 48])
        weight["shape"] = [48, 16]
        text = json.dumps(header).encode()
        with open(self.path("turned.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data[8 + size:])
        _, err = self.run_kiln(*self.gpt, "weights=turned.safetensors", "trainer.max_steps=0", "kiln.run.dir=turned", status=1)
        self.assertIn("different shape: blocks.0.qkv.weight (transformer.h.0.attn.c_attn.weight is [48, 16] in the file, [16, 48] in this "
                      "network)", " ".join(err.split()))

    def test_saves_what_peft_reads(self):
        self.gpt_run("tuned", "lora.targets=[*.qkv.weight, *.mlp_in.weight]", "lora.r=2", "lora.alpha=5", "lora.dropout=0.1")
        config = read_json(self.path("tuned/checkpoints/last/adapter_config.json"))
        self.assertEqual((config["peft_type"], config["r"], config["lora_alpha"], config["lora_dropout"]), ("LORA", 2, 5, 0.1))
        self.assertTrue(config["fan_in_fan_out"])
        self.assertIn("transformer.h.1.attn.c_attn", config["target_modules"])
        self.assertEqual(len(config["target_modules"]), 4)
        names = tensors(self.path("tuned/checkpoints/last/adapter_model.safetensors"))
        self.assertIn("base_model.model.transformer.h.0.mlp.c_fc.lora_B.weight", names)

    def test_only_adapters_train_and_have_state(self):
        self.gpt_run("tuned", "lora.targets=[*.qkv.weight]", "optimizer=adamw", "lr=0.01", steps=2)
        before, after = tensors(GPT2), tensors(self.path("tuned/checkpoints/last/model.safetensors"))
        self.assertEqual(after["token_embedding.weight"], before["transformer.wte.weight"])
        self.assertEqual(after["blocks.1.mlp_out.bias"], before["transformer.h.1.mlp.c_proj.bias"])
        self.assertTrue(any(after["blocks.0.qkv.lora_B.weight"]))
        state = tensors(self.path("tuned/checkpoints/last/trainer.safetensors"))
        self.assertEqual({name.split(".", 2)[2] for name in state if name.startswith("optimizer.")},
                         {f"blocks.{i}.qkv.lora_{part}.weight" for i in range(2) for part in "AB"})

    def test_merged_weights_give_the_same(self):
        self.gpt_run("tuned", "lora.targets=[*.qkv.weight, *.attention_out.weight, *.mlp_*.weight]", "lora.r=4", steps=5)
        out, _ = self.run_kiln("ckpt", "merge-lora", "tuned", "output=merged.safetensors", program="kiln")
        self.assertEqual(out, "merged.safetensors: adapters of 8 layers merged\n")
        self.assertFalse(any("lora" in name for name in tensors(self.path("merged.safetensors"))))
        self.gpt_run("merged", "weights=merged.safetensors", steps=0)
        self.assertAlmostEqual(self.loss("merged"), self.loss("tuned"), places=5)
        texts = [self.run_kiln("generate", run, "prompt=To be", "temperature=0", "max_tokens=20", *args, program="kiln")[0]
                 for run, args in [("tuned", []), ("merged", [])]]
        self.assertEqual(texts[0], texts[1])
        self.gpt_run("base", steps=0)
        self.assertEqual(self.run_kiln("generate", "base", "prompt=To be", "temperature=0", "max_tokens=20", "lora.weights=tuned",
                                       program="kiln")[0], texts[0])

    def test_continues_the_adapters_of_another_run(self):
        self.gpt_run("first", "lora.targets=[*.qkv.weight]", "lora.r=3", "optimizer.momentum=0", steps=2)
        self.gpt_run("second", "lora.weights=first", "optimizer.momentum=0", steps=2)
        self.gpt_run("whole", "lora.targets=[*.qkv.weight]", "lora.r=3", "optimizer.momentum=0", steps=4)
        got, want = (tensors(self.path(run, "checkpoints/last/adapter_model.safetensors")) for run in ["second", "whole"])
        for name in want:
            self.assertLess(largest_difference(got[name], want[name]), 1e-6, name)
        shutil.rmtree(self.path("first"))
        self.run_kiln("resume=second", "trainer.max_steps=3")  # its own checkpoint has them
        self.loss("second")

    def test_heads_train_besides(self):
        args = ["model=vit", "model.layers=2", "model.width=16", "model.heads=2", "model.mlp_dim=16", *kilntest.TINY[2:],
                "lora.targets=[*.in_proj_weight, *.mlp.?.weight]", "lora.train=[heads.*]", "lora.r=2"]
        self.run_kiln(*args, "kiln.run.dir=vit", "callbacks=ema")
        config = read_json(self.path("vit/checkpoints/last/adapter_config.json"))
        self.assertEqual(config["modules_to_save"], ["heads.head"])
        self.assertIn("encoder.layers.encoder_layer_1.self_attention", config["target_modules"])
        self.assertFalse(config["fan_in_fan_out"])
        names = tensors(self.path("vit/checkpoints/last/adapter_model.safetensors"))
        self.assertIn("base_model.model.heads.head.weight", names)
        self.assertIn("base_model.model.encoder.layers.encoder_layer_0.self_attention.lora_A.weight", names)
        metrics = []
        self.run_kiln("ckpt", "merge-lora", "vit", "output=merged.safetensors", program="kiln")
        self.run_kiln(*args[:-3], "kiln.run.dir=merged", "weights=merged.safetensors", "trainer.max_steps=0", "test=false")
        for run in ["vit", "merged"]:
            out, _ = self.run_kiln("eval", run + "/checkpoints/last", "split=val", program="kiln")
            metrics.append(json.loads(out)["metrics"]["val/loss"])
        self.assertAlmostEqual(*metrics, places=5)

    def test_beam_search_uses_adapters(self):
        for end, texts in [("de", ["rot 1 blau", "blau 1 rot"]), ("en", ["red 1 blue", "blue 1 red"])]:
            self.write("train." + end, "".join(text + "\n" for text in texts * 8))
        args = ["task=translation", "datamodule=parallel_text", "datamodule.files.train=[train.de,train.en]", "datamodule.source=de",
                "datamodule.target=en", "datamodule.tokenizer.vocab_size=300", "model=encoder_decoder", "model.width=16",
                "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1", "model.feedforward=16", "optimizer=adam",
                "trainer.max_epochs=2", "test=false"]
        self.run_kiln(*args, "lora.targets=[*.in_proj_weight, *.linear1.weight]", "lr=0.1", "kiln.run.dir=tuned")
        self.run_kiln("ckpt", "merge-lora", "tuned", "output=merged.safetensors", program="kiln")
        self.run_kiln(*args, "weights=merged.safetensors", "trainer.max_steps=0", "kiln.run.dir=merged")
        self.write("new.txt", "rot 1 blau\n")
        got = [json.loads(self.run_kiln("predict", run + "/checkpoints/last", "new.txt", program="kiln")[0]) for run in
               ["tuned", "merged"]]
        self.assertEqual(got[0]["translation"], got[1]["translation"])
        self.assertAlmostEqual(got[0]["score"], got[1]["score"], places=4)

    def test_resumes_to_the_same_bytes(self):
        out, err = self.run_kiln("verify-resume", "-n", "3", *self.gpt, "lora.targets=[*.qkv.weight]", "lora.dropout=0.2",
                                 "optimizer=adamw", "lr=0.01", "trainer.accumulate_grad_batches=2", "trainer.max_epochs=6",
                                 "datamodule.context=10", program="kiln")
        self.assertIn("3 kills, 3 equal", out + err)

    def test_messages(self):
        self.gpt_run("base", steps=0)
        self.gpt_run("tuned", f"lora.weights={LORA}")
        small = [a for a in self.gpt if not a.startswith("model.") and not a.startswith("weights=")] + [
            "model.width=8", "model.layers=2", "model.heads=2"]
        self.refused(*self.gpt, "lora.targets=[*.qvk.weight]", says=['lora.targets: "*.qvk.weight" matches no weight of a linear layer',
                                                                     "blocks.0.qkv.weight"])
        self.refused(*self.gpt, "lora.targets=[token_embedding.weight]", says="matches no weight of a linear layer")
        self.refused(*self.gpt, "lora.targets=[*.qkv.weight]", "lora.train=[haed.*]", says='lora.train: "haed.*" matches no parameter')
        self.refused(*self.gpt, "lora.targets=[*.qkv.weight]", "lora.r=17", says="expected at most 16")
        self.refused(*self.gpt, "lora.r=4", says="lora.targets: expected patterns")
        self.refused(*self.gpt, "lora.targets=[*.qkv.weight]", f"lora.weights={LORA}", says="remove one of them")
        self.refused(*self.gpt, f"lora.weights={LORA}", "lora.r=4", says="have rank 3, got 4")
        self.refused(*small, f"lora.weights={LORA}", says="it is of another model")
        self.refused("model=vit", f"lora.weights={LORA}", says="holds adapters of another model")
        self.refused(*self.gpt, "lora.weights=base", says="it was trained without lora")
        self.refused("resume=tuned", "lora.weights=base", says="it has its adapters", status=2)
        self.refused("eval", "tuned", f"lora.weights={LORA}x", says="has adapters of its own", program="kiln")
        self.refused("ckpt", "merge-lora", "base", "output=out.safetensors", says="has no adapters", program="kiln")
        self.refused("ckpt", "merge-lora", "base", says="expected a checkpoint and the file", status=2, program="kiln")
        self.write("dora/adapter_config.json", json.dumps({"peft_type": "LORA", "r": 3, "lora_alpha": 6, "use_dora": True}))
        self.refused(*self.gpt, "lora.weights=dora", says="use_dora is not supported")


class LayerRates(Finetuning):
    NAMES = {"wte.weight": "token_embedding.weight", "wpe.weight": "position_embedding.weight", "attn.c_attn": "qkv",
             "attn.c_proj": "attention_out", "mlp.c_fc": "mlp_in", "mlp.c_proj": "mlp_out", "ln_1": "attention_norm",
             "ln_2": "mlp_norm", "ln_f": "norm", "h.": "blocks."}

    def test_layer_decay_is_as_parameter_groups(self):
        want = read_json(os.path.join(DATA, "finetuning/layer_decay.json"))
        decay = [f"optimizer.layer_decay={want['layer_decay']}", "optimizer=adamw", f"lr={want['lr']}",
                 "optimizer.weight_decay=0.01"]
        self.gpt_run("before", steps=0)
        out, _ = self.gpt_run("after", *decay, steps=want["steps"])
        before, after = (tensors(self.path(run, "checkpoints/last/model.safetensors")) for run in ["before", "after"])
        for name, change in want["changes"].items():
            if "c_attn.bias" in name:  # keys' biases have no gradient, and Adam makes steps of its rounding
                continue
            kilns = name.removeprefix("transformer.")
            for theirs, ours in self.NAMES.items():
                kilns = kilns.replace(theirs, ours)
            got = math.sqrt(sum((x - y) ** 2 for x, y in zip(after[kilns], before[kilns])))
            self.assertLess(abs(got - change), 1e-3 * change, name)

    def test_plan_shows_rates(self):
        out, _ = self.run_kiln(*self.gpt, "optimizer.layer_decay=0.5", "--plan")
        lines = {line.split()[0]: line.split()[-1] for line in out.splitlines() if line.strip()}
        self.assertEqual([lines[layer] for layer in ["token_embedding", "blocks.0.qkv", "blocks.1.mlp_out", "norm"]],
                         ["0.125", "0.25", "0.5", "1"])
        self.refused("model=linear", "optimizer.layer_decay=0.5", says="no parameter is of a numbered layer")


class Freezing(Finetuning):
    def test_frozen_parameters_stay(self):
        self.gpt_run("before", steps=0)
        out, err = self.gpt_run("after", "+callbacks.freeze={_target_: finetuning, freeze: [blocks.*, '*embedding*']}", steps=2)
        self.assertIn("finetuning: ", out + err)
        before, after = (tensors(self.path(run, "checkpoints/last/model.safetensors")) for run in ["before", "after"])
        self.assertEqual({name for name in before if before[name] != after[name]}, {"norm.weight", "norm.bias"})
        self.refused(*self.gpt, "+callbacks.freeze={_target_: finetuning, freeze: [block.*]}",
                     says='freeze: "block.*" matches no trained parameter')


if __name__ == "__main__":
    kilntest.main()
