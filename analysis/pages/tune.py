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

PROBLEM = ["precision", "n", "k", "dim"]
"""What the table tells problems apart by."""

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
    machine = _machine(runs, ladder)
    parts = [_fastest(run, ladder) for run in runs]
    best = pd.concat(parts, ignore_index=True)
    if best.empty:
        raise RunError(f"no verified result of a {ladder}_ version")
    _require_names(best)
    best = best.drop_duplicates([*PROBLEM, "version"], keep="last")
    best = best.sort_values([*PROBLEM, "iteration_ms"], kind="stable")
    used = [run.name for run, part in zip(runs, parts, strict=True) if len(part)]
    head = HEAD.format(machine=printable(machine), runs=", ".join(dict.fromkeys(used)))
    return head + "".join(_line(point) for _, point in best.iterrows())


def _machine(runs: list[Run], ladder: str) -> str:
    """The one GPU or CPU that the runs are from."""
    if ladder == "fast":
        kind, machines = "GPU", [gpu for run in runs for gpu in run.gpus]
    else:
        kind, machines = "CPU", [cpu for run in runs if (cpu := run.cpu)]
    machines = list(dict.fromkeys(machines))
    if len(machines) > 1:
        raise RunError(f"measured on {', '.join(machines)}: a table is for one {kind}")
    if not machines:
        raise RunError(f"no run names a {kind}, and the table needs one")
    return machines[0]


def _fastest(run: Run, ladder: str) -> pd.DataFrame:
    """The verified points of the ladder's versions, but not of its chooser, at their fastest
    tunables."""
    points = all_points([run], "")
    points = points[points["family"].eq(ladder) & points["version"].ne(CHOOSERS[ladder])]
    points = points[points["verified"].eq(True) & points["batch"].fillna(1).eq(1)]
    sources = points.groupby(PROBLEM)["data"].nunique()
    if (sources > 1).any():
        pairs = zip(PROBLEM, sources.idxmax(), strict=True)
        sizes = ", ".join(f"{axis} {value}" for axis, value in pairs)
        raise RunError(
            f"{run.path}: has {sources.max()} sources of points for {sizes}, and the table has "
            "one row for a problem"
        )
    return fastest(points)


def _require_names(best: pd.DataFrame) -> None:
    """Raises RunError for a text of a run that is not a plain name, because the table is C++."""
    for column, known in (("version", r"[a-z0-9_]+"), ("precision", r"[a-z]+\d+")):
        for text in best.loc[~best[column].str.fullmatch(known), column]:
            raise RunError(f"{shown(text)} is not the name of a {column}; not written into a table")


def _line(point: pd.Series) -> str:
    block = point["threads_per_block"]
    problem = ", ".join(str(point[column]) for column in PROBLEM)
    cells = f'{problem}, "{point["version"]}", {0 if pd.isna(block) else block}'
    return f"{{Precision::{cells}, {point['iteration_ms']:.3g}}},\n"
