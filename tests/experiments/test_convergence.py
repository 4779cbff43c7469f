"""The inertia after each iteration, in convergence.jsonl."""

import json

import pytest
from run_program import rows, run

HEAD = """name: path
axes: {n: 400, k: 7, dim: 3, precision: [fp32]}
data: {generator: blobs, centers: 9, sigma: 2}
measure: {repetitions: 1, max_seconds: 0.01}
"""


def spec(tmp_path, rest):
    path = tmp_path / "path.yaml"
    path.write_text(HEAD + rest)
    return path


def test_the_path_is_that_of_solves_with_fewer_iterations(tmp_path):
    versions = "versions: [cpu_sequential, python_numpy]\n"
    path = spec(tmp_path, versions + "solve: {iterations: 4}\nprofile: {convergence: true}\n")
    assert run(path, "--out", tmp_path / "path").returncode == 0
    found = rows(tmp_path / "path", "convergence.jsonl")
    points = {row["point"] for row in rows(tmp_path / "path")}
    assert {row["point"] for row in found} == points
    for point in points:
        own = [row for row in found if row["point"] == point]
        assert [row["iteration"] for row in own] == [0, 1, 2, 3, 4]
        inertias = [row["inertia"] for row in own]
        assert inertias == sorted(inertias, reverse=True)
        assert inertias[0] > inertias[-1]
        assert [row["max_shift"] is None for row in own] == [True] + 4 * [False]
        assert [row["changed_labels"] is None for row in own] == 2 * [True] + 3 * [False]
        assert own[2]["changed_labels"] > 0
    for iterations in (1, 3):
        shorter = spec(tmp_path, f"{versions}solve: {{iterations: {iterations}}}\n")
        out = tmp_path / str(iterations)
        assert run(shorter, "--out", out).returncode == 0
        assert not (out / "convergence.jsonl").exists()
        for row in rows(out):
            (same,) = (
                each
                for each in found
                if (each["point"], each["iteration"]) == (row["point"], iterations)
            )
            assert same["inertia"] == pytest.approx(row["inertia"], rel=1e-6)


def test_it_ends_where_the_solve_ends_and_is_written_once(tmp_path):
    path = spec(
        tmp_path,
        "versions: [cpu_sequential]\nsolve: {iterations: 300, tolerance: 1e-3}\n"
        "profile: {convergence: true}\n",
    )
    out = tmp_path / "out"
    assert run(path, "--out", out).returncode == 0
    found = rows(out, "convergence.jsonl")
    assert found[-1]["iteration"] == rows(out)[0]["iterations"] < 300
    shifts = [row["max_shift"] for row in found[1:]]
    assert shifts[-1] < 1e-3 <= min(shifts[:-1])

    # As if the run had been killed between the rows of the pass and the note that it is complete.
    passes = rows(out, "passes.jsonl")
    assert [row["rows"] for row in passes if row["pass"] == "convergence"] == [len(found)]
    kept = [row for row in passes if row["pass"] == "timing"]
    (out / "passes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    assert run("--resume", out).returncode == 0
    assert rows(out, "convergence.jsonl") == found
