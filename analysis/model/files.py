"""Reads files of a run directory, which may come from anyone.

No link is followed and no pipe is waited for. Every value has the type that the analysis needs, and
all text can be printed. Anything else is a RunError that names the file, the value and the place.
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
"""The limit on a JSON document, in bytes. The plan of a million points has half as many."""


class RunError(Exception):
    """A run directory that cannot be used. The message is one line: what, where and the remedy."""


def is_there(path: Path) -> bool:
    """Whether the folder has an entry of that name, even if it is a broken link."""
    return os.path.lexists(path)


def open_regular(path: Path) -> BinaryIO:
    """Opens a file for reading. Raises RunError if it is a link or not a regular file."""
    try:
        # without O_NONBLOCK, opening a pipe would wait for its writer
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
    """Creates a folder with its parents. Raises RunError if a link has its name: in a run directory
    from someone else, a link may lead anywhere."""
    if path.is_symlink():
        raise RunError(f"{path}: is a link, and nothing is written through it; use --out")
    path.mkdir(parents=True, exist_ok=True)
    return path


def replacing(path: Path, write: Callable[[Path], object]) -> Path:
    """Lets `write` write a temporary file and renames it to `path`. So the file is complete or
    absent, and a link with that name is replaced, not followed."""
    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        write(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def printable(text: str) -> str:
    """`text` on one line, without anything that a terminal, an SVG or a page would act on. Control
    characters, directional marks and halves of surrogate pairs become escapes such as \\x1b."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def one_line(text: str) -> str:
    """The result of printable(), but with spaces for line breaks and tabs. For prose, not names."""
    return text if text.isprintable() else printable(" ".join(text.split()))


def shown(value: object) -> str:
    """A value in an error message: as JSON, at most 60 characters."""
    text = printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 60 else f"{text[:60]}…"


def read_json(path: Path, shape: object = dict) -> object:
    """A JSON document, checked against `shape` (see check_shape). {} if there is no file."""
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
"""The largest number in a document, which a seed may have."""


def check_shape(value: object, shape: object, where: str) -> None:
    """Raises RunError, naming the key, unless `value` has `shape`. A shape is a type, or a list of
    one shape (a list of such values), or a dictionary of shapes (an object in which these keys have
    these shapes, unless they are absent or null)."""
    kind = shape if isinstance(shape, type) else type(shape)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if kind in (int, float):
        # a comparison with NaN is false
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
