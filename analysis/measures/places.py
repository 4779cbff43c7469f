"""The machine of a point, and the host or node: only points of one place are compared."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd

from analysis.model.files import RunError, printable
from analysis.model.run import PROBLEM_BUT_PRECISION, Run

PLACE = "measured_at"
"""The column with the run that measured a point and the host, as far as its rows tell (see
places_of). It is a key of every ratio."""


def machine_labels(runs: list[Run]) -> list[str]:
    """A label for each run, which separates runs that must not be mixed.

    Runs of one machine share its name and are drawn together. If they measured the same point,
    the ends of their paths are added that tell them apart, because samples of different runs are
    never pooled.
    """
    labels = [run.machine for run in runs]
    measured = [set(run.measurements["point"]) for run in runs]
    clashing = {
        label
        for i, label in enumerate(labels)
        for j in range(i)
        if labels[j] == label and measured[i] & measured[j]
    }
    ends = _distinct_ends([run.path.resolve() for run in runs])
    return [
        f"{label}, {printable(end)}" if label in clashing else label
        for label, end in zip(labels, ends, strict=True)
    ]


def _distinct_ends(paths: list[Path]) -> list[str]:
    """The ends of the paths, of one length and as short as tells them apart."""
    for length in itertools.count(1):
        ends = ["/".join(path.parts[-length:]) for path in paths]
        if len({*ends}) == len({*paths}):
            return ends  # at the latest when they are whole


def machine_of(run: Run, label: str, rows: pd.DataFrame) -> pd.Series:
    """The machine of each row: the label of its run. If the run has several GPUs, the GPU of the
    row's point, else that of its node, else the label. If its nodes have several CPUs, that of the
    node."""
    machines = run.machines
    if len(run.gpus) < 2 and len({*machines.values()}) < 2:
        return pd.Series(label, index=rows.index, dtype=object)
    of = run.measurements.drop_duplicates("point").set_index("point")
    named = of["gpu"] if len(run.gpus) > 1 else pd.Series(dtype=object)
    nodes = rows["point"].map(of["node"]).map(machines)
    return rows["point"].map(named).astype(object).fillna(nodes).fillna(label)


def places_of(run: Run, points: pd.Series) -> pd.Series:
    """Where each point was measured: its node, else its host.

    Virtual machines often share a host's name. So where rows of one host and part have several
    GPUs, as after a run was resumed elsewhere, the GPU is added; CPU rows do not say which host it
    was. A node has one place whatever its GPU is."""
    rows = run.measurements.drop_duplicates("point", keep="last").set_index("point")
    named = rows["node"].fillna(rows["host"]).fillna("")
    gpu = rows["gpu_uuid"].str.split(",").str[0]
    several = gpu.groupby([named, rows["shard"].fillna("")]).transform("nunique").gt(1)
    split = several & rows["node"].isna()
    named = named.where(~split, named + " with " + gpu.fillna("an unknown GPU"))
    return points.map(named).fillna("")


def require_one_place(points: pd.DataFrame, path: Path) -> None:
    """Raises RunError if ok points of one problem are of several machines or places: their times
    are not compared."""
    ok = points[points["status"].eq("ok")]
    for _, of in ok.groupby(PROBLEM_BUT_PRECISION, dropna=False, sort=False):
        each = of.drop_duplicates(["machine", PLACE])
        found = list(dict.fromkeys(place_text(point) for _, point in each.iterrows()))
        if len(found) > 1:
            raise RunError(
                f"{path}: one problem was measured on {' and on '.join(found)}, whose times are "
                "not compared"
            )


def place_text(point: pd.Series) -> str:
    """The machine and the place of a point, in words."""
    where = point[PLACE].partition(":")[2]
    return f"{point['machine']} ({where})" if where else str(point["machine"])
