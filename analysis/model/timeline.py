"""The events of a traced solve: what timeline.jsonl has of kernels, copies, calls and ranges."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.model.columns import name, number, whole
from analysis.model.files import RunError, is_there
from analysis.model.rows import read_rows
from analysis.model.run import Run

FILE = "timeline.jsonl"
EVENTS = [
    *(name("point", needed=True), name("kind", needed=True), name("name", needed=True)),
    *(name("part"), name("phase"), whole("iteration")),
    *(number("start_us", low=-1e15), number("duration_us", needed=True)),
]
"""What is read of a row of timeline.jsonl."""

ACTIVITIES = ("kernel", "copy", "memset")
"""The kinds of events that ran on the GPU."""


def events_of(run: Run, warnings: list[str] | None = None) -> pd.DataFrame:
    """The events of a run. Those of a sweep's parts are in the order of its plan. Raises RunError
    where there are none; adds to `warnings` what is amiss."""
    warnings = [] if warnings is None else warnings
    traced = [folder for folder in run.directories if is_there(folder / FILE)]
    events = [read_events(folder, warnings) for folder in traced or [run.path]]
    if len(events) == 1:
        return events[0]
    order = {point: at for at, point in enumerate(run.plan["point"])}
    joined = pd.concat(events, ignore_index=True)
    return joined.sort_values(
        "point", key=lambda ids: ids.map(order), kind="stable", ignore_index=True
    )


def read_events(run: Path, warnings: list[str]) -> pd.DataFrame:
    """The rows of timeline.jsonl. Raises RunError where there are none; adds to `warnings` what is
    amiss."""
    file = run / FILE
    if not is_there(file):
        raise RunError(f"{run}: has no {FILE}; run its spec with --profile timeline")
    return read_rows(file, EVENTS, warnings)
