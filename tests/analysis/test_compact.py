"""Compacted runs: smaller, and the same for every command."""

import json
import shutil

import pandas as pd
import pytest

from analysis.__main__ import main
from analysis.model.files import RunError
from analysis.model.groups import LARGEST, expanded, grouped, is_group
from analysis.model.load import load_run


@pytest.fixture
def both(make_run, tmp_path):
    """A run, and a compacted copy in a folder of the same name."""

    def refused(row):
        return row["version"] == "luigi_v2_split" and row["k"] == 100

    faults = [(refused, "unsupported", "needs {k} B")]
    run = make_run(n=(1000, 2000), k=(5, 100), counters=True, ceilings=True, faults=faults)
    (run / "benchmark.json").write_text("{}")
    (run / "timeline.json").write_text("{}")
    copy = tmp_path / "compacted" / run.name
    shutil.copytree(run, copy)
    assert main(["compact", str(copy)]) == 0
    return run, copy


def test_a_compacted_run_is_read_as_the_same_run(both):
    run, copy = map(load_run, both)
    for name in ("measurements", "phases", "counters", "plan"):
        # rows of unsupported points stand together; the samples of a point keep their order
        frames = [
            getattr(one, name).sort_values("point", kind="stable", ignore_index=True)
            for one in (run, copy)
        ]
        pd.testing.assert_frame_equal(*frames)
    assert copy.warnings == run.warnings


def test_a_compacted_run_gives_the_same_pictures_and_tables(both, tmp_path):
    for place, run in zip(("whole", "compact"), both, strict=True):
        out = tmp_path / place
        assert main(["figures", str(run), "--out", str(out)]) == 0
    drawn = sorted(file.name for file in (tmp_path / "whole").iterdir())
    assert "speedup.csv" in drawn
    for name in drawn:
        whole, compacted = (tmp_path / place / name for place in ("whole", "compact"))
        assert whole.read_bytes() == compacted.read_bytes(), name


def test_a_compacted_run_says_each_reason_once_and_keeps_nothing_derivable(both):
    run, copy = both
    text = (copy / "measurements.jsonl").read_text()
    assert (run / "measurements.jsonl").read_text().count("needs 100 B") == 8
    assert text.count("needs 100 B") == 1
    assert len(text) < (run / "measurements.jsonl").stat().st_size / 3
    assert not (copy / "benchmark.json").exists()
    # the run has no timeline.jsonl that it could be derived from
    assert (copy / "timeline.json").exists()


def test_a_point_that_was_supported_at_last_keeps_the_order_of_its_rows(make_run):
    run = make_run(n=(1000,), k=(5,))
    file = run / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    nothing = {"status": "unsupported", "reason": "no GPU", "iteration_ms": None, "solve_ms": None}
    first = [{**row, **nothing} for row in rows if row["repetition"] == 0]
    later = [row for row in rows if row["version"] != "luigi_v1_fused"]
    file.write_text("".join(json.dumps(row) + "\n" for row in [*first, *later]))
    before = load_run(run).measurements
    assert main(["compact", str(run)]) == 0
    after = load_run(run).measurements
    key = ["point", "launch", "repetition"]
    pd.testing.assert_frame_equal(
        before.sort_values(key, ignore_index=True), after.sort_values(key, ignore_index=True)
    )
    assert set(before.loc[before["status"].eq("unsupported"), "version"]) == {"luigi_v1_fused"}


def test_passes_are_grouped_by_version(both):
    run, _ = both
    passes = [
        {"point": f"{version}/n:{n}", "version": version, "pass": "timing", "rows": 6}
        for version in ("cpu_sequential", "luigi_v1_fused")
        for n in (1000, 2000, 4000)
    ]
    file = run / "passes.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in passes))
    assert main(["compact", str(run)]) == 0
    groups = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["group"]["version"] for one in groups] == ["cpu_sequential", "luigi_v1_fused"]
    assert [row for one in groups for row in expanded(one)] == passes


def test_compacting_twice_changes_nothing(both):
    file = both[1] / "measurements.jsonl"
    once = file.read_bytes()
    assert main(["compact", str(both[1])]) == 0
    assert file.read_bytes() == once


def test_a_group_keeps_values_that_are_equal_but_not_the_same():
    rows = [{"a": 1, "b": None, "c": [1]}, {"a": 1.0, "b": None, "c": [1]}, {"a": True, "b": None}]
    rows += [{"a": 5}] * (LARGEST + 1)
    lines = list(grouped(rows, lambda row: 0))
    assert [is_group(line) for line in lines] == [True, False, True, False]
    again = [row for line in lines for row in (expanded(line) if is_group(line) else [line])]
    # json tells 1, 1.0 and true apart
    assert json.dumps(again, sort_keys=True) == json.dumps(rows, sort_keys=True)


def test_objects_with_the_same_fields_are_a_group_within_the_group():
    noise = [{"faults": faults, "other": None, "reasons": []} for faults in (0, 2)]
    rows = [{"a": 1, "noise": one} for one in noise] + [{"a": 2, "noise": {}}] * 2
    rows += [{"a": 3, "noise": one} for one in (noise[0], {"faults": 0}, None)]
    first, second, third = grouped(rows, lambda row: row["a"])
    assert first["columns"]["noise"] == {
        "group": {"other": None, "reasons": []},
        "columns": {"faults": [0, 2]},
    }
    assert second == {"group": {"noise": {}}, "columns": {"a": [2, 2]}}
    assert third["columns"]["noise"] == [noise[0], {"faults": 0}, None]
    assert [row for line in (first, second, third) for row in expanded(line)] == rows
    assert expanded(first, {"noise"}) == [{"noise": one} for one in noise]


def test_a_damaged_file_is_not_compacted(make_run, capsys):
    file = make_run(n=(1000,), k=(5,)) / "measurements.jsonl"
    whole = file.read_bytes() + b'{"schema": 1'
    file.write_bytes(whole)
    lines = whole.count(b"\n") + 1
    assert main(["compact", str(file.parent)]) == 2
    assert f"{file}:{lines}: this line is not a row" in capsys.readouterr().err
    assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "group",
    [
        {"group": {}, "columns": {}},
        {"group": [], "columns": {"a": [1]}},
        {"group": {}, "columns": {"a": 5}},
        {"group": {}, "columns": {"a": [1], "b": [1, 2]}},
        {"group": {}, "columns": {"a": []}},
        {"group": {}, "columns": {"a": [1] * (LARGEST + 1)}},
        {"group": {}, "columns": {"a": {"group": {}, "columns": {}}}},
        {"group": {}, "columns": {"a": {"group": {}, "columns": {"b": [1], "c": [1, 2]}}}},
        {"group": {}, "columns": {"a": {"group": {}, "columns": {"b": [1, 2]}}, "c": [1]}},
        {"group": {}, "columns": {"a": {"group": [], "columns": {"b": [1]}}}},
        {"group": {"schema": 1}, "columns": {"a": [1, 2]}},
        {"group": {"schema": 9}, "columns": {"point": ["p", "q"]}},
    ],
)
def test_a_group_that_nobody_wrote_is_named(make_run, group):
    file = make_run(n=(1000,), k=(5,)) / "measurements.jsonl"
    file.write_text(json.dumps(group) + "\n" + file.read_text())
    with pytest.raises(RunError, match=r"measurements\.jsonl:1: "):
        load_run(file.parent)
