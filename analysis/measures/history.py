"""One problem's medians over commits: which recordings there are, their order, and where a version
became slower or faster.

A recording is a run that measured the problem. Samples of two recordings are never pooled. A
version is tested between one recording of it and the next on the same machine, by the test of
`compare`. Between two GPUs of one model a difference is only a perhaps, as there."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.measures.compare import (
    FASTER,
    OPEN_FASTER,
    OPEN_SLOWER,
    SLOWER,
    compare_points,
    other_gpu,
)
from analysis.measures.fastest import fastest
from analysis.measures.points import all_points
from analysis.model.files import RunError, printable
from analysis.model.numbers import count_text, number_text
from analysis.model.run import PROBLEM, Run

COLUMNS = ["place", "run", "commit", "dirty", "commit_utc", "recorded_utc"]
"""Of a recording; `place` is where it stands in the order, shared by machines."""
TESTED = ["previous_run", "verdict", "ratio", "ratio_low", "ratio_high", "p", "why"]
"""Of a point: how it compares with the version's recording before it."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class History:
    """A row for each version, machine and recording: the point's columns (see measures.points),
    COLUMNS and TESTED. `by_commit`: the order is that of the commits, else that of measuring.
    `others` are the problems that were not chosen."""

    points: pd.DataFrame
    problem: dict
    by_commit: bool
    others: int


def recordings(runs: list[Run]) -> pd.DataFrame:
    """Every point of every run, each version at its fastest tunables, those without a result too,
    with COLUMNS but `place`. Machines are told apart by GPU and CPU."""
    parts = []
    for run in runs:
        points = all_points([run], "")
        best = fastest(points)
        key = ["machine", "version", *PROBLEM]
        bad = points[points["status"].ne("ok")].drop_duplicates(key)
        own = pd.concat([best, bad]).drop_duplicates(key)
        cpu = run.environment.get("cpu") or {}
        build = run.environment.get("build") or {}
        gpus = run.measurements.groupby("point")["gpu_uuid"].first()
        own = own.assign(
            run=printable(str(run.path)),
            gpu_uuid=own["point"].map(gpus),
            cpu=str(cpu.get("model") or ""),
            commit=str(build.get("commit") or UNKNOWN),
            dirty=build.get("dirty") is True,
            recorded_utc=str(run.environment.get("t_utc") or ""),
        )
        parts.append(own)
    every = pd.concat(parts, ignore_index=True)
    several = every.groupby("machine")["cpu"].transform("nunique").gt(1) & every["cpu"].ne("")
    named = every["machine"] + " with " + every["cpu"]
    every["machine"] = every["machine"].where(~several, named)
    return every.drop(columns="cpu")


def choose(every: pd.DataFrame, asked: dict, versions: list[str]) -> tuple[pd.DataFrame, int]:
    """The rows of one problem and of `versions` (globs; none: all), and how many other problems
    there would be. Of the problems that `asked` leaves, the one whose versions were measured again
    most often, of these the largest. Where no version is named, those that were measured once are
    left out. Raises RunError when nothing is left, or nothing was measured
    twice."""
    rows = every
    for axis, value in asked.items():
        kept = rows[rows[axis].eq(value)] if value is not None else rows
        if kept.empty:
            there = sorted(rows[axis].dropna().unique())
            known = ", ".join(v if isinstance(v, str) else count_text(v) for v in there)
            raise RunError(f"--{axis}: no run has {value} there; there are {known}")
        rows = kept
    if versions:
        for glob in versions:
            if not fnmatch.filter(rows["version"].unique(), glob):
                known = ", ".join(sorted(rows["version"].unique()))
                raise RunError(f"--versions: no version is called '{glob}'; there are {known}")
        named = [any(fnmatch.fnmatchcase(v, glob) for glob in versions) for v in rows["version"]]
        rows = rows[named]
    ok = rows[rows["status"].eq("ok")]
    times = ok.groupby([*PROBLEM, "machine", "version"])["run"].nunique() - 1
    repeats = times.groupby(level=PROBLEM).sum()
    if repeats.empty or repeats.max() < 1:
        raise RunError(
            f"no version was measured twice at one problem on one machine ({len(repeats)} problems "
            f"in {rows['run'].nunique()} runs); a history needs two recordings of the same"
        )
    size = [float(n) * float(k) * float(dim) for n, k, dim, *_ in repeats.index]
    order = np.lexsort((size, repeats.to_numpy()))
    chosen = repeats.index[order[-1]]
    same = np.logical_and.reduce(
        [rows[column].eq(value) for column, value in zip(PROBLEM, chosen, strict=True)]
    )
    rows = rows[same]
    if not versions:
        again = times[chosen].groupby(level="version").max()
        rows = rows[rows["version"].isin(again.index[again > 0])]
    return rows, int(repeats.gt(0).sum()) - 1


def history(
    every: pd.DataFrame,
    asked: dict,
    versions: list[str],
    times: dict[str, int],
    threshold: float,
) -> History:
    """The history of one problem (see choose). `times` are those of the commits that are known; if
    one is missing, the order is that of measuring."""
    rows, others = choose(every, asked, versions)
    by_commit = set(rows["commit"]) <= set(times)
    made = rows["commit"].map(times)
    rows = rows.assign(
        commit_utc=pd.to_datetime(made, unit="s", utc=True).dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        made=made if by_commit else 0,
    )
    # a commit that was measured on two days stays in one place when its time is known
    key = ["made", "commit", "dirty", "recorded_utc"] if by_commit else ["recorded_utc"]
    rows = rows.sort_values([*key, "run"], kind="stable")
    rows["place"] = _places(rows, by_commit)
    rows = _tested(rows, threshold)
    problem = rows.iloc[0][PROBLEM].to_dict()
    return History(rows.reset_index(drop=True), problem, by_commit, others)


def _places(rows: pd.DataFrame, by_commit: bool) -> pd.Series:
    """Recordings of one commit on two machines stand at one place, on one machine side by side."""
    runs = rows.drop_duplicates(["machine", "run"])
    if not by_commit:
        order = {run: place for place, run in enumerate(dict.fromkeys(runs["run"]))}
        return rows["run"].map(order)
    turn = runs.groupby(["commit", "dirty", "machine"], sort=False).cumcount()
    slots = runs.assign(turn=turn)[["made", "commit", "dirty", "turn"]].drop_duplicates()
    slots = slots.sort_values(["made", "commit", "dirty", "turn"], kind="stable")
    order = {slot: place for place, slot in enumerate(slots.itertuples(index=False, name=None))}
    of = {
        (machine, run): order[made, commit, dirty, number]
        for machine, run, made, commit, dirty, number in zip(
            *(runs[c] for c in ("machine", "run", "made", "commit", "dirty")), turn, strict=True
        )
    }
    pairs = zip(rows["machine"], rows["run"], strict=True)
    return pd.Series([of[pair] for pair in pairs], index=rows.index)


def _tested(rows: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """`rows` with TESTED: all versions that go from one recording to the same next one are one
    comparison."""
    rows = rows.assign(**dict.fromkeys(TESTED, None))
    ok = rows[rows["status"].eq("ok")]
    before = ok.groupby(["machine", "version"], sort=False)["run"].shift()
    rows["previous_run"] = before.reindex(rows.index)
    pairs = ok.assign(before=before).dropna(subset="before")
    for (machine, old, new), of in pairs.groupby(["machine", "before", "run"], sort=False):
        mine = ok[ok["machine"].eq(machine) & ok["version"].isin(of["version"])]
        sides = [mine[mine["run"].eq(run)].set_index("version") for run in (old, new)]
        open_because = other_gpu(*(side["gpu_uuid"] for side in sides))
        table = compare_points(*sides, threshold, open_because).set_index("point")
        found = table.loc[of["version"], ["verdict", "ratio", "low", "high", "p", "why"]]
        rows.loc[of.index, TESTED[1:]] = found.to_numpy()
    for column in TESTED[2:6]:
        rows[column] = rows[column].astype(float)
    return rows


def changes(points: pd.DataFrame) -> list[str]:
    """A line for each change, in the order of the recordings."""
    found = points[points["verdict"].isin((SLOWER, FASTER, OPEN_SLOWER, OPEN_FASTER))]
    return [
        f"{p['verdict']}: {p['version']} on {p['machine']}, {number_text(p['ratio'])}× the time "
        f"[{number_text(p['ratio_low'])}, {number_text(p['ratio_high'])}] from {p['previous_run']} "
        f"to {p['run']} (commit {p['commit'][:10]})"
        for _, p in found.sort_values("place", kind="stable").iterrows()
    ]
