"""Sphinx's configuration of the manual; build.sh gathers its pages and calls Sphinx."""
import os
import re

from docutils import nodes
from sphinx.util.nodes import make_refnode

project = "kiln"
author = "kiln's authors"
with open(os.environ["KILN_BASE_H"]) as header:
    version = release = re.search(r'KILN_VERSION "(.*)"', header.read())[1]

extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 6
highlight_language = "none"
smartquotes = False  # -- is of flags

html_theme = "furo"
html_title = f"kiln {version}"
html_static_path = ["manual.css", "manual.js"]
html_css_files = ["manual.css"]
html_js_files = ["manual.js"]
html_copy_source = False
html_show_copyright = False
# Search loads the text of pages, to show an extract, only from a server.
html_show_search_summary = False


def link_folder(_app, env, node, content):
    """A link to a folder is one to its index."""
    folder = os.path.normpath(os.path.join(os.path.dirname(node.get("refdoc", env.docname)), node["reftarget"]))
    for name in ["README", "index"]:
        page = f"{folder}/{name}"
        if page in env.found_docs:
            return make_refnode(_app.builder, node.get("refdoc", env.docname), page, None, content)
    return None


def name_shells(_app, doctree):
    """Indented blocks that begin with a command are coloured as shell scripts and transcripts."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") in (None, "none", "default"):
            text = block.astext().lstrip()
            if text.startswith("$ "):
                block["language"] = "console"
            elif re.match(r"(\w+=\S* )*(train|kiln|make|cd|cc|eval|git|python3?|sudo|tar|export)( |;|$)", text):
                block["language"] = "sh"


def setup(app):
    app.connect("missing-reference", link_folder)
    app.connect("doctree-read", name_shells)
