"""The events of a traced solve: what timeline.jsonl has of kernels, copies, calls and ranges."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.model.columns import name, number, whole
from analysis.model.files import RunError, is_there
from analysis.model.rows import read_rows

EVENTS = [
    *(name("point", needed=True), name("kind", needed=True), name("name", needed=True)),
    *(name("part"), name("phase"), whole("iteration")),
    *(number("start_us", low=-1e15), number("duration_us", needed=True)),
]
"""What is read of a row of timeline.jsonl."""

ACTIVITIES = ("kernel", "copy", "memset")
"""The kinds of events that ran on the GPU."""


def read_events(run: Path, warnings: list[str]) -> pd.DataFrame:
    """The rows of timeline.jsonl. Raises RunError where there are none; adds to `warnings` what is
    amiss."""
    file = run / "timeline.jsonl"
    if not is_there(file):
        raise RunError(f"{run}: has no timeline.jsonl; run its spec with --profile timeline")
    return read_rows(file, EVENTS, warnings)
