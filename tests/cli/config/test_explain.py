"""Where values were set: --explain, --cfg job --origins, kiln explain RUN."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import pty
import subprocess
import unittest

from kilntest import BUILD, TINY, Case, main, read

try:
    import yaml
except ImportError:
    yaml = None

FILES = {
    "conf/config.yaml": "defaults:\n  - net: a\n  - _self_\nlr: 0.1\nrate: ${lr}\nnet: {width: 8}\n"
                        "tags: [x, 'a, b']\nlong: 'said ${net.kind} at ${lr}'\n",
    "conf/net/a.yaml": "width: 4\nkind: a\nlr: ${rate}\n",
}


class Explain(Case):
    def setUp(self):
        super().setUp()
        for name, text in FILES.items():
            self.write(name, text)

    def explain(self, *args):
        return self.run_kiln(*args)[0]

    def test_losers_in_order(self):
        self.assertEqual(self.explain("--explain", "net.width", "net.width=16", "net.width=32"),
                         "net.width: 32\n"
                         "  set to  32  argument 2 `net.width=32`\n"
                         "  over    16  argument 1 `net.width=16`\n"
                         "  over    8   conf/config.yaml:6:14\n"
                         "  over    4   conf/net/a.yaml:1:8\n")

    def test_chain_of_interpolations(self):
        self.assertEqual(self.explain("--explain", "net.lr", "lr=0.5"),
                         "net.lr: 0.5\n"
                         "  set to  ${rate}  conf/net/a.yaml:3:5\n"
                         "    rate: 0.5\n"
                         "      set to  ${lr}  conf/config.yaml:5:7\n"
                         "        lr: 0.5\n"
                         "          set to  0.5  argument 1 `lr=0.5`\n"
                         "          over    0.1  conf/config.yaml:4:5\n")

    def test_text_with_several(self):
        self.assertEqual(self.explain("--explain", "long"),
                         "long: said a at 0.1\n"
                         "  set to  said ${net.kind} at ${lr}  conf/config.yaml:8:7\n"
                         "    net.kind: a\n"
                         "      set to  a  conf/net/a.yaml:2:7\n"
                         "    lr: 0.1\n"
                         "      set to  0.1  conf/config.yaml:4:5\n")

    def test_removed(self):
        self.assertEqual(self.explain("--explain", "net", "~net.kind", "~net.lr"),
                         "net.width: 8\n"
                         "  set to  8  conf/config.yaml:6:14\n"
                         "  over    4  conf/net/a.yaml:1:8\n"
                         "net.kind: not there\n"
                         "  removed    argument 1 `~net.kind`\n"
                         "  over    a  conf/net/a.yaml:2:7\n"
                         "net.lr: not there\n"
                         "  removed          argument 2 `~net.lr`\n"
                         "  over    ${rate}  conf/net/a.yaml:3:5\n")

    def test_several_keys(self):
        whole = self.explain("--explain", "lr") + self.explain("--explain", "tags")
        self.assertEqual(self.explain("--explain", "lr", "--explain", "tags"), whole)
        self.assertEqual(self.explain("--explain", "lr", "tags"), whole)
        self.assertEqual(self.explain("--explain", "lr", "rate=1", "tags"), whole)

    def test_unknown_keys(self):
        self.refused("--explain", "nte", says=["there is no key 'nte'", "did you mean 'net'?"])
        self.refused("--explain", "net.widht", says=["did you mean 'net.width'?"])
        self.refused("--explain", "width", says=["did you mean 'net.width'?"])
        self.refused("--explain", "tags.7", says=["tags.7"])

    def test_cycle_is_reported(self):
        out = self.explain("--explain", "a", "+a=${b}", "+b=${a}")
        self.assertIn("a cycle of interpolations", out)
        self.assertIn("argument 2 `+b=${a}`", out)

    def test_many_references_end(self):
        chain = ["+z0=1", "+z1=2"] + [f"+z{i}=${{z{i - 1}}}${{z{i - 2}}}" for i in range(2, 16)]
        out = self.explain("--explain", "z15", *chain)
        self.assertIn("(see above)", out)
        self.assertLess(len(out), 200000)


class Origins(Case):
    def check(self, *args):
        plain, _ = self.run_kiln("--cfg", "job", *args)
        with_origins, _ = self.run_kiln("--cfg", "job", "--origins", *args)
        self.assertEqual("".join(cut(line) for line in with_origins.splitlines(True)), plain)
        if yaml is not None:
            self.assertEqual(yaml.safe_load(with_origins), yaml.safe_load(plain))
        return with_origins

    def test_default_config(self):
        out = self.check("lr=0.3", "model=resnet")
        self.assertRegex(out, r"(?m)^lr: 0\.3 +# argument 1 `lr=0\.3`$")
        self.assertRegex(out, r"(?m)^  lr: \$\{lr\} +# kiln:conf/optimizer/sgd.yaml:\d+:\d+$")
        self.assertRegex(out, r"(?m)^  nesterov: \S+ +# ")

    def test_resolved_and_package(self):
        out = self.check("--resolve", "lr=0.3", "--package", "optimizer")
        self.assertRegex(out, r"(?m)^lr: 0\.3 +# argument 1 `lr=0\.3`, through \$\{lr\} in "
                              r"kiln:conf/optimizer/sgd.yaml:\d+:\d+$")

    def test_one_column(self):
        columns = {line.index("  # ") for line in self.check().splitlines() if "  # " in line}
        self.assertEqual(len(columns), 1)

    def test_odd_text(self):
        self.write("conf/config.yaml", "a: 'x # y'\nb: \"\"\nc: []\nd: {}\ne: [{f: 1}, [2, [3]]]\n"
                                       "g: \"two\\nlines\"\n\"k: #\": null\nh: \u672c\u672c\n"
                                       f"i: {'w' * 100}\n")
        self.check()
        self.check("+j='1\n2'", "+k=\x85\u2028", "+l='\x01'")
        self.refused("+j=1\n2", says=["column 5", "      | +j=1?2\n      |     ^~\n"])
        self.check("-p", "e")
        self.check("-p", "a")

    def test_needs_cfg(self):
        self.refused("--origins", says=["--cfg job --origins"], status=2)


def cut(line):
    """A line without its comment; values of these tests have none after the last '  # '."""
    head, mark, _ = line.rpartition("  # ")
    return head.rstrip(" ") + "\n" if mark else line


class PastRun(Case):
    def kiln(self, *args, **options):
        return self.run_kiln("explain", *args, program="kiln", **options)[0]

    def test_same_as_before_the_run(self):
        words = TINY + ["trainer.max_epochs=1", "lr=0.01", "~callbacks.progress_bar",
                        "optimizer._target_=adam", "+tags=[a,${lr}]"]
        keys = ["lr", "optimizer", "optimizer.lr", "model.hidden", "tags", "callbacks.progress_bar",
                "task.model.hidden", "task", "trainer"]
        said = self.run_kiln("--explain", *keys, *words)[0]
        self.run_kiln(*words)
        run = self.run_folder()
        self.assertEqual(self.kiln("last", *keys), said)
        self.assertEqual(self.kiln(run, *keys), said)
        self.assertEqual(self.kiln(os.path.join(run, "checkpoints/last"), *keys), said)
        self.assertEqual(self.kiln(os.path.relpath(run, self.dir) + "/", *keys), said)
        whole = self.kiln("last")
        self.assertIn(said.split("\n")[0], whole)
        for key in ["optmizer", "optimizer.lrr", "hidden"]:
            self.run_kiln("explain", "last", key, program="kiln", status=1)
        _, err = self.run_kiln("explain", "last", "optmizer", program="kiln", status=1)
        self.assertIn("did you mean 'optimizer'?", err)
        _, err = self.run_kiln("explain", "last", "hidden", program="kiln", status=1)
        self.assertIn("did you mean 'model.hidden'?", err)

        origins = os.path.join(run, ".kiln/origins.yaml")
        good = read(origins, "r")
        for bad in ["[1]\n", "lr: 3\n", "lr:\n  - 3\n", "lr:\n  - {value: 3}\n", "lr: [\n", "",
                    "lr:\n  - {value: 1, from: x, refers: [[1]]}\n", good[:good.index("{", len(good) // 2) + 1]]:
            with open(origins, "w") as f:
                f.write(bad)
            _, err = self.run_kiln("explain", "last", "lr", program="kiln", status=1)
            self.assertIn("origins.yaml", err)

    def test_no_run(self):
        self.refused("explain", program="kiln", says=["which run?"], status=2)
        self.refused("explain", "last", program="kiln", says=["no run folder below outputs/"])
        self.refused("explain", "nowhere", program="kiln", says=["there is no such folder"])
        os.mkdir(self.path("empty"))
        self.refused("explain", "empty", program="kiln", says=["no run folder"])


class Carets(Case):
    def test_line_and_caret(self):
        self.write("conf/config.yaml", "lr: 0.1\nb: [1, 2\nc: 3\n")
        err = self.refused(says=["conf/config.yaml:3:"])
        self.assertRegex(err, r"\n +3 \| c: 3\n +\| +\^")
        err = self.refused("--cfg", "job", "a==[", says=["argument 1"])
        self.assertRegex(err, r"\n +\| a==\[\n +\| +\^")

    def test_inside_the_program(self):
        err = self.refused("lr=fast", says=["through ${lr} in kiln:conf/optimizer/sgd.yaml:"])
        self.assertIn("\n      | lr=fast\n      |    ^~~~\n", err)
        err = self.refused("datamodule=image_folder", says=["kiln:conf/datamodule/image_folder.yaml:3:7"])
        self.assertIn("\n    3 | root: ???\n      |       ^~~\n", err)

    def test_summary_and_order(self):
        self.write("conf/config.yaml", "defaults:\n  - task: vision\n  - model: m\n  - optimizer: sgd\n"
                                       "  - datamodule: digits\n  - scheduler: cosine\n  - _self_\n"
                                       "lr: fast\nbatch_size: -1\n")
        self.write("conf/model/m.yaml", "_target_: model/mlp\ndropout: 7\nhiden: 1\n")
        err = self.refused("seed=x", says=["\ntrain: 5 errors\n"])
        places = [err.index(text) for text in ["conf/config.yaml:8:5", "conf/config.yaml:9:13",
                                               "conf/model/m.yaml:2:10", "conf/model/m.yaml:3:1",
                                               "argument 1 `seed=x`"]]
        self.assertEqual(places, sorted(places))

    def test_hundreds(self):
        words = [f"nothing{i}=1" for i in range(250)]
        err = self.refused("--cfg", "job", *words, says=["train: and 150 more\n", "train: 250 errors\n"])
        self.assertEqual(err.count("train: error:"), 100)

    def test_colours_on_a_terminal_only(self):
        for env, coloured in [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]:
            ours, theirs = pty.openpty()
            process = subprocess.Popen([os.path.join(BUILD, "train"), "lr=fast"], cwd=self.dir,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
                                       env={"PATH": os.environ["PATH"], "TERM": "xterm", **env})
            os.close(theirs)
            process.wait(timeout=60)
            out = os.read(ours, 65536).decode()
            os.close(ours)
            self.assertIn("expected a number", out)
            self.assertEqual("\033[1;31merror:" in out, coloured)
            self.assertEqual("\033[1;32m^~~~\033[0m" in out, coloured)
            self.assertEqual("\033" in out, coloured)


if __name__ == "__main__":
    main()
