"""A table of how a run's solves converged."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.measures.convergence import TIMES, curves, solves, summary
from analysis.measures.points import Data, gather
from analysis.model.files import RunError
from analysis.model.numbers import count_text, number_text
from analysis.model.run import Run
from analysis.pages.table import Table

_WORDS = {"n": "N", "k": "K", "data_seed": "data seed"}


def convergence(run: Run) -> Table:
    """Each version, problem and kind of initial centroids: medians over its seeds and restarts.
    Raises RunError if the run has no convergence.jsonl."""
    return table_of(gather([run], run.baseline), run)


def table_of(data: Data, run: Run) -> Table:
    """The same from gathered data."""
    rows = curves(data)
    if rows.empty:
        raise RunError(f"{run.path}: no convergence.jsonl (figures: [convergence])")
    rows = summary(solves(rows))
    rows["data"] = rows["data_name"].fillna(rows["data"])
    several = [c for c in ("data", "data_seed", "precision", "init") if _several(rows, c)]
    of = ["n", "k", "dim", *several]
    header = ["version", *(_WORDS.get(c, c) for c in of), "solves", "iterations"]
    timed = rows["init_ms"].notna().any()
    restarted = rows["solves"].gt(1).any()
    header += [
        *(["init ms"] if timed else []),
        "ms a solve",
        *(["best inertia"] if restarted else []),
        "inertia",
        "above the best",
        "ms to 1%",
        "ms to 0.1%",
    ]
    lines = [
        [
            row["version"],
            *(count_text(row[c]) if c in ("n", "k", "dim") else str(row[c]) for c in of),
            str(row["solves"]),
            f"{row['iterations']:g}",
            *([number_text(row["init_ms"])] if timed else []),
            number_text(row["total_ms"]),
            *([f"{row['least_inertia']:.6g}"] if restarted else []),
            f"{row['inertia']:.6g}",
            f"{100 * row['excess']:.3g}%",
            *(_reached(row, column) for column in TIMES),
        ]
        for _, row in rows.iterrows()
    ]
    said = (
        f"{run.environment_line()}; medians over seeds and restarts; above the best inertia that "
        "any solve of the same points found; in parentheses: how many solves came that near. Time "
        "is iterations times the median time of one, without initialisation."
    )
    words = {"version", "data", "precision", "init"}
    known = {*header[: header.index("solves")]}
    return Table("convergence", said, header, lines, {*header} - words, rows, known)


def _several(rows: pd.DataFrame, column: str) -> bool:
    return column in rows and rows[column].nunique() > 1


def _reached(row: pd.Series, column: str) -> str:
    reached = int(row[f"{column}_reached"])
    if not reached:
        return "never"
    time = number_text(row[column]) if np.isfinite(row[column]) else "–"
    return time if row["solves"] == 1 else f"{time} ({reached} of {row['solves']})"
