#!/usr/bin/env python3
"""The reference of components: a page per kind, from the options tables that the program prints.

    components.py KILN FOLDER

KILN is the program, whose `list --json` has every component; the pages are written to FOLDER."""
import json
import subprocess
import sys

import rst

INTRO = ("Every component that is built in, with its options. Set an option by its key below the group that selects the "
         "component: `train model=resnet model.depth=34`. `kiln show model/resnet` prints the same, with a config file "
         "and overrides to try.")
TOP = "top level"
SECTIONS_INTRO = "The options of a config that belong to no component."


def options(rows):
    if not rows:
        return "No options.\n"
    cells = [[rst.literal(row["name"]), rst.literal(row["type"].replace("|", " | ")),
              "required" if row["required"] else rst.literal(row["default"] or ""), rst.prose(row["help"])]
             for row in rows]
    return rst.table(["option", "type", "default", "help"], [20, 20, 15, 45], cells)


def component(entry):
    signature = [rst.prose(entry["signature"]).capitalize() + ".\n"] if entry["signature"] else []
    return "\n".join([f".. index:: single: {entry['name']} ({entry['kind']})\n",
                      f".. _component {entry['kind']}/{entry['name']}:\n", rst.heading(entry["name"], "-"),
                      rst.prose(entry["summary"]) + ".\n", *signature, options(entry["options"])])


def section(entry):
    name = entry["key"] or TOP
    return "\n".join([f".. _section {name}:\n", rst.heading(name, "-"),
                      rst.prose(entry["summary"]) + ".\n", options(entry["options"])])


def main():
    program, folder = sys.argv[1:]
    everything = json.loads(subprocess.run([program, "list", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    kinds = {}
    for entry in everything["components"]:
        kinds.setdefault(entry["kind"], []).append(entry)
    for kind, entries in kinds.items():
        rst.write(f"{folder}/{kind}.rst", rst.heading(f"Components: {kind}", "="), *map(component, entries))
    rst.write(f"{folder}/sections.rst", rst.heading("Options of the config itself", "="), rst.prose(SECTIONS_INTRO) + "\n",
              *map(section, everything["sections"]))
    rows = [[f":doc:`{kind} <{kind}>`", ", ".join(f":ref:`{e['name']} <component {kind}/{e['name']}>`" for e in entries)]
            for kind, entries in kinds.items()]
    rows.append([":doc:`config <sections>`", ", ".join(f":ref:`{name} <section {name}>`" for name in
                                              (e["key"] or TOP for e in everything["sections"]))])
    rst.write(f"{folder}/index.rst", rst.heading("Components", "="), rst.prose(INTRO) + "\n",
              rst.table(["kind", "components"], [20, 80], rows), rst.toctree([*kinds, "sections"]))


if __name__ == "__main__":
    main()
