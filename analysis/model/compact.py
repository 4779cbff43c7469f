"""Makes a run directory small enough to record: groups rows, and removes what can be derived."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path

from analysis.model.files import RunError, is_there, open_regular, replacing
from analysis.model.groups import expanded, grouped, is_group

DERIVED = {
    "benchmark.json": "measurements.jsonl",
    "summary.md": "measurements.jsonl",
    "timeline.json": "timeline.jsonl",
}
"""Files whose whole content is also in other files."""


def _point(row: dict) -> Hashable:
    return row.get("point")


def _version(row: dict) -> Hashable:
    return row.get("version")


def _reason_or_point(row: dict) -> Hashable:
    unsupported = row.get("status") == "unsupported"
    return (row.get("reason"),) if unsupported else row.get("point")


TABLES: dict[str, Callable[[dict], Hashable]] = {
    "measurements.jsonl": _reason_or_point,
    "phases.jsonl": _point,
    "counters.jsonl": _point,
    "timeline.jsonl": _point,
    "convergence.jsonl": _point,
    "passes.jsonl": _version,
}
"""Files of rows, and the fields whose values decide which rows form a group."""


def compact(run: Path) -> tuple[int, int]:
    """Compacts a run directory in place; returns its bytes before and after.

    Raises RunError, and leaves the file as it is, if a line is not a row, or if the compacted rows
    would differ from those in the file."""
    before = _size(run)
    for name, key in TABLES.items():
        if is_there(run / name):
            _compact_rows(run / name, key)
    for name, source in DERIVED.items():
        if is_there(run / name) and is_there(run / source):
            (run / name).unlink()
    return before, _size(run)


def _size(run: Path) -> int:
    return sum(file.lstat().st_size for file in run.rglob("*") if file.is_file())


def _compact_rows(file: Path, key: Callable[[dict], Hashable]) -> None:
    def write(beside: Path) -> None:
        with beside.open("w", encoding="utf-8") as out:
            for line in grouped(_by_reason(file), key):
                out.write(_text(line) + "\n")
        for old, new in zip(_by_reason(file), _rows(beside), strict=True):
            if _sorted(old) != _sorted(new):
                raise RunError(f"{file}: a row changed when it was compacted; the file is kept")

    replacing(file, write)


def _by_reason(file: Path) -> Iterator[dict]:
    """The rows of a file in their order, except that each row of an unsupported point follows the
    first row with the same reason."""
    refused: dict[object, list[dict]] = {}
    others = set()
    for row in _rows(file):
        if row.get("status") == "unsupported":
            refused.setdefault(row.get("reason"), []).append(row)
        else:
            others.add(row.get("point"))
    for row in _rows(file):
        # the other rows of a point decide which of its rows count, so they stay in their order
        if row.get("status") != "unsupported" or row.get("point") in others:
            yield row
        else:
            same = refused.pop(row.get("reason"), [])
            yield from (one for one in same if one.get("point") not in others)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _sorted(row: dict) -> str:
    return json.dumps(row, sort_keys=True)


def _rows(file: Path) -> Iterator[dict]:
    with open_regular(file) as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError("not an object")
                yield from expanded(row) if is_group(row) else [row]
            except (ValueError, RecursionError) as error:
                raise RunError(
                    f"{file}:{number}: this line is not a row ({error}); only whole files are "
                    "compacted"
                ) from None
