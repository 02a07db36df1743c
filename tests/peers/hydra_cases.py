"""Random config trees and arguments, for hydra_diff.py."""
import re

INTS = ["0", "1", "-1", "+1", "7", "42", "007", "08", "0o7", "0x1F", "0b11", "1_000", "_1", "1__0", "1:30",
        "190:20:30", "1:60", "-1:30", "123456789012345678901234567890", "9223372036854775808", "0x_f", "-0",
        "00", "0b2", "0xg"]
FLOATS = ["1.0", "1.", ".5", "-.5", "1e3", "1e+3", "1E-3", "1.e3", "1.5e3", "1e", "e3", ".e3", "-.inf", ".inf",
          "+.inf", ".Inf", ".INF", ".iNF", ".nan", ".NaN", ".NAN", "nan", "inf", "-inf", "NaN", "Infinity",
          "1_0.5", "1:30.5", "1.5.2", "0.1", "1e400", "1e-400", "-0.0", "1e22", "1e16", "1e15", "0.0001",
          "0.00001", "123456.789e3", "1.0e", "._1", ".1_0e-1", "1_e3", "3.", "1e0_3"]
WORDS = ["true", "True", "TRUE", "tRue", "false", "False", "yes", "Yes", "no", "NO", "on", "Off", "y", "N",
         "null", "Null", "NULL", "nULL", "~", "None", "???", "a", "abc", "a b", "a-b", "a_b", "a.b", "2001-01-01",
         "2001-12-14t21:59:43.10-05:00", "12:30", "=", "<", "v1", "1a", "a1", "é", "日本", "😀", "a/b", "/x/y",
         "x.yaml", "-", "--", "_", ".", "..", "+", "%", "a%b", "a@b", "a|b", "a?b", "a:b", "a+b", "$", "$a", "a$"]
QUOTED = ["''", '""', "'a'", '"a"', "'1'", '"1"', "'true'", "'null'", "'???'", "'a b'", "'it''s'", '"tab\\t"',
          '"\\x41"', '"\\u00e9"', "'a: b'", "'#'", "'[1]'", "'${a}'", "'1e3'", '"a\\nb"', "' a '", "'~'", "'='",
          "'0x1F'", "'1:30'", "'-'", "'.inf'", "'2001-01-01'", "'a\\b'", "'yes'"]
TAGGED = ["!!str 1", "!!int '3'", "!!int 0x10", "!!float 1", "!!float '1'", "!!bool yes", "!!bool 'on'",
          "!!null ''", "!!str", "!!str null", "!!binary aGk=", "!foo 1", "!!int a", "!!float a", "!!bool a",
          "!!seq [1]", "!!map {a: 1}", "!!str [1]", "!!timestamp 2001-01-01", "! 1", "!!set {a, b}"]
KEYS = ["a", "b", "c", "d", "k1", "a-b", "a_b"]
ODD_KEYS = ["1", "1.5", "true", "null", "~", "'1'", "'a.b'", "''", "x y", "yes", "é", "0x1F", "-1", "1e3", "on",
            "!!str 1", "???", "'${a}'", ".inf", "_x", "A", "2001-01-01", "=", "[1]", "{a: 1}"]


class Maker:
    """Random pieces of a case, all from one random.Random."""

    def __init__(self, rng):
        self.rng = rng

    def one(self, *choices):
        return self.rng.choice(choices)

    def chance(self, p):
        return self.rng.random() < p

    # -- YAML --

    def scalar(self):
        r = self.rng.random()
        if r < 0.25:
            return self.rng.choice(INTS)
        if r < 0.45:
            return self.rng.choice(FLOATS)
        if r < 0.75:
            return self.rng.choice(WORDS)
        if r < 0.93:
            return self.rng.choice(QUOTED)
        return self.rng.choice(TAGGED)

    def plain(self):
        return self.one("1", "2", "x", "y", "true", "null", "1.5", "'s'", "[1, 2]", "{q: 1}", "[]", "{}", "???",
                        "[{q: 1}, 2]", "{q: {r: 2}}")

    def flow(self, depth):
        r = self.rng.random()
        if depth == 0 or r < 0.5:
            s = self.scalar()
            return s if not re.search(r"[\[\]{},]", s) or s[0] in "'\"" else "z"
        if r < 0.75:
            return "[" + ", ".join(self.flow(depth - 1) for _ in range(self.rng.randrange(4))) + "]"
        return "{" + ", ".join(f"{self.key()}: {self.flow(depth - 1)}" for _ in range(self.rng.randrange(3))) + "}"

    def key(self):
        return self.rng.choice(ODD_KEYS) if self.chance(0.15) else self.rng.choice(KEYS)

    def block(self, depth, indent=""):
        """Lines of a block mapping."""
        lines = []
        for _ in range(self.rng.randrange(1, 5)):
            key = self.key()
            r = self.rng.random()
            anchor = self.one("&x ", "&y ", "&z ") if self.chance(0.15) else ""
            if r < 0.12 and depth:
                lines.append(f"{indent}{key}: {anchor}".rstrip())
                lines += self.block(depth - 1, indent + "  ")
            elif r < 0.2 and depth:
                lines.append(f"{indent}{key}: {anchor}".rstrip())
                for _ in range(self.rng.randrange(1, 4)):
                    lines.append(f"{indent}  - {self.flow(1)}")
            elif r < 0.25:
                style = self.one("|", ">", "|-", ">-", "|+", ">+", "|2")
                lines.append(f"{indent}{key}: {style}")
                for _ in range(self.rng.randrange(1, 4)):
                    lines.append(indent + "  " + self.one("text", "  deeper", "", "a: b", "# no comment", "${a}"))
            elif r < 0.33:
                lines.append(f"{indent}{key}: {self.one('*x', '*y', '*z')}")
            elif r < 0.38:
                lines.append(f"{indent}<<: {self.one('*x', '*y', '[*x, *y]', '{m: 1, a: 2}', '[{m: 1}, *x]', '1', '[]')}")
            elif r < 0.5:
                lines.append(f"{indent}{key}: {anchor}{self.flow(2)}")
            else:
                lines.append(f"{indent}{key}: {anchor}{self.scalar()}" + self.one("", "", "", " # c", "  "))
        return lines

    # -- Interpolations --

    def path(self):
        r = self.rng.random()
        if r < 0.6:
            return self.one("a", "b", "c", "d", "n.x", "n.y", "n.m.z", "l[0]", "l[1]", "l.0", "n", "l", "n[x]",
                            "n.m", "s", "f", "t", "nul", "mis", "n.l[1]", "l[2].q", "e", "el", "ref", "ref.x", "lref[0]")
        if r < 0.8:
            return self.one(".x", "..a", ".y", "...a", "..n.x", ".", "..", ".m.z", ".l[0]", "..l[1]", ".q", "....a")
        if r < 0.9:
            return self.one("zzz", "n.zzz", "l[9]", "l[-1]", "l.x", "a.b", "s.t", "nul.x", "mis.x", "n..x", "[a]",
                            "[n][x]", "n.[x]", "", " a", "a ", "1", "n.1", "l[x]", "a-b", "$a", "a b", "n/x", "A",
                            "[n].x", "l[ 0 ]", "n. x", ":a", "a:", "a,b", "é", "'a'", "n[x", "n]x", "@a", "l[0x0]")
        return self.one("n.${s}", "${k}", "n.${k}.z", "l[${zero}]", "${k}.${k}", "n[${s}]", "${s}.x", "${a}", "n.${a}",
                        "n.${mis}", "${n}", "n.${nul}", ".${k}", "n.x${e}")

    def argument(self, depth):
        r = self.rng.random()
        if r < 0.35:
            s = self.rng.choice(INTS + FLOATS + WORDS)
            return s if not re.search(r"[=]", s) else "w"
        if r < 0.5:
            return self.one("''", '""', "'a'", '"b c"', "'1'", "'a,b'", "'}'", "'${a}'", '"${n.x}"', "'it\\'s'",
                            "'\\\\'", '"\\""', "' '", "'a", 'a"', "'a'b")
        if r < 0.7 and depth:
            return self.interpolation(depth - 1)
        if r < 0.8 and depth:
            return "[" + ",".join(self.argument(depth - 1) for _ in range(self.rng.randrange(4))) + "]"
        if r < 0.88 and depth:
            return "{" + ",".join(self.one("a", "b", "1", "x y", "true", "'q'", "null", "1.5", "a-b") + self.one(":", ": ")
                                  + self.argument(depth - 1) for _ in range(self.rng.randrange(3))) + "}"
        if r < 0.95:
            return self.one("a b", " a", "a ", "a\\,b", "a\\:b", "a:b", "http://h:80/p", "a\\ ", "\\\\", "\\a", "a\\}b",
                            "(a)", "a(b)", "#", "a#b", "*", "&", "!", ";", "<", ">", "`", "a;b", "a\tb", "a'b", "C:\\x",
                            "\\$", "a$b", "\\'", "~", "a=b")
        return self.path()

    def arguments(self, depth):
        n = self.one(0, 1, 1, 1, 2, 2, 3)
        return ",".join(self.one("", "", "", " ") + self.argument(depth) + self.one("", "", "", " ") for _ in range(n))

    def interpolation(self, depth=2):
        r = self.rng.random()
        if r < 0.5 or depth == 0:
            return "${" + self.path() + "}"
        if r < 0.62:
            name = self.one("CASE_HOME", "CASE_NUM", "CASE_EMPTY", "CASE_UNSET", "CASE_LIST", "CASE_FLOAT", "${s}")
            return "${oc.env:" + name + ("" if self.chance(0.3) else "," + self.argument(depth - 1)) + "}"
        if r < 0.7:
            return "${oc.decode:" + self.one("${oc.env:CASE_NUM}", "${oc.env:CASE_LIST}", "${oc.env:CASE_BAD}", "null",
                                             "'[1,2]'", "'{a: 1}'", "${s}", "'${a}'", "${a}", "'a b'", "''", "1e3",
                                             "'1e3'", "'true'", self.argument(1)) + "}"
        if r < 0.8:
            return "${oc.select:" + self.path() + ("" if self.chance(0.4) else "," + self.argument(depth - 1)) + "}"
        if r < 0.86:
            return "${oc.dict." + self.one("keys", "values") + ":" + self.one("n", "n.m", ".", "d", "ref", "a", "l",
                                                                              "${n}", "mis", "zzz", "e", ".m") + "}"
        if r < 0.91:
            return "${oc.create:" + self.argument(depth - 1) + "}"
        if r < 0.94:
            return "${oc.deprecated:" + self.path() + "}"
        name = self.one("nope", "oc.nope", "oc.env", "oc.select", "oc.decode", "oc.create", "oc", "oc.dict.keys", "1a")
        return "${" + name + ":" + self.arguments(depth - 1) + "}"

    def interpolated(self):
        """A value with ${...} in it, as text."""
        r = self.rng.random()
        if r < 0.55:
            return self.interpolation()
        text = ""
        for _ in range(self.rng.randrange(1, 4)):
            text += self.one("", "", "a", " ", "x-", "/", "\\", "\\\\", "$", "{", "}", "${", "'", '"', ":", ", ", "1", "#",
                             "\\$", "$$", "\\\\\\", "[", "é")
            text += self.interpolation(1)
        return text + self.one("", "", "b", "}", "\\", " ", "$", "'")

    # -- Overrides --

    def value(self, depth=2):
        r = self.rng.random()
        if r < 0.35:
            return self.rng.choice(INTS + FLOATS + WORDS)
        if r < 0.5:
            return self.one("''", '""', "'a'", '"b c"', "'1'", "'a,b'", "'it\\'s'", "'\\\\'", '"\\""', "'a\\b'", '"a\'b"',
                            "'a\\\\\\'b'", "' '", "'${a}'", "'\\${a}'", "'[1,2]'", "'true'", "'???'", "'a=b'", "'{x: 1}'",
                            '"\\n"', "'\\t'", "'a\nb'", "'é'")
        if r < 0.65 and depth:
            return "[" + self.one(",", ", ").join(self.value(depth - 1) for _ in range(self.rng.randrange(4))) + "]"
        if r < 0.78 and depth:
            return "{" + ",".join(self.one("a", "b", "1", "x y", "true", "null", "1.5", "a-b", "a/b", "q", "A", "a.b", "é",
                                           "'q'", "$x", "a:b", "", "${a}", "on", "1e3", "yes", "~")
                                  + self.one(":", ": ", " : ") + self.value(depth - 1)
                                  for _ in range(self.rng.randrange(3))) + "}"
        if r < 0.86:
            return self.interpolation(1)
        if r < 0.93 and depth:
            f = self.one("int", "float", "str", "bool", "json_str", "sort", "shuffle", "choice", "range", "glob", "nope",
                         "int", "float", "str", "bool")
            if f in ("shuffle", "json_str"):
                f = "str"
            inner = ",".join(self.value(depth - 1) for _ in range(self.one(0, 1, 1, 1, 2)))
            return f"{f}({inner})"
        return self.one("", " ", "a b", " a", "a ", "a\\ ", "a\\,b", "a,b", "a\\=b", "a=b", "a(b)", "(a)", "a)", "[", "]", "{",
                        "}", "[1", "1]", "{a:1", "a'b", "'a", 'a"', "a\\", "\\a", "\\\\", "a#b", "a;b", "a&b", "a*b", "a!b",
                        "a^b", "a~b", "<a>", "`a`", "a\tb", "$", "${", "${a", "$a", "http://h:80/p?q=1", "C:\\x\\y", "a{b}",
                        "a[0]", "\\(a\\)", "\\[a\\]", "\\{a\\}", "a\\:b", "[a, ]", "[,]", "{a}", "{a:}", "{:1}", "[a b, c]",
                        "x${a}y", "${a}${b}", "a ${a} b", "\\${a}", "[${a},${n}]", "1 2", "1 a", "a 1", "true x", "null x")

    def override_key(self):
        r = self.rng.random()
        if r < 0.6:
            return self.one("a", "b", "n.x", "n.m.z", "l", "n", "n.m", "s", "nul", "mis", "ref", "d", "f", "n.y")
        if r < 0.8:
            return self.one("new", "n.new", "n.m.new", "new.x.y", "l.0", "a.b", "s.t", "nul.x", "mis.x", "ref.x", "n.new.x",
                            "n.l.1", "e.x")
        return self.one("l[0]", "n..x", ".a", "a.", "", "a b", "a-b", "a/b", "1", "n.1", "true", "null", "é", "$a", "a$", "a@b",
                        "@a", "a:b", "a@", "n[x]", "'a'", "a,b", "A", "_x", "-a", "a--b", "/a", "a/", "n/x", "a+b", "a=b",
                        "hydra.x", "l.9", "l.x", "a@_global_", "a@:b", "~a", "+a", "++", "a%b", " a", "a ", "a\\b", "1e3")

    def override(self):
        sign = self.one("", "", "", "", "+", "++", "~", "", "+", "+++", "~~", "+~") if self.chance(0.98) else "-"
        key = self.override_key()
        if sign == "~" and self.chance(0.6):
            return sign + key
        if self.chance(0.02):
            return sign + key
        return sign + key + self.one("=", "=", "=", "=", "=", " =", "= ", "=") + self.value()

    def mutate(self, text):
        """One small wound."""
        at = self.rng.randrange(len(text) + 1)
        if self.chance(0.5) and text:
            return text[:at] + text[at + 1:]
        return text[:at] + self.one(*"$ {}[]()'\"\\,:=.+~@/!#%&*-_|<>?01aé", "${", "\t", "\n") + text[at:]

    # -- Defaults lists --

    GROUPS = ["g", "h", "db", "db/eng", "g/sub", "exp"]
    OPTIONS = ["one", "two", "tri"]

    def package(self):
        return self.one("x", "x.y", "_here_", "_global_", "_group_", "_global_.x", "_group_.x", "_here_.x", "g", "db.eng",
                        "_name_", "x._group_", "h", "g.sub", "_global_.g")

    def group_name(self, base):
        """A group as an entry in a config below `base` names it."""
        r = self.rng.random()
        below = [g[len(base) + 1:] for g in self.GROUPS if g.startswith(base + "/")] if base else self.GROUPS
        if r < 0.55 and below:
            return self.rng.choice(below)
        if r < 0.95:
            return ("/" if base or self.chance(0.3) else "") + self.rng.choice(self.GROUPS)
        return self.one("nogroup", "/nogroup", "g/nogroup", "../g", "./g", "g/", "g//sub")

    def option(self, weird=0.1):
        if not self.chance(weird):
            return self.rng.choice(self.OPTIONS)
        return self.one("null", "???", "ghost", "[one, two]", "[one]", "[]", "one.yaml", "'one'", "1", "true", "{a: 1}",
                        "${g}", "${h}_x", "o${db}", "~", "''", "[one, one]", "[null]", "[ghost]", "sub/one", "/one", "../h/one",
                        "${/h}", "${db/eng}", "${db.eng}", "one # c", "${oc.env:CASE_NUM}", "eng/one", "sub/two", "${nope}")

    def entry(self, base, override=False):
        r = self.rng.random()
        if r < 0.12 and not override:
            return "- _self_"
        if r < 0.24 and not override:
            name = self.one("one", "two", "tri", "base", "/base", "/g/one", "/h/two", "g/one", "/db/eng/one", "sub/one", "eng/two",
                            "ghost", "/ghost", "config", "base2")
            if self.chance(0.3):
                name += "@" + self.package()
            if self.chance(0.15):
                name = "optional " + name
            return self.one("- ", "- ", "- ? ") [:2] + name
        key = self.group_name(base)
        if self.chance(0.3):
            key += "@" + self.package()
        if override:
            key = "override " + key
        elif self.chance(0.15):
            key = "optional " + key
        elif self.chance(0.02):
            key = self.one("optional override ", "override optional ", "foo ", "optional  ", "override  ") + key
        return f"- {key}: {self.option(0.3 if override else 0.15)}"

    def defaults(self, base, most=5):
        entries = [self.entry(base) for _ in range(self.rng.randrange(most))]
        if self.chance(0.25):
            entries += [self.entry(base, True) for _ in range(self.rng.randrange(1, 3))]
        if entries and self.chance(0.15):  # the same once more
            entries.insert(self.rng.randrange(len(entries) + 1), self.one(*[e for e in entries if "override" not in e] or ["- g/one"]))
        if self.chance(0.35) and "- _self_" not in entries:
            entries.insert(self.rng.randrange(len(entries) + 1), "- _self_")
        if self.chance(0.05):
            self.rng.shuffle(entries)
        return ["defaults:"] + ["  " + e for e in entries] if entries else ["defaults: []"]

    def content(self, name):
        lines = []
        for _ in range(self.rng.randrange(1, 4)):
            r = self.rng.random()
            key = self.one("v", "w", "x", "y")
            if any(line.startswith(key + ":") for line in lines):
                continue
            if r < 0.5:
                lines.append(f"{key}: {name}")
            elif r < 0.8:
                lines.append(f"{key}: {{{self.one('p', 'q')}: {name}}}")
            elif r < 0.9:
                lines.append(f"{key}: [{name}]")
            else:
                lines.append(f"{key}: {self.one('null', '???', '${.w}', '${v}', '${g.v}', '{}', '[]')}")
        return lines

    def group_file(self, path, most):
        base, _, name = path.rpartition("/")
        lines = []
        if self.chance(0.2):
            lines.append(f"# @package {self.package()}")
        if self.chance(0.35):
            lines += self.defaults(base, most)
        if self.chance(0.95):
            lines += self.content(f"{base.replace('/', '_')}_{name}")
        return "\n".join(lines) + "\n"


BASE = """a: 1
b: text
c: ${a}
d: {p: 1, q: {r: 2}}
n:
  x: 5
  y: ${.x}
  l: [1, 2]
  m: {z: 3, k: v}
l: [1, two, {q: 3}]
s: x
k: m
zero: 0
f: 1.5
t: true
nul: null
mis: ???
e: ''
el: []
ref: ${n}
lref: ${l}
"""


def make_values(m):
    return {"config.yaml": "\n".join(m.block(2)) + "\n"}, []


def make_overrides(m):
    overrides = [m.override() for _ in range(m.one(1, 1, 1, 2, 3))]
    if m.chance(0.2):
        i = m.rng.randrange(len(overrides))
        overrides[i] = m.mutate(overrides[i])
    return {"config.yaml": BASE}, overrides


def make_interp(m):
    text = BASE
    for i in range(m.one(1, 1, 2)):
        value = m.interpolated()
        if m.chance(0.1):
            value = m.mutate(value)
        value = value.replace("'", "''").replace("\n", " ")
        place = m.rng.random()
        if place < 0.6:
            text += f"v{i}: '{value}'\n"
        elif place < 0.8:
            text += f"v{i}: ['{value}', {{q: '{value}'}}]\n"
        else:
            text = text.replace("n:\n", f"n:\n  v{i}: '{value}'\n")
    overrides = [m.override()] if m.chance(0.1) else []
    return {"config.yaml": text}, overrides


def make_defaults(m):
    files = {}
    deep = m.one(2, 3, 4)
    for g in m.GROUPS:
        for o in m.OPTIONS:
            files[f"{g}/{o}.yaml"] = m.group_file(f"{g}/{o}", deep if m.chance(0.5) else 2)
    for name in ("base", "base2"):
        files[f"{name}.yaml"] = m.group_file(name, 3)
    files["config.yaml"] = "\n".join(m.defaults("", 6) + m.content("config")) + "\n"
    overrides = []
    for _ in range(m.one(0, 0, 1, 1, 2)):
        r = m.rng.random()
        group = m.rng.choice(m.GROUPS) if m.chance(0.95) else m.group_name("")
        if m.chance(0.3):
            group += "@" + m.package()
        if r < 0.5:
            overrides.append(f"{group}={m.option(0.15)}")
        elif r < 0.7:
            overrides.append(f"+{group}={m.option(0.15)}")
        elif r < 0.8:
            overrides.append(f"~{group}" + m.one("", "", "=one"))
        elif r < 0.95:
            key = m.one("v", "g.v", "h.w", "db.eng.v", "x.v", "w", "db.v", "g.sub.w")
            overrides.append(m.one("", "+", "++", "~") + key + "=" + m.one("1", "{p: 9}", "null", "[1]", "${v}"))
        else:
            overrides.append(f"++{group}={m.option()}")
    return files, overrides


def make_merge(m):
    """The same few keys from several files and arguments, with values of every kind."""
    files = {}
    names = ["one", "two", "tri"]
    for name in names:
        lines = [f"{k}: {m.plain()}" for k in m.rng.sample(["v", "w", "z"], m.rng.randrange(1, 4))]
        files[f"{name}.yaml"] = "\n".join(lines) + "\n"
    m.rng.shuffle(names)
    entries = names + (["_self_"] if m.chance(0.7) else [])
    m.rng.shuffle(entries)
    lines = ["defaults: [" + ", ".join(entries) + "]"]
    lines += [f"{k}: {m.one(m.plain(), '${w}', '${oc.env:CASE_NUM}', '${z.q}')}" for k in m.rng.sample(["v", "w", "z"], 2)]
    files["config.yaml"] = "\n".join(lines) + "\n"
    overrides = []
    for _ in range(m.one(0, 1, 1, 2, 3)):
        key = m.one("v", "w", "z", "v.q", "w.q.r", "z.q", "v.new", "w.q", "z.0", "v.0.q", "w.1")
        sign = m.one("", "+", "++", "~", "", "++")
        overrides.append(sign + key + ("" if sign == "~" and m.chance(0.7) else "=" + m.one(m.plain().replace("'s'", "s"), m.plain(), "${w}", "{q: {r: 1, s: 2}}")))
    return files, overrides


KINDS = {"values": make_values, "overrides": make_overrides, "interp": make_interp, "defaults": make_defaults,
         "merge": make_merge}
