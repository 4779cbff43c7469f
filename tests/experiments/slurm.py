"""A Slurm cluster of two nodes on this machine, in a folder, for the tests."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo")
NODES = ("n1", "n2")

CONFIGURATION = """
ClusterName=lloydbench
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdTimeout=4
SlurmctldTimeout=10
InactiveLimit=0
KillWait=1
MinJobAge=60
ReturnToService=2
JobRequeue=1
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=10
"""


class NoSlurmError(Exception):
    """Slurm is not installed, or does not start here."""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def find(program):
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


class Cluster:
    def __init__(self, folder):
        missing = [program for program in NEEDED if not find(program)]
        if missing:
            raise NoSlurmError(
                f"{', '.join(missing)} not found; tools/setup-system.sh slurm installs them"
            )
        self.folder, self.processes = pathlib.Path(folder), {}
        host = socket.gethostname().split(".")[0]
        user = subprocess.check_output(["id", "-un"], text=True).strip()
        (self.folder / "state").mkdir()
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(
            CONFIGURATION.format(host=host, user=user, folder=self.folder, ports=free_ports(3))
        )
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        try:
            self._start_all()
        except NoSlurmError:
            self.stop()
            raise

    def _start_all(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = [
            f"--{name}={self.folder}/munge.{end}"
            for name, end in (
                ("socket", "socket"),
                ("pid-file", "pid"),
                ("log-file", "log"),
                ("seed-file", "seed"),
                ("key-file", "key"),
            )
        ]
        self._start("munged", ["--foreground", "--force", *files])
        self._wait("munged", lambda: (self.folder / "munge.socket").exists())
        self._start("slurmctld", ["-D", "-i", "-f", str(self.configuration)])
        for node in NODES:
            self.start_node(node)
        self._wait("slurmctld", lambda: self.states() == {"n1": "idle", "n2": "idle"})

    def _start(self, name, arguments):
        with (self.folder / f"{name}.out").open("a") as log:
            self.processes[name] = subprocess.Popen(
                [find(name.split("-")[0]), *arguments],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self, name, condition, seconds=20):
        deadline = time.monotonic() + seconds
        while not condition():
            ended = self.processes[name].poll()
            if ended is not None or time.monotonic() > deadline:
                logs = sorted(self.folder.glob("*.out")) + sorted(self.folder.glob("*.log"))
                said = "\n".join(f"{log.name}: {log.read_text()[-600:]}" for log in logs)
                raise NoSlurmError(f"Slurm does not start here ({name}, {ended}): {said}")
            time.sleep(0.05)

    def start_node(self, node):
        self._start(f"slurmd-{node}", ["-D", "-N", node, "-f", str(self.configuration)])

    def kill_node(self, node):
        """As a power failure does: the daemon of the node and all that it runs are gone at once."""
        slurmd = self.processes.pop(f"slurmd-{node}")
        slurmd.send_signal(signal.SIGKILL)
        slurmd.wait()
        ours, steps = set(), set()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                variables = (process / "environ").read_bytes().split(b"\0")
                parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
                of_parent = pathlib.Path(f"/proc/{parent}/comm").read_text()
            except OSError:
                continue
            mine = f"SLURM_CONF={self.configuration}".encode() in variables
            if mine and f"SLURMD_NODENAME={node}".encode() in variables:
                ours.add(int(process.name))
                if of_parent.startswith("slurmstepd"):
                    steps.add(parent)
        # A step that outlives its script would report how that ended.
        for pid in [*steps, *(ours - steps)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ask(self, *command, cwd=None):
        return subprocess.run(
            [find(command[0]), *command[1:]],
            env=self.environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    def states(self):
        """Of the nodes: idle, alloc, down, …"""
        listed = self.ask("sinfo", "--noheader", "--Node", "--format=%N %T")
        pairs = [line.split() for line in listed.stdout.splitlines()]
        return dict(pair for pair in pairs if len(pair) == 2)

    def stop(self):
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
