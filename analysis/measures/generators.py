"""Repeats the harness's data and initial centroids in NumPy, bit for bit: philox.h,
random_values.h and the random_points of init.cpp.

They are needed only to draw clusterings, because run directories do not contain the points."""

from __future__ import annotations

import numpy as np

POINTS, CENTERS, CHOICE, INIT_DRAW = 0, 1, 2, 3
"""Equals data::Stream, the purpose of a random number."""

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def philox(row: np.ndarray, block: np.ndarray | int, stream: int, seed: int) -> np.ndarray:
    """The four words (…, 4; uint32) of Philox4x32-10 for the counter (row, block, stream) under
    `seed`; rows are 64-bit and broadcast against blocks."""
    row, block = np.broadcast_arrays(np.asarray(row, np.uint64), np.asarray(block, np.uint64))
    c = [row & _LOW, row >> _SHIFT, block.copy(), np.full(row.shape, stream, np.uint64)]
    keys = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (b >> _SHIFT) ^ c[1] ^ np.uint64(keys[0]),
            b & _LOW,
            (a >> _SHIFT) ^ c[3] ^ np.uint64(keys[1]),
            a & _LOW,
        ]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=-1).astype(np.uint32)


def generate(name: str, n: int, dim: int, seed: int, **options: object) -> np.ndarray:
    """The n × dim points (float32) of a generator. `options` are those of a spec: range, centers,
    sigma, with None for the default. Raises ValueError for an unknown generator."""
    if name not in ("uniform", "blobs", "uva_int", "stamp_gauss", "normal"):
        raise ValueError(f"unknown generator '{name}'")
    rows = np.arange(n, dtype=np.uint64)[:, None]
    blocks = np.arange((dim + 3) // 4, dtype=np.uint64)
    words = philox(rows, blocks, POINTS, seed).reshape(n, -1)[:, :dim]
    low, high = map(float, options.get("range") or ((-10, 10) if name == "blobs" else (0, 1)))
    if name == "uva_int":
        return (np.int64(-100) + _below(words, 201).astype(np.int64)).astype(np.float32)
    if name == "normal":
        return normal_quantile(_open_unit32(words)).astype(np.float32)
    if name == "uniform":
        values = _between(low, high, words).astype(np.float32)
        least, greatest = np.float32(low), np.float32(high)
        if least < low:
            least = np.nextafter(least, np.float32(np.inf))
        if greatest >= high:
            greatest = np.nextafter(greatest, np.float32(-np.inf))
        return np.clip(values, least, greatest)
    centers = int(options.get("centers") or 16)
    if centers < 1:
        raise ValueError(f"{centers} centers")
    given = options.get("sigma")
    sigma = 1.0 if given is None else float(given)
    if name == "stamp_gauss":
        inverse = 1.0 / centers
        sigma = inverse * inverse * inverse
    chosen = _below(philox(rows[:, 0], 0, CHOICE, seed)[:, 0], centers)
    center = philox(chosen[:, None], blocks, CENTERS, seed).reshape(n, -1)[:, :dim]
    noise = sigma * normal_quantile(_open_unit32(words))
    return (_between(low, high, center) + noise).astype(np.float32)


def random_points(points: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The first k points of a random permutation, as the init of the same name."""
    n = len(points)
    words = philox(np.arange(k), 0, INIT_DRAW, seed)
    moved: dict[int, int] = {}
    chosen = []
    for i in range(k):
        bits = int(words[i, 0]) << 32 | int(words[i, 1])
        position = i + (bits * (n - i) >> 64)
        chosen.append(moved.get(position, position))
        moved[position] = moved.get(i, i)
    return points[chosen]


def _below(words: np.ndarray, count: int) -> np.ndarray:
    return (words.astype(np.uint64) * np.uint64(count)) >> _SHIFT


def _between(low: float, high: float, words: np.ndarray) -> np.ndarray:
    return low + (high - low) * ((words >> np.uint32(8)) * 2.0**-24)


def _open_unit32(words: np.ndarray) -> np.ndarray:
    return (words + 0.5) * 2.0**-32


_CENTRAL_ABOVE = [3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3]
_CENTRAL_ABOVE += [1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4]
_CENTRAL_ABOVE += [3.3430575583588128105e4, 2.5090809287301226727e3]
_CENTRAL_BELOW = [1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3]
_CENTRAL_BELOW += [2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4]
_CENTRAL_BELOW += [5.2264952788528545610e3]
_TAIL_ABOVE = [1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0]
_TAIL_ABOVE += [3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1]
_TAIL_ABOVE += [2.27238449892691845833e-2, 7.74545014278341407640e-4]
_TAIL_BELOW = [1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1]
_TAIL_BELOW += [1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4]
_TAIL_BELOW += [1.05075007164441684324e-9]


def _polynomial(c: list[float], x: np.ndarray) -> np.ndarray:
    value = np.full_like(x, c[-1])
    for coefficient in c[-2::-1]:
        value = value * x + coefficient
    return value


def natural_log(x: np.ndarray) -> np.ndarray:
    """ln x for positive normal doubles by the series of random_values.h, with the same bits."""
    mantissa, exponent = np.frexp(x)  # in [1/2, 1)
    m, exponent = mantissa * 2, exponent - 1
    above = m > float.fromhex("0x1.6a09e667f3bcdp0")
    m, exponent = np.where(above, m * 0.5, m), exponent + above
    s = (m - 1) / (m + 1)
    z = s * s
    two_s = s + s
    correction = two_s * z * _polynomial([1 / i for i in range(3, 22, 2)], z)
    high = exponent * float.fromhex("0x1.62e42feep-1")
    low = exponent * float.fromhex("0x1.a39ef35793c76p-33")
    return high + (two_s + (correction + low))


def normal_quantile(p: np.ndarray) -> np.ndarray:
    """The quantile of the standard normal distribution for p (AS 241), with the same bits."""
    q = p - 0.5
    r = 0.180625 - q * q
    central = q * _polynomial(_CENTRAL_ABOVE, r) / _polynomial(_CENTRAL_BELOW, r)
    tail = np.where(q < 0, p, 1 - p)
    r = np.sqrt(-natural_log(tail)) - 1.6
    value = _polynomial(_TAIL_ABOVE, r) / _polynomial(_TAIL_BELOW, r)
    return np.where(np.abs(q) <= 0.425, central, np.where(q < 0, -value, value))
