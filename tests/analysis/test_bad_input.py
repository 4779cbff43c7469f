"""Run directories as they are after a crash, a kill, an upgrade or a resume elsewhere: everything
that can be drawn is drawn, and the rest is said."""

import json
import re

import pytest
from made_runs import write_lines

from analysis.__main__ import main
from analysis.figures import FIGURES, draw
from analysis.measures.expressions import evaluate
from analysis.measures.lookup import MissingError, Place, Rows
from analysis.measures.points import gather
from analysis.model.load import load_run
from analysis.pages.report import subject


def torn(path):
    file = path / "measurements.jsonl"
    file.write_bytes(file.read_bytes()[:-40])


def half_written(path):
    for name in ("environment.json", "phases.jsonl", "counters.jsonl", "spec.resolved.json"):
        (path / name).unlink()
    file = path / "measurements.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) // 3]) + lines[-1][:9])


def no_counters(path):
    (path / "counters.jsonl").unlink()


def only_failed_counters(path):
    file = path / "counters.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, [{**row, "value": None, "reason": "ERR_NVGPUCTRPERM"} for row in rows])


def one_point(path):
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, [row for row in rows if row["point"] == rows[-1]["point"]])
    (path / "plan.json").unlink()


def zero_ok(path):
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    write_lines(file, [{**row, "status": "failed", "reason": "no luck"} for row in rows])


def no_rows(path):
    (path / "measurements.jsonl").write_text("")


def mixed_gpus(path):
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        if row["version"] in ("luigi_v3_shared_centroids", "luigi_v4_device_update"):
            row["gpu"] = "NVIDIA L4"
    write_lines(file, rows)


CASES = [torn, half_written, no_counters, only_failed_counters, one_point, zero_ok, no_rows]
CASES += [mixed_gpus]


@pytest.fixture
def full_run(make_run):
    everything = {"counters": True, "ceilings": True, "floors": True}
    few = {"threads_per_block": (128, 256), "threads": (1, 2)}
    return make_run(n=(10_000,), k=(5, 100), dim=(2, 8), **few, **everything)


@pytest.mark.parametrize("spoil", CASES, ids=lambda case: case.__name__)
def test_every_figure_is_drawn_or_says_why_not(full_run, spoil):
    spoil(full_run)
    run = load_run(full_run)
    data, about = gather([run], run.baseline), subject([run])
    for name in FIGURES:
        drawing = draw(name, data, about)
        assert (drawing.figure is None) == bool(drawing.message), name
        assert "drawn" in drawing.rows or drawing.figure is None, name


@pytest.mark.parametrize("spoil", CASES, ids=lambda case: case.__name__)
def test_the_report_table_and_claims_are_written(full_run, spoil, tmp_path, capsys):
    spoil(full_run)
    assert main(["report", str(full_run), "-o", str(tmp_path / "out")]) == 0
    assert main(["claims", str(full_run)]) == 0
    assert main(["table", "luigi", str(full_run)]) == 0
    out, err = capsys.readouterr()
    assert "cannot be judged" in out
    assert "Traceback" not in out + err


def test_rows_of_several_gpus_are_apart_and_never_compared(full_run):
    mixed_gpus(full_run)
    run = load_run(full_run)
    assert run.warnings == [
        f"{full_run}: rows of several GPUs (NVIDIA H200, NVIDIA L4); they are never compared"
    ]
    points = gather([run], run.baseline).points
    v4 = points[points["version"].eq("luigi_v4_device_update")]
    assert set(v4["machine"]) == {"NVIDIA L4"}
    # the CPU's baseline is the first machine's
    assert v4["speedup"].isna().all()
    assert points.loc[points["version"].eq("luigi_v1_fused"), "speedup"].notna().all()
    with pytest.raises(MissingError, match="rows of several GPUs, which are not compared"):
        evaluate("time('luigi_v1_fused')", Rows(run), Place(n=10_000, k=5, dim=2))


def test_of_several_directories_those_that_can_be_read_are_drawn(
    full_run, make_run, tmp_path, capsys
):
    broken = make_run("broken", n=(10_000,), k=(5,))
    (broken / "plan.json").write_text("{")
    out = tmp_path / "figures"
    assert main(["figures", str(full_run), str(broken), "--only", "noise", "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert re.search(r"not read: .*plan\.json: not valid JSON", err)
    assert (out / "noise.svg").is_file()


def test_a_million_rows_are_read_and_drawn(make_run, tmp_path):
    # 1,000 points of 1,000 samples, built from the text of one row: writing them must not dominate
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    row = next(row for row in rows if row["version"] == "luigi_v1_fused")
    base = next(row for row in rows if row["version"] == "cpu_sequential")
    with file.open("w") as lines:
        for point in range(1000):
            of = {**(base if point < 100 else row), "n": 1000 + 10 * (point % 100)}
            of |= {"point": f"p{point}", "threads_per_block": 32 * (point // 100) or None}
            of |= {"iteration_ms": "TIME", "repetition": "TURN", "repetitions": 1000}
            text = json.dumps({k: v for k, v in of.items() if v is not None}) + "\n"
            for turn in range(1000):
                time = 1 + ((turn * 7919 + point) % 1000) / 1e5
                lines.write(text.replace('"TIME"', f"{time:.5f}").replace('"TURN"', str(turn)))
    (path / "plan.json").unlink()
    assert main(["figures", str(path), "--only", "speedup,tpb,noise,phases"]) == 0
    table = (path / "figures" / "noise.csv").read_text().splitlines()
    assert len(table) == 1001
