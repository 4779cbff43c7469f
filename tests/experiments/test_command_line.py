"""Options of run_experiment that are wrong, contradict each other or meet a hostile spec."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from analysis.model.words import AXES, GPU_AXES, INPUT_AXES, PROBLEM_AXES

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()

SPEC = """
name: small
versions: [cpu_sequential]
axes: {k: [3]}
data: {file: points.csv}
measure: {repetitions: 6, max_seconds: 0.1}
"""


def run(*arguments, **options):
    return subprocess.run(
        [BUILD / "run_experiment", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ceilings", "--dry-run"], "--dry-run and --ceilings are two things to do"),
        (["--doctor", "--list-versions"], "--list-versions and --doctor are two things to do"),
        (["--list-metrics", "--doctor"], "--doctor and --list-metrics are two things to do"),
        (["--doctor", "x.yaml"], "--doctor takes no spec, but 'x.yaml' is given"),
        (["--ceilings", "x.yaml"], "--ceilings takes no spec, but 'x.yaml' is given"),
        (["--list-versions", "--set", "n=1"], "--list-versions does not use --set"),
        (["--list-axes", "--device", "0"], "--list-axes does not use --device"),
        (["--ceilings", "--resume", "x"], "--ceilings does not use --resume"),
        (["--reptitions", "5", "x.yaml"], "'--reptitions'; did you mean '--repetitions'?"),
        (["x.yaml", "--resme=a"], "unknown option '--resme'; did you mean '--resume'?"),
        (["x.yaml", "--dryrun"], "unknown option '--dryrun'; did you mean '--dry-run'?"),
        (["x.yaml", "--qwertyuiop"], "unknown option '--qwertyuiop'; see run_experiment --help"),
        (["x.yaml", "y.yaml"], "one spec at a time: what is 'y.yaml'?"),
        (["x.yaml", "plan"], "the command comes first: run_experiment plan x.yaml"),
        (["list", "axis"], "unknown list 'axis'; did you mean 'axes'?"),
        (["doctor", "--ceilings"], "doctor and --ceilings are two things to do"),
        (["metrics", "--match", "a**"], "bad repetition operator, '**' at character 2"),
        (["--list-metrics", "--match", "a**"], "bad repetition operator, '**' at character 2"),
    ],
)
def test_usage_errors_name_what_is_wrong(arguments, message):
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (["list"], "--list-versions"),
        (["list", "versions"], "--list-versions"),
        (["list", "axes"], "--list-axes"),
        (["plan", "sweeps/quickstart.yaml"], "--dry-run"),
    ],
)
def test_a_subcommand_prints_what_its_flag_prints(command, flag):
    spec = [word for word in command if word.endswith(".yaml")]
    by_command, by_flag = run(*command, "--json"), run(flag, *spec, "--json")
    assert by_command.returncode == 0
    assert by_command.stdout == by_flag.stdout
    assert json.loads(by_command.stdout)


def test_help_has_all_and_that_of_a_command_has_its_own():
    everything, of_plan = run("--help"), run("plan", "-h")
    assert everything.returncode == of_plan.returncode == 0
    for text in ("Examples", "Exit status", "130", "LLOYDBENCH_VERSIONS", "NO_COLOR", "--match"):
        assert text in everything.stdout
    assert "run_experiment plan SPEC [OPTIONS]" in of_plan.stdout
    assert "--filter" in of_plan.stdout
    assert "--nsys" not in of_plan.stdout
    assert "\033" not in everything.stdout


def test_a_mistyped_command_is_told_with_what_was_meant(tmp_path):
    result = run("docter", cwd=tmp_path)
    assert result.returncode == 2
    first, looked = result.stderr.splitlines()
    assert first == "docter: no such spec; did you mean 'doctor'?"
    assert looked.startswith("  looked for ")


def test_a_spec_may_have_the_name_of_a_command(tmp_path):
    (tmp_path / "plan").write_text(
        "name: s\nversions: [cpu_sequential]\naxes: {n: [50], k: [3], dim: [2]}\n"
        "data: {generator: uniform}\n"
    )
    (point,) = json.loads(run("plan", "./plan", "--json", cwd=tmp_path).stdout)
    assert point["n"] == 50


def test_every_axis_is_listed_with_its_default_range_and_meaning():
    listed = json.loads(run("--list-axes", "--json").stdout)
    axes = {axis["axis"]: axis for axis in listed}
    assert all(axis["text"] for axis in listed)
    by_readers = {}
    for name, axis in axes.items():
        by_readers.setdefault(axis["read_by"], []).append(name)
    assert by_readers == {
        "every version": [*PROBLEM_AXES, "data", *INPUT_AXES],
        "versions that list it": AXES,
        "versions on a GPU in this process": GPU_AXES,
    }
    assert axes["host_memory"]["default"] == "pageable"
    assert axes["host_memory"]["values"] == ["pageable", "pinned"]
    blocks = axes["threads_per_block"]
    assert (blocks["default"], blocks["lowest"], blocks["highest"]) == (256, 1, 1024)
    assert axes["threads"]["default"] == "cores"
    assert (axes["n"]["default"], axes["n"]["highest"]) == (None, 2**63 - 1)
    precision = axes["precision"]
    assert (precision["default"], precision["highest"]) == ("fp32", None)
    assert precision["values"] == ["fp64", "fp32", "tf32", "fp16", "bf16"]

    lines = run("--list-axes").stdout.splitlines()
    assert lines[0].split() == ["axis", "default", "values", "meaning"]
    assert [line.split()[0] for line in lines[1:]] == list(axes)
    assert re.match(r"threads_per_block   256 +1 to 1024 ", lines[5])


@pytest.fixture
def folder(tmp_path):
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "points.csv").write_text("".join(f"{i},{i * i % 7}\n" for i in range(50)))
    (specs / "small.yaml").write_text(SPEC)
    return tmp_path


def test_resume_finds_the_data_when_the_spec_has_moved(folder):
    out, specs = folder / "out", folder / "specs"
    # Found beside the spec, and from the folder that the program is started in.
    for name, place in (("out", specs / "small.yaml"), ("cwd", folder / "moved.yaml")):
        if not place.exists():
            shutil.copy(specs / "small.yaml", place)
        assert run(place, "--out", folder / name, cwd=specs).returncode == 0
    (folder / "copy").mkdir()
    shutil.move(specs / "small.yaml", folder / "copy" / "small.yaml")
    for arguments in (
        ["--resume", out],
        ["--resume", out, folder / "copy" / "small.yaml"],
        ["--resume", folder / "cwd"],
    ):
        result = run(*arguments, "--quiet", cwd=folder / "copy")
        assert result.returncode == 0, result.stderr


def test_resume_keeps_the_options_that_the_run_was_started_with(folder):
    out, spec = folder / "out", folder / "specs" / "small.yaml"
    assert run(spec, "--out", out, "--repetitions", 7).returncode == 0
    assert run("--resume", out, "--quiet").returncode == 0
    assert run("--resume", out, spec, "--quiet").returncode == 0
    assert run("--resume", out, spec, "--quiet", "--repetitions", 7).returncode == 0
    for arguments in (["--repetitions", 8], [spec, "--repetitions", 8]):
        result = run("--resume", out, *arguments)
        assert result.returncode == 2
        assert "the spec differs (measure/repetitions: was 7, is 8)" in result.stderr


def test_resume_says_which_points_another_spec_has(folder):
    out, spec = folder / "out", folder / "specs" / "small.yaml"
    assert run(spec, "--out", out).returncode == 0
    other = folder / "specs" / "other.yaml"
    other.write_text(SPEC.replace("[3]", "[4, 5, 6, 7, 8]"))
    result = run("--resume", out, other)
    assert result.returncode == 2
    assert "absent" not in result.stderr
    point = "cpu_sequential/n:50/k:{}/dim:2/precision:fp32"
    assert "points: 5 instead of 1" in result.stderr
    assert f'gone: "{point.format(3)}"; new: 5 of them, as "{point.format(4)}"' in result.stderr


def test_a_damaged_plan_is_named(folder):
    out, spec = folder / "out", folder / "specs" / "small.yaml"
    assert run(spec, "--out", out).returncode == 0
    for name in ("plan.json", "spec.resolved.json"):
        text = (out / name).read_text()
        (out / name).write_text(text[: len(text) // 2])
        result = run("--resume", out)
        assert result.returncode == 2
        assert f"{out / name}: is damaged" in result.stderr
        (out / name).write_text(text)


def test_a_spec_without_end_is_refused(tmp_path):
    result = run("/dev/zero", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("/dev/zero: is longer than 1,000,000 bytes")


def test_a_dry_run_lists_the_same_points_either_way(folder):
    spec = folder / "specs" / "small.yaml"
    listed = json.loads(run(spec, "--dry-run", "--json", "--set", "k=1,2,3").stdout)
    shown = run(spec, "--dry-run", "--set", "k=1,2,3").stdout.splitlines()
    assert [point["point"] for point in listed] == [line.split()[0] for line in shown[1:4]]


def test_a_spec_that_is_not_there_is_told_in_lines(tmp_path):
    result = run("nothere.yaml", cwd=tmp_path)
    assert result.returncode == 2
    first, looked, there = result.stderr.splitlines()
    assert first == "nothere.yaml: no such spec"
    assert looked.startswith("  looked for ")
    assert there.startswith("  there are ")


def test_a_moved_tree_uses_its_own_specs_and_versions(tmp_path):
    """The program in its build folder looks around itself before it looks where it was built."""
    tree = tmp_path / "moved"
    for folder in ("build", "experiments/sweeps", "kernels/python"):
        (tree / folder).mkdir(parents=True)
    program = shutil.copy(BUILD / "run_experiment", tree / "build")
    spec = SPEC.replace("file: points.csv", "generator: uniform")
    (tree / "experiments" / "sweeps" / "own.yaml").write_text(spec)
    shutil.copy(ROOT / "kernels/python/lloydbench_external.py", tree / "kernels" / "python")
    text = (ROOT / "examples" / "mine_python.py").read_text().replace("mine_", "python_")
    (tree / "kernels" / "python" / "python_python.py").write_text(text)
    listed = json.loads(
        subprocess.run(
            [program, "--list-versions", "--json"], capture_output=True, text=True, check=True
        ).stdout
    )
    python = [version["name"] for version in listed if version["family"] == "python"]
    assert python == ["python_python"]
    result = subprocess.run(
        [program, "sweeps/own.yaml", "--dry-run", "--set", "n=100"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 point, 1 runnable here" in result.stdout, result.stderr


def test_a_compacted_run_says_that_it_cannot_be_resumed(tmp_path):
    (tmp_path / "s.yaml").write_text(
        "name: s\nversions: [cpu_sequential]\naxes: {n: [50], k: [3], dim: [2]}\n"
        "data: {generator: uniform}\nmeasure: {repetitions: 2, max_seconds: 0.01}\n"
    )
    assert run("s.yaml", "--out", "run", cwd=tmp_path).returncode == 0
    compact = [sys.executable, "-m", "analysis", "compact", tmp_path / "run"]
    subprocess.run(compact, cwd=ROOT, check=True, capture_output=True)
    result = run("--resume", "run", cwd=tmp_path)
    assert result.returncode == 2
    assert "was compacted for a recording; a compacted run cannot be resumed" in result.stderr


def test_an_axis_that_no_version_reads_is_told(tmp_path):
    (tmp_path / "points.csv").write_text("1,2\n" * 9)
    (tmp_path / "s.yaml").write_text(SPEC.replace("k: [3]", "k: [3], gpus: [1, 2]"))
    planned = run("s.yaml", "--dry-run", cwd=tmp_path)
    assert planned.stderr == "note: none of the versions reads the axis gpus\n"
    assert planned.returncode == 0
    assert run("s.yaml", "--dry-run", "--quiet", cwd=tmp_path).stderr == ""


def test_a_failed_point_is_told_under_quiet(tmp_path):
    (tmp_path / "points.csv").write_text("0,0\n" + "1,2\n" * 9)  # a zero row has no direction
    (tmp_path / "s.yaml").write_text(SPEC + "solve: {distance: cosine}\n")
    result = run("s.yaml", "--quiet", "--out", "out", cwd=tmp_path)
    assert result.returncode == 1
    assert "failed: " in result.stderr
    assert result.stdout == "results: out\n"


def run_on_a_full_disk(*arguments, cwd):
    with open("/dev/full", "w") as full:
        return subprocess.run(
            [BUILD / "run_experiment", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
            cwd=cwd,
        )


@pytest.mark.parametrize("arguments", [["--list-versions", "--json"], ["s.yaml", "--dry-run"]])
def test_output_that_cannot_be_written_is_an_error(arguments, tmp_path):
    (tmp_path / "points.csv").write_text("1,2\n" * 9)
    (tmp_path / "s.yaml").write_text(SPEC)
    result = run_on_a_full_disk(*arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr == "run_experiment: standard output cannot be written\n"


def test_a_run_whose_summary_cannot_be_printed_ends_as_its_points_do(tmp_path):
    (tmp_path / "points.csv").write_text("1,2\n" * 9)
    (tmp_path / "s.yaml").write_text(SPEC)
    note = "note: standard output cannot be written; the results are in "
    result = run_on_a_full_disk("s.yaml", "--out", "full", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stderr.endswith(f"\n{note}full\n")
    assert (tmp_path / "full" / "summary.md").exists()
    result = run_on_a_full_disk("s.yaml", "--out", "json", "--json", cwd=tmp_path)
    assert result.returncode == 1
    error = "run_experiment: standard output cannot be written\n"
    assert result.stderr.endswith(f"{note}json\n{error}")
    (tmp_path / "points.csv").write_text("0,0\n" + "1,2\n" * 9)  # a zero row has no direction
    (tmp_path / "s.yaml").write_text(SPEC + "solve: {distance: cosine}\n")
    assert run_on_a_full_disk("s.yaml", "--out", "failed", cwd=tmp_path).returncode == 1


def test_a_run_without_standard_streams_writes_into_none_of_its_files(tmp_path):
    (tmp_path / "points.csv").write_text("1,2\n" * 9)
    (tmp_path / "s.yaml").write_text(SPEC)
    closed = [BUILD / "run_experiment", "s.yaml", "--out", "out"]
    command = 'exec "$0" "$@" <&- >&- 2>&-'
    result = subprocess.run(["sh", "-c", command, *closed], timeout=120, check=False, cwd=tmp_path)
    assert result.returncode == 0
    for file in (tmp_path / "out").iterdir():
        assert "standard output cannot be written" not in file.read_text()
    assert json.loads((tmp_path / "out" / "benchmark.json").read_text())["benchmarks"]
