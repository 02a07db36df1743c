"""Several processes that train one network (tests/plugins/sockets.c): with W of them a run leaves the bytes of one process
with W times trainer.accumulate_grad_batches."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import array
import csv
import os
import signal
import struct
import tempfile

from kilntest import SHORT, TINY, Case, build_plugin, main, read, read_json

ARGS = [*(word for word in TINY if "model" not in word), "logger=csv", "trainer.log_every_n_steps=1"]
MLP = ["model=mlp", "model.hidden=[16]"]
CNN = ["model=cnn", "model.channels=[4,8]", "model.hidden=16", "model.batch_norm=false", "datamodule.train_count=128"]


class Strategy(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._plugins = tempfile.TemporaryDirectory(prefix="kiln-plugins-")
        cls._sockets = build_plugin("sockets", cls._plugins.name)
        cls._brake = build_plugin("brake", cls._plugins.name)
        cls._exact = build_plugin("exact", cls._plugins.name)
        cls._prepared = build_plugin("prepared", cls._plugins.name)
        cls._protected = build_plugin("protected", cls._plugins.name)

    @classmethod
    def tearDownClass(cls):
        cls._plugins.cleanup()
        super().tearDownClass()

    def ranks(self, *args, world=2):
        """Start all ranks; rank 0 first in the list."""
        self._socket = tempfile.mkdtemp(dir=self.dir, prefix="s")
        return [self.start("--plugin", self._sockets, "--plugin", self._brake, "--plugin", self._exact,
                           "trainer.strategy=sockets", f"trainer.strategy.dir={self._socket}", *args,
                           env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world)}) for rank in range(world)]

    def finish(self, ranks, status=0):
        """Of all ranks; what each wrote: (stdout, stderr)."""
        written = [process.communicate(timeout=120) for process in ranks]
        for process, texts in zip(ranks, written):
            if status is not None:
                self.assertEqual(process.returncode, status, written)
        return written

    def run_ranks(self, *args, world=2):
        return self.finish(self.ranks(*args, world=world))

    def run_one(self, *args):
        return self.run_kiln("--plugin", self._exact, *args)

    def last(self, run, file="model.safetensors"):
        return read(self.path(run, "checkpoints/last", file))

    def numbers(self, run):
        """All weights."""
        data = self.last(run)
        return array.array("f", data[8 + struct.unpack("<Q", data[:8])[0]:])

    def rows(self, run):
        with open(self.path(run, "metrics.csv")) as f:
            return [{key: value for key, value in row.items() if key not in ("wall_time", "batch")}
                    for row in csv.DictReader(f)]

    def check_rows(self, run, want):
        rows, wanted = self.rows(run), self.rows(want)
        self.assertEqual(len(rows), len(wanted))
        for row, expected in zip(rows, wanted):
            self.assertEqual(row.keys(), expected.keys())
            for key, value in expected.items():
                if row[key] != value:
                    self.assertAlmostEqual(float(row[key]), float(value), delta=1e-12 * abs(float(value)), msg=key)

    def check_same(self, name, *args, world=2, accumulate=1, files=("model.safetensors", "trainer.safetensors")):
        """The ranks' run has the bytes and metrics of one rank's."""
        self.run_ranks(*ARGS, *args, f"trainer.accumulate_grad_batches={accumulate}", f"kiln.run.dir={name}-ranks", world=world)
        self.run_one(*ARGS, *args, f"trainer.accumulate_grad_batches={accumulate * world}", f"kiln.run.dir={name}-one")
        for file in files:
            self.assertEqual(self.last(f"{name}-ranks", file), self.last(f"{name}-one", file), file)
        self.check_rows(f"{name}-ranks", f"{name}-one")


class Bytes(Strategy):
    def test_networks(self):
        self.check_same("mlp", *MLP, "model.dropout=0.2", "trainer.gradient_clip_val=0.1", "trainer.track_grad_norm=true",
                        "+callbacks.ema=ema", "optimizer=adam")
        self.check_same("cnn", *CNN, "optimizer=sgd", "optimizer.momentum=0.9", "datamodule.batch_transforms=[{_target_: mixup}]")
        if not SHORT:
            self.check_same("linear", "model=linear", "trainer.gradient_clip_val=0.01", "trainer.gradient_clip_algorithm=value")
            self.check_same("double", *MLP, "trainer.precision=64-true")
            self.check_same("lstm", "model=lstm", "model.hidden=16", "datamodule.train_count=128")

    def test_groups(self):
        """Accumulation on top, an uneven last group and round, and three ranks."""
        self.check_same("two", *MLP, "datamodule.train_count=330", accumulate=2)
        self.check_same("three", *MLP, "datamodule.train_count=160", "datamodule.val_count=72", world=3)

    def test_memory_of_a_device(self):
        """Gradients and statistics are copied from and to memory that the host does not see."""
        args = [*ARGS, *CNN, "model.batch_norm=true", "trainer.accumulate_grad_batches=2"]
        self.run_ranks("--plugin", self._protected, *args, "trainer.accelerator=protected", "kiln.run.dir=device")
        self.run_ranks(*args, "kiln.run.dir=host")
        self.assertEqual(self.last("device"), self.last("host"))

    def test_one_large_batch(self):
        """Half the batch on each of two ranks: to the byte where all sums are exact."""
        exact = ["task=exact", "datamodule=noise", "datamodule.shape=[1,1,1]", "datamodule.count=128", "trainer.max_epochs=3",
                 "trainer.limit_val_batches=0", "trainer.threads=1", "test=false", "~callbacks"]
        self.run_ranks(*exact, "datamodule.batch_size=16", "kiln.run.dir=ranks")
        self.run_one(*exact, "datamodule.batch_size=32", "kiln.run.dir=one")
        self.assertEqual(self.last("ranks"), self.last("one"))
        self.run_ranks(*ARGS, *MLP, "kiln.run.dir=half")
        self.run_one(*ARGS, *MLP, "datamodule.batch_size=64", "kiln.run.dir=whole")
        half, whole = self.numbers("half"), self.numbers("whole")
        self.assertEqual(len(half), len(whole))
        for a, b in zip(half, whole):
            self.assertAlmostEqual(a, b, delta=1e-5)

    def test_one_rank_prepares_the_data(self):
        args = ["--plugin", self._prepared, "task=exact", "datamodule=prepared", "datamodule.file=numbers"]
        self.run_ranks(*args, "kiln.run.dir=ranks")
        self.assertEqual(len(read(self.path("numbers")).split()), 16)
        for _, text in self.finish(self.ranks(*args, "kiln.run.dir=again"), status=1):
            self.assertRegex(text, "numbers: is there before it is prepared|rank 0 ended")

    def test_batch_statistics(self):
        """All ranks validate with rank 0's running statistics; a run resumes exactly."""
        args = [*ARGS, *CNN, "model.batch_norm=true", "+callbacks.ema=ema", "scheduler=constant", "test=false"]
        self.run_ranks(*args, "kiln.run.dir=whole")
        self.run_ranks(*args, "trainer.max_epochs=1", "kiln.run.dir=part")
        self.run_ranks(*args, "kiln.run.dir=part", "ckpt_path=part")
        self.assertEqual(self.last("part"), self.last("whole"))


class Decisions(Strategy):
    def test_one_run_folder_and_early_stopping(self):
        args = [*MLP, "trainer.max_epochs=20", "+callbacks.early_stopping={_target_: early_stopping, patience: 1}", "lr=0.5",
                "+task.metrics.auroc=auroc", "+task.metrics.f1=f1"]
        self.check_same("run", *args)
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if os.path.isdir(self.path(name, "checkpoints"))),
                         ["run-one", "run-ranks"])
        ranks, one = (read_json(self.path(run, "summary.json")) for run in ["run-ranks", "run-one"])
        self.assertEqual(ranks["status"], "stopped")
        self.assertEqual((ranks["status"], ranks["reason"]), (one["status"], one["reason"]))

    def test_validation_within_epochs(self):
        self.check_same("run", *MLP, "trainer.val_check_interval=4", "datamodule.val_count=80")

    def test_manual_optimization(self):
        gan = ["experiment=gan/digits", "datamodule=digits", "datamodule.train_count=256", "datamodule.val_count=64",
               "datamodule.test_count=64", "datamodule.size=12", "trainer.threads=1", "batch_size=32",
               "task.generator.hidden=[16]", "task.discriminator.hidden=[16]", "task.latent=8", "trainer.max_epochs=2", "test=false"]
        self.run_ranks(*gan, "kiln.run.dir=whole")
        self.run_ranks(*gan, "trainer.max_steps=6", "kiln.run.dir=part")
        self.run_ranks(*gan, "ckpt_path=part", "kiln.run.dir=part")
        self.assertEqual(self.last("part"), self.last("whole"))

    def test_one_rank_is_not_told_apart(self):
        """A world of one is a run of one process."""
        self.check_same("one", *MLP, world=1)

    def test_refused(self):
        _, err = self.finish(self.ranks(*ARGS, *MLP, "+callbacks.lr_finder=lr_finder"), status=1)[0]
        self.assertIn("tries runs of one rank", err)
        _, err = self.finish(self.ranks(*ARGS, *MLP, "+callbacks.spike_detection=spike_detection"), status=1)[0]
        self.assertIn("watches the batches of one rank", err)
        self.assertEqual([name for name in os.listdir(self.dir) if not name.startswith("s")], [])
        _, err = self.run_kiln("--plugin", self._sockets, *ARGS, *MLP, "trainer.strategy=sockets", status=1)
        self.assertIn("WORLD_SIZE", err)


class Ends(Strategy):
    def setUp(self):
        super().setUp()
        self.args = [*ARGS, *MLP, "trainer.max_epochs=3", f"+callbacks.brake={{_target_: brake, file: '{self.path('pace')}'}}"]
        self.run_ranks(*self.args, "kiln.run.dir=whole")

    def hold(self, after):
        self.write("pace", f"{10**9} {after}")

    def held(self, ranks):
        """Started, and at the batch where the brake holds them."""
        self.wait_for(lambda: os.path.exists(self.path("run/metrics.csv")) and self.rows("run"), ranks[0])

    def check_resumed(self):
        self.run_ranks(*self.args, "kiln.run.dir=run", "ckpt_path=run")
        for file in ["model.safetensors", "trainer.safetensors"]:
            self.assertEqual(self.last("run", file), self.last("whole", file))
        self.assertEqual([row for row in self.rows("run") if row["phase"] == "fit"],
                         [row for row in self.rows("whole") if row["phase"] == "fit"])

    def test_a_signal_to_one_rank_stops_both(self):
        for rank in [0, 1]:
            with self.subTest(rank=rank):
                self.write("pace", "30 2")
                ranks = self.ranks(*self.args, "kiln.run.dir=run")
                self.held(ranks)
                ranks[rank].send_signal(signal.SIGINT)
                self.finish(ranks, status=None)
                self.assertEqual(ranks[rank].returncode, 128 + signal.SIGINT)
                self.assertEqual(read_json(self.path("run/summary.json"))["status"], "interrupted")
                os.remove(self.path("pace"))
                self.check_resumed()
                os.rename(self.path("run"), self.path(f"stopped{rank}"))

    def test_a_rank_that_dies(self):
        self.write("pace", "30 2")
        ranks = self.ranks(*self.args, "kiln.run.dir=run")
        self.held(ranks)
        ranks[1].kill()
        (_, err), _ = self.finish(ranks, status=None)
        self.assertNotEqual(ranks[0].returncode, 0)
        self.assertIn("rank 1 ended", err)
        self.assertIn("the last good checkpoint is", err)
        os.remove(self.path("pace"))
        self.check_resumed()


main()
