"""trainer.passes_off and trainer.recompute: every built-in network trains to the same losses with each pass off, and with
all passes off."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import csv
import glob
import os
import re

from kilntest import ROOT, SHORT, Case, main

OTHERS = ("bag_of_tokens", "encoder_decoder", "gpt", "text_cnn", "text_lstm", "dlrm", "row_encoder", "unet", "deeplab_v3",
          "fusion", "fcos", "crnn")
DEEP = ("resnet", "convnext", "mobilenet_v3", "efficientnet")  # of 32 pixels at least, and slow
EXACT = ("dead_code", "common_subexpressions", "in_place", "share_memory")  # these don't change what is computed
COMMON = ["datamodule=digits", "datamodule.batch_size=16", "datamodule.train_count=64", "datamodule.val_count=16",
          "datamodule.test_count=16", "trainer.max_steps=4", "trainer.log_every_n_steps=1",
          "trainer.threads=2", "trainer.enable_checkpointing=false", "test=false"]


def pass_names():
    with open(os.path.join(ROOT, "src/graph/passes/pass_list.h")) as f:
        return re.findall(r'^    X\((\w+), (?:true|false)', f.read(), re.M)


def models():
    """Those that classify images, in conf/model."""
    names = []
    for path in sorted(glob.glob(os.path.join(ROOT, "conf/model/*.yaml"))):
        name = os.path.basename(path)[:-5]
        component = re.search(r"_target_: model/(\w+)", pathlib.Path(path).read_text())[1]
        # transformers of tokens and of columns, and one that is too large
        if component not in OTHERS and name not in ("bert", "ft_transformer", "vit_b_16"):
            names.append(name)
    return [name for name in names if not SHORT or name not in DEEP]


class Passes(Case):
    def losses(self, run, *args):
        self.run_kiln(*COMMON, *args, f"kiln.run.dir={run}")
        with open(self.path(run, "metrics.csv")) as f:
            found = [row["train/loss_step"] for row in csv.DictReader(f) if row.get("train/loss_step")]
        self.assertGreaterEqual(len(found), 4)
        return found

    def test_losses_with_each_pass_left_out(self):
        names = pass_names()
        self.assertIn("fuse_epilogue", names)
        for model in models():
            args = [f"model={model}", f"datamodule.size={32 if model in DEEP else 12}"]
            if model in DEEP[1:]:  # larger steps make small differences large
                args.append("lr=1e-4")
            whole = self.losses(f"{model}-all", *args)
            for off in ([] if model in DEEP[1:] or SHORT and model != "cnn" else names) + [",".join(names)]:
                found = self.losses(f"{model}-{off}", *args, f"trainer.passes_off=[{off}]")
                with self.subTest(model=model, off=off):
                    if off in EXACT:
                        self.assertEqual(found, whole)
                    # Without layouts other convolutions run, which round differently.
                    tolerance = 2e-2 if "layouts" in off and model in DEEP else 1e-5
                    for a, b in zip(found, whole, strict=True):
                        self.assertLessEqual(abs(float(a) - float(b)), tolerance * abs(float(b)))

    def test_a_pattern_of_nothing_is_refused(self):
        _, err = self.run_kiln(*COMMON, "model=cnn", "trainer.recompute=['nothing*']", "kiln.run.dir=run", status=1)
        self.assertIn('"nothing*" matches no layer; the first is conv1', err)

    def test_recomputed_blocks_give_the_same_losses(self):
        for model, pattern in ("mlp", "*"), ("cnn", "*"), ("resnet", "layer*.*"):
            if model in models():
                kept = self.losses(f"{model}-kept", f"model={model}")
                again = self.losses(f"{model}-again", f"model={model}", f"trainer.recompute=['{pattern}']")
                self.assertEqual(kept, again, model)

    def test_a_pass_that_is_not_there(self):
        _, err = self.run_kiln(*COMMON, "trainer.passes_off=[fuse_epilog]", status=1)
        self.assertIn("fuse_epilogue", err)


if __name__ == "__main__":
    main()
