"""Judges what the reader answered about a generated file."""

import re

import numpy as np
from generated_file import SEPARATORS, File
from other_readers import (
    RefusedError,
    attempt,
    read_by_numpy,
    read_by_pandas,
    read_exactly,
    read_npy,
    read_npz,
    read_vecs,
    same,
    without_comments,
)


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
        other = attempt({"npy": read_npy, "npz": read_npz}.get(file.format, read_vecs), file)
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
