"""The map of the fastest versions: its cells, peers and what a chooser loses."""

import json

import pytest
from drawn import drawing_of, words
from made_runs import write_lines

from analysis.model.numbers import number_text


def test_the_fastest_version_of_each_cell_and_what_the_best_peer_takes(make_run, tmp_path):
    path = make_run(n=(10**5, 10**6), k=(5, 100), floors=True, threads_per_block=(256,))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        # a peer three times as fast as luigi_v1, in tf32; a chooser that loses a tenth of what it
        # may choose, and is not compared with the rest
        if row["version"] == "luigi_v1_fused":
            row.update({"version": "peer_it", "family": "peer", "precision": "tf32"})
            row["iteration_ms"] /= 3
            row["point"] = row["point"].replace("luigi_v1_fused", "peer_it")
        if row["version"] == "luigi_v4_device_update":
            row["family"] = "fast"
        if row["version"] == "luigi_v2_split":
            best = {
                r["repetition"]: r
                for r in rows
                if r["version"] == "luigi_v4_device_update"
                and (r["n"], r["k"]) == (row["n"], row["k"])
            }
            row.update({"version": "fast_auto", "family": "fast"})
            row["iteration_ms"] = 1.1 * best[row["repetition"]]["iteration_ms"]
            row["point"] = row["point"].replace("luigi_v2_split", "fast_auto")
    write_lines(file, rows)
    (path / "plan.json").unlink()
    drawing = drawing_of(path, "fastest")
    cells = drawing.rows[drawing.rows["drawn"]].set_index(["n", "k"])
    assert len(cells) == 4
    cell = cells.loc[(10**6, 100)]
    assert cell["version"] == "luigi_v4_device_update"
    assert cell["best_peer"] == "peer_it"
    peer = drawing.rows[drawing.rows["version"].eq("peer_it")].set_index(["n", "k"])
    times = peer.loc[(10**6, 100), "iteration_ms"] / cell["iteration_ms"]
    assert cell["peer_over_it"] == pytest.approx(times)
    assert cell["times_the_floor"] == pytest.approx(cell["iteration_ms"] / cell["floor_ms"])
    said = " ".join(words(drawing))
    assert f"peer {number_text(times)}×" in said
    assert (
        "fast_auto takes 1.10 times as long as the fastest version that it chooses from: the "
        "median of 4 cells; 1.10 times at most."
    ) in said


def test_a_chooser_has_a_cell_where_what_it_chose_was_not_measured(make_run):
    path = make_run(n=(10**5,), k=(5, 100), threads_per_block=(256,))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        name = "fast_auto" if row["version"] == "luigi_v4_device_update" else row["version"]
        measured = row["k"] == 100
        chosen = "luigi_v2_split/threads_per_block:256" if measured else "fast_grid"
        row["point"] = row["point"].replace(row["version"], name)
        row.update({"version": name, "chosen": chosen if name == "fast_auto" else None})
        row["iteration_ms"] *= 0.01 if name == "fast_auto" else 1
    write_lines(file, rows)
    (path / "plan.json").unlink()
    drawing = drawing_of(path, "fastest")
    cells = drawing.rows[drawing.rows["drawn"]].set_index("k")["version"]
    assert cells[5] == "fast_auto"
    assert cells[100] != "fast_auto"


def test_batches_are_cells_of_their_own(make_run):
    path = make_run(n=(10**5,), k=(5,), threads_per_block=(256,))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in [*rows]:
        name = f"{row['point']}/batch:8"
        rows.append({**row, "batch": 8, "point": name, "iteration_ms": 9 * row["iteration_ms"]})
    write_lines(file, rows)
    (path / "plan.json").unlink()
    drawing = drawing_of(path, "fastest")
    cells = drawing.rows[drawing.rows["drawn"]].set_index("batch")["iteration_ms"]
    assert cells[8] == pytest.approx(9 * cells[1])
    assert "batch 8" in " ".join(words(drawing))


@pytest.mark.parametrize(
    ("peer", "floors", "said"),
    [
        (False, False, "that version and its time."),
        (False, True, "that version, its time and the floor as a part of it."),
        (True, False, "that version, its time and the best peer's time as a multiple of it."),
        (
            True,
            True,
            "that version, its time, the best peer's time as a multiple of it and the floor as a "
            "part of it.",
        ),
    ],
)
def test_the_note_names_only_what_the_cells_show(make_run, peer, floors, said):
    path = make_run(n=(10**5,), k=(5,), floors=floors, threads_per_block=(256,))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        if peer and row["version"] == "luigi_v1_fused":
            row.update({"version": "peer_it", "family": "peer"})
            row["point"] = row["point"].replace("luigi_v1_fused", "peer_it")
    write_lines(file, rows)
    (path / "plan.json").unlink()
    assert f"In a cell: {said}" in " ".join(words(drawing_of(path, "fastest")))
