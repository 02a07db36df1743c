#!/usr/bin/env python3
"""Finds stale pointers: files, folders and identifiers that comments, docs and messages name but that do not exist.

    python3 tools/check_pointers.py [ROOT]

Checked are the comments of C files, whole pages of Markdown, comments and docstrings of Python, and comments of shell
scripts and the Makefile. A file may be named by any end of its path: fit.c, loop/fit.c, src/train/loop/fit.c. Names in
capitals (NAME.c) and with * are patterns. A name that is only an example is in EXAMPLES."""
import collections
import io
import os
import re
import subprocess
import sys
import tokenize

TOPS = ("src", "python", "callbacks", "datamodules", "tasks", "tests", "docs", "conf", "tools", "bench", "examples")
# Files of a reader's own project, in docs and comments.
EXAMPLES = {"conf/.schema", "conf/callbacks/mine.yaml", "conf/experiment/best.yaml", "conf/experiment/mine.yaml", "conf/model/small.yaml",
            "conf/opt.yaml", "conf/trainer/x.yaml", "conf/x.yaml", "conf/datamodule/points.yaml", "mydata.py", "reviews.py",
            "table.py", "hooks.py", "others.py", "sensors.py",
            "conf/experiment/long.yaml", "net.py", "train.py"}
SKIPPED = ("CHANGELOG.md", "src/cli/init/", "tests/cli/build/test_check.py", "tests/data/", "tests/fuzz/corpus/")
FILE = re.compile(r"(?<![\w./$~{}<>*-])((?:\w[\w.-]*/)*\w[\w-]*\.(?:c|h|py|sh|md|proto))(?![\w/*<(]|\.\w|-\w)")
FOLDER = re.compile(r"(?<![\w./$~{}<>*-])((?:" + "|".join(TOPS) + r")/[\w./-]*\w/?)(?![\w*<{$(.]\w|[*<{$])")
NAME = re.compile(r"(?<![\w$/.-])(kiln_[a-z0-9_]+|Kiln[A-Z]\w+|KILN_[A-Z0-9_]+)(\*|\w)?")


def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if out.returncode == 0 and out.stdout:
        return [p for p in out.stdout.split("\n") if p and os.path.isfile(os.path.join(root, p))]
    return [os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names
            if "/build" not in folder]


def split(path, text):
    """The text that people read, and the rest, each with its line breaks."""
    if path.endswith((".c", ".h", ".proto")):
        pattern = r"/\*.*?\*/|//[^\n]*"
    elif path.endswith(".py"):
        return split_python(text)
    elif path.endswith(".md"):
        return text, ""
    else:
        pattern = r"(?m)(?:^|(?<=\s))#[^\n]*"
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    prose, last = [], 0
    for m in re.finditer(pattern, text, re.S):
        prose += [re.sub(r"[^\n]", " ", text[last:m.start()]), m.group()]
        last = m.end()
    return "".join(prose), re.sub(pattern, blank, text, flags=re.S)


def split_python(text):
    prose, code = [[], []]
    lines = text.split("\n")
    kind = ["code"] * len(lines)
    comments = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments[token.start[0] - 1] = token.start[1]
            elif token.type == tokenize.STRING and token.string.startswith('"""'):
                for i in range(token.start[0] - 1, token.end[0]):
                    kind[i] = "prose"
    except (tokenize.TokenError, IndentationError):
        pass
    for i, line in enumerate(lines):
        at = comments.get(i, len(line))
        prose.append(line if kind[i] == "prose" else " " * at + line[at:])
        code.append("" if kind[i] == "prose" else line[:at])
    return "\n".join(prose), "\n".join(code)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = tracked(root)
    ends, folders = set(), set()
    for path in paths:
        parts = path.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
        folders.update("/".join(parts[:i]) for i in range(1, len(parts)))
    words, pasted, prose = set(), set(), {}
    for path in paths:
        if path.startswith(SKIPPED) or not (
                path.endswith((".c", ".h", ".py", ".sh", ".md", ".proto", ".yaml")) or os.path.basename(path) == "Makefile"):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            readable, code = split(path, f.read())
        prose[path] = readable
        words.update(re.findall(r"\w+", code))
        pasted.update(re.findall(r"\b(\w+)##", code))
        pasted.update(re.findall(r"KILN_ISA_NAME\((\w+)\)", code))
    # The manual has whole files, whose first line has their name.
    shown = {name for path, text in prose.items() if path.startswith("docs/")
             for name in re.findall(r"^(?:/\*|#) (\w+\.c|conf/[\w/]+\.yaml): ", text, re.M)}
    files = ends | EXAMPLES | shown
    wrong = collections.OrderedDict()
    count = 0
    for path, text in sorted(prose.items()):
        for number, line in enumerate(text.split("\n"), 1):
            for m in FILE.finditer(line):
                name = m.group(1)
                count += 1
                if name not in files and not re.search(r"[A-Z]{2}", name):
                    wrong[f"{path}:{number}: no file {name}"] = None
            for m in FOLDER.finditer(line):
                name = m.group(1).rstrip("/.")
                if FILE.fullmatch(name):
                    continue
                count += 1
                if name not in files and name not in folders and not re.search(r"[A-Z]{2}", name) \
                        and not any(f"{name}.{e}" in ends for e in ("yaml", "c", "h")):
                    wrong[f"{path}:{number}: no file or folder {name}"] = None
            for m in NAME.finditer(line):
                name = m.group(1)
                count += 1
                if m.group(2) == "*" or name.endswith("_"):
                    known = any(word.startswith(name) for word in words)
                else:
                    known = name in words or name in EXAMPLES or any(
                        name.startswith(prefix) for prefix in pasted if len(prefix) > 5)
                if not known and not re.match(r"Kiln[A-Z]{2}", name):  # KilnNAME
                    wrong[f"{path}:{number}: no identifier {name}"] = None
    print("\n".join(wrong) if wrong else f"pointers: {count} names of files, folders and identifiers exist")
    sys.exit(1 if wrong else 0)


main()
