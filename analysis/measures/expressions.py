"""Evaluates the expressions of claims and published tables from a run's rows, with uncertainty."""

from __future__ import annotations

import ast
import operator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.measures.kernels import OPERATIONS, by_kernel, calls
from analysis.measures.lookup import MissingError, Place, Rows
from analysis.measures.quantity import Quantity, combine
from analysis.model.words import AXES


class ExpressionError(Exception):
    """The expression itself is wrong, for any rows."""


@dataclass(frozen=True)
class Functions:
    """What an expression may call: the public methods, about one run. Most take a version, and axes
    as keywords (n=, k=, dim=, precision=, data=, threads_per_block= …) that override the claim's
    place. Each raises MissingError if the run lacks the rows that answer it."""

    rows: Rows
    place: Place

    def time(self, version: str, **axes: int) -> Quantity:
        """The time of an iteration, in ms."""
        return self._median(version, "iteration_ms", axes)

    def solve(self, version: str, **axes: int) -> Quantity:
        """The time of a solve, in ms."""
        return self._median(version, "solve_ms", axes)

    def end_to_end(self, version: str, **axes: int) -> Quantity:
        """The time of the whole job, with allocation, set-up and copies, in ms."""
        return self._median(version, "end_to_end_ms", axes)

    def speedup(self, version: str, column: str = "iteration_ms", **axes: int) -> Quantity:
        """The speedup over the run's baseline on the same problem."""
        point, here = self._find(version, axes)
        base = self.rows.baseline_of(point, here)
        times = self.rows.median(base, column), self.rows.median(point, column)
        return combine(operator.truediv, *times)

    def over_best_cpu(self, version: str, column: str = "iteration_ms", **axes: int) -> Quantity:
        """The speedup over the fastest verified CPU version of the same problem and run. That of
        the whole job is over the version with the shortest job, which may be another one."""
        point, _ = self._find(version, axes)
        ratio = self._over_best_cpu(point, column)
        if column == "end_to_end_ms":
            return replace(ratio, over=f"{ratio.over}, whole jobs")
        try:
            return replace(ratio, whole_job=self._over_best_cpu(point, "end_to_end_ms"))
        except MissingError:
            return ratio

    def efficiency(self, version: str, **axes: int) -> Quantity:
        """The speedup of a solve divided by the number of threads × processes × GPUs."""
        point, _ = self._find(version, axes)
        if pd.notna(point["oversubscribed"]) and point["oversubscribed"]:
            raise MissingError(f"{point['point']}: more threads than this machine has cores")
        workers = 1
        for axis in ("threads", "processes", "gpus"):
            workers *= 1 if pd.isna(point[axis]) else int(point[axis])
        return combine(operator.truediv, self.speedup(version, "solve_ms", **axes), workers)

    def traced_share(self, version: str, name: str, **axes: int) -> Quantity:
        """The share of kernels, copies or memsets whose names contain `name` in the time of all
        that ran on the GPU in the loop of the traced solve, in percent."""
        ran, own = self._activities(version, name, axes)
        return Quantity(100 * float(own.sum() / ran.sum()), exact="profiled")

    def traced_call_ms(self, version: str, name: str, **axes: int) -> Quantity:
        """The mean time on the GPU of one kernel, copy or memset whose name contains `name`, in the
        loop of the traced solve, in ms."""
        _, own = self._activities(version, name, axes)
        return Quantity(float(own.mean()) / 1000, exact="profiled")

    def intensity(self, version: str, level: str, phase: str = "assign", **axes: int) -> Quantity:
        """Operations per byte that the phase's kernels move at `level`: l1, l2 or dram."""
        table = by_kernel(self._counters(version, axes))
        table = table[table["phase"].eq(phase)]
        done = float(table[list(OPERATIONS)].to_numpy(float, na_value=0).sum())
        if not (done > 0 and table[level].sum() > 0):
            raise MissingError(f"{version}: no operations and {level} bytes of phase '{phase}'")
        return Quantity(float(done / table[level].sum()), exact="profiled")

    def ridge(self, rate: str, level: str) -> Quantity:
        """The operations per byte at which the measured roofs of `rate` and `level` meet."""
        known = self.rows.run.ceilings
        if known is None or rate not in known.rates or level not in known.bandwidths:
            raise MissingError(f"no measured ceilings of {rate} and {level}")
        value = known.rates[rate].measured / known.bandwidths[level].measured
        return Quantity(value, exact="measured ceiling")

    def counter(self, version: str, metric: str, phase: str = "assign", **axes: int) -> Quantity:
        """The metric of the whole phase, or else the mean of its kernels."""
        found = self._counters(version, axes)
        found = found[found["metric"].eq(metric) & found["phase"].eq(phase)]
        if found.empty:
            raise MissingError(f"{version}: no counter {metric} in phase '{phase}'")
        # a row without a kernel belongs to the whole phase
        whole = found[found["kernel"].isna()]
        chosen = whole if len(whole) else found
        return Quantity(float(chosen["value"].mean()), exact="profiled")

    def cpu_counter(self, version: str, metric: str, **axes: int) -> Quantity:
        """The metric's sum over all calls of all phases."""
        found = self._counters(version, axes)
        found = found[found["metric"].eq(metric)]
        if found.empty:
            raise MissingError(f"{version}: no counter {metric}")
        return Quantity(float((found["value"] * calls(found)).sum()), exact="profiled")

    def beyond_shared_memory(self, version: str) -> Quantity:
        """The number of points that contradict luigi's rule: unsupported if and only if
        K > 4096 / (1 + 2 dim)."""
        points = self.rows.points[self.rows.points["version"].eq(version)]
        beyond = points["k"] * (1 + 2 * points["dim"]) > 4096
        refused = points["status"].eq("unsupported")
        if not (beyond.any() and (~beyond).any()):
            raise MissingError(f"{version}: no points on both sides of K = 4096 / (1 + 2 dim)")
        return Quantity(float((beyond != refused).sum()), exact="counted")

    def least(self, *of: Quantity | float) -> Quantity | float:
        return combine(lambda *v: np.minimum.reduce(np.broadcast_arrays(*v)), *of)

    def most(self, *of: Quantity | float) -> Quantity | float:
        return combine(lambda *v: np.maximum.reduce(np.broadcast_arrays(*v)), *of)

    def _find(self, version: str, axes: dict) -> tuple[pd.Series, Place]:
        """The version's point and the place at which it was looked up."""
        own = {key: value for key, value in axes.items() if key in Place._fields}
        others = {key: value for key, value in axes.items() if key not in own}
        for axis in others:
            if axis not in AXES:
                raise ExpressionError(f"unknown axis '{axis}'")
        here = self.place._replace(**own)
        return self.rows.point(version, here, **others), here

    def _median(self, version: str, column: str, axes: dict) -> Quantity:
        return self.rows.median(self._find(version, axes)[0], column)

    def _over_best_cpu(self, point: pd.Series, column: str) -> Quantity:
        best = self.rows.fastest_cpu(point, column)
        times = self.rows.median(best, column), self.rows.median(point, column)
        return replace(combine(operator.truediv, *times), over=best["version"])

    def _activities(self, version: str, name: str, axes: dict) -> tuple[pd.Series, pd.Series]:
        """The µs of all activities of the GPU in the loop, and of those called `name`."""
        ran = self.rows.activities(self._find(version, axes)[0])
        own = ran[ran["name"].str.contains(name, regex=False)]
        if own.empty:
            raise MissingError(f"{version}: no '{name}' in the timeline")
        return ran["duration_us"], own["duration_us"]

    def _counters(self, version: str, axes: dict) -> pd.DataFrame:
        return self.rows.counters(self._find(version, axes)[0])


NAMES = tuple(name for name in vars(Functions) if not name.startswith("_"))
"""The names of the functions."""


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluate(expression: str, rows: Rows, place: Place) -> Quantity:
    """The value of an expression, which has numbers, + − × ÷ and calls of Functions. Raises
    MissingError and ExpressionError."""
    functions = Functions(rows, place)

    def value(node: ast.expr) -> Quantity | float | str:
        match node:
            case ast.Constant(value=int() | float() | str() as constant):
                return constant
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return combine(_OPERATORS[type(op)], value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                if name not in NAMES:
                    raise ExpressionError(f"no function '{name}'; there are {', '.join(NAMES)}")
                given = {keyword.arg: value(keyword.value) for keyword in keywords}
                try:
                    return getattr(functions, name)(*(value(arg) for arg in args), **given)
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
