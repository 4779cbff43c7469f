"""Finds the run directories that a path means."""

from __future__ import annotations

import os
import re
from pathlib import Path

from analysis.model.files import RunError, is_there, printable

_DIGITS = re.compile(r"(\d+)")
_MARKS = ("measurements.jsonl", "plan.json", "spec.resolved.json")


def find_runs(paths: list[Path], skipped: list[str] | None = None) -> list[Path]:
    """The run directories that `paths` name: each path itself, or else every run directory below
    it, sorted. Links below it are not followed.

    Raises RunError if a path does not exist or contains no run directory. With `skipped`, raises it
    only if this is true of all paths, and adds the reasons for the paths that it leaves out."""
    found: list[Path] = []
    useless: list[str] = []
    for path in paths:
        if not path.exists():
            raise RunError(f"{printable(str(path))}: no such directory")
        inside = _runs_below(path) if path.is_dir() else []
        if not inside:
            looked = f"no run directory here or below it (looked for {', '.join(_MARKS)})"
            what = looked if path.is_dir() else "is a file, not a run directory"
            useless.append(f"{printable(str(path))}: {what}")
        found += [run for run in inside if run not in found]
    if useless and (skipped is None or not found):
        raise RunError(useless[0])
    if skipped is not None:
        skipped += useless
    return found


def _runs_below(path: Path) -> list[Path]:
    if any(is_there(path / mark) for mark in _MARKS):
        return [path]
    # rglob would follow links before Python 3.13
    found = [Path(folder) for folder, _, files in os.walk(path) if {*files} & {*_MARKS}]
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = _DIGITS.split(str(path))
    return [(int(part), part) if part.isdecimal() else (-1, part) for part in parts]
