"""tools/record.py: in which order specs are recorded, what interrupts it, and what it refuses."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "record.py"
SPEC = importlib.util.spec_from_file_location("record", TOOL)
record = importlib.util.module_from_spec(SPEC)
sys.modules["record"] = record
SPEC.loader.exec_module(record)

POINTS = """\
name: {name}
versions: cpu_sequential
axes: {{n: [{n}], k: 2, dim: 2}}
solve: {{iterations: 20}}
measure: {{repetitions: 3, max_seconds: {seconds}, max_noise: 1e-9}}
"""


class Place:
    """Folders for specs, recordings and runs that are under way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("sweeps", "recorded", "work"):
            (folder / name).mkdir()
        # measuring them takes too long for a test
        (folder / "work" / "ceilings.json").write_text("{}")

    def spec(self, name: str, n: str = "1000", seconds: float = 0.01) -> None:
        text = POINTS.format(name=name, n=n, seconds=seconds)
        (self.folder / "sweeps" / f"{name}.yaml").write_text(text)

    def recorded_once(self, name: str, last: str) -> Path:
        run = self.folder / "recorded" / "elsewhere" / name
        run.mkdir(parents=True)
        (run / "plan.json").write_text("{}")
        rows = [{"t_utc": "2026-01-01T00:00:00.000Z"}, {"t_utc": f"2026-01-01T{last}.000Z"}]
        (run / "measurements.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        return run

    def record(self, *arguments: str, minutes: float = 5) -> subprocess.CompletedProcess[str]:
        folders = [f"--{n}={self.folder / n}" for n in ("sweeps", "recorded", "work")]
        own = [*folders, "--machine=here", "--allow-changes", f"--minutes={minutes}"]
        command = [sys.executable, str(TOOL), *own, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def rows(self, name: str) -> list[dict]:
        file = self.folder / "recorded" / "here" / name / "measurements.jsonl"
        return list(record.rows_of(file))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_every_recorded_spec_is_recorded_anew_the_cheapest_first(place):
    place.recorded_once("slow", "01:00:00")
    place.recorded_once("quick", "00:00:05")
    place.recorded_once("gone", "00:00:01")
    place.spec("slow")
    place.spec("quick")
    place.spec("not_recorded")
    result = place.record()
    assert result.returncode == 0, result.stderr
    began = [line for line in result.stdout.splitlines() if line.startswith("== ")]
    assert began == ["== quick", "== slow"]
    assert "gone: left out" in result.stdout
    assert "2 of 2 specs are recorded for here" in result.stdout
    for name in ("quick", "slow"):
        taken = [row["repetition"] for row in place.rows(name)]
        assert len(taken) >= 3
        assert taken == [*range(len(taken))]
        files = {file.name for file in (place.folder / "recorded" / "here" / name).iterdir()}
        assert {"plan.json", "environment.json", "spec.yaml"} <= files
        assert not files & {"benchmark.json", "summary.md", ".lock"}
    again = place.record()
    assert again.returncode == 0
    assert "==" not in again.stdout


def test_the_limit_interrupts_and_the_same_command_goes_on(place):
    # a point takes a second
    place.spec("long", n=", ".join(str(1_000_000 + i) for i in range(8)), seconds=1)
    for minutes in (0.06, 0.1, 0.2, 0.4):  # a slow machine may not reach the first point in 3.6 s
        first = place.record("long", minutes=minutes)
        assert first.returncode == record.INTERRUPTED, first.stdout + first.stderr
        assert "0 of 1 specs are recorded" in first.stdout
        if "of 8 points; never recorded before" in first.stdout:
            break
    else:
        pytest.fail(f"no point was reached: {first.stdout}")
    assert not place.rows("long")
    second = place.record("long")
    assert second.returncode == 0, second.stdout + second.stderr
    taken = [(row["point"], row["repetition"]) for row in place.rows("long")]
    assert len({point for point, _ in taken}) == 8
    assert len(taken) == len(set(taken))


def test_another_kind_of_machine_is_refused(place):
    place.spec("some")
    assert place.record("some").returncode == 0
    (place.folder / "work" / "machine").write_text("nvidia-h100\n")
    result = place.record("some")
    assert result.returncode == 2
    assert "has runs of nvidia-h100, and this is here: name another folder by --work" in (
        result.stderr
    )


def test_a_spec_that_another_machine_began_begins_again(place):
    place.spec("some")
    assert place.record("some").returncode == 0
    run = place.folder / "work" / "some"
    environment = json.loads((run / "environment.json").read_text())
    environment["gpus"] = [{"uuid": "GPU-elsewhere"}]
    (run / "environment.json").write_text(json.dumps(environment))
    assert "begins again" not in place.record("some").stdout  # it is whole
    (run / ".recorded").unlink()
    result = place.record("some")
    assert "some was begun on another machine of this kind; it begins again" in result.stdout
    assert json.loads((run / "environment.json").read_text())["gpus"] != environment["gpus"]
    assert place.rows("some")
    # interrupted before it said where it was
    (run / ".recorded").unlink()
    (run / "environment.json").unlink()
    result = place.record("some")
    assert result.returncode == 0, result.stderr
    assert "begins again" not in result.stdout


def test_a_spec_that_is_not_there_is_refused(place):
    result = place.record("nowhere")
    assert result.returncode == 2
    assert "nowhere.yaml: there is no such spec" in result.stderr


def test_what_is_left_is_told_from_the_last_recording(place):
    place.recorded_once("slow", "01:00:00")
    place.spec("slow")
    result = place.record(minutes=0)
    assert result.returncode == record.INTERRUPTED, result.stderr
    assert "about 60.0 min left" in result.stdout


def test_a_machine_is_named_by_its_gpu_or_its_cpu():
    cpu = {"model": "Intel(R) Xeon(R) Processor", "cores": 16}
    assert record.machine_name({"gpus": [{"name": "NVIDIA H200"}], "cpu": cpu}) == "nvidia-h200"
    four = [{"name": "NVIDIA H200"}] * 4
    assert record.machine_name({"gpus": four, "cpu": cpu}) == "nvidia-h200-x4"
    assert record.machine_name({"gpus": [], "cpu": cpu}) == "intel-xeon-processor-16-cores"


def test_paths_of_the_machine_are_not_recorded():
    text = f"{record.ROOT}/kernels/python/a.py, {Path.home()}/.cache/b.json"
    assert record.portable(text) == "kernels/python/a.py, ~/.cache/b.json"


def test_a_spec_whose_points_are_missing_is_left_out(place):
    place.recorded_once("quick", "00:00:05")
    place.recorded_once("slow", "01:00:00")
    place.spec("slow")
    place.spec("quick")
    with (place.folder / "sweeps" / "quick.yaml").open("a") as file:
        file.write("data: {file: not_shipped.npy}\n")
    result = place.record()
    assert result.returncode == 2
    assert "not_shipped.npy" in result.stderr
    assert "record: quick is left out: run_experiment ended with 2" in result.stderr
    assert "1 of 2 specs are recorded for here" in result.stdout
    assert "goes on" not in result.stdout
    assert place.rows("slow")


def test_a_spec_without_a_point_that_can_run_is_left_out(place):
    earlier = place.recorded_once("quick", "00:00:05")
    place.recorded_once("slow", "01:00:00")
    place.spec("slow")
    place.spec("quick")
    spec = place.folder / "sweeps" / "quick.yaml"
    text = spec.read_text().replace("cpu_sequential", "fast_cpu_simd")
    spec.write_text(text.replace("dim: 2", "dim: 2, precision: fp64"))
    for _ in range(2):
        result = place.record()
        assert result.returncode == 2
        assert "quick is left out: this machine supports none of its points" in result.stderr
        assert "1 of 2 specs are recorded for here" in result.stdout
        assert not place.rows("quick")
    assert earlier.exists()
    assert place.rows("slow")


def test_a_program_that_does_not_run_is_not_kept(place, tmp_path):
    place.recorded_once("quick", "00:00:05")
    place.spec("quick")
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho no such library >&2\nexit 127\n")
    program.chmod(0o755)
    result = place.record(f"--program={program}")
    assert result.returncode == 2
    assert f"{program} ended with 127 in a first trial: no such library" in result.stderr
    assert not (place.folder / "work" / "program").exists()


@pytest.fixture
def bundle(tmp_path):
    """A folder as a bundle has it: a launcher beside the program that it starts."""
    folder = tmp_path / "bundle"
    (folder / "libexec").mkdir(parents=True)
    built = Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")) / "run_experiment"
    shutil.copy2(built, folder / "libexec" / "run_experiment")
    launcher = folder / "run_experiment"
    launcher.write_text('#!/bin/sh\nexec "$(dirname "$0")/libexec/run_experiment" "$@"\n')
    launcher.chmod(0o755)
    return launcher


def test_a_bundle_is_kept_whole(place, bundle):
    place.recorded_once("quick", "00:00:05")
    place.spec("quick")
    result = place.record(f"--program={bundle}")
    assert result.returncode == 0, result.stderr
    assert place.rows("quick")
    kept = place.folder / "work" / "program"
    assert (kept / "libexec" / "run_experiment").exists()
    for file in (place.folder / "recorded" / "here" / "quick").iterdir():
        assert f"{kept}/" not in file.read_text(errors="replace")
    # another bundle has the same launcher
    (bundle.parent / "libexec" / "run_experiment").write_text("#!/bin/sh\nexit 127\n")
    again = place.record(f"--program={bundle}")
    assert "is not the program that began these runs; going on with" in again.stdout


def test_ceilings_that_cannot_be_measured_are_refused(place, tmp_path):
    place.recorded_once("quick", "00:00:05")
    place.spec("quick")
    (place.folder / "work" / "ceilings.json").unlink()
    built = Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")) / "run_experiment"
    program = tmp_path / "mine"
    program.write_text(f'#!/bin/sh\n[ "$1" = ceilings ] && exit 3\nexec {built} "$@"\n')
    program.chmod(0o755)
    result = place.record(f"--program={program}")
    assert result.returncode == 2
    assert "the ceilings are not measured:" in result.stderr
    assert "ended with 3" in result.stderr


def test_only_committed_sources_are_recorded(tmp_path):
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *who, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    source, page = tmp_path / "kernels" / "kernel.cu", tmp_path / "kernels" / "NOTES.md"
    test = tmp_path / "tests" / "test_kernel.py"
    for file in (source, page, test):
        file.parent.mkdir(exist_ok=True)
        file.write_text("one\n")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    built = {"commit": git("rev-parse", "HEAD"), "dirty": False}
    record.check_sources(tmp_path, built)
    with pytest.raises(record.RefusedError, match="were not committed"):
        record.check_sources(tmp_path, {**built, "dirty": True})
    source.write_text("two\n")
    with pytest.raises(record.RefusedError, match=r"differ from the commit.*\n.*kernel\.cu"):
        record.check_sources(tmp_path, built)
    git("commit", "--quiet", "-am", "second")
    with pytest.raises(record.RefusedError, match=r"run make:\nkernels/kernel\.cu"):
        record.check_sources(tmp_path, built)
    # not from comments
    built["commit"] = git("rev-parse", "HEAD")
    source.write_text("two  // more\n")
    git("commit", "--quiet", "-am", "comment")
    record.check_sources(tmp_path, built)
    source.unlink()
    git("commit", "--quiet", "-am", "removed")
    with pytest.raises(record.RefusedError, match=r"run make:\nkernels/kernel\.cu"):
        record.check_sources(tmp_path, built)
    # the program is not built from a page, a test or a recording
    built["commit"] = git("rev-parse", "HEAD")
    page.write_text("two\n")
    test.write_text("two\n")
    git("commit", "--quiet", "-am", "third")
    (tmp_path / "data" / "recorded").mkdir(parents=True)
    (tmp_path / "data" / "recorded" / "rows").write_text("")
    record.check_sources(tmp_path, built)
    with pytest.raises(record.RefusedError, match="not in this repository"):
        record.check_sources(tmp_path, {**built, "commit": "0" * 40})


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ("a; // one", "a;  /* two\n lines */", True),
        ('say("// one");', 'say("// two");', False),
        ('say("\\"// one");', 'say("\\"// two");', False),
        ('say(R"x(" // one)x");', 'say(R"x(" // two)x");', False),
        ("a / b // c", "a / b", True),
        ("int a;", "inta;", False),
        ('say("a  b");', 'say("a b");', False),
        ("a();\nb();  // one\n\n// two\n", "a();\n// three\nb();\n", True),
        ("#include <a.h>  // one", "#include <b.h>  // one", False),
        ("""if (c == '"') go(); // "one\nx""", """if (c == '"') go(); // "two\nx""", True),
        ("n = 1'000'000;  // one", "n = 1'000'000;  // two", True),
        ("n = 1'000;", "n = 1'001;", False),
    ],
)
def test_comments_are_not_sources_and_strings_are(then, now, same):
    assert (record.without_comments(then) == record.without_comments(now)) == same
