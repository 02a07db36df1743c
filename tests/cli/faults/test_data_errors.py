"""Bad data, bad checkpoints and full disks: a clear message, status 1 and no partial files."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import gzip
import json
import os
import resource
import shutil
import struct
import subprocess
import time

from kilntest import BUILD, TINY, Case, build_plugin, main, png, read, read_json

FOLDER = ["datamodule=image_folder", "datamodule.root=data", "model=mlp", "model.hidden=[8]",
          "datamodule.batch_size=2", "trainer.max_epochs=1", "trainer.threads=1"]


def idx(shape, data):
    return struct.pack(">I", 0x800 + len(shape)) + b"".join(struct.pack(">I", n) for n in shape) + data


class Folder(Case):
    def images(self, classes=("cat", "dog"), size=8, n=4):
        for split in ["train", "val", "test"]:
            for i, name in enumerate(classes):
                for k in range(n):
                    self.write(f"data/{split}/{name}/{k}.png", png(size, size, (40 * i, 20 * k, 9)))

    def test_a_good_folder_trains(self):
        self.images()
        self.run_kiln(*FOLDER, "kiln.run.dir=run")
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "finished")

    def test_missing_folder(self):
        self.refused(*FOLDER, says=["data"])

    def test_one_class(self):
        self.images(classes=("cat",))
        self.refused(*FOLDER, says=["data/train", "cat", "two"])

    def test_empty_class(self):
        self.images()
        os.mkdir(self.path("data/train/bird"))
        self.refused(*FOLDER, says=["bird"])

    def test_corrupt_png_is_named(self):
        self.images()
        good = read(self.path("data/train/cat/1.png"))
        self.write("data/train/cat/1.png", good[:60] + b"\xff\xff" + good[62:])
        _, err = self.run_kiln(*FOLDER, "kiln.run.dir=run", status=1)
        self.assertIn("data/train/cat/1.png", err)
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "failed")
        out, err = self.run_kiln(*FOLDER, "datamodule.on_error=skip", "kiln.run.dir=skipped")
        self.assertIn("data/train/cat/1.png", out + err)
        self.assertEqual(read_json(self.path("skipped/summary.json"))["status"], "finished")

    def test_text_file_named_png(self):
        self.images()
        self.write("data/train/dog/2.png", "this is text\n")
        self.refused(*FOLDER, says=["data/train/dog/2.png", "PNG"])

    def test_images_too_small_for_the_network(self):
        self.images(size=2)
        network = [a for a in FOLDER if not a.startswith("model")]
        self.refused(*network, "model=cnn", says=["2"])

    def test_different_sizes_need_a_size(self):
        self.images()
        self.write("data/train/dog/2.png", png(9, 8))
        self.refused(*FOLDER, says=["2.png", "9", "size"])
        self.run_kiln(*FOLDER, "datamodule.size=[8,8]", "kiln.run.dir=run")


class Idx(Case):
    def setUp(self):
        super().setUp()
        self.write("data/train-images-idx3-ubyte", idx((20, 4, 4), bytes(20 * 16)))
        self.write("data/train-labels-idx1-ubyte", idx((20,), bytes(range(10)) * 2))
        self.write("data/t10k-images-idx3-ubyte.gz", gzip.compress(idx((10, 4, 4), bytes(160))))
        self.write("data/t10k-labels-idx1-ubyte", idx((10,), bytes(range(10))))
        self.args = ["datamodule=mnist", "datamodule.root=data", "datamodule.val_count=4", "model=linear",
                     "datamodule.batch_size=4", "trainer.max_epochs=1", "trainer.threads=1"]

    def test_good_files_train(self):
        self.run_kiln(*self.args, "kiln.run.dir=run")

    def test_truncated(self):
        data = read(self.path("data/train-images-idx3-ubyte"))
        self.write("data/train-images-idx3-ubyte", data[:100])
        self.refused(*self.args, says=["train-images-idx3-ubyte", "100", "336"])

    def test_truncated_gz(self):
        data = gzip.compress(read(self.path("data/train-images-idx3-ubyte")))
        os.remove(self.path("data/train-images-idx3-ubyte"))
        self.write("data/train-images-idx3-ubyte.gz", data[:-12])
        self.refused(*self.args, says=["train-images-idx3-ubyte.gz"])

    def test_missing_folder_and_file(self):
        self.refused(*self.args, "datamodule.root=nowhere", says=["nowhere"])
        os.remove(self.path("data/train-labels-idx1-ubyte"))
        self.refused(*self.args, says=["train-labels-idx1-ubyte"])

    def test_foreign_file(self):
        self.write("data/train-images-idx3-ubyte", b"P6 4 4 255 " + bytes(400))
        self.refused(*self.args, says=["train-images-idx3-ubyte"])

    def test_counts_that_differ(self):
        self.write("data/train-labels-idx1-ubyte", idx((19,), bytes(19)))
        self.refused(*self.args, says=["19", "20"])


class Shapes(Case):
    """What a model returns, and what labels there are, is looked at before training."""

    def setUp(self):
        super().setUp()
        self.plugin = build_plugin("shapes", self.dir)

    def wrong(self, *args, says):
        small = ["datamodule.train_count=64", "datamodule.val_count=32"] if "datamodule=labelled" not in args else []
        for flag in [[], ["--plan"]]:
            self.refused("--plugin", self.plugin, *args, *small, *flag, says=says)

    def test_outputs_of_a_model(self):
        for outputs in [64, 4]:
            self.wrong("model=shaped", f"model.outputs={outputs}",
                       says=[f'task.model (model/shaped) returns f32 [64, {outputs}] (layer "head") as logits, but '
                             "f32 [64, 10] is needed"])
        self.wrong("model=shaped", "model.axes=1", says=["returns f32 [64] as logits, but f32 [64, 10] is needed"])
        self.wrong("model=shaped", "model.axes=3", says=["returns f32 [64, 1, 10] as logits, but f32 [64, 10] is needed"])
        self.run_kiln("--plugin", self.plugin, "model=shaped", "trainer.fast_dev_run=true")

    def test_outputs_of_a_gan(self):
        gan = ["task=gan", "callbacks=none"]
        self.wrong(*gan, "task.discriminator._target_=model/shaped",
                   says=['task.discriminator (model/shaped) returns f32 [64, 10] (layer "discriminator.head") as '
                         "logits, but f32 [64, 1] is needed"])
        self.wrong(*gan, "task.generator._target_=model/shaped",
                   says=["task.generator (model/shaped) returns f32 [64, 10]", "as logits, but f32 [64, 784] is needed"])

    def test_a_head_of_the_task(self):
        """A loss knows how many classes the labels have, whoever computes the logits."""
        own = ["task=own_head", "callbacks=none"]
        self.wrong(*own, "task.outputs=4",
                   says=["the labels have 10 classes, but the last axis of the logits [64, 4] has only 4"])
        self.run_kiln("--plugin", self.plugin, *own, "trainer.fast_dev_run=true")

    def test_samples_without_labels(self):
        data = ["datamodule=labelled", "model=linear", "trainer.max_epochs=1", "test=true"]
        self.wrong(*data, "datamodule.unlabelled=train",
                   says=['training step of task vision: the step asks for feature "label", which these samples lack'])
        self.run_kiln("--plugin", self.plugin, *data, "datamodule.unlabelled=test", "kiln.run.dir=run")
        values = read_json(self.path("run/summary.json"))
        self.assertNotIn("test/loss", str(values))
        self.assertIn("val/loss", str(values))
        rows = [json.loads(line) for line in
                self.run_kiln("predict", "--plugin", self.plugin, "ckpt_path=run", "split=test", program="kiln")[0].splitlines()]
        self.assertEqual(len(rows), 8)
        self.assertNotIn("label", rows[0])
        self.assertEqual([row.get("caption") for row in rows[:4]],
                         ["a black square", 'white, "blank"', None, "a black square"])

    def test_texts_in_predictions(self):
        self.run_kiln("--plugin", self.plugin, "datamodule=labelled", "model=linear", "trainer.max_epochs=1", "kiln.run.dir=run")
        self.run_kiln("predict", "--plugin", self.plugin, "ckpt_path=run", "split=val", "output=val.csv", program="kiln")
        with open(self.path("val.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([row["caption"] for row in rows[:3]], ["a black square", 'white, "blank"', ""])
        self.assertIn(rows[0]["class"], ["cat", "dog", "owl"])
        self.assertAlmostEqual(sum(float(rows[0][f"probabilities/{name}"]) for name in ["cat", "dog", "owl"]), 1, places=5)

    def test_labels_of_data(self):
        data = ["datamodule=labelled", "model=linear", "callbacks=none", "trainer.max_epochs=1"]
        self.run_kiln("--plugin", self.plugin, *data)
        _, err = self.run_kiln("--plugin", self.plugin, *data, "datamodule.label=3", status=1)
        self.assertIn("sample 13 has label 3, but the data have 3 classes: 0 to 2", err)


class Runs(Case):
    def test_nan_stops_and_keeps_the_last_good_checkpoint(self):
        args = [*TINY, "optimizer=sgd", "callbacks.model_checkpoint.every_n_train_steps=1"]
        _, err = self.run_kiln(*args, "lr=900000", "kiln.run.dir=run", status=3)
        self.assertIn("step", err)
        self.assertIn("learning rate", err)
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "failed")
        last = self.path("run/checkpoints/last")
        if os.path.exists(last):
            self.check_finite(os.path.join(last, "model.safetensors"))

    def check_finite(self, path):
        data = read(path)
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + size])
        for name, entry in header.items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                first, last = entry["data_offsets"]
                for value in struct.unpack(f"<{(last - first) // 4}f", data[8 + size + first:8 + size + last]):
                    self.assertLess(abs(value), float("inf"), name)

    def test_no_write_permission(self):
        if os.geteuid() == 0:  # root may write anywhere: a file in the way does the same
            self.write("outputs", "a file where a folder should be")
        else:
            os.mkdir(self.path("outputs"), 0o555)
        self.refused(*TINY, says=["outputs"])

    def test_existing_run_folder_is_not_overwritten(self):
        self.run_kiln(*TINY, "kiln.run.dir=run")
        before = read(self.path("run/checkpoints/last/model.safetensors"))
        _, err = self.run_kiln(*TINY, "seed=5", "kiln.run.dir=run", status=1)
        self.assertIn("run", err)
        self.assertEqual(read(self.path("run/checkpoints/last/model.safetensors")), before)

    def test_full_disk_keeps_the_old_checkpoint(self):
        """A limit on the size of files stands for a full disk: writing fails midway."""
        args = [*TINY, "model.hidden=[64]", "kiln.run.dir=run"]
        self.run_kiln(*args, "trainer.max_epochs=1")
        before = read(self.path("run/checkpoints/last/model.safetensors"))
        saved = sorted(os.listdir(self.path("run/checkpoints")))

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        process = self.start(*args, "ckpt_path=run", preexec_fn=small_files, restore_signals=False)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 4, out + err)
        self.assertIn("checkpoints", err)
        self.assertEqual(read(self.path("run/checkpoints/last/model.safetensors")), before)
        self.assertEqual(sorted(os.listdir(self.path("run/checkpoints"))), saved)
        self.run_kiln(*args, "ckpt_path=run")

    def test_full_disk_for_real(self):
        """The same on a file system of two megabytes, where one may be mounted."""
        mount = "mount -t tmpfs -o size=2m none disk"
        if subprocess.run(["unshare", "-m", "sh", "-c", f"mkdir disk && {mount}"], cwd=self.dir,
                          capture_output=True).returncode != 0:
            print("skip: no permission to mount a small file system")
            return
        train = " ".join(os.path.join(BUILD, "train") if i < 0 else f"'{a}'" for i, a in
                         [(-1, "")] + list(enumerate([*TINY, "model.hidden=[160]", "optimizer=adamw", "kiln.run.dir=disk/run",
                                                      "callbacks.model_checkpoint.save_top_k=-1"])))
        script = (f"{mount} && {train}; echo status $?; ls -A disk/run/checkpoints; "
                  f"'{BUILD}/kiln' eval ckpt_path=disk/run")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=self.dir, capture_output=True, text=True)
        self.assertIn("status 4", done.stdout, done.stderr)
        self.assertIn("No space left", done.stderr)
        self.assertIn("test/accuracy", done.stdout.splitlines()[-1])
        self.assertNotIn(".saving", done.stdout)

    def test_second_interrupt_ends_at_once(self):
        process = self.start(*TINY, "trainer.max_epochs=100000", "kiln.run.dir=run")
        while not os.path.exists(self.path("run/train.log")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(2)
        process.send_signal(2)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    main()
