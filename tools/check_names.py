#!/usr/bin/env python3
"""One name, one thing: types, folders and files of src/.

    python3 tools/check_names.py [ROOT]

Each Kiln* type has one definition. A folder has at most 28 source files. Two files
share a name only if they do the same job: a header and its implementation, the stations of an operation (layer,
record, kernels), a public header and what implements it, a command and the library that it calls."""
import collections
import os
import re
import sys

MAX_FILES = 28
COMPONENTS = ("src/nn/optimizers", "src/nn/schedulers", "src/sweep/sweepers", "src/sweep/launchers",
              "src/train/strategies", "src/text/tokenizers")
OPERATIONS = ("src/nn", "src/graph", "src/backend")
# Other files that do the same job for two things.
SAME_JOB = {
    "absent": {"src/events", "src/plot"},  # the library is not installed
    "optimizers": {"src/train/optim", *OPERATIONS},  # a run's optimizers, and the kernels that update
}
DEFINITION = re.compile(
    r"^(?:typedef )?(?:struct|enum|union) (Kiln\w+) \{"  # struct KilnX {
    r"|^\} (Kiln\w+)(?:\[\w+\])?;"  # typedef struct { ... } KilnX;
    r"|^typedef (?!(?:struct|enum|union) \w+ \w+;)[^{};()]*\b(Kiln\w+)(?:\[\w+\])?;"  # typedef int KilnX;
    r"|^typedef [^{};()]*\(\*?(Kiln\w+)\)\("  # typedef int (*KilnX)(
    r"|^typedef [^{};()]*\b(Kiln\w+)\(", re.M)  # typedef int KilnX(


def below(folder, parents):
    return any(folder == parent or folder.startswith(parent + "/") for parent in parents)


def sources(root, top):
    for folder, _, names in os.walk(os.path.join(root, top)):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), root)


def definitions(root):
    found = collections.defaultdict(list)
    for top in ["src", "callbacks", "datamodules", "tasks"]:
        for path in sources(root, top):
            with open(os.path.join(root, path)) as f:
                text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), f.read(), flags=re.S)
            previous = None
            for m in DEFINITION.finditer(text):
                name = next(group for group in m.groups() if group)
                body_end = m.group().startswith("}") and previous == name  # typedef struct KilnX { ... } KilnX;
                if not body_end:
                    found[name].append(f"{path}:{text.count(chr(10), 0, m.start()) + 1}")
                previous = name
    return found


def same_job(name, folders):
    """Whether files of this name in these folders do the same job."""
    folders = {f for f in folders if not f.startswith("src/kiln") and f not in COMPONENTS}
    outside = {f for f in folders if not below(f, ["src/cli"])}
    if len(folders) - len(outside) > 1:
        return False
    if len(outside) <= 1 or all(below(f, OPERATIONS) for f in outside):
        return True
    return all(below(f, SAME_JOB.get(name, ())) for f in outside)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    wrong = []
    types = definitions(root)
    for name, places in sorted(types.items()):
        files = {place.split(":")[0]: place for place in reversed(places)}  # in one file: #if and #else
        if len(files) > 1:
            first, second = sorted(files.values())[:2]
            wrong.append(f"{second}: type {name} is also defined at {first}; rename one of them")
    folders, names = collections.Counter(), collections.defaultdict(set)
    for path in sources(root, "src"):
        folder, name = os.path.split(path)
        folders[folder] += 1
        names[os.path.splitext(name)[0]].add(folder)
    for folder, count in sorted(folders.items()):
        if count > MAX_FILES and folder not in COMPONENTS:
            wrong.append(f"{folder}: {count} source files, more than {MAX_FILES}; split the folder")
    for name, where in sorted(names.items()):
        if not same_job(name, where):
            wrong.append(f"{name}.c, {name}.h: files of this name are in {', '.join(sorted(where))}; rename all but one")
    print("\n".join(wrong) if wrong else
          f"layers: {len(types)} types have one definition, {len(folders)} folders at most {MAX_FILES} files, "
          f"{len(names)} file names one meaning")
    sys.exit(1 if wrong else 0)


main()
