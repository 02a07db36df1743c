"""kiln tokenizer: training, encoding, decoding, and what is refused."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import gzip
import json
import os
import random
import signal
import subprocess
import time

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

    def test_files(self):
        """Packed files are as the files in them, and a column as a file with its values."""
        self.kiln("train", "tokenizer=bpe", "files=a.txt", "output=plain.json")
        self.write("b.txt.gz", gzip.compress(LINES.encode()))
        self.kiln("train", "tokenizer=bpe", "files=b.txt.gz", "output=packed.json")
        self.assertEqual(read_json(self.path("plain.json")), read_json(self.path("packed.json")))
        self.write("c.csv", b'id,text\n1,"see, ""sea"""\n2,"to\nsee"\n')
        self.write("d.jsonl.gz", gzip.compress(b'{"text": "see"}\n{"text": "to"}\n'))
        for file, want in [("c.csv", {"see", "sea", "to"}), ("d.jsonl.gz", {"see", "to"})]:
            self.kiln("train", "tokenizer=words", f"files={file}", "column=text")
            tokens = set(read_json(self.path("tokenizer.json"))["model"]["vocab"])
            self.assertEqual({t for t in tokens if t.isalpha()}, want)

    def test_interrupt(self):
        """What takes long is shown, line by line where there is no terminal; Ctrl-C leaves no file and has its exit status."""
        numbers = random.Random(1)
        self.write("long.txt", "".join(f"{numbers.getrandbits(64):x} {numbers.getrandbits(64):x}\n" for _ in range(400000)).encode())
        before = sorted(os.listdir(self.dir))
        process = subprocess.Popen([os.path.join(BUILD, "kiln"), "tokenizer", "train", "tokenizer=bpe", "files=long.txt"], cwd=self.dir,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # However fast the processor is, it takes longer than progress stays hidden for.
        time.sleep(0.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.0)
        process.send_signal(signal.SIGCONT)
        line = process.stderr.readline().decode()
        self.assertRegex(line, r"^(reading texts|learning merges)  \d+%  \S+( \S)?/s  \d+:\d\d left$")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual((process.returncode, out, err), (130, b"", b""))
        self.assertEqual(sorted(os.listdir(self.dir)), before)

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
        first = pathlib.Path(self.path("tokenizer.json")).read_bytes()
        self.kiln("train", "tokenizer=unigram", "tokenizer.vocab_size=30", "files=b.txt")
        self.assertEqual(pathlib.Path(self.path("tokenizer.json")).read_bytes(), first)

    def test_words_of_columns(self):
        """Words that white space separates, with every digit 0."""
        self.write("a.txt", "Mr. O'Neil left at 10:45\nat 10:30\n")
        for digits, lowercase, wanted in [("false", "false", ["Mr.", "O'Neil", "at", "10:45"]),
                                          ("true", "false", ["Mr.", "O'Neil", "at", "00:00"]),
                                          ("true", "true", ["mr.", "o'neil", "at", "00:00"])]:
            self.kiln("train", "tokenizer=words", "tokenizer.split=white_space", f"tokenizer.digits={digits}",
                      f"tokenizer.lowercase={lowercase}", "files=a.txt", "output=b.json")
            out, _ = self.kiln("encode", "b.json", stdin="Mr. O'Neil at 10:45\n")
            self.assertEqual(json.loads(out)["tokens"], wanted)

    def test_pipes(self):
        """Standard input, /dev/stdin and process substitution give what the file does."""
        text = b"to be, or not to be\nthat is the question\n" * 3000  # more than a pipe holds
        self.write("long.txt", text)
        self.kiln("train", "tokenizer=bpe", "files=a.txt,long.txt", "output=file.json", "tokenizer.vocab_size=300")
        for number, command in enumerate(("cat long.txt | {} files=a.txt,-", "cat long.txt | {} files=a.txt,/dev/stdin",
                                          "{} files=a.txt,<(cat long.txt)", "{} files=a.txt,- <long.txt")):
            kiln = f"{BUILD}/kiln tokenizer train tokenizer=bpe tokenizer.vocab_size=300 output=pipe{number}.json"
            subprocess.run(["bash", "-c", "set -o pipefail; " + command.format(kiln)], cwd=self.dir, check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(read_json(self.path(f"pipe{number}.json")), read_json(self.path("file.json")), command)

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
                (["train"], "", 2, "tokenizer: error: train: needs texts: files="),
                (["train", "files=[a.txt]"], "", 2, "files=[a.txt]: write the names without brackets"),
                (["train", "files=/dev/null"], "", 1, "is a device, not a regular file"),
                (["train", "files=-", "column=text"], "a\n", 2, "column=text: - is a pipe"),
                (["train", "files=-"], b"good\nb\xe9d\n", 1, "standard input:2: byte 1 (0xe9) is not UTF-8"),
                (["train", "files=a.txt", "column=txt"], "", 1, 'no column "txt" (did you mean "text"?)'),
                (["train", "files=a.txt", "tokenizer=bep"], "", 1, "bpe"),
                (["train", "files=a.txt", "tokenizer.vocab=3"], "", 1, "vocab_size"),
                (["train", "files=a.txt", "tokenizer=wordpiece", "tokenizer.vocab_size=8"], "", 1, "raise vocab_size"),
                (["train", "files=a.txt", "tokenizer=unigram", "tokenizer.vocab_size=8"], "", 1, "raise vocab_size"),
                (["encode", "t.json"], b"ok\n\xff\n", 1, "standard input, line 2: byte 0 (0xff)"),
                (["decode", "t.json"], "1 99999", 1, "expected ids from 0 to"),
                (["decode", "t.json"], "one", 1, "line 1: "),
                (["show", "other.json"], "", 1, "other.json: a: kiln does not know this key"),
                (["show"], "", 2, "expected one tokenizer.json"),
                ([], "", 2, "tokenizer: error: expected train, "),
                (["shwo", "t.json"], "", 2, "tokenizer: error: shwo: expected train, encode, decode or show; did you mean show?")]:
            _, err = self.kiln(*args, stdin=stdin, status=status)
            self.assertIn(says, err, args)
        self.assertFalse(os.path.exists(self.path("tokenizer.json")))


main()
