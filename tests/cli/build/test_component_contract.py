"""Every built-in component and every example plugin keeps the contract of its kind (kiln plugin check)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import struct
import subprocess
import unittest

from kilntest import ROOT, SHORT, Case

# What can't be checked, and why.
SKIPPED = {
    ("callback/timer", "same bytes"): "clock",
    ("callback/timer", "resuming"): "clock",
    ("callback/timer", "killed"): "clock",
    ("datamodule/arrays", "samples"): "arrays of a program that embeds kiln",
    ("datamodule/arrays", "training"): "arrays of a program that embeds kiln",
    ("datamodule/noise", "predicting"): "no samples of a user",
    ("launcher/slurm", "jobs"): "other machines",
    ("module/gan", "gradients"): "no gradients of one loss",
    ("module/trees", "gradients"): "no gradients of one loss",
    ("sweeper/schedule", "search"): "phases",
    ("tokenizer/pretrained", "building"): "option path is required",
}
NO_TENSORS = "bleu", "chrf", "coco_map", "error_rate", "mean_average_precision", "ndcg", "slot_f1"
SKIPPED.update({(f"metric/{name}", "training"): "no tensors of a step" for name in NO_TENSORS})
OPTIONAL = "built without"  # libraries


class Contract(Case):
    def check(self, *args, seconds=3600):
        out, _ = self.run_kiln("plugin", "check", "--json", *args, program="kiln", status=None, timeout=seconds)
        return json.loads(out)

    def findings(self, report, result):
        return {(found["component"], found["check"]): found["text"] for found in report["findings"]
                if found["result"] == result}

    def run_kiln(self, *args, status=0, **options):
        """`status` None: any."""
        if status is not None:
            return super().run_kiln(*args, status=status, **options)
        process = self.start(*args, program=options["program"])
        return process.communicate(timeout=options["timeout"])

    def passes(self, *args, at_least=5):
        report = self.check(*args)
        self.assertEqual(self.findings(report, "failed"), {})
        self.assertGreaterEqual(report["passed"], at_least)
        return report

    def test_built_in_components(self):
        if SHORT:  # minutes become hours
            return self.passes("callback/ema")
        report = self.passes("--all")
        listed = self.run_kiln("list", program="kiln")[0].split("\nmore")[0]
        names = [line for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]
        self.assertEqual(report["components"], len(names))
        skipped = {key: text for key, text in self.findings(report, "skipped").items() if OPTIONAL not in text}
        self.assertEqual(set(skipped) - set(SKIPPED), set(), skipped)
        for key, text in skipped.items():
            self.assertIn(SKIPPED[key], text)

    def test_examples(self):
        for name in sorted(os.listdir(os.path.join(ROOT, "examples/plugin"))):
            if name.endswith(".c"):
                with self.subTest(name):
                    path = self.path(name[:-2] + ".so")
                    subprocess.run(["cc", "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-O2", "-fPIC", "-shared", "-DKILN_BUILD_PLUGIN",
                                    "-I", os.path.join(ROOT, "src"), "-o", path,
                                    os.path.join(ROOT, "examples/plugin", name), "-lm"], check=True)
                    words = []
                    if name == "signals.c":
                        words = ["datamodule.root=" + self.dir]
                        for split in "train", "val", "test":
                            samples = b"".join(bytes([i % 2, i, 0, i, i % 7]) for i in range(32))
                            pathlib.Path(self.path(split + ".sig")).write_bytes(b"SIG1" + struct.pack("<III", 32, 2, 2) + samples)
                    skipped = self.findings(self.passes(path, *words), "skipped")
                    # AddressSanitizer's allocator counts nothing, and finds leaks itself.
                    self.assertEqual({text for text in skipped.values() if "allocator" not in text}, set())

    def refuses(self, *args, says, status):
        out, err = super().run_kiln("plugin", *args, program="kiln", status=status)
        self.assertEqual(out, "")
        self.assertIn(says, err)

    def test_command_lines(self):
        self.refuses(says="expected a verb: new, check", status=2)
        self.refuses("chekc", says="did you mean check?", status=2)
        self.refuses("check", says="expected a plugin (./mine.so), a component", status=2)
        self.refuses("check", "--all", "callback/ema", says="leave out callback/ema", status=2)
        self.refuses("check", "callback/ema", "--timeout", "no", says="expected seconds above 0", status=2)
        self.refuses("check", "callback/emma", says='did you mean "ema"?', status=1)

    def test_required_options(self):
        report = self.check("tokenizer/pretrained")
        self.assertIn("option path is required", self.findings(report, "skipped")[("tokenizer/pretrained", "building")])
        self.write("texts.txt", "to be or not to be\n" * 20)
        super().run_kiln("tokenizer", "train", "tokenizer=bpe", "tokenizer.vocab_size=280", "files=texts.txt",
                         "output=bpe.json", program="kiln")
        self.passes("tokenizer/pretrained", "tokenizer.path=bpe.json", at_least=3)


if __name__ == "__main__":
    unittest.main()
