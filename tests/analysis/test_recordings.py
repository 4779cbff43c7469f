"""The table of recorded runs."""

import json

from analysis.pages.recordings import recorded_runs


def write_run(folder, rows, **environment):
    folder.mkdir(parents=True)
    (folder / "environment.json").write_text(json.dumps(environment))
    (folder / "measurements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def row(point, status, time):
    return {"point": point, "status": status, "t_utc": f"2026-01-01T00:{time}.000Z"}


def test_a_row_counts_points_by_their_last_status(tmp_path):
    rows = [row("a", "ok", "00:00"), row("a", "ok", "01:00"), row("b", "failed", "02:00")]
    rows += [row("b", "ok", "03:00"), row("c", "unsupported", "03:30"), row("d", "failed", "03:30")]
    late = write_run(
        tmp_path / "gpu" / "k5",
        rows,
        t_utc="2026-01-01T00:00:00Z",
        build={"commit": "0123456789abcdef"},
    )
    first = write_run(tmp_path / "cpu" / "k5", [row("a", "ok", "00:00")], build=None)
    table = recorded_runs([late, first], tmp_path)
    assert table.markdown().splitlines()[-2:] == [
        "| cpu | `k5` | 1 | 1 |  | 0.0 | – | – |  |",
        "| gpu | `k5` | 4 | 2 | 1 failed, 1 unsupported | 3.5 | 0123456789 | 2026-01-01 |  |",
    ]


def test_a_row_tells_options_and_whether_the_spec_has_changed(tmp_path):
    run = write_run(tmp_path / "gpu" / "k5", [row("a", "ok", "00:00")], build=None)
    asked = {"set": ["n=1e4,1e5"], "only": [], "filter": "/gpus:(1|2)/"}
    (run / "plan.json").write_text(json.dumps({"overrides": asked}))
    (run / "spec.yaml").write_text("name: k5  # as it was\naxes: {n: 10}\n")
    (tmp_path / "k5.yaml").write_text("name: k5\naxes: {n: 10}\n")
    last = recorded_runs([run], tmp_path).markdown().splitlines()[-1]
    assert last.startswith("| gpu | `k5` | 1 | 1 |")
    assert last.endswith("| `--set n=1e4,1e5 --filter '/gpus:(1\\|2)/'` |")
    (tmp_path / "k5.yaml").write_text("name: k5\naxes: {n: 20}\n")
    last = recorded_runs([run], tmp_path).markdown().splitlines()[-1]
    assert last.startswith("| gpu | `k5` \\* | ")
