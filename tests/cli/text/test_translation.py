"""Translation: learning to reverse words, decoding, predictions of raw text, resuming, bad input."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import random
import subprocess

from kilntest import BUILD, Case, main, read_json

WORDS = "red blue green one two three cat dog".split()
MODEL = ["task=translation", "model=encoder_decoder", "model.width=32", "model.feedforward=64", "model.heads=2",
         "model.encoder_layers=1", "model.decoder_layers=1", "model.dropout=0.0", "datamodule=parallel_text",
         "datamodule.source=src", "datamodule.target=tgt", "datamodule.tokenizer.vocab_size=290", "optimizer=adam",
         "lr=0.005", "batch_size=64", "trainer.threads=1"]


def lines(n, seed, longest=4):
    rng = random.Random(seed)
    pairs = [[rng.choice(WORDS) for _ in range(rng.randint(1, longest))] for _ in range(n)]
    return ["".join(" ".join(p[::step]) + "\n" for p in pairs) for step in (1, -1)]


class Translation(Case):
    def kiln(self, *args, status=0):
        done = subprocess.run([os.path.join(BUILD, "kiln"), *args], cwd=self.dir, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def split(self, name, n, seed):
        for ending, text in zip(("src", "tgt"), lines(n, seed)):
            self.write(f"{name}.{ending}", text)
        return f"datamodule.files.{name}=[{name}.src,{name}.tgt]"

    def train(self, *args, run="run", status=0):
        return self.kiln("train", *MODEL, f"kiln.run.dir={run}", *args, status=status)

    def predict(self, *args):
        return [json.loads(line) for line in self.kiln("predict", *args)[0].splitlines()]

    def test_reverse(self):
        """A small model learns to reverse words; raw text gets the translations of the test split, whose scores are the
        model's own."""
        files = [self.split("train", 3000, 1), self.split("val", 60, 2), self.split("test", 100, 3)]
        out, _ = self.train(*files, "trainer.max_epochs=10", "+task.metrics.chrf=chrf")
        self.assertIn("test/bleu is counted as nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0", out)
        metrics = read_json(self.path("run", "summary.json"))["metrics"]
        self.assertGreater(metrics["test/bleu"]["last"]["value"], 90)
        self.assertGreater(metrics["test/chrf"]["last"]["value"], 90)
        self.assertGreater(metrics["val/bleu"]["last"]["value"], 90)

        self.write("new.txt", pathlib.Path(self.path("test.src")).read_bytes())
        split, given = self.predict("ckpt_path=run", "split=test"), self.predict("ckpt_path=run", "input=new.txt")
        self.assertEqual([(r["translation"], r["score"]) for r in split], [(r["translation"], r["score"]) for r in given])
        truth = pathlib.Path(self.path("test.tgt")).read_text().splitlines()
        self.assertGreater(sum(r["translation"] == t for r, t in zip(given, truth)), 90)
        piped = subprocess.run([os.path.join(BUILD, "kiln"), "predict", "run", "-"], cwd=self.dir, text=True, check=True,
                               input=pathlib.Path(self.path("new.txt")).read_text(), stdout=subprocess.PIPE)
        for line, row in zip(piped.stdout.splitlines(), given, strict=True):
            self.assertEqual({k: json.loads(line)[k] for k in ("translation", "score")},
                             {k: row[k] for k in ("translation", "score")})
        self.assertEqual(given[0]["source_text"], lines(100, 3)[0].split("\n")[0])

        several = self.predict("ckpt_path=run", "input=new.txt", "task.n_best=3")
        for one, best in zip(given, several):
            scores = [c["score"] for c in best["candidates"]]
            self.assertEqual(best["candidates"][0], {"translation": one["translation"], "score": one["score"]})
            self.assertEqual((len(scores), scores), (3, sorted(scores, reverse=True)))

        # With length_penalty=1 a score is the mean log-probability of the tokens, which the loss of the same pair, without
        # caches, is.
        for row in given[:3]:
            self.write("test.src", row["source_text"] + "\n")
            self.write("test.tgt", row["translation"] + "\n")
            out, _ = self.kiln("eval", "ckpt_path=run")
            self.assertAlmostEqual(json.loads(out.splitlines()[-1])["metrics"]["test/loss"], -row["score"], places=4)

    def test_variants(self):
        """Each form of the model trains and decodes, with one vocabulary or two."""
        files = [self.split("train", 300, 1), self.split("val", 10, 2), self.split("test", 10, 3)]
        for i, options in enumerate([
                ["model.norm_first=false", "model.positions=learned", "model.activation=gelu"],
                ["model.share_embeddings=false", "datamodule.target_tokenizer=bpe",
                 "datamodule.target_tokenizer.special_tokens=['<pad>','<s>','</s>']",
                 "datamodule.target_tokenizer.vocab_size=280"],
                ["model.tie_output=false", "task.length_penalty=0.0", "task.beams=2", "task.max_length=5"],
                ["trainer.precision=bf16-mixed"], ["task.val_samples=0", "task.beams=1"]]):
            self.train(*files, *options, "trainer.max_epochs=1", run=f"run{i}")
            self.assertEqual(len(self.predict(f"ckpt_path=run{i}", "split=test")), 10)

    def test_resume(self):
        """A run that stops after an epoch and resumes ends with the same bytes."""
        files = [self.split("train", 300, 1), self.split("val", 20, 2)]
        args = [*files, "model.dropout=0.1", "scheduler=inverse_sqrt", "scheduler.warmup_steps=4"]
        self.train(*args, "trainer.max_epochs=2", run="whole")
        self.train(*args, "trainer.max_epochs=1", run="part")
        self.train(*args, "trainer.max_epochs=2", "ckpt_path=part/checkpoints/last", run="again")
        weights = [pathlib.Path(self.path(run, "checkpoints/last/model.safetensors")).read_bytes() for run in ("whole", "again")]
        self.assertEqual(weights[0], weights[1])

    def test_bad_input(self):
        train = self.split("train", 100, 1)
        source, target = lines(100, 1)
        self.write("train.src", source + "one more\n")
        self.assertIn("train.src", self.train(train, status=1)[1])
        self.write("train.src", source + "  \n")
        self.write("train.tgt", target + "blank\n")
        self.assertIn('train.src:101: the text (column "src") is empty', self.train(train, status=1)[1])
        self.train(train, "datamodule.on_error=skip", "trainer.max_epochs=1", run="skip")
        self.write("train.src", source)
        self.write("train.tgt", target)
        self.train(train, "datamodule.max_length=4", "trainer.max_epochs=1", run="cut")
        _, err = self.train(train, "datamodule.tokenizer.special_tokens=['<pad>']", run="tokens", status=1)
        self.assertIn("has no token that begins a text", err)
        _, err = self.train(train, "datamodule.target_tokenizer=bpe", "datamodule.target_tokenizer.vocab_size=300",
                            "model.share_embeddings=false", run="tokens", status=1)
        self.assertIn("datamodule.target_tokenizer: has no token that", err)
        _, err = self.train(train, "datamodule.target=de", run="column", status=1)
        self.assertIn("tgt", err)
        # without names the first file is the source
        out, _ = self.train(train, "datamodule.source=source", "datamodule.target=target", "trainer.max_epochs=1", run="order")
        self.assertRegex(out, "files +train.src: format parallel, columns src, tgt")
        _, err = self.train(train, "task.n_best=9", run="best", status=1)
        self.assertIn("task.n_best: expected at most the 5 beams, got 9", err)
        _, err = self.train(train, "model=lstm", run="model", status=1)
        self.assertIn("models that fit: encoder_decoder", err)
        self.write("new.jsonl", '{"src": " "}\n{"src": "red"}\n')
        out, _ = self.kiln("predict", "ckpt_path=skip", "input=new.jsonl", status=1)
        self.assertIn('the text (\\"src\\") is empty', out.splitlines()[0])
        self.assertIn("translation", out.splitlines()[1])


main()
