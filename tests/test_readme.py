"""The README keeps its promises: its example works and its tables are what the commands print."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from analysis.regimes import REGIMES

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
README = (ROOT / "README.md").read_text()


def test_the_example_of_a_version_works(tmp_path):
    """It is linked beside every other version, runs from a spec and is verified."""
    (example,) = re.findall(r"```cpp\n(.*?)```", README, re.DOTALL)
    source = tmp_path / "mine_first.cpp"
    source.write_text(example)
    command = ["g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-c", source]
    command += ["-Wno-missing-field-initializers", f"-I{ROOT}", "-DLLOYD_CUDA=0"]
    subprocess.run([*command, "-o", tmp_path / "mine_first.o"], check=True)
    objects = [
        path
        for folder in ("kernels", "data", "profiling", "experiments")
        for path in (BUILD / folder).rglob("*.o")
        # those are of the program's twin, which is linked with MPI
        if not {"lloyd_mpi_ranks.dir", "run_experiment_mpi.dir"} & set(path.parts)
    ]
    spec = tmp_path / "mine.yaml"
    spec.write_text(
        "name: mine\nversions: [mine_first]\n"
        "axes: {n: [500], k: [7], dim: [3], precision: [fp64]}\n"
        "data: {generator: uniform}\nmeasure: {repetitions: 6, max_seconds: 0.1}\n"
    )
    program = tmp_path / "run_experiment"
    link = ["g++", "-fopenmp", tmp_path / "mine_first.o", *objects, "-o", program]
    libraries = subprocess.run(
        ["ldd", BUILD / "run_experiment"], capture_output=True, text=True, check=True
    )
    link += re.findall(r"=> (\S*(?:yaml-cpp|benchmark|fmt)\S*)", libraries.stdout)
    link += cuda_libraries()
    subprocess.run([*link, "-lre2", "-ldl", "-lpthread", "-lrt"], check=True)
    result = subprocess.run(
        [program, spec, "--out", tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "1 ok" in result.stdout


def cuda_libraries():
    """The static CUDA runtime that the build found, if it has CUDA."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    return re.findall(r"^CUDA_cudart_static_LIBRARY:FILEPATH=(\S+)", cache, re.MULTILINE)


@pytest.mark.parametrize("file", ["README.md", "kernels/fast/README.md"])
def test_its_tables_are_up_to_date(file):
    if not list((ROOT / "data" / "recorded").glob("*/*/measurements.jsonl")):
        pytest.skip("no recorded runs")
    command = [sys.executable, "-m", "analysis", "readme", file, "data/recorded", "--check"]
    result = subprocess.run(
        [*command, "--program", BUILD / "run_experiment"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_every_file_and_target_it_names_exists():
    for path in re.findall(r"\]\(([^)\s#:]+)\)", README):
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("sweep", ["fast_regimes", "fast_counters", "fast_reproducible"])
def test_the_sweeps_of_the_regimes_have_the_tables_regimes(sweep):
    command = [BUILD / "run_experiment", f"sweeps/{sweep}.yaml", "--dry-run", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    points = [p for p in json.loads(told) if p["version"].startswith("fast_")]
    seen = {(p["n"], p["k"], p["dim"], p["precision"] == "fp16") for p in points}
    known = {(r.n, r.k, r.dim, r.half) for r in REGIMES}
    assert seen <= known
    if sweep == "fast_regimes":
        assert seen == known
