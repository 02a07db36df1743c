"""Downloads from a local web server that resumes, refuses, breaks off and lies."""
import gzip
import hashlib
import http.server
import os
import re
import signal
import struct
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import kilntest

BIG = bytes(range(256)) * 40000


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `server.files`; what else it does depends on the first part of the path."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        server, (_, way, name) = self.server, self.path.split("/", 2)
        first = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
        server.requests.append((way, int(first[1]) if first else 0))
        data = server.files.get(name)
        if way == "moved":
            self.send_response(302)
            self.send_header("Location", f"/plain/{name}")
            self.end_headers()
        elif data is None:
            self.send_error(404)
        elif way == "busy" and len(server.requests) < 3:
            self.send_error(503)
        else:
            self.send(way, data, int(first[1]) if first and way != "whole" else 0)

    def send(self, way, data, start):
        if start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        # Every answer but the third breaks off; or this one stops until the test is over.
        if way == "breaks" and len(self.server.requests) < 3:
            self.wfile.write(data[start:start + len(data) // 3])
        elif way == "stalls" and len(self.server.requests) == 1:
            self.wfile.write(data[start:start + len(data) // 2])
            self.wfile.flush()
            self.server.stalled.set()
            self.server.over.wait(60)
        else:
            try:
                self.wfile.write(data[start:])
            except ConnectionError:
                pass  # it asked for a part, and this is all


class Download(kilntest.Case):
    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.requests, self.server.files = [], {"big": BIG}
        self.server.over, self.server.stalled = threading.Event(), threading.Event()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        # An idx set of MNIST's kind.
        self.sources = []
        for split, n in (("train", 200), ("t10k", 100)):
            images = struct.pack(">IIII", 2051, n, 8, 8) + bytes((i * 7) % 251 for i in range(n * 64))
            labels = struct.pack(">II", 2049, n) + bytes(i % 10 for i in range(n))
            for name, data in ((f"{split}-images-idx3-ubyte.gz", images), (f"{split}-labels-idx1-ubyte.gz", labels)):
                self.server.files[name] = gzip.compress(data)

    def tearDown(self):
        self.server.over.set()
        self.server.shutdown()
        self.server.server_close()
        super().tearDown()

    def source(self, way, name="big", sha256=None, to=None):
        if sha256 is None:
            sha256 = hashlib.sha256(self.server.files.get(name, b"")).hexdigest()
        return f"{{url: {self.address}/{way}/{name}, sha256: '{sha256}', to: {to or 'data/' + name}}}"

    def args(self, *sources, download="true"):
        return ["datamodule=mnist", "datamodule.root=data", "datamodule.val_count=50", "model=mlp", "model.hidden=[8]",
                "trainer.max_steps=2", f"datamodule.download={download}", f"datamodule.sources=[{','.join(sources)}]"]

    def mnist(self, way="plain"):
        return [self.source(way, name) for name in self.server.files if name.endswith(".gz")]

    def needs_curl(self, err):
        if "built without libcurl" in err:
            self.skipTest("built without libcurl")

    def fetch(self, way, **options):
        """Download `big`; the run then fails, as the set is missing."""
        _, err = self.run_kiln(*self.args(self.source(way, **options)), status=1)
        self.needs_curl(err)
        return err

    def assert_fetched(self):
        with open(self.path("data/big"), "rb") as f:
            self.assertEqual(f.read(), BIG)
        self.assertEqual(os.listdir(self.path("data")), ["big"])

    def test_a_missing_set_is_fetched_once(self):
        self.refused(*self.args(*self.mnist(), download="false"), says=["datamodule.download=true downloads the 4 files that are missing"])
        self.assertEqual(self.server.requests, [])
        process = self.start(*self.args(*self.mnist()))
        _, err = process.communicate(timeout=120)
        self.needs_curl(err)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(len(self.server.requests), 4)
        self.assertEqual(sorted(os.listdir(self.path("data"))), sorted(n for n in self.server.files if n != "big"))
        self.run_kiln(*self.args(*self.mnist()))
        self.assertEqual(len(self.server.requests), 4)

    def test_a_run_folder_does_not_download(self):
        _, err = self.start(*self.args(*self.mnist())).communicate(timeout=120)
        self.needs_curl(err)
        run, n = self.run_folder(), len(self.server.requests)
        os.remove(self.path("data/t10k-images-idx3-ubyte.gz"))
        _, err = self.run_kiln("eval", f"ckpt_path={run}/checkpoints/last", program="kiln", status=1)
        self.assertIn("datamodule.download=true downloads data/t10k-images", err)
        self.assertEqual(len(self.server.requests), n)
        self.run_kiln("eval", f"ckpt_path={run}/checkpoints/last", "datamodule.download=true", program="kiln")
        self.assertEqual(len(self.server.requests), n + 1)

    def test_redirections_errors_that_pass_and_broken_connections(self):
        for way in "moved", "busy", "breaks":
            with self.subTest(way=way):
                self.server.requests.clear()
                self.fetch(way)
                self.assert_fetched()
                if way == "breaks":
                    self.assertEqual(self.server.requests[1:], [(way, len(BIG) // 3), (way, 2 * (len(BIG) // 3))])
                os.remove(self.path("data/big"))

    def test_an_interrupted_download_goes_on(self):
        process = self.start(*self.args(self.source("stalls")))
        if not self.server.stalled.wait(60):
            self.needs_curl(process.communicate()[1])
        self.wait_for(lambda: os.path.exists(self.path("data/big.part")) and
                      os.path.getsize(self.path("data/big.part")) == len(BIG) // 2, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(os.listdir(self.path("data")), ["big.part"])
        self.fetch("stalls")
        self.assertEqual(self.server.requests[1], ("stalls", len(BIG) // 2))
        self.assert_fetched()

    def test_parts_that_cannot_be_continued(self):
        for what, way, part in (("no ranges", "whole", BIG[:1000]), ("of another version", "plain", b"x" * 1000),
                                ("longer", "plain", BIG + b"x"), ("whole", "plain", BIG)):
            with self.subTest(what=what):
                self.write("data/big.part", part)
                err = self.fetch(way)
                self.assertNotIn("yourself", err)
                self.assert_fetched()
                os.remove(self.path("data/big"))
        self.write("data/big.part", b"x" * 1000)
        self.server.requests.clear()
        self.fetch("plain", sha256="")
        self.assertEqual(self.server.requests, [("plain", 0)])
        self.assert_fetched()

    def test_a_wrong_sum_leaves_nothing(self):
        err = self.fetch("plain", sha256="0" * 64)
        self.assertIn(f"{self.address}/plain/big: its SHA-256 sum is {hashlib.sha256(BIG).hexdigest()}, expected 0000", err)
        self.assertEqual(os.listdir(self.path("data")), [])

    def test_what_cannot_be_fetched(self):
        err = self.fetch("plain", name="none")
        self.assertIn(f"{self.address}/plain/none: the server answers with HTTP status 404; or fetch it yourself and put it at "
                      "data/none", err)
        self.server.server_close()
        err = self.fetch("plain", name="none")
        self.assertRegex(err, "Failed to connect to 127.0.0.1 port .*; or fetch it yourself and put it at data/none")
        self.assertEqual(os.listdir(self.path("data")), [])
        for source, says in ((f"{{url: 'ftp://x/y', to: y}}", "url 'ftp://x/y': expected an address that begins with https://"),
                             (f"{{url: '{self.address}', sha256: abc, to: y}}", "sha256 'abc' of"),
                             (f"{{url: '{self.address}'}}", "to")):
            self.assertIn(says, self.run_kiln(*self.args(source), status=1)[1])
        self.assertIn("nothing says where the files are", self.run_kiln(*self.args(), status=1)[1])

    def test_two_runs_fetch_it_once(self):
        names = [n for n in self.server.files if n.endswith(".gz")]
        runs = [self.start(*self.args(*self.mnist()), f"kiln.run.dir=run{i}") for i in range(3)]
        ends = [run.communicate(timeout=120) for run in runs]
        self.needs_curl(ends[0][1])
        self.assertEqual([run.returncode for run in runs], [0, 0, 0], ends)
        self.assertEqual(len(self.server.requests), len(names))


if __name__ == "__main__":
    unittest.main()
