import ctypes
import ctypes.util
import re
from pathlib import Path

import numpy as np
import pytest

from analysis.measures.generators import (
    GENERATORS,
    exponential,
    generate,
    natural_log,
    normal_quantile,
    philox,
    random_points,
)

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = {
    name: int(value, 16)
    for name, value in re.findall(
        r'\{"(\w+)", (0x[0-9a-f]+)\}', (ROOT / "tests/data/generate_test.cpp").read_text()
    )
}


def test_philox_matches_the_published_vectors():
    # Random123, kat_vectors; the last is digits of pi
    def words(row, block, stream, seed):
        return [hex(word) for word in philox(np.uint64(row), block, stream, seed)]

    assert words(0, 0, 0, 0) == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones, all_ones = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
    assert words(all_ones, ones, ones, all_ones) == [
        *("0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd")
    ]
    assert words(0x85A308D3243F6A88, 0x13198A2E, 0x03707344, 0x299F31D0A4093822) == [
        *("0xd16cfe09", "0x94fdcceb", "0x5001e420", "0x24126ea1")
    ]


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_the_same_bits_as_the_harness(name):
    library = ctypes.util.find_library("xxhash")
    if not library:
        pytest.skip("libxxhash, whose hash the C++ test has, is not installed")
    hash64 = ctypes.CDLL(library).XXH3_64bits
    hash64.restype, hash64.argtypes = ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_size_t]
    points = np.ascontiguousarray(generate(name, 10_000, 7, 42))
    assert points.dtype == np.float32
    assert hash64(points.ctypes.data, points.nbytes) == GOLDEN[name]


def test_the_harness_has_the_generators_that_are_known_here():
    assert sorted(GOLDEN) == sorted(GENERATORS)
    with pytest.raises(ValueError, match="unknown generator 'sobol'"):
        generate("sobol", 1, 1, 1)


def test_options_are_obeyed():
    wide = generate("uniform", 10_000, 2, 1, range=[-3, 5])
    assert wide.min() < -2.9
    assert 4.9 < wide.max() < 5
    tight = generate("blobs", 2000, 2, 1, centers=3, sigma=0.0)
    assert len(np.unique(tight, axis=0)) == 3


def test_log_and_quantile_are_what_they_say():
    x = np.random.default_rng(1).random(100_000) / 2 + 2.0**-34
    assert np.max(np.abs(natural_log(x) / np.log(x) - 1)) < 1e-15
    x = np.random.default_rng(2).uniform(-30, 30, 100_000)
    assert np.max(np.abs(exponential(x) / np.exp(x) - 1)) < 1e-15
    assert normal_quantile(np.array([0.5])) == 0
    assert normal_quantile(np.array([0.975])) == pytest.approx(1.959963984540054, abs=1e-15)


def test_random_points_are_distinct_and_a_prefix_of_more():
    points = np.arange(100.0)[:, None]
    every = random_points(points, 100, 1)
    assert sorted(every[:, 0]) == points[:, 0].tolist()
    assert (random_points(points, 7, 1) == every[:7]).all()
    assert not (random_points(points, 7, 2) == every[:7]).all()
