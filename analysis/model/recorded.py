"""What the files of a run directory say, without loading it as a Run: that takes seconds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from analysis.model.groups import expanded, is_group


def rows_of(file: Path) -> Iterator[dict]:
    """The rows of a measurements.jsonl, compacted or not. No rows if there is no such file."""
    if not file.exists():
        return
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # the last line of a run that was killed
        yield from expanded(row) if is_group(row) else [row]


def seconds_of(run: Path) -> float | None:
    """What a run took: from its first row to its last."""
    times = [row["t_utc"] for row in rows_of(run / "measurements.jsonl") if row.get("t_utc")]
    if not times:
        return None
    first, last = (datetime.fromisoformat(end(times).replace("Z", "+00:00")) for end in (min, max))
    return (last - first).total_seconds()
