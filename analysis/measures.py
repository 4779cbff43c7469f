"""What can be read from a run's rows, with its uncertainty: the words of claims and of published
tables."""

from __future__ import annotations

import ast
import operator
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.derive import all_points
from analysis.kernels import DURATION, OPERATIONS, by_kernel, calls, seconds
from analysis.load import AXES, Run
from analysis.stats import CONFIDENCE, Samples, draws
from analysis.style import count_text

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
"""Columns that a point is found by."""
FEWEST = 6
"""Samples that an interval of a median needs at 95%."""


class MissingError(Exception):
    """The rows that would answer are not there; the message says which."""


class ExpressionError(Exception):
    """The expression itself is wrong, whatever the rows."""


@dataclass(frozen=True)
class Quantity:
    """A value with `draws` of its bootstrap distribution, which arithmetic carries along.

    Draws of one point are the same wherever they are used, those of two points independent. `draws`
    is None where there is no interval: `why` says so, unless `exact` says what it is to be taken
    for without one: "profiled" (phases, counters), "counted", "measured ceiling". `bases` are the
    clocks that it was timed by."""

    value: float
    draws: np.ndarray | None = None
    why: str = ""
    exact: str = ""
    bases: frozenset[str] = frozenset()

    def interval(self) -> tuple[float, float]:
        """The ends of the 95% percentile interval; NaN where there is none."""
        if self.draws is None:
            return np.nan, np.nan
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(self.draws, [tail, 1 - tail])
        return float(low), float(high)


def combine(function: Callable, *parts: Quantity | float) -> Quantity | float:
    """function(parts), on the values and draw by draw; a plain number of plain numbers."""
    measured = [part for part in parts if isinstance(part, Quantity)]
    if not measured:
        return function(*parts)
    value = float(function(*(p.value if isinstance(p, Quantity) else p for p in parts)))
    lacking = [p.why for p in measured if p.draws is None and not p.exact]
    draws = None
    if not lacking and any(p.draws is not None for p in measured):
        draws = function(
            *(
                p if not isinstance(p, Quantity) else p.value if p.draws is None else p.draws
                for p in parts
            )
        )
    return Quantity(
        value,
        draws,
        "; ".join(dict.fromkeys(lacking)),
        measured[0].exact if all(p.exact for p in measured) else "",
        frozenset().union(*(p.bases for p in measured)),
    )


class Place(NamedTuple):
    """A problem: which of a run's points are meant. None: any, as long as there is one kind."""

    n: int | None = None
    k: int | None = None
    dim: int | None = None
    data: str | None = None
    precision: str | None = None
    iterations: int | None = None


class Rows:
    """One run, ready to be asked. Ratios are never taken across runs."""

    def __init__(self, run: Run):
        self.run = run
        self.points = all_points([run], run.baseline)
        self.by_point = dict(list(run.measurements.groupby("point", sort=False)))
        self._several_gpus = len(run.gpus) > 1
        # a report asks some ten thousand times: plain records answer a hundred times sooner than
        # a frame
        columns = [c for c in dict.fromkeys([*ASKED, *AXES]) if c in self.points]
        plain = self.points[columns].astype(object)
        plain = plain.where(plain.notna(), None).assign(at=self.points.index)
        self._by_version: dict[str, list[dict]] = {}
        for record in plain.to_dict("records"):
            self._by_version.setdefault(record["version"], []).append(record)

    def point(self, version: str, place: Place, **axes: int) -> pd.Series:
        """The ok point of `version` at `place`, fastest in the tunables that `axes` leave open.

        `place.data` may hold alternatives, `a|b`: beginnings of the data's description, the first
        that is there counts. Raises MissingError."""
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
            # a solve's length is the spec's iterations: another length is another quantity
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
        launches = rows.groupby("launch", sort=False)[column]
        samples = Samples(tuple(np.sort(of.to_numpy(float)) for _, of in launches))
        bases = frozenset([str(point["timing_basis"])])
        if not samples.has_interval:
            why = f"{point['version']} has {len(samples)} samples, an interval needs {FEWEST}"
            return Quantity(samples.median, None, why, bases=bases)
        stream = zlib.crc32(f"{name} {column}".encode())
        return Quantity(samples.median, draws(samples, stream), bases=bases)

    def baseline_of(self, point: pd.Series, place: Place) -> pd.Series:
        """The baseline's point for the problem of `point`, in its precision, else in fp32."""
        if not self.run.baseline:
            raise MissingError("the spec names no baseline")
        same = place._replace(
            n=point["n"], k=point["k"], dim=point["dim"], data=point["data"], precision=None
        )
        for precision in (point["precision"], "fp32"):
            try:
                return self.point(self.run.baseline, same._replace(precision=precision))
            except MissingError as error:
                missing = error
        raise missing

    def phases(self, point: pd.Series) -> pd.DataFrame:
        """The phases of the point's solve with `ms`: the device's time, the host's on a CPU."""
        rows = self.run.phases
        rows = rows[rows["point"].eq(point["point"]) & rows["part"].eq("solve")]
        if rows.empty:
            raise MissingError(f"{point['point']}: no phases")
        return rows.assign(ms=rows["device_ms"].fillna(rows["host_ms"]))

    def counters(self, point: pd.Series) -> pd.DataFrame:
        """The point's rows of counters.jsonl that have a value."""
        rows = self.run.counters
        rows = rows[rows["point"].eq(point["point"])]
        if rows.empty:
            raise MissingError(f"{point['point']}: no counters")
        return rows[rows["value"].notna()]


def functions(rows: Rows, place: Place) -> dict[str, Callable]:
    """What an expression may call. Most take a version, and axes as keywords (n=, k=, dim=,
    precision=, data=, threads_per_block= …) that override the claim's place."""

    def find(version: str, axes: dict) -> tuple[pd.Series, Place]:
        own = {key: axes.pop(key) for key in list(axes) if key in Place._fields}
        for axis in axes:
            if axis not in AXES:
                raise ExpressionError(f"unknown axis '{axis}'")
        here = place._replace(**own)
        return rows.point(version, here, **axes), here

    def timed(column: str) -> Callable:
        def of(version: str, **axes: int) -> Quantity:
            return rows.median(find(version, axes)[0], column)

        return of

    def speedup(version: str, column: str = "iteration_ms", **axes: int) -> Quantity:
        point, here = find(version, axes)
        base = rows.baseline_of(point, here)
        return combine(operator.truediv, rows.median(base, column), rows.median(point, column))

    def efficiency(version: str, **axes: int) -> Quantity:
        point, _ = find(version, dict(axes))
        if pd.notna(point["oversubscribed"]) and point["oversubscribed"]:
            raise MissingError(f"{point['point']}: more threads than this machine has cores")
        workers = 1
        for axis in ("threads", "processes", "gpus"):
            workers *= 1 if pd.isna(point[axis]) else int(point[axis])
        return combine(operator.truediv, speedup(version, "solve_ms", **axes), workers)

    def phase_share(version: str, phase: str, **axes: int) -> Quantity:
        phases = rows.phases(find(version, axes)[0])
        if not phases["phase"].eq(phase).any():
            raise MissingError(f"{version}: no phase '{phase}'")
        share = phases.loc[phases["phase"].eq(phase), "ms"].sum() / phases["ms"].sum()
        return Quantity(100 * float(share), exact="profiled")

    def phase_call_ms(version: str, phase: str, **axes: int) -> Quantity:
        phases = rows.phases(find(version, axes)[0])
        one = phases[phases["phase"].eq(phase)]
        if one.empty:
            raise MissingError(f"{version}: no phase '{phase}'")
        return Quantity(float(one["ms"].sum() / one["calls"].sum()), exact="profiled")

    def kernel_seconds(version: str, kernel: str, axes: dict) -> tuple[pd.Series, pd.Series]:
        found = rows.counters(find(version, axes)[0])
        found = found[found["metric"].eq(DURATION) & found["kernel"].notna()]
        found = found.drop_duplicates(["phase", "kernel"])
        own = found["kernel"].astype(str).str.contains(kernel, regex=False)
        if not own.any():
            raise MissingError(f"{version}: no {DURATION} of a kernel '{kernel}'")
        return seconds(found), seconds(found[own])

    def kernel_share(version: str, kernel: str, **axes: int) -> Quantity:
        every, own = kernel_seconds(version, kernel, axes)
        return Quantity(100 * float(own.sum() / every.sum()), exact="profiled")

    def intensity(version: str, level: str, phase: str = "assign", **axes: int) -> Quantity:
        table = by_kernel(rows.counters(find(version, axes)[0]))
        table = table[table["phase"].eq(phase)]
        done = float(table[list(OPERATIONS)].to_numpy(float, na_value=0).sum())
        if not (done > 0 and table[level].sum() > 0):
            raise MissingError(f"{version}: no operations and {level} bytes of phase '{phase}'")
        return Quantity(float(done / table[level].sum()), exact="profiled")

    def ridge(rate: str, level: str) -> Quantity:
        known = rows.run.ceilings
        if known is None or rate not in known.rates or level not in known.bandwidths:
            raise MissingError(f"no measured ceilings of {rate} and {level}")
        value = known.rates[rate].measured / known.bandwidths[level].measured
        return Quantity(value, exact="measured ceiling")

    def counter(version: str, metric: str, phase: str = "assign", **axes: int) -> Quantity:
        found = rows.counters(find(version, axes)[0])
        found = found[found["metric"].eq(metric) & found["phase"].eq(phase)]
        if found.empty:
            raise MissingError(f"{version}: no counter {metric} in phase '{phase}'")
        # a row without a kernel is of the whole phase
        whole = found[found["kernel"].isna()]
        chosen = whole if len(whole) else found
        return Quantity(float(chosen["value"].mean()), exact="profiled")

    def cpu_counter(version: str, metric: str, **axes: int) -> Quantity:
        found = rows.counters(find(version, axes)[0])
        found = found[found["metric"].eq(metric)]
        if found.empty:
            raise MissingError(f"{version}: no counter {metric}")
        return Quantity(float((found["value"] * calls(found)).sum()), exact="profiled")

    def beyond_shared_memory(version: str) -> Quantity:
        """How many points contradict luigi's rule: unsupported where, and only where,
        K > 4096 / (1 + 2 dim)."""
        points = rows.points[rows.points["version"].eq(version)]
        beyond = points["k"] * (1 + 2 * points["dim"]) > 4096
        refused = points["status"].eq("unsupported")
        if not (beyond.any() and (~beyond).any()):
            raise MissingError(f"{version}: no points on both sides of K = 4096 / (1 + 2 dim)")
        return Quantity(float((beyond != refused).sum()), exact="counted")

    return {
        "time": timed("iteration_ms"),
        "solve": timed("solve_ms"),
        "end_to_end": timed("end_to_end_ms"),
        "speedup": speedup,
        "efficiency": efficiency,
        "phase_share": phase_share,
        "phase_call_ms": phase_call_ms,
        "kernel_share": kernel_share,
        "intensity": intensity,
        "ridge": ridge,
        "counter": counter,
        "cpu_counter": cpu_counter,
        "beyond_shared_memory": beyond_shared_memory,
        "least": lambda *of: combine(lambda *v: np.minimum.reduce(np.broadcast_arrays(*v)), *of),
        "most": lambda *of: combine(lambda *v: np.maximum.reduce(np.broadcast_arrays(*v)), *of),
    }


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluate(expression: str, rows: Rows, place: Place) -> Quantity:
    """The value of an expression: numbers, + − × ÷ and calls of functions(). Raises MissingError
    and ExpressionError."""
    known = functions(rows, place)

    def value(node: ast.expr) -> Quantity | float | str:
        match node:
            case ast.Constant(value=int() | float() | str() as constant):
                return constant
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return combine(_OPERATORS[type(op)], value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                if name not in known:
                    raise ExpressionError(f"no function '{name}'; there are {', '.join(known)}")
                given = {keyword.arg: value(keyword.value) for keyword in keywords}
                try:
                    return known[name](*(value(arg) for arg in args), **given)
                except TypeError as error:
                    raise ExpressionError(str(error)) from None
        raise ExpressionError(f"'{ast.unparse(node)}' is neither a number, a call nor arithmetic")

    try:
        result = value(ast.parse(expression, mode="eval").body)
    except SyntaxError as error:
        raise ExpressionError(f"'{expression}': {error.msg}") from None
    if not isinstance(result, Quantity):
        raise ExpressionError(f"'{expression}' measures nothing")
    return result


def _said(version: str, wanted: dict, data: str | None) -> str:
    words = [
        f"{axis}={value if isinstance(value, str) else count_text(value)}"
        for axis, value in wanted.items()
        if value is not None
    ]
    return " ".join([version, *words, *([f"data {data}"] if data else [])])
