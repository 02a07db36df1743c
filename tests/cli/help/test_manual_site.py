"""The manual as a site (make manual) and the man pages (make man): complete, without warnings, every link works."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import html.parser
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

from kilntest import BUILD, ROOT, SHORT, Case, main, read

KILN = os.path.join(BUILD, "kiln")
WORDS = ["checkpoint", "interpolation", "kiln_tensor_shape", "num_training_steps", "fast_dev_run", "halton"]


def without_sphinx():
    """Why the site cannot be built, or None."""
    if SHORT:
        return "in release only"
    shown = subprocess.run(["sh", "-c", "sphinx-build --version && head -1 $(command -v sphinx-build)"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if shown.returncode != 0:
        return "sphinx-build is missing; `make manual` installs it"
    python = shown.stdout.split("#!")[-1].split()
    for module in ["myst_parser", "furo"]:
        if subprocess.run([*python, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode != 0:
            return f"{module} is missing; `make manual` installs it"
    return None


class Page(html.parser.HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(read(path, "r"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.anchors.add(attrs["id"])
        for name in ["href", "src"]:
            if attrs.get(name):
                self.links.append(attrs[name])


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = without_sphinx()
        if reason:
            raise unittest.SkipTest(reason)
        cls.folder = tempfile.TemporaryDirectory(prefix="kiln-manual-")
        cls.built = subprocess.run(["sh", os.path.join(ROOT, "tools/manual/build.sh"), KILN, cls.folder.name],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        cls.html = os.path.join(cls.folder.name, "html")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.assertEqual((self.built.returncode, self.built.stdout), (0, ""))

    def page(self, name):
        return read(os.path.join(self.html, name), "r")

    def test_links(self):
        """From the first page each page is reached, by links and anchors that exist; nothing is loaded from elsewhere."""
        pages = {os.path.realpath(path): Page(path) for path in pathlib.Path(self.html).rglob("*.html")}
        waiting, seen, wrong = [os.path.realpath(os.path.join(self.html, "index.html"))], set(), []
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            for link in pages[path].links:
                url = urllib.parse.urlsplit(link)
                if url.scheme or url.netloc:
                    if url.path.endswith((".css", ".js")):
                        wrong.append(f"{path} loads {link}")
                    elif url.scheme != "https" or not url.netloc:  # "https://" or "file:line" in a text
                        wrong.append(f"{path} links {link}")
                    continue
                target = os.path.realpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path) or path))
                anchor = urllib.parse.unquote(url.fragment)
                if not os.path.exists(target) or (anchor and target in pages and anchor not in pages[target].anchors):
                    wrong.append(f"{path} links {link}")
                elif target in pages and target not in seen:
                    waiting.append(target)
        self.assertEqual(wrong, [])
        self.assertEqual(set(pages) - seen, set())
        self.assertGreater(len(pages), 120)

    def test_search(self):
        """The index of the search is a script, which a browser loads from a file, and has words of all kinds of pages."""
        index = self.page("searchindex.js")
        self.assertTrue(index.startswith("Search.setIndex("))
        for word in WORDS:
            self.assertRegex(index, rf"\b{word[:-3]}", word)  # the index has stems
        self.assertIn("searchindex.js", self.page("search.html"))

    def test_components(self):
        """Every component with every option that `kiln show` has."""
        names, kind = [], None
        for line in subprocess.run([KILN, "list"], stdout=subprocess.PIPE, text=True).stdout.splitlines():
            if line == "more":
                break
            if line and line[0] != " ":
                kind = line.split()[0]
            elif line.startswith("  ") and line[2] != " ":
                names.append((kind, line.split()[0]))
        self.assertGreater(len(names), 150)
        for kind, name in names:
            page = self.page(f"components/{kind}.html")
            section = re.search(rf'(?s)<section id="[^"]*">\s*(?:<span[^>]*></span>)*<h2>{name}<a.*?</section>', page)
            self.assertIsNotNone(section, f"{kind}/{name}")
            shown = subprocess.run([KILN, "show", f"{kind}/{name}"], stdout=subprocess.PIPE, text=True).stdout
            options = re.search(r"(?s)\noptions\n(.*?)\n\n", shown + "\n\n")[1]
            for option in re.findall(r"(?m)^  (\w[\w.\[\]]*)(?:  |$)", options):
                if option != "no":  # "no options"
                    text = re.sub(r"<[^>]*>", "", section[0])
                    self.assertIn(option, text, f"{kind}/{name}")

    def test_interface(self):
        """Every function and variable of the public headers has a description that links lead to."""
        anchors, names = set(), set()
        for path in pathlib.Path(self.html, "api").glob("*.html"):
            anchors |= Page(path).anchors
        headers = [*pathlib.Path(ROOT, "src").glob("kiln*.h"), *pathlib.Path(ROOT, "src/kiln").rglob("*.h")]
        for header in headers:
            text = re.sub(r"(?s)/\*.*?\*/", "", header.read_text())
            for declared in re.findall(r"(?m)^KILN_API(?:_TABLE)?\b([^;{]*)", text):
                names |= set(re.findall(r"\b(kiln_\w+)\s*(?=\(|\[|,|$)", re.match(r"[^(]*\(?", declared)[0]))
        self.assertGreater(len(names), 1000)
        self.assertEqual(sorted(name for name in names if f"c.{name}" not in anchors), [])


class Man(Case):
    def setUp(self):
        super().setUp()
        self.folder = self.path("man")
        subprocess.run([sys.executable, os.path.join(ROOT, "tools/manual/man.py"), KILN, self.folder], check=True)

    def test_every_command(self):
        out = self.run_kiln("--help", program="kiln")[0]
        commands = re.findall(r"(?m)^  ([\w-]+) ", out)
        wanted = {"kiln.1"} | {"train.1" if name == "train" else f"kiln-{name}.1" for name in commands}
        self.assertEqual(set(os.listdir(self.folder)), wanted)
        for name in commands:
            page = read(os.path.join(self.folder, "train.1" if name == "train" else f"kiln-{name}.1"), "r")
            page = page.replace("\\-", "-")
            for flag in re.findall(r"(?m)^  (?:-\w+, )?(--[\w-]+)", self.run_kiln(name, "--help", program="kiln")[0]):
                self.assertIn(flag, page, name)

    def test_no_warnings(self):
        """As man and mandoc read them."""
        checks = [["man", "--warnings", "-l"]] if shutil.which("man") else []
        checks += [["mandoc", "-Tlint", "-Wwarning"]] if shutil.which("mandoc") else []
        if not checks:
            self.skipTest("man and mandoc are missing")
        for name in sorted(os.listdir(self.folder)):
            for check in checks:
                done = subprocess.run([*check, os.path.join(self.folder, name)], text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=dict(os.environ, MANWIDTH="80", MANPAGER="cat"))
                lint = done.stdout if check[0] == "mandoc" else ""
                self.assertEqual((done.returncode, done.stderr, lint), (0, "", ""), name)


if __name__ == "__main__":
    main()
