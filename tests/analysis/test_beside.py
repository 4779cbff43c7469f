"""The table of other people's fastest version beside ours."""

import pytest
from made_runs import measurement, write_lines

from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.pages.beside import beside

SIZES = {"n": 1000, "k": 8, "dim": 2}


def rows_of(data, version, precision, ms, **values):
    point = {
        "point": f"{version}/{data}/precision:{precision}",
        **{"version": version, "family": version.split("_")[0], "backend": "cuda"},
        **{**SIZES, "precision": precision, "data_name": data},
    }
    if ms is None:
        return [measurement(point, **values)]
    return [
        measurement(point, repetition=r, repetitions=9, iteration_ms=ms * (1 + 0.001 * r))
        for r in range(9)
    ]


@pytest.fixture
def run_path(tmp_path):
    missing = {"status": "unsupported", "reason": "python3 has no package cuvs: install it there"}
    rows = [
        *rows_of("gps", "fast_grid", "fp32", 1.0),
        *rows_of("gps", "fast_split", "fp32", 4.0),
        *rows_of("gps", "fast_auto", "fp32", 0.9),  # chooses, so it is never the fastest
        *rows_of("gps", "peer_torch", "fp32", 30.0),
        *rows_of("gps", "peer_flash_kmeans", "tf32", 20.0),
        *rows_of("gps", "peer_cuvs", "fp32", None, **missing),
        *rows_of("gps", "fast_wgmma", "fp16", 0.5),
        *rows_of("cloud", "fast_grid", "fp32", 2.0),
    ]
    path = tmp_path / "real"
    path.mkdir()
    write_lines(path / "measurements.jsonl", rows)
    return path


def test_the_best_peer_is_beside_our_two_fastest(run_path):
    table = beside(load_run(run_path))
    assert table.header == ["data", "best peer, ms", "ours, ms", "faster by", "our next, ms"]
    lines = table.markdown().splitlines()
    (single,) = (line for line in lines if "`fast_split`" in line)
    cells = [cell.strip() for cell in single.strip("|").split("|")]
    assert cells[0] == "gps"
    assert cells[1].startswith("`peer_flash_kmeans` tf32: 20.1 [")
    assert cells[2].startswith("`fast_grid` fp32: 1.00 [")
    assert cells[3].startswith("20.0× [")
    assert cells[4].startswith("`fast_split` fp32: 4.02 [")
    (half,) = (line for line in lines if "`fast_wgmma`" in line)
    assert half.count("–") == 3  # no peer, no ratio, no second version
    (cloud,) = (line for line in lines if line.startswith("| cloud"))
    assert cloud.count("–") == 3
    assert "peers that did not run: peer_cuvs." in table.markdown()


def test_a_run_without_ours_is_refused(run_path):
    write_lines(run_path / "measurements.jsonl", rows_of("gps", "peer_torch", "fp32", 1.0))
    with pytest.raises(RunError, match="no result of this project's own versions"):
        beside(load_run(run_path))
