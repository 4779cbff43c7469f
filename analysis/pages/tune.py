"""Writes the table of fast_auto or fast_cpu_auto: the times of each version for the measured
problems."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.measures.families import CHOOSERS
from analysis.measures.fastest import fastest
from analysis.measures.points import all_points
from analysis.model.files import RunError, printable, shown
from analysis.model.run import Run

KERNELS = Path(__file__).resolve().parents[2] / "kernels"

HEAD = """\
// Written by `python -m analysis tune`: each measured problem, version,
// threads per block (0: not read) and ms per iteration (median).
// {machine}; runs: {runs}.
"""


def file(ladder: str) -> Path:
    """The table that the ladder's chooser is built with."""
    return KERNELS / ladder / "auto" / "table.inc"


def table(runs: list[Run], ladder: str) -> str:
    """The text of a ladder's table ("fast" or "fast_cpu"), from the verified results of `runs`.
    If several runs have a problem, the last one counts, and in it the fastest tunables.

    Batches of several problems are left out: the chooser never has one. Raises RunError if the runs
    are from several machines, if one of them has several sources of points for a problem, or if
    they have no result of the ladder."""
    if ladder == "fast":
        kind, machines = "GPU", [gpu for run in runs for gpu in run.gpus]
    else:
        kind, machines = "CPU", [cpu for run in runs if (cpu := run.cpu)]
    machines = list(dict.fromkeys(machines))
    if len(machines) > 1:
        raise RunError(f"measured on {', '.join(machines)}: a table is for one {kind}")
    if not machines:
        raise RunError(f"no run names a {kind}, and the table needs one")
    problem = ["precision", "n", "k", "dim"]
    parts = []
    for run in runs:
        points = all_points([run], "")
        points = points[points["family"].eq(ladder) & points["version"].ne(CHOOSERS[ladder])]
        points = points[points["verified"].eq(True) & points["batch"].fillna(1).eq(1)]
        sources = points.groupby(problem)["data"].nunique()
        if (sources > 1).any():
            pairs = zip(problem, sources.idxmax(), strict=True)
            sizes = ", ".join(f"{axis} {value}" for axis, value in pairs)
            raise RunError(
                f"{run.path}: has {sources.max()} sources of points for {sizes}, and the table has "
                "one row for a problem"
            )
        parts.append(fastest(points))
    best = pd.concat(parts, ignore_index=True)
    if best.empty:
        raise RunError(f"no verified result of a {ladder}_ version")
    for column, known in (("version", r"[a-z0-9_]+"), ("precision", r"[a-z]+\d+")):
        # the table is C++
        for text in best.loc[~best[column].str.fullmatch(known), column]:
            raise RunError(f"{shown(text)} is not the name of a {column}; not written into a table")
    best = best.drop_duplicates([*problem, "version"], keep="last")
    best = best.sort_values([*problem, "iteration_ms"], kind="stable")
    used = [run.name for run, part in zip(runs, parts, strict=True) if len(part)]
    return HEAD.format(
        machine=printable(machines[0]), runs=", ".join(dict.fromkeys(used))
    ) + "".join(
        f'{{Precision::{p["precision"]}, {p["n"]}, {p["k"]}, {p["dim"]}, "{p["version"]}", '
        f"{0 if pd.isna(p['threads_per_block']) else p['threads_per_block']}, "
        f"{p['iteration_ms']:.3g}}},\n"
        for _, p in best.iterrows()
    )
