import json

import pytest
from made_runs import Sweep, measurement, point_rows

from analysis.measures.fastest import fastest
from analysis.measures.points import all_points
from analysis.model import columns, rows
from analysis.model.files import RunError
from analysis.model.find import find_runs
from analysis.model.load import MEASUREMENTS, load_run


def test_a_whole_run_is_read(make_run):
    run = load_run(make_run(n=(10_000,), k=(5,)))
    assert run.name == "sweep"
    assert run.baseline == "cpu_sequential"
    assert run.machine == "NVIDIA H200"
    assert run.environment_line() == (
        "NVIDIA H200 · AMD EPYC 9654 96-Core Processor (96 cores) · driver 580.82.07 · "
        "GNU 12.2.0 · commit 06af889d1c"
    )
    # 1 + 3 CPU points and 4 × 4 GPU points of 9 samples
    assert len(run.plan) == 20
    assert len(run.measurements) == 180
    assert [c.name for c in MEASUREMENTS] == list(run.measurements)
    assert set(run.phases["phase"]) == {"assign", "update"}
    assert run.measurements["n"].dtype == "Int64"
    assert run.warnings == []


def test_a_gpu_that_no_result_comes_from_is_not_named(make_run):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    on_cpu = [line for line in lines if line["gpu"] is None]
    assert 0 < len(on_cpu) < len(lines)
    file.write_text("".join(json.dumps(line) + "\n" for line in on_cpu))
    run = load_run(path)
    assert run.used_gpu == ""
    assert run.machine == "NVIDIA H200"  # as in other runs of this machine
    assert run.environment_line() == (
        "AMD EPYC 9654 96-Core Processor (96 cores) · GNU 12.2.0 · commit 06af889d1c"
    )


def test_a_torn_last_line_is_dropped_and_named(make_run):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    whole = file.read_bytes()
    lines = whole.count(b"\n")
    file.write_bytes(whole + whole.splitlines()[-1][:57])
    run = load_run(path)
    assert len(run.measurements) == lines
    assert run.warnings == [f"{file}:{lines + 1}: the last line is cut off; it is left out"]


@pytest.mark.parametrize("junk", [b"\xff\xfe{", b"[1, 2]", b"17", b'{"schema": 1,'])
def test_a_broken_line_in_the_middle_is_dropped_and_named(make_run, junk):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*lines[:9], junk, *lines[9:]]) + b"\n")
    run = load_run(path)
    assert len(run.measurements) == len(lines)
    assert run.warnings == [f"{file}:10: this line is not a row; it is left out"]


def test_a_cut_off_point_is_used_and_said(make_run):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-2]))
    run = load_run(path)
    point = json.loads(lines[-1])["point"]
    assert run.warnings == [f"{path}: {point} has 7 of 9 repetitions; those are used"]


def test_optional_files_may_be_missing(make_run):
    path = make_run(n=(10_000,), k=(5,))
    for name in ("plan.json", "spec.resolved.json", "environment.json", "phases.jsonl"):
        (path / name).unlink()
    run = load_run(path)
    assert run.name == "run"
    assert run.baseline == ""
    assert run.plan.empty
    assert run.phases.empty
    assert run.environment_line() == "NVIDIA H200"


def test_a_run_that_ended_before_its_first_row_is_read(make_run):
    path = make_run(n=(10_000,), k=(5,))
    (path / "measurements.jsonl").unlink()
    run = load_run(path)
    assert run.measurements.empty
    assert len(run.plan) == 20


@pytest.mark.parametrize(
    ("schema", "shown"), [(9, "9"), ("1", '"1"'), (None, "null"), (True, "true")]
)
def test_an_unknown_schema_is_refused_with_its_line(make_run, schema, shown):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    lines = file.read_text().splitlines()
    lines[3] = json.dumps({**json.loads(lines[3]), "schema": schema})
    file.write_text("\n".join(lines))
    with pytest.raises(RunError) as error:
        load_run(path)
    assert str(error.value).startswith(
        f"{file}:4: schema {shown}; this version reads schemas 1, 2, 3."
    )


def test_broken_json_beside_the_rows_is_refused_by_name(make_run):
    path = make_run(n=(10_000,), k=(5,))
    (path / "plan.json").write_text('{"points": [')
    with pytest.raises(RunError, match=r"plan\.json: not valid JSON"):
        load_run(path)


def test_of_a_point_measured_again_only_the_last_measurement_counts(tmp_path):
    point = next(iter(point_rows(Sweep(n=(10_000,), k=(5,)))))
    rows = [measurement(point, status="failed", reason="worker ended by signal 9")]
    rows += [
        measurement(point, iteration_ms=t, repetition=i, repetitions=2)
        for i, t in enumerate([5.0, 6.0])
    ]
    rows += [
        measurement(point, iteration_ms=t, repetition=i, repetitions=3)
        for i, t in enumerate([1.0, 2.0, 3.0])
    ]
    (tmp_path / "measurements.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    run = load_run(tmp_path)
    assert run.measurements["iteration_ms"].tolist() == [1.0, 2.0, 3.0]
    assert set(run.measurements["status"]) == {"ok"}


def test_run_directories_are_found_below_a_folder(make_run, tmp_path):
    b = make_run("recorded/b", n=(10_000,), k=(5,))
    a = make_run("recorded/a", n=(10_000,), k=(5,))
    (a / "figures").mkdir()
    assert find_runs([tmp_path]) == [a, b]
    assert find_runs([b, a, tmp_path]) == [b, a]


def test_paths_that_hold_no_run_are_refused(tmp_path):
    with pytest.raises(RunError, match=r"nowhere: no such directory$"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(RunError, match="no run directory here or below it"):
        find_runs([tmp_path])
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file, not a run directory"):
        find_runs([tmp_path / "file"])


def test_a_file_that_is_read_in_parts_is_the_same(make_run, monkeypatch):
    path = make_run(n=(10_000, 100_000), k=(5,), counters=True)
    file = path / "measurements.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    # the CPU's rows come first and have no GPU: the first parts know nothing of those columns
    file.write_bytes(b"".join([*lines[:50], b"17\n", *lines[50:], lines[-1][:30]]))
    whole = load_run(path)
    monkeypatch.setattr(rows, "PART_BYTES", 20_000)
    parts = load_run(path)
    assert whole.warnings == parts.warnings
    assert f"{file}:51: this line is not a row; it is left out" in parts.warnings
    assert f"{file}:{len(lines) + 2}: the last line is cut off; it is left out" in parts.warnings
    for name in ("measurements", "phases", "counters"):
        one, other = getattr(whole, name), getattr(parts, name)
        assert list(one.columns) == list(other.columns)
        for column in one.columns:
            assert one[column].isna().tolist() == other[column].isna().tolist(), column
            assert one[column].dropna().tolist() == other[column].dropna().tolist(), column


ODD_LINES = [
    b'{"a":"x","b":1,"c":2}',
    b'{"a":"x","b":1.0,"c":2}',
    b'{"a":"x","b":true}',
    b'{"a":"x","b":1,"b":2}',
    b'{"a":"x","b":9223372036854775808}',
    b'{"a":"x","c":NaN}',
    b'{"a":"x","c":1e999}',
    b'{"a":"x","c":true}',
    b'{"a":"x","c":-0.0,"z":{"a":"y"}}',
    b'{"a":"x","c":123456789012345678901234567890}',
    b'{"a":"\\ud800"}',
    b'{"a":"\\u0041","z":"\\ud800"}',
    b'{"a":"x","z":"\xff"}',
    b'{"a":"x"}{"a":"y"}',
    b'{"a":null}',
    b'{"b":1}',
    b'{"a":"x","d":false}',
    b'{"a":"x","d":0}',
    b'{"a":"x","from":{"e":"why"}}',
    b'{"a":"x","from":7}',
    b"[]",
    b"  ",
    b"\xef\xbb\xbf" + b'{"a":"x"}',
    b'{"a":"x"} ,',
    b'{"a":"x"',
]


def _word(of):
    if not isinstance(of, dict):
        raise ValueError("from is not an object")
    return of["e"]


@pytest.mark.parametrize("line", ODD_LINES)
def test_the_fast_reader_reads_what_json_reads(tmp_path, monkeypatch, line):
    wanted = [columns.name("a", needed=True), columns.whole("b")]
    wanted += [columns.number("c", high=1e100), columns.flag("d")]
    wanted.append(columns.name("e", source="from", get=_word))
    file = tmp_path / "rows.jsonl"
    good = b'{"a":"good"}\n'
    file.write_bytes(good + line + b"\n" + good)

    def read():
        warnings = []
        try:
            return rows.read_rows(file, wanted, warnings).to_dict("records"), warnings
        except RunError as error:
            return str(error)

    fast = read()

    def refuse(*_):
        raise ValueError

    monkeypatch.setattr(rows._Reader, "of_lines", refuse)
    assert repr(fast) == repr(read())


@pytest.mark.parametrize("file", ["phases.jsonl", "counters.jsonl"])
def test_a_profile_that_contradicts_its_points_version_is_refused(make_run, file):
    path = make_run(n=(10_000,), k=(5,), counters=True) / file
    lines = path.read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "version": "x"})
    path.write_text("\n".join(lines))
    with pytest.raises(RunError, match=rf"{file}: point .* has version x, but"):
        load_run(path.parent)


def test_a_solve_of_no_iteration_is_refused(make_run):
    file = make_run(n=(10_000,), k=(5,)) / "measurements.jsonl"
    file.write_text(file.read_text().replace('"iterations": 20', '"iterations": 0'))
    with pytest.raises(RunError, match=r"jsonl:1: iterations is 0, not a whole number from 1"):
        load_run(file.parent)


def test_an_old_run_takes_seeds_and_init_from_its_spec(make_run):
    path = make_run()
    spec = json.loads((path / "spec.resolved.json").read_text())
    spec["solve"] = {**spec.get("solve", {}), "init": "kmeans++", "seed": 2**64 - 1}
    (path / "spec.resolved.json").write_text(json.dumps(spec))
    run = load_run(path)
    for table in (run.measurements, run.plan):
        assert set(table["init"]) == {"kmeans++"}
        assert set(table["init_seed"]) == {str(2**64 - 1)}


def test_points_of_other_seeds_are_other_problems(make_run):
    file = make_run(n=(10**4,), k=(5,)) / "measurements.jsonl"
    lines = file.read_text().splitlines()
    more = []
    for line in map(json.loads, lines):
        for seed in (1, 2):
            own = {"init": "random_points", "init_seed": seed, "data_seed": 42, "schema": 3}
            more.append(line | own | {"point": f"{line['point']}/init_seed:{seed}"})
    file.write_text("".join(json.dumps(row) + "\n" for row in more))
    run = load_run(file.parent)
    points = all_points([run], run.baseline)
    points = points[points["status"].eq("ok")]
    assert set(points["init_seed"]) == {"1", "2"}
    for point in points.itertuples():
        assert point.point[-1] == point.baseline_point[-1] == point.init_seed
    assert set(fastest(points)["init_seed"]) == {"1", "2"}


def test_a_run_that_was_resumed_on_another_machine_says_so(make_run):
    path = make_run()
    file = path / "environment.json"
    environment = json.loads(file.read_text())
    file.write_text(json.dumps(environment | {"earlier": [environment]}))
    assert load_run(path).warnings == []
    other = environment | {"host": "n2", "cpu": {"model": "Xeon", "cores": 8}}
    file.write_text(json.dumps(environment | {"earlier": [other, environment]}))
    (warning,) = load_run(path).warnings
    assert warning.endswith("began on n2 (Xeon, NVIDIA H200), and was resumed on another machine")
