"""Signals during a run, and failures of memory, data, loggers and disks: the run saves a checkpoint if it can, reports what
happened, where and what to do next, and can be resumed."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import resource
import shutil
import signal
import struct
import time
import unittest

from kilntest import BUILD, Braked, Live, build_plugin, live, main, read, read_json

ASAN = "asan" in BUILD
RUN = ["model=mlp", "model.hidden=[8]", "datamodule=faulty", "trainer.threads=1", "trainer.max_epochs=4", "kiln.run.dir=run", "trainer.num_workers=1",
       "callbacks.model_checkpoint.monitor=null"]


class SignalsAndFailures(Braked):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        conf = os.path.join(cls._plugins.name, "conf")
        os.makedirs(os.path.join(conf, "datamodule"))
        with open(os.path.join(conf, "datamodule/faulty.yaml"), "w") as f:
            f.write("_target_: faulty\n")
        cls.flags = ["--plugin", build_plugin("faults", cls._plugins.name), "--config-dir", conf]

    def train(self, *args, status=0, **options):
        return self.run_kiln(*self.flags, *RUN, *args, status=status, **options)

    def begin(self, *args, **options):
        return self.start(*self.flags, *RUN, *args, **options)

    def summary(self, run="run"):
        return read_json(self.path(run, "summary.json"))

    def state(self, run="run"):
        return read_json(self.path(run, "checkpoints/last/state.json"))

    def weights(self, run="run"):
        return read(self.path(run, "checkpoints/last/model.safetensors"))

    def wait_for_batch(self, batch, process, epoch=0):
        """Until that many training batches of the epoch are done, and what comes then waits."""
        def ready():
            at = live(self.path("run"))
            return at is not None and (at.phase, at.epoch, at.batch) == (Live.FIT, epoch, batch)

        self.wait_for(ready, process)

    def stopped(self, process, status):
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"did not stop: {process.communicate()}")
        self.assertEqual(process.returncode, status, out + err)
        return out, err

    def goes_on_to_the_same_bytes(self, *args):
        """The run in `run`, resumed without its fault, ends as one that had none."""
        self.train(*args, "ckpt_path=run", "datamodule.what=none")
        self.train(*args, "kiln.run.dir=whole", "datamodule.what=none")
        self.assertEqual(self.weights(), self.weights("whole"))

    # ---- faults ------------------------------------------------------------------------------

    def failed(self, err, status, *says):
        summary = self.summary()
        self.assertEqual(summary["status"], "failed")
        for text in says:
            self.assertIn(text, err)
            self.assertIn(text, summary["reason"])
        self.assertNotIn("AddressSanitizer", err)

    def test_a_sample_that_cant_be_read(self):
        for workers in [0, 2]:
            for run in ["run", "whole"]:
                shutil.rmtree(self.path(run), ignore_errors=True)
            # The 100th sample that is read: in the second epoch, behind its fourth batch. Of two workers
            # one may wait in an earlier batch while the other reads on.
            _, err = self.train("datamodule.what=read", "datamodule.after=100", "datamodule.val_count=0",
                                f"trainer.num_workers={workers}", "seed=1",
                                status=4)
            self.failed(err, 4, "/data/broken.bin: Input/output error",
                        "the last good checkpoint is run/checkpoints/epoch=001-step=", "train resume=run")
            self.assertEqual(self.summary()["checkpoints"]["last"],
                             "checkpoints/" + os.readlink(self.path("run/checkpoints/last")))
            self.assertEqual(self.state()["epoch"], 1)
            self.assertIn(self.state()["batch"], range(6) if workers == 2 else [4])
            self.assertEqual(self.state()["step"], 8 + self.state()["batch"], "nothing is skipped")
            self.assertIn("broken.bin", read(self.path("run/train.log"), "r"))
            self.goes_on_to_the_same_bytes("seed=1", "datamodule.val_count=0")
            shutil.rmtree(self.path("whole"))

    def test_a_data_file_that_goes_away_or_ends(self):
        data = b"".join(struct.pack("<4f", i % 5, i % 3, 1, 0) for i in range(64))
        for gone in [True, False]:
            for run in ["run", "whole"]:
                shutil.rmtree(self.path(run), ignore_errors=True)
            path = self.write("data.bin", data)
            process = self.begin(f"datamodule.file={path}", "datamodule.sample_us=2000",
                                 "trainer.max_epochs=1000")
            self.wait_for("run/checkpoints/last", process)
            if gone:
                os.remove(path)
            else:
                os.truncate(path, 128)
            _, err = self.stopped(process, 4 if gone else 1)
            self.failed(err, 4, path, "No such file" if gone else "ends within sample",
                        "resume with: train ")
            self.assertEqual(self.state()["step"], self.summary()["steps"])
            self.write("data.bin", data)
            steps = self.summary()["steps"] + 5
            self.train(f"datamodule.file={path}", f"trainer.max_steps={steps}", "ckpt_path=run")
            self.assertEqual(self.state()["step"], steps)

    @unittest.skipIf(ASAN, "the sanitizer keeps marks on the stack of a thread that leaves by pthread_exit")
    def test_a_loader_thread_that_ends(self):
        for workers in [1, 3]:
            for run in ["run", "whole"]:
                shutil.rmtree(self.path(run), ignore_errors=True)
            start = time.time()
            _, err = self.train("datamodule.what=end", "datamodule.after=40", "datamodule.val_count=0",
                                f"trainer.num_workers={workers}", status=1)
            self.assertLess(time.time() - start, 30)
            self.failed(err, 1, "a loader thread ended while reading sample", "the last good checkpoint is")
            self.assertGreater(self.state()["step"], 0)

    @unittest.skipIf(ASAN, "the sanitizer's own memory does not fit a limit")
    def test_no_memory_in_the_loader(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        _, err = self.train("datamodule.what=memory", "datamodule.after=40", "datamodule.val_count=0",
                            "callbacks.model_checkpoint.every_n_train_steps=2",
                            status=5, preexec_fn=limit)
        self.failed(err, 5, "out of memory", "the last good checkpoint is run/checkpoints/")
        self.goes_on_to_the_same_bytes("datamodule.val_count=0")

    @unittest.skipIf(ASAN, "the sanitizer's own memory does not fit a limit")
    def test_no_memory_before_the_first_checkpoint(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        for more in [["trainer.accumulate_grad_batches=3"], []]:
            for run in ["run", "whole"]:
                shutil.rmtree(self.path(run), ignore_errors=True)
            args = ["model.hidden=[1000]", "datamodule.val_count=0", *more]
            _, err = self.train("datamodule.what=memory", "datamodule.after=40", *args, status=5, preexec_fn=limit)
            self.failed(err, 5, "out of memory", "the last good checkpoint is run/checkpoints/")
            self.assertGreater(self.state()["samples"], 0)
            self.goes_on_to_the_same_bytes(*args)

    @unittest.skipIf(ASAN, "the sanitizer's own memory does not fit a limit")
    def test_no_memory_for_a_step(self):
        args = ["model.hidden=[3000,3000]", "datamodule.batch_size=32", "datamodule.val_count=0"]
        self.train(*args, "trainer.max_epochs=1")
        _, err = self.train(*args, "ckpt_path=run", "+callbacks.limit._target_=memory_limit",
                            "callbacks.limit.batch=2", status=5)
        self.failed(err, 5, "out of memory", "the last good checkpoint is run/checkpoints/epoch=000-step=2")

    @unittest.skipIf(ASAN, "the sanitizer's own memory does not fit a limit")
    def test_no_memory_for_the_code_of_a_convolution(self):
        args = ["model=cnn", "datamodule=digits", "datamodule.train_count=70", "datamodule.val_count=8",
                "datamodule.test_count=8", "batch_size=64", "trainer.max_epochs=1", "kiln.run.dir=run"]
        _, err = self.run_kiln(*self.flags, *args, "+callbacks.limit._target_=memory_limit",
                               "callbacks.limit.batch=1", status=5)  # before the batch of 6
        self.failed(err, 5, "oneDNN ran out of memory", "the last good checkpoint is run/checkpoints/epoch=000-step=1")
        self.run_kiln(*args, "ckpt_path=run")
        self.run_kiln(*args, "kiln.run.dir=whole")
        self.assertEqual(self.weights(), self.weights("whole"))

    def test_a_logger_that_fails(self):
        _, err = self.train("+logger.server._target_=failing", "logger.server.after=3",
                            "trainer.log_every_n_steps=1", status=4)
        self.failed(err, 4, "logger.server: the server that takes the rows is gone",
                    "the last good checkpoint is run/checkpoints/epoch=000-step=4")
        self.train("ckpt_path=run")
        self.train("kiln.run.dir=whole")
        self.assertEqual(self.weights(), self.weights("whole"))

    def test_a_full_disk(self):
        """Files may be so long and no longer: metrics.csv first, then everything."""
        def limit(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        _, err = self.train("trainer.log_every_n_steps=1", "trainer.max_epochs=1000",
                            "model.hidden=[8]", status=4, preexec_fn=limit(20000))
        self.failed(err, 4, "metrics.csv: File too large", "the last good checkpoint is run/checkpoints/")
        self.assertEqual(self.state()["step"], self.summary()["steps"])
        shutil.rmtree(self.path("run"))
        _, err = self.train("model.hidden=[8192]", status=4, preexec_fn=limit(60000))
        self.assertIn("was not saved", err)
        self.assertIn("no checkpoint was saved", err)
        self.assertEqual(self.summary()["status"], "failed")
        self.assertEqual(self.summary()["checkpoints"]["last"], None)

    def test_a_save_that_failed_ends_the_run_before_the_next(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))

        _, err = self.train("model.hidden=[8192]", "datamodule.count=800", "datamodule.sample_us=200",
                            "trainer.max_epochs=3", status=4, preexec_fn=limit)
        self.assertIn("checkpoint epoch=000-step=100 was not saved", err)
        self.assertLess(self.summary()["steps"], 200)

    def test_a_loss_that_is_not_finite_saves_nothing(self):
        _, err = self.train("optimizer=sgd", "optimizer.lr=1e6", "optimizer.momentum=0.99", "scheduler=constant",
                            "trainer.max_epochs=1000", status=3)
        self.failed(err, 3, "the loss is", "learning rate")

    # ---- signals -----------------------------------------------------------------------------

    LONG = ["datamodule.sample_us=2000", "trainer.max_epochs=1000"]

    def steps(self, run="run"):
        """Checkpoints that are there, by step."""
        folder = self.path(run, "checkpoints")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(int(n.split("step=")[1]) for n in names if n.startswith("epoch="))

    def test_signals_that_stop(self):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, by the runs, too
        for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU]:
            for run in ["run", "whole"]:
                shutil.rmtree(self.path(run), ignore_errors=True)
            process = self.begin(*self.LONG)
            self.wait_for(self.steps, process)
            process.send_signal(number)
            out, _ = self.stopped(process, 128 + number)
            summary = self.summary()
            self.assertEqual(summary["status"], "interrupted")
            self.assertEqual(summary["signal"], number.name)
            self.assertIn(number.name, summary["reason"])
            self.assertRegex(out, "(?m)^resume +train resume=run$")
            self.assertEqual(self.state()["step"], summary["steps"])

    def test_within_a_group_of_batches(self):
        args = [*self.braked, "trainer.accumulate_grad_batches=3", "trainer.max_epochs=3", "datamodule.count=104"]
        self.hold(after=13 + 4)  # in the second group of the second epoch
        process = self.begin(*args)
        self.wait_for_batch(4, process, epoch=1)
        process.send_signal(signal.SIGTERM)
        self.let_go()
        self.stopped(process, 143)
        self.assertGreater(self.state()["in_group"], 0)
        self.goes_on_to_the_same_bytes(*args)

    def test_within_validation_sanity_check_and_test(self):
        for phase, args in [
                (Live.VALIDATE, ["datamodule.val_count=100000", "datamodule.count=8"]),
                (Live.SANITY, ["datamodule.val_count=100000", "trainer.num_sanity_val_steps=-1"]),
                (Live.TEST, ["datamodule.test_count=100000", "trainer.max_epochs=1", "datamodule.count=8",
                          "datamodule.val_count=0"])]:
            for run in ["run", "whole"]:
                shutil.rmtree(self.path(run), ignore_errors=True)
            process = self.begin(*args, "datamodule.sample_us=1000")
            self.wait_for(lambda: (at := live(self.path("run"))) and at.phase == phase, process)
            process.send_signal(signal.SIGTERM)
            self.stopped(process, 143)
            self.assertEqual(self.summary()["status"], "interrupted", phase)
            self.assertEqual(self.state()["step"], self.summary()["steps"])

    def test_while_it_waits_for_data(self):
        process = self.begin("datamodule.what=wait", "datamodule.after=40", "datamodule.val_count=0")
        self.wait_for_batch(5, process)
        process.send_signal(signal.SIGUSR1)
        self.wait_for(self.steps, process)
        before = self.steps()
        process.send_signal(signal.SIGTERM)
        self.wait_for("run/summary.json", process)
        self.assertEqual(self.summary()["status"], "interrupted")
        self.assertEqual(self.steps(), before)
        process.kill()  # the thread still sleeps in the datamodule
        process.communicate()

    def test_usr1_saves_and_goes_on(self):
        args = [*self.braked, "datamodule.count=160", "trainer.max_epochs=2"]
        self.hold(after=7)
        process = self.begin(*args)
        self.wait_for_batch(7, process)
        with open(f"/proc/{process.pid}/comm", encoding="utf-8") as f:
            self.assertEqual(f.read().strip(), "train")  # pkill finds it
        process.send_signal(signal.SIGUSR1)
        self.hold(after=9)
        self.wait_for(self.steps, process)
        self.assertIn(self.steps(), ([7], [8]), "within the epoch")
        self.wait_for("run/checkpoints/last", process)  # which comes behind the folder
        shutil.copytree(self.path("run"), self.path("copy"), symlinks=True)
        self.let_go()
        out, _ = self.stopped(process, 0)
        self.assertIn("save requested", out)
        self.assertEqual(self.summary()["status"], "finished")
        self.train(*args, "kiln.run.dir=copy", "ckpt_path=copy")
        self.train(*args, "kiln.run.dir=whole")
        self.assertEqual(self.weights(), self.weights("whole"))
        self.assertEqual(self.weights("copy"), self.weights("whole"))

    def test_usr1_while_a_rate_is_searched(self):
        """There is nothing to save yet: it is done when training begins."""
        for workers in (0, 1):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            process = self.begin("callbacks=[default,lr_finder]", "callbacks.lr_finder.num_training_steps=100",
                                 "callbacks.lr_finder.early_stop_threshold=null", "datamodule.sample_us=2000",
                                 "trainer.max_epochs=1", f"trainer.num_workers={workers}")
            caught = f"/proc/{process.pid}/status"
            self.wait_for(lambda: int(read(caught, "r").split("SigCgt:")[1].split()[0], 16) >> 9 & 1, process)
            time.sleep(0.5)
            self.assertFalse(os.path.exists(self.path("run/.kiln/live")), "it is in the search")
            process.send_signal(signal.SIGUSR1)
            out, _ = self.stopped(process, 0)
            self.assertIn("save requested", out)
            self.assertIn("lr_finder: lr=", out)

    def test_a_second_signal_ends_at_once(self):
        process = self.begin("datamodule.what=wait", "datamodule.after=20", "trainer.num_workers=0",
                             "datamodule.val_count=0")
        self.wait_for_batch(2, process)
        process.send_signal(signal.SIGTERM)
        self.wait_for(lambda: "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"
                      in read(f"/proc/{process.pid}/status", "r"), process)
        time.sleep(0.3)  # within a tenth of a second two signals are taken for one
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.stopped(process, 130)

    def test_nohup(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        self.hold(after=5)
        process = self.begin(*self.braked, "trainer.max_epochs=3", preexec_fn=ignore)
        self.wait_for_batch(5, process)
        process.send_signal(signal.SIGHUP)
        self.let_go()
        self.stopped(process, 0)
        self.assertEqual(self.summary()["signal"], None)

    def test_output_that_nobody_reads(self):
        process = self.begin(*self.LONG)
        self.wait_for(self.steps, process)
        process.stdout.close()
        process.stdout = None
        self.assertEqual(process.wait(60), 141)
        self.assertEqual(self.summary()["signal"], "SIGPIPE")
        self.assertEqual(self.state()["step"], self.summary()["steps"])
        process.stderr.close()


if __name__ == "__main__":
    main()
