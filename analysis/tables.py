"""Markdown tables of points."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.derive import fastest
from analysis.load import AXES, Run
from analysis.style import count_text, number_text


def markdown(header: list[str], rows: list[list[str]], numeric: set[str]) -> str:
    """A table with the columns in `numeric` flush right; cells are escaped."""
    rule = ["---:" if name in numeric else "---" for name in header]
    cells = [header, rule, *([_escape(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"


def interval_text(value: float, low: float, high: float, unit: str = "") -> str:
    """`1.23 [1.20, 1.31]`; the value alone where it has no interval; a dash where there is no
    value.
    """
    if not np.isfinite(value):
        return "–"
    text = number_text(value) + unit
    if np.isfinite(low) and np.isfinite(high) and low != high:
        text += f" [{number_text(low)}, {number_text(high)}]"
    return text


def every_point(points: pd.DataFrame) -> str:
    """All points with a result, in order of N, K, dim, the plan's of versions: medians (ms) and
    speedups, with 95% intervals.
    """
    ok = points[points["status"] == "ok"].sort_values(["dim", "k", "n"], kind="stable")
    axes = [axis for axis in AXES if ok[axis].notna().any()]
    several = ["precision"] if ok["precision"].nunique() > 1 else []
    header = ["N", "K", "dim", "version", *(_words(a) for a in axes), *several]
    header += ["samples", "ms per iteration", "speedup"]
    rows = []
    for _, p in ok.iterrows():
        rows.append(
            [
                *(count_text(p["n"]), count_text(p["k"]), str(p["dim"]), p["version"]),
                *(_count(p[a]) for a in axes),
                *(str(p[c]) for c in several),
                *(str(p["samples"]), _time(p), _speedup(p)),
            ]
        )
    return markdown(header, rows, {*header} - {"version", "precision"})


def headline(run: Run, points: pd.DataFrame) -> str:
    """The table for a README: each version at its fastest tunables, for each K (and dim) at the
    largest N that the baseline has (the largest of all without a baseline), preceded by a line that
    says what was measured on what.
    """
    fast = fastest(points)
    compared = fast[fast["speedup"].notna()]
    problem = ["k", "dim"]
    largest = (compared if len(compared) else points).groupby(problem)["n"].max()
    chosen = []
    for (k, dim), n in largest.items():
        here = points[points["n"].eq(n) & points["k"].eq(k) & points["dim"].eq(dim)]
        for version in dict.fromkeys(here["version"]):
            found = fast[fast.index.isin(here.index) & fast["version"].eq(version)]
            # a version without any result keeps its line and says why
            rows_of = found if len(found) else here[here["version"] == version][:1]
            chosen += [row for _, row in rows_of.iterrows()]
    varying = [c for c in ("n", "k", "dim") if len({p[c] for p in chosen}) > 1]
    axes = [a for a in ("threads_per_block", "threads") if any(pd.notna(p[a]) for p in chosen)]
    several = ["precision"] if len({p["precision"] for p in chosen}) > 1 else []
    header = [
        *(c if c == "dim" else c.upper() for c in varying),
        "version",
        *several,
        *(_words(a) for a in axes),
    ]
    header += ["ms per iteration", "speedup"]
    rows = [
        [
            *(count_text(p[c]) for c in varying),
            f"`{p['version']}`",
            *(str(p[c]) for c in several),
            *(_count(p[a]) if p["status"] == "ok" else "" for a in axes),
            *([_time(p), _speedup(p)] if p["status"] == "ok" else [_why_not(p), ""]),
        ]
        for p in chosen
    ]
    fixed = [
        f"{c if c == 'dim' else c.upper()} = {count_text(chosen[0][c])}"
        for c in ("n", "k", "dim")
        if chosen and c not in varying
    ]
    samples = [p["samples"] for p in chosen if p["status"] == "ok"]
    said = [*fixed, run.environment_line()]
    if samples:
        least = "" if min(samples) == max(samples) else "at least "
        said.append(f"median of {least}{min(samples)} samples [95% interval]")
    if run.baseline:
        said.append(f"speedup over `{run.baseline}`")
    return "; ".join(said) + ".\n\n" + markdown(header, rows, {*header} - {"version", "precision"})


def _escape(cell: str) -> str:
    return " ".join(str(cell).replace("|", "\\|").split())


def _words(axis: str) -> str:
    return axis.replace("_", " ")


def _count(value: object) -> str:
    return "" if pd.isna(value) else count_text(value)


def _time(p: pd.Series) -> str:
    return interval_text(p["iteration_ms"], p["iteration_ms_low"], p["iteration_ms_high"])


def _speedup(p: pd.Series) -> str:
    return interval_text(p["speedup"], p["speedup_low"], p["speedup_high"], "×")


def _why_not(p: pd.Series) -> str:
    return f"{p['status']}: {p['reason']}" if pd.notna(p["reason"]) else str(p["status"])


def versions(listed: list[dict]) -> str:
    """A Markdown table of the versions in `listed` (run_experiment --list-versions --json), the
    CPU's first, then family by family."""
    rows = ["| version | from | idea |", "| --- | --- | --- |"]
    for version in sorted(listed, key=lambda v: (v["family"] != "cpu", v["family"])):
        cells = (f"`{version['name']}`", version["study"] or "this project", version["summary"])
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"
