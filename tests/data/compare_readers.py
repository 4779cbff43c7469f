"""Compares the readers of data files with numpy and pandas on generated files.

    python tests/data/compare_readers.py build/tests/data/read_files --files 30000 --jobs 2 --seed 1

A grammar generates files that programs and people might write: odd, but plausible. The reader must
return exactly the floats that numpy and pandas read, each the nearest to the decimal number. Or it
must refuse the file, with a line and column in it. It must read a file without odd content. Prints
the counts, and each difference with the bytes of its file. The exit status is 1 if there is a
difference.
"""

import argparse
import collections
import csv
import io
import multiprocessing
import os
import random
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd

SEPARATORS = {"csv": ",", "tsv": "\t", "space": None}
DELIMITERS = {";": ";", "|": "|", ":": ":", "tab": "\t", ",": ","}
BATCH = 200  # files per batch of requests
LARGEST = Fraction(float(np.finfo(np.float32).max))


class RefusedError(Exception):
    """A reader refuses this text."""


# ---- Numbers ----


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


def words(text):
    return text.split()


CORNERS = words("""
    1e-45 1e-46 -1e-46 7.0064923e-46 7.0064924e-46 1.4e-45 1.17549435e-38 1.1754942e-38
    3.4028235e38 3.4028234663852886e38 -0 0.0 -0.0 .5 5. -.5 -5. 1E5 1e+5 1e-05 00012
    0000.5e0002 16777217 16777219 33554435 0.1 1e-400 -1e-400 0e999 0e-999 1e0 1.e1 .1e1
    123456789012345678901234567890 0.000000000000000000000000000000000000000000001
""")


def decimals(random_):
    """A number that every reader should read."""
    r = random_
    kind = r.randrange(22)
    if kind == 0:
        return str(r.randrange(-(10**6), 10**6))
    if kind == 1:
        return repr(r.uniform(-1, 1))
    if kind == 2:
        return f"{r.uniform(-1, 1) * 10.0 ** r.randrange(-30, 30):.{r.randrange(20)}e}"
    if kind == 3:
        return f"{r.randrange(10 ** r.randrange(1, 38))}"
    if kind == 4:
        return r.choice(CORNERS)
    if kind == 5:
        return f"{np.float32(r.gauss(0, 1)):.9g}"
    if kind == 6:
        return f"{r.gauss(0, 1e-40):.17g}"
    if kind == 7:  # halfway between two floats, or next to that
        bits = (
            r.randrange(0x00800000, 0x7F7FFFFF) if r.random() < 0.9 else r.randrange(1, 0x00800000)
        )
        low = Fraction(float(np.uint32(bits).view(np.float32)))
        high = Fraction(float(np.uint32(bits + 1).view(np.float32)))
        return tie_text((low + high) / 2, r)
    if kind == 8:
        return f"{r.choice(['', '-', '+'])}{r.random():.{r.randrange(1, 60)}f}"
    if kind == 9:
        return f"{r.uniform(0, 1):.{r.randrange(1, 12)}E}"
    if kind == 10:
        return "0" * r.randrange(1, 30) + str(r.randrange(1000)) + "." + "0" * r.randrange(30)
    return f"{r.gauss(0, 10):.{r.randrange(7)}f}"


def tie_text(tie, random_):
    """A number halfway between two floats, possibly with a digit that breaks the tie."""
    scale = 0
    numerator, denominator = tie.numerator, tie.denominator
    while denominator % 2 == 0 and scale < 60:
        numerator, denominator, scale = numerator * 5, denominator // 2, scale + 1
    if denominator != 1 or numerator > 10**60:
        return "1.000000059604644775390625"
    digits = str(numerator)
    text = f"{digits}e-{scale}" if scale else digits
    if random_.random() < 0.5:
        extra = random_.choice(["0000001", "1", "0"])
        text = f"{digits}.{extra}e-{scale}"
    return text


ODD = [
    *words("""
        nan NaN -nan inf -Infinity infinity +inf 1e39 -1e39 3.4028236e38 1e999 NA N/A null None
        ? - . + x 0x10 0x1p3 1_000 1d5 1e 1e+ e5 --1 +-1 -+1 ++1 1.2.3 1e5.0 1f 1L 1;2 #1 True
        1% $1 1-2 1/2 1+2j (1) [1] １２ ٣ −5 1e５ ½ ∞ 1,5 1,000
    """),
    "'1'",
    "",
    "1\xa0",
    "\xa01",
    "1\u20282",
    "1\u2009000",
    "1 000",
    "1 2",
    "1\t2",
    '1"',
    '"',
    '""',
    '1""2',
    "1\x0b",
    "\x0c1",
    "1\x00",
    "1\r",
]

QUOTED_ODD = [
    '"1"2',
    '"1"e3',
    '"-925730"7',
    '1"2"',
    '"1" "2"',
    '"1',
    '1"',
    '""1""',
    '"1""2"',
    "'1'",
    '" 1 "',
    '"1\n2"',
    '"1\r\n"',
    '"\t1"',
]

NAMES = ["x", "y", "a b", "col1", "x1", "sepal length (cm)", "_id", "e3", "V1", "width"]
# Numbers in these columns are refused unless the columns are chosen.
NO_COORDINATES = ["id", "Index", "class", "Target", "label"]
ODD_NAMES = [
    "é",
    "日本",
    "1st",
    "",
    "(cm)",
    "2010",
    "nan",
    "NA",
    "x,y",
    'a"b',
    "#id",
    "１",
    "-",
    "x\ty",
    "5",
]
LABELS = ["a", "Iris-setosa", "b c", "7", "", "x y z", "kind", "ü", "nan", "-1", "1e3", "0x5"]


class File:
    """A generated file, the options to read it with, and what it contains."""

    def __init__(self):
        self.raw = b""
        self.format = "csv"
        self.header = ""  # as in the request: "", "0" or "1"
        self.has_header = False
        self.index = ""
        self.label = ""
        self.n = ""
        self.dim = ""
        self.delimiter = ""
        self.decimal = ""
        self.columns = []  # as in the request: numbers, or names after =
        self.array = ""
        self.values = None  # of npz: the array before anything was damaged
        self.plain = True  # nothing odd in it: the reader must read it
        self.unclear_header = False  # the first row may or may not be one

    @property
    def separator(self):
        """What is between columns. None: blanks."""
        if self.delimiter:
            return DELIMITERS[self.delimiter]
        return ";" if self.format == "csv" and self.decimal == "," else SEPARATORS[self.format]

    @property
    def by_name(self):
        return any(c.startswith("=") for c in [self.index, self.label, *self.columns])


def by_name(file, names, random_):
    """Writes the columns of the request by name, or some of them."""
    columns = len(names)

    def name(text):
        i = int(text) % columns
        if text == "" or random_.random() < 0.3 or any(c in names[i] for c in "\t\x1f\n"):
            return text
        if names.count(names[i]) > 1:
            file.plain = False
        return "=" + names[i]

    file.index = name(file.index) if file.index else ""
    file.label = name(file.label) if file.label else ""
    file.columns = [name(text) for text in file.columns]


def text_file(random_):
    r = random_
    file = File()
    file.format = r.choice(["csv", "csv", "tsv", "space"])
    blanks = file.format == "space"
    if r.random() < 0.2:
        file.decimal = ","
    if file.format == "csv" and r.random() < 0.3:
        file.delimiter = r.choice([";", ";", "|", ":", "tab", ","])
        if (file.delimiter, file.decimal) == (",", ","):
            file.plain = False
    separator = file.separator or r.choice([" ", "  ", "\t", " \t", "   "])
    rows, columns = r.randrange(1, 7), r.randrange(1, 6)
    cells = [[decimals(r) for _ in range(columns)] for _ in range(rows)]
    odd = r.random() < 0.5

    def damage(probability):
        happens = odd and r.random() < probability
        file.plain = file.plain and not happens
        return happens

    if columns > 1 and r.random() < 0.25:
        file.index = str(r.randrange(columns) if r.random() < 0.5 else 0)
    if columns > 2 and r.random() < 0.3:
        at = r.choice(
            [-1, -1, -1, -1, columns - 1, r.randrange(columns), -r.randrange(1, columns + 1)]
        )
        file.label = str(at)
    unread = {int(i) % columns for i in (file.index, file.label) if i != ""}
    chosen = []
    if r.random() < 0.2:
        chosen = r.sample(range(columns), r.randrange(1, columns + 1))
        if unread & set(chosen):
            file.plain = False
        unread |= set(range(columns)) - set(chosen)
        file.columns = [str(i) for i in chosen]
    if file.decimal == ",":
        for row in cells:
            for i in range(columns):
                row[i] = row[i].replace(".", ",")
        if damage(0.1):
            cells[r.randrange(rows)][r.randrange(columns)] = r.choice(["1.5", "1.000,5", "1,5,5"])
            file.unclear_header = True
    for i in unread:
        for row in cells:
            row[i] = r.choice(LABELS) if r.random() < 0.8 else decimals(r)
            if blanks:
                row[i] = row[i].replace(" ", "_") or "z"
            if damage(0.2):
                row[i] = r.choice([*ODD, "a#b", "#", "# x", 'a"b', "a\rb", "a\fb", "a\vb"])
    if columns == len(unread):
        file.plain = False
    if damage(0.35):
        at = r.randrange(rows)
        cells[at][r.randrange(columns)] = r.choice(ODD)
        file.unclear_header = at == 0
    if r.random() < 0.3:
        file.has_header = True
        file.header = r.choice(["", "1"])
        names = [r.choice(NAMES) for _ in range(columns)]
        if r.random() < 0.1:
            names[r.randrange(columns)] = r.choice(NO_COORDINATES)
        if not chosen and any(
            names[i] in NO_COORDINATES for i in range(columns) if i not in unread
        ):
            file.plain = False
        if blanks:
            names = [name.replace(" ", "_") for name in names]
        if damage(0.4):
            names = [r.choice(ODD_NAMES) for _ in range(columns)]
            file.unclear_header = True
        if r.random() < 0.5:
            by_name(file, names, r)
        if damage(0.1):
            names = names[1:] or names
            file.unclear_header = True
        if damage(0.05):
            names.append("more")
        cells.insert(0, names)
    elif r.random() < 0.3:
        file.header = "0"
    if damage(0.15):
        cells[r.randrange(len(cells))].append(r.choice(["9", "", "x"]))
    if columns > 1 and damage(0.15):
        at = r.randrange(len(cells))
        cells[at].pop()
        file.unclear_header = file.unclear_header or at == 0
    if damage(0.05):
        cells[0] = [r.choice(ODD) for _ in cells[0]]
        file.unclear_header = True

    quoting = not blanks and r.random() < 0.3

    def cell(text):
        needs = any(c in text for c in ('"', "\n", separator.strip(" ") or " "))
        if not blanks and (needs or (quoting and r.random() < 0.5)) and not damage(0.1):
            text = '"' + text.replace('"', '""') + '"'
        if quoting and damage(0.05):
            text = r.choice(QUOTED_ODD)
        if r.random() < 0.05:
            tabs = file.format == "csv" and separator != "\t" and not text.startswith('"')
            blank = r.choice([" ", "  ", "\t"] if tabs or damage(0.3) else [" ", "  "])
            text = r.choice([blank + text, text + blank, blank + text + blank])
        return text

    end = r.choice(["\n", "\n", "\n", "\r\n"])
    if damage(0.05):
        end = r.choice(["\r", "\r\r\n", "\n\r"])
    lines = [separator.join(cell(c) for c in row) for row in cells]
    if blanks:
        lines = [
            r.choice(["", "", " ", "\t "]) + line + r.choice(["", "", " ", " \t"]) for line in lines
        ]
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        comment = r.choice(["# comment", "#", "#1,2", "  # 3 4", "", " ", "  ", '# "', "#x\ty"])
        if damage(0.3):
            comment = r.choice(
                ["\t#x\t5", "\t", "\t\t", ",", ",,", " #", "\t#", '"#1"', "//", "%", ";"]
            )
        lines.insert(r.randrange(len(lines) + 1), comment)
    text = end.join(lines) + (end if r.random() < 0.8 else r.choice(["", "", end + end, " "]))
    if r.random() < 0.08:
        text = "\ufeff" + text
    raw = bytearray(text.encode())
    if damage(0.3):
        file.unclear_header = True
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(raw) + 1)
            byte = r.choice(b"\",,\t \n\r#0123456789.eE+-;'_x")
            kind = r.randrange(4)
            if kind == 0:
                raw[at:at] = bytes([byte])
            elif kind == 1 and at < len(raw):
                raw[at] = byte
            elif kind == 2 and at < len(raw):
                del raw[at]
            elif kind == 3:
                del raw[at : at + r.randrange(1, 12)]
    file.raw = bytes(raw)
    if file.plain and r.random() < 0.15:
        file.n = str(r.randrange(1, rows + 1))
        file.dim = str(r.randrange(1, columns - len(unread) + 1))
    return file


NPY_KINDS = words("""
    <f4 <f4 <f4 >f4 <f8 >f8 |i1 |u1 <i2 >i2 <u2 <i4 >i4 <u4 >u4 <i8 >i8 <u8 >u8 <f2 |b1 <c8 |S4
    <U2
""")


def npy_values(r):
    """An array, and whether the reader must read it."""
    kind = r.choice(NPY_KINDS)
    shape = r.choice(
        [(r.randrange(1, 6), r.randrange(1, 6))] * 6
        + [(r.randrange(1, 6),), (), (2, 2, 2), (0, 3), (3, 0)]
    )
    g = np.random.default_rng(r.randrange(2**32))
    if kind[1] in "iu":
        info = np.iinfo(np.dtype(kind))
        values = g.integers(
            info.min, info.max, size=shape, dtype=np.dtype(kind).newbyteorder("="), endpoint=True
        )
        if values.itemsize == 8 and r.random() < 0.3:  # halfway between floats, or next to that
            values = values // 2**20 * 2**20 + values.dtype.type(r.choice([0, 1, 2**19]))
    else:
        values = g.normal(size=shape) * 10.0 ** r.uniform(-45, 38.5)
        if r.random() < 0.05:
            values = values * np.nan
    with np.errstate(all="ignore"):
        values = np.asarray(values).astype(np.dtype(kind))
    if r.random() < 0.4 and values.ndim == 2:
        values = np.asfortranarray(values)
    plain = kind[1] in "fiu" and kind != "<f2" and values.ndim in (1, 2) and values.size > 0
    with np.errstate(all="ignore"):
        plain = plain and bool(np.isfinite(values.astype(np.float32)).all())
    return values, plain


def npz_file(random_):
    r = random_
    file = File()
    file.format = "npz"
    names = r.sample(["points", "arr_0", "labels", "x", "ü", "a b"], r.choice([1, 1, 2, 3]))
    made = {name: npy_values(r) for name in names}
    buffer = io.BytesIO()
    save = r.choice([np.savez, np.savez_compressed])
    save(buffer, **{name: values for name, (values, _) in made.items()})
    file.array = r.choice(names) if len(names) > 1 or r.random() < 0.3 else ""
    file.values, file.plain = made[file.array or names[0]]
    if r.random() < 0.1:
        file.array = r.choice(["", "other"])
        if file.array or len(names) > 1:
            file.values, file.plain = None, False
    raw = bytearray(buffer.getvalue())
    if r.random() < 0.5:
        file.plain = False
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(raw)) if r.random() < 0.5 else -r.randrange(1, 80)
            change = r.randrange(4)
            if change == 0:
                raw[at] = r.randrange(256)
            elif change == 1:
                raw[at] ^= 1 << r.randrange(8)
            elif change == 2:
                del raw[at]
            else:
                raw[at:at] = bytes([r.randrange(256)])
        if r.random() < 0.2:
            raw = raw[: r.randrange(len(raw) + 1)]
    file.raw = bytes(raw)
    return file


def npy_file(random_):
    r = random_
    file = File()
    file.format = "npy"
    values, file.plain = npy_values(r)
    buffer = io.BytesIO()
    np.lib.format.write_array(
        buffer, values, version=r.choice([None, (1, 0), (2, 0), (3, 0)]), allow_pickle=False
    )
    raw = bytearray(buffer.getvalue())
    if r.random() < 0.5:
        file.plain = False
        header_end = raw.index(b"\n") + 1
        for _ in range(r.randrange(1, 4)):
            at = (
                r.randrange(min(len(raw), header_end))
                if r.random() < 0.9
                else r.randrange(len(raw))
            )
            change = r.randrange(5)
            if change == 0:
                raw[at] = r.randrange(256)
            elif change == 1:
                raw[at] = r.choice(b"0123456789<>|=fiu'\"(),TFL_+-. ")
            elif change == 2:
                del raw[at]
            elif change == 3:
                raw[at:at] = bytes([r.choice(b"0123456789 ,L)_+-x'\"#\\")])
            elif b"(" in raw:
                at = raw.index(b"(") + 1
                raw[at:at] = r.choice(
                    [b"0", b"00", b"0x", b"1_", b"+", b"-", b" ", b"1*", b"(", b"True,"]
                )
        if r.random() < 0.2:
            raw = raw[: r.randrange(len(raw) + 1)]
        if r.random() < 0.1:
            raw += b"x" * r.randrange(1, 5)
    file.raw = bytes(raw)
    return file


def fvecs_file(random_):
    r = random_
    file = File()
    file.format = "fvecs"
    dim, n = r.randrange(1, 6), r.randrange(1, 6)
    values = np.random.default_rng(r.randrange(2**32)).normal(size=(n, dim)).astype("<f4")
    raw = bytearray(b"".join(np.int32(dim).tobytes() + row.tobytes() for row in values))
    if r.random() < 0.5:
        file.plain = False
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(raw))
            change = r.randrange(3)
            if change == 0:
                raw[at] = r.randrange(256)
            elif change == 1:
                del raw[at : at + r.choice([1, 4])]
            else:
                raw[at:at] = bytes(r.choice([1, 4]))
            if not raw:
                break
    file.raw = bytes(raw)
    return file


# ---- What numpy and pandas read ----


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


def read_fvecs(file):
    dim = int(np.frombuffer(file.raw, "<i4", 1)[0])
    if dim < 1:
        raise RefusedError("length")
    values = np.frombuffer(file.raw, "<f4").reshape(-1, dim + 1)
    if (values[:, 0].view("<i4") != dim).any():
        raise RefusedError("lengths differ")
    return finite(values[:, 1:])


def attempt(read, *arguments):
    try:
        return read(*arguments)
    except Exception as error:
        return error


def same(a, b):
    return a.shape == b.shape and bool(
        (np.ascontiguousarray(a).view(np.uint32) == np.ascontiguousarray(b).view(np.uint32)).all()
    )


# ---- The verdict ----


def judge(file, answer):
    """The kind of result, for the counts, and what differs (None if nothing does)."""
    if answer is None:
        return "died or hung", "the reader died or hung"
    text = file.format in SEPARATORS
    if answer.startswith("error "):
        if file.plain:
            return "refused without need", answer
        return "refused", wrong_place(file, answer) if text else None
    n, dim, bits = ([*answer.split(" "), ""])[1:4]
    ours = (
        np.frombuffer(bytes.fromhex(bits), ">u4")
        .astype(np.uint32)
        .view(np.float32)
        .reshape(int(n), int(dim))
    )
    if not text:
        other = attempt({"npy": read_npy, "npz": read_npz, "fvecs": read_fvecs}[file.format], file)
        if isinstance(other, Exception):
            return "numpy refuses", f"numpy refuses it ({other}), ours is {ours.tolist()}"
        return (
            ("equal", None)
            if same(ours, other)
            else ("differs", f"{other.tolist()} is {ours.tolist()}")
        )
    found = []
    readings = [file]
    if file.unclear_header and file.header == "":
        twin = File()
        twin.__dict__.update(file.__dict__)
        twin.has_header = not file.has_header
        readings.append(twin)
    for reading in readings:
        result, what = judge_values(reading, ours)
        if what is None:
            return result, None
        found.append((result, what))
    return found[0]


def judge_values(file, ours):
    try:
        text, header = without_comments(file)
    except RefusedError as error:
        return "differs", f"is not text for others: {error}"
    exact = attempt(read_exactly, file, text, header)
    others = {
        "numpy": attempt(read_by_numpy, file, text, header),
        "pandas": attempt(read_by_pandas, file, text, header),
    }
    if file.n != "" and not isinstance(exact, Exception):
        exact = exact[: int(file.n), : int(file.dim)]
        others = {
            k: v if isinstance(v, Exception) else v[: int(file.n), : int(file.dim)]
            for k, v in others.items()
        }
    if isinstance(exact, Exception):
        return "differs", f"no number for others ({exact}), ours is {ours.tolist()}"
    if not same(ours, exact):
        return "differs", f"exactly {exact.tolist()}, ours is {ours.tolist()}"
    agree = [
        name
        for name, other in others.items()
        if not isinstance(other, Exception) and same(ours, other)
    ]
    for name, other in others.items():
        if isinstance(other, Exception) or name in agree:
            continue
        if ours.shape != other.shape:
            return "differs", f"{name} has {other.tolist()}, ours is {ours.tolist()}"
        # numpy and pandas round to double first and then to float, so they may be one unit off.
        steps = np.abs(
            ours.view(np.int32).astype(np.int64) - np.ascontiguousarray(other).view(np.int32)
        )
        if steps.max() > 1:
            return "differs", f"{name} has {other.tolist()}, ours is {ours.tolist()}"
        agree.append(name)
    if not agree:
        return "differs", f"numpy and pandas refuse it ({others}), ours is {ours.tolist()}"
    return "equal to " + " and ".join(sorted(agree)), None


def wrong_place(file, answer):
    """What is wrong with the line and column in a message, or None."""
    match = re.match(r"error [^:]*:(\d+):(\d+): ", answer)
    if not match:
        # These errors concern the whole file, or an option that does not match it.
        whole = (
            "holds no rows|does not exist; the rows have|no column is left|but no rows after it|"
            "is empty|is not UTF-8 text|cannot be both delimiter and decimal|columns lists column|"
            "is listed in columns and left out|there is no header|header: false says"
        )
        return None if re.search(whole, answer) else f"no line and column: {answer}"
    raw = file.raw[3:] if file.raw.startswith(b"\xef\xbb\xbf") else file.raw
    lines = raw.split(b"\n")
    line, column = int(match[1]), int(match[2])
    if not 1 <= line <= len(lines) or not 1 <= column <= len(lines[line - 1]) + 1:
        return f"there is no such place: {answer}"
    return None


# ---- The reader ----


class Reader:
    """The program under test. Restarts it if it dies or hangs."""

    def __init__(self, program):
        self.program = program
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [self.program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.buffer = b""

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def line(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            block = os.read(self.process.stdout.fileno(), 1 << 16)
            if not block:
                return None
            self.buffer += block
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode("utf-8")

    def ask(self, requests):
        """The answers. None for a request during which the program died or hung."""
        answers = []
        while len(answers) < len(requests):
            if self.process is None:
                self.start()
            rest = requests[len(answers) :]
            try:
                self.process.stdin.write("".join(rest).encode())
                self.process.stdin.flush()
            except BrokenPipeError:
                pass
            for _ in rest:
                answer = self.line(20)
                answers.append(answer)
                if answer is None:
                    self.stop()
                    break
        return answers


def run(program, seed, first, count, shown):
    """Judges `count` files of a seed from `first`. A file depends only on seed and number."""
    folder = tempfile.mkdtemp(
        prefix="readers-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    )
    reader = Reader(program)
    counts, differences = collections.Counter(), []
    try:
        warnings.simplefilter("ignore")  # warnings about empty files
        for begin in range(first, first + count, BATCH):
            files, requests = [], []
            for number in range(begin, min(begin + BATCH, first + count)):
                r = random.Random(f"{seed}/{number}")
                make = r.choices(
                    [text_file, npy_file, npz_file, fvecs_file], [0.8, 0.1, 0.07, 0.03]
                )[0]
                file = make(r)
                path = os.path.join(
                    folder, f"{number - begin}.{'txt' if file.format == 'space' else file.format}"
                )
                with open(path, "wb") as out:
                    out.write(file.raw)
                files.append((number, file))
                fields = [path, file.format, file.header, file.index, file.label, file.n, file.dim]
                fields += [file.delimiter, file.decimal, "\x1f".join(file.columns), file.array]
                requests.append("\t".join(fields) + "\n")
            for (number, file), answer in zip(files, reader.ask(requests), strict=True):
                if not file.raw:
                    file.plain = False
                result, difference = judge(file, answer)
                counts[result] += 1
                if difference and len(differences) < shown:
                    differences.append((number, result, difference, file))
    finally:
        reader.stop()
        shutil.rmtree(folder)
    return counts, differences


def compare(program, files, jobs=1, seed=1, shown=10, first=0):
    """The counts of the results, and the first differences."""
    share = max(1, min(5000, -(-files // jobs)))
    parts = [
        (program, seed, at, min(share, first + files - at), shown)
        for at in range(first, first + files, share)
    ]
    counts, differences = collections.Counter(), []
    if jobs == 1:
        results = (run(*part) for part in parts)
    else:
        pool = multiprocessing.get_context("fork").Pool(jobs)
        results = pool.imap_unordered(run_part, parts)
    for done, (part_counts, part_differences) in enumerate(results, 1):
        counts.update(part_counts)
        differences += part_differences
        if len(parts) > 1:
            print(f"{done} of {len(parts)} parts, {len(differences)} differences", file=sys.stderr)
    return counts, differences


def run_part(part):
    return run(*part)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", help="read_files, of build/tests/data")
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--show", type=int, default=10, help="differences to show of each part")
    options = parser.parse_args()
    started = time.monotonic()
    counts, differences = compare(
        os.path.abspath(options.program),
        options.files,
        options.jobs,
        options.seed,
        options.show,
        options.first,
    )
    for number, result, difference, file in sorted(differences, key=lambda d: d[0])[
        : 10 * options.show
    ]:
        keys = {k: v for k, v in vars(file).items() if k != "raw" and v != ""}
        print(f"file {number}: {result}: {difference}\n  {keys}\n  {file.raw!r}")
    seconds = time.monotonic() - started
    total = sum(counts.values())
    print(f"{total:,} files in {seconds:.0f} s ({total / seconds:,.0f} a second)")
    for result, count in counts.most_common():
        print(f"  {count:>9,} {result}")
    bad = {"died or hung", "refused without need", "differs", "numpy refuses"}
    failed = len(differences) or sum(counts[word] for word in bad)
    print(f"{failed} differences" if failed else "no difference")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
