"""The table of recorded runs."""

import json
import subprocess
from pathlib import Path

import pytest

from analysis.pages.reasons import reasons
from analysis.pages.recordings import recorded_runs


def write_run(folder, rows, **environment):
    folder.mkdir(parents=True)
    (folder / "environment.json").write_text(json.dumps(environment))
    (folder / "measurements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def row(point, status, time):
    return {"point": point, "status": status, "t_utc": f"2026-01-01T00:{time}.000Z"}


def test_a_row_counts_points_by_their_last_status(tmp_path):
    rows = [row("a", "ok", "00:00"), row("a", "ok", "01:00"), row("b", "failed", "02:00")]
    rows += [row("b", "ok", "03:00"), row("c", "unsupported", "03:30"), row("d", "failed", "03:30")]
    late = write_run(
        tmp_path / "gpu" / "k5",
        rows,
        t_utc="2026-01-01T00:00:00Z",
        build={"commit": "0123456789abcdef"},
    )
    first = write_run(tmp_path / "cpu" / "k5", [row("a", "ok", "00:00")], build=None)
    table = recorded_runs([late, first], tmp_path)
    assert table.markdown().splitlines()[-2:] == [
        "| cpu | `k5` | 1 | 1 |  | 0.0 | – | – |  |",
        "| gpu | `k5` | 4 | 2 | 1 failed, 1 unsupported | 3.5 | 0123456789 | 2026-01-01 |  |",
    ]


def test_a_row_tells_options_and_whether_the_spec_has_changed(tmp_path):
    run = write_run(tmp_path / "gpu" / "k5", [row("a", "ok", "00:00")], build=None)
    asked = {"set": ["n=1e4,1e5"], "only": [], "filter": "/gpus:(1|2)/"}
    (run / "plan.json").write_text(json.dumps({"overrides": asked}))
    (run / "spec.yaml").write_text("name: k5  # as it was\naxes: {n: 10}\n")
    (tmp_path / "k5.yaml").write_text("name: k5\naxes: {n: 10}\n")
    last = recorded_runs([run], tmp_path).markdown().splitlines()[-1]
    assert last.startswith("| gpu | `k5` | 1 | 1 |")
    assert last.endswith("| `--set n=1e4,1e5 --filter '/gpus:(1\\|2)/'` |")
    (tmp_path / "k5.yaml").write_text("name: k5\naxes: {n: 20}\n")
    last = recorded_runs([run], tmp_path).markdown().splitlines()[-1]
    assert last.startswith("| gpu | `k5` \\* | ")


def test_programs_of_one_commit_have_letters(tmp_path):
    def run(name, commit, binary, hour):
        build = {"commit": commit, "binary": binary}
        time = f"2026-01-01T{hour}:00:00Z"
        return write_run(
            tmp_path / "gpu" / name, [row("a", "ok", "00:00")], build=build, t_utc=time
        )

    runs = [run("k1", "abc", "two", "08"), run("k2", "abc", "one", "07")]
    runs += [run("k3", "def", "one", "06"), run("k4", "abc", "two", "05")]
    lines = recorded_runs(runs, tmp_path).markdown().splitlines()[-4:]
    assert [line.split(" | ")[6] for line in lines] == ["abc a", "abc b", "def", "abc a"]


def refused(point, version, reason, status="unsupported"):
    return {"point": point, "version": version, "status": status, "reason": reason}


def test_reasons_that_differ_in_numbers_share_a_row(tmp_path):
    ok = {"point": "b", "version": "two", "status": "ok", "reason": None}
    k5 = write_run(
        tmp_path / "gpu" / "k5",
        [
            refused("a", "one", "needs 96,000 B (static), has 1.5 GB"),
            refused("b", "two", "worker died", "failed"),
            ok,  # the last row of a point counts
            refused("c", "two", "needs 100,000 B (static), has 1.5 GB"),
            refused("d", "two", "computes in fp32 only, not fp16"),
            refused("e", "two", "computes in fp32 only, not fp64"),
        ],
    )
    k9 = [
        refused("a", "one", "needs 8 B (static), has 1.5 GB"),
        refused("f", "one", "/opt/x/python3 has no package a==1.2.3 | 7", "failed"),
    ]
    cpu, gpu = (write_run(tmp_path / machine / "k9", k9) for machine in ("cpu", "gpu"))
    assert reasons([gpu, cpu, k5]).markdown().splitlines()[-4:] == [
        "| failed | python3 has no package a==1.2.3 \\| 7 | 2 | `one` | `cpu/k9` 1, `gpu/k9` 1 |",
        "| unsupported | needs 8 to 100,000 B (static), has 1.5 GB | 4 | `one`, `two` |"
        " `k5` 2, `cpu/k9` 1, `gpu/k9` 1 |",
        "| unsupported | computes in fp32 only, not fp16 | 1 | `two` | `k5` 1 |",
        "| unsupported | computes in fp32 only, not fp64 | 1 | `two` | `k5` 1 |",
    ]


def test_every_point_without_a_result_has_a_reason(tmp_path):
    rows = [refused("a", "one", None), refused("b", "one", "")]
    assert reasons([write_run(tmp_path / "gpu" / "k5", rows)]).rows == [
        ["unsupported", "–", "2", ("one",), ("k5", " 2")]
    ]


def test_the_recorded_runs_stay_small():
    root = Path(__file__).resolve().parents[2]
    command = ["git", "-C", str(root), "ls-tree", "-rlz", "HEAD", "data/recorded"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("a copy without history or without recorded runs")
    sizes = [int(line.split()[3]) for line in listed.split("\0") if line]
    assert sum(sizes) < 25e6
