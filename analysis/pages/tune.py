"""Writes fast_auto's table: the times of each version for the measured problems."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.measures.families import CHOOSER, OURS
from analysis.measures.points import all_points, fastest
from analysis.model.files import RunError, shown
from analysis.model.run import Run

FILE = Path(__file__).resolve().parents[2] / "kernels" / "fast" / "auto" / "table.inc"

HEAD = """\
// Written by `python -m analysis tune`: each measured problem, version,
// threads per block (0: not read) and ms per iteration (median).
// {gpu}; runs: {runs}.
"""


def table(runs: list[Run]) -> str:
    """The text of kernels/fast/auto/table.inc, from the verified results of `runs`. If several runs
    have a problem, the last one counts, and in it the fastest tunables.

    Raises RunError if the runs are from several GPUs or have no result of the family."""
    gpus = list(dict.fromkeys(gpu for run in runs for gpu in run.gpus))
    if len(gpus) > 1:
        raise RunError(f"measured on {', '.join(gpus)}: a table is for one GPU")
    if not gpus:
        raise RunError("no row names a GPU, and the table needs one")
    parts = []
    for run in runs:
        points = all_points([run], "")
        points = points[points["family"].eq(OURS) & points["version"].ne(CHOOSER)]
        parts.append(fastest(points[points["verified"].eq(True)]))
    best = pd.concat(parts, ignore_index=True)
    if best.empty:
        raise RunError(f"no verified result of a {OURS}_ version")
    problem = ["precision", "n", "k", "dim"]
    for column, known in (("version", r"[a-z0-9_]+"), ("precision", r"[a-z]+\d+")):
        # the table is C++
        for text in best.loc[~best[column].str.fullmatch(known), column]:
            raise RunError(f"{shown(text)} is not the name of a {column}; not written into a table")
    best = best.drop_duplicates([*problem, "version"], keep="last")
    best = best.sort_values([*problem, "iteration_ms"], kind="stable")
    used = [run.name for run, part in zip(runs, parts, strict=True) if len(part)]
    return HEAD.format(gpu=gpus[0], runs=", ".join(dict.fromkeys(used))) + "".join(
        f'{{Precision::{p["precision"]}, {p["n"]}, {p["k"]}, {p["dim"]}, "{p["version"]}", '
        f"{0 if pd.isna(p['threads_per_block']) else p['threads_per_block']}, "
        f"{p['iteration_ms']:.3g}}},\n"
        for _, p in best.iterrows()
    )
