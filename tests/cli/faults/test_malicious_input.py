"""Damaged, endless or malicious input of every sort: files, YAML, the config language, arguments and plugins. Each gives a
message and status 1 or 2 within seconds and in bounded memory; none crashes or hangs.
(test_config_limits.py checks the messages of the limits.)"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import resource
import shutil
import subprocess
import threading
import time
import unittest

from kilntest import BUILD, SHORT, Case, main

SECONDS = 60 if SHORT else 10
MEMORY = 1 << 30
PLUGIN = os.path.join(BUILD, "examples/plugin/resmlp.so")


def limit():
    if not SHORT:  # the address sanitizer reserves terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class MaliciousInput(Case):
    def compose(self, *args, folder="c", flags=("--cfg", "job", "--resolve"), **options):
        """(status, stdout, stderr); fails the test when it hangs or dies."""
        where = ["--config-path", folder] if folder else []
        process = subprocess.Popen(
            [os.path.join(BUILD, "train"), *where, *flags, *args], cwd=self.dir,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit, **options)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.fail(f"still running after {SECONDS} s: {str(args)[:200]}")
        err = err.decode("utf-8", "replace")
        self.assertIn(process.returncode, (0, 1, 2), f"died: {err[:2000]}")
        self.assertLess(len(err), 100_000, "a message that nobody reads")
        return process.returncode, out.decode("utf-8", "replace"), err

    def refuse(self, *args, says, **options):
        status, out, err = self.compose(*args, **options)
        self.assertNotEqual(status, 0, f"accepted: {out[:500]}")
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, err)
        return err

    def accept(self, *args, says="", **options):
        status, out, err = self.compose(*args, **options)
        self.assertEqual(status, 0, err)
        self.assertIn(says, out)
        return out

    def refuse_file(self, content, says, name="c/config.yaml"):
        self.write(name, content)
        return self.refuse(says=says)


class Files(MaliciousInput):
    def test_binary_garbage(self):
        for seed in range(20):
            data = bytes((i * i * 31 + i * (seed + 7) + seed) % 256 for i in range(1000 + seed))
            self.refuse_file(data, "c/config.yaml")

    def test_programs_and_pictures(self):
        for path in [os.path.join(BUILD, "kiln"), "/bin/sh", "/dev/null"]:
            with open(path, "rb") as f:
                data = f.read(100_000)
            self.write("c/config.yaml", data)
            if data:
                self.refuse(says="c/config.yaml")
            else:
                self.accept()

    def test_folder_for_a_file(self):
        os.makedirs(self.path("c/config.yaml"))
        self.refuse(says="c/config.yaml")
        os.makedirs(self.path("d/g/one.yaml"))
        self.write("d/config.yaml", "defaults: [{g: one}]\n")
        self.refuse(folder="d", says="d/g/one.yaml")

    def test_file_for_a_folder(self):
        self.write("c", "a: 1\n")
        self.refuse(says="--config-path")
        self.write("d/config.yaml", "defaults: [{g: one}]\n")
        self.write("d/g", "a: 1\n")
        self.refuse(folder="d", says="g")

    def test_unreadable_file(self):
        self.write("c/config.yaml", "a: 1\n")
        os.chmod(self.path("c/config.yaml"), 0)
        options = {}
        if os.geteuid() == 0:
            os.chmod(self.dir, 0o755)
            nobody = {"user": 65534, "group": 65534, "extra_groups": []}
            if subprocess.run(["test", "-x", os.path.join(BUILD, "train")], **nobody).returncode != 0:
                raise unittest.SkipTest("skip: another user can't run the program here")
            options = nobody
        self.refuse(says=["c/config.yaml", "denied"], **options)

    def test_not_utf8(self):
        self.refuse_file(b"a: \xff\xfe\xfa\n", ["c/config.yaml", "UTF-8"])
        self.refuse_file("a: \u00e9\n".encode("latin-1"), ["c/config.yaml:1", "UTF-8"])
        self.refuse_file(b"a: \xed\xa0\x80\n", "c/config.yaml")  # half a surrogate pair

    def test_huge_sparse_file(self):
        self.write("c/config.yaml", "a: 1\n")
        os.truncate(self.path("c/config.yaml"), 1 << 30)
        self.refuse(says=["c/config.yaml", "MiB"])

    def test_endless_files(self):
        self.write("d/config.yaml", "defaults: [{g: one}]\n")
        os.makedirs(self.path("d/g"))
        for device in ["/dev/zero", "/dev/random", "/dev/full"]:
            if os.path.exists(device):
                link = self.path("d/g/one.yaml")
                if os.path.lexists(link):
                    os.remove(link)
                os.symlink(device, link)
                self.refuse(folder="d", says="d/g/one.yaml")

    def test_pipe_without_a_writer(self):
        os.makedirs(self.path("c"))
        os.mkfifo(self.path("c/config.yaml"))
        self.refuse(says="c/config.yaml")

    def test_empty_files(self):
        for content in ["", "\n\n", "# only\n# comments\n", "---\n", "---\n...\n", b"\xef\xbb\xbf"]:
            self.write("c/config.yaml", content)
            self.accept()

    def test_byte_order_mark_and_line_ends(self):
        self.write("c/config.yaml", b"\xef\xbb\xbfa: 1\r\nb:\r\n  - x\r\n  - y\r\n")
        self.assertEqual(self.accept(), "a: 1\nb:\n  - x\n  - y\n")
        self.write("c/config.yaml", "a: 1\nb: 2\n".encode("utf-16"))
        self.compose()

    def test_nul_bytes(self):
        self.refuse_file(b"a: 1\0\nb: 2\n", "c/config.yaml:1")
        self.refuse_file(b'a: "x\\0y"\n', "c/config.yaml:1")
        self.refuse_file(b'"a\\0b": 1\n', "c/config.yaml:1")

    def test_dangling_link_and_link_loops(self):
        os.makedirs(self.path("c/g"))
        os.symlink("nowhere.yaml", self.path("c/config.yaml"))
        self.refuse(says="c/config.yaml")
        self.write("d/config.yaml", "defaults: [{g: one}]\n")
        os.makedirs(self.path("d/g"))
        os.symlink("one.yaml", self.path("d/g/one.yaml"))
        self.refuse(folder="d", says="one")
        self.write("e/config.yaml", "a: 1\n")
        os.symlink(".", self.path("e/loop"))
        self.accept(folder="e")
        self.refuse("loop/loop=loop", folder="e", says="loop")
        status, _, _ = self.compose(folder="e", flags=["--help"])
        self.assertEqual(status, 0)

    def test_a_file_that_vanishes(self):
        """Whatever is seen of a tree that changes, it is a config or a message."""
        self.write("c/config.yaml", "defaults: [{g: one}]\n")
        stop = time.monotonic() + (1 if SHORT else 2)
        done = threading.Event()

        def flicker():
            while not done.is_set():
                self.write("c/g/one.yaml", "v: 1\n")
                os.remove(self.path("c/g/one.yaml"))

        thread = threading.Thread(target=flicker)
        thread.start()
        try:
            while time.monotonic() < stop:
                status, out, err = self.compose()
                self.assertTrue(out if status == 0 else err)
        finally:
            done.set()
            thread.join()

    def test_thousands_of_options(self):
        self.write("c/config.yaml", "defaults: [{g: o77}]\n")
        os.makedirs(self.path("c/g"))
        for i in range(5000):
            with open(self.path(f"c/g/o{i}.yaml"), "w") as f:
                f.write(f"v: {i}\n")
        self.accept(says="v: 77")
        self.refuse("g=o7777", says="o777")
        status, _, _ = self.compose(flags=["--help"])
        self.assertEqual(status, 0)


class Yaml(MaliciousInput):
    def test_alias_bomb(self):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
        self.refuse_file("\n".join(lines) + "\n", "c/config.yaml")
        lines = ["m0: &m0 {k: 1}"] + [f"m{i}: &m{i} {{a: *m{i - 1}, b: *m{i - 1}}}" for i in range(1, 40)]
        self.refuse_file("\n".join(lines) + "\n", "c/config.yaml")

    def test_merge_key_bomb(self):
        lines = ["m0: &m0 {" + ", ".join(f"k{i}: {i}" for i in range(1000)) + "}"]
        lines += [f"m{i}: &m{i}\n  <<: [{', '.join(['*m0'] * 100)}]" for i in range(1, 200)]
        self.write("c/config.yaml", "\n".join(lines) + "\n")
        self.compose()

    def test_deep_nesting(self):
        for text in ["[" * 10_000, "a: " + "[" * 10_000 + "]" * 10_000, "{a: " * 10_000,
                     "\n".join(" " * i + "a:" for i in range(3000)), "- " * 10_000, "? " * 10_000, "!!str " * 10_000]:
            self.refuse_file(text + "\n", "c/config.yaml")

    def test_endless_words(self):
        self.write("d/config.yaml", "{}\n")
        self.refuse_file("a: " + "x" * (5 << 20), "c/config.yaml")
        self.write("c/config.yaml", "a: " + "x" * (3 << 20) + "\n")
        self.accept(says="xxx")
        self.write("c/config.yaml", "k" * 900 + ": 1\n")
        self.accept(says="kkk")
        self.compose("k" * 900 + "=2")
        for key in ["k" * 2000, "\t" * 400 + "k", "\u00e9" * 300]:
            for nested in [f"a={{b: [{{{key}: 1, c: 2}}]}}", f"a={{{key}: {{x: 1}}, b: 2}}"]:
                self.write("again/config.yaml", self.accept("+" + nested, folder="d", says="a:"))
                self.assertEqual(self.accept(folder="again"), self.accept("+" + nested, folder="d"))

    def test_thousands_of_keys(self):
        self.write("c/config.yaml", "".join(f"k{i}: {i}\n" for i in range(4000)))
        self.accept("k3999=x", says="k3999: x")
        self.refuse("k4000=x", says="k400")
        self.refuse_file("".join(f"k{i}: 1\n" for i in range(250_000)), "c/config.yaml")

    def test_long_lists(self):
        self.write("c/config.yaml", "l: [" + "1, " * 100_000 + "1]\n")
        self.accept()
        self.refuse_file("l: [" + "1, " * 400_000 + "1]\n", "c/config.yaml")

    def test_many_documents_and_anchors(self):
        self.refuse_file("---\na: 1\n" * 10_000, "c/config.yaml")
        self.write("c/config.yaml", "".join(f"k{i}: &a{i} {i}\n" for i in range(3000)) + "last: *a0\n")
        self.accept(says="last: 0")


class Language(MaliciousInput):
    def test_cyclic_defaults(self):
        self.refuse_file("defaults: [config]\n", "config")
        self.write("c/config.yaml", "defaults: [a]\n")
        self.write("c/a.yaml", "defaults: [b]\n")
        self.write("c/b.yaml", "defaults: [a]\n")
        self.refuse(says=["a", "b"])
        self.write("c/config.yaml", "defaults: [{g: one}]\n")
        self.write("c/g/one.yaml", "defaults: [{/g@x: one}]\n")
        self.refuse(says="one")

    def test_defaults_bomb(self):
        """Every file lists the next one twice: 2^30 files to merge."""
        for i in range(30):
            self.write(f"c/f{i}.yaml", f"defaults: [f{i + 1}@a, f{i + 1}@b]\n")
        self.write("c/f30.yaml", "v: 1\n")
        self.write("c/config.yaml", "defaults: [f0]\n")
        self.refuse(says="defaults")

    def test_cyclic_interpolation(self):
        self.refuse_file("a: ${b}\nb: ${c}\nc: ${a}\n", ["c/config.yaml:", "cycle"])
        self.refuse_file("a: x${a}\n", ["c/config.yaml:1", "cycle"])
        self.refuse_file("a: {b: '${a}'}\n", "c/config.yaml:1")
        self.refuse_file("a: ${${a}}\n", "c/config.yaml:1")
        self.write("c/config.yaml", "a: 1\n")
        self.refuse("a=${a}", says="a")

    def test_interpolation_bombs(self):
        lines = ["a0: xxxxxxxxxx"] + [f"a{i}: " + f"'{'${a%d}' % (i - 1) * 10}'" for i in range(1, 30)]
        self.refuse_file("\n".join(lines) + "\n", "c/config.yaml")
        lines = ["a0: [1, 2]"] + [f"a{i}: ['${{a{i - 1}}}', '${{a{i - 1}}}']" for i in range(1, 60)]
        self.refuse_file("\n".join(lines) + "\n", "c")
        self.refuse_file("".join(f"a{i}: ${{a{i + 1}}}\n" for i in range(3000)) + "a3000: 1\n", "c/config.yaml")
        self.refuse_file("a: '" + "${" * 10_000 + "}" * 10_000 + "'\n", "c/config.yaml:1")
        self.refuse_file("a: '" + "${oc.decode:" * 10_000 + "'\n", "c/config.yaml:1")
        self.refuse_file("a: ${oc.decode:'" + "[" * 10_000 + "'}\n", "c/config.yaml:1")
        self.refuse_file("a: ${" + "." * 10_000 + "x}\n", "c/config.yaml:1")

    def test_environment(self):
        self.refuse_file("a: ${oc.env:KILN_NOT_THERE}\n", ["KILN_NOT_THERE", "c/config.yaml:1"])
        self.write("c/config.yaml", "a: ${oc.env:KILN_ODD}\n")
        self.compose(env={**os.environb, b"KILN_ODD": b"\xff\xfe"})
        self.accept(env={**os.environ, "KILN_ODD": "x" * 100_000}, says="xxx")


class Arguments(MaliciousInput):
    def setUp(self):
        super().setUp()
        self.write("c/config.yaml", "a: 1\nn: {x: 2}\n")

    def test_deep_nesting(self):
        for value in ["[" * 10_000, "[" * 10_000 + "]" * 10_000, "{a:" * 10_000, "int(" * 10_000, "'" * 10_001,
                      "${" * 10_000, "${" * 10_000 + "}" * 10_000, "(" * 10_000, "choice(" * 10_000]:
            self.refuse("a=" + value, says="a")
        self.accept("a=" + "\\" * 10_001)
        for path in [".".join(["k"] * n) for n in (65, 10_000, 60_000)]:
            for sign in ["+", "++", "~", ""]:
                self.refuse(f"{sign}{path}=1", says="argument 1")
            self.refuse_file(f"# @package {path}\na: 1\n", "c/config.yaml")
            self.refuse_file(f"a: ${{{path}}}\n", "c/config.yaml:1")
            self.write("c/config.yaml", "a: 1\n")
            self.write("c/g/one.yaml", "a: 1\n")
            self.refuse(f"+g@{path}=one", says="one.yaml")
        self.accept("+" + ".".join(["k"] * 64) + "=" + "[" * 60 + "]" * 60)
        self.refuse("+g" + "/g" * 10_000 + "=1", says="g")
        self.refuse("~" * 10_000 + "a", says="argument 1")

    def test_long_argument(self):
        self.accept("a='" + "x" * 100_000 + "'", says="xxx")
        self.refuse("x" * 100_000, says="argument 1")
        self.refuse("x" * 100_000 + "=1", says="argument 1")
        self.accept("a=[" + "1," * 50_000 + "1]")

    def test_many_arguments(self):
        """As many as the system lets through, each setting the same key again."""
        self.accept(*["a=2"] * 20_000, says="a: 2")
        self.accept(*[f"+k{i}={i}" for i in range(2000)], says="k1999: 1999")
        err = self.refuse(*["nope=2"] * 20_000, says="nope")
        self.assertLess(err.count("\n"), 1000)

    def test_sweeps_without_an_end(self):
        for value in ["range(101e13)", "range(0,1,1e-300)", "range(1e300)", "range(-1e18,1e18)", "range(0,1,0)",
                      "range(5,0,-1e-9)", "range(0,inf)", "choice(" * 10_000, "shuffle(range(1000000000000))"]:
            self.refuse("a=" + value, flags=["-m", "--plan"], says="a")
        self.refuse(*[f"+k{i}=range(99999)" for i in range(3000)], flags=["-m", "--plan"], says="more than")
        for i in range(10):
            self.refuse(*[f"+k{j}=range(1000)" for j in range(2 + i)], flags=["-m", "--plan"], says="max_jobs")

    def test_odd_bytes(self):
        self.refuse(b"a=\xff", says="UTF-8")
        self.refuse(b"\xff=1", says="UTF-8")
        self.refuse("", says="argument 1")
        for text in ["=", "=1", "+", "++", "~", "+=1", "@", "a@", "a@=1", "@b=1", "a..b=1", ".=1", "\n", "a\n=1", "a\t", "{", "}"]:
            self.refuse(text, says="argument 1")

    def test_flags_cut_short(self):
        for args in [["--config-name"], ["--config-dir"], ["--cfg"], ["--cfg", "nope"], ["--plugin"], ["--nope"],
                     ["--explain"], ["-x"], ["--"], ["--package"]]:
            self.compose(folder="c", flags=[], *args)
        self.refuse("--config-dir", "absent", says="absent")
        self.refuse("--config-name", "../../etc/passwd", says="passwd")
        self.refuse("--config-name", "x" * 10_000, says="xxx")
        self.refuse("--package", "a." * 10_000, says="a.")


class Plugins(MaliciousInput):
    def test_not_a_plugin(self):
        self.write("c/config.yaml", "a: 1\n")
        self.write("p.so", "text\n")
        self.write("e.so", b"\x7fELF" + bytes(100))
        self.write("0.so", "")
        os.mkdir(self.path("d.so"))
        os.mkfifo(self.path("f.so"))
        for name in ["p.so", "e.so", "0.so", "d.so", "f.so", "absent.so", "/dev/zero"]:
            self.refuse("--plugin", name if "/" in name else "./" + name, says=name)
        library = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                                 env={"PATH": "/sbin:/usr/sbin:/bin"}).stdout
        path = next((line.split()[-1] for line in library.splitlines() if "libyaml" in line), None)
        if path:
            self.refuse("--plugin", path, says=["kiln_plugin_v1"])

    @unittest.skipUnless(os.path.exists(PLUGIN), "skip: the example plugin is not built")
    def test_two_of_one_name(self):
        shutil.copy(PLUGIN, self.path("one.so"))
        shutil.copy(PLUGIN, self.path("two.so"))
        self.write("c/config.yaml", "a: 1\n")
        self.refuse("--plugin", "./one.so", "--plugin", "./two.so", says=["resmlp", "two.so"])

    @unittest.skipUnless(os.path.exists(PLUGIN), "skip: the example plugin is not built")
    def test_cut_short(self):
        with open(PLUGIN, "rb") as f:
            data = f.read()
        self.write("c/config.yaml", "a: 1\n")
        for part in [0, 3, 64, 200, 1000, 5000]:
            self.write("half.so", data[:part])
            self.refuse("--plugin", "./half.so", says="half.so")
        self.write("half.so", data[:len(data) // 2])  # what is left out may be for debuggers only
        self.compose("--plugin", "./half.so")


if __name__ == "__main__":
    main()
