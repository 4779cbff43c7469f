"""Checks the studies' conclusions (data/published/claims.toml) one by one against runs' rows.

A claim has a `value`, an expression over one run's rows (see measures.expressions), and a condition
`holds`. The claim holds if the whole 95% interval meets the condition, and fails if no part of the
interval does. Otherwise it cannot be judged, nor if rows are missing or there are too few samples
for an interval. Numbers of a profile (counters, timelines) have no interval: the value decides."""

from __future__ import annotations

import ast
import difflib
import operator
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from analysis.measures.expressions import ExpressionError, evaluate
from analysis.measures.lookup import MissingError, Place, Rows
from analysis.measures.quantity import Quantity
from analysis.model.files import RunError
from analysis.model.numbers import count_text, number_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).resolve().parents[2] / "data" / "published" / "claims.toml"
HOLDS, FAILS, UNJUDGED = "holds", "fails", "cannot be judged"
_KEYS = {
    "id",
    "study",
    "where",
    "says",
    "published",
    "at",
    "value",
    "unit",
    "holds",
    "because",
    "best_cpu",
}
_NEEDED = {"id", "study", "where", "says", "at", "value", "holds"}
_COMPARE = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_SIGNS = {ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥"}


@dataclass(frozen=True)
class Claim:
    """One conclusion. `at` has the problems to try in turn. The first that can be judged counts."""

    id: str
    study: str
    where: str
    says: str
    at: tuple[Place, ...]
    value: str
    holds: str
    published: str = ""
    unit: str = ""
    because: tuple[str, ...] = ()
    best_cpu: str = ""


@dataclass(frozen=True)
class Judgment:
    """What one run says about a claim. `why` explains why there is no verdict. `run` is its name,
    and what it ran on. `counters` are the because-expressions that the run answers. `best_cpu` is
    the speedup over the fastest CPU version of the run, for claims about a speedup over another
    one. `path` is the run's directory."""

    claim: Claim
    verdict: str
    why: str = ""
    run: str = ""
    place: Place | None = None
    value: Quantity | None = None
    counters: tuple[tuple[str, Quantity], ...] = ()
    best_cpu: Quantity | None = None
    path: Path | None = None


def read_claims(file: Path = FILE) -> list[Claim]:
    """Raises RunError, naming the claim, for an error in the file."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("claim", [])
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{file}: not valid TOML ({error})") from None
    claims = [_claim(table, f"{file}: claim {i + 1}") for i, table in enumerate(tables)]
    ids = [claim.id for claim in claims]
    for claim in claims:
        if ids.count(claim.id) > 1:
            raise RunError(f"{file}: claim '{claim.id}' occurs twice")
    return claims


def _claim(table: dict, where: str) -> Claim:
    where = f"{where} ('{table['id']}')" if "id" in table else where
    for key in table:
        if key not in _KEYS:
            close = difflib.get_close_matches(key, _KEYS, n=1)
            raise RunError(f"{where}: unknown key '{key}'" + (f"; '{close[0]}'?" if close else ""))
    if missing := sorted(_NEEDED - set(table)):
        raise RunError(f"{where}: lacks {', '.join(missing)}")
    try:
        at = tuple(Place(**place) for place in table["at"])
    except TypeError as error:
        raise RunError(f"{where}: at: {error}") from None
    claim = Claim(**{**table, "at": at, "because": tuple(table.get("because", ()))})
    try:
        _bounds(claim.holds)
        for expression in (claim.value, *claim.because, *filter(None, [claim.best_cpu])):
            ast.parse(expression, mode="eval")
    except (ExpressionError, SyntaxError) as error:
        raise RunError(f"{where}: {error}") from None
    return claim


def choose(claims: list[Claim], wanted: list[str]) -> list[Claim]:
    """The claims with these ids. Raises RunError for an unknown id."""
    known = {claim.id: claim for claim in claims}
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "`claims` without --only lists them"
            raise RunError(f"unknown claim '{name}'; {hint}")
    return [known[name] for name in wanted]


def judge(claim: Claim, runs: list[Rows]) -> list[Judgment]:
    """One judgment for each run that can judge the claim, else one that says why none can."""
    given, reasons = [], []
    for rows in runs:
        for place in claim.at:
            judgment = _judge_at(claim, rows, place)
            if judgment.verdict != UNJUDGED:
                given.append(judgment)
                break
            reasons.append(judgment)
    if given:
        return given
    if not reasons:
        return [Judgment(claim, UNJUDGED, "no run was given")]
    # a value without a verdict says more than a missing row, which is missing in most runs
    best = min(reasons, key=lambda j: (j.value is None, j.why.endswith("no row")))
    return [replace(best, run="") if best.why.endswith("no row") else best]


def _judge_at(claim: Claim, rows: Rows, place: Place) -> Judgment:
    name = rows.run.name_on_machine
    try:
        value = evaluate(claim.value, rows, place)
    except MissingError as error:
        return Judgment(claim, UNJUDGED, str(error), name, place)
    except ExpressionError as error:
        raise RunError(f"claim '{claim.id}': {error}") from None
    answers = [(expression, _known(claim, expression, rows, place)) for expression in claim.because]
    counters = tuple((expression, answer) for expression, answer in answers if answer is not None)
    best_cpu = _known(claim, claim.best_cpu, rows, place) if claim.best_cpu else None
    judged = (name, place, value, counters, best_cpu, rows.run.path)
    if value.draws is None and not value.exact:
        return Judgment(claim, UNJUDGED, value.why, *judged)
    low, high = (value.value, value.value) if value.exact else value.interval()
    verdict = _verdict(_bounds(claim.holds), low, high)
    why = f"the interval contains the bound ({condition(claim)})" if verdict == UNJUDGED else ""
    return Judgment(claim, verdict, why, *judged)


def _known(claim: Claim, expression: str, rows: Rows, place: Place) -> Quantity | None:
    """The value of an expression beside the claim's own. None if the rows do not have it."""
    try:
        return evaluate(expression, rows, place)
    except MissingError:
        return None
    except ExpressionError as error:
        raise RunError(f"claim '{claim.id}': {error}") from None


def _bounds(holds: str) -> list[tuple[type, float]]:
    """`value >= 4` and `0.9 <= value <= 1.1` as comparisons with the value on the left."""
    try:
        tree = ast.parse(holds, mode="eval").body
        turned = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
        match tree:
            case ast.Compare(left=ast.Name(id="value"), ops=[op], comparators=[bound]):
                bounds = [(type(op), float(ast.literal_eval(bound)))]
            case ast.Compare(left=low, ops=[a, b], comparators=[ast.Name(id="value"), high]):
                bounds = [
                    (turned[type(a)], float(ast.literal_eval(low))),
                    (type(b), float(ast.literal_eval(high))),
                ]
            case _:
                raise ValueError
        if any(op not in _COMPARE for op, _ in bounds):
            raise ValueError
    except (ValueError, SyntaxError, KeyError, TypeError):
        raise ExpressionError(
            f"holds: '{holds}' is not like 'value >= 4' or '0.9 <= value <= 1.1'"
        ) from None
    return bounds


def _verdict(bounds: list[tuple[type, float]], low: float, high: float) -> str:
    inside = [[bool(_COMPARE[op](end, bound)) for end in (low, high)] for op, bound in bounds]
    if not np.isfinite([low, high]).all():
        return UNJUDGED
    if all(all(ends) for ends in inside):
        return HOLDS
    # both ends are outside of one bound
    if any(not any(ends) for ends in inside):
        return FAILS
    return UNJUDGED


def condition(claim: Claim) -> str:
    """The condition on the value, for a reader: `≥ 4×`."""
    return " and ".join(
        f"{_SIGNS[op]} {bound:g}{_unit(claim.unit)}" for op, bound in _bounds(claim.holds)
    )


def value_text(value: Quantity | None, unit: str) -> str:
    """`3.4× [3.3, 3.5]`, or `96% (profiled)` without an interval. Empty without a value."""
    if value is None:
        return ""
    number = f"{value.value:,.0f}" if value.exact == "counted" else number_text(value.value)
    text = number + _unit(unit)
    low, high = value.interval()
    if np.isfinite([low, high]).all():
        return f"{text} [{number_text(low)}, {number_text(high)}]"
    return f"{text} ({value.exact or 'no interval'})"


def best_cpu_text(judgment: Judgment) -> str:
    """`3.4× [3.3, 3.5] over fast_cpu_simd (whole job: 2.1× [2.0, 2.2] over cpu_openmp)`. Empty if
    the claim is not about such a speedup, or if the claim's own denominator is the fastest CPU
    version of the run."""
    speedup = judgment.best_cpu
    if speedup is None or (judgment.value and speedup.value == judgment.value.value):
        return ""
    text = f"{value_text(speedup, '×')} over {speedup.over}"
    if job := speedup.whole_job:
        text += f" (whole job: {value_text(job, '×')} over {job.over})"
    return text


def counts(judged: list[Judgment]) -> str:
    """`31 hold, 14 fail, 33 cannot be judged`. Counts judgments, so a claim may count twice."""
    words = ((HOLDS, "hold"), (FAILS, "fail"), (UNJUDGED, "cannot be judged"))
    return ", ".join(f"{sum(j.verdict == v for j in judged)} {word}" for v, word in words)


def _unit(unit: str) -> str:
    return unit if unit in ("×", "%", "") else f" {unit}"


def place_text(place: Place) -> str:
    """`N = 10⁷, K = 5, dim 2`."""
    words = [f"{c.upper()} = {count_text(v)}" for c in ("n", "k") if (v := getattr(place, c))]
    words += [f"dim {place.dim}"] if place.dim else []
    words += [place.precision] if place.precision else []
    return ", ".join(words)


def measured_text(judgment: Judgment) -> str:
    """The problem, the one that the claim names first if it is another, and the CPU versions that
    had several threads or ranks: `N = 10⁶, K = 5, dim 2; in place of N = 10⁷; python_sklearn has 16
    threads`."""
    words = []
    if judgment.place is not None:
        first = judgment.claim.at[0]
        other = (a if a != b else None for a, b in zip(first, judgment.place, strict=True))
        instead = place_text(Place(*other))
        words = [place_text(judgment.place), f"in place of {instead}" if instead else ""]
    parallel = sorted(judgment.value.parallel) if judgment.value else []
    return "; ".join(word for word in (*words, *parallel) if word)


def sentence(judgment: Judgment) -> str:
    """`published 4×, here 60.1× [59.8, 60.3] (holds if ≥ 4×; N = 10⁷, K = 5; k5 on NVIDIA H200):
    holds`."""
    claim = judgment.claim
    said = [f"published {claim.published}"] if claim.published else []
    if judgment.value is not None:
        said.append(f"here {value_text(judgment.value, claim.unit)}")
    if best_cpu := best_cpu_text(judgment):
        said.append(f"over the best CPU code {best_cpu}")
    about = [f"holds if {condition(claim)}", measured_text(judgment), judgment.run]
    text = ", ".join(said) + f" ({'; '.join(part for part in about if part)}): {judgment.verdict}"
    return text.strip() + (f": {judgment.why}" if judgment.why else "")
