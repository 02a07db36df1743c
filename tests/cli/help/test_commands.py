"""eval, predict, plugins, installing and embedding."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import json
import os
import subprocess

from kilntest import BUILD, ROOT, TINY, Case, main, png, read, read_json


class Checkpoints(Case):
    def test_eval_remembers_the_config(self):
        self.run_kiln(*TINY, "callbacks.model_checkpoint.save_top_k=-1", "kiln.run.dir=run")
        out, _ = self.run_kiln("eval", "ckpt_path=run", program="kiln")
        tested = json.loads(out)
        summary = read_json(self.path("run/summary.json"))
        best, _ = self.run_kiln("eval", "ckpt_path=run/checkpoints/best", program="kiln")
        self.assertAlmostEqual(json.loads(best)["metrics"]["test/accuracy"],
                               summary["metrics"]["test/accuracy"]["last"]["value"], places=6)
        self.assertIn("test/loss", tested["metrics"])
        # An override reaches what refers to it, ${lr}; not when the run has other values since.
        _, err = self.run_kiln("eval", "ckpt_path=run", "lr=fast", program="kiln", status=1)
        self.assertIn("optimizer.lr: expected a number", err)
        self.run_kiln("resume=run", "trainer.max_epochs=3", "datamodule.test_count=20")
        for checkpoint, samples in [("last", 20), (os.path.basename(tested["checkpoint"]), tested["samples"])]:
            out, _ = self.run_kiln("eval", f"ckpt_path=run/checkpoints/{checkpoint}", program="kiln")
            self.assertEqual(json.loads(out)["samples"], samples)

    def test_eval_validates(self):
        """The metrics of the best epoch's validation, once more; also where callbacks monitor them."""
        self.run_kiln(*TINY, "callbacks=early_stopping", "kiln.run.dir=run")
        out, err = self.run_kiln("eval", "ckpt_path=run/checkpoints/best", "split=val", program="kiln")
        metrics, epoch = json.loads(out)["metrics"], int(os.readlink(self.path("run/checkpoints/best"))[6:9])
        with open(self.path("run/metrics.csv"), newline="") as f:
            row = [r for r in csv.DictReader(f) if r["val/loss"] and int(r["epoch"]) == epoch][0]
        for name in ["val/loss", "val/accuracy"]:
            self.assertAlmostEqual(metrics[name], float(row[name]), places=6)
        self.assertEqual(sorted(metrics), ["val/accuracy", "val/loss"])
        self.assertEqual(json.loads(out)["samples"], 64)
        out, _ = self.run_kiln("eval", "ckpt_path=run", "split=test", program="kiln")
        self.assertIn("test/loss", json.loads(out)["metrics"])
        _, err = self.run_kiln("eval", "ckpt_path=run", "split=vla", program="kiln", status=2)
        self.assertIn("split=vla: expected train, val or test", err)
        _, err = self.run_kiln("eval", "ckpt_path=run", "split=val", "trainer.limit_val_batches=0", program="kiln",
                               status=1)
        self.assertIn("has no val samples (or limit_val_batches=0)", err)

    def test_eval_of_training_samples(self):
        """In order, all of them, and not augmented: as the same images for validation are."""
        for i in range(14):
            for split in ("train", "val"):
                self.write(f"data/{split}/{'ab'[i % 2]}/{i:02d}.png", png(8, 8, (250 * (i % 2), 17 * i, 90)))
        augmented = ["datamodule=image_folder", "datamodule.root=data", "datamodule.drop_last=true",
                     "datamodule.transforms=[flip,{_target_: crop, size: [8], padding: 3}]",
                     "datamodule.batch_transforms=[mixup]", "datamodule.sampler=balanced"]
        self.run_kiln(*augmented, "model=mlp", "model.hidden=[8]", "batch_size=4", "trainer.max_epochs=2",
                      "trainer.threads=1", "test=false", "kiln.run.dir=run")
        val, train = (json.loads(self.run_kiln("eval", "ckpt_path=run", split, program="kiln")[0])
                      for split in ("split=val", "split=train"))
        self.assertEqual(val["samples"], 14)
        self.assertEqual(train["samples"], 14)
        self.assertEqual(sorted(train["metrics"]), ["val/accuracy/train", "val/loss/train"])
        for name, value in val["metrics"].items():
            self.assertEqual(train["metrics"][name + "/train"], value)
        out, _ = self.run_kiln("eval", "ckpt_path=run", "split=train", "trainer.limit_train_batches=2", program="kiln")
        self.assertEqual(json.loads(out)["samples"], 8)
        one, other = (self.run_kiln("predict", "ckpt_path=run", split, program="kiln")[0]
                      for split in ("split=val", "split=train"))
        self.assertEqual(len(one.splitlines()), 14)
        self.assertEqual(one, other.replace("data/train", "data/val"))

    def test_eval_draws(self):
        _, err = self.run_kiln(*TINY, "kiln.run.dir=run")
        if "no plots" in err:
            self.skipTest("built without cairo")
        before = sorted(os.listdir(self.path("run/plots")))
        for split in ["val", "test"]:
            self.run_kiln("eval", "ckpt_path=run", f"split={split}", f"plots={split}", program="kiln")
            self.assertEqual(sorted(os.listdir(self.path(split))), [f"{split}_confusion.png", f"{split}_samples.png"])
            self.assertEqual(read(self.path(split, f"{split}_samples.png"))[:8], b"\x89PNG\r\n\x1a\n")
        # The last checkpoint is what was tested at the end of the run.
        self.assertEqual(read(self.path("test/test_samples.png")), read(self.path("run/plots/test_samples.png")))
        self.run_kiln("eval", "ckpt_path=run", program="kiln")
        self.assertEqual(sorted(os.listdir(self.path("run/plots"))), before, "without plots= nothing is drawn")
        _, err = self.run_kiln("eval", "ckpt_path=run", "plots=none", "callbacks.prediction_plots.output=scores",
                               program="kiln")
        self.assertIn('have no output "scores"', err)
        _, err = self.run_kiln("eval", "ckpt_path=run", "plots=no/where", program="kiln", status=1)
        self.assertIn("no/where: No such file or directory", err)

    def test_a_run_is_named_in_one_way(self):
        """RUN of every command: a run folder, a checkpoint in it, last, best; = in a folder's name does not matter."""
        run = "outputs/lr=0.1/seed=1"
        self.run_kiln(*TINY, "callbacks=[default,flight_recorder]", "callbacks.flight_recorder.keep=true",
                      "kiln.run.dir=" + run)
        self.write("x.png", png(28, 28))
        expected = json.loads(self.run_kiln("eval", "ckpt_path=" + run, program="kiln")[0])["metrics"]
        image = self.run_kiln("predict", "ckpt_path=" + run, "input=x.png", program="kiln")[0]
        for name in [run, run + "/", run + "/checkpoints/last", run + "/checkpoints", self.path(run), "last", "best"]:
            with self.subTest(name=name):
                out, _ = self.run_kiln("eval", name, program="kiln")
                if name != "best":
                    self.assertEqual(json.loads(out)["metrics"], expected)
                out, _ = self.run_kiln("predict", name, "x.png", program="kiln")
                if name != "best":
                    self.assertEqual(out, image)
                out, _ = self.run_kiln("explain", name, "seed", program="kiln")
                self.assertIn("seed: 1", out)
                out, _ = self.run_kiln("ckpt", "verify", name, program="kiln")
                self.assertIn(": whole", out)
                out, _ = self.run_kiln("replay", name, program="kiln")
                self.assertIn("equal: every loss", out)
        # Overrides stand anywhere beside it, and words in any order.
        out, _ = self.run_kiln("eval", "datamodule.test_count=20", "last", "split=test", program="kiln")
        self.assertEqual(json.loads(out)["samples"], 20)
        out, _ = self.run_kiln("predict", "output=p.jsonl", "last", "split=val", program="kiln")
        self.assertEqual(len(read(self.path("p.jsonl")).splitlines()), 64)
        self.assertEqual(self.run_kiln("predict", "ckpt_path=last", "x.png", program="kiln")[0], image)
        os.mkdir(self.path("lr=0.2"))  # an override stays one
        self.run_kiln("eval", "last", "lr=0.2", program="kiln")

    def test_a_run_that_is_not_there(self):
        for command in ["eval", "predict", "replay", "explain"]:
            self.refused(command, program="kiln", says=[f"which run? `kiln {command} RUN"], status=2)
            self.refused(command, "nowhere", *["x.png"] * (command == "predict"), program="kiln",
                         says=["error: nowhere: there is no such folder"])
            self.refused(command, "last", *["x.png"] * (command == "predict"), program="kiln",
                         says=["error: last: there is no run folder below outputs/"])
        self.refused("eval", "ckpt_path=nowhere", program="kiln", says=["error: nowhere: there is no such folder"])
        self.refused(*TINY, "ckpt_path=nowhere", says=["ckpt_path=nowhere: there is no such folder"])
        self.refused(*TINY, "weights=last", says=["weights: last: there is no run folder"])
        self.refused("eval", "last", "lr=1", "more", program="kiln", says=["more: unexpected word"], status=2)
        self.refused("predict", "last", "a.png", "b.png", program="kiln", status=2,
                     says=["b.png: the input is one file or folder, and a.png was given before it"])
        self.refused("predict", "last", "a.png", "split=val", program="kiln", says=["both input and split are given"], status=2)

    def test_predict_prints_a_line_for_each_image(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        self.write("images/a.png", png(28, 28))
        self.write("images/deep/b.png", png(40, 30))
        out, _ = self.run_kiln("predict", "ckpt_path=run", "input=images", program="kiln")
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.assertEqual(len(line["probabilities"]), 10)
            self.assertAlmostEqual(sum(line["probabilities"]), 1.0, places=4)
            self.assertEqual(line["class"], str(max(range(10), key=lambda i: line["probabilities"][i])))
            self.assertTrue(line["file"].endswith(".png"))

    def test_bad_checkpoints_are_refused(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        self.refused("eval", "ckpt_path=nowhere", program="kiln", says=["nowhere"])
        self.refused("eval", program="kiln", says=["ckpt_path"], status=2)
        other = [t for t in TINY if not t.startswith("model")] + ["model=linear"]
        self.refused(*other, "ckpt_path=run", "kiln.run.dir=other", says=["weight"])
        target = os.path.realpath(self.path("run/checkpoints/last/model.safetensors"))
        data = read(target)
        with open(target, "wb") as f:
            f.write(data[:len(data) // 2])
        self.refused("eval", "ckpt_path=run", program="kiln", says=["model.safetensors"])


class Plugins(Case):
    def test_folder_beside_a_plugin(self):
        self.write("p/resmlp.so", read(os.path.join(BUILD, "examples/plugin/resmlp.so")))
        self.write("p/conf/model/small.yaml", "_target_: resmlp\nwidth: 8\n")
        self.write("p/conf/model/mlp.yaml", "_target_: mlp\nhidden: [5]\n")
        show = ["--plugin", "p/resmlp.so", "--cfg", "job", "--package", "model"]
        self.assertIn("width: 8\n", self.run_kiln(*show, "model=small")[0])
        self.assertIn("hidden: [5]\n", self.run_kiln(*show, "model=mlp")[0], "before what ships")
        self.write("own/model/mlp.yaml", "_target_: mlp\nhidden: [6]\n")
        out, _ = self.run_kiln(*show, "model=mlp", "--config-dir", "own")
        self.assertIn("hidden: [6]\n", out, "behind the user's own")
        self.assertIn("p/conf", self.run_kiln("--plugin", "p/resmlp.so", "--info", "searchpath")[0])
        self.assertIn("small", self.run_kiln("--plugin", "p/resmlp.so", "--help")[0])

    def test_example_plugin_trains(self):
        plugin = os.path.join(BUILD, "examples/plugin/resmlp.so")
        self.run_kiln("--plugin", plugin, *TINY[2:], "model=resmlp", "model.width=24", "kiln.run.dir=run")
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "finished")
        out, _ = self.run_kiln("list", "--plugin", plugin, program="kiln")
        self.assertIn("resmlp", out)
        self.refused("--plugin", plugin, "model=resmlp", "model.width=-1", says=["model.width"])

    def test_bad_plugins_are_refused(self):
        self.refused("--plugin", "nothing.so", says=["nothing.so"])
        self.write("text.so", "not a library")
        self.refused("--plugin", self.path("text.so"), says=["text.so"])


class Embedding(Case):
    def test_install_and_link(self):
        if "asan" in BUILD:
            return
        variant = os.path.basename(BUILD)
        subprocess.run(["make", "--no-print-directory", f"VARIANT={variant}", "WERROR=1", "install",
                        f"DESTDIR={self.dir}", "PREFIX=/opt/kiln"], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        prefix = self.path("opt/kiln")
        out = subprocess.run([f"{prefix}/bin/train", "--cfg", "job"], cwd=self.dir, check=True,
                             capture_output=True, text=True).stdout
        self.assertIn("lr:", out)
        for flags in [[f"-L{prefix}/lib", "-lkiln"]]:
            subprocess.run(["cc", f"-I{prefix}/include", os.path.join(ROOT, "examples/embed/embed.c"),
                            "-o", self.path("embed"), *flags], check=True)
            out = subprocess.run([self.path("embed"), *TINY], cwd=self.dir, check=True, capture_output=True,
                                 text=True, env=dict(os.environ, LD_LIBRARY_PATH=f"{prefix}/lib")).stdout
            self.assertIn("finished", out)


if __name__ == "__main__":
    main()
