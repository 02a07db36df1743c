"""`kiln new`: from files of each kind to a run. Each kind is generated; real sets are read where they are at hand."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import gzip
import json
import os
import random
import sqlite3

from kilntest import SHARED, Case, grey_png, main, png, read

# A run of a moment.
SHORT_RUN = ["trainer.max_epochs=1", "trainer.limit_train_batches=2", "trainer.limit_val_batches=1",
             "trainer.limit_test_batches=1", "trainer.threads=1"]
WORDS = "the film was a long dull warm joy of small things and great noise that nobody saw coming".split()


def sentence(rng, n=8):
    return " ".join(rng.choice(WORDS) for _ in range(n))


class NewCase(Case):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(7)

    def new(self, *args, **options):
        return self.run_kiln("new", *args, program="kiln", **options)[0]

    def config(self, name):
        return read(self.path(f"conf/experiment/{name}.yaml"), "r")

    def starts(self, *args, says=(), has=(), name="d", train=()):
        """`kiln new` says and writes all that, and the config trains; written with -o it is whole, too."""
        out = self.new(*args)
        for text in says:
            self.assertIn(text, " ".join(out.split()))
        for text in has:
            self.assertIn(text, self.config(name))
        self.run_kiln(f"experiment={name}", *SHORT_RUN, *train)
        if "-o" not in args:
            self.new(*args, "-o", "whole.yaml", "--force")
            self.run_kiln("-cp", ".", "-cn", "whole", "--cfg", "job", "--resolve", *train)
        return out

    def wrong(self, *args, says, status=1):
        """It says what is wrong and writes nothing."""
        return self.refused("new", *args, says=says, status=status, program="kiln")

    def classes(self, folder, n, size=(8, 8), names=("cat", "dog")):
        for k, name in enumerate(names):
            for i in range(n):
                self.write(f"{folder}/{name}/{i}.png", png(*size, colour=(40 + 90 * k, 9 * i % 256, i % 256)))


class Images(NewCase):
    def test_folder_per_class(self):
        self.classes("d", 12)
        self.starts("d", says=["images in a folder per class: 24 of 2 classes", "8x8 pixels, colour",
                               "val: 20 % of them", "train experiment=d",
                               "kiln check-data experiment=d"],
                    has=["override /task: vision", "override /model: cnn", "root: d\n", "val_fraction: 0.2"])

    def test_folders_of_splits(self):
        for split, n in ("train", 8), ("val", 3), ("test", 2):
            self.classes(f"d/{split}", n, size=(90, 70))
        self.starts("d", says=["val: val/", "test: test/", "70x90 pixels"],
                    has=["size: 64", "override /model: resnet"], train=["model.depth=18"])

    def test_a_split_of_another_name(self):
        self.classes("d/train", 6)
        self.classes("d/valid", 3)
        self.starts("d", says=["d/valid is not used", "rename it to val"])

    def test_sizes_and_damage(self):
        self.classes("d", 10)
        self.write("d/cat/big.png", png(40, 60))
        self.write("d/dog/bad.png", b"\x89PNG\r\n\x1a\nnothing")
        self.starts("d", says=["8x8 to 60x40 pixels", "1 of 22 images looked at can't be read"],
                    has=["size: 32", "on_error: skip"])

    def test_list(self):
        rows = ["file,kind"]
        for i in range(16):
            self.write(f"d/pictures/{i}.png", png(8, 8, colour=(i, 0, 200)))
            rows.append(f"{i}.png,{'ab'[i % 2]}")
        self.write("d/labels.csv", "\n".join(rows) + "\n")
        self.starts("d", says=["a list of 16 images (column file) with a label (column kind)"],
                    has=["datamodule: image_list", "root: d/pictures", "image: file", "label: kind"])

    def test_lists_in_the_folders_of_splits(self):
        for split, n in ("train", 16), ("validation", 8), ("test", 8):
            rows = ["file_name,label"]
            for i in range(n):
                self.write(f"d/{split}/{i}.png", png(8, 8, colour=(i, 0, 200)))
                rows.append(f"{i}.png,{'ab'[i % 2]}")
            self.write(f"d/{split}/metadata.csv", "\n".join(rows) + "\n")
        self.starts("d", says=["a list of 16 images (column file_name) with a label (column label)",
                               "train: d/train/metadata.csv; val: d/validation/metadata.csv; test: d/test/metadata.csv"],
                    has=["datamodule: image_list", "train: [d/train/metadata.csv], val: [d/validation/metadata.csv]"])
        self.assertNotIn("root:", self.config("d"))

    def test_lists_that_name_images_elsewhere(self):
        for split in "train", "test":
            self.write(f"d/{split}/images/1.png", png(8, 8))
            self.write(f"d/{split}/list.csv", "file,label\n" + "1.png,a\n1.png,b\n" * 4)
        self.wrong("d", says=["d/train/list.csv: names images such as \"1.png\"", "put the list beside the images"])

    def test_masks(self):
        for i in range(8):
            self.write(f"d/images/{i}.png", png(32, 16))
            self.write(f"d/masks/{i}.png", grey_png(32, 16, [[x % 3 for x in range(32)]] * 16))
        self.starts("d", says=["8 images with masks", "the class of each pixel: 3"],
                    has=["datamodule: mask_folder", "classes: [class0, class1, class2]", "images: images\n"])

    def test_masks_of_splits(self):
        for split in "train", "val":
            for i in range(4):
                self.write(f"d/images/{split}/{i}.png", png(16, 16))
                self.write(f"d/masks/{split}/{i}.png", grey_png(16, 16, [[0, 1] * 8] * 16))
        self.starts("d", says=["val: d/images/val"], has=["images: images/SPLIT", "masks: masks/SPLIT"])

    def test_black_and_white_masks(self):
        for i in range(4):
            self.write(f"d/images/{i}.png", png(16, 16))
            self.write(f"d/masks/{i}.png", grey_png(16, 16, [[0, 255] * 8] * 16))
        self.wrong("d", says=["Masks of 0 and 255 need 1 in place of 255"])

    def test_refusals(self):
        self.classes("one", 3, names=("cat",))
        self.wrong("one", says=["only one folder of images"])
        self.write("bare/1.png", png(8, 8))
        self.wrong("bare", says=["images without classes"])
        self.classes("mixed", 3)
        self.write("mixed/texts/1.txt", "hello\n")
        self.wrong("mixed", says=["folders of images and of texts"])
        self.wrong("bare/1.png", says=["is one image"])


class Tables(NewCase):
    def table(self, name="d.csv", n=60, header=True, sep=",", number=False):
        lines = [sep.join(("age", "city", "risk"))] if header else []
        for i in range(n):
            city = self.rng.choice(("Bonn", "Kiel", "Ulm"))
            target = f"{self.rng.random() * 9:.3f}" if number else self.rng.choice(("low", "high"))
            lines.append(sep.join((f"{self.rng.random() * 50:.2f}", city, target)))
        return self.write(name, "\n".join(lines) + "\n")

    def test_target_is_asked_for(self):
        self.write("d.csv", "a,b,c\n" + "".join(f"{i}.5,{i % 9}.25,{i % 5}.75\n" for i in range(40)))
        self.wrong("d.csv", says=["which column is to be predicted?", '--target="c"', "also possible: a, b"], status=2)
        self.starts("d.csv", "--target=a", says=["regression: the number a", "as --target says"],
                    has=["target: a", "override /model: mlp"])

    def test_the_last_column(self):
        self.table()
        self.starts("d.csv", says=["risk: it is the last one; if it is another one: --target=COLUMN"])

    def test_regression(self):
        self.table(number=True)
        self.starts("d.csv", "--target", "risk", says=["regression: the number risk"], has=["override /task: regression"])

    def test_by_name(self):
        self.write("d.csv", "x,class\n" + "".join(f"{i}.5,{'ab'[i % 2]}\n" for i in range(40)))
        self.starts("d.csv", says=["class: by its name"])

    def test_several_files_with_a_header(self):
        for name in "one.csv", "two.csv":
            self.write(name, "x,class\n" + "".join(f"{i}.5,{'ab'[i % 2]}\n" for i in range(20)))
        out = self.starts("one.csv", "two.csv", says=["class: by its name", "a table of 40 rows"], name="one")
        self.assertNotIn("the first row is taken for data", out)

    def test_row_numbers_without_a_name(self):
        self.write("d.csv", ",x,class\n" + "".join(f"{i},{i % 7}.5,{'ab'[i % 2]}\n" for i in range(40)))
        out = self.starts("d.csv", says=["class: by its name", "column column1 is left out: each row has a number of its own"])
        self.assertNotIn("the first row is taken for data", out)
        self.write("d.csv", "".join(f"{'' if i == 0 else i},x{i % 7},{'ab'[i % 2]}\n" for i in range(40)))
        self.starts("d.csv", "--force", says=["the first row is taken for data"])

    def test_a_series(self):
        self.write("d.csv", "year,volume\n" + "".join(f"{1871 + i},{900 + 37 * i % 61}.5\n" for i in range(40)))
        self.starts("d.csv", says=["volume: no other column can be predicted", "year looks like row numbers"],
                    has=["columns: {year: number}"])

    def test_no_header_and_other_delimiters(self):
        self.write("d.csv", "".join(f"{i},5;{'ab'[i % 2]}\n" for i in range(40)))
        self.starts("d.csv", says=["the first row is taken for data", "column2: it is the only one of texts"],
                    has=['delimiter: ";"', "decimal: ','", "names: [column1, column2]"])

    def test_blanks_between_numbers(self):
        self.write("d.csv", "a b label\n" + "".join(f"{i}.5 {i % 9}.25 {i % 2}\n" for i in range(40)))
        self.starts("d.csv", says=["label: by its name"], has=['delimiter: " "'])

    def test_splits_and_a_test_file_without_target(self):
        self.table("d/train.csv")
        self.table("d/valid.csv", n=10)
        self.write("d/test.csv", "age,city\n3,Ulm\n")
        self.starts("d", "--target=risk", says=["val: valid.csv", "d/test.csv lacks the target"],
                    has=["train: [d/train.csv], val: [d/valid.csv]}"])

    def test_json_lines_and_packed(self):
        lines = "".join(f'{{"x": {i}.25, "label": "{"ab"[i % 2]}"}}\n' for i in range(30))
        self.write("d.jsonl.gz", gzip.compress(lines.encode()))
        self.starts("d.jsonl.gz", says=["label: by its name"])

    def test_json_lists(self):
        """One list of objects, as programs export it, on one line or on many."""
        rows = [{"x": i + 0.25, "note": "a, [b]", "label": "ab"[i % 2]} for i in range(30)]
        self.write("d/train.json", json.dumps(rows, indent=1))
        self.write("d/test.json", json.dumps(rows[:9]))
        self.write("d/package.json", "{}")
        self.starts("d", says=["label: by its name", "test: test.json"], has=["train: [d/train.json], test: [d/test.json]"])
        self.run_kiln("predict", "last", "d/test.json", program="kiln")
        rows[7] = 5
        self.write("e.json", json.dumps(rows, indent=1))
        self.starts("e.json", says=["1 row such as e.json:37: not a JSON object"], has=["on_error: skip"], name="e")
        texts = [{"text": sentence(self.rng), "label": ["good", "bad"][i % 2]} for i in range(60)]
        self.write("t.json.gz", gzip.compress(json.dumps(texts).encode()))
        self.starts("t.json.gz", says=["60 texts (column text)"], name="t")

    def test_database(self):
        with sqlite3.connect(self.path("d.db")) as db:
            db.execute("CREATE TABLE houses (size REAL, price REAL)")
            db.executemany("INSERT INTO houses VALUES (?, ?)", [(i * 1.5, i * 3.25 + i % 7) for i in range(50)])
        if "built without SQLite" in self.run_kiln("new", "d.db", program="kiln")[1]:
            self.skipTest("built without SQLite")
        os.remove(self.path("conf/experiment/d.yaml"))
        self.starts("d.db", says=["price: by its name"], has=['query: "SELECT * FROM \\"houses\\""'])
        with sqlite3.connect(self.path("d.db")) as db:
            db.execute("CREATE TABLE other (a REAL)")
        self.wrong("d.db", "-o", "x.yaml", says=["has the tables houses, other", "--table="], status=2)

    def test_bad_rows_ids_and_constants(self):
        rows = "".join(f"{i},{i % 7}.5,1,{'ab'[i % 2]}\n" for i in range(50))
        self.write("d.csv", "id,x,always,label\n" + rows + "1,2\n")
        self.starts("d.csv", says=["column id is left out", "column always is left out: it has one value",
                                   "1 row such as d.csv:52"], has=["on_error: skip"])

    def test_several_tables(self):
        for name in "a.csv", "b.csv":
            self.table(f"d/{name}")
        self.wrong("d", says=["2 tables", "kiln new d/a.csv"], status=2)

    def test_refusals(self):
        self.write("one.csv", "x,label\n" + "".join(f"{i}.5,a\n" for i in range(30)))
        self.wrong("one.csv", "--target=label", says=["one class only"])
        self.table()
        self.wrong("d.csv", "--target=rsk", says=["no such column; columns: age, city, risk"], status=2)
        self.write("counts.csv", "20,2,a,b\n" + "".join(f"{i}.5,3,4,5,{i % 2}\n" for i in range(20)))
        self.wrong("counts.csv", says=["the first line has 4 columns and the next ones have 5"])
        self.write("single.csv", "label\n" + "".join(f"{i}.5\n" for i in range(20)))
        self.wrong("single.csv", says=["one column only"])
        self.write("rows.csv", "x,label\n1,a\n")
        self.wrong("rows.csv", says=["too few"])
        self.write("data.parquet", b"PAR1" + bytes(100))
        self.wrong("data.parquet", says=["data.parquet", "Parquet"])
        self.write("empty.csv", "")
        self.wrong("empty.csv", says=["the file is empty"])
        self.write("rows.json", '[{"x": 1, "y": 2}]')
        self.wrong("rows.json", says=["1 row is too few"])
        self.write("rows.json", json.dumps([{"x": i, "y": {"z": 1}} for i in range(9)]))
        self.wrong("rows.json", says=["rows.json: no row can be used; the first: rows.json:1: a value is a list or an object"])
        self.write("rows.json", '{"version": 1,\n "data": [{"x": 1, "y": 2}]}')
        self.wrong("rows.json", says=["rows.json: one JSON object", "jq '.\"data\"' rows.json >rows.json"])
        self.write("rows.json", '[{"x": 1, "y": 2},\n{"x": 1, "y"')
        self.wrong("rows.json", says=["rows.json:2: the list is not closed: the file ends in its value 2"])
        self.write("noise.bin", bytes(500))
        self.wrong("noise.bin", says=["NUL bytes"])
        self.write("shards/0.tar", bytes(1024))
        self.wrong("shards", says=["`kiln new shards/0.tar`", "datamodule=image_shards"])
        self.wrong("shards/0.tar", says=["expected train/<class>/*", "datamodule=image_shards"])


class Texts(NewCase):
    def rows(self, n=60):
        return [(sentence(self.rng), "good" if i % 2 else "bad") for i in range(n)]

    def test_csv(self):
        self.write("d.csv", "review,sentiment\n" + "".join(f'"{t}",{c}\n' for t, c in self.rows()))
        self.starts("d.csv", says=["60 texts (column review) with a label (column sentiment)", "classification: 2 classes"],
                    has=["datamodule: labeled_text", "text: review", "label: sentiment"])

    def test_short_texts(self):
        words = [f"{a} {b}" for a in ("play", "stop", "skip", "buy") for b in ("it", "that", "jazz", "the film", "song", "two")]
        rows = "".join(f"{text},{'order' if text < 'c' else 'music'}\n" for text in words)
        self.write("named.csv", "when,utterance,intent\n" + "".join(f"{i % 5},{row}\n" for i, row in enumerate(rows.splitlines())))
        self.starts("named.csv", "--target=intent", says=["24 texts (column utterance) with a label (column intent)"],
                    name="named", has=["text: utterance"])
        self.write("two.csv", "words,intent\n" + rows)
        self.starts("two.csv", says=["24 texts (column words) with a label (column intent)"], name="two", has=["text: words"])

    def test_a_number_to_predict(self):
        rows = [(sentence(self.rng), round(self.rng.random() * 5, 2)) for _ in range(60)]
        self.write("d.csv", "review,score\n" + "".join(f"{text},{score}\n" for text, score in rows))
        self.starts("d.csv", says=["60 texts (column review) with a number (column score)", "regression: the number score"],
                    has=["override /model: bag_of_tokens", "target: score", "target_type: number"])
        self.write("e.csv", "review,votes,score\n" + "".join(f"{text},{i % 7},{score}\n" for i, (text, score) in enumerate(rows)))
        self.starts("e.csv", "--target=score", says=["and other columns"], has=["override /model: fusion"], name="e")
        self.write("g.csv", "title,review,score\n" + "".join(f"{sentence(self.rng)},{text},{score}\n" for text, score in rows))
        self.starts("g.csv", "--target=score", has=["override /model: bag_of_tokens"], name="g")
        self.write("h.csv", "place,size\n" + "".join(f"{a} {b},{i * i % 37 + 0.25}\n" for i, (a, b) in enumerate(
            (a, b) for a in ("New", "Old", "North", "South") for b in ("Guinea", "York", "Harbour", "Ireland", "Wales"))))
        self.starts("h.csv", says=["20 texts (column place) with a number (column size)"], has=["columns: {place: text}"], name="h")
        self.write("f/train.csv", read(self.path("d.csv"), "r") + "fine\nwarm joy,\n")
        self.write("f/test.csv", "review\nfine\n")
        self.starts("f", says=["the row has 1 column", "1 row without a number in column score", "test.csv lacks the target"],
                    has=["on_error: skip"], name="f")

    def test_tsv_of_splits_without_header(self):
        for split, n in ("train", 60), ("dev", 20), ("test", 20):
            self.write(f"d/{split}.tsv", "".join(f"{t}\t{int(c == 'good')}\n" for t, c in self.rows(n)))
        self.starts("d", says=["val: dev.tsv; test: test.tsv"], has=["columns: [column1, column2]"])

    def test_fasttext(self):
        self.write("d.txt", "".join(f"__label__{c} {t}\n" for t, c in self.rows()))
        self.starts("d.txt", has=["format: labeled"])

    def test_several_labels(self):
        self.write("d.txt", "".join(f"__label__{c} __label__x {t}\n" if i % 3 else f"__label__{c} {t}\n"
                                    for i, (t, c) in enumerate(self.rows())))
        self.starts("d.txt", says=["multilabel_classification"], has=["multilabel: true"])

    def test_folder_per_class(self):
        for split in "train", "test":
            for i, (text, label) in enumerate(self.rows(20)):
                self.write(f"d/{split}/{label}/{i}.txt", text + "\n")
        self.starts("d", says=["in a folder per class", "test: test"], has=["format: folders"])

    def test_label_first(self):
        self.write("d.label", "".join(f"{c.upper()}:sub {t}\n" for t, c in self.rows()))
        self.starts("d.label", says=["DESC of DESC:manner"], has=['label_end: ":"'])

    def test_tags(self):
        blocks = "".join("Ada B-person\nlives O\nin O\nNew B-city\nYork I-city\n\n" for _ in range(30))
        self.write("d.conll", blocks)
        self.starts("d.conll", says=["30 sentences"], has=["task: tagging", "crf: true"])
        self.write("e.txt", blocks)
        self.starts("e.txt", has=["format: conll"], name="e")

    def test_tags_in_json(self):
        self.write("d.jsonl", '{"tokens": ["Ada", "lives"], "tags": ["B-person", "O"]}\n' * 20)
        self.starts("d.jsonl", has=["text: tokens", "tags: tags"])

    def test_words_and_tags_in_two_files(self):
        for split in "train", "dev":
            self.write(f"d/{split}/seq.in", "from Rome to Ulm\n" * 20)
            self.write(f"d/{split}/seq.out", "O B-from O B-to\n" * 20)
            self.write(f"d/{split}/label", "flight\nfare\n" * 10)
        self.starts("d", says=["(its intent)"], has=["label: label"])

    def test_translations(self):
        for ending in "de", "en":
            self.write(f"d/train.{ending}", "".join(sentence(self.rng) + "\n" for _ in range(120)))
        self.starts("d", says=["120 lines of two files that belong together: de and en"],
                    has=["tokenizer: {vocab_size: 2000}"], train=["datamodule.tokenizer.vocab_size=300"])
        out = self.new("d/train.de", "d/train.en", "-o", "two.yaml")
        self.assertIn("train -cp . -cn two", out)

    def test_plain_text(self):
        self.write("d.txt", "".join(sentence(self.rng, 12) + ".\n" for _ in range(400)))
        self.starts("d.txt", says=["plain text", "the last 10 % of the text", "kiln generate best prompt=TEXT"], has=["tokenizer/characters"])

    def test_refusals(self):
        self.write("d.txt", "a few words\n")
        self.wrong("d.txt", says=["too few for a language model"])
        self.write("one.txt", "__label__a some words\n" * 10)
        self.wrong("one.txt", says=["texts of one class only"])
        self.write("only.csv", "text\n" + "".join(sentence(self.rng) + "\n" for _ in range(30)))
        self.wrong("only.csv", says=["texts without a column to predict"])


class Numbers(NewCase):
    def svm(self, query=""):
        return "".join(f"{i % 2} {query % (i // 8) if query else ''}1:0.{i} 3:{i % 5}\n" for i in range(80))

    def test_sparse_rows(self):
        self.write("d.svm", self.svm())
        self.needs_xgboost()
        self.starts("d.svm", says=["sparse rows (LibSVM)"], has=["eval_metric: [logloss]"])

    def test_ranking(self):
        self.write("d.txt", self.svm("qid:%d "))
        self.needs_xgboost()
        self.starts("d.txt", says=["a ranking of each query's rows"], has=["eval_metric: [ndcg@5]"])

    def needs_xgboost(self):
        if "XGBoost" in self.run_kiln("task=trees", "--cfg", "job", status=None)[1]:
            self.skipTest("built without XGBoost")

    def run_kiln(self, *args, status=0, **options):
        if status is not None:
            return super().run_kiln(*args, status=status, **options)
        return self.start(*args, **options).communicate()


class Files(NewCase):
    def test_nothing_is_overwritten(self):
        self.classes("d", 6)
        self.new("d")
        before = self.config("d")
        self.wrong("d", says=["conf/experiment/d.yaml exists", "--force"], status=2)
        self.wrong("d.csv", says=["d.csv: No such file"])  # whose config would be the same
        self.assertEqual(self.config("d"), before)
        self.assertIn("replaced conf/experiment/d.yaml", self.new("d", "--force"))

    def test_a_primary_config(self):
        self.classes("d", 6)
        out = self.new("d", "-o", "configs/pets.yaml")
        self.assertIn("train -cp configs -cn pets", out)
        self.assertIn("- task: vision", read(self.path("configs/pets.yaml"), "r"))
        self.run_kiln("-cp", "configs", "-cn", "pets", *SHORT_RUN)

    def test_in_a_project(self):
        self.run_kiln("init", ".", program="kiln")
        self.classes("d", 6)
        self.starts("d")

    def test_names_that_yaml_would_misread(self):
        for name in "a b", "x: #1", "${lr}", "'\"", "[z]", "yes":
            self.classes(f"p/{name}", 6)
            self.new(f"p/{name}", "--force", "-o", "conf/experiment/d.yaml")
            self.run_kiln("experiment=d", *SHORT_RUN)

    def test_refusals(self):
        os.mkdir(self.path("empty"))
        self.wrong("empty", says=["the folder is empty"])
        self.wrong("nothing", says=["nothing: No such file"])
        self.wrong(says=["needs data"], status=2)
        self.wrong("empty", "empty", says=["give one folder alone"], status=2)
        self.wrong("empty", "-o", "x.txt", says=["ends in .yaml"], status=2)
        self.write("odd/manual.pdf", "x")
        self.wrong("odd", says=["neither images, nor tables, nor texts", "manual.pdf"])


REAL = {  # folder or file: more arguments, what the report says
    "titanic": ([], ["Survived: by its name"]),
    "iris/iris.csv": ([], ["3 classes"]),
    "california-housing/housing.csv": (["--target=median_house_value"], ["regression"]),
    "adult": ([], ["full stop"]),
    "ag-news/sample": ([], ["4 classes"]),
    "trec": ([], ["6 classes"]),
    "sst2": ([], ["2 classes"]),
    "atis": ([], ["4478 sentences"]),
    "wnut17": ([], ["test: emerging.test.annotated"]),
    "tiny-shakespeare": ([], ["1.12 MB"]),
    "mnist": ([], ["idx files"]),
    "movielens-latest-small/ratings.csv": ([], ["the number rating"]),
    "lightgbm-examples/multiclass_classification": ([], ["5 classes"]),
}


class Real(NewCase):
    def test_sets_at_hand(self):
        root = os.path.join(SHARED, "data")
        if not os.path.isdir(root):
            self.skipTest("no real data sets here")
        for name, (args, says) in REAL.items():
            with self.subTest(name):
                self.starts(os.path.join(root, name), *args, "--force", "-o", "conf/experiment/d.yaml", says=says)


if __name__ == "__main__":
    main()
