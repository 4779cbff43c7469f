"""The table of recorded runs: what each took, and what came out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from analysis.model.recorded import rows_of, seconds_of
from analysis.pages.escape import Code, Words
from analysis.pages.table import Table

HEADER = ["machine", "spec", "points", "ok", "others", "minutes", "commit", "date"]


def recorded_runs(runs: list[Path]) -> Table:
    """One row for each run directory, by the folder that it is in and by its own name.

    A point has the status of its last row. `minutes` is the time from the first row to the last."""
    rows = [_row(run) for run in sorted(runs, key=lambda run: (run.parent.name, run.name))]
    return Table("recordings", "", HEADER, rows, {"points", "ok", "minutes"})


def _row(run: Path) -> list[Words]:
    status = {row["point"]: row["status"] for row in rows_of(run / "measurements.jsonl")}
    count = Counter(status.values())
    ok = count.pop("ok", 0)
    others = ", ".join(f"{count[name]} {name}" for name in sorted(count))
    environment = json.loads((run / "environment.json").read_text(encoding="utf-8"))
    commit = str((environment.get("build") or {}).get("commit") or "–")[:10]
    minutes = f"{(seconds_of(run) or 0) / 60:.1f}"
    date = str(environment.get("t_utc") or "–")[:10]
    counts = [str(len(status)), str(ok), others]
    return [run.parent.name, Code(run.name), *counts, minutes, commit, date]
