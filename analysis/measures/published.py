"""Compares the studies' published numbers (data/published/STUDY.csv) with the values of runs.

A row is one number with its place in the study, the version here that stands for the study's, and
its parameters. Empty means that the study does not say. `here` names the value to compare with:

    solve_s, end_to_end_s        seconds of the loop, and with set-up and transfers
    speedup, solve_speedup       over the run's baseline, by iteration and by solve
    solve_efficiency             solve_speedup / (threads × processes × gpus)
    over:VERSION@PRECISION       solve time of VERSION in PRECISION over this one's
    traced_share:NAME            share of a kernel or copy in what ran on the GPU in the loop (%)
    traced_call_ms:NAME          mean time of one kernel or copy in the loop
    occupancy, l1_hit_rate       of the assignment's kernel (%)
    cpu_l1_misses                of a solve (10⁶)

`here` is empty if a number is a property of a machine or of a program."""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from pathlib import Path

from analysis.measures.expressions import ExpressionError, evaluate
from analysis.measures.lookup import MissingError, Place, Rows
from analysis.measures.quantity import Quantity
from analysis.model.files import RunError
from analysis.model.words import AXES

FOLDER = Path(__file__).resolve().parents[2] / "data" / "published"
COLUMNS = [
    *("table", "place", "item", "device", "version", "n", "k", "dim", "data", "iterations"),
    *("precision", "quantity", "value", "spread", "unit", "here", "note"),
]
"""The columns of every study. Each axis that a study varies has one more column."""
_EXPRESSIONS = {
    "solve_s": "solve('{v}'{a}) / 1000",
    "end_to_end_s": "end_to_end('{v}'{a}) / 1000",
    "speedup": "speedup('{v}'{a})",
    "solve_speedup": "speedup('{v}', 'solve_ms'{a})",
    "solve_efficiency": "efficiency('{v}'{a})",
    "over": "solve('{arg}', precision='{at}') / solve('{v}'{a})",
    "traced_share": "traced_share('{v}', '{arg}'{a})",
    "traced_call_ms": "traced_call_ms('{v}', '{arg}'{a})",
    "occupancy": "counter('{v}', 'sm__warps_active.avg.pct_of_peak_sustained_active'{a})",
    "l1_hit_rate": "counter('{v}', 'l1tex__t_sector_hit_rate.pct'{a})",
    "cpu_l1_misses": "cpu_counter('{v}', 'l1d_misses'{a}) / 1000000",
}


@dataclass(frozen=True)
class Number:
    """One published number: a row of the CSV, and `quantity_here`, its value in a run. `run` is the
    run's name, and what it ran on, `path` its directory. If there is no value, `why` gives the
    reason."""

    row: dict[str, str]
    quantity_here: Quantity | None = None
    why: str = ""
    run: str = ""
    path: Path | None = None


def studies() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.csv"))


def check_study(name: str) -> str:
    """Returns `name`. For an unknown study, raises RunError with a suggestion."""
    if name in studies():
        return name
    close = difflib.get_close_matches(name, studies(), n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(studies())}"
    raise RunError(f"unknown study '{name}'; {hint}")


def read_numbers(study: str) -> list[dict[str, str]]:
    with (FOLDER / f"{check_study(study)}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def expression(row: dict[str, str]) -> str:
    """The expression for a row of the CSV. Empty if the number is a plain fact."""
    kind, _, argument = row["here"].partition(":")
    if not kind:
        return ""
    axes = "".join(f", {axis}={row[axis]}" for axis in AXES if row.get(axis))
    argument, _, precision = argument.partition("@")
    text = _EXPRESSIONS[kind].format(v=row["version"], a=axes, arg=argument, at=precision)
    return f"1000 * {text}" if row["unit"] == "us" else text


def place(row: dict[str, str]) -> Place:
    """The problem of a row. The iterations matter only if a whole solve is compared."""
    whole = row["here"] in ("solve_s", "end_to_end_s")
    return Place(
        *(int(row[c]) if row[c] else None for c in ("n", "k", "dim")),
        data=row["data"] or None,
        precision=row["precision"] or None,
        iterations=int(row["iterations"]) if row["iterations"] and whole else None,
    )


def compared(study: str, runs: list[Rows]) -> list[Number]:
    """Every published number of a study, with the first of `runs` that has a value for it."""
    return [_compare(row, runs) for row in read_numbers(study)]


def _compare(row: dict[str, str], runs: list[Rows]) -> Number:
    asked = expression(row)
    if not asked:
        return Number(row, why="a property of the study's machine or program")
    why = ""
    for rows in runs:
        try:
            value = evaluate(asked, rows, place(row))
            return Number(row, value, run=rows.run.name_on_machine, path=rows.run.path)
        except ExpressionError as error:
            raise RunError(f"{FOLDER}: {row['place']}, {row['item']}: {error}") from None
        except MissingError as error:
            # a run that says more than "no row" is the one that was meant
            why = str(error) if not why or why.endswith("no row") else why
    return Number(row, why=why or "no run was given")
