"""Writing reStructuredText, for the generated pages of the manual."""
import os
import re


def escape(text):
    """Text that is no markup, with links only of whole addresses: not of "https:// or http://", nor of "file:line"."""
    return re.sub(r"(\w):(?=\S)(?!//\w)", r"\1\\:", re.sub(r"([\\*`|_])", r"\\\1", text))


def literal(text):
    """Code in a line. Blanks at its ends, which reStructuredText does not allow, are dropped."""
    text = text.strip()
    return f"``{text}``" if text and "`" not in text else escape(text)


def prose(text, word=escape):
    """A paragraph in which `code` is between backticks; `word` writes what is not."""
    parts = re.split(r"`([^`]+)`", " ".join(text.split()))
    written = [literal(part) if i % 2 else word(part) for i, part in enumerate(parts)]
    # Markup must not touch letters: an escaped blank separates them and prints nothing.
    for i in range(1, len(parts), 2):
        if re.search(r"[\w/(.-]$", parts[i - 1]):
            written[i] = "\\ " + written[i]
        if re.match(r"\w", parts[i + 1]):
            written[i] += "\\ "
    return "".join(written)


def heading(text, underline):
    return f"{text}\n{underline * len(text)}\n"


def indent(text, by="   "):
    return "\n".join(by + line if line else "" for line in text.rstrip("\n").split("\n")) + "\n"


def table(columns, widths, rows):
    """Rows of cells that are reStructuredText already."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}", ""]
    for row in [columns, *rows]:
        for i, cell in enumerate(row):
            lines.append(f"   {'* -' if i == 0 else '  -'} {cell}".rstrip())
    return "\n".join(lines) + "\n"


def toctree(pages):
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {page}\n" for page in pages)


def write(path, *blocks):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("\n".join(blocks))
