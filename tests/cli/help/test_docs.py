"""Every code block of README.md, docs/ and the other pages, and every example of --help, as a reader would run it in bash.

An indented block whose first word is a program is a shell script; with `$ ` it is a transcript, whose commands run
(and must fail if `error:` follows). Fences name their language: sh, zsh, fish, console, yaml (parsed), c (compiled),
python (compiled, and written to the file that its first line names; tests/python/test_docs.py runs those of
python.md), text. `<!-- not run: WHY -->` above a block skips it.
An error in a transcript is what the program prints, except for `...` and line breaks.

Each page runs in its own folder, which has what the pages assume: a run (outputs/2026-11-20/21-03-11, which RUN
names), a tree of Hydra's (configs), images and idx files (DIR, data/mnist, x.png, list.jsonl), a sweep (multirun/2026-11-20/21-03-11), a plugin (mine.so). Runs are
short: SHORTENED precedes the arguments of commands that train, so that a page's own arguments win."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import concurrent.futures
import glob
import os
import re
import shutil
import struct
import subprocess
import tempfile
import textwrap
import unittest

from kilntest import BUILD, ROOT, SHORT, numpy_python, png

SHORTENED = ("trainer.limit_train_batches=2 trainer.limit_val_batches=1 trainer.limit_test_batches=1 "
             "trainer.max_epochs=1 batch_size=8")
TUNE_RATE = "callbacks.lr_finder.num_training_steps=2"
TUNE_SIZE = "callbacks.batch_size_finder.max_val=4 callbacks.batch_size_finder.steps_per_trial=1"

WRAPPER = r"""#!/bin/bash
# The real program, with runs cut short.
name=${0##*/} short=(%s) rate=(%s) size=(%s)
command=train
[ "$name" = kiln ] && { command=${1-}; shift; }
real=(%s/kiln "$command")
case $command in
    verify-resume) args=("${short[@]:0:4}" trainer.max_epochs=20 batch_size=8)
        while [ $# -gt 0 ]; do case $1 in -n) shift ;; *) args+=("$1") ;; esac; shift; done
        exec "${real[@]}" -n 1 "${args[@]}" ;;
    graph) exec "${real[@]}" batch_size=8 "$@" ;;
    tune)
        case " $* " in *" lr "*) size=() ;; *" batch_size "*) rate=() ;; esac
        exec "${real[@]}" "${short[@]}" "$@" "${rate[@]}" "${size[@]}" ;;
    train) ;;
    *) exec "${real[@]}" "$@" ;;
esac
for word in "$@"; do
    case $word in
        --help | --cfg | --explain | --info | --version | --resume) exec "${real[@]}" "$@" ;;
    esac
done
exec "${real[@]}" "${short[@]}" "$@"
""" % (SHORTENED, TUNE_RATE, TUNE_SIZE, BUILD)

PROGRAM = re.compile(r"(\w+=\S* )*(train|kiln|make|cd|cc|eval|git|python3?|sudo|tar|export|PEER/\S+)( |;|$)")
MARK = re.compile(r"<!-- not run: (.+) -->$")
# Pages beside the manual, and what makes their folder the one they speak of.
OTHERS = {
    "src/cli/init/README.md": "kiln init . >/dev/null",
    "examples/plugin/README.md": f"cp '{ROOT}/examples/plugin/'*.c .; ln -s '{ROOT}/src' ../../src",
}
SHELLS = {"sh": ["bash", "-e"], "bash": ["bash", "-e"], "zsh": ["zsh", "-f", "-e"], "fish": ["fish", "--no-config"]}


class Block:
    def __init__(self, page, line, language, text, mark):
        self.page, self.line, self.text, self.mark = page, line, text, mark
        self.language = language or self.guess()

    def guess(self):
        first = self.text.lstrip().split("\n")[0]
        if first.startswith("$ "):
            return "console"
        if PROGRAM.match(first):
            return "sh"
        return "c" if "#include" in self.text else "text"

    def where(self):
        return f"{self.page}:{self.line}"


def blocks(page):
    """The code blocks of a page, in order."""
    with open(os.path.join(ROOT, page)) as f:
        lines = f.read().split("\n")
    found, mark, i, before = [], None, 0, ""
    while i < len(lines):
        line, start = lines[i], i + 1
        fence = re.match(r"```(\w*)$", line)
        indented = line.startswith("    ") and before == "" and line.strip()
        body = []
        if fence:
            i += 1
            while not lines[i].startswith("```"):
                body.append(lines[i])
                i += 1
        elif indented:
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                body.append(lines[i])
                i += 1
            i -= 1
        if body:
            text = textwrap.dedent("\n".join(body)).strip("\n") + "\n"
            found.append(Block(page, start, fence.group(1) if fence else None, text, mark))
            mark = None
        elif line.strip():
            said = MARK.match(line.strip())
            mark = said.group(1) if said else None
        before = lines[i].strip() if not body else ""
        i += 1
    return found


def commands(script):
    """How many commands a script has, roughly: lines that are no comments, with continuations joined."""
    return sum(1 for line in script.replace("\\\n", " ").split("\n") if line.strip() and not line.startswith("#"))


def printed(output, stderr):
    """Whether a program printed what a transcript has; `...` stands for anything. The numbers of arguments differ, since
    SHORTENED precedes them, as do lines with an excerpt of the source."""
    def words(text):
        text = re.sub(r"(?m)^ *\d* \| .*$", "", text)
        return " ".join(re.sub(r"\bargument \d+", "argument", text).split())

    parts = [part.strip() for part in words(output).split("...")]
    return re.search(".*".join(map(re.escape, parts)), words(stderr)) is not None


def idx(count, seed):
    """Images and labels in the files' format."""
    pixels = bytes((seed + 31 * i) % 251 for i in range(784)) * count
    return (struct.pack(">4i", 2051, count, 28, 28) + pixels,
            struct.pack(">2i", 2049, count) + bytes(i % 10 for i in range(count)))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


class Docs(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if SHORT:
            raise unittest.SkipTest("in release only")
        cls._folder = tempfile.TemporaryDirectory(prefix="kiln-docs-")
        cls.root = cls._folder.name
        cls.bin = os.path.join(cls.root, "bin")
        for name in ["train", "kiln"]:
            write(os.path.join(cls.bin, name), WRAPPER.encode())
            os.chmod(os.path.join(cls.bin, name), 0o755)
        cls.env = dict(os.environ, PATH=f"{cls.bin}:{os.environ['PATH']}", OMP_WAIT_POLICY="passive",
                       OMP_NUM_THREADS="1", KILN_PYTHON=numpy_python() or "python3")
        cls.make_template()
        print(f"runs are cut short by: {SHORTENED}", file=sys.stderr)

    @classmethod
    def tearDownClass(cls):
        cls._folder.cleanup()

    @classmethod
    def make_template(cls):
        """What every page's folder begins with."""
        base = cls.template = os.path.join(cls.root, "template")
        for split in ["train", "val", "test", "street", "night"]:
            for label in "ab":
                for i in range(8):
                    write(f"{base}/DIR/{split}/{label}/{i}.png", png(28, 28, (20 * i, 90, 200 * (label == "a"))))
        for split, count in [("train", 6000), ("t10k", 64)]:
            images, labels = idx(count, count)
            for folder in ["DIR", "data/mnist", "DIR/blurred"]:
                write(f"{base}/{folder}/{split}-images-idx3-ubyte", images)
                write(f"{base}/{folder}/{split}-labels-idx1-ubyte", labels)
        write(f"{base}/x.png", png(28, 28))
        shutil.copytree(os.path.join(ROOT, "tests/data/hydra"), f"{base}/configs")
        write(f"{base}/list.jsonl", b'{"image": "x.png"}\n')
        os.symlink("../DIR", f"{base}/data/run=3,fold=1")
        subprocess.run(["cc", "-std=c17", "-fPIC", "-shared", "-DKILN_BUILD_PLUGIN", "-I", os.path.join(ROOT, "src"),
                        "-o", f"{base}/mine.so", os.path.join(ROOT, "examples/plugin/resmlp.c")], check=True)
        train = [os.path.join(BUILD, "train"), *SHORTENED.split()]
        subprocess.run([*train, "-q", "trainer.max_epochs=2",
                        "callbacks=[default,flight_recorder]", "callbacks.flight_recorder.keep=true",
                        "callbacks.model_checkpoint.save_top_k=-1", "kiln.run.dir=outputs/2026-11-20/21-03-11"],
                       cwd=base, check=True)
        run = f"{base}/outputs/2026-11-20/21-03-11"
        first = sorted(name for name in os.listdir(f"{run}/checkpoints") if name.startswith("epoch"))[0]
        os.symlink(first, f"{run}/checkpoints/NAME")
        os.symlink("outputs/2026-11-20/21-03-11", f"{base}/RUN")
        os.mkdir(f"{base}/outputs/DAY")
        os.symlink("../2026-11-20/21-03-11", f"{base}/outputs/DAY/TIME")
        subprocess.run([*train, "-m", "-q", "model=mlp", "lr=0.1,0.01", "kiln.sweep.dir=multirun/2026-11-20/21-03-11"],
                       cwd=base, check=True)

    def folder(self, name):
        path = os.path.join(self.root, "pages", name.replace("/", "_"))
        shutil.copytree(self.template, path, symlinks=True)
        if name in OTHERS:
            subprocess.run(["bash", "-ec", OTHERS[name]], cwd=path, env=self.env, check=True)
        return path

    def script(self, language, text, folder):
        """Run a script; what went wrong, or None."""
        argv = SHELLS[language]
        head = "trap 'echo \"in line $LINENO: $BASH_COMMAND\" >&2' ERR\n" if argv[0] == "bash" else ""
        path = os.path.join(folder, ".script")
        with open(path, "w") as f:
            f.write(head + text)
        env = dict(self.env, HOME=folder)
        try:
            done = subprocess.run([*argv, path], cwd=folder, env=env, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        except subprocess.TimeoutExpired:
            return "still running after 300 s"
        if done.returncode == 0:
            return None
        return f"exit status {done.returncode}\n{text}{done.stderr[-1500:]}"

    def console(self, text, folder):
        """The commands of a transcript, each with what follows it."""
        for command, output in re.findall(r"(?m)^\$ (.*)\n((?:(?!\$ ).*\n)*)", text):
            wrong = self.script("bash", command + "\n", folder)
            if ("error:" in output) != (wrong is not None):
                return wrong or f"no error: {command}"
            if wrong and not printed(output, wrong):
                return f"another error than the page has: {wrong}"
        return None

    def yaml(self, text):
        try:
            import yaml
        except ImportError:
            return None
        try:
            list(yaml.parse(text))
        except yaml.YAMLError as error:
            return str(error)
        return None

    def compile(self, text, folder):
        write(f"{folder}/.block.c", text.encode())
        done = subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Wno-unused", "-Wno-psabi", "-Werror",
                               "-D_POSIX_C_SOURCE=200809L", "-I", os.path.join(ROOT, "src"), "-fsyntax-only",
                               ".block.c"], cwd=folder, stderr=subprocess.PIPE, text=True)
        return done.stderr if done.returncode else None

    def python(self, block, folder):
        """Its syntax; `# NAME.py` in its first line names a file that later blocks of the page use."""
        named = re.match(r"# (\w+\.py)$", block.text.split("\n")[0])
        if named:
            write(f"{folder}/{named.group(1)}", block.text.encode())
        try:
            compile(block.text, block.where(), "exec")
        except SyntaxError as error:
            return str(error)
        return None

    def check(self, block, folder):
        """(what went wrong or None, commands that ran, commands that are marked)"""
        shell = block.language in SHELLS
        n = commands(block.text) if shell else block.text.count("\n$ ") + block.text.startswith("$ ")
        if block.mark:
            return None, 0, n
        if shell:
            if shutil.which(SHELLS[block.language][0]) is None:
                return None, 0, 0
            return self.script(block.language, block.text, folder), n, 0
        if block.language == "console":
            return self.console(block.text, folder), n, 0
        if block.language == "yaml":
            return self.yaml(block.text), 0, 0
        if block.language == "c":
            return self.compile(block.text, folder) if "#include" in block.text else None, 0, 0
        if block.language == "python":
            return self.python(block, folder), 0, 0
        if block.language != "text":
            return f"unknown language {block.language}", 0, 0
        said = re.search(r"(?m)^(train|kiln) [\w-].*", block.text)
        return said and f"a command in what is no script, put the rest into a fence: {said.group(0)}", 0, 0

    def check_all(self, found):
        """found: {folder name: blocks}, each in a folder of its own and in order."""
        def check_folder(item):
            name, list_ = item
            folder = self.folder(name) if any(b.language not in ("text", "yaml") for b in list_) else None
            return [(block, *self.check(block, folder)) for block in list_]

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = [result for list_ in pool.map(check_folder, found.items()) for result in list_]
        wrong = [f"{block.where()}: {error}" for block, error, _, _ in results if error]
        self.assertEqual(wrong, [], "\n\n".join(["", *wrong]))
        return sum(r[2] for r in results), sum(r[3] for r in results)

    def test_pages(self):
        manual = glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True)
        pages = ["README.md", *sorted(os.path.relpath(page, ROOT) for page in manual)]
        pages += OTHERS
        if numpy_python() is None:
            pages.remove("docs/python-components.md")
        ran, marked = self.check_all({page: blocks(page) for page in pages})
        print(f"docs: {ran} commands of {len(pages)} pages ran, {marked} are marked as not run")
        self.assertGreater(ran, 60)
        self.assertLess(marked, 70)

    def example(self, name, number, line):
        """An example of help, in the place that its text speaks of."""
        shell = re.search(r"completion (\w+)", line)
        before = after = ""
        if shell and shell.group(1) == "zsh":
            before = "autoload -Uz compinit && compinit -u\n"  # "after compinit"
        if name == "schema":
            before = "kiln init project >/dev/null\ncd project\n" if number == 2 else "cd project\n"
        if name == "tokenizer":
            before = ("for i in 1 2 3; do echo to be or not to be; done >a.txt; cp a.txt b.txt\n"
                      "kiln tokenizer train tokenizer.vocab_size=300 files=a.txt output=bpe.json >/dev/null\n")
        if "reviews.csv" in line:
            before = ("printf 'text,label\\n' >reviews.csv\n"
                      "for i in $(seq 20); do printf 'good %s,yes\\nbad %s,no\\n' $i $i >>reviews.csv; done\n"
                      "train -q datamodule=labeled_text 'datamodule.files.train=[reviews.csv]' "
                      "model=bag_of_tokens task=classification\n")
        if name == "generate" and number == 1:
            before = ("for i in $(seq 100); do echo To be or not to be; done >text.txt\n"
                      "printf 'To be\\nor not\\n' >prompts.txt\n"
                      "train -q task=language_model datamodule=text_blocks 'datamodule.files=[text.txt]' model=gpt "
                      "datamodule.context=16 model.layers=1 model.width=32 model.heads=2 test=false\n"
                      "ln -sfn \"$(dirname \"$(ls -td outputs/*/*/checkpoints | head -n 1)\")\" RUN\n")
        if name == "new" and number == 1:
            before = ("mkdir -p pets reviews; cp -r DIR/train/a pets/cat; cp -r DIR/train/b pets/dog\n"
                      "for i in $(seq 400); do echo To be or not to be; done >book.txt\n"
                      "printf 'size,price\\n' >houses.csv\n"
                      "for i in $(seq 60); do echo $i.5,$((3 * i)).25 >>houses.csv; done\n"
                      "for file in reviews/train.csv reviews/test.csv; do\n"
                      "    echo text,label >$file; for i in $(seq 30); do printf 'a good one %s,yes\\na bad one %s,no\\n' $i $i; done >>$file\n"
                      "done\n")
        if line.startswith("kiln ckpt merge-lora"):
            before = "train -q model=mlp 'lora.targets=[layers.*.weight]' kiln.run.dir=adapted\nln -sfn adapted RUN\n"
        if name == "plugin":
            before = f"export KILN=-I{ROOT}/src\n"  # kiln need not be installed
        if line.startswith("kiln ckpt diff"):
            after = " || [ $? = 1 ]"  # they differ
        if line.startswith("kiln sweep stop"):
            after = " || [ $? = 1 ]"  # it has no job 7
        if line.startswith("kiln check-data datamodule="):
            after = " || [ $? = 1 ]"  # its images are copies
        return Block(f"kiln {name} --help", number, shell.group(1) if shell else "sh",
                     before * (name != "schema" or number > 1) + line + after + "\n", None)

    def test_examples_of_help(self):
        out = subprocess.run([os.path.join(BUILD, "kiln"), "--help"], stdout=subprocess.PIPE, text=True).stdout
        found = {}
        for name in re.findall(r"(?m)^  ([\w-]+) ", out):
            text = subprocess.run([os.path.join(BUILD, "kiln"), name, "--help"], cwd=self.template,
                                  stdout=subprocess.PIPE, text=True).stdout
            part = re.search(r"(?ms)^examples\n(.*?)\n\n", text)
            self.assertTrue(part or name == "version", name)
            lines = re.findall(r"(?m)^  (\S.*?)(?:  +\S.*)?$", part.group(1)) if part else []
            found["help-" + name] = [self.example(name, i + 1, line) for i, line in enumerate(lines)]
        ran, _ = self.check_all(found)
        print(f"docs: {ran} examples of --help ran")
        self.assertGreater(ran, 40)


if __name__ == "__main__":
    unittest.main(verbosity=1)
