"""Records every spec that data/recorded holds anew on this machine, or those that are named.

    tools/record.py [--minutes 25] [--machine nvidia-h200] [SPEC…]

Specs run in the order of what they took when they were recorded last, the cheapest first. Each run
is whole: it can be interrupted by the limit of --minutes or by Ctrl-C, and the same command goes on
with it later. A finished run is compacted into data/recorded/MACHINE/SPEC and replaces the earlier
one. Runs that are under way, and the program that makes all of them, lie in --work.

A spec of which no point can run on this machine is left out.

Refuses sources of the program that are not committed, and a program that was built from others.
Committed changes of comments alone are allowed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis.model.compact import compact  # noqa: E402
from analysis.model.recorded import rows_of, seconds_of  # noqa: E402
from analysis.model.run import machine_identity  # noqa: E402

INTERRUPTED = 130
GRACE_SECONDS = 20
"""How long the program may take to end after an interrupt."""
PROGRAMS = ("run_experiment", "run_experiment_mpi")
SOURCES = (
    *("CMakeLists.txt", "cmake", "data", "experiments", "kernels", "profiling"),
    *(":!data/recorded", ":!*.md"),
)
"""The sources of the program, and the specs, as pathspecs of git."""
COMPILED = (".h", ".cpp", ".cuh", ".cu", ".inc")


class RefusedError(Exception):
    """Nothing can be recorded; the message says why, and what helps."""


@dataclass(frozen=True)
class Spec:
    """A spec that is to be recorded, with the seconds of its longest recording on any machine, if
    there is one."""

    name: str
    file: Path
    seconds: float | None


def find_specs(names: Iterable[str], sweeps: Path, recorded: Path) -> list[Spec]:
    """The specs, the cheapest first. Without names, all that have a recorded run somewhere."""
    runs: dict[str, list[Path]] = {}
    for plan in sorted(recorded.glob("*/*/plan.json")):
        runs.setdefault(plan.parent.name, []).append(plan.parent)
    specs = []
    for name in dict.fromkeys(names or runs):
        file = sweeps / f"{name}.yaml"
        if file.exists():
            known = [s for s in map(seconds_of, runs.get(name, [])) if s is not None]
            specs.append(Spec(name, file, max(known, default=None)))
        elif names:
            raise RefusedError(f"{file}: there is no such spec")
        else:
            print(f"{name}: left out, {file} is not there")
    return sorted(specs, key=lambda s: (s.seconds is None, s.seconds or 0, s.name))


def machine_name(environment: dict) -> str:
    """As in nvidia-h200, nvidia-h200-x4 (four of them), or amd-epyc-2-cores without a GPU."""
    gpus, cpu = environment.get("gpus") or [], environment.get("cpu") or {}
    said = gpus[0]["name"] if gpus else f"{cpu.get('model')} {cpu.get('cores')} cores"
    if len(gpus) > 1:
        said += f" x{len(gpus)}"
    said = re.sub(r"\((R|TM)\)|@.*", " ", said, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", said.lower()).strip("-")


def check_sources(root: Path, built: dict) -> None:
    """Raises RefusedError unless the program was built from the sources as they are committed."""
    remedy = "commit or stash first"
    if built.get("dirty"):
        raise RefusedError(f"the program was built from sources that were not committed: {remedy}")
    if not (root / ".git").exists():
        return  # a copy without history, such as one beside a bundle
    changed = _git(root, "status", "--porcelain", "--", *SOURCES)
    if changed:
        raise RefusedError(f"these files differ from the commit, {remedy}:\n{changed}")
    commit = built.get("commit")
    try:
        names = _git(root, "diff", "--name-only", f"{commit}..HEAD", "--", *SOURCES).splitlines()
    except subprocess.CalledProcessError as error:
        raise RefusedError(f"not in this repository: {error.stderr.strip()}") from error
    differs = [name for name in names if not _same_program(root, name, commit)]
    if differs:
        files = "\n".join(differs)
        raise RefusedError(f"the program was built before these files changed, run make:\n{files}")


def _same_program(root: Path, name: str, commit: str) -> bool:
    """Whether a source or a spec differs from that of `commit` in comments only. Line numbers in
    messages may differ then."""
    if name.endswith(COMPILED):
        read = without_comments
    elif name.endswith(".yaml"):
        read = yaml.safe_load
    else:
        return False
    try:
        then, now = (_git(root, "show", f"{of}:{name}") for of in (commit, "HEAD"))
        return read(then) == read(now)
    except subprocess.CalledProcessError:  # one of the two has no such file
        return False


def without_comments(source: str) -> list[str]:
    """The lines of a C++ or CUDA source as GCC reads them, without comments and empty lines."""
    command = ["g++", "-fpreprocessed", "-dD", "-E", "-P", "-x", "c++", "-"]
    result = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    return [line.rstrip() for line in result.stdout.splitlines() if line.strip()]


def portable(text: str) -> str:
    """The text with this machine's paths relative to the project or to the user's folder."""
    return text.replace(f"{ROOT}/", "").replace(f"{Path.home()}/", "~/")


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip()


class Recorder:
    def __init__(self, args: argparse.Namespace) -> None:
        self.work: Path = args.work
        self.recorded: Path = args.recorded
        end = time.monotonic() + 60 * args.minutes
        self.deadline: float | None = None
        self.work.mkdir(parents=True, exist_ok=True)
        self.program = self._find_program(args.program)
        self.environment = self._environment()
        if not args.allow_changes:
            check_sources(ROOT, self.environment["build"])
        self._keep_program()
        self.machine = args.machine or machine_name(self.environment)
        self._keep_machine()
        self.deadline = end

    def _find_program(self, program: Path) -> Path:
        """The copy of the program that began these runs; without one, `program` itself."""
        kept = self.work / "program" / program.name
        if not kept.exists():
            if not program.exists():
                raise RefusedError(f"{program} is not there: run make")
            return program
        if program.exists() and _digest(_binary(kept)) != _digest(_binary(program)):
            print(f"{program} is not the program that began these runs; going on with {kept}")
        return kept

    def _keep_program(self) -> None:
        """One program makes all runs, so it is copied, and later calls use the copy. The program of
        a bundle needs the rest of the bundle."""
        kept = self.work / "program" / self.program.name
        if self.program == kept:
            return
        if _binary(self.program) != self.program:
            shutil.copytree(self.program.parent, kept.parent, symlinks=True)
        else:
            kept.parent.mkdir(exist_ok=True)
            for name in dict.fromkeys([*PROGRAMS, self.program.name]):
                if (self.program.parent / name).exists():
                    shutil.copy2(self.program.parent / name, kept.parent / name)
        self.program = kept

    def _keep_machine(self) -> None:
        """One kind of machine makes all runs. Raises RefusedError on another one."""
        kept = self.work / "machine"
        if not kept.exists():
            kept.write_text(f"{self.machine}\n")
        begun = kept.read_text().strip()
        if begun != self.machine:
            raise RefusedError(
                f"{self.work} has runs of {begun}, and this is {self.machine}: "
                "name another folder by --work"
            )

    def _environment(self) -> dict:
        """What the program says of the machine and of its build."""
        probe = self.work / "probe"
        shutil.rmtree(probe, ignore_errors=True)
        spec = self.work / "probe.yaml"
        spec.write_text(
            "name: probe\nversions: cpu_sequential\naxes: {n: 10, k: 2, dim: 2}\n"
            "solve: {iterations: 1}\nmeasure: {repetitions: 1, max_seconds: 0.01}\n"
        )
        log = self.work / "probe.log"
        status = self._call(spec, "--out", probe, "--no-progress", log=log)
        file = probe / "environment.json"
        if status != 0 or not file.exists():
            said = log.read_text(errors="replace").strip()
            raise RefusedError(f"{self.program} ended with {status} in a first trial: {said}")
        environment = json.loads(file.read_text())
        shutil.rmtree(probe)
        log.unlink()
        return environment

    def _call(self, *arguments: object, log: Path | None = None) -> int:
        """Runs the program until it ends or the deadline has come; returns its exit status. With
        `log`, what it prints goes there."""
        environment = {"LLOYDBENCH_HOME": str(ROOT), **os.environ}
        command = [str(self.program), *map(str, arguments)]
        with log.open("wb") if log else contextlib.nullcontext() as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        try:
            process.wait(None if self.deadline is None else self.deadline - time.monotonic())
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.send_signal(signal.SIGINT)
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return INTERRUPTED
        return process.returncode

    def record_all(self, specs: list[Spec]) -> list[Spec]:
        """Records the specs that are left until the deadline. Returns those that the program
        refuses, and says why."""
        refused = []
        for spec in specs:
            if self.is_done(spec):
                continue
            print(f"== {spec.name}", flush=True)
            try:
                if not self.record(spec):
                    break
            except RefusedError as error:
                print(f"record: {error}", file=sys.stderr)
                refused.append(spec)
        return refused

    def record(self, spec: Spec) -> bool:
        """Runs a spec or goes on with it. True if it is whole now. Raises RefusedError if the
        program refuses the spec, as it does where a file of points is missing, or if no point can
        run on this machine."""
        if time.monotonic() > self.deadline:
            return False
        run = self.work / spec.name
        begun = (run / "plan.json").exists()
        if begun and self._began_elsewhere(run):
            print(f"{spec.name} was begun on another machine of this kind; it begins again")
            shutil.rmtree(run)
            begun = False
        where = ["--resume", run] if begun else [spec.file, "--out", run]
        status = self._call(*where, "--no-progress")
        if status == INTERRUPTED:
            return False
        if status not in (0, 1):
            raise RefusedError(f"{spec.name} is left out: run_experiment ended with {status}")
        rows = rows_of(run / "measurements.jsonl")
        if all(row["status"] == "unsupported" for row in rows):
            raise RefusedError(f"{spec.name} is left out: this machine supports none of its points")
        self._place(run, self.recorded / self.machine / spec.name)
        return True

    def _began_elsewhere(self, run: Path) -> bool:
        """Whether the run has rows of another machine. One that was interrupted before it said
        where it is has none."""
        file = run / "environment.json"
        if not file.exists():
            return False
        return machine_identity(json.loads(file.read_text())) != machine_identity(self.environment)

    def measure_ceilings(self) -> bool:
        """Measures the machine's ceilings once, for all runs. True if they are there, False if the
        deadline came first. Raises RefusedError if the program fails."""
        kept, placed = self.work / "ceilings.json", self.recorded / self.machine / "ceilings.json"
        status = 0 if kept.exists() else self._call("ceilings", "--out", kept)
        if status != 0:
            kept.unlink(missing_ok=True)
            if status == INTERRUPTED:
                return False
            raise RefusedError(f"the ceilings are not measured: {self.program} ended with {status}")
        placed.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept, placed)
        return True

    def _place(self, run: Path, recorded: Path) -> None:
        """Compacts a copy of the run and puts it where recordings lie."""
        fresh = recorded.with_name(f".{recorded.name}")
        shutil.rmtree(fresh, ignore_errors=True)
        recorded.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(run, fresh, ignore=shutil.ignore_patterns(".lock", "answers"))
        compact(fresh)
        for name in ("environment.json", "plan.json", "log.txt"):
            if (file := fresh / name).exists():
                text = file.read_text(encoding="utf-8").replace(f"{self.program.parent}/", "")
                file.write_text(portable(text), encoding="utf-8")
        shutil.rmtree(recorded, ignore_errors=True)
        fresh.rename(recorded)
        (run / ".recorded").touch()

    def is_done(self, spec: Spec) -> bool:
        return (self.work / spec.name / ".recorded").exists()

    def left(self, spec: Spec) -> str:
        """How much of a spec is left, as far as that is known."""
        planned = self.work / spec.name / "plan.json"
        share, said = 1.0, "not begun"
        if planned.exists():
            points = {p["point"] for p in json.loads(planned.read_text())["points"]}
            rows = rows_of(planned.with_name("measurements.jsonl"))
            done = points & {row["point"] for row in rows}
            share = 1 - len(done) / max(len(points), 1)
            said = f"{len(done)} of {len(points)} points"
        if spec.seconds is None:
            return f"{spec.name}: {said}; never recorded before"
        return f"{spec.name}: {said}; about {share * spec.seconds / 60:.1f} min left"


def _binary(program: Path) -> Path:
    """What a bundle's program starts; any other program is its own."""
    started = program.parent / "libexec" / program.name
    return started if started.exists() else program


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main(arguments: list[str] | None = None) -> int:
    build = Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("specs", nargs="*", metavar="SPEC", help="names, as in k1000 (default: all recorded ones)")
    add("--minutes", type=float, default=25, help="stop after so many minutes (default: 25)")
    add("--machine", help="the folder in data/recorded (default: from the GPU's or CPU's name)")
    add("--work", type=Path, default=ROOT / "results" / "record", help="runs that are under way")
    add("--recorded", type=Path, default=ROOT / "data" / "recorded", help="where recordings lie")
    add("--sweeps", type=Path, default=ROOT / "experiments" / "sweeps", help="where specs lie")
    add("--program", type=Path, default=build / "run_experiment")
    add("--allow-changes", action="store_true", help="do not look at the sources, for a trial")
    args = parser.parse_args(arguments)
    refused: list[Spec] = []
    try:
        specs = find_specs(args.specs, args.sweeps, args.recorded)
        recorder = Recorder(args)
        if any(not recorder.is_done(s) for s in specs) and recorder.measure_ceilings():
            refused = recorder.record_all(specs)
    except RefusedError as error:
        print(f"record: {error}", file=sys.stderr)
        return 2
    done = sum(map(recorder.is_done, specs))
    print(f"{done} of {len(specs)} specs are recorded for {recorder.machine}")
    left = [spec for spec in specs if not recorder.is_done(spec) and spec not in refused]
    for spec in left:
        print(f"  {recorder.left(spec)}")
    if left:
        print("the same command goes on")
        return INTERRUPTED
    return 2 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
