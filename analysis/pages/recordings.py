"""The tables of recorded runs: what each took and what came out, and why points have no result."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

from analysis.model.recorded import rows_of, seconds_of
from analysis.pages.escape import Code, Words
from analysis.pages.table import Table

SWEEPS = Path(__file__).resolve().parents[2] / "experiments" / "sweeps"
HEADER = ["machine", "spec", "points", "ok", "others", "minutes", "commit", "date", "options"]
REASONS_HEADER = ["status", "reason", "points", "versions", "specs"]
CHANGED = "*"
"""Follows the name of a spec that has changed since the run."""
OPTIONS = {"set": "--set", "only": "--only", "filter": "--filter"}
"""Of what plan.json tells under `overrides`, what changes the points, with its option."""
_NUMBER = re.compile(r"(?<![\w.=])\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|\.\d)")
"""A number that stands alone: not that of fp32, or of a package's version."""
_FOLDERS = re.compile(r"(?<!\S)/(?:[^\s/]+/)+")
"""Those of a machine, before the name of a file."""


class _Refusal(NamedTuple):
    """Why a point has no result."""

    spec: str
    version: str
    reason: str


def recorded_runs(runs: list[Path], sweeps: Path = SWEEPS) -> Table:
    """One row for each run directory, by the folder that it is in and by its own name. `sweeps` is
    the folder of the specs.

    A point has the status of its last row. `minutes` is the time from the first row to the last. A
    commit of which several programs made runs is followed by a letter for each program."""
    runs = sorted(runs, key=lambda run: (run.parent.name, run.name))
    read = {run: json.loads((run / "environment.json").read_text(encoding="utf-8")) for run in runs}
    commits = _commits([*read.values()])
    rows = [
        _row(run, sweeps / f"{run.name}.yaml", environment, commit)
        for (run, environment), commit in zip(read.items(), commits, strict=True)
    ]
    return Table("recordings", "", HEADER, rows, {"points", "ok", "minutes"})


def _commits(environments: list[dict]) -> list[str]:
    """The commit that each run is of, with a letter if runs are of several programs of it. The
    programs have their letters in the order of their first runs."""
    builds = [environment.get("build") or {} for environment in environments]
    programs: dict[str | None, list[str | None]] = defaultdict(list)
    in_time = sorted(range(len(builds)), key=lambda at: str(environments[at].get("t_utc") or ""))
    for build in (builds[at] for at in in_time):
        of_commit = programs[build.get("commit")]
        if build.get("binary") not in of_commit:
            of_commit.append(build.get("binary"))
    said = []
    for build in builds:
        commit = build.get("commit")
        of_commit = programs[commit]
        letter = f" {ascii_lowercase[of_commit.index(build.get('binary'))]}"
        said.append(str(commit or "–")[:10] + (letter if len(of_commit) > 1 else ""))
    return said


def _row(run: Path, spec: Path, environment: dict, commit: str) -> list[Words]:
    last = _last_rows(run)
    count = Counter(row["status"] for row in last)
    ok = count.pop("ok", 0)
    others = ", ".join(f"{count[name]} {name}" for name in sorted(count))
    minutes = f"{(seconds_of(run) or 0) / 60:.1f}"
    date = str(environment.get("t_utc") or "–")[:10]
    counts = [str(len(last)), str(ok), others]
    name = (Code(run.name), f" {CHANGED}") if _has_changed(run, spec) else Code(run.name)
    return [run.parent.name, name, *counts, minutes, commit, date, _options(run)]


def _last_rows(run: Path) -> list[dict]:
    """The last row of each point."""
    return [*{row["point"]: row for row in rows_of(run / "measurements.jsonl")}.values()]


def reasons(runs: list[Path]) -> Table:
    """One row for each reason for which the last row of a point is not `ok`, with the number of
    points in each spec. Reasons that differ only in numbers are one."""
    names = Counter(run.name for run in runs)
    alike: dict[tuple[str, str], list[_Refusal]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.name, run.parent.name)):
        spec = run.name if names[run.name] == 1 else f"{run.parent.name}/{run.name}"
        for row in _last_rows(run):
            if row["status"] != "ok":
                reason = _FOLDERS.sub("", row.get("reason") or "–")
                refusal = _Refusal(spec, row["version"], reason)
                alike[row["status"], _NUMBER.sub("#", reason)].append(refusal)
    groups = sorted(alike.items(), key=lambda group: (group[0][0], -len(group[1])))
    rows = [_reason_row(status, of) for (status, _), of in groups]
    return Table("reasons", "", REASONS_HEADER, rows, {"points"})


def _reason_row(status: str, alike: list[_Refusal]) -> list[Words]:
    versions = [(Code(name),) for name in sorted({each.version for each in alike})]
    counts = Counter(each.spec for each in alike).items()
    specs = [(Code(name), f" {count}") for name, count in counts]
    reason = _with_ranges([each.reason for each in alike])
    return [status, reason, str(len(alike)), _listed(versions), _listed(specs)]


def _with_ranges(same: list[str]) -> str:
    """Texts that differ only in numbers as one, in which a number that differs is a range."""
    columns = zip(*(_NUMBER.findall(each) for each in same), strict=True)
    ranges = iter([_range(column) for column in columns])
    return _NUMBER.sub(lambda _: next(ranges), same[0])


def _range(numbers: tuple[str, ...]) -> str:
    ordered = sorted({*numbers}, key=lambda number: float(number.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _listed(items: list[tuple[str, ...]]) -> Words:
    """The items on one line, with commas between them."""
    return tuple(piece for item in items for piece in (", ", *item))[1:]


def _has_changed(run: Path, spec: Path) -> bool:
    """Whether the spec differs from the copy of it beside the rows in more than comments."""
    then = run / "spec.yaml"
    if not then.exists() or not spec.exists():
        return False
    old, new = (_without_comments(file.read_text(encoding="utf-8")) for file in (then, spec))
    return old != new


def _without_comments(spec: str) -> list[str]:
    lines = [re.sub(r"(^|\s)#.*", "", line).rstrip() for line in spec.splitlines()]
    return [line for line in lines if line]


def _options(run: Path) -> Words:
    """The options of the command that changed the spec's points."""
    plan = run / "plan.json"
    if not plan.exists():
        return ""
    asked = json.loads(plan.read_text(encoding="utf-8")).get("overrides") or {}
    options = []
    for key, option in OPTIONS.items():
        values = asked.get(key) or []
        values = [values] if isinstance(values, str) else values
        options += [f"{option} {shlex.quote(value)}" for value in values]
    return Code(" ".join(options)) if options else ""
