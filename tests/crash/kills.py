"""Kills a run at random moments, again and again, resumes it to its end, and looks at what is left.

python tests/crash/kills.py --kills 100 [--seed 1] [--program build/run_experiment]

SIGKILL goes to the supervisor, to a worker, to the process of an external version, or to all of
them. It prints a line for each run that ends with a fault and a summary, and exits with 1 if there
was a fault.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import invariants

SPEC = """
name: kills
versions: [cpu_sequential, cpu_pthreads, kills_external]
axes: {n: [200, 400], k: [3], dim: [2], threads: [1], precision: [fp64]}
data: {generator: uniform, seed: 42}
solve: {iterations: 3}
measure: {repetitions: 2, max_seconds: 1e-6, launches: 2, timeout: 60}
profile: {timeline: true}
"""
FILES = ("measurements.jsonl", "phases.jsonl", "passes.jsonl")

EXTERNAL = '''#!/usr/bin/env python3
"""Lloyd's loop without any library."""
import json, pathlib, struct, sys, time

if sys.argv[1] == "describe":
    print(json.dumps({"name": "kills_external", "family": "kills", "backend": "cpu", "parent": "",
                      "axes": [], "precisions": ["fp64"], "distance": "direct", "study": "",
                      "summary": "for kills.py", "available": True, "reason": ""}))
    sys.exit()
folder = pathlib.Path(sys.argv[2])
for line in sys.stdin:
    request = json.loads(line)
    reply = {"ok": True}
    if request["do"] == "end":
        break
    if request["do"] == "prepare":
        p = request
        points, start = [
            list(struct.iter_unpack(f"<{p['dim']}f", (folder / p[file]).read_bytes()))
            for file in ("points", "centroids")
        ]
        reply |= {"setup_ms": 1.5, "transfer_ms": 0}
    if request["do"] == "run":
        begin = time.perf_counter()
        iterations = request.get("iterations", p["iterations"])
        centroids = [list(c) for c in start]
        for _ in range(iterations):
            labels = [
                min(range(p["k"]), key=lambda j: sum((a - b) ** 2 for a, b in zip(x, centroids[j])))
                for x in points
            ]
            for j in range(p["k"]):
                own = [x for x, label in zip(points, labels) if label == j]
                if own:
                    centroids[j] = [sum(column) / len(own) for column in zip(*own)]
        reply |= {"solve_ms": (time.perf_counter() - begin) * 1e3, "iterations": iterations}
    if request["do"] == "fetch":
        (folder / "labels.i32").write_bytes(struct.pack(f"<{p['n']}i", *labels))
        flat = [x for c in centroids for x in c]
        (folder / "centroids.f64").write_bytes(struct.pack(f"<{len(flat)}d", *flat))
        reply |= {"fetch_ms": 0.5, "transfer_ms": 0}
    print(json.dumps(reply), flush=True)
'''


def descendants(pid):
    """Processes below `pid`, with their command lines."""
    parents = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
            parents[int(process.name)] = int(fields[1]), (process / "cmdline").read_bytes()
        except OSError:
            continue
    below, found = [pid], {}
    for parent in below:
        for process, (its_parent, command) in parents.items():
            if its_parent == parent:
                below.append(process)
                found[process] = command
    return found


def kill(supervisor, whom):
    """Whether somebody was there to be killed."""
    below = descendants(supervisor.pid)
    workers = [pid for pid, command in below.items() if b"--worker" in command]
    externals = [pid for pid, command in below.items() if b"serve" in command]
    victims = {
        "supervisor": [supervisor.pid],
        "worker": workers,
        "external": externals,
        "all": [supervisor.pid, *workers, *externals],
    }[whom]
    if supervisor.poll() is not None or not victims:
        return False
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
    return True


class Campaign:
    def __init__(self, folder, program, seed):
        self.folder, self.program, self.random = folder, program.resolve(), random.Random(seed)
        (folder / "home").mkdir()  # without the project's own external versions
        version = folder / "versions" / "kills_external"
        version.parent.mkdir()
        version.write_text(EXTERNAL)
        version.chmod(0o755)
        self.spec = folder / "kills.yaml"
        self.spec.write_text(SPEC)
        self.killed, self.ends = collections.Counter(), collections.Counter()
        begin = time.monotonic()
        quiet = folder / "quiet"
        with self.start(self.spec, "--out", quiet) as process:
            said = process.communicate()[1]
        if process.returncode != 0:
            sys.exit(f"the run that nothing disturbs ends with {process.returncode}: {said}")
        self.length = time.monotonic() - begin
        self.expected = {name: invariants.names(quiet, name) for name in FILES}

    def start(self, *arguments):
        environment = {
            **os.environ,
            "LLOYDBENCH_HOME": str(self.folder / "home"),
            "LLOYDBENCH_VERSIONS": str(self.folder / "versions"),
        }
        return subprocess.Popen(
            [self.program, *map(str, arguments), "--quiet"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def one_run(self, number, most):
        """A run that is killed up to `most` times and resumed to its end. What is wrong then."""
        out = self.folder / str(number)
        for _ in range(most + 5):
            begun = (out / "plan.json").exists()
            how = ["--resume", out, "--retry-failed"] if begun else [self.spec, "--out", out]
            with self.start(*how) as process:
                if most > 0:
                    time.sleep(self.random.uniform(0, self.length))
                    whom = self.random.choice(["supervisor", "worker", "external", "all"])
                    if kill(process, whom):
                        most -= 1
                        self.killed[whom] += 1
                said = process.communicate()[1]
            self.ends["resumed" if begun else "started"] += 1
            if process.returncode not in (0, 1, -signal.SIGKILL):
                return [f"exit status {process.returncode}: {said.strip()}"]
            if process.returncode == 0:
                faults = invariants.faults(out, self.expected)
                shutil.rmtree(out)
                return faults
        return ["does not end"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=pathlib.Path, default="build/run_experiment")
    options = parser.parse_args()
    faults, runs = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(pathlib.Path(folder), options.program, options.seed)
        while campaign.killed.total() < options.kills:
            left = options.kills - campaign.killed.total()
            found = campaign.one_run(runs, min(left, campaign.random.randint(1, 5)))
            runs += 1
            if found:
                faults += 1
                print(f"run {runs}: {found}", flush=True)
    print(
        f"{campaign.killed.total()} kills ({dict(campaign.killed)}) in {runs} runs: {faults} faults"
    )
    print(f"processes: {dict(campaign.ends)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
