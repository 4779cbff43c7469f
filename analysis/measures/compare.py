"""Compares OLD with NEW, point by point.

Two processes of the same program differ in addresses, in the cores that they run on, and in what
else the machine does. So the launch is the unit of the comparison. With four or more launches on
each side (`measure: {launches: 5}`), a permutation test finds points that differ by more than the
launches of one side do. With fewer launches there is only the scatter within a process, which
cannot tell a slower program from a slower process. A difference is then only a "perhaps". The same
holds for a point whose samples were disturbed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
from scipy.stats import mannwhitneyu

from analysis.measures.noise import reasons_of, worst_of_each_kind
from analysis.measures.points import all_points
from analysis.measures.stats import (
    CONFIDENCE,
    Samples,
    holm,
    permutation_test,
    ratio_interval,
    relabellings,
)
from analysis.model.files import RunError, printable
from analysis.model.run import PROBLEM, Run

SLOWER, FASTER, ALIKE = "slower", "faster", "no difference found"
OPEN_SLOWER, OPEN_FASTER = "perhaps slower", "perhaps faster"
FEW, BASES, OTHER = "too few samples", "different clocks", "another problem"
LOST, GAINED, NEITHER = "lost", "gained", "no result in either"
NOT_RUN = "not run in NEW"
ORDER = [
    *(SLOWER, LOST, OPEN_SLOWER, FASTER, OPEN_FASTER, GAINED),
    *(ALIKE, FEW, BASES, OTHER, NOT_RUN, NEITHER),
]
"""The verdicts as a summary counts them, those to look at first."""
COUNTED = (GAINED, NOT_RUN, NEITHER)
"""The verdicts of points that lack a result and are not lost. Beside a part of a sweep there are
thousands, so they are counted."""
COLUMNS = ["point", "version", "verdict", "old_ms", "new_ms", "ratio", "low", "high", "p", "why"]
NAMED = 3
"""The number of points of a counted verdict that are named."""
LEVEL = 1 - CONFIDENCE
ENOUGH = 4
"""Launches needed on each side. With 3 and 3, separate medians occur by chance once in 10."""


def compare(old: Run, new: Run, threshold: float, across: bool = False) -> pd.DataFrame:
    """One row for each point that either run has: COLUMNS.

    `ratio` is NEW's median over OLD's with its 95% interval. If both have ENOUGH launches, `p` is
    from stats.permutation_test, corrected for all points: if two runs of the same program are
    compared, the chance that any point is called slower or faster is at most 5%. A point is slower
    or faster if p is below 5% and the whole interval is beyond `threshold` (0.02: 2%). With fewer
    launches, `p` comes from the Mann-Whitney test of the samples with Holm's correction, and a
    difference is only perhaps slower or faster. So is a noisy point. `why` gives the reason. There
    is no verdict if even separate samples could not reach 5%, or if the clocks, the data or the
    iterations differ. Between two GPUs of one model a difference is only a perhaps. A point is
    `lost` if it has a result in OLD but not in NEW, unless NEW was not asked for it or could not
    run it on its machine.

    Raises RunError for runs of different machines, unless `across`."""
    sides = [
        all_points([run], "").drop_duplicates("point").set_index("point") for run in (old, new)
    ]
    if not across:
        _refuse_other_gpus(old, new)
        _refuse_other_cpus(old, new, *sides)
    return compare_points(*sides, threshold, _other_gpu(old, new))


def compare_points(
    old: pd.DataFrame, new: pd.DataFrame, threshold: float, open_because: str = ""
) -> pd.DataFrame:
    """compare() for two frames of points (see points.all_points). Rows with the same index are
    compared; `point` is that index. With `open_because` no difference is more than a perhaps."""
    sides = [old, new]
    names = list(dict.fromkeys([*sides[0].index, *sides[1].index]))
    pairs = [_Pair(name, *(_row(side, name) for side in sides)) for name in names]
    tested = [pair for pair in pairs if not pair.verdict]
    by_launch = [pair for pair in tested if pair.launches >= ENOUGH]
    _judge_launches(by_launch, threshold, open_because)
    few = [pair for pair in tested if pair.launches < ENOUGH]
    _judge_samples(few, threshold, open_because)
    return pd.DataFrame([pair.cells() for pair in pairs], columns=COLUMNS)


def exit_status(table: pd.DataFrame) -> int:
    """For CI: 1 if a point is slower or lost; else 2 if one is perhaps slower, or if no point could
    be judged; else 0."""
    verdicts = set(table["verdict"])
    if verdicts & {SLOWER, LOST}:
        return 1
    if OPEN_SLOWER in verdicts:
        return 2
    return 0 if verdicts & {FASTER, OPEN_FASTER, ALIKE} else 2


def summary(table: pd.DataFrame) -> str:
    """`2 slower, 1 faster, 37 no difference found`."""
    counts = Counter(table["verdict"])
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict])


def counted(table: pd.DataFrame) -> list[str]:
    """For each of the COUNTED verdicts a line with the number of points of each version, and one
    that names the first of them."""
    lines = []
    for verdict in COUNTED:
        of = table[table["verdict"].eq(verdict)]
        if of.empty:
            continue
        numbers = of["version"].value_counts(sort=False).items()
        each = ", ".join(f"{version} {number:,}" for version, number in numbers)
        names = ", ".join(of["point"][:NAMED])
        lines.append(f"{verdict}: {_points(of)} ({each})")
        lines.append(f"  {f'the first: {names}' if len(of) > NAMED else names}")
    return lines


def not_excluded(table: pd.DataFrame, threshold: float) -> str:
    """How much slower the points with no difference found may still be, as far as their intervals
    say, and how many have none. Empty if every interval ends within the threshold."""
    alike = table[table["verdict"].eq(ALIKE)]
    wide, unbounded = alike[alike["high"].gt(1 + threshold)], alike[alike["high"].isna()]
    said = []
    if len(wide):
        worst = wide.loc[wide["high"].idxmax()]
        said.append(
            f"{_points(wide)} with no difference found may still be slower by more than "
            f"{100 * threshold:g}%, at most by {100 * (worst['high'] - 1):.0f}% ({worst['point']})"
        )
    if len(unbounded):
        verb = "has" if len(unbounded) == 1 else "have"
        said.append(
            f"{_points(unbounded)} with no difference found {verb} no interval, hence no bound"
        )
    return "; ".join(said)


def _points(table: pd.DataFrame) -> str:
    return f"{len(table):,} point{'' if len(table) == 1 else 's'}"


def same_program(old: Run, new: Run) -> str:
    """Says so if both runs were made by one build, and names the versions that other files ran.
    Empty if not, or if a run does not say."""
    if not old.binary or old.binary != new.binary:
        return ""
    same = f"OLD and NEW are runs of the same program (fingerprint {old.binary[:8]})"
    both = sorted({*old.external} & {*new.external})
    changed = [printable(name) for name in both if old.external[name] != new.external[name]]
    if not changed:
        return f"{same}, so no difference comes from its code"
    return (
        f"{same}, but the external files of these versions differ: {', '.join(changed)}. Only "
        "differences of other versions do not come from code"
    )


def _refuse_other_gpus(old: Run, new: Run) -> None:
    a, b = (" and ".join(run.gpus or [run.gpu]) for run in (old, new))
    if a != b:
        raise _of_other_machines(old, new, "GPU", a, b)


def _refuse_other_cpus(
    old: Run, new: Run, old_points: pd.DataFrame, new_points: pd.DataFrame
) -> None:
    """By point, since each part of a sweep may have run on another node."""
    for point in old_points.index.intersection(new_points.index):
        a = old.nodes.get(str(old_points.at[point, "node"]), old.cpu)
        b = new.nodes.get(str(new_points.at[point, "node"]), new.cpu)
        if a != b:
            at = f" at {point}" if old.nodes or new.nodes else ""
            raise _of_other_machines(old, new, f"CPU{at}", a, b)


def _of_other_machines(old: Run, new: Run, what: str, a: str, b: str) -> RunError:
    return RunError(
        f"{new.path}: measured on the {what} {b or 'unknown'}, {old.path} on {a or 'unknown'}; "
        "--across-machines compares them anyway"
    )


def _other_gpu(old: Run, new: Run) -> str:
    """Why a difference between the runs may be one of two GPUs of one model. Empty if both runs
    used one and the same GPU, or none."""
    if set(old.gpus) != set(new.gpus):
        return ""
    return other_gpu(*(run.measurements["gpu_uuid"] for run in (old, new)))


def other_gpu(old: pd.Series, new: pd.Series) -> str:
    """The same for the UUIDs of rows whose GPUs are of one model; null on the CPU."""
    same = set(old.dropna()) == set(new.dropna())
    return "" if same else "measured on another GPU of this model"


def _row(side: pd.DataFrame, name: str) -> pd.Series | None:
    return side.loc[name] if name in side.index else None


class _Pair:
    """One point of both runs. `verdict` is empty until it is judged."""

    def __init__(self, name: str, old: pd.Series | None, new: pd.Series | None):
        self.name, self.verdict, self.why = name, "", ""
        self.version = str((new if old is None else old).get("version", name))
        self.medians, self.ratio, self.p = (np.nan, np.nan), (np.nan, np.nan, np.nan), np.nan
        said = [_why_not(side) for side in (old, new)]
        if any(said):
            self.verdict = NEITHER if all(said) else GAINED if said[0] else LOST
            if self.verdict == LOST and (
                new is None or new["status"] in ("unsupported", "not run")
            ):
                # not requested, or not possible here: NEW's code did not cause it
                self.verdict = NOT_RUN
            self.why = f"OLD: {said[0] or 'ok'}; NEW: {said[1] or 'ok'}"
            return
        self.medians = old["iteration_ms"], new["iteration_ms"]
        bases = [side["timing_basis"] for side in (old, new)]
        if bases[0] != bases[1]:
            self.verdict, self.why = BASES, f"{bases[0]} and {bases[1]}"
            return
        if other := _other_problem(old, new):
            self.verdict, self.why = OTHER, other
            return
        self.samples: tuple[Samples, Samples] = (old["times_ms"], new["times_ms"])
        self.launches = min(len(side.launches) for side in self.samples)
        self.ratio = ratio_interval(self.samples[1], self.samples[0])
        self.noise = "; ".join(
            f"{which} is noisy ({_disturbed(side)})"
            for which, side in (("OLD", old), ("NEW", new))
            if side["noisy"] is True
        )

    def judge(self, threshold: float, open_because: str = "") -> None:
        """Sets the verdict of a point that differs (p), unless the difference is too small."""
        _, low, high = self.ratio
        if not (low > 1 + threshold or high < 1 / (1 + threshold)):
            small = 1 / (1 + threshold) <= low and high <= 1 + threshold
            by = "less than" if small else "perhaps less than"
            self.verdict, self.why = ALIKE, f"differs by {by} {100 * threshold:g}%"
            return
        self.why = "; ".join(part for part in (open_because, self.noise) if part)
        verdicts = (OPEN_SLOWER, OPEN_FASTER) if self.why else (SLOWER, FASTER)
        self.verdict = verdicts[0 if low > 1 else 1]

    def cells(self) -> tuple:
        judged = (self.verdict, *self.medians, *self.ratio, self.p, self.why)
        return self.name, self.version, *judged


def _disturbed(side: pd.Series) -> str:
    """How many samples were disturbed, and the worst reason. The figures' CSV has all."""
    reasons = reasons_of([side["noise"]] if isinstance(side["noise"], str) else [])
    worst = next(iter(worst_of_each_kind(reasons)), "no reason was recorded")
    return f"{side['noisy_samples']} of {side['samples']} samples, such as: {worst}"


def _other_problem(old: pd.Series, new: pd.Series) -> str:
    """In what the problems of two points differ, where both say it."""
    columns = [*PROBLEM]
    if not (old["solves_differ"] or new["solves_differ"]):
        columns.append("iterations")
    for column in columns:
        values = [side[column] for side in (old, new)]
        known = all(pd.notna(value) and value != "" for value in values)
        if known and values[0] != values[1]:
            return f"{column}: OLD {values[0]}, NEW {values[1]}"
    return ""


def _judge_launches(pairs: list[_Pair], threshold: float, open_because: str) -> None:
    if not pairs:
        return
    p = permutation_test(*(_log_medians([pair.samples[i] for pair in pairs]) for i in (0, 1)))
    for pair, of in zip(pairs, p, strict=True):
        pair.p = of
        if of < LEVEL:
            pair.judge(threshold, open_because)
        else:
            pair.verdict = ALIKE


def _log_medians(points: list[Samples]) -> np.ndarray:
    """Launches × points. NaN if a point lacks a launch that others have."""
    numbers = sorted({number for samples in points for number in samples.numbers})
    table = np.full((len(numbers), len(points)), np.nan)
    for column, samples in enumerate(points):
        rows = [numbers.index(number) for number in samples.numbers]
        table[rows, column] = np.log(samples.medians)
    return table


def _judge_samples(pairs: list[_Pair], threshold: float, open_because: str) -> None:
    """Judges points with too few launches, so differences are only perhaps ones."""
    judged = []
    for pair in pairs:
        counts = [len(side) for side in pair.samples]
        pair.why = f"{counts[0]} and {counts[1]} samples"
        if np.isnan(pair.ratio[1]) or min(counts) < 6:
            pair.verdict = FEW
            pair.why += (
                ", an interval needs 6 on each side"
                if min(counts) < 6
                else ", but the launches differ too much for an interval"
            )
            continue
        pair.p = float(mannwhitneyu(*(side.pooled for side in pair.samples)).pvalue)
        judged.append(pair)
    for pair, p in zip(judged, holm(np.array([pair.p for pair in judged])), strict=True):
        pair.p = p
        if p < LEVEL:
            launches = [len(side.launches) for side in pair.samples]
            reasons = (_too_few(*launches), open_because)
            pair.judge(threshold, "; ".join(reason for reason in reasons if reason))
        elif 2 / _orders(pair) * len(judged) >= LEVEL:
            pair.verdict = FEW
            pair.why += f" among {len(judged)} points: even separate samples would not show"
        else:
            pair.verdict, pair.why = ALIKE, ""


def _orders(pair: _Pair) -> int:
    counts = [len(side) for side in pair.samples]
    return 2 * relabellings(*counts) if counts[0] == counts[1] else relabellings(*counts)


def _too_few(old: int, new: int) -> str:
    have = "one launch each" if old == new == 1 else f"{old} and {new} launches"
    return f"{have} cannot tell the program from the process (measure: {{launches: 5}})"


def _why_not(side: pd.Series | None) -> str:
    if side is None:
        return "not there"
    return "" if side["status"] == "ok" else f"{side['status']} ({side['reason']})"
