"""A FIFO or device instead of a file: the program reports what it is and never waits for it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import shutil

from kilntest import TINY, Case, main


class Pipes(Case):
    def says(self, *args, program="train", what="is a FIFO, not a regular file"):
        process = self.start(*args, program=program)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        self.assertNotEqual(process.returncode, 0, out)
        self.assertIn(what, err)

    def put(self, path):
        if os.path.exists(self.path(path)):
            os.remove(self.path(path))
        os.mkfifo(self.path(path))

    def test_config(self):
        os.mkdir(self.path("conf"))
        self.put("conf/config.yaml")
        self.says("--config-dir", "conf", "--config-path", "conf", "--cfg", "job")

    def test_weights(self):
        self.put("weights.safetensors")
        self.says(*TINY, "weights=weights.safetensors")
        self.says(*TINY, "weights=/dev/zero", what="is a device, not a regular file")

    def test_files_of_a_run(self):
        self.run_kiln(*TINY, "kiln.run.dir=whole")
        last = os.readlink(self.path("whole/checkpoints/last"))
        for name in [".kiln/job.yaml", *[f"checkpoints/{last}/{part}" for part in
                                         ["state.json", "model.safetensors", "trainer.safetensors"]]]:
            with self.subTest(name):
                shutil.rmtree(self.path("run"), ignore_errors=True)
                shutil.copytree(self.path("whole"), self.path("run"), symlinks=True)
                self.put(f"run/{name}")
                self.says("resume=run", what="train: ")
        shutil.rmtree(self.path("run"))
        shutil.copytree(self.path("whole"), self.path("run"), symlinks=True)
        self.put("run/.kiln/journal.jsonl")
        self.says("resume=run", what="journal.jsonl")


if __name__ == "__main__":
    main()
