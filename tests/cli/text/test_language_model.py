"""Language models: training on text files, generating, resuming, and what is refused."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import gzip
import json
import os
import resource
import signal
import subprocess
import unittest

from kilntest import BUILD, Case, main, read_json

ASAN = "asan" in BUILD
VERSE = "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate.\n"
TINY = ["task=language_model", "datamodule=text_blocks", "datamodule.files=[text.txt]", "datamodule.context=16",
        "model=gpt", "model.width=32", "model.layers=2", "model.heads=4", "optimizer=adamw", "lr=0.01", "batch_size=8",
        "trainer.max_epochs=2", "trainer.threads=1", "test=false", "kiln.run.dir=run"]
CHARACTERS = ["datamodule.tokenizer._target_=tokenizer/characters"]


class LanguageModel(Case):
    def setUp(self):
        super().setUp()
        self.write("text.txt", (VERSE * 30).encode())

    def kiln(self, *args, stdin="", status=0, **more):
        done = subprocess.run([os.path.join(BUILD, "kiln"), *args], cwd=self.dir, input=stdin.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def generate(self, *args, **more):
        return self.kiln("generate", "run", "-q", *args, **more)[0]

    def test_train_and_generate(self):
        """A text that repeats is learned; generating continues it."""
        out, _ = self.kiln("train", *TINY, *CHARACTERS, "datamodule.context=48", "trainer.max_epochs=80")
        self.assertRegex(out, r"\ngenerate +kiln generate ckpt_path=run/checkpoints/\w+ prompt=TEXT\n")
        metrics = {name: m["last"]["value"] for name, m in read_json(self.path("run/summary.json"))["metrics"].items()}
        self.assertLess(metrics["val/loss"], 0.1)
        self.assertAlmostEqual(metrics["val/perplexity"], 2.718281828 ** metrics["val/loss"], delta=1e-3)
        out = self.generate("prompt=Shall I ", "temperature=0", "max_tokens=40")
        self.assertEqual(out, VERSE[:48] + "\n")
        out = self.generate("prompt=Shall I ", "temperature=0", "stop=day?", "stop=x")
        self.assertEqual(out, "Shall I compare thee to a summer's \n")
        # the same seed, the same text; many prompts at once give what each gives alone
        draw = ["temperature=2", "max_tokens=30"]
        self.assertEqual(self.generate("prompt=Thou", *draw, "seed=3"), self.generate("prompt=Thou", *draw, "seed=3"))
        self.assertNotEqual(self.generate("prompt=Thou", *draw, "seed=3"), self.generate("prompt=Thou", *draw, "seed=4"))
        lines = self.generate("input=-", "temperature=0", "max_tokens=20", stdin="Shall I \nThou art\n").splitlines()
        alone = [self.generate(f"prompt={p}", "temperature=0", "max_tokens=20") for p in ("Shall I ", "Thou art")]
        for line, one in zip(map(json.loads, lines), alone):
            self.assertEqual(line["prompt"] + line["text"] + "\n", one)
            self.assertEqual((line["tokens"], line["end"]), (20, "max_tokens"))
        # beyond the context
        self.assertGreater(len(self.generate("prompt=Shall", "max_tokens=200")), 200)
        # the loss of a text, as validation sees it
        self.write("lines.txt", b"Shall I compare\nzzzzqqqq\n")
        out, _ = self.kiln("predict", "run", "lines.txt", "-q")
        good, bad = map(json.loads, out.splitlines())
        self.assertLess(good["loss"], bad["loss"])

    def test_bytes_and_lines(self):
        """Documents end with the tokenizer's end of a text, which generating stops at."""
        self.write("text.txt", b"abc\n\ndefg\r\n" * 60)
        self.kiln("tokenizer", "train", "tokenizer=bpe", "tokenizer.special_tokens=['<|endoftext|>']", "files=text.txt",
                  "output=t.json", "tokenizer.vocab_size=257")
        self.kiln("train", *TINY, "datamodule.tokenizer._target_=tokenizer/pretrained", "datamodule.tokenizer.path=t.json",
                  "datamodule.documents=line", "datamodule.blocks=consecutive", "datamodule.context=4", "trainer.max_epochs=20")
        out = self.generate("input=-", "temperature=0", stdin="ab\nde\n\n")
        made = list(map(json.loads, out.splitlines()))
        self.assertEqual([m["end"] for m in made], ["end_token"] * 3)
        self.assertEqual([m["text"] for m in made[:2]], ["c", "fg"])
        self.assertIn(made[2]["text"], ["abc", "defg"])

    def test_cache_and_resume(self):
        """Tokens from a cache folder give the same run; a resumed run ends with the same bytes."""
        self.kiln("train", *TINY, "datamodule.cache=tokens", "kiln.run.dir=first")
        cached = sorted(os.listdir(self.path("tokens")))
        self.assertEqual([name.split("-")[0] for name in cached], ["train", "val"])
        before = [os.stat(self.path(f"tokens/{name}")).st_mtime_ns for name in cached]
        self.kiln("train", *TINY, "datamodule.cache=tokens", "kiln.run.dir=second")
        self.assertEqual(before, [os.stat(self.path(f"tokens/{name}")).st_mtime_ns for name in cached])
        self.kiln("train", *TINY, "kiln.run.dir=third", "trainer.max_epochs=1")
        self.kiln("train", *TINY, "kiln.run.dir=fourth", "ckpt_path=third")

        def weights(run):
            with open(self.path(f"{run}/checkpoints/last/model.safetensors"), "rb") as file:
                return file.read()

        self.assertEqual(weights("first"), weights("second"))
        self.kiln("train", *TINY, "kiln.run.dir=fifth", "datamodule.cache=null")
        self.assertEqual(weights("first"), weights("fifth"))
        # a packed file is as the text in it
        self.write("text.txt.gz", gzip.compress((VERSE * 30).encode()))
        self.kiln("train", *TINY, "kiln.run.dir=packed", "datamodule.files=[text.txt.gz]")
        self.assertEqual(weights("first"), weights("packed"))
        self.write("broken.txt.gz", gzip.compress((VERSE * 30).encode())[:-9])
        _, err = self.kiln("train", *TINY, "kiln.run.dir=bad", "datamodule.files=[broken.txt.gz]", status=1)
        self.assertIn("broken.txt.gz: damaged gzip file", err)
        # another text is encoded again
        self.write("text.txt", (VERSE * 31).encode())
        self.kiln("train", *TINY, "datamodule.cache=tokens", "kiln.run.dir=sixth", "trainer.max_epochs=1")
        self.assertEqual(len(os.listdir(self.path("tokens"))), 4)

    @unittest.skipIf(ASAN, "the sanitizer's own memory does not fit a limit")
    def test_larger_than_memory(self):
        """With a cache, a text and its tokens are in files alone, also where it is one document; without, the message names it."""
        self.write("text.txt", (VERSE * (48_000_000 // len(VERSE))).encode())

        def limit():
            resource.setrlimit(resource.RLIMIT_DATA, (120_000_000, 120_000_000))

        once = [*TINY, "trainer.max_steps=1", "trainer.limit_val_batches=1"]
        _, err = self.kiln("train", *once, status=1, preexec_fn=limit)
        self.assertRegex(err, r"the tokens of the text do not fit into memory \([0-9,]+ so far\); keep them in a file: datamodule.cache=DIR")
        for documents in "file", "line":
            self.kiln("train", *once, f"datamodule.documents={documents}", "datamodule.cache=tokens",
                      f"kiln.run.dir={documents}", preexec_fn=limit)
        self.assertEqual(len(os.listdir(self.path("tokens"))), 4)

    def test_documents_by_themselves(self):
        """With document_mask=true a block's loss is that of its documents, each as a sample of its own."""
        lines = ["to be", "or not to be, that is", "the question", "whether", "'tis nobler in the mind to suffer"]
        self.write("val.txt", "\n".join(lines).encode())
        masked = ["datamodule.documents=line", "datamodule.document_mask=true", "datamodule.val_files=[val.txt]",
                  "datamodule.context=%d" % (sum(map(len, lines)) - 1), "trainer.max_epochs=1"]
        llama = ["model.norm=rms", "model.feed_forward=swiglu", "model.positions=rotary", "model.kv_heads=2"]
        for number, options in enumerate((["model.positions=learned"], llama)):
            run = f"kiln.run.dir=run{number}"
            self.kiln("train", *TINY, *CHARACTERS, *masked, *options, run)
            packed = read_json(self.path(f"run{number}/summary.json"))["metrics"]["val/loss"]["last"]["value"]
            out, _ = self.kiln("predict", f"run{number}", "val.txt", "-q")
            alone = [json.loads(line)["loss"][0] for line in out.splitlines()]
            predicted = [len(line) - 1 for line in lines]
            mean = sum(loss * n for loss, n in zip(alone, predicted)) / sum(predicted)
            self.assertAlmostEqual(packed, mean, delta=2e-6 * packed)
            # and generating works as without
            self.kiln("generate", f"run{number}", "prompt=to", "max_tokens=3")
        # without the mask the model also sees, and predicts, what is unrelated
        self.kiln("train", *TINY, *CHARACTERS, *masked, "datamodule.document_mask=false", "kiln.run.dir=mixed")
        mixed = read_json(self.path("mixed/summary.json"))["metrics"]["val/loss"]["last"]["value"]
        self.assertNotAlmostEqual(mixed, packed, delta=1e-3)
        # tokens from a cache have the same documents
        for name in "first", "second":
            self.kiln("train", *TINY, *CHARACTERS, *masked, *llama, "datamodule.cache=tokens", f"kiln.run.dir={name}")
            cached = read_json(self.path(f"{name}/summary.json"))["metrics"]["val/loss"]["last"]["value"]
            self.assertEqual(cached, packed)

    def test_samples(self):
        """The callback writes texts after each validation, and changes nothing else."""
        out, _ = self.kiln("train", *TINY, "callbacks=sample_text", "callbacks.sample_text.prompts=[Shall,Thou]",
                           "callbacks.sample_text.max_tokens=5")
        self.assertEqual(out.count("sample 1: Shall"), 2)
        self.assertEqual(out.count("sample 2: Thou"), 2)
        self.kiln("train", *TINY, "kiln.run.dir=plain")
        with open(self.path("run/checkpoints/last/model.safetensors"), "rb") as a, \
                open(self.path("plain/checkpoints/last/model.safetensors"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_bad_text(self):
        """Messages have file, line and byte; a prompt that is refused is not printed."""
        self.write("text.txt", (VERSE * 30).encode() + b"caf\xe9\n" + (VERSE * 30).encode())
        place = f"text.txt:61: byte {len(VERSE) * 30 + 3} of the file (0xe9) is not UTF-8"
        for options in [], CHARACTERS, ["datamodule.tokenizer._target_=tokenizer/bpe", "datamodule.documents=line"]:
            self.assertIn(place, self.kiln("train", *TINY, *options, status=1)[1])
        self.write("good.txt", VERSE * 30)
        self.kiln("train", *TINY, "datamodule.files=[good.txt]", "trainer.max_steps=2")
        pretrained = ["datamodule.tokenizer._target_=tokenizer/pretrained",
                      f"datamodule.tokenizer.path={self.path('run/checkpoints/last/preprocessing/tokenizer.json')}"]
        for options in [], ["datamodule.documents=line"]:
            self.assertIn(place, self.kiln("train", *TINY, *pretrained, *options, "kiln.run.dir=bad", status=1)[1])
        self.write("text.txt", b"")
        self.assertIn("files: text.txt has no text", self.kiln("train", *TINY, "kiln.run.dir=bad", status=1)[1])
        out, err = self.kiln("generate", "run", "prompt=" + "long " * 20, status=1)
        self.assertEqual(out, "")
        self.assertIn("has 100 tokens, but the model was trained on 16", err)

    def test_interrupt(self):
        self.kiln("train", *TINY, "trainer.max_steps=2")
        process = subprocess.Popen([os.path.join(BUILD, "kiln"), "generate", "run", "prompt=Shall", "max_tokens=100000000",
                                    "datamodule.context=16"], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.read(5), b"Shall")
        process.stdout.read(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertTrue(out.endswith(b"\n"))

    def test_other_tokenizer(self):
        """A checkpoint's text is that of its own tokenizer; an exchanged one is refused, and weights of another vocabulary are."""
        self.kiln("train", *TINY, *CHARACTERS, "trainer.max_steps=2")
        self.write("other.txt", b"zebra quilt\n" * 90)
        self.kiln("tokenizer", "train", "tokenizer=words", "files=other.txt", "output=other.json")
        other = ["datamodule.tokenizer._target_=tokenizer/pretrained", "datamodule.tokenizer.path=other.json"]
        same = ["prompt=Shall", "temperature=0", "max_tokens=5"]
        self.assertEqual(self.generate(*same, "datamodule.tokenizer={_target_: tokenizer/pretrained, path: other.json}"), self.generate(*same))
        _, err = self.kiln("train", *TINY, *other, "weights=run", "kiln.run.dir=third", "datamodule.files=[other.txt]", "datamodule.context=4", status=1)
        self.assertRegex(err, r"does not fit this network; different shape: token_embedding.weight \(\[\d+, 32\] in the file, \[4, 32\]")
        self.write("long.txt", b"a" * 18 + b"\n")
        out, err = self.kiln("predict", "run", "long.txt", status=1)
        self.assertIn("the text has 18 tokens; expected 2 to 17 (datamodule.context and one more)", json.loads(out)["error"])
        last = self.path("run/checkpoints/last/preprocessing/tokenizer.json")
        os.replace(self.path("other.json"), last)
        for command in (["generate", "run", *same], ["predict", "run", "text.txt"]):
            _, err = self.kiln(*command, status=1)
            self.assertIn("preprocessing/tokenizer.json: is truncated", err)

    def test_refusals(self):
        self.kiln("train", *TINY, *CHARACTERS, "trainer.max_steps=2")
        for args, status, says in [
                ([], 2, "the prompt is missing"),
                (["prompt=a", "input=b"], 2, "both prompt and input"),
                (["prompt="], 1, "prompt 1 is empty"),
                (["prompt=" + 17 * "a"], 1, "prompt 1 has 17 tokens, but the model was trained on 16"),
                (["prompt=a", "top_p=2"], 2, "top_p=2: expected a number from 0 to 1"),
                (["prompt=a", "top_k=1.5"], 2, "top_k"),
                (["prompt=a", "temperature=hot"], 2, "temperature=hot"),
                (["prompt=a", "max_token=3"], 1, "kiln generate takes max_tokens=...: try max_tokens=3"),
                (["prompt=a", "tempreature=0"], 1, "try temperature=0"),
                (["prmpt=a"], 2, "try prompt=a"),
                (["prompt=a", "stop="], 2, "stop="),
                (["input=none.txt"], 1, "none.txt")]:
            _, err = self.kiln("generate", "run", *args, status=status)
            self.assertIn(says, err)
        _, err = self.kiln("eval", "run", "splti=val", status=1)
        self.assertIn("kiln eval takes split=...: try split=val", err)
        for args, says in [
                (["datamodule.files=[none.txt]"], "none.txt"),
                (["datamodule.context=100000"], "context: a block has 100001 tokens"),
                (["model.context=8"], "context: 8 tokens"),
                (["model.heads=5"], "divides the width 32"),
                (["model.kv_heads=3"], "divides the 4 heads"),
                (["model.width=36", "model.heads=12", "model.positions=rotary"], "even width")]:
            _, err = self.kiln("train", *TINY, *args, "kiln.run.dir=bad", status=1)
            self.assertIn(says, err)
        self.write("text.txt", VERSE.encode() * 30 + b"\xff")
        _, err = self.kiln("train", *TINY, *CHARACTERS, "kiln.run.dir=bad", "datamodule.val_share=0", status=1)
        self.assertIn("0xff", err)
        # a tokenizer of another size than the network's
        self.write("text.txt", (VERSE * 30).encode())
        _, err = self.kiln("train", *TINY, "kiln.run.dir=bad", "weights=run", status=1)
        self.assertIn("token_embedding.weight", err)
        self.kiln("train", "kiln.run.dir=digits", "trainer.max_steps=1", "test=false")
        _, err = self.kiln("generate", "digits", "prompt=a", status=1)
        self.assertIn("task vision generates no text", err)


if __name__ == "__main__":
    main()
