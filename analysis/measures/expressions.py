"""Evaluates the expressions of claims and published tables from a run's rows, with uncertainty."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.measures.kernels import DURATION, OPERATIONS, by_kernel, calls, seconds
from analysis.measures.lookup import MissingError, Place, Rows
from analysis.measures.quantity import Quantity, combine
from analysis.model.words import AXES


class ExpressionError(Exception):
    """The expression itself is wrong, for any rows."""


def functions(rows: Rows, place: Place) -> dict[str, Callable]:
    """The functions that an expression may call. Most take a version, and axes as keywords (n=, k=,
    dim=, precision=, data=, threads_per_block= …) that override the claim's place."""

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

    def over_best_cpu(version: str, column: str = "iteration_ms", **axes: int) -> Quantity:
        """The speedup over the fastest verified CPU version of the same problem and run. That of
        the whole job is over the version with the shortest job, which may be another one."""
        point, _ = find(version, axes)

        def over(timed: str) -> Quantity:
            best = rows.fastest_cpu(point, timed)
            ratio = combine(operator.truediv, rows.median(best, timed), rows.median(point, timed))
            return replace(ratio, over=best["version"])

        ratio = over(column)
        if column == "end_to_end_ms":
            return replace(ratio, over=f"{ratio.over}, whole jobs")
        try:
            return replace(ratio, whole_job=over("end_to_end_ms"))
        except MissingError:
            return ratio

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
        # a row without a kernel belongs to the whole phase
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
        """The number of points that contradict luigi's rule: unsupported if and only if
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
        "over_best_cpu": over_best_cpu,
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
    """The value of an expression, which has numbers, + − × ÷ and calls of functions(). Raises
    MissingError and ExpressionError."""
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
