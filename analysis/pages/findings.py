"""What a figure shows, in a sentence: the text that stands for it, made from the rows it drew."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pandas as pd

from analysis.measures.convergence import TIMES, solves, summary
from analysis.measures.families import is_peer, merely_chose, ran_text, ran_version
from analysis.measures.speedups import FASTEST_CPU, fastest_cpu_beside
from analysis.model.numbers import count_text, number_text
from analysis.model.run import PROBLEM

Says = Callable[[pd.DataFrame], str]


def finding(name: str, rows: pd.DataFrame, title: str) -> str:
    """One or two sentences about figure `name`, or `name:AXIS`; `rows` are those of its CSV."""
    name, _, x = name.partition(":")
    drawn = rows[rows["drawn"].eq(True)] if "drawn" in rows else rows
    says = FINDINGS.get(name)
    if name == "tpb" and x not in ("", "threads_per_block"):
        says = None  # the sentence below is about threads per block only
    said = says(drawn) if says is not None and len(drawn) else ""
    return said or f"{title}: {name}, {_count(len(drawn), 'row')} drawn."


def _credited(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without those of a chooser that merely ran another one's version. `who` names the
    version of each row, with the chooser that ran it, or what a chooser ran."""
    if "chosen" not in rows:
        return rows.assign(who=rows["version"])
    problem = [c for c in ("machine", *PROBLEM) if c in rows]
    at = rows.groupby(problem, dropna=False, sort=False).ngroup()
    mere = merely_chose(rows, problem)
    who = rows["version"].copy()
    for index, row in rows[mere].iterrows():
        ran = at.eq(at[index]) & rows["version"].eq(ran_version(row))
        who[ran] = f"{ran_version(row)} (which {row['version']} chose)"
    for index, row in rows[~mere].iterrows():
        if ran := ran_version(row):
            who[index] = f"{row['version']} (which ran {ran})"
    return rows.assign(who=who)[~mere]


def _at_the_ends(column: str) -> Callable[[Callable[..., str]], Says]:
    """For a sentence about the rows with the least and the largest value of a column, which it
    gets after the rows. Says nothing where no row has a value."""

    def of(says: Callable[..., str]) -> Says:
        @functools.wraps(says)
        def sentence(rows: pd.DataFrame) -> str:
            known = rows[rows[column].notna()].reset_index(drop=True)
            if known.empty:
                return ""
            values = known[column].astype(float)
            return says(rows, known.loc[values.idxmin()], known.loc[values.idxmax()])

        return sentence

    return of


def _at_the_ends_of_credited(column: str) -> Callable[[Callable[..., str]], Says]:
    """The same for a sentence about times: of the rows that _credited() leaves, with their `who`.
    The sentence gets all rows before them."""

    def of(says: Callable[..., str]) -> Says:
        @functools.wraps(says)
        def sentence(rows: pd.DataFrame) -> str:
            ends = _at_the_ends(column)(lambda _, least, most: says(rows, least, most))
            return ends(_credited(rows))

        return sentence

    return of


def _on_own_cores(says: Says) -> Says:
    """For a sentence that leaves out points with more threads or ranks than the machine has cores
    or GPUs."""

    @functools.wraps(says)
    def sentence(rows: pd.DataFrame) -> str:
        return says(rows[~rows["oversubscribed"].eq(True)] if "oversubscribed" in rows else rows)

    return sentence


@_at_the_ends_of_credited("speedup")
def _speedup(rows: pd.DataFrame, worst: pd.Series, best: pd.Series) -> str:
    # several: the spec asks for the fastest CPU version of each problem
    several = rows["baseline"].nunique() > 1
    if several and best["speedup"] <= 1:
        return _fastest_on_cpu(rows)
    over = f"Over {FASTEST_CPU} of each problem" if several else f"Over {best['baseline']}"
    here = f" ({best['baseline']})" if several else ""
    said = (
        f"{over}{here}, {best['who']} is the fastest: {number_text(best['speedup'])}"
        f" times at {_problem(best)}."
    )
    named = [best]
    if (cpu := fastest_cpu_beside(best, rows)) is not None:
        named.append(cpu)
        said += (
            f" Over {cpu['version']}, {FASTEST_CPU} there, it is "
            f"{number_text(cpu['iteration_ms'] / best['iteration_ms'])} times."
        )
    noisy = [each["version"] for each in named if "noisy" in each and each["noisy"] is True]
    if noisy:
        verb = "were" if len(noisy) > 1 else "was"
        said += f" {' and '.join(noisy)} {verb} noisy there."
    slower = int(rows["speedup"].lt(1).sum())
    if len(rows) > 1:
        said += (
            f" The least is {worst['who']} with {number_text(worst['speedup'])} times at "
            f"{_problem(worst)}."
        )
    if slower:
        said += f" Of {_count(len(rows), 'point')}, {slower:,} take longer than the baseline."
    return said


def _fastest_on_cpu(rows: pd.DataFrame) -> str:
    """For a run whose baseline is the fastest version of each problem."""
    problem = [c for c in ("machine", *PROBLEM) if c in rows]
    credited = _credited(rows)
    best = credited.loc[credited.groupby(problem, dropna=False)["speedup"].idxmax()]
    said = _fastest(best) + _ahead(rows, best, problem)
    libraries = rows[is_peer(rows)]
    if libraries.empty:
        return said
    nearest = libraries.loc[libraries["speedup"].idxmax()]
    return (
        f"{said} Of the libraries, {nearest['version']} comes nearest: it takes "
        f"{number_text(1 / nearest['speedup'])} times as long at {_problem(nearest)}."
    )


@_at_the_ends("ratio")
def _ladder(rows: pd.DataFrame, _worst: pd.Series, best: pd.Series) -> str:
    # a step counts as slower or faster where the colour of its bar says so
    steps = rows[rows["ratio"].notna()]
    slower = steps[steps["ratio_high"].lt(1)]
    unclear = len(steps) - len(slower) - int(steps["ratio_low"].gt(1).sum())
    said = (
        f"{'The largest step' if best['ratio'] > 1 else 'No step is faster. The nearest'} is from "
        f"{best['parent']} to {best['version']}: {number_text(best['ratio'])} times as fast at "
        f"{_problem(best)}."
    )
    if len(slower):
        worst = slower.loc[slower["ratio"].idxmin()]
        said += (
            f" {_count(len(slower), 'step')} of {len(steps)} made it slower, most of all "
            f"{worst['version']} ({number_text(worst['ratio'])} times the speed of "
            f"{worst['parent']})."
        )
    if unclear:
        said += f" {_count(unclear, 'step')} cannot be told from no change."
    return said


def _phases(rows: pd.DataFrame) -> str:
    rows = rows[rows["share_percent"].notna()]
    if rows.empty:
        return ""
    # A solve without a phase spends nothing in it.
    by_solve = rows.pivot_table(index="point", columns="phase", values="share_percent")
    shares = by_solve.fillna(0).median().sort_values(ascending=False)
    points = len(by_solve)
    first = shares.index[0]
    most = rows[rows["phase"].eq(first)]
    most = most.loc[most["share_percent"].idxmax()]
    said = (
        f"In {_count(points, 'solve')}, {first} takes most of the time: {shares.iloc[0]:.0f}% "
        f"(median), and up to {most['share_percent']:.0f}% in {most['version']}."
    )
    if len(shares) > 1:
        said += f" Next is {shares.index[1]}: {shares.iloc[1]:.0f}%."
    return said


@_at_the_ends("operations_per_second")
def _roofline(rows: pd.DataFrame, _least: pd.Series, best: pd.Series) -> str:
    return (
        f"The most operations a second are in {best['version']} ({best['kernel']}): "
        f"{number_text(best['operations_per_second'] / 1e12)} TFLOP/s in {best['arithmetic']} at "
        f"{number_text(best['operations_per_byte'])} operations per byte of {best['level']}."
    )


@_on_own_cores
@_at_the_ends_of_credited("operations_per_second")
def _cpu_roofline(rows: pd.DataFrame, _least: pd.Series, best: pd.Series) -> str:
    return (
        f"{best['who']} gets through the distances fastest: as if it computed all of them at "
        f"{number_text(best['operations_per_second'] / 1e9)} GFLOP/s, at {_problem(best)}."
    )


@_at_the_ends("occupancy")
def _occupancy(rows: pd.DataFrame, worst: pd.Series, best: pd.Series) -> str:
    return (
        f"Achieved occupancy goes from {worst['occupancy']:.0f}% ({worst['kernel']} of "
        f"{worst['version']}) to {best['occupancy']:.0f}% ({best['kernel']} of {best['version']})."
    )


@_on_own_cores
@_at_the_ends_of_credited("times_the_floor")
def _floor(rows: pd.DataFrame, near: pd.Series, far: pd.Series) -> str:
    return (
        f"Nearest to the physical floor is {near['who']}: "
        f"{number_text(near['times_the_floor'])} times it at {_problem(near)}. Farthest is "
        f"{far['who']}: {number_text(far['times_the_floor'])} times at {_problem(far)}."
    )


def _tpb(rows: pd.DataFrame) -> str:
    key = ["version", "n", "k", "dim", "precision", "data"]
    groups = rows.groupby(key, sort=False, dropna=False)["iteration_ms"]
    ratio = (groups.max() / groups.min())[groups.size() > 1]
    if ratio.empty:
        return ""
    most, least = (
        pd.Series(dict(zip(key, at, strict=True))) for at in (ratio.idxmax(), ratio.idxmin())
    )
    of = rows[rows[key].eq(list(ratio.idxmax())).all(axis=1)]
    best = of.loc[of["iteration_ms"].idxmin()]
    return (
        f"Threads per block matter most to {most['version']} at {_problem(most)}: its slowest "
        f"choice takes {number_text(ratio.max())} times as long as "
        f"{best['threads_per_block']}, its fastest. They matter least to "
        f"{least['version']} at {_problem(least)} ({number_text(ratio.min())} times)."
    )


@_at_the_ends_of_credited("ps_per_term")
def _dims(rows: pd.DataFrame, best: pd.Series, worst: pd.Series) -> str:
    return (
        f"The least time per term of the distances is that of {best['who']}, "
        f"{number_text(best['ps_per_term'])} ps at {_problem(best)}; the most is that of "
        f"{worst['who']}, {number_text(worst['ps_per_term'])} ps at {_problem(worst)}."
    )


@_on_own_cores
def _scaling(rows: pd.DataFrame) -> str:
    most = rows[rows["workers"].eq(rows["workers"].max())]
    # A slow version may well be efficient over itself.
    over_another = most[most["over"].ne(most["version"])]
    return _most_workers(over_another if len(over_another) else most)


@_at_the_ends("efficiency")
def _most_workers(rows: pd.DataFrame, worst: pd.Series, best: pd.Series) -> str:
    said = (
        f"With {int(best['workers'])} workers {best['series']} has an efficiency of "
        f"{100 * best['efficiency']:.0f}% over {best['over']} ({best['kind']} scaling, "
        f"{best['problem']})"
    )
    if len(rows) > 1:
        over = "" if worst["over"] == best["over"] else f" over {worst['over']}"
        said += (
            f"; the least is {100 * worst['efficiency']:.0f}%{over} ({worst['series']}, "
            f"{worst['problem']})"
        )
    return f"{said}."


@_at_the_ends("noise_percent")
def _noise(rows: pd.DataFrame, _least: pd.Series, worst: pd.Series) -> str:
    return (
        f"At half of {_count(len(rows), 'point')} the 95% interval of the median is "
        f"±{number_text(rows['noise_percent'].median())}% or narrower. The widest is "
        f"±{number_text(worst['noise_percent'])}%: {worst['version']} at {_problem(worst)}."
    )


def _ahead(rows: pd.DataFrame, best: pd.DataFrame, problem: list[str]) -> str:
    """At how many problems a chooser that merely ran the fastest version has a shorter time."""
    least = rows.loc[rows.groupby(problem, dropna=False)["speedup"].idxmax()]
    ahead = least[~least.index.isin(best.index)]
    said = ""
    for chooser, of in ahead.groupby("version", sort=False):
        said += (
            f" At {len(of)} the least time is that of {chooser}, whose interval overlaps with that "
            "of the version that it ran."
        )
    return said


def _fastest(rows: pd.DataFrame) -> str:
    wins = rows["version"].value_counts()
    told = []
    for version, count in wins.head(3).items():
        ran = ran_text(rows[rows["version"].eq(version)])
        told.append(f"{version} at {count}" + (f" ({ran})" if ran else ""))
    said = ", ".join(told)
    more = f" and {len(wins) - 3} other versions elsewhere" if len(wins) > 3 else ""
    return f"Of {_count(len(rows), 'problem')} the fastest version is {said}{more}."


def _clustering(rows: pd.DataFrame) -> str:
    sizes = rows.loc[rows["iteration"].eq(rows["iteration"].max()), "points"].dropna()
    if sizes.empty:
        return ""
    return (
        f"After {int(rows['iteration'].max())} iterations the {len(sizes)} clusters have from "
        f"{count_text(int(sizes.min()))} to {count_text(int(sizes.max()))} points."
    )


def _convergence(rows: pd.DataFrame) -> str:
    table = summary(solves(rows))
    first = table[table[TIMES[0]].notna()].sort_values(TIMES[0])
    said = f"Of {_count(int(table['solves'].sum()), 'solve')} "
    said += f"{int(table[f'{TIMES[0]}_reached'].sum())} end within 1% of the best inertia."
    if first.empty:
        return said
    best = first.iloc[0]
    init = f" from {best['init']}" if table["init"].nunique() > 1 else ""
    return (
        f"{said} The first to be that near is {best['version']}{init}, after "
        f"{number_text(best[TIMES[0]])} ms in the median ({_problem(best)})."
    )


FINDINGS: dict[str, Says] = {
    "speedup": _speedup,
    "ladder": _ladder,
    "phases": _phases,
    "roofline": _roofline,
    "cpu_roofline": _cpu_roofline,
    "occupancy": _occupancy,
    "floor": _floor,
    "tpb": _tpb,
    "dims": _dims,
    "scaling": _scaling,
    "noise": _noise,
    "fastest": _fastest,
    "clustering": _clustering,
    "convergence": _convergence,
}


def _problem(row: pd.Series | dict) -> str:
    return (
        f"N = {count_text(row['n'])}, K = {count_text(row['k'])}, dim {row['dim']}, "
        f"{row['precision']}"
    )


def _count(number: int, of: str) -> str:
    return f"{number:,} {of}{'' if number == 1 else 's'}"
