#!/usr/bin/env python3
"""kiln explain-prediction: captum's values, pictures, tables, tokens, and what it refuses."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import re
import shutil
import unittest

from kilntest import ROOT, TINY, Case, main, png, read, read_json

DATA = os.path.join(ROOT, "tests/data/explanations")
WANT = read_json(os.path.join(DATA, "values.json"))
REVIEWS = "text,label\n" + "".join(f"a fine warm film {i},good\na dull <b> film {i},bad\n" for i in range(8))


class Explain(Case):
    def explain(self, run, *args, **options):
        return self.run_kiln("explain-prediction", run, *args, program="kiln", **options)

    def lines(self, run, *args):
        return [json.loads(line) for line in self.explain(run, *args, "--json")[0].splitlines()]

    def close(self, got, want, tolerance=2e-5):
        self.assertEqual(len(got), len(want))
        scale = max(abs(x) for x in want)
        for a, b in zip(got, want):
            self.assertAlmostEqual(a, b, delta=tolerance * max(1.0, scale))


class Images(Explain):
    def setUp(self):
        super().setUp()
        for i, name in enumerate(("cat", "dog", "fox")):
            self.write(f"pets/train/{name}/0.png", png(8, 8, (80 * i, 5, 5)))
        self.run_kiln("datamodule=image_folder", "datamodule.root=pets", "model=cnn", "model.channels=[4,5]",
                      "model.hidden=6", "model.dropout=0", "trainer.max_steps=0", "trainer.threads=1", "kiln.run.dir=run",
                      "weights=" + os.path.join(DATA, "cnn.safetensors"))
        shutil.copy(os.path.join(DATA, "image.png"), self.path("x.png"))

    def test_values_are_captums(self):
        want = WANT["image"]
        [line] = self.lines("run", "x.png", "--target", "dog")
        self.assertEqual((line["file"], line["method"], line["target"]), ("x.png", "integrated_gradients", "dog"))
        self.assertAlmostEqual(line["score"], want["logits"][1], places=5)
        self.assertAlmostEqual(line["baseline"], want["baseline"], places=5)
        self.assertEqual(line["attributions"]["image"]["shape"], [8, 8, 3])
        self.close(line["attributions"]["image"]["values"], want["integrated_gradients"])
        # Completeness: what captum calls the convergence delta.
        self.assertAlmostEqual(line["sum"] - (line["score"] - line["baseline"]), want["delta"], places=5)
        [line] = self.lines("run", "x.png", "--target", "1", "--method", "occlusion", "--window", "4")
        self.assertEqual(line["attributions"]["image"]["shape"], [8, 8, 1])
        self.close(line["attributions"]["image"]["values"], want["occlusion"])
        [line] = self.lines("run", "x.png", "--target", "dog", "--method", "grad_cam")
        self.assertEqual(line["attributions"]["image"]["shape"], [2, 2, 1])
        self.close(line["attributions"]["image"]["values"], want["grad_cam"])

    def test_more_steps_are_more_exact(self):
        def gap(steps):
            [line] = self.lines("run", "x.png", "--target", "dog", "--steps", str(steps))
            return abs(line["sum"] - (line["score"] - line["baseline"]))
        self.assertLess(gap(500), 0.01)
        self.assertLess(gap(500), gap(1))

    def test_small_batches_give_the_same(self):
        [want] = self.lines("run", "x.png")
        [got] = self.lines("run", "x.png", "batch_size=7")
        self.close(got["attributions"]["image"]["values"], want["attributions"]["image"]["values"], 1e-6)

    def test_the_predicted_class_is_the_default(self):
        [line] = self.lines("run", "x.png")
        logits = WANT["image"]["logits"]
        self.assertEqual(line["target"], ("cat", "dog", "fox")[logits.index(max(logits))])

    def test_pictures(self):
        out, _ = self.explain("run", "x.png")
        self.assertIn("picture explanations/00000.png", out)
        self.assertRegex(out, r"sum of attributions \S+, difference of the scores")
        self.assertEqual(os.listdir(self.path("explanations")), ["00000.png"])
        for method in ("integrated_gradients", "occlusion", "grad_cam"):
            self.explain("run", "pets/train", "--method", method, "--output", method)
            self.assertEqual(sorted(os.listdir(self.path(method))),
                             [f"0000{i}.{end}" for i in range(3) for end in ("json", "png")])
            data = read(self.path(method, "00000.png"))
            self.assertEqual(data[:8] + data[16:24], b"\x89PNG\r\n\x1a\n\0\0\0\xe0\0\0\0\xe0", "224×224")
            self.assertEqual(read_json(self.path(method, "00001.json"))["method"], method)

    def test_a_layer_by_name(self):
        [line] = self.lines("run", "x.png", "--method", "grad_cam", "--layer", "bn1")
        self.assertEqual(line["attributions"]["image"]["shape"], [8, 8, 1])

    def test_refused(self):
        for args, says, status in (
                (["x.png", "--target", "dgo"], ["target dgo: no such class; did you mean dog?", "from 0 (cat) to 2 (fox)"], 1),
                (["x.png", "--target", "3"], ["target 3: no such class; there are 3"], 1),
                (["x.png", "--method", "oclusion"], ["did you mean occlusion?"], 2),
                (["x.png", "--steps", "0"], ["--steps 0: expected a number from 1 to 10000"], 2),
                (["x.png", "--method", "contributions"], ["task vision has no contributions"], 1),
                (["x.png", "--method", "grad_cam", "--layer", "fc9"], ["layer fc9: no layer of that name"], 1),
                (["pets/train/cat/1.png"], ["1.png"], 1), (["reviews.csv"], ["image"], 1), ([], ["input is missing"], 2)):
            if args == ["reviews.csv"]:
                self.write("reviews.csv", REVIEWS)
            self.refused("explain-prediction", "run", *args, program="kiln", says=says, status=status)
        self.refused("explain-prediction", "nothing", "x.png", program="kiln", says=["nothing"])

    def test_a_run_without_weights(self):
        shutil.rmtree(self.path("run/checkpoints"))
        self.refused("explain-prediction", "run", "x.png", program="kiln", says=["checkpoint"])

    def test_models_without_convolutions(self):
        for model, says in (("linear", "feature maps of convolutions"), ("vit", "attends over patches")):
            self.run_kiln(*TINY[2:], f"model={model}", "trainer.max_steps=0", f"kiln.run.dir={model}")
            self.write("digit.png", png(28, 28))
            self.refused("explain-prediction", model, "digit.png", "--method", "grad_cam", program="kiln", says=[says])
            [line] = self.lines(model, "digit.png")
            self.assertAlmostEqual(line["sum"], line["score"] - line["baseline"], delta=2e-3)


class Texts(Explain):
    def train(self, *args, weights=None):
        self.write("reviews.csv", REVIEWS)
        self.run_kiln("task=classification", "datamodule=labeled_text", "datamodule.files.train=[reviews.csv]", "optimizer=adam",
                      "lr=0.01", "trainer.threads=1", "kiln.run.dir=run", *args,
                      *([f"weights={os.path.join(DATA, weights)}", "trainer.max_steps=0"] if weights else []))

    def test_values_are_captums(self):
        want = WANT["text"]
        self.train("model=text_cnn", "model.width=4", "model.kernels=[2,3]", "model.maps=3",
                   "datamodule.tokenizer=tokenizer/bytes", weights="text_cnn.safetensors")
        self.write("new.txt", want["text"] + "\n")
        [line] = self.lines("run", "new.txt", "--target", "0")
        self.assertAlmostEqual(line["score"], want["score"], places=5)
        tokens = line["attributions"]["tokens"]
        self.assertEqual("".join(token["token"] for token in tokens), want["text"])
        self.close([token["weight"] for token in tokens], want["integrated_gradients"])

    def test_a_linear_model_is_explained_exactly(self):
        self.train("model=bag_of_tokens", "trainer.max_epochs=5")
        self.write("new.txt", "a warm bore\n")
        [gradients], [occlusion] = (self.lines("run", "new.txt", "--method", method)
                                    for method in ("integrated_gradients", "occlusion"))
        self.assertEqual([token["token"] for token in gradients["attributions"]["tokens"]], ["a", "warm", "<unk>"])
        self.close([token["weight"] for token in gradients["attributions"]["tokens"]],
                   [token["weight"] for token in occlusion["attributions"]["tokens"]], 1e-6)

    def test_every_text_model(self):
        self.write("new.txt", "a warm joy\na dull <b> film\n")
        for model in (["bag_of_tokens", "datamodule.bag=tokenizer/ngrams"], ["text_cnn"], ["text_lstm"],
                      ["bert", "model.width=16", "model.layers=1", "model.heads=2", "model.mlp_dim=16",
                       "model.max_length=16", "datamodule.max_length=16"]):
            self.train("model=" + model[0], "trainer.max_epochs=3", *model[1:], f"kiln.run.dir={model[0]}")
            for line in self.lines(model[0], "new.txt", "--steps", "300"):
                difference = line["score"] - line["baseline"]
                self.assertAlmostEqual(line["sum"], difference, delta=0.02 * max(0.05, abs(difference)), msg=model[0])

    def test_the_page_and_the_screen(self):
        self.train("model=bag_of_tokens", "trainer.max_epochs=5")
        self.write("new.txt", "a dull <b> film\n")
        out, _ = self.explain("run", "new.txt", "--output", "pages", "--target", "bad")
        self.assertTrue(re.search(r"^ +\+\d\.\d{4}  dull$", out, re.M), out)
        page = read(self.path("pages/00000.html"), "r")
        self.assertIn("&lt;", page)
        self.assertRegex(page, r'<span title="[-\d.e]+" style="background: rgba\(0, 150, 60, 1.000\)">dull</span>')
        self.assertEqual(read_json(self.path("pages/00000.json"))["target"], "bad")


class Tables(Explain):
    def setUp(self):
        super().setUp()
        self.write("houses.csv", "size,place,age,price\n" +
                   "".join(f"{i % 9},{'ab'[i % 2]},{i % 4},{'high' if i % 9 + 4 * (i % 2) > 5 else 'low'}\n" for i in range(200)))
        self.write("new.csv", "size,place,age\n7,b,1\n2,a,3\n")
        self.data = ["datamodule=table", "datamodule.target=price", "datamodule.files.train=[houses.csv]", "trainer.threads=1"]

    def test_networks(self):
        for model in ("linear", "row_encoder", "ft_transformer"):
            self.run_kiln(*self.data, "task=classification", f"model={model}", "optimizer=adam", "lr=0.01",
                          "trainer.max_epochs=10", f"kiln.run.dir={model}")
            for line in self.lines(model, "new.csv", "--steps", "300"):
                difference = line["score"] - line["baseline"]
                self.assertAlmostEqual(line["sum"], difference, delta=0.02 * max(0.05, abs(difference)), msg=model)
                names = {name for columns in line["attributions"].values() for name in columns}
                self.assertEqual(names, {"size", "place", "age"})
        out, _ = self.explain("linear", "new.csv", "--method", "occlusion")
        self.assertRegex(out, r"\+\d\.\d{4}  size = 7")

    def test_trees(self):
        _, err = self.run_kiln(*self.data, "task=trees", "trainer.max_epochs=5", "callbacks.model_checkpoint.monitor=null",
                               "callbacks.model_checkpoint.every_n_epochs=5", "kiln.run.dir=trees")
        self.assertNotIn("built without", err)
        lines = self.lines("trees", "new.csv")
        out, _ = self.run_kiln("predict", "trees", "new.csv", "task.contributions=true", program="kiln")
        for line, row in zip(lines, map(json.loads, out.splitlines())):
            sign = 1 if line["target"] == "low" else -1
            got = [value for columns in line["attributions"].values() for value in columns.values()] + [line["baseline"]]
            self.close([sign * x for x in got], row["contributions"], 1e-6)
            self.assertAlmostEqual(line["sum"], line["score"] - line["baseline"], places=4)
            self.assertEqual(line["target"], row["class"])
        self.refused("explain-prediction", "trees", "new.csv", "--method", "occlusion", program="kiln",
                     says=["explained by contributions alone"])


if __name__ == "__main__":
    main()
