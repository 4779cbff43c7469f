"""Tables of points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.measures import claims
from analysis.measures.claims import Judgment
from analysis.measures.families import ran_text
from analysis.measures.fastest import condition_text, conditions, fastest, within_cores
from analysis.measures.lookup import FEWEST
from analysis.measures.noise import OVERSUBSCRIBED, noise_note, noisy_mark, oversubscribed_note
from analysis.measures.points import sampled
from analysis.measures.published import Number
from analysis.measures.speedups import (
    BEST_CPU,
    FASTEST_CPU,
    baseline_chosen_text,
    baseline_text,
    has_several_baselines,
    named_baseline,
    over_best_cpu,
)
from analysis.measures.stats import Samples
from analysis.measures.studies import Study
from analysis.model.numbers import count_text, number_text
from analysis.model.run import PROBLEM, Run
from analysis.model.words import AXES, GPU_AXES
from analysis.pages.escape import Code, Markdown, Words, code, text
from analysis.pages.table import Table, markdown


def interval_text(value: float, low: float, high: float, unit: str = "") -> str:
    """`1.23 [1.20, 1.31]`. Only the value if there is no interval, and a dash if there is no
    value.
    """
    if not np.isfinite(value):
        return "–"
    words = number_text(value) + unit
    if np.isfinite(low) and np.isfinite(high) and low != high:
        words += f" [{number_text(low)}, {number_text(high)}]"
    return words


def interval_said(samples: Iterable[Samples | None]) -> str:
    """What a line before a table says of its intervals, in brackets: whether each point has only
    one launch, and why some points have no interval."""
    known = [s for s in samples if isinstance(s, Samples)]
    one = known and all(len(s.launches) == 1 for s in known)
    words = f"95% interval{' within one launch' if one else ''}"
    few = any(not s.has_interval for s in known)
    return f"[{words}; none with fewer than {FEWEST} samples]" if few else f"[{words}]"


def every_point_cells(points: pd.DataFrame) -> tuple[list[str], dict[int, list[str]]]:
    """Header and rows of all points with a result: medians (ms) and speedups, with 95% intervals.
    The rows are found by their points' index. They are sorted by dim, K and N, and then by version
    in the order of the plan.
    """
    ok = points[points["status"] == "ok"].sort_values(["dim", "k", "n"], kind="stable")
    axes = [axis for axis in AXES if ok[axis].notna().any()]
    several = ["data_name", "batch", "precision", *GPU_AXES, "node"]
    several = [c for c in several if ok[c].nunique() > 1]
    header = ["N", "K", "dim", "version", *(_words(a) for a in axes)]
    header += ["data" if c == "data_name" else c for c in several]
    newer = [(c, words) for c, words in _NEWER.items() if ok[c].notna().any()]
    if sampled(ok).any():
        newer.append(("verified_points", "labels verified"))
    over = ["over"] if has_several_baselines(ok) else []
    solved = ["iterations", "ms a solve", "inertia"] if ok["solves_differ"].eq(True).any() else []
    header += ["samples", *(words for _, words in newer), *solved, "ms per iteration", "speedup"]
    header += over
    rows = {}
    for index, p in ok.iterrows():
        rows[index] = [
            *(count_text(p["n"]), count_text(p["k"]), str(p["dim"]), p["version"]),
            *(_count(p[a]) for a in axes),
            *("" if pd.isna(p[c]) else p[c] for c in several),
            str(p["samples"]),
            *(_newer(p[c]) for c, _ in newer),
            *(_solved(p) if solved else []),
            *(_time(p), _speedup(p)),
            *(p["baseline"] or "" for _ in over),
        ]
    return header, rows


_WORDS = {"version", "data", "precision", *GPU_AXES, "node", "over"}
"""The columns that are not numbers."""

_NEWER = {
    "waited_ms": "ms waited a solve",
    "energy_j": "J a solve",
    "inertia_excess": "inertia excess",
    "max_mean_error": "mean error",
    "data_part": "data",
}
"""Columns of newer runs in the table of all points, and their headings."""


def _newer(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer):
        return count_text(int(value))
    return "" if pd.isna(value) else f"{value:.3g}"


def _solved(p: pd.Series) -> list[str]:
    """How many iterations a solve made, its time and its inertia; of several restarts the fewest
    and the most iterations, and the least inertia."""
    least, most = p["least_iterations"], p["most_iterations"]
    iterations = _count(least) if least == most else f"{_count(least)} to {_count(most)}"
    time = number_text(p["solve_ms"]) if pd.notna(p["solve_ms"]) else "–"
    return [iterations, time, f"{p['inertia']:.6g}" if pd.notna(p["inertia"]) else "–"]


def headline(run: Run, points: pd.DataFrame) -> Table:
    """The table for a README: each version with its fastest tunables, under each of the conditions
    that it ran in, for each K (and dim) at the largest N. That is the largest N of the baseline, or
    of any version if there is no baseline. An oversubscribed point counts only where a version has
    no other. The line before the table says what was measured and where.
    """
    apart = conditions(points)
    chosen = _fastest_at_largest(points, apart)
    varying = [c for c in ("n", "k", "dim") if len({p[c] for p in chosen}) > 1]
    axes = [a for a in ("threads_per_block", "threads") if any(pd.notna(p[a]) for p in chosen)]
    several = ("data_name", "batch", "precision")
    several = [c for c in several if len({p[c] for p in chosen}) > 1]
    header = [
        *(_size_name(c) for c in varying),
        "version",
        *(_words(a) for a in (*several, *axes, *apart)),
    ]
    known = {*header}
    over = ["over"] if has_several_baselines(pd.DataFrame(chosen)) else []
    best = _best_cpu(chosen, points, run.baseline)
    second = [] if best.empty else [_OVER_BEST]
    header += ["ms per iteration", "speedup", *over, *second]
    rows = [
        [
            *(count_text(p[c]) for c in varying),
            Code(p["version"]),
            *(str(p[c]) for c in several),
            *(_count(p[a]) if p["status"] == "ok" else "" for a in axes),
            *(condition_text(a, p[a]) if p["status"] == "ok" else "" for a in apart),
            *([_time(p), _speedup(p)] if p["status"] == "ok" else [_why_not(p), ""]),
            *(Code(p["baseline"]) if pd.notna(p["speedup"]) else "" for _ in over),
            *(_over_best(best, p.name) for _ in second),
        ]
        for p in chosen
    ]
    fixed = [
        f"{_size_name(c)} = {count_text(chosen[0][c])}"
        for c in ("n", "k", "dim")
        if chosen and c not in varying
    ]
    said = [*fixed, run.environment_line(), *_how_measured(run, points, chosen, apart, best)]
    return Table("headline", listed(said), header, rows, {*header} - _WORDS, keys=known)


_SIZES = ("n", "k", "dim")


def _size_name(column: str) -> str:
    return column if column == "dim" else column.upper()


def _fastest_at_largest(points: pd.DataFrame, apart: list[str]) -> list[pd.Series]:
    """The rows of the headline: for each K and dim at the largest N, each version's fastest point
    under each condition in `apart`. A version without a result there has its first point, which
    says why."""
    fast = fastest(within_cores(points, apart), apart=apart)
    problem = ["k", "dim"]
    largest = points.groupby(problem)["n"].max()
    for better in (fast, fast[fast["speedup"].notna()]):
        largest.update(better.groupby(problem)["n"].max())
    chosen = []
    for (k, dim), n in largest.items():
        here = points[points["n"].eq(n) & points["k"].eq(k) & points["dim"].eq(dim)]
        for version in dict.fromkeys(here["version"]):
            found = fast[fast.index.isin(here.index) & fast["version"].eq(version)]
            rows_of = found if len(found) else here[here["version"] == version][:1]
            chosen += [row for _, row in rows_of.iterrows()]
    return chosen


def _how_measured(
    run: Run,
    points: pd.DataFrame,
    chosen: list[pd.Series],
    apart: list[str],
    best: pd.DataFrame,
) -> list[Words]:
    """What the line before the headline says about the medians of its rows, which are under each of
    the conditions `apart`, and what they are compared with. `best`: see _best_cpu()."""
    said: list[Words] = []
    samples = [p["samples"] for p in chosen if p["status"] == "ok"]
    if samples:
        least = "" if min(samples) == max(samples) else "at least "
        intervals = interval_said(p["times_ms"] for p in chosen)
        said.append(f"median of {least}{min(samples)} samples {intervals}")
    if run.baseline:
        named = named_baseline(points, run.baseline)
        which = baseline_text(points, run.baseline).removeprefix(named)
        which += _under_which(pd.DataFrame(chosen), points, apart)
        said.append(("speedup over ", named if named == FASTEST_CPU else Code(named), which))
    if not best.empty and not has_several_baselines(best):
        own = points[points["point"].isin(best["baseline_point"].dropna())]
        ran = f", {words}" if (words := ran_text(own)) else ""
        said.append((f"{FASTEST_CPU} of the run is ", Code(named_baseline(best, BEST_CPU)), ran))
    for note in (noise_note, oversubscribed_note):
        if words := note(pd.DataFrame(chosen)) if chosen else "":
            said.append(words.rstrip("."))
    return said


def _under_which(chosen: pd.DataFrame, points: pd.DataFrame, apart: list[str]) -> str:
    """` at its fastest: pageable at K = 256, pinned at K = 1,024`: the conditions `apart` of the
    points that the speedups of `chosen` are over. Empty if none of these had to be chosen."""
    over = points[points["point"].isin(chosen["baseline_point"].dropna())]
    ok = chosen[chosen["status"].eq("ok") & chosen["version"].isin(over["version"])]
    if not apart or not ok.duplicated(["version", *PROBLEM]).any():
        return ""
    sizes = [c for c in (*_SIZES, "batch", "data_name", "precision") if over[c].nunique() > 1]
    places: dict[str, list[str]] = {}
    for _, p in over.iterrows():
        told = " ".join(filter(None, (condition_text(axis, p[axis]) for axis in apart)))
        problem = [
            f"{_size_name(c)} = {count_text(p[c])}" if c in _SIZES else f"{_words(c)} {p[c]}"
            for c in sizes
        ]
        places.setdefault(told, []).append(", ".join(problem))
    if len(places) == 1:
        return f" at its fastest: {next(iter(places))}"
    return " at its fastest: " + ", ".join(
        f"{told} at {' and '.join(problems)}" for told, problems in places.items()
    )


_OVER_BEST = f"over {FASTEST_CPU}"


def _best_cpu(chosen: list[pd.Series], points: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """The chosen points with speedups over the fastest CPU version, beside those over a baseline
    that is a slower CPU version. Empty if there is no such baseline."""
    on_cpu = points["version"].eq(baseline) & points["backend"].eq("cpu")
    if not on_cpu.any():
        return points.iloc[:0]
    best = over_best_cpu(points).loc[[p.name for p in chosen]]
    known = best[best["speedup"].notna()]
    return best if known["baseline"].ne(baseline).any() else points.iloc[:0]


def _over_best(best: pd.DataFrame, index: int) -> Words:
    p = best.loc[index]
    if pd.isna(p["speedup"]):
        return ""
    named = (" over ", Code(p["baseline"])) if has_several_baselines(best) else ()
    return (_speedup(p), *named)


def listed(said: list[Words]) -> tuple[str, ...]:
    """`one; two; three.`"""
    pieces = []
    for words in said:
        pieces += [*(words if isinstance(words, tuple) else (words,)), "; "]
    return (*pieces[:-1], ".")


def medians(points: pd.DataFrame, baseline: str) -> Table:
    """All points with a result."""
    header, rows = every_point_cells(points)
    over = baseline_chosen_text(points, baseline)
    said = "Medians with 95% intervals" + (f"; speedup over {over}." if over else ".")
    for note in filter(None, (noise_note(points), oversubscribed_note(points))):
        said += f" {note}"
    known = {*header[: header.index("samples")]}
    return Table("medians", said, header, list(rows.values()), {*header} - _WORDS, keys=known)


def missing(points: pd.DataFrame) -> Table:
    """All points without a result."""
    bad = points[points["status"].ne("ok")]
    rows = [[p["point"], p["status"], p["reason"] or ""] for _, p in bad.iterrows()]
    said = f"Without result: {len(bad):,} of {len(points):,} points."
    return Table("missing", said, ["point", "status", "reason"], rows)


def _words(column: str) -> str:
    return "data" if column == "data_name" else column.replace("_", " ")


def _count(value: object) -> str:
    return "" if pd.isna(value) else count_text(value)


def time_text(p: pd.Series) -> str:
    """The median of a point with its interval, and a mark if the point is noisy."""
    median = interval_text(p["iteration_ms"], p["iteration_ms_low"], p["iteration_ms_high"])
    return median + noisy_mark(p)


def _time(p: pd.Series) -> str:
    """The same, with a mark if the point is oversubscribed, too."""
    over = pd.notna(p["oversubscribed"]) and p["oversubscribed"]
    return time_text(p) + (OVERSUBSCRIBED if over else "")


def _speedup(p: pd.Series) -> str:
    return interval_text(p["speedup"], p["speedup_low"], p["speedup_high"], "×")


def _why_not(p: pd.Series) -> str:
    return f"{p['status']}: {p['reason']}" if pd.notna(p["reason"]) else str(p["status"])


def versions(listed: list[dict], read: list[Study]) -> str:
    """A Markdown table of the versions in `listed` (run_experiment --list-versions --json), each
    with the study of `read` that it is from. CPU versions come first, then family by family."""
    short = {study.name: _link(study.short, study.url) for study in read}
    rows = []
    for version in sorted(listed, key=lambda v: (v["family"] != "cpu", v["family"])):
        ours = "a library" if version["family"] == "peer" else "this project"
        names = version["study"].split(", ") if version["study"] else [ours]
        studies = Markdown(", ".join(short.get(name, name) for name in names))
        rows.append([code(version["name"]), studies, Markdown(version["summary"])])
    return markdown(["version", "from", "idea"], rows, set())


def _link(words: str, url: str) -> str:
    return f"[{text(words)}]({url})" if url else text(words)


def studies(read: list[Study]) -> str:
    """A Markdown table of the studies: how each is cited, and the versions that follow it."""
    rows = []
    for study in read:
        title = _link(study.title, study.url) if study.url else f"*{text(study.title)}*"
        versions = ", ".join(code(version) for version in study.versions)
        rows.append([code(study.name), Markdown(study.citation(title)), Markdown(versions)])
    return markdown(["name", "study", "versions that follow it"], rows, set())


_PUBLISHED_AXES = {
    "n": "N",
    "k": "K",
    "dim": "dim",
    "precision": "precision",
    **{axis: axis.replace("_", " ") for axis in AXES if axis != "threads"},
    "threads": "threads",  # per process; the number of processes comes before it
}


def published(study: str, numbers: list[Number], judged: list[Judgment]) -> str:
    """A study's tables beside the values of runs, its other numbers, its claims and verdicts."""
    parts = [f"# {study}: published and here\n"]
    for table in study_tables(study, numbers, judged):
        parts.append(f"## {table.said}\n")
        parts.append(markdown(table.header, table.rows, table.numeric))
    return "\n".join(parts)


def study_tables(study: str, numbers: list[Number], judged: list[Judgment]) -> list[Table]:
    """The same, table by table."""
    parts = [
        Table(
            f"{study}-{place}",
            table.title,
            table.header,
            table.rows,
            {*table.header} & {"published", "here"},
            keys={*table.header} - {"published", "here", "by, or why not"},
        )
        for place, table in enumerate(published_tables(numbers), 1)
    ]
    return [*parts, Table(f"{study}-claims", "Claims", *claims_of(judged), keys={"claim"})]


@dataclass(frozen=True)
class PublishedTable:
    """A table of a study with a row for each of `numbers`."""

    title: str
    header: list[str]
    rows: list[list[str]]
    numbers: list[Number]


def published_tables(numbers: list[Number]) -> list[PublishedTable]:
    """Each table of a study, in its order. Numbers outside of tables come last. A column is left
    out if no row has a value for it."""
    names = list(dict.fromkeys(number.row["table"] for number in numbers))
    tables = []
    for name in [n for n in names if n] + [n for n in names if not n]:
        of = [number for number in numbers if number.row["table"] == name]
        columns = [("what", [_item(n) for n in of])]
        columns += [
            (words, [_axis(n.row.get(axis, "")) for n in of])
            for axis, words in _PUBLISHED_AXES.items()
        ]
        columns += [
            ("quantity", [n.row["quantity"] for n in of]),
            ("published", [_published(n.row) for n in of]),
            ("here", [_here(n) for n in of]),
            ("by, or why not", [_by(n) for n in of]),
        ]
        columns = [(head, cells) for head, cells in columns if any(cells)]
        rows = [list(cells) for cells in zip(*(cells for _, cells in columns), strict=True)]
        place = of[0].row["place"]
        title = f"{name} ({place})" if name not in place else place
        title = title if name else "Numbers in no table"
        tables.append(PublishedTable(title, [head for head, _ in columns], rows, of))
    return tables


def claims_of(judged: list[Judgment]) -> tuple[list[str], list[list[str]]]:
    header = ["claim", "published", "here", "over the best CPU code", "holds if", "verdict", "by"]
    return header, [claim_cells(judgment) for judgment in judged]


def claim_cells(judgment: Judgment) -> list[str]:
    claim = judgment.claim
    why = f": {judgment.why}" if judgment.why else ""
    counters = "; ".join(
        f"{expression} = {claims.value_text(value, '')}" for expression, value in judgment.counters
    )
    return [
        f"{claim.says} ({claim.where})",
        claim.published,
        claims.value_text(judgment.value, claim.unit),
        claims.best_cpu_text(judgment),
        claims.condition(claim),
        judgment.verdict + why + (f" [{counters}]" if counters else ""),
        "; ".join(p for p in (judgment.run, claims.measured_text(judgment)) if p),
    ]


def comparison(table: pd.DataFrame, said: str) -> Table:
    """Rows of compare.compare()."""
    header = ["point", "OLD ms", "NEW ms", "NEW / OLD", "p", "verdict"]
    rows = [
        [
            row["point"],
            *(number_text(row[c]) if pd.notna(row[c]) else "" for c in ("old_ms", "new_ms")),
            interval_text(row["ratio"], row["low"], row["high"]),
            f"{row['p']:.2g}" if pd.notna(row["p"]) else "",
            row["verdict"] + (f": {row['why']}" if row["why"] else ""),
        ]
        for _, row in table.iterrows()
    ]
    words = {"point", "verdict"}
    return Table("comparison", said, header, rows, {*header} - words, keys={"point"})


def _item(number: Number) -> str:
    row = number.row
    where = f", {row['device']}" if row["device"] else ""
    place = f" ({row['place']})" if not row["table"] else ""
    return row["item"] + where + place


def _axis(value: str) -> str:
    return count_text(int(value)) if value.isdecimal() else value


def _published(row: dict[str, str]) -> str:
    spread = f" ± {row['spread']}" if row["spread"] else ""
    return row["value"] + spread + _unit(row["unit"])


def _unit(unit: str) -> str:
    return unit if unit in ("×", "%", "") else "" if unit == "count" else f" {unit}"


def _here(number: Number) -> str:
    value = number.quantity_here
    if value is None:
        return ""
    return interval_text(value.value, *value.interval(), unit=_unit(number.row["unit"]))


def _by(number: Number) -> str:
    if number.quantity_here is None:
        return "" if not number.row["here"] else number.why
    return f"{number.row['version']} in {number.run}"
