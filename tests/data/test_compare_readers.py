"""Compares the data readers with numpy and pandas, and tests that the comparison can fail."""

import os
import pathlib

import numpy as np
import pytest
from compare_readers import compare
from generated_file import File
from other_readers import RefusedError, nearest_float32
from reader_verdict import judge

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "tests" / "data" / "read_files"


def test_every_file_is_read_as_by_numpy_and_pandas_or_refused():
    counts, differences = compare(PROGRAM, 1500, seed=16)
    assert differences == []
    assert counts["equal to numpy and pandas"] > 500
    assert counts["refused"] > 300
    assert counts["equal"] > 40  # npy and vecs


@pytest.mark.parametrize(
    "answer",
    [
        "ok 1 2 3f80000040000001",  # one unit in the last place
        "ok 1 1 3f800000",
        "ok 2 2 3f800000400000003f80000040000000",
        "error F:1:1: '1' is not a number",
        None,
    ],
)
def test_what_differs_is_found(answer):
    file = File()
    file.raw = b"1,2\n"
    assert judge(file, "ok 1 2 3f80000040000000")[1] is None
    assert judge(file, answer)[1] is not None


@pytest.mark.parametrize(
    "place", ["", "1:", "3:1:", "0:1:", "1:5:"], ids=["none", "line", "line 3", "line 0", "column"]
)
def test_a_message_without_a_right_place_is_found(place):
    file = File()
    file.raw, file.plain = b"1,x\n", False
    assert judge(file, "error F:1:3: 'x' is not a number")[1] is None
    assert judge(file, f"error F:{place} 'x' is not a number")[1] is not None


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("1.000000059604644775390625", 0x3F800000),  # halfway: rounds to even
        ("1.0000000596046447753906250001", 0x3F800001),  # halfway after rounding to double
        ("7.006492321624085e-46", 0),
        ("7.006492321624086e-46", 1),
        ("-1e-999", 0x80000000),
        ("3.4028235677973367e38", None),
        ("3.4028235677973366e38", 0x7F7FFFFF),
        ("340282356779733661637539395458142568448", None),
        ("1_000", None),
        ("nan", None),
    ],
)
def test_the_nearest_float_is_exact(text, bits):
    if bits is None:
        with pytest.raises(RefusedError):
            nearest_float32(text)
    else:
        assert nearest_float32(text).view(np.uint32) == bits
