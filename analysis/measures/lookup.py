"""Finds the value of a version for a problem in one run."""

from __future__ import annotations

import zlib
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.measures.places import PLACE, place_text
from analysis.measures.points import all_points
from analysis.measures.quantity import MissingError, Quantity
from analysis.measures.speedups import BEST_CPU
from analysis.measures.stats import Samples, draws, units
from analysis.model.files import RunError
from analysis.model.numbers import count_text
from analysis.model.run import PROBLEM, Run
from analysis.model.timeline import ACTIVITIES, events_of
from analysis.model.words import AXES

ASKED = (
    "version",
    "n",
    "k",
    "dim",
    "data",
    "precision",
    "point",
    "status",
    "reason",
    "iteration_ms",
)
"""The columns by which points are found."""

FEWEST = 6
"""The samples that a 95% interval of a median needs."""


class Place(NamedTuple):
    """A problem, which selects points of a run. None allows any value, if there is only one."""

    n: int | None = None
    k: int | None = None
    dim: int | None = None
    data: str | None = None
    precision: str | None = None
    iterations: int | None = None


class Rows:
    """Looks up values in one run. A ratio never mixes two runs."""

    def __init__(self, run: Run):
        self.run = run
        self.points = all_points([run], run.baseline)
        self.by_point = dict(list(run.measurements.groupby("point", sort=False)))
        self._several_gpus = len(run.gpus) > 1
        # a report makes about ten thousand look-ups, and plain records are a hundred times faster
        # than a frame
        columns = [c for c in dict.fromkeys([*ASKED, *AXES]) if c in self.points]
        plain = self.points[columns].astype(object)
        plain = plain.where(plain.notna(), None).assign(at=self.points.index)
        self._by_version: dict[str, list[dict]] = {}
        for record in plain.to_dict("records"):
            self._by_version.setdefault(record["version"], []).append(record)

    def point(self, version: str, place: Place, **axes: int) -> pd.Series:
        """The ok point of `version` at `place`, with the fastest values of tunables that are not in
        `axes`.

        `place.data` may name alternatives, `a|b`. Each is the beginning of a description of data,
        and the first one that exists counts. Raises MissingError."""
        if self._several_gpus:
            raise MissingError(f"{self.run.name}: rows of several GPUs, which are not compared")
        points = self._by_version.get(version, [])
        wanted = {**place._asdict(), **axes}
        data = wanted.pop("data")
        iterations = wanted.pop("iterations")
        said = _said(version, wanted, data)
        for column, value in wanted.items():
            if value is not None:
                points = [p for p in points if p[column] == value]
        for start in (data or "").split("|"):
            found = [p for p in points if str(p["data"]).startswith(start)]
            if found:
                break
        if not found:
            raise MissingError(f"{said}: no row")
        ok = [p for p in found if p["status"] == "ok"]
        if not ok:
            raise MissingError(f"{said}: {found[0]['status']}, {found[0]['reason']}")
        if iterations is not None:
            # the time of a solve depends on its iterations, so their number must match
            done = [self.by_point[p["point"]]["iterations"].iloc[0] for p in ok]
            ok = [p for p, count in zip(ok, done, strict=True) if count == iterations]
            if not ok:
                raise MissingError(f"{said}: {done[0]} iterations, not {iterations}")
        for column in ("n", "k", "dim", "data", "precision"):
            kinds = list(dict.fromkeys(str(p[column]) for p in ok))
            if len(kinds) > 1:
                raise MissingError(f"{said}: several {column} ({', '.join(kinds)}), none named")
        return self.points.loc[min(ok, key=lambda p: p["iteration_ms"])["at"]]

    def median(self, point: pd.Series, column: str) -> Quantity:
        """The median of a point's samples of `column` (a time of measurements.jsonl, in ms)."""
        rows = self.by_point[point["point"]]
        rows = rows[rows[column].notna()]
        name = point["point"]
        if rows.empty or not rows[column].gt(0).all():
            raise MissingError(f"{name}: no {column}")
        launches = rows.groupby(units(rows), sort=False)[column]
        samples = Samples(tuple(np.sort(of.to_numpy(float)) for _, of in launches))
        parallel, places = _parallel(point), frozenset([place_text(point)])
        if not samples.has_interval:
            count = f"{len(samples)} sample{'' if len(samples) == 1 else 's'}"
            why = f"{point['version']} has {count}, an interval needs {FEWEST}"
            return Quantity(samples.median, None, why, parallel=parallel, places=places)
        stream = zlib.crc32(f"{name} {column}".encode())
        return Quantity(samples.median, draws(samples, stream), parallel=parallel, places=places)

    def baseline_of(self, point: pd.Series, place: Place) -> pd.Series:
        """The baseline's point for the problem of `point`, in the same precision, else in fp32."""
        if not self.run.baseline:
            raise MissingError("the spec names no baseline")
        if self.run.baseline == BEST_CPU:
            found = self.points[self.points["point"].eq(point["baseline_point"])]
            if found.empty:
                raise MissingError(f"{point['point']}: {point['reason']}")
            return found.iloc[0]
        same = place._replace(
            n=point["n"], k=point["k"], dim=point["dim"], data=point["data"], precision=None
        )
        for precision in (point["precision"], "fp32"):
            try:
                return self.point(self.run.baseline, same._replace(precision=precision))
            except MissingError as error:
                missing = error
        raise missing

    def fastest_cpu(self, point: pd.Series, column: str) -> pd.Series:
        """The CPU version with the least median of `column` among those that were verified on the
        problem of `point`, in its precision or else in fp32. Raises MissingError."""
        points = self.points[self.points["backend"].eq("cpu") & self.points["verified"].eq(True)]
        for axis in ("machine", PLACE, *(axis for axis in PROBLEM if axis != "precision")):
            same = points[axis].eq(point[axis]) | (points[axis].isna() & pd.isna(point[axis]))
            points = points[same]
        for precision in (point["precision"], "fp32"):
            same = points[points["precision"].eq(precision) & points["status"].eq("ok")]
            if len(same):
                times = [self.median(row, column).value for _, row in same.iterrows()]
                return same.iloc[int(np.argmin(times))]
        raise MissingError(f"{point['point']}: no verified CPU version solved its problem")

    def counters(self, point: pd.Series) -> pd.DataFrame:
        """The point's rows of counters.jsonl that have a value."""
        rows = self.run.counters
        rows = rows[rows["point"].eq(point["point"])]
        if rows.empty:
            raise MissingError(f"{point['point']}: no counters")
        return rows[rows["value"].notna()]

    def activities(self, point: pd.Series) -> pd.DataFrame:
        """What ran on the GPU in the loop of the point's traced solve: kernels, copies and memsets
        with their `name` and `duration_us`."""
        events = self._events
        mine = events[
            events["point"].eq(point["point"])
            & events["part"].eq("solve")
            & events["kind"].isin(ACTIVITIES)
        ]
        if mine.empty:
            raise MissingError(f"{point['point']}: no timeline")
        return mine

    @cached_property
    def _events(self) -> pd.DataFrame:
        try:
            return events_of(self.run)
        except RunError:
            return pd.DataFrame(columns=["point", "part", "kind", "name", "duration_us"])


def _parallel(point: pd.Series) -> frozenset[str]:
    """`cpu_mpi_openmp has 4 ranks of 16 threads`. Empty for one thread, and for a GPU version."""
    threads, ranks = (
        1 if pd.isna(point[axis]) else int(point[axis]) for axis in ("threads", "processes")
    )
    if point["backend"] != "cpu" or threads * ranks == 1:
        return frozenset()
    words = [f"{ranks} ranks"] * (ranks > 1) + [f"{threads} threads"] * (threads > 1)
    return frozenset([f"{point['version']} has {' of '.join(words)}"])


def _said(version: str, wanted: dict, data: str | None) -> str:
    words = [
        f"{axis}={value if isinstance(value, str) else count_text(value)}"
        for axis, value in wanted.items()
        if value is not None
    ]
    return " ".join([version, *words, *([f"data {data}"] if data else [])])
