"""The table of recorded runs: what each took, and what came out."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from pathlib import Path

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

    A point has the status of its last row. `minutes` is the time from the first row to the last."""
    runs = sorted(runs, key=lambda run: (run.parent.name, run.name))
    rows = [_row(run, sweeps / f"{run.name}.yaml") for run in runs]
    return Table("recordings", "", HEADER, rows, {"points", "ok", "minutes"})


def _row(run: Path, spec: Path) -> list[Words]:
    status = {row["point"]: row["status"] for row in rows_of(run / "measurements.jsonl")}
    count = Counter(status.values())
    ok = count.pop("ok", 0)
    others = ", ".join(f"{count[name]} {name}" for name in sorted(count))
    environment = json.loads((run / "environment.json").read_text(encoding="utf-8"))
    commit = str((environment.get("build") or {}).get("commit") or "–")[:10]
    minutes = f"{(seconds_of(run) or 0) / 60:.1f}"
    date = str(environment.get("t_utc") or "–")[:10]
    counts = [str(len(status)), str(ok), others]
    name = (Code(run.name), f" {CHANGED}") if _has_changed(run, spec) else Code(run.name)
    return [run.parent.name, name, *counts, minutes, commit, date, _options(run)]


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
