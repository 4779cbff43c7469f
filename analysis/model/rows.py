"""Reads files of JSON lines into frames. Each value is checked here, once and for all."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
import numpy as np
import pandas as pd

from analysis.model.columns import Column, alike
from analysis.model.files import RunError, is_there, one_line, open_regular, printable, shown
from analysis.model.groups import expanded, is_group

SCHEMAS = (1, 2, 3)

PART_BYTES = 1_000_000
"""How much is read at a time. The rows of a part are Python objects, which need more memory than a
frame's arrays."""

MOST_PARTS = 32
"""The parts of a column that are kept before they are joined."""

MOST_WARNINGS = 5
"""The broken lines of a file that are named. Further ones are only counted."""


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

    def numbers(self, values: Sequence) -> np.ndarray:
        if alike(values):
            return np.full(len(values), self[values[0]], dtype=np.int32)
        return np.fromiter(map(self.__getitem__, values), dtype=np.int32, count=len(values))

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

    def add(self, found: dict[str, Sequence]) -> None:
        """Appends rows, given the values of each key. Raises ValueError, and appends nothing, if a
        value is not allowed."""
        arrays = {}
        for column in self.columns:
            values = column.values(found[column.key])
            if column.kind is str:
                of = self.texts[column.name]
                try:
                    arrays[column.name] = of.numbers(values)
                except (TypeError, KeyError):  # a list or an object has no hash
                    raise ValueError from None
            else:
                arrays[column.name] = column.array(values)
        for key, array in arrays.items():
            parts = self.parts[key]
            parts.append(array)
            if len(parts) == MOST_PARTS:
                # freeing many small arrays leaves holes in the heap, freeing a large one does not
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
        # a copy would put columns of one type side by side, and double the memory
        return pd.DataFrame(whole, columns=[c.name for c in self.columns], copy=False)


def _join(parts: list) -> np.ndarray | pd.api.extensions.ExtensionArray:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return pd.concat([pd.Series(part) for part in parts], ignore_index=True).array


class _Reader:
    """Takes the values of `columns` from rows. Raises ValueError if a row lacks a needed value, has
    another type there or, if `schema` is set, has no known schema. It may refuse a correct row
    (NaN, half of a surrogate pair), but never reads a row differently than json does."""

    def __init__(self, columns: list[Column], schema: bool = False):
        self._types = {c.key: object if c.get else c.kind for c in columns}
        needed = {c.key for c in columns if c.needed}
        fields = [
            (key, kind) if key in needed else (key, kind | None, None)
            for key, kind in self._types.items()
        ]
        if schema:
            fields.append(("schema", Literal[SCHEMAS]))
        # only fields that are asked for become objects
        self._row = msgspec.defstruct("Row", fields, kw_only=True, gc=False)
        self._decode = msgspec.json.Decoder(self._row).decode
        self._take = attrgetter(*self._types)

    def of_lines(self, lines: list[bytes]) -> tuple[int, dict[str, Sequence]]:
        """The number of rows in the lines, and the rows' values under each key. Every line must be
        a row, or blank."""
        if not all(map(bytes.isascii, lines)):
            # msgspec does not decode texts that are not asked for
            b"".join(lines).decode("utf-8")
        rows = [self._decode(line) for line in lines if not line.isspace()]
        return len(rows), self._by_key(rows)

    def of_objects(self, rows: list[dict]) -> dict[str, Sequence]:
        """The values of parsed rows under each key."""
        return self._by_key(msgspec.convert(rows, list[self._row]))

    def _by_key(self, rows: list) -> dict[str, Sequence]:
        values = zip(*map(self._take, rows), strict=True) if rows else [()] * len(self._types)
        return dict(zip(self._types, values, strict=True))


def frame(rows: list[dict], columns: list[Column], where: str) -> pd.DataFrame:
    """Parsed rows as a frame of these columns. Raises RunError for the first error."""
    table = _Table(columns)
    try:
        table.add(_Reader(columns).of_objects(rows))
    except ValueError:
        for index, row in enumerate(rows):
            _refuse(row, columns, f"{where}: {index}")
        raise
    return table.frame()


def read_rows(
    path: Path, columns: list[Column], warnings: list[str], *, schema: bool = False
) -> pd.DataFrame:
    """A file of JSON lines as a frame of these columns. Empty if there is no file.

    A line that is not a row is left out and named in `warnings`. The last line is cut off if the
    run was killed while writing it. Raises RunError, naming the line, for an impossible value and,
    if `schema` is set, for an unknown schema. Also raises it if none of the lines is a row."""
    table = _Table(columns)
    if not is_there(path):
        return table.frame()
    broken: list[str] = []
    lines_seen = rows_seen = 0
    reader = _Reader(columns, schema)
    wanted = {"schema", *(column.key for column in columns)}
    with open_regular(path) as file, _no_collection():
        for first, lines in _parts(file):
            try:
                count, found = reader.of_lines(lines)
                table.add(found)
            except (ValueError, RecursionError):
                # groups of rows, something that msgspec refuses, or an error
                rows = list(_row_by_row(path, first, lines, file, wanted, broken))
                count = len(rows)
                try:
                    table.add(reader.of_objects([row for _, row in rows]))
                except ValueError:
                    for where, row in rows:
                        _refuse_schema(row, schema, where)
                        _refuse(row, columns, where)
                    raise
            rows_seen += count
            lines_seen += len(lines)
    if not rows_seen and len(broken) > 1:
        raise RunError(f"{path}: none of its {lines_seen:,} lines is a row; restore the file")
    warnings += broken[:MOST_WARNINGS]
    if len(broken) > MOST_WARNINGS:
        warnings.append(f"{path}: {len(broken) - MOST_WARNINGS:,} more lines are not rows")
    return table.frame()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turns off garbage collection. Plain values have no cycles, and the search for cycles would
    take a third of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _parts(file: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """Yields some lines at a time, with the number of the first one."""
    number = 1
    while lines := file.readlines(PART_BYTES):
        yield number, lines
        number += len(lines)


def _row_by_row(
    path: Path, first: int, lines: list[bytes], file: BinaryIO, wanted: set[str], broken: list[str]
) -> Iterator[tuple[str, dict]]:
    """The place and the object of each row on those lines. Rows of a group have only the `wanted`
    fields. `broken` receives the lines without a row."""
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        where = f"{path}:{first + place}"
        if is_group(row):
            try:
                yield from ((where, one) for one in expanded(row, wanted))
            except ValueError as error:
                raise RunError(f"{where}: {error}; restore the file") from None
        elif isinstance(row, dict):
            yield where, row
        else:
            last = not any(rest.strip() for rest in lines[place + 1 :]) and not file.peek(1)
            what = "the last line is cut off" if last else "this line is not a row"
            broken.append(f"{where}: {what}; it is left out")


def _refuse_schema(row: dict, schema: bool, where: str) -> None:
    value = row.get("schema")
    if schema and (type(value) is not int or value not in SCHEMAS):
        raise RunError(
            f"{where}: schema {shown(value)}; this version reads schemas "
            f"{', '.join(map(str, SCHEMAS))}. Use the analysis that came with the program "
            "that wrote it"
        )


def _refuse(row: object, columns: list[Column], where: str) -> None:
    if not isinstance(row, dict):
        raise RunError(f"{where}: {shown(row)} is not an object; restore the file")
    for column in columns:
        if fault := column.fault(row):
            raise RunError(f"{where}: {fault}; correct the row or leave it out")
