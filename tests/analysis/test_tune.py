"""The table that fast_auto chooses by."""

import json

import pytest
from made_runs import measurement, write_lines

from analysis.__main__ import main
from analysis.model.load import load_run


@pytest.fixture
def make_fast_run(tmp_path):
    def make(name, times, **values):
        rows = []
        for (version, k, block), ms in times.items():
            axis = f"/threads_per_block:{block}" if block else ""
            point = {
                "point": f"{version}/n:10000/k:{k}/dim:2{axis}/precision:fp16",
                **{"version": version, "family": version.split("_")[0], "backend": "cuda"},
                **{"n": 10_000, "k": k, "dim": 2, "threads_per_block": block},
                "precision": "fp16",
            }
            rows += [
                measurement(point, repetition=r, repetitions=6, iteration_ms=ms, **values)
                for r in range(6)
            ]
        path = tmp_path / name
        path.mkdir()
        write_lines(path / "measurements.jsonl", rows)
        (path / "spec.resolved.json").write_text(json.dumps({"name": name}))
        return path

    return make


def table_of(tmp_path, *runs):
    out = tmp_path / "table.inc"
    assert main(["tune", *map(str, runs), "-o", str(out)]) == 0
    head, *rows = out.read_text().split("{", 1)
    return head, ("{" + rows[0]).splitlines()


def test_the_versions_of_each_problem_stand_in_order(make_fast_run, tmp_path, capsys):
    times = {
        ("fast_dense", 16, None): 0.5,
        ("fast_small", 16, None): 0.2,
        ("fast_optin", 16, 128): 0.4,
        ("fast_optin", 16, 256): 0.3,
        ("fast_cublas", 16, None): 0.9,
        ("fast_auto", 16, None): 0.1,
        ("peer_torch", 16, None): 0.1,
        ("fast_dense", 8, None): 0.125,
    }
    first = make_fast_run("first", times)
    head, rows = table_of(tmp_path, first)
    assert "NVIDIA H200; runs: first." in head
    assert rows == [
        '{Precision::fp16, 10000, 8, 2, "fast_dense", 0, 0.125},',
        '{Precision::fp16, 10000, 16, 2, "fast_small", 0, 0.2},',
        '{Precision::fp16, 10000, 16, 2, "fast_optin", 256, 0.3},',
        '{Precision::fp16, 10000, 16, 2, "fast_dense", 0, 0.5},',
        '{Precision::fp16, 10000, 16, 2, "fast_cublas", 0, 0.9},',
    ]
    # a later run of the same problem counts instead
    later = make_fast_run("later", {("fast_dense", 16, None): 0.01})
    assert table_of(tmp_path, first, later)[1][1] == rows[1].replace("small", "dense").replace(
        "0.2", "0.01"
    )
    # and the rows of a chooser load with what it chose
    assert load_run(first).measurements["chosen"].isna().all()
    other = make_fast_run("other", {("fast_dense", 16, None): 1.0}, gpu="NVIDIA L4")
    assert main(["tune", str(first), str(other), "-o", str(tmp_path / "no.inc")]) == 2
    assert "a table is for one GPU" in capsys.readouterr().err
    peer = make_fast_run("peers", {("peer_torch", 16, None): 1.0})
    assert main(["tune", str(peer), "-o", str(tmp_path / "no.inc")]) == 2
    assert "no verified result of a fast_ version" in capsys.readouterr().err
    nameless = make_fast_run("nameless", {("fast_dense", 16, None): 1.0}, gpu=None)
    assert main(["tune", str(nameless), "-o", str(tmp_path / "no.inc")]) == 2
    assert "no run names a GPU" in capsys.readouterr().err


def test_the_cpu_ladder_has_a_table_of_its_own(make_fast_run, tmp_path, capsys):
    times = {("fast_cpu_simd", 16, None): 0.5, ("fast_cpu_auto", 16, None): 0.1}
    times[("fast_dense", 16, None)] = 0.01
    run = make_fast_run("both", times, family="fast_cpu", backend="cpu", gpu=None)
    out = tmp_path / "table.inc"
    tune = ["tune", str(run), "--ladder", "fast_cpu", "-o", str(out)]
    assert main(tune) == 2
    assert "no run names a CPU" in capsys.readouterr().err
    cpu = {"model": "Xeon", "cores": 16}
    (run / "environment.json").write_text(json.dumps({"cpu": cpu}))
    assert main(tune) == 0
    head, rows = out.read_text().split("{", 1)
    assert "Xeon (16 cores); runs: both." in head
    assert rows.splitlines()[-1].startswith('{Precision::fp16, 10000, 16, 2, "fast_cpu_simd"')
