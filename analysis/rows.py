"""Files of JSON lines as frames: each value is checked once, here, and all else can rely on it."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd

from analysis.files import RunError, is_there, one_line, open_regular, printable, shown

SCHEMAS = (1, 2)
STATUSES = ("ok", "unsupported", "incorrect", "imprecise", "failed", "timeout")
PART_BYTES = 4_000_000
"""Read at a time: as dictionaries rows take ten times their text."""
MOST_PARTS = 32
"""Of a column before they are joined."""
MOST_WARNINGS = 5
"""Of broken lines in one file; the others are counted."""


@dataclass(frozen=True)
class Column:
    """What a column may hold. `kind` is the type of a value: str, int, float or bool; null as well
    unless `needed`. Numbers lie in low … high; `least` is the smallest that is not 0. `names` are
    all values that a text may have. `get` takes the value from a row, where it is not the value of
    the column's own name; it raises ValueError for a row that has something else there."""

    name: str
    kind: type
    needed: bool = False
    low: float = 0
    high: float = 1e15
    least: float = 0
    names: tuple[str, ...] = ()
    get: Callable[[dict], object] | None = None

    def value_in(self, row: dict) -> object:
        return self.get(row) if self.get else row.get(self.name)

    def fault(self, row: dict) -> str:
        """What is wrong with the row's value, and empty when nothing is."""
        try:
            value = self.value_in(row)
        except ValueError as error:
            return str(error)
        if value is None:
            return f"lacks {self.name}" if self.needed else ""
        if type(value) in self._types and self._allows(value):
            return ""
        return f"{self.name} is {shown(value)}, not {self._wanted()}"

    @property
    def _types(self) -> set[type]:
        return {int, float} if self.kind is float else {self.kind}

    def _allows(self, value: object) -> bool:
        if self.kind is str:
            return not self.names or value in self.names
        if self.kind is bool:
            return True
        return self.low <= value <= self.high and not 0 < abs(value) < self.least

    def _wanted(self) -> str:
        if self.names:
            return f"one of {', '.join(self.names)}"
        if self.kind in (str, bool):
            return {str: "text", bool: "true or false"}[self.kind]
        what = "a whole number" if self.kind is int else "a number"
        above = f", 0 or at least {self.least:g}" if self.least else ""
        return f"{what} from {self.low:g} to {self.high:g}{above}"

    def array(self, values: Sequence) -> np.ndarray | pd.api.extensions.ExtensionArray:
        """The values of many rows; raises ValueError when one of them is at fault."""
        types = set(map(type, values))
        nulls = type(None) in types
        if (nulls and self.needed) or not types - {type(None)} <= self._types:
            raise ValueError
        if self.kind is bool:
            return np.array(values, dtype=object)
        try:
            absent = np.array([v is None for v in values]) if nulls else None
            if self.kind is float:
                numbers = np.array(values, dtype=float)  # null becomes NaN
            else:
                numbers = np.array([0 if v is None else v for v in values], dtype=np.int64)
        except OverflowError:
            raise ValueError from None
        right = (numbers >= self.low) & (numbers <= self.high)
        if self.least:
            right &= (numbers == 0) | (abs(numbers) >= self.least)
        if not (right if absent is None else right | absent).all():
            raise ValueError
        if self.kind is float:
            return numbers
        mask = np.zeros(len(values), dtype=bool) if absent is None else absent
        return pd.arrays.IntegerArray(numbers, mask)


def name(column: str, **options) -> Column:
    return Column(column, str, **options)


def whole(column: str, **options) -> Column:
    return Column(column, int, **options)


def number(column: str, **options) -> Column:
    return Column(column, float, **options)


def time(column: str) -> Column:
    """In ms: at most thirty years, and longer than light takes through an atom."""
    return Column(column, float, high=1e12, least=1e-12)


def flag(column: str) -> Column:
    return Column(column, bool)


class _Texts(dict):
    """A number for each text, so that a million rows share one copy of it."""

    def __init__(self, column: Column):
        super().__init__({} if column.needed else {None: -1})
        self._column = column
        self._known: list[str] = []

    def __missing__(self, value: object) -> int:
        if type(value) is not str or not self._column._allows(value):
            raise ValueError
        clean = printable if self._column.needed else one_line
        self._known.append(clean(value))
        self[value] = len(self._known) - 1
        return self[value]

    def of(self, parts: list[np.ndarray]) -> np.ndarray:
        known = np.array([*self._known, None], dtype=object)
        return known[np.concatenate(parts)] if parts else known[:0]


@dataclass
class _Table:
    """Columns of a file as they grow, part by part."""

    columns: list[Column]
    texts: dict[str, _Texts] = field(init=False)
    parts: dict[str, list] = field(init=False)
    joined: dict[str, list] = field(init=False)

    def __post_init__(self):
        self.texts = {c.name: _Texts(c) for c in self.columns if c.kind is str}
        self.parts = {c.name: [] for c in self.columns}
        self.joined = {c.name: [] for c in self.columns}

    def add(self, rows: list[dict]) -> None:
        """Appends rows; raises ValueError, and appends nothing, when one has a fault."""
        arrays = {}
        for column, values in zip(self.columns, _values(rows, self.columns), strict=True):
            if column.kind is str:
                of = self.texts[column.name]
                try:
                    arrays[column.name] = np.fromiter(
                        map(of.__getitem__, values), dtype=np.int32, count=len(values)
                    )
                except (TypeError, KeyError):  # a list or an object has no hash
                    raise ValueError from None
            else:
                arrays[column.name] = column.array(values)
        for key, array in arrays.items():
            parts = self.parts[key]
            parts.append(array)
            if len(parts) == MOST_PARTS:
                # once freed, many small arrays leave holes in the heap; a large one does not
                self.joined[key].append(_join(parts))
                parts.clear()

    def frame(self) -> pd.DataFrame:
        whole = {}
        for column in self.columns:
            parts = [*self.joined.pop(column.name), *self.parts.pop(column.name)]
            if column.kind is str:
                whole[column.name] = self.texts[column.name].of(parts)
            else:
                whole[column.name] = _join(parts) if parts else column.array([])
        # copying would put columns of one type side by side, and double the memory
        return pd.DataFrame(whole, columns=[c.name for c in self.columns], copy=False)


def _join(parts: list) -> np.ndarray | pd.api.extensions.ExtensionArray:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return pd.concat([pd.Series(part) for part in parts], ignore_index=True).array


def _values(rows: list[dict], columns: list[Column]) -> Iterator[Sequence]:
    """Each column's values in all rows."""
    taken = {}
    if rows and len(set(map(tuple, rows))) == 1:
        # rows with the same keys, as one program writes them: half the time of asking each row
        keys = [c.name for c in columns if not c.get and c.name in rows[0]]
        of = map(itemgetter(*keys), rows) if len(keys) > 1 else []
        taken = dict(zip(keys, zip(*of, strict=True), strict=False))
        nothing = (None,) * len(rows)
        taken |= {c.name: nothing for c in columns if not c.get and c.name not in rows[0]}
    for column in columns:
        if column.name in taken:
            yield taken[column.name]
        else:
            yield [column.value_in(row) for row in rows]


def frame(rows: list[dict], columns: list[Column], where: str) -> pd.DataFrame:
    """Rows that are at hand as a frame of these columns. Raises RunError for the first fault."""
    table = _Table(columns)
    try:
        table.add(rows)
    except ValueError:
        for index, row in enumerate(rows):
            _refuse(row, columns, f"{where}: {index}")
        raise
    return table.frame()


def read_rows(
    path: Path, columns: list[Column], warnings: list[str], *, schema: bool = False
) -> pd.DataFrame:
    """A file of JSON lines as a frame of these columns; empty where there is no file.

    A line that is no row (the last one, when the run was killed while writing it) is left out and
    named in `warnings`. Raises RunError, naming the line, for a value that cannot be, for an
    unknown schema where `schema` asks for one, and for a file without any row among its lines."""
    table = _Table(columns)
    if not is_there(path):
        return table.frame()
    broken: list[str] = []
    lines_seen = rows_seen = 0
    collecting = gc.isenabled()
    # dictionaries of plain values make no cycles, and looking for them takes a third of the time
    gc.disable()
    try:
        with open_regular(path) as file:
            for first, lines in _parts(file):
                rows = _all_rows(lines, schema)
                try:
                    if rows is None:
                        raise ValueError
                    table.add(rows)
                except ValueError:
                    rows = list(_row_by_row(path, first, lines, file, columns, schema, broken))
                    table.add(rows)
                rows_seen += len(rows)
                lines_seen += len(lines)
    finally:
        if collecting:
            gc.enable()
    if not rows_seen and len(broken) > 1:
        raise RunError(f"{path}: none of its {lines_seen:,} lines is a row; restore the file")
    warnings += broken[:MOST_WARNINGS]
    if len(broken) > MOST_WARNINGS:
        warnings.append(f"{path}: {len(broken) - MOST_WARNINGS:,} more lines are no rows")
    return table.frame()


def _parts(file: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """Some lines at a time, with the number of the first one."""
    number = 1
    while lines := file.readlines(PART_BYTES):
        yield number, lines
        number += len(lines)


def _all_rows(lines: list[bytes], schema: bool) -> list[dict] | None:
    """The objects on all lines, when every line has one (and a known schema)."""
    try:
        # one call for all lines: half the time of one for each
        rows = json.loads(b"[" + b",".join(line for line in lines if line.strip()) + b"]")
    except (ValueError, RecursionError):
        return None
    if len(rows) != sum(bool(line.strip()) for line in lines) or not set(map(type, rows)) <= {dict}:
        return None
    return rows if not schema or all(map(_known, rows)) else None


def _known(row: dict) -> bool:
    value = row.get("schema")
    return type(value) is int and value in SCHEMAS


def _row_by_row(
    path: Path,
    first: int,
    lines: list[bytes],
    file: BinaryIO,
    columns: list[Column],
    schema: bool,
    broken: list[str],
) -> Iterator[dict]:
    """The objects on those lines that have one; raises RunError for the first with a fault."""
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        where = f"{path}:{first + place}"
        if not isinstance(row, dict):
            last = not any(rest.strip() for rest in lines[place + 1 :]) and not file.peek(1)
            what = "the last line is cut off" if last else "this line is not a row"
            broken.append(f"{where}: {what}; it is left out")
            continue
        if schema and not _known(row):
            raise RunError(
                f"{where}: schema {shown(row.get('schema'))}; this version reads schemas "
                f"{' and '.join(map(str, SCHEMAS))}. Use the analysis that came with the program "
                "that wrote it"
            )
        _refuse(row, columns, where)
        yield row


def _refuse(row: object, columns: list[Column], where: str) -> None:
    if not isinstance(row, dict):
        raise RunError(f"{where}: {shown(row)} is not an object; restore the file")
    for column in columns:
        if fault := column.fault(row):
            raise RunError(f"{where}: {fault}; correct the row or leave it out")
