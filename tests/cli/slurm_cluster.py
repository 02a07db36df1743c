"""A Slurm of one machine, for tests: munged, slurmctld and slurmd on this host, in a folder of its own, until stop()."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# Jobs that are requeued may begin once credentials have expired (cred_expire), by default after two minutes.
CONF = """ClusterName=kiln
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket,cred_expire=5
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
DefMemPerCPU=500
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=1,sched_interval=1,bf_interval=1,sched_min_interval=0,defer=0
ReturnToService=2
MinJobAge=60
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes={host} MaxTime=INFINITE State=UP PriorityTier=2
"""
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun")


def find(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Why there can be no Slurm here; None: there can."""
    for program in PROGRAMS:
        if find(program) is None:
            return f"{program} is not installed (Debian: slurm-wlm munge)"
    return "only root can start Slurm" if os.getuid() != 0 else None


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm:
    def __init__(self, cpus=2):
        self.dir = tempfile.mkdtemp(prefix="kiln-slurm-")
        os.chmod(self.dir, 0o755)
        self.env = dict(os.environ, SLURM_CONF=os.path.join(self.dir, "slurm.conf"))
        self.host = socket.gethostname().split(".")[0]
        self.processes = {}
        self.cpus = cpus

    def start(self):
        for name in ("state", "spool"):
            os.mkdir(os.path.join(self.dir, name))
        with open(self.env["SLURM_CONF"], "w") as f:
            f.write(CONF.format(dir=self.dir, host=self.host, ports=free_ports(2), cpus=self.cpus))
        key = os.path.join(self.dir, "munge.key")
        with open(key, "wb") as f:
            f.write(os.urandom(1024))
        os.chmod(key, 0o400)
        self.run("munged", "--force", "--foreground", f"--key-file={key}", f"--socket={self.dir}/munge.socket",
                 f"--pid-file={self.dir}/munged.pid", f"--log-file={self.dir}/munged.log", f"--seed-file={self.dir}/munged.seed")
        self.wait(lambda: os.path.exists(f"{self.dir}/munge.socket"))
        self.run("slurmctld", "-D", "-c")
        self.start_node()

    def start_node(self):
        self.run("slurmd", "-D", "-N", self.host)
        self.wait(lambda: "idle" in self.output("sinfo", "-h", "-o", "%T"))

    def fail_node(self):
        """The node goes down with all that runs on it, and is up again."""
        self.processes["slurmd"].kill()
        self.processes["slurmd"].wait()
        for pid in self.steps():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.output("scontrol", "update", f"NodeName={self.host}", "State=DOWN", "Reason=test")
        self.output("scontrol", "update", f"NodeName={self.host}", "State=RESUME")
        self.start_node()

    def steps(self, wanted=lambda command: True):
        """The processes of this cluster's jobs, and Slurm's own for each, whose command is `wanted`."""
        pids = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    environment = f.read().split(b"\0")
                with open(f"/proc/{pid}/cmdline") as f:
                    command = f.read().split("\0")
                with open(f"/proc/{pid}/comm") as f:
                    daemon = f.read().strip() == "slurmstepd"
            except OSError:
                continue
            job = any(line.startswith(b"SLURM_JOB_ID=") for line in environment)
            if b"SLURM_CONF=" + self.env["SLURM_CONF"].encode() in environment and (job or daemon) and wanted(command):
                pids.append(int(pid))
        return pids

    def run(self, name, *args):
        with open(os.path.join(self.dir, name + ".out"), "a") as log:
            self.processes[name] = subprocess.Popen([find(name), *args], env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=log)

    def output(self, *command):
        return subprocess.run(command, env=self.env, capture_output=True, text=True).stdout

    def queue(self):
        """The jobs that wait or run: "12_3" and their states."""
        lines = self.output("squeue", "-h", "-r", "-o", "%F_%K %T").split("\n")
        return dict(line.split() for line in lines if line)

    def wait(self, there, seconds=20):
        end = time.monotonic() + seconds
        while not there():
            if time.monotonic() > end:
                raise RuntimeError("Slurm does not start: " + self.logs())
            time.sleep(0.1)

    def logs(self):
        texts = []
        for name in sorted(os.listdir(self.dir)):
            if name.endswith((".log", ".out")):
                with open(os.path.join(self.dir, name)) as f:
                    texts.append(name + "\n" + f.read()[-1500:])
        return "\n".join(texts)

    def stop(self):
        if "slurmctld" in self.processes:
            self.output("scancel", "--me")
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self.processes:
                self.processes[name].terminate()
                self.processes[name].wait(10)
        shutil.rmtree(self.dir, ignore_errors=True)


if __name__ == "__main__":
    cluster = Slurm(os.cpu_count())
    try:
        cluster.start()
        print(f"export SLURM_CONF={cluster.env['SLURM_CONF']}", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        cluster.stop()
