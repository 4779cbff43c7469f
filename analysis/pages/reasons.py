"""The table of reasons: why points of recorded runs have no result."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from analysis.pages.escape import Code, Words
from analysis.pages.recordings import last_rows
from analysis.pages.table import Table

HEADER = ["status", "reason", "points", "versions", "specs"]
_NUMBER = re.compile(r"(?<![\w.=])\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|\.\d)")
"""A number that stands alone: not that of fp32, or of a package's version."""
_FOLDERS = re.compile(r"(?<!\S)/(?:[^\s/]+/)+")
"""Those of a machine, before the name of a file."""


class _Refusal(NamedTuple):
    """Why a point has no result."""

    spec: str
    version: str
    reason: str


def reasons(runs: list[Path]) -> Table:
    """One row for each reason for which the last row of a point is not `ok`, with the number of
    points in each spec. Reasons that differ only in numbers are one."""
    names = Counter(run.name for run in runs)
    alike: dict[tuple[str, str], list[_Refusal]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.name, run.parent.name)):
        spec = run.name if names[run.name] == 1 else f"{run.parent.name}/{run.name}"
        for row in last_rows(run):
            if row["status"] != "ok":
                reason = _FOLDERS.sub("", row.get("reason") or "–")
                refusal = _Refusal(spec, row["version"], reason)
                alike[row["status"], _NUMBER.sub("#", reason)].append(refusal)
    groups = sorted(alike.items(), key=lambda group: (group[0][0], -len(group[1])))
    rows = [_reason_row(status, of) for (status, _), of in groups]
    return Table("reasons", "", HEADER, rows, {"points"})


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
