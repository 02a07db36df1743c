"""`kiln new` of images of text lines that a list names; such lists and those of classes are told apart."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]

from kilntest import main, png
from test_new import NewCase

SMALL = ["model.width=8", "model.hidden=16", "batch_size=4"]


class Lines(NewCase):
    def lines(self, folder, n=24, height=16):
        """Images that are wide enough for their texts, which are returned."""
        texts = []
        for i in range(n):
            texts.append("".join(self.rng.choice("abc d") for _ in range(1 + i % 6)).strip() + str(i))
            self.write(f"{folder}/{i}.png", png(16 * len(texts[-1]) + i, height))
        return texts

    def starts(self, *args, train=(), **options):
        return super().starts(*args, train=[*SMALL, *train], **options)

    def test_csv(self):
        texts = self.lines("d/images")
        self.write("d/list.csv", "file,text\n" + "".join(f'{i}.png,"{text}"\n' for i, text in enumerate(texts)))
        self.starts("d", says=["a list of 24 images of lines (column file) and their texts", "column text: by its name",
                               "text_recognition: the text of a line, up to 8 characters", "val: 20 % of the training samples"],
                    has=["override /task: text_recognition", "override /datamodule: text_line_list", "override /model: crnn",
                         "root: d/images", "image: file", "text: text", "max_width: 320"])

    def test_tabs_without_header(self):
        texts = self.lines("d")
        for name in "train", "val":
            self.write(f"d/gt_{name}.txt", "".join(f"{i}.png\t{text}\n" for i, text in enumerate(texts)))
        self.starts("d", says=["column column2: most of its texts differ; classes would be few and repeated", "val: gt_val.txt"],
                    has=["format: tsv", "columns: [column1, column2]", "train: [d/gt_train.txt], val: [d/gt_val.txt]"])

    def test_json_lines(self):
        texts = self.lines("d")
        self.write("d/train.jsonl", "".join(f'{{"file": "{i}.png", "transcription": "{text}"}}\n' for i, text in enumerate(texts)))
        self.starts("d", says=["column transcription: by its name"])
        self.starts("d/train.jsonl", "--target=transcription", says=["as --target says"], name="train")

    def test_classes_are_no_texts(self):
        self.lines("d")
        self.write("d/labels.txt", "".join(f"{i}.png\t{'ab'[i % 2]}\n" for i in range(24)))
        self.assertIn("a list of 24 images (column column1) with a label", self.new("d"))
        self.write("d/labels.txt", "".join(f"{i}.png\t{i * 1.5}\n" for i in range(24)))
        self.wrong("d", "--force", says=["If it is what is written in the images, call it text"])

    def test_what_is_odd(self):
        texts = self.lines("d")
        self.write("d/1.png", b"\x89PNG\r\n\x1a\nnothing")
        self.write("d/2.png", png(2000, 16))
        texts[3], texts[4] = "", "c" * 60
        rows = [f"{i}.png,{text}\n" for i, text in enumerate(texts)]
        self.write("d/train.csv", "image,text\n" + "".join(rows) + "none.png,a\n")
        self.write("d/val.csv", "image,text\n" + rows[0] + "5.png,\u00fc\n")
        self.starts("d", says=["bad rows: 5, which are left out; the first: d/train.csv:3: d/1.png",
                               "texts that are too long for their images: 1, such as d/train.csv:6", "datamodule.height=64 doubles that"],
                    has=["on_error: skip"])

    def test_quotes_after_blanks(self):
        texts = self.lines("d")
        self.write("d/gt.txt", "".join(f'{i}.png, "{text}"\n' for i, text in enumerate(texts)))
        self.assertIn("texts in quotes after a blank, which are read as parts of them: 24; remove the blanks: sed",
                      " ".join(self.new("d").split()))

    def test_what_is_wrong(self):
        self.lines("d", n=6)
        self.write("d/list.txt", "".join(f"{i}.png a text {i}\n" for i in range(6)))
        self.wrong("d", says=["with a blank between them; put a tab there: sed 's/ /\\t/' d/list.txt >FILE.tsv"])
        self.write("d/list.txt", "".join(f"no{i}.png\ta text {i}\n" for i in range(6)))
        self.wrong("d", says=['names images such as "no0.png", which is neither in d nor in a folder there'])
        self.write("d/list.txt", "".join(f"{i if i < 3 else 'x'}.png\ta text {i}\n" for i in range(6)))
        self.wrong("d", says=["d/list.txt: 3 lines that can be read are too few", "the first that can't: d/list.txt:4: d/x.png: No such file"])


if __name__ == "__main__":
    main()
