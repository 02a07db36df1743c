"""Predictions: arrays, files, texts, numbers; single samples and many; errors; threads; the command's bytes."""
import json
import pathlib
import struct
import subprocess
import threading
import unittest
import zlib

import numpy as np
from pythontest import BUILD, TINY, Case

import kiln


def png(value):
    """A grey picture of 28 x 28 as the bytes of a file."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((value * (i + j)) % 256 for j in range(28)) for i in range(28))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Images(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import tempfile

        cls.folder = tempfile.TemporaryDirectory(prefix="kiln-python-")
        cls.run_dir = cls.folder.name + "/run"
        cls.run_ = kiln.fit(*TINY, "kiln.run.dir=" + cls.run_dir, progress=False)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        super().setUp()
        self.model = kiln.load(self.run_dir, "trainer.threads=1")
        self.pixels = np.random.default_rng(3).random((7, 28, 28, 1), np.float32)

    def test_description(self):
        self.assertEqual(list(self.model.fields), ["image"])
        self.assertEqual(sorted(self.model.fields["image"]["types"]), ["array", "bytes", "path"])
        self.assertEqual(self.model.features["image"]["shape"], [28, 28, 1])
        self.assertEqual(self.model.classes, list("0123456789"))
        self.assertEqual(pathlib.Path(self.model.checkpoint), self.run_.checkpoint("last").path)

    def test_arrays(self):
        want = self.model.predict(self.pixels)["probabilities"]
        self.assertEqual((want.shape, want.dtype), ((7, 10), np.float32))
        np.testing.assert_allclose(want.sum(1), 1, rtol=1e-5)
        for same in (self.model(self.pixels), self.model.predict(image=self.pixels), self.model.predict({"image": self.pixels}),
                     self.model.predict(list(self.pixels)), self.model.predict([{"image": one} for one in self.pixels]),
                     self.model.predict(np.asfortranarray(self.pixels)), self.model.predict(self.pixels[::-1][::-1])):
            np.testing.assert_array_equal(same["probabilities"], want)
        doubles = self.model.predict(self.pixels.astype(np.float64))["probabilities"]
        np.testing.assert_allclose(doubles, want, rtol=1e-5)
        one = self.model.predict(self.pixels[2])["probabilities"]
        self.assertEqual(one.shape, (10,))
        np.testing.assert_allclose(one, want[2], rtol=1e-5)
        self.assertEqual(dict(self.model.predict(self.pixels[:0])), {})

    def test_more_than_a_batch(self):
        many = np.random.default_rng(1).random((100, 28, 28, 1), np.float32)
        whole = self.model.predict(many)["probabilities"]
        np.testing.assert_array_equal(whole[32:64], self.model.predict(many[32:64])["probabilities"])
        self.assertEqual(whole.shape, (100, 10))

    def test_files_as_the_command(self):
        folder = pathlib.Path("pictures")
        folder.mkdir()
        for i in range(5):
            (folder / f"{i}.png").write_bytes(png(i + 1))
        paths = sorted(folder.iterdir())
        by_path = self.model.predict(paths)["probabilities"]
        by_bytes = self.model.predict([path.read_bytes() for path in paths])["probabilities"]
        np.testing.assert_array_equal(by_path, by_bytes)
        np.testing.assert_array_equal(self.model.predict([str(path) for path in paths])["probabilities"], by_path)
        out = subprocess.run([BUILD / "kiln", "predict", self.run_dir, "pictures", "trainer.threads=1"], capture_output=True,
                             text=True, check=True).stdout
        lines = {json.loads(line)["file"]: json.loads(line)["probabilities"] for line in out.splitlines()}
        for path, row in zip(paths, by_path):
            np.testing.assert_array_equal(np.array(lines[str(path)], np.float32), row)
        self.assertEqual(self.model.predict(paths[0])["probabilities"].shape, (10,))

    def test_errors(self):
        with self.assertRaisesRegex(kiln.KilnError, "none.png"):
            self.model.predict(pathlib.Path("none.png"))
        pathlib.Path("some.png").write_bytes(png(3))
        two = self.model.predict([pathlib.Path("none.png"), pathlib.Path("some.png")])
        self.assertEqual(list(two.errors), [0])
        self.assertTrue(np.isnan(two["probabilities"][0]).all())
        self.assertAlmostEqual(two["probabilities"][1].sum(), 1, places=5)
        with self.assertRaisesRegex(kiln.KilnError, "no image"):
            self.model.predict(np.zeros(5, np.float32))
        with self.assertRaisesRegex(kiln.KilnError, "picture"):
            self.model.predict({"picture": b"x"})
        with self.assertRaises(TypeError):
            self.model.predict(self.pixels, image=self.pixels)
        with self.assertRaisesRegex(kiln.KilnError, "nowhere"):
            kiln.load("nowhere")
        with self.assertRaisesRegex(kiln.KilnError, "trainer.thread"):
            kiln.load(self.run_dir, "trainer.thread=1")

    def test_threads(self):
        want = [self.model.predict(self.pixels[i:i + 1])["probabilities"] for i in range(7)]
        wrong = []

        def call(offset):
            for k in range(60):
                i = (k + offset) % 7
                if not np.array_equal(self.model.predict(self.pixels[i:i + 1])["probabilities"], want[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=call, args=[i]) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Texts(Case):
    def test_texts(self):
        pathlib.Path("texts.csv").write_text("text,label\n" + "".join(f"{'good' if i % 2 else 'bad'} day {i},{i % 2}\n"
                                                                      for i in range(60)))
        run = kiln.fit("datamodule=labeled_text", "datamodule.files.train=[texts.csv]", "task=classification", "model=text_cnn",
                       "optimizer=adam", "lr=0.01", "trainer.threads=1", "test=false", "datamodule.batch_size=16", progress=False)
        model = run.model()
        one = model.predict("a good one")
        self.assertGreater(one["probabilities"][1], 0.5)
        both = model.predict(["bad", "good"])
        self.assertEqual(both["probabilities"].shape, (2, 2))
        np.testing.assert_array_equal(model.predict(text=["bad", "good"])["probabilities"], both["probabilities"])


class Tags(Case):
    def test_results(self):
        """What is no tensor: spans of tags."""
        pathlib.Path("a.conll").write_text("".join(f"{name}\tB-person\nlives\tO\nin\tO\nrome\tB-city\n\n" for name in ("ada", "grace") * 20))
        run = kiln.fit("datamodule=tagged_text", "datamodule.files.train=[a.conll]", "datamodule.columns=[text,tags]", "task=tagging",
                       "model=text_lstm", "optimizer=adam", "lr=0.02", "trainer.threads=1", "test=false", "batch_size=8", progress=False)
        model = run.model()
        many = model.predict(["ada lives in rome", "grace lives in rome"])
        self.assertEqual(len(many.results), 2)
        self.assertEqual([span["text"] for span in many.results[1]["spans"]], ["grace", "rome"])
        self.assertEqual(model.predict("ada lives in rome").results, many.results[:1])


class Rows(Case):
    def test_rows(self):
        pathlib.Path("rows.csv").write_text("age,town,paid\n" + "".join(f"{20 + i % 50},{'xyz'[i % 3]},{i % 2}\n" for i in range(80)))
        run = kiln.fit("datamodule=table", "datamodule.files.train=[rows.csv]", "datamodule.target=paid", "task=classification",
                       "model=ft_transformer", "trainer.threads=1", "test=false", "trainer.max_epochs=1", progress=False)
        model = run.model()
        self.assertEqual(set(model.fields) >= {"age", "town"}, True)
        one = model.predict(age=31, town="x")
        self.assertEqual(one["probabilities"].shape, (2,))
        many = model.predict([{"age": 31, "town": "x"}, {"age": 50.0, "town": "y"}])
        np.testing.assert_allclose(many["probabilities"][0], one["probabilities"], rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
