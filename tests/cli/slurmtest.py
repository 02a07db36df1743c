"""What tests of the launcher slurm share: a Slurm of this machine, in whose environment programs run."""
import unittest

import slurm_cluster
from kilntest import Case


def is_job(command):
    """A job's process, or the one that watches it."""
    return command[0].endswith("/kiln") and "--sweep-job" in command


def is_daemon(command):
    """slurmstepd, of a job's script or of the step in it."""
    return command[0].startswith("slurmstepd")


class SlurmCase(Case):
    SLURM = {}  # arguments of slurm_cluster.Slurm

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if (why := slurm_cluster.missing()) is not None:
            super().tearDownClass()
            raise unittest.SkipTest(why)
        cls.slurm = slurm_cluster.Slurm(**cls.SLURM)
        try:
            cls.slurm.start()
        except BaseException:
            cls.slurm.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.slurm.stop()
        super().tearDownClass()

    def start(self, *args, **options):
        return super().start(*args, **{"env": self.slurm.env, **options})

    def tearDown(self):
        self.slurm.output("scancel", "--me")
        self.slurm.wait(lambda: not self.slurm.queue())
        super().tearDown()
