"""The tables of docs/scaling.md: what several GPUs are predicted to take, and what they took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from analysis.measures.gpu_model import (
    GPUS,
    LINK_GB_S,
    NODES,
    PER_NODE,
    STRONG,
    WEAK,
    Case,
    efficiency,
    iteration_ms,
    stream_efficiency,
    stream_gb_s,
)
from analysis.measures.noise import noise_note
from analysis.measures.places import require_one_place
from analysis.measures.points import all_points
from analysis.measures.stats import ratio_interval
from analysis.model.files import RunError
from analysis.model.numbers import count_text, number_text
from analysis.model.run import Run
from analysis.pages.escape import Code, Words
from analysis.pages.table import Table
from analysis.pages.tables import interval_said, interval_text, listed, time_text

PLACES = [*((gpus, 1) for gpus in GPUS), (PER_NODE, NODES)]


def predictions() -> Table:
    """Time of an iteration in ms and efficiency, by problem and number of GPUs."""
    header = ["version", "N", "K", "dim", "precision", "scaling", "1 GPU, ms"]
    places = [
        f"{gpus * nodes} GPUs" + (f" of {nodes} nodes" if nodes > 1 else "")
        for gpus, nodes in PLACES
    ]
    rows = [_row(case, weak=False) for case in STRONG] + [_row(case, weak=True) for case in WEAK]
    streamed = [_cell(stream_gb_s(*at), " GB/s", stream_efficiency(*at)) for at in PLACES]
    any_size: list[Words] = ["–"] * 3
    alone = f"{number_text(LINK_GB_S)} GB/s"
    rows.append([Code("stream_wgmma"), *any_size, "fp16", "weak", alone, *streamed])
    return Table("model", "", [*header, *places], rows, {*header[1:4], header[6], *places})


def measured(run: Run) -> Table:
    """What each point on several GPUs took, beside the model's prediction from T(1).

    T(1) is the time of the version for one GPU in the same run. A point's GPUs are those of all its
    processes. Raises RunError if the run has no such point on one host."""
    points = all_points([run], "")
    require_one_place(points, run.path)
    points = points[points["status"].eq("ok")]
    clocks = run.measurements.groupby("point")["sm_mhz"].median()
    rows, shown = [], []
    for case, weak, p in _known(_on_one_host(run, points)):
        single = _alone(points, run.parents.get(case.version, ""), case)
        if single is not None:
            rows.append(_measured_row(case, single, p, clocks, weak=weak))
            shown.append(p.name)
    if not rows:
        raise RunError(f"{run.path}: has no problem of the model on several GPUs of one host")
    sizes = ["N", "K", "dim"]
    times = ["GPUs", "T(1), ms", "T(G) expected", "measured", "longer", "efficiency", "MHz, 1 → G"]
    header = ["version", *sizes, "precision", "scaling", *times]
    intervals = interval_said(points.loc[shown, "times_ms"])
    said = [run.environment_line(), f"median of an iteration in ms {intervals}"]
    said.append("MHz: the median clock of one GPU, and of the slowest of G")
    if noise := noise_note(points.loc[shown]):
        said.append(noise.rstrip("."))
    known = {*header} - {*times}
    return Table("measured", listed(said), header, rows, {*sizes, *times}, keys=known)


def _measured_row(
    case: Case, single: pd.Series, p: pd.Series, clocks: pd.Series, *, weak: bool
) -> list[Words]:
    """`p` beside the model's prediction from `single`, the point on one GPU. `clocks` are the MHz
    of the points."""
    gpus = int(p["all_gpus"])
    expected = iteration_ms(replace(case, single_ms=single["iteration_ms"]), gpus, weak=weak)
    ratio = ratio_interval(single["times_ms"], p["times_ms"])
    share = tuple(r if weak else r / gpus for r in ratio)
    mhz = (clocks.get(of["point"]) for of in (single, p))
    return [
        Code(case.version),
        *(count_text(int(p["n"])), count_text(case.k), str(case.dim), case.precision),
        "weak" if weak else "strong",
        str(gpus),
        number_text(single["iteration_ms"]),
        number_text(expected),
        time_text(p),
        f"{p['iteration_ms'] / expected - 1:+.0%}",
        interval_text(*(100 * s for s in share), unit="%"),
        " → ".join("–" if pd.isna(m) else f"{m:,.0f}" for m in mhz),
    ]


def _on_one_host(run: Run, points: pd.DataFrame) -> pd.DataFrame:
    """The points with `all_gpus`, the GPUs of all ranks. The model is of one host, so points whose
    ranks used GPUs of another are left out."""
    gpus, ranks = (points[axis].astype("Float64").fillna(1) for axis in ("gpus", "processes"))
    here = {gpu.get("uuid") for gpu in run.environment.get("gpus") or []}
    used = run.measurements.groupby("point")["gpu_uuid"].first().dropna()
    one_host = points["point"].map(used.map(lambda uuids: here.issuperset(uuids.split(","))))
    return points.assign(all_gpus=gpus * ranks)[ranks.eq(1) | one_host.eq(True)]


def _known(points: pd.DataFrame) -> Iterator[tuple[Case, bool, pd.Series]]:
    """The points on several GPUs that the model has a case of, and whether each GPU has its n."""
    several = points[points["all_gpus"].gt(1)].sort_values("all_gpus")
    for weak, cases in ((False, STRONG), (True, WEAK)):
        for case in cases:
            same = several["version"].eq(case.version) & several["k"].eq(case.k)
            same &= several["dim"].eq(case.dim) & several["precision"].eq(case.precision)
            n = several["n"] / several["all_gpus"] if weak else several["n"]
            for _, p in several[same & n.eq(case.n)].iterrows():
                yield case, weak, p


def _alone(points: pd.DataFrame, parent: str, case: Case) -> pd.Series | None:
    """The point of the version for one GPU with the case's problem."""
    same = points["version"].eq(parent) & points["n"].eq(case.n) & points["k"].eq(case.k)
    same &= points["dim"].eq(case.dim) & points["precision"].eq(case.precision)
    return points.loc[points.loc[same, "iteration_ms"].idxmin()] if same.any() else None


def _row(case: Case, weak: bool) -> list[Words]:
    sizes = [count_text(case.n), count_text(case.k), str(case.dim), case.precision]
    cells = [_cell(iteration_ms(case, *at, weak), "", efficiency(case, *at, weak)) for at in PLACES]
    kind = "weak" if weak else "strong"
    return [Code(case.version), *sizes, kind, number_text(case.single_ms), *cells]


def _cell(value: float, unit: str, share: float) -> str:
    return f"{number_text(value)}{unit}, {share:.0%}"
