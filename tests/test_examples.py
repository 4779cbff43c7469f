"""The versions of examples/ work as examples/README.md says, in the README's own spec."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "tests" / "run_experiment_examples"
PAGE = (ROOT / "examples" / "README.md").read_text()
BUILT_IN, EXTERNAL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home folder in which somebody followed the page's section on external versions."""
    home = tmp_path_factory.mktemp("home")
    commands = EXTERNAL.replace("build/run_experiment", str(BUILD / "run_experiment"))
    listed = run(["sh", "-ec", commands], cwd=ROOT, env={**os.environ, "HOME": str(home)})
    assert "mine_python" in listed
    assert "mine_c " in listed
    return home


def readme_spec(folder):
    """The README's first spec with these versions; nothing else is changed, but shorter."""
    spec, _ = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert "precision" not in spec
    spec, replaced = re.subn(
        r"^versions: .*$", 'versions: [cpu_sequential, "mine_*"]', spec, flags=re.MULTILINE
    )
    assert replaced == 1
    path = folder / "my_sweep.yaml"
    path.write_text(spec + "measure: {repetitions: 2, max_seconds: 0.1}\n")
    return path


@pytest.fixture(scope="module")
def environment(home):
    return {**os.environ, "LLOYDBENCH_VERSIONS": str(home / "my_versions")}


def test_they_run_from_the_spec_of_the_readme(tmp_path, environment):
    """As it stands, hence in fp32; with fewer points, as this is Python, too."""
    out = tmp_path / "out"
    command = [PROGRAM, readme_spec(tmp_path), "--set", "n=200,1000", "--out", out]
    run(command, env=environment)
    rows = [json.loads(line) for line in (out / "measurements.jsonl").read_text().splitlines()]
    mine = [row for row in rows if row["version"] in ("mine_cpu", "mine_python", "mine_c")]
    assert {(r["version"], r["n"], r["dim"]) for r in mine} == {
        (version, n, dim)
        for version in ("mine_cpu", "mine_python", "mine_c")
        for n in (200, 1000)
        for dim in (2, 16)
    }
    for row in mine:
        assert (row["status"], row["verified"], row["precision"]) == ("ok", True, "fp32"), row
    # What a version does not report is null, with the reason.
    silent = next(row for row in mine if row["version"] == "mine_c")
    assert silent["setup_ms"] is silent["end_to_end_ms"] is None
    assert silent["null_reasons"]["setup_ms"] == "the external version does not report it"


def test_the_cuda_example_runs_from_the_spec_of_the_readme(tmp_path, environment):
    spec = readme_spec(tmp_path)
    command = [PROGRAM, spec, "--only", "mine_cuda"]
    points = json.loads(run([*command, "--dry-run", "--json"], env=environment))
    assert points, "the program does not know mine_cuda"
    if not points[0]["available"]:
        pytest.skip(points[0]["reason"])
    out = tmp_path / "out"
    run([*command, "--out", out], env=environment)
    rows = [json.loads(line) for line in (out / "measurements.jsonl").read_text().splitlines()]
    assert {row["status"] for row in rows} == {"ok"}


def test_they_refuse_what_they_cannot_do(tmp_path, environment):
    path = readme_spec(tmp_path)
    path.write_text(path.read_text().replace("iterations: 20", "iterations: 20, tolerance: 0.1"))
    out = tmp_path / "out"
    command = [PROGRAM, path, "--only", "mine_*", "--set", "n=200", "--set", "dim=2", "--out", out]
    run(command, env=environment)
    rows = [json.loads(line) for line in (out / "measurements.jsonl").read_text().splitlines()]
    examples = ("mine_cpu", "mine_python", "mine_c")  # the reader may have more of this name
    reasons = {(r["version"], r["status"], r["reason"]) for r in rows if r["version"] in examples}
    assert reasons == {
        (version, "unsupported", "runs a fixed number of iterations") for version in examples
    }


@pytest.mark.skipif(shutil.which("ninja") is None, reason="ninja is not installed")
def test_a_new_version_is_one_file_and_one_line(tmp_path):
    """The page's commands in a copy of the tree: both are compiled, and linked into the program.

    Without CUDA, where the second is an entry of the registry alone; nothing else is built.
    """
    tree, build = tmp_path / "tree", tmp_path / "build"
    ignored = shutil.ignore_patterns("recorded", "build*", "results", ".*", "__pycache__")
    for folder in ("cmake", "data", "examples", "experiments", "kernels", "profiling", "tests"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignored)
    shutil.copy(ROOT / "CMakeLists.txt", tree)
    run(["sh", "-ec", BUILT_IN], cwd=tree)
    shutil.copy(tree / "kernels/cpu/cpu_mpi.cpp", tree / "kernels/mine/mine_ranks.cpp")
    with (tree / "kernels" / "CMakeLists.txt").open("a") as lines:
        lines.write("lloyd_mpi_version(mine/mine_ranks.cpp)\n")
    shutil.copy(tree / "kernels/mine/mine_cpu.cpp", tree / "kernels/mine/mine_forgotten.cpp")
    options = ["-DLLOYD_CUDA=OFF", "-DCMAKE_BUILD_TYPE=Debug"]
    configure = ["cmake", "-S", tree, "-B", build, "-G", "Ninja", *options]
    told = subprocess.run(configure, capture_output=True, text=True, check=True).stderr
    (unlisted,) = re.findall(r"kernels/(\S+) registers a version but is\s+not\s+built", told)
    assert unlisted == "mine/mine_forgotten.cpp"
    folder = "kernels/CMakeFiles/lloyd_kernels.dir/mine/"
    objects = [folder + "mine_cpu.cpp.o", folder + "mine_cuda.cu.o"]
    run(["ninja", "-C", build, *objects])
    rules = (build / "build.ninja").read_text()
    assert "lloyd_mpi_entries.dir/mine/mine_ranks.cpp.o" in rules
    if "lloyd_mpi_ranks.dir" in rules:  # not where there is no MPI
        assert "lloyd_mpi_ranks.dir/__/kernels/mine/mine_ranks.cpp.o" in rules
    for program in ("run_experiment", "tests/run_experiment_examples", "tests/kernels_tests"):
        linked = run(["ninja", "-C", build, "-t", "query", program]).split("outputs:")[0]
        for file in objects:
            assert file in linked
        assert "examples/mine" not in linked, "two versions of one name"
