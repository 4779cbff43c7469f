"""Axis batch: several problems in one solve are those that single solves have."""

import numpy as np
import pytest
from run_program import rows, run

from analysis.measures.points import gather
from analysis.model.answers import answers
from analysis.model.load import load_run

SPEC = """name: batched
versions: [cpu_sequential, cpu_openmp, fast_cpu_simd]
axes: {{n: 300, k: 8, dim: 3, threads: 2, {axes}}}
data: {{generator: blobs, seed: 7}}
solve: {{iterations: 5, seed: 3}}
measure: {{repetitions: 2, max_seconds: 1e-9}}
{more}
"""
SINGLE = "data_seed: [7, 8, 9], init_seed: [3, 4, 5]"


def write(folder, axes, more=""):
    path = folder / "batched.yaml"
    path.write_text(SPEC.format(axes=axes, more=more))
    return path


def measured(folder, axes, more=""):
    out = folder / "out"
    result = run(write(folder, axes, more), "--out", out, "--save", "labels,centroids")
    assert result.returncode == 0, result.stderr
    return out


def test_a_batch_is_the_solves_of_its_problems(tmp_path):
    (tmp_path / "alone").mkdir()
    several = measured(tmp_path, "batch: [3, 1]")
    alone = measured(tmp_path / "alone", SINGLE, "zip: [[data_seed, init_seed]]")
    kept, single = answers(load_run(several)), answers(load_run(alone))
    assert len(kept) == 6
    assert len(single) == 9
    assert not any("batch" in point for point in single)
    found = {row["point"]: row for row in rows(several)}
    inertia = {row["point"]: row["inertia"] for row in rows(alone)}
    for point, row in found.items():
        assert row["verified"] is True
        version = row["version"]
        of = sorted(name for name in single if name.startswith(version + "/"))
        assert len(of) == 3
        if row["batch"] == 1:
            assert "/batch:1/" in point
            assert (kept[point].labels == single[of[0]].labels).all()
            assert row["inertia"] == inertia[of[0]]
            continue
        assert "/batch:3/" in point
        assert kept[point].labels.shape == (3, 300)
        assert kept[point].centroids.shape == (3, 8, 3)
        for labels, centroids, name in zip(
            kept[point].labels, kept[point].centroids, of, strict=True
        ):
            assert (labels == single[name].labels).all()
            assert centroids.tobytes() == single[name].centroids.tobytes()
        assert row["inertia"] == pytest.approx(sum(inertia[name] for name in of), rel=1e-12)
        assert np.unique([single[name].labels[:50] for name in of], axis=0).shape[0] == 3
    points = gather([load_run(several)], "").points
    assert sorted(points["batch"].unique()) == [1, 3]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("0", "batch must be from 1 to 65535, not 0"),
        ("[2, 2]", "batch = 2 is listed twice"),
        ("many", "batch must be a whole number, not 'many'"),
        ("1e9", "batch must be from 1 to 65535, not 1e9"),
    ],
)
def test_values_that_mean_nothing_are_errors(tmp_path, values, message):
    result = run(write(tmp_path, f"batch: {values}"), "--dry-run")
    assert result.returncode == 2
    assert message in result.stderr


def test_convergence_follows_a_single_problem(tmp_path):
    result = run(write(tmp_path, "batch: [1, 2]", "figures: convergence"), "--dry-run")
    assert result.returncode == 2
    assert "batch = 2: convergence follows a single problem" in result.stderr


@pytest.mark.parametrize("rule", ["tolerance: 1e-3", "min_changes: 5"])
def test_problems_of_a_batch_end_together(tmp_path, rule):
    path = write(tmp_path, "batch: 2")
    path.write_text(path.read_text().replace("seed: 3", f"seed: 3, {rule}"))
    result = run(path, "--dry-run")
    assert result.returncode == 2
    assert "batched.yaml:3:49: batch = 2 needs a fixed number of iterations" in result.stderr
    assert f"leave out {rule.split(':')[0]}" in result.stderr


def test_a_file_has_the_points_of_one_problem(tmp_path):
    (tmp_path / "points.csv").write_text("1,2\n3,4\n5,6\n")
    path = tmp_path / "batched.yaml"
    path.write_text(
        "name: batched\nversions: [cpu_sequential]\naxes: {k: 2, batch: [1, 4]}\n"
        "data: {file: points.csv}\n"
    )
    result = run(path, "--dry-run")
    assert result.returncode == 2
    assert "batch = 4 needs a generator" in result.stderr


def test_versions_for_one_problem_say_so(tmp_path):
    path = write(tmp_path, "batch: 2")
    path.write_text(path.read_text().replace("[cpu_seq", "[python_numpy, cpu_seq"))
    result = run(path, "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    reasons = {row["version"]: row["reason"] for row in rows(tmp_path / "out")}
    assert reasons["python_numpy"] == "takes one problem at a time, not a batch of 2"
    assert reasons["cpu_sequential"] is None
