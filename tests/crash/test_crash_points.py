"""Every change that a run makes to its directory is a place to die: before it, in the middle of it,
or because the disk is full. Afterwards the run resumes, or starts again, and ends with the rows of
one that nothing disturbed.

By itself this takes every seventh place of each kind. CRASH_POINTS=1/1 takes all of them, which is
some 1,500 runs of the program. CRASH_POINTS=2/8 takes the places 2, 10, 18, …, so that eight
processes share the work.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import invariants
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
LIBRARY = BUILD / "tests" / "libcrash_points.so"

SPEC = """
name: crash
versions: [cpu_sequential, cpu_pthreads]
axes: {n: [100], k: [3], dim: [2], threads: [1]}
data: {generator: uniform, seed: 42}
solve: {iterations: 3}
measure: {repetitions: 2, max_seconds: 1e-6, launches: 2, timeout: 60}
profile: {timeline: true}
"""
NAMES = [".lock", "plan.json", "spec.yaml", "spec.resolved.json", "environment.json", "log.txt"]
NAMES += ["summary.md", "benchmark.json", "measurements.jsonl", "passes.jsonl", "report.ncu-rep"]
FILES = ("measurements.jsonl", "phases.jsonl", "passes.jsonl")
KINDS = ["kill", "torn", "fail", "full"]


def first_and_step(how):
    """The first place that is taken, counted from 1, and the distance to the next."""
    part = os.environ.get("CRASH_POINTS", f"{1 + KINDS.index(how)}/7")
    first, step = part.split("/")
    return int(first), int(step)


class Runs:
    """A spec, and what a run of it leaves that nothing disturbs."""

    def __init__(self, folder):
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir()  # without external versions, which take a second to ask
        self.spec = folder / "crash.yaml"
        self.spec.write_text(SPEC)
        quiet = folder / "quiet"
        result, self.changes = self.watched(quiet)
        assert result.returncode == 0, result.stderr
        self.expected = {name: invariants.names(quiet, name) for name in FILES}
        assert invariants.faults(quiet, self.expected) == []

    def run(self, *arguments, **environment):
        return subprocess.run(
            [BUILD / "run_experiment", *map(str, arguments), "--quiet"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "LLOYDBENCH_HOME": str(self.home), **environment},
        )

    def watched(self, out, how="kill", at=0, resume=False):
        """A run that meets its fate at change number `at`, and the changes that it came to."""
        log = self.folder / f"{out.name}.changes"
        log.unlink(missing_ok=True)
        result = self.run(
            *(["--resume", out] if resume else [self.spec, "--out", out]),
            LD_PRELOAD=str(LIBRARY),
            CRASH_FOLDER=str(out),
            CRASH_LOG=str(log),
            CRASH_HOW=how,
            CRASH_AT=str(at),
        )
        lines = log.read_text().splitlines() if log.exists() else []
        return result, [line.split(" ", 2)[1:] for line in lines]

    def recover(self, out):
        """Resumes the run, or starts it again where nothing was started, and says which."""
        if not (out / "plan.json").exists():
            refused = self.run("--resume", out)
            assert refused.returncode == 2
            assert re.search("nothing was started there.*--out|is not a run dir", refused.stderr)
            result, how = self.run(self.spec, "--out", out), "started again"
        else:
            result, how = self.run("--resume", out), "resumed"
        assert result.returncode == 0, result.stderr
        return how


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not built; run `make`")
    return Runs(tmp_path_factory.mktemp("crash"))


def survives(runs, out, how, at, resume=False):
    """Runs into change `at` and recovers; false when there is no change of that number any more."""
    result, changes = runs.watched(out, how, at, resume)
    if len(changes) < at:
        assert result.returncode == 0, result.stderr
        return False
    where = f"{how} at {at}, {' '.join(changes[at - 1])}"
    if how in ("kill", "torn"):
        assert result.returncode == -signal.SIGKILL, where
    elif result.returncode != 0:
        assert result.returncode in (1, 2), where
        assert "run_experiment: " in result.stderr, where
        assert str(out) in result.stderr, where
    before = invariants.kept(out) if out.exists() else {}
    runs.recover(out)
    assert invariants.faults(out, runs.expected, before) == [], where
    return True


@pytest.mark.parametrize("how", KINDS)
def test_a_run_survives_its_end_at_any_change(runs, how):
    first, step = first_and_step(how)
    tested = 0
    for at in range(first, len(runs.changes) + 1, step):
        tested += survives(runs, runs.folder / f"{how}-{at}", how, at)
    print(f"{tested} places tested")
    assert tested >= len(runs.changes) // step - 1


@pytest.mark.parametrize("how", KINDS)
def test_a_resumed_run_survives_its_end_at_any_change(runs, how):
    place = next(i for i, (_, file) in enumerate(runs.changes) if "phases" in file) + 7
    (at, step), tested = first_and_step(how), 0
    while True:
        out = runs.folder / f"again-{how}-{at}"
        assert runs.watched(out, "torn", place)[0].returncode == -signal.SIGKILL
        if not survives(runs, out, how, at, resume=True):
            break
        at, tested = at + step, tested + 1
    print(f"{tested} places tested")
    assert tested >= max(1, 35 // step)


def test_what_is_written_lasts_before_anything_builds_on_it(runs):
    # A crash of the machine is not to be had in a test; the order of the calls protects from it.
    open_files, new_names = set(), set()
    for call, path in runs.changes:
        file = pathlib.Path(path)
        if file.name in (".lock", "log.txt"):
            continue
        if call == "write":
            assert open_files <= {path}, f"{open_files} are not on disk when {path} is written"
            open_files.add(path)
        if call == "fsync":
            open_files.discard(path)
            if file == runs.folder / "quiet":
                new_names.clear()
        if call == "rename":
            assert not open_files, f"{open_files} are not on disk when {path} gets its name"
            new_names.add(path)
        if call == "open" and new_names and not path.endswith(".new"):
            assert new_names == {path}, f"the names {new_names} are not on disk"
    assert not open_files
    assert not new_names


def test_a_damaged_tail_is_dropped_and_a_damaged_line_is_named(runs):
    out = runs.folder / "damaged"
    assert runs.run(runs.spec, "--out", out).returncode == 0
    for name in FILES:
        for tail in (b'{"point": "cpu', b"\0" * 100, b"\0\0\0\n", b'{"point":\n'):
            with (out / name).open("ab") as file:
                file.write(tail)
            before = invariants.kept(out) if b"\n" not in tail else {}
            assert runs.recover(out) == "resumed"
            assert invariants.faults(out, runs.expected, before) == []
        whole = (out / name).read_bytes()
        lines = whole.splitlines(keepends=True)
        for damage, complaint in ((b"\0\0\n", "is not JSON"), (b"{}\n", "is not a row")):
            (out / name).write_bytes(b"".join([lines[0], damage, *lines[2:]]))
            result = runs.run("--resume", out)
            if name == "phases.jsonl" and damage == b"{}\n":  # read only to take rows out
                continue
            assert result.returncode == 2
            assert f"{out / name}:2: {complaint}" in result.stderr
        (out / name).write_bytes(whole)


def test_a_folder_with_anything_else_is_left_as_it_is(runs):
    out = runs.folder / "foreign"
    out.mkdir()
    (out / "spec.yaml").write_text("mine")
    for _ in range(2):
        result = runs.run(runs.spec, "--out", out)
        assert result.returncode == 2
        assert "holds spec.yaml already" in result.stderr
        assert {file.name: file.read_text() for file in out.iterdir()} == {"spec.yaml": "mine"}


@pytest.mark.parametrize(
    "name",
    NAMES,
)
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_files_that_are_no_files_are_refused(runs, tmp_path, name, kind):
    out, victim = tmp_path / "out", tmp_path / "victim"
    shutil.copytree(runs.folder / "quiet", out)
    content = (out / name).read_text() if (out / name).exists() else ""
    (out / name).unlink(missing_ok=True)
    if kind == "link":
        victim.write_text(content)
        (out / name).symlink_to(victim)
    elif kind == "dangling":
        (out / name).symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(out / name)
    else:
        (out / name).mkdir()
    result = runs.run("--resume", out)
    assert result.returncode == 2
    assert f"{out / name}: is" in result.stderr
    if kind == "link":
        assert victim.read_text() == content
    else:
        assert not victim.exists()


def test_a_plan_lists_every_point(runs):
    plan = json.loads((runs.folder / "quiet" / "plan.json").read_text())
    assert len(plan["points"]) == 2
    assert set(plan) == {"points", "parents", "fingerprints", "spec", "files", "overrides", "save"}
