#!/usr/bin/env python3
"""Man pages from the program's own help: kiln(1), train(1), and kiln-COMMAND(1) for each command.

    man.py KILN FOLDER

Help has a usage, paragraphs, and sections: a heading, and below it pairs of a term and what it means. Lines are wrapped;
lines that continue a pair are indented deeper than its term."""
import datetime
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time

INTRO = ("kiln composes a config from YAML files and arguments, checks every value, builds the components that it names, and "
         "trains them. Each run leaves a folder with checkpoints, metrics and the whole config.")
STATUS = [("0", "success"), ("1", "an error: in the config, the data, a file, or during the run"),
          ("2", "a wrong command line")]


ESCAPED = {"\\": "\\e", "-": "\\-", "`": "\\(ga", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti"}  # as they are typed


def roff(text):
    """Text that is no request."""
    text = re.sub(r"[\\`'^~-]", lambda found: ESCAPED[found[0]], text)
    return "\n".join(re.sub(r"^\.", r"\\&.", line)
                     for line in textwrap.wrap(text, 78, break_long_words=False, break_on_hyphens=False))


class Section:
    def __init__(self, title):
        self.title, self.pairs = title, []

    def add(self, line):
        term, _, meaning = re.match(r"(.*?)(  +(.*))?$", line.strip()).groups()
        if line.startswith("   ") and self.pairs:
            self.pairs[-1][1].append(line.strip())
        else:
            self.pairs.append((term, [meaning] if meaning else []))

    def write(self):
        rows = [f'.SH "{roff(self.title.upper())}"']
        for term, meaning in self.pairs:
            rows += [".TP", f"\\fB{roff(term)}\\fR", roff(" ".join(meaning)) or "\\&"]
        return rows


def parse(text):
    """Usage, paragraphs and sections of a help text."""
    blocks = [block.split("\n") for block in text.strip("\n").split("\n\n")]
    usage = " ".join(line.strip() for line in blocks[0]).removeprefix("usage: ")
    paragraphs, sections = [], []
    for lines in blocks[1:]:
        if len(lines) > 1 and lines[1].startswith("  "):
            sections.append(Section(lines[0].rstrip(":")))
            for line in lines[1:]:
                sections[-1].add(line)
        else:
            paragraphs.append(" ".join(lines))
    return usage, paragraphs, sections


def page(name, summary, help_text, version, also):
    usage, paragraphs, sections = parse(help_text)
    date = datetime.datetime.utcfromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    rows = [f'.TH "{roff(name.upper())}" 1 "{date:%Y-%m-%d}" "{version}" "kiln"', ".nh", ".ad l", ".SH NAME",
            f"{roff(name)} \\- {roff(summary)}", ".SH SYNOPSIS", roff(usage), ".SH DESCRIPTION"]
    for i, paragraph in enumerate(paragraphs or [INTRO]):
        rows += ([".PP"] if i else []) + [roff(paragraph)]
    status = Section("exit status")
    status.pairs = [(number, [meaning]) for number, meaning in STATUS]
    for section in [*sections, status]:
        rows += section.write()
    seen = [f".BR {roff(other)} (1)" for other in also]
    return "\n".join([*rows, '.SH "SEE ALSO"', " ,\n".join(seen), ""])


def main():
    program, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    os.makedirs(folder, exist_ok=True)

    def help_of(*words):
        with tempfile.TemporaryDirectory() as empty:  # whose ./conf would be in the help
            return subprocess.run([program, *words], cwd=empty, text=True, stdout=subprocess.PIPE, check=True).stdout

    version = help_of("version").split("\n")[0]
    top = help_of("--help")
    commands = {term: " ".join(meaning) for term, meaning in parse(top)[2][0].pairs}
    names = {command: command if command == "train" else f"kiln-{command}" for command in commands}
    pages = {"kiln": page("kiln", "train networks and trees from configs", top, version, names.values())}
    for command, summary in commands.items():
        also = ["kiln"] if command == "train" else ["kiln", "train"]
        pages[names[command]] = page(names[command], summary, help_of(command, "--help"), version, also)
    for name, text in pages.items():
        with open(f"{folder}/{name}.1", "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
