"""Parquet files: every type gives what the same table in CSV gives, and what is wrong with a file. Without Arrow: the way to CSV."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json

from kilntest import Case, main, read, read_json

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/parquet"
FIXED = ["datamodule=table", "task=classification", "model=mlp", "model.hidden=[4]", "optimizer=adam", "trainer.threads=1",
         "trainer.max_epochs=1", "seed=3", "callbacks=none", "trainer.enable_progress_bar=false", "datamodule.target=y"]


class Parquet(Case):
    def setUp(self):
        super().setUp()
        for path in DATA.iterdir():
            shutil.copy(path, self.path(path.name))
        out, _ = self.run_kiln("doctor", program="kiln")
        self.built = "Arrow" in out and "without Parquet" not in out

    def train(self, name, *args, run="run", status=0):
        return self.run_kiln(*FIXED, f"datamodule.files.train=[{name}]", f"kiln.run.dir={run}", *args, status=status)

    def refused(self, name, *says):
        _, err = self.train(name, status=1)
        for part in (name, *says):
            self.assertIn(part, " ".join(err.split()))

    def test_without_arrow(self):
        if not self.built:
            self.refused("types.parquet", "this kiln was built without Parquet; convert the file, such as by duckdb",
                         "pandas.read_parquet('types.parquet').to_csv('table.csv', index=False)")

    def test_same_as_csv(self):
        if not self.built:
            return
        self.train("types.csv", run="csv")
        for name in "types", "zstd":
            out, _ = self.train(f"{name}.parquet", run=name)
            for file in "preprocessing/table.json", "model.safetensors":
                self.assertEqual(read(self.path(name, "checkpoints/last", file)), read(self.path("csv/checkpoints/last", file)), name)
            self.assertRegex(out, r"micros +date +\d+ missing; days and times")
            self.assertRegex(out, r"midnight +date +\d+ missing; days\n")
            self.assertRegex(out, r"flag +category \d+ missing; 2: false, true")
        # predictions of a Parquet file, and of the CSV
        lines = {}
        for name in "types.parquet", "types.csv":
            out, _ = self.run_kiln("predict", "ckpt_path=types/checkpoints/last", f"input={name}", program="kiln")
            lines[name] = [json.loads(line)["probabilities"] for line in out.splitlines()]
        self.assertEqual(len(lines["types.csv"]), 60)
        self.assertEqual(lines["types.parquet"], lines["types.csv"])

    def test_cache(self):
        """With `cache` it is unpacked once, and again when it changes."""
        if not self.built:
            return
        for _ in range(2):
            self.train("types.parquet", "datamodule.cache=cache")
            shutil.rmtree(self.path("run"))
        self.assertEqual(len(list(pathlib.Path(self.path("cache")).glob("types.parquet-*.unpacked"))), 1)

    def test_new_and_check_data(self):
        if not self.built:
            return
        out, _ = self.run_kiln("new", "types.parquet", program="kiln")
        self.assertIn("target    y", out)
        self.run_kiln("check-data", "experiment=types", program="kiln")
        self.run_kiln("experiment=types", "trainer.max_epochs=1", "kiln.run.dir=run")
        self.assertEqual(read_json(self.path("run/summary.json"))["status"], "finished")

    def test_texts(self):
        """A column of texts and one of labels, for a datamodule that is not of tables."""
        if not self.built:
            return
        self.run_kiln("datamodule=labeled_text", "datamodule.files.train=[types.parquet]", "datamodule.text=text",
                      "datamodule.label=y", "datamodule.tokenizer=words", "task=classification", "model=bag_of_tokens",
                      "optimizer=adam", "trainer.max_epochs=1", "datamodule.on_error=skip", "kiln.run.dir=texts")

    def test_bad_files(self):
        if not self.built:
            return
        self.refused("nested.parquet", 'column "list" has lists')
        self.refused("bytes.parquet", 'column "key" has bytes')
        whole = read(self.path("types.parquet"))
        self.write("cut.parquet", whole[:len(whole) // 2])
        self.write("page.parquet", whole[:200] + bytes(1500) + whole[1700:])
        self.write("text.parquet", "a,b\n1,2\n")
        self.write("empty.parquet", "")
        for name in "cut", "page", "text", "empty":
            self.refused(f"{name}.parquet", "is no Parquet file, or is damaged")
        self.refused("none.parquet", "No such file")
        shutil.copy(self.path("types.parquet"), self.path("types.bin"))
        _, err = self.run_kiln("new", "types.bin", program="kiln", status=1)
        self.assertIn("call it FILE.parquet", err)


main()
