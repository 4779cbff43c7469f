"""The table of recorded runs: what each took, and what came out."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter, defaultdict
from pathlib import Path
from string import ascii_lowercase

from analysis.model.recorded import rows_of, seconds_of
from analysis.pages.escape import Code, Words
from analysis.pages.table import Table

SWEEPS = Path(__file__).resolve().parents[2] / "experiments" / "sweeps"
HEADER = ["machine", "spec", "points", "ok", "others", "minutes", "commit", "date", "options"]
CHANGED = "*"
"""Follows the name of a spec that has changed since the run."""
OPTIONS = {"set": "--set", "only": "--only", "filter": "--filter"}
"""Of what plan.json tells under `overrides`, what changes the points, with its option."""


def recorded_runs(runs: list[Path], sweeps: Path = SWEEPS) -> Table:
    """One row for each run directory, by the folder that it is in and by its own name. `sweeps` is
    the folder of the specs.

    A point has the status of its last row. `minutes` is the time from the first row to the last. A
    commit of which several programs made runs is followed by a letter for each program."""
    runs = sorted(runs, key=lambda run: (run.parent.name, run.name))
    texts = [(run / "environment.json").read_text(encoding="utf-8") for run in runs]
    environments = [json.loads(text) for text in texts]
    rows = [
        _row(run, sweeps / f"{run.name}.yaml", environment, commit)
        for run, environment, commit in zip(runs, environments, _commits(environments), strict=True)
    ]
    return Table("recordings", "", HEADER, rows, {"points", "ok", "minutes"})


def _commits(environments: list[dict]) -> list[str]:
    """The commit that each run is of, with a letter if runs are of several programs of it. The
    programs have their letters in the order of their first runs."""
    programs: dict[str, list[str | None]] = defaultdict(list)
    for environment in sorted(environments, key=lambda each: str(each.get("t_utc") or "")):
        commit, binary = _program(environment)
        if binary not in programs[commit]:
            programs[commit].append(binary)
    said = []
    for commit, binary in map(_program, environments):
        letter = f" {ascii_lowercase[programs[commit].index(binary)]}"
        said.append(commit[:10] + (letter if len(programs[commit]) > 1 else ""))
    return said


def _program(environment: dict) -> tuple[str, str | None]:
    """Its commit and what tells its bits from those of others."""
    build = environment.get("build") or {}
    return str(build.get("commit") or "–"), build.get("binary")


def _row(run: Path, spec: Path, environment: dict, commit: str) -> list[Words]:
    last = last_rows(run)
    count = Counter(row["status"] for row in last)
    ok = count.pop("ok", 0)
    others = ", ".join(f"{count[name]} {name}" for name in sorted(count))
    minutes = f"{(seconds_of(run) or 0) / 60:.1f}"
    date = str(environment.get("t_utc") or "–")[:10]
    counts = [str(len(last)), str(ok), others]
    name = (Code(run.name), f" {CHANGED}") if _has_changed(run, spec) else Code(run.name)
    return [run.parent.name, name, *counts, minutes, commit, date, _options(run)]


def last_rows(run: Path) -> list[dict]:
    """The last row of each point."""
    return [*{row["point"]: row for row in rows_of(run / "measurements.jsonl")}.values()]


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
