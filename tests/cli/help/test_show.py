"""kiln show: what it prints about a component can be copied and works."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re
import shlex

from kilntest import BUILD, Case, main

PLUGIN = os.path.join(BUILD, "examples/plugin/resmlp.so")


def parts(text):
    """The page's headings (without colon's right side) with their lines."""
    found, heading = {}, None
    for line in text.splitlines():
        if line and not line.startswith(" "):
            heading = line.split(":")[0]
            found[heading] = []
        elif line:
            found[heading].append(line)
    return found


UNFINISHED = "callback/finetuning"  # which parameters it freezes is for the user to say


class Show(Case):
    def show(self, *words):
        return self.run_kiln("show", *words, program="kiln")[0]

    def test_component(self):
        out = self.show("model/resnet")
        page = parts(out)
        self.assertTrue(out.startswith("model/resnet: Residual network"))
        self.assertRegex(out, r"(?m)^  depth +18\|34\|50\|101\|152 +18 +layers")
        self.assertIn("  _target_: model/resnet", page["example"])
        self.assertIn("  depth: 18", page["example"])
        self.assertEqual(page["try"], ["  train model=resnet model.depth=34",
                                       "  train -m model=resnet model.depth=18,34"])
        chosen = [line.split()[0] for line in page["selected by"]]
        self.assertEqual(chosen, ["model=resnet", "experiment=cifar10/resnet18"])
        self.assertEqual(self.show("resnet"), out)

    def test_part_of_a_group(self):
        """A loss is no task: task=loss/soft would replace the task."""
        self.write("own/task/loss/soft.yaml", "_target_: loss/cross_entropy\nlabel_smoothing: 0.1\n")
        for shown in ["loss/cross_entropy", "task"]:
            self.assertRegex(self.show(shown, "--config-dir", "own"), r"(?m)^  \+task/loss=soft ")
        self.run_kiln("--config-dir", "own", "+task/loss=soft", "--cfg", "job")

    def test_names_by_group(self):
        self.assertEqual(self.show("callbacks/progress_bar"), self.show("progress_bar"))
        self.assertEqual(self.show("task/vision"), self.show("module/vision"))

    def test_every_component(self):
        """Each example file and each line to try composes."""
        names = []
        kind = None
        for line in self.run_kiln("list", program="kiln")[0].splitlines():
            if line.startswith("more"):
                break
            if line and not line.startswith(" "):
                kind = line.split()[0]
            elif line.startswith("  ") and line[2] != " ":
                names.append(f"{kind}/{line.split()[0]}")
        self.assertGreater(len(names), 20)
        for name in names:
            page = parts(self.show(name))
            if "used by" in page:  # no task that comes with kiln gives a metric of this kind its rows
                self.assertTrue(name.startswith("metric/") or page["used by"] == ["  model/transformer, in its option embed"],
                                name)
                continue
            if name.startswith("tokenizer/"):
                self.tokenizer_trains(page["try"], name)
                continue
            for line in page["try"]:
                words = shlex.split(line)
                self.assertEqual(words[0], "train")
                if "-m" not in words:
                    out, _ = self.run_kiln(*words[1:], "--cfg", "job", status=1 if name == UNFINISHED else 0)
                    self.assertRegex(out, rf"_target_: ({os.path.dirname(name)}/)?{os.path.basename(name)}\n", line)
            self.example_composes(name)

    def tokenizer_trains(self, lines, name):
        """With the line to try, and with the file that the page shows."""
        self.write("a.txt", "to be or not to be\n")
        if not os.path.exists(self.path("t.json")):
            self.run_kiln("tokenizer", "train", "files=a.txt", "output=t.json", program="kiln")
        self.assertEqual(len(lines), 1)
        words = shlex.split(lines[0].replace("=FILE", "=a.txt").replace("=DIR", "=t.json"))
        self.assertEqual(words[:3], ["kiln", "tokenizer", "train"])
        self.run_kiln(*words[1:], program="kiln")
        page = parts(self.show(name))["example"]
        self.write("conf/tokenizer/mine.yaml", "\n".join(line[2:] for line in page).replace("???", "t.json") + "\n")
        self.run_kiln("tokenizer", "train", "tokenizer=mine", "files=a.txt", program="kiln")

    def example_composes(self, name):
        out = self.show(name)
        heading = re.search(r"(?m)^example: (.*)$", out)[1]
        lines = [line[2:] for line in parts(out)["example"]]
        if not heading.startswith("conf/"):
            return
        self.write(heading, "\n".join(lines) + "\n")
        group = os.path.dirname(heading)[len("conf/"):]
        required = any(re.search(r": \?\?\?( |$)", line) for line in lines)  # a run would refuse that, so --cfg does too
        # With what its lines to try choose besides.
        besides = [w for w in parts(out)["try"][0].split() if re.fullmatch(r"(task|model|datamodule)(\.\w+)?=.*", w) and
                   not w.startswith((f"{group}=", f"{group}."))] if group in ("task", "model", "datamodule") else []
        out, _ = self.run_kiln(f"{group}=mine", *besides, "--cfg", "all" if group.startswith("kiln") else "job",
                               status=1 if required or name == UNFINISHED else 0)
        self.assertIn(f"_target_: {name}", out)
        os.remove(self.path(heading))

    def test_plugin_and_own_files(self):
        self.write("conf/model/mine.yaml", "_target_: mlp\nhidden: [8]\n")
        self.write("conf/recipe.yaml", "defaults:\n  - model: mine\n")
        out = self.show("mlp")
        self.assertRegex(out, r"(?m)^  model=mine +conf/model/mine.yaml$")
        self.assertRegex(out, r"(?m)^  recipe +conf/recipe.yaml selects model/mine$")
        out = self.show("resmlp", "--plugin", PLUGIN)
        self.assertRegex(out, r"(?m)^  model=resmlp +without a file$")
        self.refused("show", "resmlp", program="kiln", says=["resmlp"])

    def test_groups_sections_files(self):
        out = self.show("optimizer")
        for text in ["optimizer/adam:", "betas", "optimizer=sgd"]:
            self.assertIn(text, out)
        self.assertIn("max_epochs", self.show("trainer"))
        self.assertIn("experiment=mnist/cnn", self.show("experiment"))
        out = self.show("experiment/mnist/cnn")
        self.assertIn("- override /model: cnn", out)
        self.assertIn("# @package _global_", out)
        self.assertIn("monitor: ${oc.select:task.monitor,val/loss}", self.show("callbacks/default"))

    def test_unknown(self):
        self.refused("show", "resnt", program="kiln", says=["resnt", "did you mean \"resnet\"?"])
        self.refused("show", "modle/resnet", program="kiln", says=["did you mean \"model/resnet\"?"])
        self.refused("show", "experiment/mnist/cn", program="kiln", says=["experiment/mnist/cnn"])
        self.refused("show", program="kiln", says=["one name"], status=2)
        self.refused("show", "a", "b", program="kiln", says=["one name"], status=2)

    def test_broken_conf(self):
        self.write("conf/config.yaml", "defaults: [\n")
        self.assertIn("train model=resnet", self.show("resnet"))


if __name__ == "__main__":
    main()
