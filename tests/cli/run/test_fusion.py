#!/usr/bin/env python3
"""model=fusion: encoders of several inputs in one model; weights_of: an encoder of one run in another."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import struct
import unittest

from kilntest import SHORT, Case, main, png, read

SMALL = ["task=classification", "datamodule=captioned_shapes", "datamodule.train_count=256", "datamodule.val_count=64",
         "datamodule.test_count=64", "datamodule.size=16", "optimizer=adamw", "scheduler=constant", "trainer.threads=1", "trainer.max_epochs=2"]
FUSION = ["model=fusion", "model.image_encoder.channels=[4,4]", "model.image_encoder.hidden=8", "model.width=8",
          "model.hidden=[8]", "model.text_encoder.width=8", "model.text_encoder.maps=4"]


def tensors(run):
    data = read(os.path.join(run, "checkpoints/last/model.safetensors"))
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    return {name: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
            for name, entry in head.items() if name != "__metadata__"}


class Fusion(Case):
    def test_any_encoders(self):
        transformer = "{_target_: model/transformer, embed: {_target_: model/%s}, width: 8, layers: 1, heads: 2, mlp_dim: 8}"
        for image, text in (("{_target_: model/cnn, channels: [4], hidden: 8}", "{_target_: model/text_lstm, width: 8, hidden: 8}"),
                            (transformer % "patch_embedding", transformer % "token_embedding"),
                            ("null", "{_target_: model/bag_of_tokens}")):
            self.run_kiln(*SMALL, "model=fusion", f"model.image_encoder={image}", f"model.text_encoder={text}",
                          "trainer.max_epochs=1")

    def test_no_encoder_and_missing_data(self):
        self.refused(*SMALL, "model=fusion", "model.image_encoder=null", "model.text_encoder=null",
                     says=["fusion needs an encoder"])
        self.refused(*SMALL, *FUSION, "model.row_encoder=row_encoder",
                     says=["row_encoder: the data have no numbers or categories"])

    def test_predictions_take_an_image_and_a_caption(self):
        self.run_kiln(*SMALL, *FUSION, "kiln.run.dir=run")
        self.write("x.png", png(20, 20))
        self.write("new.jsonl", '{"image": "x.png", "caption": "a red circle"}\n{"image": "x.png", "caption": "THE"}\n')
        out, _ = self.run_kiln("predict", "run", "new.jsonl", program="kiln")
        self.assertEqual(len(out.splitlines()), 2)
        out, _ = self.run_kiln("explain-prediction", "run", "new.jsonl", "--json", "--steps", "300", program="kiln")
        line = json.loads(out.splitlines()[0])
        self.assertEqual([token["token"] for token in line["attributions"]["tokens"]], ["a", "red", "circle"])
        self.assertEqual(line["attributions"]["image"]["shape"], [16, 16, 3])
        self.assertAlmostEqual(line["sum"], line["score"] - line["baseline"], delta=0.02)

    @unittest.skipIf(SHORT, "trains for a minute")
    def test_both_are_needed(self):
        accuracy = {}
        for name, args in (("both", []), ("image", ["model.text_encoder=null"]), ("text", ["model.image_encoder=null"])):
            self.run_kiln("experiment=captioned-shapes/fusion", *args, f"kiln.run.dir={name}", "trainer.threads=2",
                          *([] if name == "both" else ["trainer.max_epochs=1"]))
            with open(self.path(name, "summary.json")) as file:
                accuracy[name] = json.load(file)["metrics"]["test/accuracy"]["last"]["value"]
        self.assertGreater(accuracy["both"], 0.95)
        self.assertLess(abs(accuracy["image"] - 0.5), 0.05)
        self.assertLess(abs(accuracy["text"] - 0.5), 0.05)


class Tables(Case):
    """A column of texts beside numbers."""

    def setUp(self):
        super().setUp()
        titles = ["a quiet film", "one more film", "3", "the loud film"]
        self.write("films.csv", "title,year,note,rating\n" + "".join(
            f"{titles[i * 7 % 4]} {i},{1990 + i % 7},{'' if i % 5 else 'loud'},{'high' if i * 7 % 4 in (0, 2) else 'low'}\n"
            for i in range(256)))
        self.write("new.csv", "title,year,note\na quiet day,1993,\nthe loud night,1993,loud\n")
        self.write("new.jsonl", '{"title": "a quiet day", "year": 1993}\n{"title": 3, "year": 1993, "note": "loud"}\n')
        self.args = ["task=classification", "datamodule=table", "datamodule.target=rating",
                     "datamodule.files.train=[films.csv]", "datamodule.val_fraction=0.25", "+datamodule.columns={title: text, note: "
                     "text}", "optimizer=adamw", "lr=0.02", "scheduler=constant", "trainer.threads=1", "trainer.max_epochs=8"]
        self.fusion = ["datamodule.tokenizer=words", "datamodule.batch_size=16", "model=fusion", "model.image_encoder=null",
                       "model.row_encoder=row_encoder", "model.text_encoder=bag_of_tokens", "model.width=8", "model.hidden=[8]"]

    def accuracy(self, run):
        with open(self.path(run, "summary.json")) as file:
            return json.load(file)["metrics"]["val/accuracy"]["best"]["value"]

    def test_texts_decide(self):
        self.run_kiln(*self.args, *self.fusion, "kiln.run.dir=run")
        self.run_kiln(*self.args, *self.fusion, "model.text_encoder=null", "kiln.run.dir=numbers")
        self.assertGreater(self.accuracy("run"), 0.95)
        self.assertLess(self.accuracy("numbers"), 0.8)
        out, _ = self.run_kiln("predict", "run", "new.csv", program="kiln")
        self.assertEqual([json.loads(line)["class"] for line in out.splitlines()], ["high", "low"])
        out, _ = self.run_kiln("predict", "run", "new.jsonl", program="kiln")
        self.assertEqual([json.loads(line)["class"] for line in out.splitlines()], ["high", "high"])
        out, _ = self.run_kiln("explain-prediction", "run", "new.csv", "--json", program="kiln")
        tokens = json.loads(out.splitlines()[1])["attributions"]["tokens"]
        self.assertEqual([token["token"] for token in tokens][:2], ["the", "loud"])

    def test_a_resumed_run_has_the_same_tokens(self):
        self.run_kiln(*self.args, *self.fusion, "kiln.run.dir=whole", "trainer.max_epochs=3")
        self.run_kiln(*self.args, *self.fusion, "kiln.run.dir=cut", "trainer.max_epochs=1")
        self.run_kiln("resume=cut", "trainer.max_epochs=3")
        self.assertEqual(tensors(self.path("cut")), tensors(self.path("whole")))

    def test_without_a_tokenizer_they_are_left_out(self):
        self.refused(*self.args, *self.fusion[1:], says=["text_encoder: the data have no tokens (of a table: a column of kind "
                                                         "text"])
        out, _ = self.run_kiln(*self.args, "model=row_encoder", "trainer.max_epochs=1")
        self.assertIn("a sample   x f32 [1], label i32", out)


class WeightsOf(Case):
    def setUp(self):
        super().setUp()
        self.run_kiln(*SMALL, "model=cnn", "model.channels=[4,4]", "model.hidden=8", "task=vision", "kiln.run.dir=cnn")

    def test_a_frozen_encoder_of_another_run(self):
        args = [*SMALL, *FUSION, "+weights_of.image_encoder=cnn",
                "+callbacks.freeze={_target_: finetuning, freeze: ['image_encoder.conv*', 'image_encoder.fc1.*']}"]
        out, _ = self.run_kiln(*args, "kiln.run.dir=run")
        self.assertRegex(out, r"weights: image_encoder: \d+ of \d+ tensors from \S*cnn\S*model\.safetensors")
        self.assertRegex(out, r"initialized randomly: image_encoder\.fc2\.\w+, image_encoder\.fc2\.\w+")
        there, here = tensors(self.path("cnn")), tensors(self.path("run"))
        for name in ("conv1.weight", "conv2.weight", "fc1.weight"):
            self.assertEqual(here["image_encoder." + name], there[name])
        self.assertIn("weights_of:", read(self.path("run/.kiln/config.yaml"), "r"))
        # A resumed run is the same run, and reads them no more.
        self.run_kiln(*args, "kiln.run.dir=cut", "trainer.max_steps=4", "callbacks.model_checkpoint.every_n_train_steps=4")
        os.rename(self.path("cnn"), self.path("moved"))
        self.run_kiln("resume=cut", "trainer.max_steps=-1")
        self.assertEqual(tensors(self.path("cut")), here)
        self.refused("resume=cut", "+weights_of.image_encoder=moved", says=["it has its weights"], status=2)

    def test_an_encoder_of_a_fusion(self):
        self.run_kiln(*SMALL, *FUSION, "kiln.run.dir=first")
        out, _ = self.run_kiln(*SMALL, *FUSION, "+weights_of.image_encoder=first", "+weights_of.text_encoder=first", "trainer.max_steps=0",
                               "kiln.run.dir=second")
        self.assertIn("below image_encoder.", out)
        there, here = tensors(self.path("first")), tensors(self.path("second"))
        for name in there:
            if name.startswith(("image_encoder.", "text_encoder.")):
                self.assertEqual(here[name], there[name], name)

    def test_an_encoder_of_a_fusion_alone(self):
        """Trained inside a fusion, used frozen in a model of its own; by the part's name in that run."""
        self.run_kiln(*SMALL, *FUSION, "kiln.run.dir=first")
        alone = [*SMALL, "model=cnn", "model.channels=[4,4]", "model.hidden=8", "task=vision"]
        freeze = "+callbacks.freeze={_target_: finetuning, freeze: ['conv*', 'fc1.*']}"
        out, _ = self.run_kiln(*alone, "+weights_of.all=first#image_encoder", freeze, "kiln.run.dir=alone")
        self.assertRegex(out, r"weights: all: \d+ of \d+ tensors from \S*first\S*model\.safetensors below image_encoder\.")
        there, here = tensors(self.path("first")), tensors(self.path("alone"))
        for name in ("conv1.weight", "conv2.weight", "fc1.weight"):
            self.assertEqual(here[name], there["image_encoder." + name])
        for args, says in ((["+weights_of.all=first#sound_encoder"], ['nothing below "sound_encoder." in', "fits this part"]),
                           (["+weights_of.all=nowhere#image_encoder"], ["nowhere"])):
            self.refused(*alone, *args, says=says)
        # a file whose name has the character
        os.rename(self.path("first/checkpoints/last/model.safetensors"), self.path("with#image_encoder.safetensors"))
        out, _ = self.run_kiln(*SMALL, *FUSION, "+weights_of.image_encoder='with#image_encoder.safetensors'", "trainer.max_steps=0",
                               "kiln.run.dir=second")
        self.assertIn("below image_encoder.", out)

    def test_refused(self):
        for args, says in (
                (["+weights_of.image_encoder=cnn", "model.image_encoder.channels=[4,8]"],
                 ["weights_of.image_encoder", "conv2.weight of", "is [4, 4, 3, 3], but image_encoder.conv2.weight of this network "
                  "is [8, 4, 3, 3]"]),
                (["+weights_of.sound_encoder=cnn"], ['no parameter\'s name begins with "sound_encoder."']),
                (["+weights_of.text_encoder=cnn"], ["nothing in", "fits this part"]),
                (["+weights_of.image_encoder=nowhere.safetensors"], ["nowhere.safetensors"]),
                (["weights=cnn"], ["nothing in", "to load it into a part: +weights_of.image_encoder=cnn in place of weights"]),
                (["model.image_encoder.weights=cnn"], ["model.image_encoder has no key 'weights'; did you mean 'weights'?"])):
            self.refused(*SMALL, *FUSION, *args, says=says)


class OneEncoder(Case):
    """One node of YAML, a transformer encoder, over patches, tokens and columns; and its trained layers from one to the
    next."""

    def test_three_fields(self):
        self.write("conf/model/encoder.yaml", "_target_: model/transformer\nwidth: 16\nlayers: 2\nheads: 2\nmlp_dim: 32\n")
        for kind in ("patch", "token", "column"):
            self.write(f"conf/model/{kind}_encoder.yaml",
                       f"defaults: [encoder]\nembed:\n  _target_: model/{kind}_embedding\n")
        self.write("reviews.csv", "text,label\n" + "a warm film,good\na dull film,bad\n" * 8)
        self.write("rows.csv", "size,place,price\n" + "".join(f"{i % 9},{'ab'[i % 2]},{'low' if i % 9 < 5 else 'high'}\n"
                                                              for i in range(64)))
        every = ["--config-dir", "conf", "optimizer=adamw", "trainer.max_epochs=1", "trainer.threads=1"]
        self.run_kiln(*every, *SMALL[1:5], "model=patch_encoder", "task=vision", "kiln.run.dir=images")
        for name, start, args in (
                ("texts", "images", ["model=token_encoder", "datamodule=labeled_text", "datamodule.files.train=[reviews.csv]"]),
                ("rows", "texts", ["model=column_encoder", "datamodule=table", "datamodule.files.train=[rows.csv]",
                                   "datamodule.target=price"])):
            out, _ = self.run_kiln(*every, *args, "task=classification", "+weights_of={encoder.layers: %s}" % start,
                                   "trainer.max_steps=0", f"kiln.run.dir={name}")
            self.assertIn("weights: encoder.layers: 24 of 24 tensors from", out)
            there, here = tensors(self.path(start)), tensors(self.path(name))
            layers = [key for key in here if key.startswith("encoder.layers.")]
            self.assertEqual(len(layers), 24)
            for key in layers:
                self.assertEqual(here[key], there[key])


if __name__ == "__main__":
    main()
