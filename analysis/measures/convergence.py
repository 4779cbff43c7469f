"""How solves converge: the inertia after each iteration, over the best that was found, and when."""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.measures.fastest import fastest
from analysis.measures.points import Data
from analysis.model.run import PROBLEM

WITHIN = (0.01, 0.001)
"""How far above the best inertia a solve may be to count as converged."""
ROUNDED = ("fp16", "bf16")
"""Precisions to which the points themselves are rounded, so that they have another best inertia."""
CHOICES = ("init", "init_seed")
"""What a spec chooses about the initial centroids. It is no part of what has a best inertia."""
SAME_BEST = [column for column in PROBLEM if column not in (*CHOICES, "precision")] + ["stored"]
SERIES = ["machine", "version", "precision", "init"]
"""What a line of the figure stands for; it goes over several seeds and restarts."""


def curves(data: Data) -> pd.DataFrame:
    """A row for each iteration of each solve in convergence.jsonl, from its initial centroids
    (iteration 0) on, with the columns of its point: each version at its fastest tunables.

    `best_inertia` is the least that any solve of the same points has, `excess` what the inertia is
    above it (0.01: 1%), and `time_ms` the iterations times the median time of one."""
    rows = data.convergence
    points = fastest(data.points)
    have = [c for c in dict.fromkeys([*SERIES, *PROBLEM]) if c in points]
    of = points[["point", *have, "data_name", "iteration_ms", "init_ms"]].drop_duplicates(
        ["machine", "point"]
    )
    rows = rows.drop(columns="version").merge(of, on=["machine", "point"])
    rows = rows[rows["inertia"].notna()].copy()
    for column in ("init", "init_seed"):
        if column not in rows:
            rows[column] = ""
    rows["restart"] = rows["restart"].fillna(0).astype(int)
    rows["iteration"] = rows["iteration"].astype(int)
    rows["stored"] = rows["precision"].where(rows["precision"].isin(ROUNDED), "whole")
    same = [c for c in SAME_BEST if c in rows]
    rows["best_inertia"] = rows.groupby(same, dropna=False)["inertia"].transform("min")
    best = rows["best_inertia"].where(rows["best_inertia"] > 0)
    rows["excess"] = rows["inertia"] / best - 1
    rows["time_ms"] = rows["iteration"] * rows["iteration_ms"].astype(float)
    order = ["machine", "point", "restart", "iteration"]
    return rows.drop_duplicates(order, keep="last").sort_values(order, kind="stable")


def solves(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each solve of curves(): its iterations, time, last inertia and excess, and the time
    after which it stays within each of WITHIN (NaN: never)."""
    found = []
    for _, of in rows.groupby(["machine", "point", "restart"], sort=False):
        last = of.iloc[-1]
        row = last[
            [c for c in (*SERIES, *PROBLEM, "data_name", "restart", "stored") if c in of]
        ].to_dict()
        row |= {"iterations": last["iteration"], "total_ms": last["time_ms"]}
        row |= {"inertia": last["inertia"], "excess": last["excess"]}
        row |= {"start_excess": of["excess"].iloc[0], "init_ms": last["init_ms"]}
        for within in WITHIN:
            row[_time(within)] = _time_to(of, within)
        found.append(row)
    return pd.DataFrame(found)


def _time_to(of: pd.DataFrame, within: float) -> float:
    away = np.flatnonzero(~(of["excess"].to_numpy() <= within))
    first = away[-1] + 1 if len(away) else 0
    return float(of["time_ms"].iloc[first]) if first < len(of) else np.nan


def _time(within: float) -> str:
    return f"to_{100 * within:g}_percent_ms".replace(".", "_")


TIMES = [_time(within) for within in WITHIN]
"""The columns of solves() with the times to WITHIN."""


def summary(of_solves: pd.DataFrame) -> pd.DataFrame:
    """A row for each problem and series of solves(): how many solves, medians over them, and how
    many came within each of WITHIN. A median time counts those that never did as infinite."""
    key = [c for c in (*PROBLEM, "data_name", *SERIES) if c in of_solves and c != "init_seed"]
    rows = []
    for values, of in of_solves.groupby(list(dict.fromkeys(key)), dropna=False, sort=False):
        row = dict(zip(dict.fromkeys(key), values, strict=True))
        row |= {"solves": len(of), "iterations": of["iterations"].median()}
        row |= {"total_ms": of["total_ms"].median(), "inertia": of["inertia"].median()}
        row["least_inertia"] = of["inertia"].min()
        row |= {"excess": of["excess"].median(), "worst_excess": of["excess"].max()}
        row["start_excess"] = of["start_excess"].median()
        timed = of["init_ms"].dropna()
        row["init_ms"] = timed.median() if len(timed) else np.nan
        for time in TIMES:
            middle = of[time].fillna(np.inf).median()
            row[time] = middle if np.isfinite(middle) else np.nan
            row[f"{time}_reached"] = int(of[time].notna().sum())
        rows.append(row)
    return pd.DataFrame(rows)
