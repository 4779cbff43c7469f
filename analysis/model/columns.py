"""The columns of a file and the values that they may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.model.files import shown


@dataclass(frozen=True)
class Column:
    """A column and its allowed values. `kind` is the type of a value: str, int, float or bool. Null
    is allowed, too, unless `needed`. Numbers lie in low … high; `least` is the smallest that is not
    0. `names` are the values that a text may have. `source` is the value's key in a row, if that is
    not the column's name. `get` derives the value from what a row has there, unless that is null.
    It raises ValueError for a value that it does not know."""

    name: str
    kind: type
    needed: bool = False
    low: float = 0
    high: float = 1e15
    least: float = 0
    names: tuple[str, ...] = ()
    source: str = ""
    get: Callable[[object], object] | None = None

    @property
    def key(self) -> str:
        return self.source or self.name

    def value_in(self, row: dict) -> object:
        return self._made_of(row.get(self.key))

    def values(self, found: Sequence) -> Sequence:
        """The column's values, given what many rows have under its key."""
        return [self._made_of(value) for value in found] if self.get else found

    def _made_of(self, found: object) -> object:
        return found if self.get is None or found is None else self.get(found)

    def fault(self, row: dict) -> str:
        """What is wrong with the row's value. Empty if nothing is."""
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
        """Values of the column's type, or null, as an array. Raises ValueError if one of them is
        not allowed."""
        if self.kind is bool:
            return np.array(values, dtype=object)
        if alike(values):
            # most columns of a part are; building one number takes a hundredth of the time
            return self.array(values[:1]).repeat(len(values))
        if self.kind is float:
            numbers = np.array(values, dtype=float)  # null becomes NaN
            absent = np.isnan(numbers)
            if any(values[row] is not None for row in np.flatnonzero(absent)):
                raise ValueError
        else:
            absent = np.array([value is None for value in values], dtype=bool)
            try:
                numbers = np.array([0 if v is None else v for v in values], dtype=np.int64)
            except OverflowError:
                raise ValueError from None
        right = (numbers >= self.low) & (numbers <= self.high)
        if self.least:
            right &= (numbers == 0) | (abs(numbers) >= self.least)
        if not (right | absent).all():
            raise ValueError
        return numbers if self.kind is float else pd.arrays.IntegerArray(numbers, absent)


def alike(values: Sequence) -> bool:
    several = len(values) > 1 and values[0] == values[-1]
    return several and values.count(values[0]) == len(values)


def name(column: str, **options) -> Column:
    return Column(column, str, **options)


def whole(column: str, **options) -> Column:
    return Column(column, int, **options)


def number(column: str, **options) -> Column:
    return Column(column, float, **options)


def time(column: str) -> Column:
    """In ms. At most thirty years, and more than light needs to cross an atom."""
    return Column(column, float, high=1e12, least=1e-12)


def flag(column: str) -> Column:
    return Column(column, bool)
