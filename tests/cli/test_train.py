"""Training runs on the drawn digits: the run folder, repeating, resuming, stopping."""
import csv
import os
import signal
import time

from kilntest import SHORT, TINY, Case, main, read, read_json


class RunFolder(Case):
    def test_a_run_leaves_a_whole_folder(self):
        out, _ = self.run_kiln(*TINY)
        run = self.run_folder()
        self.assertIn(run, out)
        for name in [".kiln/config.yaml", ".kiln/overrides.yaml", ".kiln/kiln.yaml", ".kiln/origins.yaml",
                     "train.log", "metrics.csv", "summary.json", "checkpoints/last/model.safetensors",
                     "checkpoints/best/state.json", "checkpoints/last/config.yaml",
                     "checkpoints/last/trainer.safetensors"]:
            self.assertTrue(os.path.exists(os.path.join(run, name)), name)
        summary = read_json(os.path.join(run, "summary.json"))
        for key in ["status", "metrics", "parameters", "epochs", "steps", "wall_s", "samples_per_s",
                    "step_ms_median", "peak_rss_bytes", "overrides", "seed", "threads", "version"]:
            self.assertIn(key, summary)
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(summary["parameters"], 28 * 28 * 16 + 16 + 16 * 10 + 10)
        self.assertEqual(summary["epochs"], 2)
        self.assertEqual(summary["steps"], 16)
        self.assertEqual(summary["overrides"], TINY)
        for metric in ["train/loss", "val/loss", "val/accuracy", "test/accuracy"]:
            self.assertIn(metric, summary["metrics"])
        self.assertIn("epoch", summary["metrics"]["val/accuracy"]["best"])
        rows = list(csv.DictReader(read(os.path.join(run, "metrics.csv"), "r").splitlines()))
        self.assertEqual([r["val/accuracy"] for r in rows if r.get("val/accuracy")].__len__(), 2)

    def test_two_runs_in_one_second_have_two_folders(self):
        tiny = TINY + ["trainer.limit_train_batches=1", "trainer.max_epochs=1", "test=false"]
        runs = [self.start(*tiny) for _ in range(3)]
        for process in runs:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
        root = self.path("outputs")
        folders = [t for day in os.listdir(root) for t in os.listdir(os.path.join(root, day))]
        self.assertEqual(len(folders), 3)

    def test_no_terminal_no_control_characters(self):
        out, err = self.run_kiln(*TINY)
        self.assertNotIn("\r", out + err)
        self.assertNotIn("\x1b", out + err)

    def test_it_learns(self):
        if SHORT:
            return
        self.run_kiln("datamodule.train_count=4000", "trainer.max_epochs=2", "model=mlp")
        summary = read_json(os.path.join(self.run_folder(), "summary.json"))
        self.assertGreater(summary["metrics"]["test/accuracy"]["last"]["value"], 0.6)


class Repeating(Case):
    def weights(self, name):
        return read(self.path(name, "checkpoints/last/model.safetensors"))

    def test_same_command_same_bytes(self):
        for extra in [[], ["model=cnn", "trainer.threads=2", "trainer.limit_train_batches=4"]]:
            for name in ["a", "b"]:
                self.run_kiln(*TINY[2:], *(extra or TINY[:2]), f"kiln.run.dir={name}{len(extra)}")
            self.assertEqual(self.weights(f"a{len(extra)}"), self.weights(f"b{len(extra)}"))
        self.run_kiln(*TINY, "seed=7", "kiln.run.dir=c")
        self.assertNotEqual(self.weights("a0"), self.weights("c"))

    def test_any_number_of_workers_gives_the_same(self):
        for workers in [0, 1, 3]:
            self.run_kiln(*TINY, f"trainer.num_workers={workers}", f"kiln.run.dir=w{workers}")
        self.assertEqual(self.weights("w0"), self.weights("w1"))
        self.assertEqual(self.weights("w0"), self.weights("w3"))

    def test_resume_from_an_epoch_and_from_its_middle(self):
        tiny = TINY + ["callbacks.model_checkpoint.every_n_train_steps=3",
                       "callbacks.model_checkpoint.save_top_k=-1", "callbacks.model_checkpoint.monitor=null",
                       "trainer.max_epochs=3"]
        self.run_kiln(*tiny, "kiln.run.dir=whole")
        folder = self.path("whole/checkpoints")
        saved = sorted(n for n in os.listdir(folder) if n.startswith("epoch="))
        self.assertGreaterEqual(len(saved), 4, saved)
        for i, name in enumerate(saved[:4]):
            self.run_kiln(*tiny, f"kiln.run.dir=again{i}", f"ckpt_path='{folder}/{name}'")
            self.assertEqual(self.weights("whole"), self.weights(f"again{i}"), name)

    def test_resume_by_name_goes_on(self):
        self.run_kiln(*TINY)
        out, _ = self.run_kiln(*TINY, "trainer.max_epochs=4", "ckpt_path=last")
        self.run_kiln(*TINY, "trainer.max_epochs=4", "kiln.run.dir=whole", "scheduler=constant")
        runs = self.path("outputs")
        newest = max((os.path.join(runs, d, t) for d in os.listdir(runs)
                      for t in os.listdir(os.path.join(runs, d))), key=os.path.getmtime)
        self.assertEqual(read_json(os.path.join(newest, "summary.json"))["epochs"], 4)


class Stopping(Case):
    LONG = TINY + ["trainer.max_epochs=100000", "callbacks.model_checkpoint.every_n_train_steps=5"]

    def wait_for(self, name, process, seconds=60):
        end = time.time() + seconds
        while not os.path.exists(self.path(name)):
            if process.poll() is not None or time.time() > end:
                process.kill()
                self.fail(f"no {name}: {process.communicate()}")
            time.sleep(0.01)

    def test_ctrl_c_ends_with_a_checkpoint(self):
        process = self.start(*self.LONG, "kiln.run.dir=run")
        self.wait_for("run/checkpoints/last", process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        summary = read_json(self.path("run/summary.json"))
        self.assertEqual(summary["status"], "interrupted")
        state = read_json(self.path("run/checkpoints/last/state.json"))
        self.assertEqual(state["step"], summary["steps"])
        self.run_kiln(*self.LONG, f"trainer.max_steps={summary['steps'] + 7}", "kiln.run.dir=more",
                      "ckpt_path=run")
        self.assertEqual(read_json(self.path("more/summary.json"))["steps"], summary["steps"] + 7)

    def test_killed_runs_resume_to_the_same_bytes(self):
        fixed = TINY + ["trainer.max_epochs=30", "callbacks.model_checkpoint.every_n_train_steps=3"]
        self.run_kiln(*fixed, "kiln.run.dir=whole")
        rounds = 2 if SHORT else 5
        for i in range(rounds):
            run = f"killed{i}"
            process = self.start(*fixed, f"kiln.run.dir={run}")
            self.wait_for(f"{run}/checkpoints/last", process)
            time.sleep(0.011 * i * i)
            process.kill()
            process.communicate()
            self.run_kiln(*fixed, f"kiln.run.dir={run}", f"ckpt_path={run}")
            self.assertEqual(read(self.path("whole/checkpoints/last/model.safetensors")),
                             read(self.path(run, "checkpoints/last/model.safetensors")), run)


if __name__ == "__main__":
    main()
