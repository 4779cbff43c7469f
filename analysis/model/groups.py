"""Groups of rows, which recorded runs use for rows that share most of their values.

A line of a compacted file is either a row, or a group of consecutive rows:
`{"group": {"point": "p", …}, "columns": {"repetition": [0, 1], "solve_ms": [1.5, 1.6]}}` stands for
two rows, which have every value of `group` and one value of each list in `columns`. Where the
values of a column are objects with the same fields, the column is not a list but a group itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from itertools import groupby, islice

LARGEST = 1000
"""The limit on the rows of a group, which a reader expands at once."""


def grouped(rows: Iterable[dict], key: Callable[[dict], Hashable]) -> Iterator[dict]:
    """The rows as lines of a compacted file. Consecutive rows with equal `key` and the same fields
    become a group."""
    for _, alike in groupby(rows, lambda row: (key(row), tuple(sorted(row)))):
        while part := list(islice(alike, LARGEST)):
            yield _with_inner_groups(_group(part)) if len(part) > 1 else part[0]


def _group(rows: list[dict]) -> dict:
    first = rows[0]
    # 1, 1.0 and True are equal, but not the same value
    texts = {name: {json.dumps(row[name], sort_keys=True) for row in rows} for name in first}
    shared = {name: first[name] for name in first if len(texts[name]) == 1}
    columns = {name: [row[name] for row in rows] for name in first if name not in shared}
    if not columns:
        # at least one column is needed, because its length is the number of rows
        name = next(iter(shared))
        columns[name] = [shared.pop(name)] * len(rows)
    return {"group": shared, "columns": columns}


def _with_inner_groups(group: dict) -> dict:
    columns = {
        name: _group(values) if _are_alike(values) else values
        for name, values in group["columns"].items()
    }
    return {"group": group["group"], "columns": columns}


def _are_alike(values: list) -> bool:
    """Whether all are objects with the same fields, at least one."""
    first = values[0]
    return (
        isinstance(first, dict)
        and bool(first)
        and all(isinstance(value, dict) and {*value} == {*first} for value in values)
    )


def is_group(line: object) -> bool:
    return isinstance(line, dict) and {*line} == {"group", "columns"}


def expanded(group: dict, wanted: Collection[str] | None = None) -> list[dict]:
    """The rows of a group, with only their `wanted` fields. Raises ValueError for a group that
    `grouped` would not write."""
    shared, columns = group["group"], group["columns"]
    if not (isinstance(shared, dict) and isinstance(columns, dict) and columns):
        raise ValueError("a group without objects `group` and `columns`")
    lengths = {_length(of) for of in columns.values()}
    if len(lengths) > 1 or not 0 < max(lengths) <= LARGEST:
        raise ValueError(f"a group whose columns are not lists of one length from 1 to {LARGEST}")
    if wanted is not None:
        shared = {name: value for name, value in shared.items() if name in wanted}
        columns = {name: of for name, of in columns.items() if name in wanted}
    values = {name: of if isinstance(of, list) else expanded(of) for name, of in columns.items()}
    return [
        {**shared, **{name: of[row] for name, of in values.items()}} for row in range(max(lengths))
    ]


def _length(column: object) -> int:
    """The number of values of a column; -1 if it is none."""
    if isinstance(column, list):
        return len(column)
    if not (is_group(column) and isinstance(column["group"], dict)):
        return -1
    inner = column["columns"]
    lists = isinstance(inner, dict) and all(isinstance(values, list) for values in inner.values())
    lengths = {len(values) for values in inner.values()} if lists else set()
    return lengths.pop() if len(lengths) == 1 else -1
