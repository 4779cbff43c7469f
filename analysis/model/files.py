"""Files of a run directory, read as what they are: the work of strangers.

A link is not followed, a pipe is not waited for, every value has the type that the analysis needs,
and text can be printed. What is not so is a RunError that names the file, the value and the place.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

LARGEST_DOCUMENT = 1 << 30
"""Bytes of a JSON document; the plan of a million points has half of that."""


class RunError(Exception):
    """A run directory that cannot be used. The message is one line: what, where and the remedy."""


def is_there(path: Path) -> bool:
    """Whether the folder has an entry of that name, be it a link to nowhere."""
    return os.path.lexists(path)


def open_regular(path: Path) -> BinaryIO:
    """The file for reading. Raises RunError for a link, and for what is no regular file."""
    try:
        # without O_NONBLOCK opening a pipe waits for its writer
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RunError(
                f"{path}: is a link, and links in a run directory are not followed; "
                "replace it by the file"
            ) from None
        raise RunError(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise RunError(f"{path}: not a regular file; remove it or restore the file")
    return os.fdopen(handle, "rb")


def folder_for(path: Path) -> Path:
    """Makes a folder with its parents. Raises RunError where a link stands in its place: in the run
    directory of a stranger it leads anywhere."""
    if path.is_symlink():
        raise RunError(f"{path}: is a link, and nothing is written through it; use --out")
    path.mkdir(parents=True, exist_ok=True)
    return path


def replacing(path: Path, write: Callable[[Path], object]) -> Path:
    """Has `write` write a file beside `path` and puts it in its place: whole or not at all, and
    not through a link that stands there."""
    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        write(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def printable(text: str) -> str:
    """`text` on one line without anything that a terminal, an SVG or a page would act on: control
    characters, directional marks and halves of surrogate pairs become escapes such as \\x1b."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def one_line(text: str) -> str:
    """`text` as printable() has it, with line breaks and tabs as spaces: for prose, not names."""
    return text if text.isprintable() else printable(" ".join(text.split()))


def shown(value: object) -> str:
    """A value in an error message: as JSON, at most 60 characters."""
    text = printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 60 else f"{text[:60]}…"


def read_json(path: Path, shape: object = dict) -> object:
    """A JSON document, checked against `shape` (see check_shape); {} where there is no file."""
    if not is_there(path):
        return {}
    with open_regular(path) as file:
        text = file.read(LARGEST_DOCUMENT + 1)
    if len(text) > LARGEST_DOCUMENT:
        raise RunError(f"{path}: larger than {LARGEST_DOCUMENT >> 20} MiB; not read")
    try:
        document = _clean(json.loads(text))
    except RecursionError:
        raise RunError(f"{path}: nested too deeply; restore or delete the file") from None
    except ValueError as error:
        raise RunError(f"{path}: not valid JSON ({error}); restore or delete the file") from None
    check_shape(document, shape, str(path))
    return document


def _clean(value: object) -> object:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {one_line(key): _clean(item) for key, item in value.items()}
    return value


_NAMES = {dict: "an object", list: "a list", str: "text", int: "a whole number", bool: "true/false"}
_NAMES |= {float: "a number"}
LARGEST = 2**64
"""Of a number in a document: a seed's."""


def check_shape(value: object, shape: object, where: str) -> None:
    """Raises RunError, naming the key, unless `value` has `shape`: a type; a list of one shape, for
    a list of such; a dictionary of shapes, for an object in which these keys, where they are there
    and not null, have these shapes."""
    kind = shape if isinstance(shape, type) else type(shape)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if kind in (int, float):
        # comparing with NaN is false
        fits = fits and not isinstance(value, bool) and -LARGEST <= value <= LARGEST
    if not fits:
        raise RunError(f"{where}: {shown(value)} is not {_NAMES[kind]}; restore or delete the file")
    if isinstance(shape, list):
        for index, item in enumerate(value):
            check_shape(item, shape[0], f"{where}: {index}")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            if key == "*":
                for name, item in value.items():
                    check_shape(item, inner, f"{where}: {shown(name)}")
            elif value.get(key) is not None:
                check_shape(value[key], inner, f"{where}: {key}")
