"""measure: {verify: {sample: N}}: what rows, summary, analysis and a resumed run say about it."""

import json

import pytest
from run_program import rows, run

from analysis.figures import draw
from analysis.measures.points import gather, sampled
from analysis.model.load import load_run
from analysis.pages.report import subject
from analysis.pages.tables import every_point_cells

SPEC = """name: sampled
versions: [cpu_sequential, cpu_openmp]
baseline: cpu_sequential
axes: {{n: [300, 40], k: 8, dim: 3, threads: 2, {axes}}}
data: {{generator: blobs, seed: 7}}
solve: {{iterations: 5, seed: 3}}
measure: {{repetitions: 2, max_seconds: 1e-9, verify: {verify}}}
"""


def measured(folder, verify="{sample: 100}", axes="precision: fp32"):
    path = folder / "sampled.yaml"
    path.write_text(SPEC.format(verify=verify, axes=axes))
    out = folder / "out"
    result = run(path, "--out", out)
    assert result.returncode == 0, result.stderr
    return out


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return measured(tmp_path_factory.mktemp("sampled"))


def test_rows_say_how_many_points_were_verified(out):
    found = rows(out)
    assert len(found) == 8
    for row in found:
        assert (row["status"], row["verified"]) == ("ok", True)
        assert row["max_mean_error"] < 1e-5
        if row["n"] == 40:  # fewer than the sample: all are verified
            assert row["verified_points"] == 40
            assert row["inertia"] > 0
            assert "inertia" not in row["null_reasons"]
            continue
        assert row["verified_points"] == 100
        assert (row["inertia"], row["inertia_excess"]) == (None, None)
        why = "the reference knows the nearest centroids of 100 of 300 points only"
        assert row["null_reasons"]["inertia"] == why
        assert row["null_reasons"]["inertia_excess"] == why
    spec = json.loads((out / "spec.resolved.json").read_text())
    assert spec["measure"]["verify"] == {"sample": 100}


def test_summary_and_analysis_say_so(out):
    assert "Verified: the labels of at most 100 points" in (out / "summary.md").read_text()
    loaded = load_run(out)
    points = gather([loaded], loaded.baseline).points
    assert set(points["verified_points"]) == {40, 100}
    assert sampled(points).tolist() == points["n"].eq(300).tolist()
    header, cells = every_point_cells(points)
    at = header.index("labels verified")
    assert {cell[at] for cell in cells.values()} == {"40", "100"}
    drawing = draw("speedup", gather([loaded], loaded.baseline), subject([loaded]))
    text = " ".join(each.get_text() for each in drawing.figure.texts).replace("\n", " ")
    assert "Verified on a sample of the labels: 2 points." in text


def test_a_batch_has_a_sample_of_each_problem(tmp_path):
    found = rows(measured(tmp_path, axes="batch: 3"))
    assert {(row["n"], row["verified_points"]) for row in found} == {(300, 300), (40, 120)}


@pytest.mark.parametrize("verify", ["true", "false"])
def test_without_a_sample_it_is_all_points_or_none(tmp_path, verify):
    found = rows(measured(tmp_path, verify=verify))
    for row in found:
        assert row["verified_points"] == (row["n"] if verify == "true" else None)
        if verify == "false":
            assert row["null_reasons"]["verified_points"] == "verify: false"


def test_a_resumed_run_verifies_the_same_sample(tmp_path):
    out = measured(tmp_path)
    path = out / "measurements.jsonl"
    whole = path.read_text().splitlines()
    path.write_text("\n".join(whole[:4]) + "\n")
    result = run("--resume", out)
    assert result.returncode == 0, result.stderr
    again = rows(out)
    assert len(again) == len(whole)
    key = lambda row: (row["point"], row["repetition"])  # noqa: E731
    counts = {key(row): row["verified_points"] for row in map(json.loads, whole)}
    assert {key(row): row["verified_points"] for row in again} == counts
    # Another sample is another spec.
    spec = tmp_path / "sampled.yaml"
    spec.write_text(spec.read_text().replace("sample: 100", "sample: 99"))
    assert run(spec, "--resume", out).returncode == 2
