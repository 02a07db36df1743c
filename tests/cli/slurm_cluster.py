"""A Slurm of one machine, for tests: munged, slurmctld and a slurmd for each node, all on this host, in a folder of its own,
until stop()."""
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
SlurmctldPort={port}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/%n.log
Prolog={dir}/prolog
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
SlurmdTimeout={node_timeout}
MinJobAge=60
KillWait=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2
"""
NODE = "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=4000 State=UNKNOWN\n"
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


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Slurm:
    def __init__(self, cpus=2, nodes=1, node_timeout=300):
        """So many nodes with so many processors each; one that is silent for `node_timeout` seconds is down."""
        self.dir = tempfile.mkdtemp(prefix="kiln-slurm-")
        os.chmod(self.dir, 0o755)
        self.env = dict(os.environ, SLURM_CONF=os.path.join(self.dir, "slurm.conf"))
        self.host = socket.gethostname().split(".")[0]
        self.processes = {}
        self.cpus = cpus
        self.nodes = [f"node{i}" for i in range(nodes)]
        self.node_timeout = node_timeout

    def start(self):
        for name in ("state", *(f"spool/{node}" for node in self.nodes)):
            os.makedirs(os.path.join(self.dir, name))
        ports = free_ports(1 + len(self.nodes))
        with open(self.env["SLURM_CONF"], "w") as f:
            f.write(CONF.format(dir=self.dir, host=self.host, port=ports[0], node_timeout=self.node_timeout))
            for node, port in zip(self.nodes, ports[1:]):
                f.write(NODE.format(node=node, host=self.host, port=port, cpus=self.cpus))
        self.set_prolog("exit 0")
        key = os.path.join(self.dir, "munge.key")
        with open(key, "wb") as f:
            f.write(os.urandom(1024))
        os.chmod(key, 0o400)
        self.run("munged", "--force", "--foreground", f"--key-file={key}", f"--socket={self.dir}/munge.socket",
                 f"--pid-file={self.dir}/munged.pid", f"--log-file={self.dir}/munged.log", f"--seed-file={self.dir}/munged.seed")
        self.wait(lambda: os.path.exists(f"{self.dir}/munge.socket"))
        self.start_controller("-c")  # without jobs of earlier ones
        for node in self.nodes:
            self.start_node(node)
        self.wait(lambda: set(self.states()) == {"idle"})

    def start_controller(self, *args):
        self.run("slurmctld", "-D", *args)

    def start_node(self, node):
        self.run("slurmd", "-D", "-N", node, name=node)

    def set_prolog(self, line):
        """What a node runs before each job. If it fails, the node is drained and the job held."""
        path = os.path.join(self.dir, "prolog")
        with open(path + ".new", "w") as f:
            f.write(f"#!/bin/sh\n{line}\n")
        os.chmod(path + ".new", 0o755)
        os.replace(path + ".new", path)

    def states(self):
        return self.output("sinfo", "-h", "-N", "-p", "main", "-o", "%T").split()

    def resume_drained(self):
        """As an administrator does: Slurm drains a node when it starts a job whose number one there has that it forgot."""
        for node, state in zip(self.nodes, self.states()):
            if state.startswith("drain"):
                self.output("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def kill(self, name):
        """kill -9 of a daemon: "slurmctld", or the slurmd of a node."""
        self.processes[name].kill()
        self.processes[name].wait()

    def fail_node(self):
        """The only node goes down with all that runs on it, and is up again."""
        [node] = self.nodes
        self.kill(node)
        for pid in self.steps():
            kill(pid)
        self.output("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
        self.output("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self.start_node(node)
        self.wait(lambda: self.states() == ["idle"])

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

    def run(self, program, *args, name=None):
        """Start a daemon, which is `name` in self.processes."""
        name = name or program
        with open(os.path.join(self.dir, name + ".out"), "a") as out:
            self.processes[name] = subprocess.Popen([find(program), *args], env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                                                    stderr=out)

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
        for name in (*self.nodes, "slurmctld", "munged"):
            if name in self.processes:
                self.processes[name].terminate()
                self.processes[name].wait(10)
        for pid in self.steps():  # that no slurmd ended
            kill(pid)
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
