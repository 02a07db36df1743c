"""Composes random config trees with the real Hydra and with kiln, and reports where they differ.

    PEER/bin/python tests/peers/hydra_diff.py [--rounds N] [--seed S] [--kind KIND] [--kiln PROGRAM]

PEER is a Python that has hydra-core 1.3. Equal means: both refuse, or both accept with equal values of
equal types; what differs on purpose (KNOWN) is counted alone. Every other difference is made as small as it gets and printed once for each way to differ.
Round R of seed S is the same everywhere: `--seed S --only R` repeats it. Rounds are of one KIND each:
values (one file of odd YAML), overrides (odd arguments), interp (interpolations and resolvers),
defaults (groups, packages, defaults lists), merge (the same keys from many sides)."""
import argparse
import collections
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings

import yaml

from hydra_cases import KINDS, Maker

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests/cli"))

ENV = {"CASE_HOME": "/home/x", "CASE_NUM": "10", "CASE_EMPTY": "", "CASE_LIST": "[1, a]", "CASE_BAD": "[1",
       "CASE_FLOAT": "1e3"}


# ---- The two programs ---------------------------------------------------------------

def hydra_compose(folder, overrides):
    """("ok", value) or ("no", message), as `--cfg job --resolve` of the real Hydra has it."""
    from hydra._internal.hydra import Hydra
    from hydra._internal.utils import create_config_search_path
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig
    from hydra import version
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    def too_long(*_):
        raise TimeoutError("Hydra took too long")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(10)
    try:
        GlobalHydra.instance().clear()
        version.setbase(None)  # today's behaviour, as version_base=None gives it
        hydra = Hydra.create_main_hydra2("app", create_config_search_path(folder))
        config = hydra.compose_config("config", list(overrides), RunMode.RUN, with_log_configuration=False)
        HydraConfig.instance().set_config(config)
        OmegaConf.set_readonly(config.hydra, None)
        config = hydra.get_sanitized_cfg(config, "job")
        OmegaConf.resolve(config)
        return "ok", OmegaConf.to_container(config)
    except (Exception, RecursionError) as error:
        return "no", f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)


def kiln_compose(program, folder, overrides, load):
    done = subprocess.run(
        [program, "--config-path", folder, "--cfg", "job", "--resolve", *overrides],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=20, cwd=folder,
        env={"PATH": "/usr/bin:/bin", **ENV})
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    if done.returncode not in (0, 1, 2):
        return "crash", f"status {done.returncode}: {err[-2000:]}"
    if done.returncode != 0:
        return ("no", err) if err.strip() else ("crash", "refused without a word")
    try:
        return "ok", load(out)
    except Exception as error:
        return "crash", f"its YAML does not read: {error}\n{out}"


# ---- Where kiln differs on purpose ------------------------------------------------------

# How they differ, what Hydra or kiln says, what must be in the case, why.
KNOWN = [
    ("we accept", r"found duplicate anchor", "&", "YAML lets an anchor be given again"),
    ("we accept", r"tag:yaml.org,2002:value", "=", "PyYAML has a tag but no value for a lone ="),
    ("we accept", r"^ParserError: while parsing a flow", r"\?", "PyYAML reads no ? inside [] and {}"),
    ("we refuse", r"tag \S+ (is not known|does not fit)", "!", "tags of Python's own types"),
    ("values", r"", r"[-:\[{,] *! \S", "! means text in YAML; PyYAML guesses a type"),
    ("we refuse", r"duplicate key", "", "one key in two spellings: true and yes"),
    ("we refuse", r"there is no anchor .* complete", r"\*", "an alias inside its own anchor"),
    ("we accept", r"^OverrideParseException", r"[^\x00-\x7f]|\$\{.*\$\{|\$\{.*['\"\\[]|^[-+~]*\d",
     "letters, nesting, quotes and numbers that Hydra's grammar lacks"),
    ("we accept", r"Could not delete from config.* does not exist", r"\?\?\?|null", "Hydra does not see null and ???"),
    ("we accept", r"list indices must be integers", "~", "deleting a list's item"),
    ("we accept", r"used to denote a config key", r"\$\{", "a number in a name"),
    ("we accept", r"UnsupportedValueType", r"\$\{oc", "OmegaConf refuses lists and mappings from its own resolvers"),
    ("we accept", r"(AttributeError|AssertionError|ScannerError|TypeError) raised while resolving", r"\$\{", "Python's own errors"),
    ("", r"", r"\\\$\{", "Hydra resolves in place, so what is escaped is resolved again through a reference"),
    ("", r"", r"\\'|\\$|\\\\", "backslashes at the end of text with interpolations"),
    ("values", r"'kiln'|hydra", r"\$\{", "the whole config as text or keys has the kiln node in it"),
    ("", r"", r"_group_|_name_", "words of Hydra 1.1's packages"),
    ("we refuse", r"expected 'group: option'|is not a package", r"- (foo|optional|override)|/:|/@|//", "a word before the group; an empty name in a path"),
    ("values", r"", r"\./", "./ in front of a group"),
    ("we refuse", r"has another value", r"=null", "~key=null deletes only null"),
    ("we refuse", r"there is no group", "/", "a key with a slash is a group"),
    ("we accept", r"Error merging override|Cannot merge|Could not append", r"\$\{", "what a reference means does not matter to what replaces it"),
    ("we refuse", r"refers to another node", r"\$\{", "deleting through a reference would change the other node"),
    ("we accept", r"^ConfigCompositionException: $", r"\$\{", "a name made of several pieces, or with blanks"),
    ("we accept", r"ConfigKeyError raised while resolving", r"oc\.select:\.\.", "oc.select above the top finds nothing"),
    ("we accept", r"token recognition error", r"\$\{", "text with interpolations is text"),
    ("we accept", r"not found", r"\[-\d", "negative indexes, as Hydra 1.4 has them"),
    ("we accept", r"parent node detected", r"\$\{", "a node that is text inside itself"),
    ("values", r"", r"\$\{(oc|n|d|ref|\.)", "nodes as text: Hydra prints what it has resolved so far"),
]


def known(found, files, overrides):
    """Why they differ, when that is meant to be."""
    how, theirs, ours = found
    said = theirs[1] if how == "we accept" else f"{ours[1]} {theirs[1] if how != 'we refuse' else ''}"
    pieces = [*files.values(), *overrides]
    for kind, says, has, why in KNOWN:
        if (not kind or kind == how) and re.search(says, str(said), re.S) and (
                not has or any(re.search(has, piece, re.M) for piece in pieces)):
            return why
    return None


# ---- Comparing ----------------------------------------------------------------------

class Tester:
    def __init__(self, program):
        from language_values import difference, load
        self.program, self.difference, self.load = program, difference, load
        shm = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.folder = tempfile.mkdtemp(prefix="hydra-diff-", dir=shm)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self, files, overrides):
        shutil.rmtree(self.folder)
        for name, text in files.items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as f:
                f.write(text)
        theirs = hydra_compose(self.folder, overrides)
        if any("\0" in o for o in overrides):
            return theirs, ("no", "NUL")
        try:
            ours = kiln_compose(self.program, self.folder, overrides, self.load)
        except subprocess.TimeoutExpired:
            ours = "crash", "hangs"
        return theirs, ours

    def compare(self, files, overrides):
        """None, or (how they differ, theirs, ours)."""
        if "config.yaml" not in files:
            return None
        theirs, ours = self.answers(files, overrides)
        if ours[0] == "crash":
            return "crash", theirs, ours
        if theirs[0] == "ok" and ours[0] == "ok":
            where = self.difference(theirs[1], ours[1])
            return ("values", theirs, ("ok", where)) if where else None
        if theirs[0] == ours[0]:
            return None
        return ("we refuse" if ours[0] == "no" else "we accept"), theirs, ours

    def signature(self, found):
        """The kind of difference, whatever the names in it are."""
        how, theirs, ours = found
        blank = lambda text: re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\S*[./=$\d]\S*", "_", str(text).splitlines()[0] if str(text) else "")[:70]
        if how == "we refuse":
            return how, blank(ours[1]), ""
        if how == "we accept":
            return how, "", blank(theirs[1])
        return how, blank(ours[1]), ""

    def shrink(self, files, overrides, found):
        """Smaller files and overrides that differ in the same way."""
        wanted = self.signature(found)
        tries = 0

        def same(f, o):
            nonlocal tries, found
            tries += 1
            if tries > 250:
                return False
            now = self.compare(f, o)
            if now is None or self.signature(now) != wanted:
                return False
            found = now
            return True

        progress = True
        while progress and tries <= 250:
            progress = False
            for name in sorted(files):
                if name != "config.yaml":
                    fewer = {k: v for k, v in files.items() if k != name}
                    if same(fewer, overrides):
                        files, progress = fewer, True
            for i in reversed(range(len(overrides))):
                fewer = overrides[:i] + overrides[i + 1:]
                if same(files, fewer):
                    overrides, progress = fewer, True
            for name in sorted(files):
                lines = files[name].splitlines(True)
                for i in reversed(range(len(lines))):
                    fewer = lines[:i] + lines[i + 1:]
                    changed = {**files, name: "".join(fewer)}
                    if same(changed, overrides):
                        files, lines, progress = changed, fewer, True
        return files, overrides, found


def show(files, overrides, found, label):
    how, theirs, ours = found
    print(f"==== {how}  ({label})")
    for name in sorted(files, key=lambda n: (n != "config.yaml", n)):
        print(f"-- {name}\n{files[name].rstrip()}")
    print(f"-- arguments: {overrides!r}")
    print(f"-- Hydra: {theirs[0]} {str(theirs[1])[:300]}")
    print(f"-- kiln:  {ours[0]} {str(ours[1])[:400].rstrip()}", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=1000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", type=int, help="this round alone")
    ap.add_argument("--kind", choices=sorted(KINDS), action="append")
    ap.add_argument("--kiln", default=os.path.join(ROOT, "build/release/train"))
    ap.add_argument("--no-shrink", action="store_true")
    ap.add_argument("--all", action="store_true", help="show what is meant to differ too")
    a = ap.parse_args()
    warnings.simplefilter("ignore")
    os.environ.update(ENV)
    kinds = a.kind or sorted(KINDS)
    tester = Tester(a.kiln)
    seen, meant = collections.Counter(), collections.Counter()
    equal = differ = 0
    for number in [a.only] if a.only is not None else range(a.rounds):
        rng = random.Random(f"{a.seed}/{number}")
        kind = rng.choice(kinds)
        files, overrides = KINDS[kind](Maker(rng))
        try:
            found = tester.compare(files, overrides)
        except UnicodeEncodeError:
            continue
        if found is None:
            equal += 1
            continue
        why = None if a.all or a.only is not None else known(found, files, overrides)
        if why is not None:
            meant[why] += 1
            continue
        differ += 1
        key = tester.signature(found)
        seen[key] += 1
        if seen[key] > 1 and a.only is None:
            continue
        if not a.no_shrink:
            files, overrides, found = tester.shrink(files, overrides, found)
        show(files, overrides, found, f"{kind}, --seed {a.seed} --only {number}")
    print(f"{equal} equal, {sum(meant.values())} differ as they should, {differ} differ in {len(seen)} ways")
    for why, n in meant.most_common():
        print(f"  {n:5}  (meant) {why}")
    for key, n in seen.most_common():
        print(f"  {n:5}  {' | '.join(key)}")
    tester.close()
    return 0 if not differ else 1


if __name__ == "__main__":
    sys.exit(main())
