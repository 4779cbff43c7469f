"""The profiler's table, from rows of timeline.jsonl."""

import json

import pytest

from analysis.__main__ import main
from analysis.model.timeline import read_events
from analysis.pages.profiler import profiler_table


def event(point, kind, name, duration):
    return {"point": point, "kind": kind, "name": name, "start_us": 0.0, "duration_us": duration}


@pytest.fixture
def run(tmp_path):
    rows = [
        event("v/n:10", "trace", "solve", 1000.0),
        event("v/n:10", "phase", "assign", 900.0),
        event("v/n:10", "kernel", "assign<int|long>", 30.0),
        event("v/n:10", "copy", "copy HtoD", 100.0),
        event("v/n:10", "kernel", "assign<int|long>", 40.0),
        event("v/n:10", "memset", "memset", 30.0),
        event("v/n:10", "api", "cudaMalloc", 500.0),
        event("w/n:10", "part", "solve", 5.0),
    ]
    (tmp_path / "timeline.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "measurements.jsonl").touch()
    return tmp_path


def test_time_is_shared_out_in_each_group(run):
    table = profiler_table(read_events(run, [])).set_index("name")
    assert list(table.index) == ["copy HtoD", "assign<int|long>", "memset", "cudaMalloc"]
    kernel = table.loc["assign<int|long>"]
    assert kernel["share"] == pytest.approx(0.35)
    assert (kernel["calls"], kernel["average_us"]) == (2, 35)
    assert (kernel["min_us"], kernel["max_us"], kernel["total_us"]) == (30, 40, 70)
    assert table.loc["cudaMalloc", "share"] == 1
    assert set(table["point"]) == {"v/n:10"}


def test_the_command_prints_a_table_for_each_group(run, capsys):
    assert main(["profiler", str(run)]) == 0
    out = capsys.readouterr().out
    assert "## v/n:10" in out
    assert "| `assign<int\\|long>` | 35.0% | 0.0700 | 2 | 35.0 | 30.0 | 40.0 |" in out
    assert "| API calls | share |" in out


def test_a_run_without_a_timeline_is_told_how_to_get_one(tmp_path, capsys):
    (tmp_path / "measurements.jsonl").touch()
    assert main(["profiler", str(tmp_path)]) == 2
    assert "--profile timeline" in capsys.readouterr().err
