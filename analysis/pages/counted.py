"""A table of a run's counters, with one line for each phase of each point."""

from __future__ import annotations

import pandas as pd

from analysis.model.files import RunError
from analysis.model.numbers import count_text, number_text
from analysis.model.run import Run
from analysis.pages.table import Table

_UNITS = {
    "percent": (1.0, "%"),
    "byte": (1e-6, "MB"),
    "nanosecond": (1e-6, "ms"),
    "second": (1e3, "ms"),
    "byte/second": (1e-9, "GB/s"),
    "gpc_cycle/second": (1e-6, "MHz"),
}
"""The factor and the unit that the table shows for a CUPTI unit. Others are shown as they are."""


def phases(run: Run) -> Table:
    """A table of every metric, for each phase of each point with counters. A value is the mean
    over all calls of the phase. Raises RunError if the run has no counters."""
    rows = run.counters
    points = run.measurements.drop_duplicates("point").set_index("point")
    rows = rows[rows["kernel"].isna() & rows["value"].notna() & rows["point"].isin(points.index)]
    if rows.empty:
        raise RunError(f"{run.path}: no counters of phases (profile: {{counters: …}})")
    metrics = list(dict.fromkeys(rows["metric"]))
    units = {m: str(rows.loc[rows["metric"].eq(m), "unit"].iloc[0]) for m in metrics}
    header = ["version", "precision", "N", "K", "dim", "phase"]
    header += [f"{_short(m)}, {_UNITS.get(units[m], (1, units[m]))[1]}" for m in metrics]
    lines = []
    for (point, phase), of in rows.groupby(["point", "phase"], sort=False):
        p = points.loc[point]
        values = of.drop_duplicates("metric").set_index("metric")["value"]
        line = [p["version"], p["precision"], count_text(p["n"]), count_text(p["k"]), str(p["dim"])]
        lines.append([*line, phase, *(_value(values.get(m), units[m]) for m in metrics)])
    said = f"{run.environment_line()}; CUPTI's counters, mean of a phase's calls."
    words = {"version", "precision", "phase"}
    known = {*header[: header.index("phase") + 1]}
    return Table("counters", said, header, lines, {*header} - words, keys=known)


def _value(value: float | None, unit: str) -> str:
    return (
        "–" if value is None or pd.isna(value) else number_text(value * _UNITS.get(unit, (1,))[0])
    )


def _short(metric: str) -> str:
    """Shortens `dram__throughput.avg.pct_of_peak_sustained_elapsed` to `dram__throughput`. A rate
    keeps its `per_second`."""
    name, *rest = metric.split(".")
    return f"{name} per second" if rest and rest[-1] == "per_second" else name
