"""Reads kiln's public headers: comments, and the declarations that they describe."""
import re
import typing

COMMENT = re.compile(r"/\*.*?\*/", re.S)
HEADING = re.compile(r"/\* ?-{3,} (.*?) ?-{3,}(.*)\*/$", re.S)
ATTRIBUTES = re.compile(r"\b(KILN_API_TABLE|KILN_API|KILN_NODISCARD|extern|static inline)\b\s*|\s*\bKILN_PRINTF\([^)]*\)")
DIRECTIVE = re.compile(r"#.*?(?<!\\)\n", re.S)
# How the declarations begin; the name is the first group.
FORMS = [
    ("struct", r"(?:typedef )?struct (\w+) \{"), ("struct", r"typedef struct \{.*\} (\w+);"),
    ("union", r"(?:typedef )?union (\w+) \{"),
    ("enum", r"(?:typedef )?enum (\w+) \{"), ("enum", r"typedef enum \{.*\} (\w+);"),
    ("constants", r"enum \{ ?(\w+)"), ("macro", r"#define (\w+)"), ("type", r"(?:struct|union) (\w+);"),
    ("type", r"typedef [^(]*\(\*?(\w+)\) ?\("), ("type", r"typedef [^(]*?(\w+)(?:\(.*\))?(?:\[\w+\])?;"),
    ("function", r"[^(=]*?(\w+) ?\("), ("variable", r"[^(]*?(\w+)(?:\[[^]]*\])*(?: =.*)?;")]


class Declaration(typing.NamedTuple):
    kind: str  # of FORMS
    name: str
    text: str  # as in the header
    signature: str  # in one line, without kiln's attributes, body and value


class Group(typing.NamedTuple):
    """Declarations that follow each other below one comment; none: the comment is about the section."""
    section: str  # "Parameters": the heading above
    comment: str
    declarations: list


def comment_text(comment):
    """The lines of a comment, without its stars."""
    return re.sub(r"(?m)^\s*\* ?", "", comment[2:-2].strip()).strip()


def end_of_declaration(text, start):
    """The end of the declaration that begins at `start`: its ; or the body of an inline function, with a comment that
    follows on the same line."""
    depth, i = 0, start
    body = "}" if text.startswith("static inline", start) else ""
    while True:
        if text.startswith("/*", i):
            i = text.index("*/", i) + 1
        elif text[i] == "#" and text[i - 1] == "\n":
            i = DIRECTIVE.match(text, i).end() - 1
        depth += (text[i] in "({") - (text[i] in ")}")
        i += 1
        if depth == 0 and text[i - 1] in (";", body):
            break
    comment = re.compile(r"[ \t]*/\*.*?\*/", re.S).match(text, i)
    return comment.end() if comment else i


def pieces(text):
    """The comments, directives and declarations of a header, each with whether an empty line precedes it."""
    i = 0
    while i < len(text):
        start = i + len(text[i:]) - len(text[i:].lstrip())
        if start == len(text):
            return
        if text.startswith("/*", start):
            end = text.index("*/", start) + 2
        elif text[start] == "#":
            end = DIRECTIVE.match(text, start).end() - 1
        else:
            end = end_of_declaration(text, start)
        yield text[start:end], "\n\n" in text[i:start]
        i = end


def declare(text):
    """The declarations of a piece: one, or the variables that it lists."""
    bare = COMMENT.sub(" ", text)
    if not text.startswith("#"):
        bare = ATTRIBUTES.sub("", DIRECTIVE.sub("", bare))
    bare = " ".join(bare.split())
    signature = re.split(r" ?[{=;]", bare)[0]
    for kind, form in FORMS:
        found = re.match(form, bare)
        if found and kind == "variable":
            type_, variables = re.match(r"(.*?\W)(kiln_.*)", signature).groups()
            return [Declaration(kind, re.match(r"\w+", one)[0], text, type_ + one) for one in variables.split(", ")]
        if found:
            return [Declaration(kind, found[1], text, signature)]
    raise ValueError(f"not a known form of declaration: {text}")


def read(path):
    """The comment at a header's top, and its groups."""
    with open(path) as f:
        top, *rest = pieces(f.read())
    groups, section, comment = [], "", None
    macros = set()
    for text, after_blank in rest:
        macro = re.match(r"#define (\w+)", text)
        if macro and macro[1] in macros:  # another definition of it, after #else
            continue
        macros.add(macro and macro[1])
        if HEADING.match(text):
            section, about = HEADING.match(text).groups()
            if about.strip():
                groups.append(Group(section, comment_text(f"/*{about}*/"), []))
            comment = None
        elif text.startswith("/*"):
            comment = comment_text(text)
        elif text.startswith("#") and not re.match(r"#define (?!\w+_H\b)\w*\w\b(?<!_)", text):
            comment = None
        else:
            if comment is None and not after_blank and groups and groups[-1].section == section:
                groups[-1].declarations.extend(declare(text))
            else:
                groups.append(Group(section, comment or "", declare(text)))
            comment = None
    return comment_text(top[0]), groups
