#!/usr/bin/env python3
"""The reference of the C interface: a page per public header, from its declarations and their comments.

    api.py SOURCE FOLDER

SOURCE is src/; the pages are written to FOLDER."""
import glob
import os
import re
import sys

import headers
import rst

PARTS = {  # the folders of src/kiln/, and what is in them
    "": "Components: what each may include",
    "ops": "Operations (kiln/ops.h includes them)",
    "embed": "Embedding (kiln_embed.h includes them)",
    "tools": "Shared by components",
    "images": "Shared by components for images",
    "files": "File formats",
    "flat": "For languages that know no structs",
    "search": "Search, for sweepers and pruners",
    "slurm": "Slurm, for launchers",
}
INTRO = ("The interface of components, plugins and programs that embed kiln, from the headers themselves. A component "
         "includes `kiln.h` and, where it needs them, headers of the folders below; a program includes `kiln_embed.h`.")
DIRECTIVES = {"function": "c:function", "variable": "c:var", "macro": "c:macro", "struct": "c:struct", "union": "c:union",
              "enum": "c:enum", "type": "c:type", "constants": "c:macro"}


class Writer:
    def __init__(self, pages):
        """pages: {header: (comment, groups)}"""
        self.pages = pages
        # Where a type is declared before it is defined, only the definition is described.
        self.defined = {d.name for d in self.declarations() if d.kind in ("struct", "union", "enum")}
        self.names = {d.name: "c:func" if d.kind == "function" else "c:type" for d in self.declarations()
                      if d.name.startswith(("kiln_", "Kiln"))}
        self.written = set()

    def declarations(self):
        return (d for _, groups in self.pages.values() for group in groups for d in group.declarations)

    def word(self, text):
        """Prose, in which names of the interface are links."""
        parts = re.split(r"\b((?:kiln_|Kiln)\w+)", text)
        return "".join(rst.escape(part) if part not in self.names else f":{self.names[part]}:`{part}`\\ "
                       for part in parts)

    def comment(self, text):
        """A comment: paragraphs, lists whose items begin with -, and indented code."""
        blocks = []
        for part in re.split(r"\n\s*\n", text):
            for block in re.split(r"\n(?=\s*- )", part) if part.strip() else []:
                if block.lstrip().startswith("- "):
                    blocks.append("- " + rst.prose(block.strip()[2:], self.word))
                elif all(line.startswith("   ") for line in block.split("\n")):
                    blocks.append("::\n\n" + rst.indent(block))
                else:
                    blocks.append(rst.prose(block, self.word))
        return "\n\n".join(blocks) + "\n"

    def group(self, group):
        wanted = [d for d in group.declarations
                  if d.name not in self.written and (d.kind != "type" or d.name not in self.defined)]
        self.written.update(d.name for d in wanted)
        blocks = []
        for i, d in enumerate(wanted):
            line = d.signature if d.kind in ("function", "variable") else d.name
            if d.kind == "macro":
                line = re.match(r"#define (\w+(?:\([^)]*\))?)", d.text)[1]
            blocks.append(f".. {DIRECTIVES[d.kind]}:: {line}\n")
            if i == len(wanted) - 1 or d.kind not in ("function", "variable"):
                blocks.append(rst.indent(self.comment(group.comment) if group.comment else ""))
            if d.kind not in ("function", "variable"):
                blocks.append(rst.indent(".. code-block:: c\n\n" + rst.indent(d.text)))
        return "\n".join(blocks)

    def page(self, header):
        top, groups = self.pages[header]
        blocks, section = [rst.heading(header, "="), self.comment(top)], ""
        for group in groups:
            if group.section != section:
                section = group.section
                blocks.append(rst.heading(section, "-"))
            blocks.append(self.group(group) if group.declarations else self.comment(group.comment))
        return blocks


def main():
    source, folder = sys.argv[1:]
    paths = sorted(glob.glob(f"{source}/kiln/**/*.h", recursive=True))
    names = ["kiln.h", "kiln_embed.h", *(os.path.relpath(path, source) for path in paths)]
    pages = {name: headers.read(os.path.join(source, name)) for name in names}
    writer = Writer(pages)
    blocks, stems = [rst.heading("C interface", "="), rst.prose(INTRO) + "\n"], []
    for part, title in PARTS.items():
        inside = [name for name in names if os.path.dirname(name).removeprefix("kiln").lstrip("/") == part]
        rows = []
        for name in inside:
            stems.append(name.removesuffix(".h").replace("/", "-"))
            rst.write(f"{folder}/{stems[-1]}.rst", *writer.page(name))
            first = re.split(r"(?<=[.:])\s", " ".join(pages[name][0].split()))[0]
            rows.append([f":doc:`{name} <{stems[-1]}>`", rst.prose(first, writer.word)])
        blocks += [rst.heading(title, "-"), rst.table(["header", "what it is for"], [25, 75], rows)]
    left_out = set(names) - {stem.replace("-", "/") + ".h" for stem in stems}
    if left_out:
        sys.exit(f"api.py: PARTS lacks the folders of {', '.join(sorted(left_out))}")
    rst.write(f"{folder}/index.rst", *blocks, rst.toctree(stems))


if __name__ == "__main__":
    main()
