"""Tests --list-metrics and the check of a spec's counters as a user sees them, without a GPU."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
FAKE = BUILD / "tests" / "libfake_cupti.so"
SPEC = """name: metrics
versions: [cpu_sequential]
axes: {{n: [100], k: [3]}}
data: {{generator: uniform}}
profile: {{counters: [{counters}]}}
"""


def run(*arguments, **environment):
    return subprocess.run(
        [BUILD / "run_experiment", *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def cupti():
    result = run("--list-metrics", "--match", "^$")
    if result.returncode != 0:
        pytest.skip(result.stderr.strip())


def names(*arguments):
    return {m["metric"] for m in json.loads(run("--list-metrics", "--json", *arguments).stdout)}


@pytest.mark.parametrize("chip", ["TU102", "GA100", "AD102", "GH100", "GB100", "GB202"])
def test_counters_are_listed_for_a_chip_that_is_not_here(cupti, chip):
    listed = json.loads(run("--list-metrics", "--json", "--chip", chip).stdout)
    assert len(listed) > 1000
    assert {m["chip"] for m in listed} == {chip}
    (dram,) = [m for m in listed if m["metric"] == "dram__bytes"]
    assert dram["type"] == "counter"
    assert dram["unit"] == "byte"
    assert dram["description"] == "# of bytes accessed in DRAM"
    assert ".sum.per_second" in dram["sub_metrics"]


def test_chips_differ(cupti):
    assert "dram__bytes_read" in names("--chip", "GH100") - names("--chip", "GB202")


def test_match_looks_at_names_and_descriptions(cupti):
    assert names("--chip", "GH100", "--match", "^dram__bytes$") == {"dram__bytes"}
    assert "dram__bytes" in names("--chip", "GH100", "--match", "accessed in DRAM")
    lines = run("--list-metrics", "--chip", "GH100", "--match", "^dram__bytes$").stdout.splitlines()
    assert len(lines) == 1
    assert "[byte]" in lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--chip", "GH10"], "unknown chip 'GH10'; did you mean 'GH100'?"),
        (["--chip", "GV11B"], "no counters for the chip GV11B"),
        (["--match", "("], "is not a regular expression"),
    ],
)
def test_mistakes_are_one_line_and_status_2(cupti, arguments, said):
    result = run("--list-metrics", *arguments)
    assert result.returncode == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def check(tmp_path, counters, **environment):
    path = tmp_path / "metrics.yaml"
    path.write_text(SPEC.format(counters=counters))
    result = run(path, "--dry-run", **environment)
    return result.returncode, result.stderr.replace(str(path), "metrics.yaml")


def test_a_known_counter_of_any_chip_is_accepted(cupti, tmp_path):
    # Only consumer Blackwell has the last counter. On other machines a row says so.
    counters = "l1, dram__bytes.sum, sm__warps_active.avg.per_cycle_active, dram__bytes_op_read.sum"
    assert check(tmp_path, counters) == (0, "")


def test_unknown_counters_are_told_with_their_place_and_what_was_meant(cupti, tmp_path):
    status, text = check(tmp_path, "l1, dram__bites.sum, dram__bytes.summ, nothing__like_it.sum")
    assert status == 2
    first, second, third = text.splitlines()
    assert first.startswith("metrics.yaml:5:26: unknown counter 'dram__bites.sum': ")
    assert first.endswith("did you mean 'dram__bytes.sum'?")
    assert second.startswith("metrics.yaml:5:43: unknown counter 'dram__bytes.summ': ")
    assert second.endswith("did you mean 'dram__bytes.sum'?")
    assert "--list-metrics" in third


@pytest.mark.skipif(not FAKE.exists(), reason="built without CUDA")
def test_without_cupti_the_reason_is_told_and_specs_still_load(tmp_path):
    missing = {"LLOYDBENCH_CUPTI": str(tmp_path / "libcupti.so")}
    result = run("--list-metrics", **missing)
    assert result.returncode == 2
    assert "CUPTI cannot be opened" in result.stderr
    assert str(tmp_path / "libcupti.so") in result.stderr
    assert check(tmp_path, "l1, dram__bites.sum", **missing) == (0, "")


@pytest.mark.skipif(not FAKE.exists(), reason="built without CUDA")
def test_a_cupti_that_is_too_old_is_told(tmp_path):
    result = run("--list-metrics", LLOYDBENCH_CUPTI=str(FAKE))
    assert result.returncode == 2
    assert "it is older than CUDA 13.0" in result.stderr
