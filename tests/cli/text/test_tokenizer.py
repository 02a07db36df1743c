"""kiln tokenizer: training, encoding, decoding, and what is refused."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import subprocess

from kilntest import BUILD, Case, main, read_json

LINES = "To be, or not to be:\nthat is the question.\n\nStraße naïve 👍🏽\r\nto be to be\n"


class Tokenizer(Case):
    def kiln(self, *args, stdin="", status=0):
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        done = subprocess.run([os.path.join(BUILD, "kiln"), "tokenizer", *args], cwd=self.dir, input=data,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def setUp(self):
        super().setUp()
        self.write("a.txt", LINES.encode())

    def test_train_encode_decode(self):
        """Each tokenizer: what was encoded is decoded again, where nothing is lost or unknown."""
        for name, lossless in [("bytes", True), ("characters", True), ("bpe", True), ("words", False), ("wordpiece", False), ("unigram", False)]:
            size = [] if name == "bytes" else ["tokenizer.vocab_size=400"]
            self.kiln("train", f"tokenizer={name}", *size, "files=a.txt,a.txt", "output=t.json")
            out, _ = self.kiln("encode", "t.json", stdin=LINES)
            encoded = [json.loads(line) for line in out.splitlines()]
            self.assertEqual(len(encoded), LINES.count("\n"))
            for text, e in zip(LINES.split("\n"), encoded):
                self.assertEqual(len(e["ids"]), len(e["offsets"]))
                self.assertTrue(all(0 <= b <= end <= len(text) for b, end in e["offsets"]))
            back, _ = self.kiln("decode", "t.json", stdin="".join(f"{e['ids']}\n" for e in encoded))
            if lossless:
                self.assertEqual(back, LINES, name)

    def test_nul(self):
        """A text may contain it."""
        self.kiln("train", "tokenizer=bytes", "files=a.txt", "output=t.json")
        out, _ = self.kiln("encode", "t.json", stdin="a\0b\n")
        ids = json.loads(out)["ids"]
        self.assertEqual(len(ids), 3)
        self.assertEqual(self.kiln("decode", "t.json", stdin=f"{ids}\n")[0], "a\0b\n")

    def test_words(self):
        """Most frequent first, then in the order of bytes; rare ones are unknown."""
        self.kiln("train", "tokenizer=words", "tokenizer.lowercase=true", "tokenizer.min_frequency=2", "files=a.txt")
        vocab = read_json(self.path("tokenizer.json"))["model"]["vocab"]
        self.assertEqual(list(vocab), ["<pad>", "<unk>", "be", "to"])
        out, _ = self.kiln("encode", "tokenizer.json", stdin="To see\n")
        self.assertEqual(json.loads(out), {"ids": [3, 1], "tokens": ["to", "<unk>"], "offsets": [[0, 2], [3, 6]]})

    def test_unigram(self):
        """Scores go down after the special tokens; spaces at the ends and runs of them are lost, all else is decoded."""
        self.write("b.txt", b"thinking\nthinker\nthis thing\nsinking sinker\n" * 3)
        self.kiln("train", "tokenizer=unigram", "tokenizer.vocab_size=30", "files=b.txt")
        model = read_json(self.path("tokenizer.json"))["model"]
        self.assertEqual((model["unk_id"], model["vocab"][:3]), (2, [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]))
        scores = [score for _, score in model["vocab"][3:]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertLessEqual(len(model["vocab"]), 30)
        self.assertIn("▁think", [token for token, _ in model["vocab"]])
        out, _ = self.kiln("encode", "tokenizer.json", stdin="  thin  king\n")
        self.assertEqual(self.kiln("decode", "tokenizer.json", stdin=f"{json.loads(out)['ids']}\n")[0], "thin king\n")
        first = open(self.path("tokenizer.json"), "rb").read()
        self.kiln("train", "tokenizer=unigram", "tokenizer.vocab_size=30", "files=b.txt")
        self.assertEqual(open(self.path("tokenizer.json"), "rb").read(), first)

    def test_pretrained(self):
        self.kiln("train", "tokenizer=words", "files=a.txt", "output=first.json")
        self.kiln("train", "tokenizer=pretrained", "tokenizer.path=first.json", "files=a.txt", "output=second.json")
        self.assertEqual(read_json(self.path("first.json")), read_json(self.path("second.json")))
        out, _ = self.kiln("show", "second.json")
        self.assertIn("WordLevel", out)

    def test_refusals(self):
        self.kiln("train", "tokenizer=words", "files=a.txt")
        os.rename(self.path("tokenizer.json"), self.path("t.json"))
        self.write("bad.txt", b"good\nb\xe9d\n")
        self.write("empty.txt", b"")
        self.write("other.json", b'{"a": 1}')
        for args, stdin, status, says in [
                (["train", "files=bad.txt"], "", 1, "bad.txt:2: byte 1 (0xe9) is not UTF-8"),
                (["train", "files=empty.txt"], "", 1, "no words to learn from"),
                (["train", "files=none.txt"], "", 1, "none.txt: "),
                (["train"], "", 2, "files="),
                (["train", "files=a.txt", "tokenizer=bep"], "", 1, "bpe"),
                (["train", "files=a.txt", "tokenizer.vocab=3"], "", 1, "vocab_size"),
                (["train", "files=a.txt", "tokenizer=wordpiece", "tokenizer.vocab_size=8"], "", 1, "raise vocab_size"),
                (["train", "files=a.txt", "tokenizer=unigram", "tokenizer.vocab_size=8"], "", 1, "raise vocab_size"),
                (["encode", "t.json"], b"ok\n\xff\n", 1, "standard input, line 2: byte 0 (0xff)"),
                (["decode", "t.json"], "1 99999", 1, "expected ids from 0 to"),
                (["decode", "t.json"], "one", 1, "line 1: "),
                (["show", "other.json"], "", 1, "other.json: a: kiln does not know this key"),
                (["show"], "", 2, "expected one tokenizer.json"),
                (["shwo", "t.json"], "", 2, "did you mean show?")]:
            _, err = self.kiln(*args, stdin=stdin, status=status)
            self.assertIn(says, err, args)
        self.assertFalse(os.path.exists(self.path("tokenizer.json")))


main()
