"""`kiln plugin new`: what it writes, and what it refuses. test_install.py builds and runs one of each kind."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import re
import stat
import subprocess

from kilntest import BUILD, ROOT, Case, main, read

KINDS = re.findall(r'^    X\(\w+, "(\w+)"', read(os.path.join(ROOT, "src/kiln/field.h"), "r"), re.M) + ["operation", "file_datamodule"]


class New(Case):
    def new(self, *args, **options):
        return self.run_kiln("plugin", "new", *args, program="kiln", **options)

    def files(self):
        return sorted(os.path.relpath(os.path.join(folder, name), self.dir)
                      for folder, _, names in os.walk(self.dir) for name in names)

    def test_every_kind(self):
        """A component of that name alone, and a config file that selects it; the text is the manual's."""
        for kind in KINDS:
            out, _ = self.new(kind, "mine_" + kind)
            folder = self.path("mine_" + kind)
            code = read(os.path.join(folder, f"mine_{kind}.c"), "r")
            self.assertIn(f'.name = "mine_{kind}",', code)
            self.assertIn("KILN_FIELDS(fields)", code)  # it has options to sweep over
            conf = next(name for name in self.files() if name.startswith(f"mine_{kind}/conf/"))
            self.assertTrue(conf.endswith(f"/mine_{kind}.yaml"), conf)
            self.assertIn(f"/mine_{kind}\n", read(self.path(conf), "r"))
            self.assertLess(read(os.path.join(folder, "Makefile")).count(b"\n"), 13)
            for name in self.files():
                if name.startswith(f"mine_{kind}/"):
                    self.assertIn(name, out)
            page = re.search(r"docs/([\w/]+\.md)(?:#([\w-]+))?", out)
            text = read(os.path.join(ROOT, "docs", page.group(1)), "r")
            if page.group(2):
                titles = [title.lower().replace(" ", "-") for title in re.findall(r"^##+ (.*)", text, re.M)]
                self.assertIn(page.group(2), titles)
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode) & 0o700, 0o700)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith(".")], [])

    def test_any_word_is_a_name(self):
        """A keyword of C, and names that the code has itself."""
        for name in "double", "ops", "fields", "component":
            self.new("model", name)
            subprocess.run(["make", "-s", "-C", self.path(name), f"KILN=-I{ROOT}/src", "CFLAGS=-Wall -Werror"], check=True)
            out, _ = self.run_kiln("show", f"model/{name}", "--plugin", self.path(name, name + ".so"), program="kiln")
            self.assertIn("width", out)
            self.assertIn(f"\n  train --plugin {self.path(name, name + '.so')} model={name} model.width=128", out)

    def test_headers_of_the_program(self):
        """Without pkg-config's help: those of the program that wrote the component. The kit trains it."""
        self.new("datamodule", "mine")
        env = {**os.environ, "PKG_CONFIG_LIBDIR": self.dir, "PKG_CONFIG_PATH": ""}
        subprocess.run(["make", "-s", "-C", self.path("mine")], env=env, check=True)
        out, _ = self.run_kiln("plugin", "check", "mine/mine.so", program="kiln")
        self.assertIn("passed   training", out)
        self.assertIn(" 0 failed", out)

    def test_a_path_that_is_not_there(self):
        """The plain message of the system gets the option and its place."""
        self.new("datamodule", "mine")
        code = read(self.path("mine/mine.c"), "r")
        for old, new in {"    double gap;\n} Opts;": "    double gap;\n    char *path;\n} Opts;",
                         "    KILN_FIELD_END": '    KILN_FIELD_PATH(Opts, path, "nothing", "to read"),\n    KILN_FIELD_END',
                         "    state->seed = context->seed;":
                             "    return kiln_error_errno(err, ((const Opts *)kiln_opts(self))->path);"}.items():
            self.assertIn(old, code)
            code = code.replace(old, new)
        self.write("mine/mine.c", code)
        subprocess.run(["make", "-s", "-C", self.path("mine"), f"KILN=-I{ROOT}/src"], check=True, capture_output=True)
        self.refused("--plugin", "mine/mine.so", "datamodule=mine", "task=classification", "model=mlp", "datamodule.path=nope",
                     says=["argument 4 `datamodule.path=nope`: datamodule.path: nope: "])

    def test_without_headers(self):
        self.new("callback", "mine")
        done = subprocess.run(["make", "-s", "-C", self.path("mine"), "KILN=-nostdinc"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("install gcc and libkiln-dev", done.stderr)
        out, _ = self.new("callback", "yours", env={**os.environ, "PATH": self.dir})
        self.assertRegex(out, r"next\n  install make  .*\n  install gcc  .*\n  sh yours/test.sh")

    def test_next_steps_of_a_plugin(self):
        """What `kiln show` says to try works, and a wrong option is answered with the right ones."""
        self.new("datamodule", "mine")
        subprocess.run(["make", "-s", "-C", self.path("mine"), f"KILN=-I{ROOT}/src"], check=True)
        out, _ = self.run_kiln("show", "datamodule/mine", "--plugin", "mine/mine.so", program="kiln")
        words = re.search(r"(?m)^  train (--plugin .*)$", out).group(1).split()
        self.assertIn("model=mlp", words)
        self.run_kiln(*words, "trainer.max_steps=2")
        out, _ = self.run_kiln("plugin", "check", "mine/mine.so", program="kiln")
        self.assertRegex(out, r"(?m)^mine/mine\.so: 1 component, \d+ passed, \d skipped, 0 failed$")
        self.refused("show", "datamodule/mine", says=["--plugin FILE.so adds those of a plugin"], program="kiln", status=1)
        self.new("model", "small")
        subprocess.run(["make", "-s", "-C", self.path("small"), f"KILN=-I{ROOT}/src"], check=True)
        self.refused("--plugin", "small/small.so", "model=small", "model.value=1", says=["its options: width"])

    def test_config_file_that_does_not_fit(self):
        """Options that were renamed in the C file alone, of a component and of one that is a member."""
        for kind, old, wrong in (("model", "width: ", "widht: "), ("callback", "  value: ", "  valeu: ")):
            self.new(kind, "my" + kind)
            subprocess.run(["make", "-s", "-C", self.path("my" + kind), f"KILN=-I{ROOT}/src"], check=True)
            conf = next(name for name in self.files() if f"my{kind}/conf" in name)
            self.write(conf, read(self.path(conf), "r").replace(old, wrong))
            out, _ = self.run_kiln("plugin", "check", f"my{kind}/my{kind}.so", program="kiln", status=1)
            self.assertRegex(" ".join(out.split()), rf"failed config files {conf}:\d+:\d+: [\w.]+{wrong.strip()} unknown option")

    def test_test_script_finds_what_is_wrong(self):
        self.new("loss", "mine")
        env = {**os.environ, "TRAIN": os.path.join(BUILD, "train"), "KILN": f"-I{ROOT}/src"}
        subprocess.run(["sh", "mine/test.sh"], cwd=self.dir, env=env, check=True, capture_output=True)
        code = self.path("mine/mine.c")
        self.write("mine/mine.c", read(code, "r").replace("kiln_mean(squares)", "squares"))
        done = subprocess.run(["sh", "mine/test.sh"], cwd=self.dir, env=env, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("mine", done.stderr)

    def test_a_gradient_that_is_too_large(self):
        """Of an operation without a kernel in double precision, as the template has it."""
        self.new("operation", "soft")
        code = read(self.path("soft/soft.c"), "r")
        self.assertEqual(code.count("kiln_square(root)"), 1)
        for factor, status in (1.0, 0), (1.3, 1):
            self.write("soft/soft.c", code.replace("kiln_square(root)", f"kiln_scale(kiln_square(root), {factor})"))
            subprocess.run(["make", "-s", "-C", self.path("soft"), f"KILN=-I{ROOT}/src"], check=True)
            out, _ = self.run_kiln("plugin", "check", "soft/soft.so", program="kiln", status=status)
            self.assertEqual("its gradient says" in " ".join(out.split()), status == 1, out)

    def test_output(self):
        out, _ = self.new("logger", "mine", "--output", "deep/plugins")
        self.assertIn("wrote deep/plugins/mine/conf/logger/mine.yaml", out)
        self.assertIn("train --plugin deep/plugins/mine/mine.so logger=[csv,mine]", out)
        out, _ = self.new("model", "third", "-o", "plugins")
        self.assertIn("  train model=third\n", out)  # ./plugins is loaded by itself
        self.new("task", "other", "-o", ".")
        self.assertIn("other/conf/task/other.yaml", self.files())

    def test_mistakes(self):
        def wrong(*args, says, status=2):
            self.refused("plugin", "new", *args, says=[says], program="kiln", status=status)

        wrong("calback", "mine", says="did you mean callback?")
        wrong(says="which kind? callback, datamodule, file_datamodule, transform")
        wrong("callback", says="expected one name: kiln plugin new callback NAME")
        wrong("callback", "a", "b", says="expected one name")
        for name in "Mine", "my-loss", "1st", "../mine", "", "a*/b":
            wrong("loss", name, says="no name of a component")
        wrong("callback", "timer", says="callback/timer is built in", status=1)
        wrong("operation", "resnet", says="model/resnet is built in", status=1)
        wrong("callback", "default", says="kiln itself has a conf/callbacks/default.yaml", status=1)
        self.write("mine/notes", "mine")
        wrong("loss", "mine", says="mine: is there already", status=1)
        self.assertEqual(self.files(), ["mine/notes"])
        os.symlink("nowhere", self.path("link"))
        wrong("loss", "link", says="link: is there already", status=1)
        self.write("file", "")
        wrong("loss", "mine", "-o", "file", says="file", status=1)
        self.refused("plugin", says=["expected a verb: new"], program="kiln", status=2)


if __name__ == "__main__":
    main()
