#!/usr/bin/env python3
"""kiln explain-prediction: captum's values, pictures, tables, tokens, and what it refuses."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import re
import shutil
import signal
import unittest

import patterned_weights
from kilntest import ROOT, TINY, Case, grey_png, main, png, png_pixels, read, read_json

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
        self.make_pets(8)
        self.train("run")
        shutil.copy(os.path.join(DATA, "image.png"), self.path("x.png"))

    def make_pets(self, size):
        for i, name in enumerate(("cat", "dog", "fox")):
            self.write(f"pets/train/{name}/0.png", png(size, size, (80 * i, 5, 5)))

    def train(self, run, *args):
        self.run_kiln("datamodule=image_folder", "datamodule.root=pets", "model=cnn", "model.channels=[4,5]",
                      "model.hidden=6", "model.dropout=0", "trainer.max_steps=0", "trainer.threads=1", f"kiln.run.dir={run}",
                      "weights=" + os.path.join(DATA, "cnn.safetensors"), *args)

    def explained(self, run, *args):
        [line] = self.lines(run, "x.png", *args)
        return line, line["attributions"]["image"]["values"]

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

    def test_other_precisions(self):
        methods = ("integrated_gradients", "occlusion", "grad_cam")
        for precision in ("bf16-mixed", "64-true"):
            self.train(precision, f"trainer.precision={precision}")
            for method in methods:
                line, values = self.explained(precision, "--target", "dog", "--method", method,
                                              *(["--window", "4"] if method == "occlusion" else []))
                self.close(values, WANT["image"][method])
                self.assertAlmostEqual(line["score"], WANT["image"]["logits"][1], places=5)
        # Stored weights are rounded; explanations are computed in f32 from these.
        self.train("bf16-true", "trainer.precision=bf16-true")
        for method in methods:
            line, got = self.explained("bf16-true", "--method", method)
            _, want = self.explained("bf16-true", "--method", method, "trainer.precision=32-true")
            self.close(got, want, 1e-6)
        self.assertAlmostEqual(self.explained("bf16-true")[0]["sum"], line["score"] - line["baseline"], delta=1e-3)
        out, _ = self.run_kiln("predict", "bf16-true", "x.png", program="kiln")
        self.assertEqual(json.loads(out)["class"], line["target"])

    def test_grad_cam_of_published_architectures(self):
        self.make_pets(96)
        shutil.copy(os.path.join(DATA, "photo.png"), self.path("x.png"))
        for name, want in WANT["architectures"].items():
            args = ["datamodule=image_folder", "datamodule.root=pets", "trainer.max_steps=0", "trainer.threads=1"]
            self.run_kiln(*args, *want["options"], "kiln.run.dir=first")
            patterned_weights.write(self.path("first/checkpoints/last/model.safetensors"), self.path("weights.safetensors"))
            self.run_kiln(*args, *want["options"], f"kiln.run.dir={name}", "weights=weights.safetensors")
            cam = [name, "x.png", "--method", "grad_cam", "--target", str(want["target"])]
            [line] = self.lines(*cam)
            self.assertAlmostEqual(line["score"], want["score"], delta=2e-4)
            self.assertEqual(line["attributions"]["image"]["shape"], want["shape"], name)
            self.close(line["attributions"]["image"]["values"], want["grad_cam"], 1e-4)
            shutil.rmtree(self.path("first"))
            if name == "resnet":
                # The sum of a block, not a convolution in it; and the block by its own name.
                for layer in ("layer4", "layer4.1"):
                    self.assertEqual(self.lines(*cam, "--layer", layer), [line])
                self.assertNotEqual(self.lines(*cam, "--layer", "layer4.1.conv2"), [line])
                self.refused("explain-prediction", *cam, "--layer", "layr3.1", program="kiln",
                             says=["layer layr3.1: no layer of that name", "did you mean layer3.1?",
                                   "conv1, bn1, relu, maxpool, layer1.0, layer1.1"])
        # Where the last map has one place, the last one that has more; not that of a convolution in a block.
        self.run_kiln(*args, "model=resnet", "model.depth=50", "model.stem=large", "datamodule.size=[32,32]", "kiln.run.dir=small")
        line = self.lines("small", "x.png", "--method", "grad_cam")
        self.assertEqual(line[0]["attributions"]["image"]["shape"], [2, 2, 1])
        self.assertEqual(self.lines("small", "x.png", "--method", "grad_cam", "--layer", "layer3"), line)
        self.assertNotEqual(line[0]["sum"], 0.0)

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
            self.assertEqual(read_json(self.path(method, "00001.json"))["method"], method)

    def test_the_image_is_beside_the_map(self):
        size, times, margin = 8, 28, 12
        original = png_pixels(self.path("x.png"))
        for method, side in (("integrated_gradients", size), ("occlusion", size), ("grad_cam", 2)):
            self.explain("run", "x.png", "--method", method, "--target", "dog")
            pixels = png_pixels(self.path("explanations/00000.png"))
            left = 2 * margin + times * size
            self.assertEqual(len(pixels[0]), left + times * size + margin)
            # The title, if kiln can draw text, and then the image, whose pixels are enlarged to squares.
            top = next(y for y, row in enumerate(pixels) if row[margin:margin + 2] == [original[0][0]] * 2)
            for y in range(size):
                for x in range(size):
                    self.assertEqual(pixels[top + times * y + 14][margin + times * x + 14], original[y][x])
            # The most important place is red; so is the right end of the bar below, and the left one blue.
            _, values = self.explained("run", "--method", method, "--target", "dog")
            n = len(values) // side**2
            sums = [sum(values[i:i + n]) for i in range(0, len(values), n)]
            y, x = divmod(sums.index(max(sums)), side)
            square = times * size // side
            self.is_coloured(pixels[top + y * square + square // 2][left + x * square + square // 2], 0)
            bar = pixels[top + times * size + 10]
            self.is_coloured(bar[-margin - 1], 0)
            if method != "grad_cam":
                self.is_coloured(bar[left], 2)

    def is_coloured(self, pixel, channel):
        self.assertGreater(pixel[channel], max(pixel[1], pixel[2 - channel]) + 10)

    def test_a_layer_by_name(self):
        [line] = self.lines("run", "x.png", "--method", "grad_cam", "--layer", "bn1")
        self.assertEqual(line["attributions"]["image"]["shape"], [8, 8, 1])

    def test_refused(self):
        for args, says, status in (
                (["x.png", "--target", "dgo"], ["target dgo: no such class; did you mean dog? There are 3, from 0 (cat) to 2 (fox)"], 1),
                (["x.png", "--target", "3"], ["target 3: no such class; there are 3"], 1),
                (["x.png", "--method", "oclusion"], ["did you mean occlusion?"], 2),
                (["x.png", "--method", "occlusion", "--window", "9"],
                 ["a window of 9 pixels is larger than the image of 8 × 8 pixels", "expected 1 to 8"], 1),
                (["x.png", "--window", "4"], ["--window belongs to --method occlusion"], 2),
                (["x.png", "method=occlusion"], ["no key 'method'", "has the flag --method: try --method=occlusion"], 1),
                (["x.png", "--layer", "bn1"], ["--layer belongs to --method grad_cam"], 2),
                (["x.png", "--method", "grad_cam", "--steps", "9"], ["--steps belongs to --method integrated_gradients"], 2),
                (["x.png", "--output", "x.png"], ["--output: x.png: File exists"], 1),
                ([self.make_empty()], ["empty: no PNG, JPG, JPEG or WEBP file in this folder"], 1),
                (["x.png", "--steps", "0"], ["--steps 0: expected a number from 1 to 10000"], 2),
                (["x.png", "--method", "contributions"], ["task vision has no contributions"], 1),
                (["x.png", "--method", "grad_cam", "--layer", "fc9"], ["layer fc9: no layer of that name", "image; these have: conv1, bn1, conv2, bn2"], 1),
                (["pets/train/cat/1.png"], ["1.png"], 1), (["reviews.csv"], ["image"], 1), ([], ["input is missing"], 2)):
            if args == ["reviews.csv"]:
                self.write("reviews.csv", REVIEWS)
            self.refused("explain-prediction", "run", *args, program="kiln", says=says, status=status)
        self.refused("explain-prediction", "nothing", "x.png", program="kiln", says=["nothing"])

    def make_empty(self):
        os.makedirs(self.path("empty"), exist_ok=True)
        return "empty"

    def test_damaged_images_are_left_out(self):
        for name, size in (("a", None), ("b", 60), ("c", None)):
            self.write(f"new/{name}.png", read(self.path("x.png"))[:size])
        says = "1 of 3 inputs could not be read; the first: new/b.png: damaged PNG"
        _, err = self.explain("run", "new", "--output", "maps", status=1)
        self.assertIn(says, err)
        self.assertEqual(sorted(os.listdir(self.path("maps"))), [f"0000{i}.{end}" for i in (0, 2) for end in ("json", "png")])
        out, err = self.explain("run", "new", "--json", status=1)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertIn("damaged", lines[1]["error"])
        self.assertEqual([("score" in line, line["file"]) for line in lines],
                         [(True, "new/a.png"), (False, "new/b.png"), (True, "new/c.png")])
        # Of one file its own message alone.
        self.refused("explain-prediction", "run", "new/b.png", program="kiln", says=["error: new/b.png: damaged PNG"])

    def test_interrupted(self):
        for i in range(300):
            self.write(f"new/{i}.png", read(self.path("x.png")))
        process = self.start("explain-prediction", "run", "new", "--steps", "200", "--output", "maps", program="kiln")
        self.wait_for("maps/00001.json", process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, "interrupted" in err), (128 + signal.SIGINT, True), err)
        names = os.listdir(self.path("maps"))
        self.assertLess(len(names), 600)
        for name in names:
            self.assertRegex(name, r"^\d{5}\.(json|png)$")
            (read_json if name.endswith("json") else png_pixels)(self.path("maps", name))

    def test_interrupted_in_a_sample(self):
        self.make_pets(96)
        self.run_kiln("datamodule=image_folder", "datamodule.root=pets", "model=cnn", "trainer.max_steps=0", "kiln.run.dir=large")
        process = self.start("explain-prediction", "large", os.path.join(DATA, "photo.png"), "--steps", "10000", program="kiln")
        self.assertRegex(process.stderr.readline(), r"^integrating gradients +\d+%")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, "interrupted while integrating" in err), (128 + signal.SIGINT, True), err)
        self.assertFalse(os.path.exists(self.path("explanations")))

    def test_a_run_without_weights(self):
        shutil.rmtree(self.path("run/checkpoints"))
        self.refused("explain-prediction", "run", "x.png", program="kiln", says=["run: this run has saved no checkpoint"])

    def test_models_without_convolutions(self):
        for model, says in (("linear", "feature maps of convolutions"), ("vit", "attends over patches")):
            self.run_kiln(*TINY[2:], f"model={model}", "trainer.max_steps=0", f"kiln.run.dir={model}")
            self.write("digit.png", png(28, 28))
            self.refused("explain-prediction", model, "digit.png", "--method", "grad_cam", program="kiln", says=[says])
            [line] = self.lines(model, "digit.png")
            self.assertAlmostEqual(line["sum"], line["score"] - line["baseline"], delta=2e-3)
        # The embedding of the patches is a convolution, which can be named.
        [line] = self.lines("vit", "digit.png", "--method", "grad_cam", "--layer", "conv_proj")
        self.assertEqual(line["attributions"]["image"]["shape"][2], 1)

    def test_tasks_without_a_score(self):
        for split in ("train", "val"):
            self.write(f"masks/images/{split}/0.png", png(16, 16))
            self.write(f"masks/masks/{split}/0.png", grey_png(16, 16, [bytes(16)] * 16))
        self.run_kiln("task=segmentation", "datamodule=mask_folder", "datamodule.root=masks", "datamodule.classes=[a,b]",
                      "model=unet", "model.width=4", "model.levels=1", "trainer.max_steps=1", "trainer.threads=1",
                      "kiln.run.dir=unet")
        self.write("photo.png", png(16, 16))
        for method in ("integrated_gradients", "grad_cam"):
            self.refused("explain-prediction", "unet", "photo.png", "--method", method, program="kiln",
                         says=["task segmentation has no prediction of one value or one class"])


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

    def test_ngrams_of_a_bag(self):
        self.train("model=bag_of_ngrams", "datamodule.bag=ngrams", "datamodule.bag.word_ngrams=2", "datamodule.bag.buckets=1000",
                   "lr=0.05", "trainer.max_epochs=30")
        self.write("new.txt", "the dull film and the dull end\n")
        [line] = self.lines("run", "new.txt")
        bag = line["attributions"]["bag"]
        self.assertEqual(line["target"], "bad")
        # In the order of their ids: words of the vocabulary, then pairs. "the", "and" and "end" are not in it.
        self.assertEqual([token["token"] for token in bag],
                         ["dull", "film", "dull", "</s>", "the dull", "dull film", "film and", "and the", "the dull",
                          "dull end", "end </s>"])
        # The model is linear, so that occlusion gives the same; and each time a word weighs as much.
        [occlusion] = self.lines("run", "new.txt", "--method", "occlusion")
        self.close([token["weight"] for token in bag], [token["weight"] for token in occlusion["attributions"]["bag"]], 1e-6)
        self.assertAlmostEqual(bag[0]["weight"], bag[2]["weight"], places=6)
        # On the screen the strongest first, each once.
        out, _ = self.explain("run", "new.txt", "--output", "pages")
        self.assertRegex(out, r"(?m)^    \+0\.\d{4}  dull  \(2 times\)$")
        weights = [abs(float(match)) for match in re.findall(r"(?m)^  +([+-]\d\.\d{4})  ", out)]
        self.assertEqual((len(weights), weights), (9, sorted(weights, reverse=True)))
        self.assertIn(">dull</span><br>", read(self.path("pages/00000.html"), "r"))
        # Of long texts the rest is summed up.
        self.write("long.txt", " ".join(f"w{i}" for i in range(40)) + "\n")
        out, _ = self.explain("run", "long.txt")
        self.assertRegex(out, r"  the other 21 together\n")
        # Words of a second tokenizer, and both lists of ids in one model.
        self.train("model=text_cnn", "datamodule.bag=tokenizer/words", "trainer.max_epochs=2", "kiln.run.dir=both")
        [line] = self.lines("both", "new.txt", "--steps", "2")
        for name in line["attributions"]:
            self.assertEqual([token["token"] for token in line["attributions"][name]],
                             ["<unk>", "dull", "film", "<unk>", "<unk>", "dull", "<unk>"], name)

    def test_every_text_model(self):
        self.write("new.txt", "a warm joy\na dull <b> film\n")
        for model in (["bag_of_tokens", "datamodule.bag=tokenizer/ngrams", "datamodule.bag.buckets=100"], ["text_cnn"], ["text_lstm"],
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
