"""Reads a generated file with numpy and pandas, and once more exactly."""

import csv
import io
import re
from fractions import Fraction

import numpy as np
import pandas as pd
from generated_binary import VECS_TYPES

LARGEST = Fraction(float(np.finfo(np.float32).max))


class RefusedError(Exception):
    """A reader refuses this text."""


def nearest_float32(text):
    """The float nearest to a decimal number. Rounds once, ties to even."""
    if not re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text, re.ASCII):
        raise RefusedError(f"{text!r} is not a number")
    double = float(text)
    with np.errstate(all="ignore"):
        single = np.float32(double)
    # A double that is not halfway between two floats lies on the same side as the decimal number.
    between = np.float64(double).view(np.uint64) & np.uint64(2**29 - 1)
    if 2.0**-126 <= abs(single) < np.inf and between != 2**28:
        return single
    digits, _, exponent = text.strip().lower().partition("e")
    exponent = int(exponent or 0)
    if double == 0 or exponent < -400:  # zero, or below half of the smallest float
        return np.float32(double)
    if abs(exponent) > 400:
        raise RefusedError(f"{text} is beyond the largest float")
    exact = abs(Fraction(digits)) * Fraction(10) ** exponent
    if exact >= LARGEST + Fraction(2) ** 103:
        raise RefusedError(f"{text} is beyond the largest float")
    near = [np.float32(min(abs(double), float(LARGEST)))]
    near += [np.nextafter(near[0], np.float32(limit)) for limit in (0, LARGEST)]
    near.sort(key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))
    return -near[0] if text.lstrip().startswith("-") else near[0]


def without_comments(file):
    """The text, without the header and without blank lines and comments.

    Only whole lines are comments. numpy and pandas have no option for this.
    """
    text = file.raw.decode("utf-8-sig", errors="replace").removesuffix("\r")
    if file.format == "space" and "\r" in text.replace("\r\n", ""):
        raise RefusedError("carriage returns")
    blanks = " " if file.separator == "\t" else " \t"
    kept = []
    for line in text.split("\n"):
        bare = line[:-1] if line.endswith("\r") else line
        bare = bare.lstrip(blanks)
        if bare and not bare.startswith("#"):
            kept.append(line)
    header = kept.pop(0) if file.has_header and kept else None
    return "\n".join(kept) + "\n", header


def header_names(file, header, count):
    """The names of the columns."""
    if header is None:
        raise RefusedError("no header")
    if file.separator is None:
        names = header.split()
    else:
        reader = csv.reader([header], delimiter=file.separator, skipinitialspace=True)
        names = [name.strip(" \t\r") for name in next(reader)]
    if len(names) + 1 == count and file.index == "0":  # as R writes row names
        names.insert(0, "")
    if len(names) != count:
        raise RefusedError("names")
    return names


def columns_to_read(file, header, count):
    def number(key):
        if key.startswith("="):
            names = header_names(file, header, count)
            if names.count(key[1:]) != 1:
                raise RefusedError("no such name")
            return names.index(key[1:])
        column = int(key) if int(key) >= 0 else count + int(key)
        if not 0 <= column < count:
            raise RefusedError("no such column")
        return column

    unread = {number(key) for key in (file.index, file.label) if key != ""}
    kept = [i for i in range(count) if i not in unread]
    if file.columns:
        kept = [number(key) for key in file.columns]
        if unread & set(kept) or len(set(kept)) < len(kept):
            raise RefusedError("contradiction")
    if not kept:
        raise RefusedError("no column left")
    return kept


def finite(values):
    with np.errstate(all="ignore"):
        singles = np.asarray(values).astype(np.float32)
    if not np.isfinite(singles).all():
        raise RefusedError("not finite")
    return singles


def read_by_numpy(file, text, header):
    common = {"comments": None, "ndmin": 2, "encoding": None, "delimiter": file.separator}
    if file.format != "space":
        common["quotechar"] = '"'
    words = np.loadtxt(io.StringIO(text, newline=""), dtype=str, **common)
    if words.size == 0:
        raise RefusedError("nothing")
    kept = columns_to_read(file, header, words.shape[1])
    if file.decimal == ",":
        common["converters"] = with_point
    return finite(
        np.loadtxt(io.StringIO(text, newline=""), dtype=np.float64, usecols=kept, **common)
    )


def with_point(text):
    """The number in a text with a decimal comma."""
    if "." in text:
        raise RefusedError("a point")
    return float(text.replace(",", "."))


def read_by_pandas(file, text, header):
    common = {
        "sep": file.separator or r"\s+",
        "decimal": file.decimal or ".",
        "header": None,
        "skipinitialspace": True,
        "na_filter": False,
        "engine": "c",
        "float_precision": "round_trip",
    }
    words = pd.read_csv(io.StringIO(text, newline=""), dtype=str, keep_default_na=False, **common)
    if words.isna().to_numpy().any():
        raise RefusedError("short rows")
    kept = columns_to_read(file, header, words.shape[1])
    if (words[kept] == "").to_numpy().any():
        raise RefusedError("empty field")
    common["na_filter"] = True
    frame = pd.read_csv(io.StringIO(text, newline=""), usecols=kept, dtype=np.float64, **common)
    return finite(frame[kept].to_numpy())  # usecols does not order them


def read_exactly(file, text, header):
    """Splits with the csv module or split() and rounds each number once."""
    if file.format == "space":
        rows = [
            re.split(r"[ \t]+", line.strip(" \t\r")) for line in text.split("\n") if line.strip()
        ]
    else:
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=file.separator,
            skipinitialspace=True,
            strict=False,
        )
        rows = [row for row in reader if row]
    if not rows or len({len(row) for row in rows}) != 1:
        raise RefusedError("ragged")
    kept = columns_to_read(file, header, len(rows[0]))

    def number(text):
        if file.decimal == ",":
            if "." in text:
                raise RefusedError("a point")
            text = text.replace(",", ".")
        return nearest_float32(text)

    return np.array([[number(row[i]) for i in kept] for row in rows], dtype=np.float32)


def read_npy(file):
    stream = io.BytesIO(file.raw)
    values = np.load(stream, allow_pickle=False)
    if stream.read(1):
        raise RefusedError("bytes left")
    if values.dtype.kind not in "fiu" or values.ndim not in (1, 2):
        raise RefusedError("kind")
    return finite(values.reshape(len(values), -1))


def read_npz(file):
    if isinstance(file.values, np.ndarray):
        # The checksum protects the array, so it is read as it was, or not at all.
        return finite(file.values.reshape(len(file.values), -1))
    raise RefusedError("no array, or which one?")


def read_vecs(file):
    dim = int(np.frombuffer(file.raw, "<i4", 1)[0])
    if dim < 1:
        raise RefusedError("length")
    row = np.dtype([("length", "<i4"), ("values", VECS_TYPES[file.format], (dim,))])
    rows = np.frombuffer(file.raw, row)
    if (rows["length"] != dim).any():
        raise RefusedError("lengths differ")
    return finite(rows["values"])


def attempt(read, *arguments):
    try:
        return read(*arguments)
    except Exception as error:
        return error


def same(a, b):
    return a.shape == b.shape and bool(
        (np.ascontiguousarray(a).view(np.uint32) == np.ascontiguousarray(b).view(np.uint32)).all()
    )
