"""Repeats the harness's data and initial centroids in NumPy, bit for bit: philox.h,
random_values.h with what it includes, and the random_points of init.cpp.

They are needed only to draw clusterings, because run directories do not contain the points."""

from __future__ import annotations

from math import factorial

import numpy as np

POINTS, CENTERS, CHOICE, INIT_DRAW, SHAPE = 0, 1, 2, 3, 5
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


RANGES = {"blobs": (-10, 10), "gps": (0, 500), "anisotropic": (-10, 10), "skewed": (-10, 10)}
COUNTS = {"embeddings": 1000, "sift": 1000, "gps": 1000, "rgb": 64, "skewed": 10_001}
SIGMAS = {"gps": 0.005, "rgb": 4.0}
"""The own defaults of range, centers and sigma, where they differ from (0, 1), 16 and 1."""


def generate(name: str, n: int, dim: int, seed: int, **options: object) -> np.ndarray:
    """The n × dim points (float32) of a generator. `options` are those of a spec: range, centers,
    sigma, with None for the default. Raises ValueError for an unknown generator."""
    if name not in GENERATORS:
        raise ValueError(f"unknown generator '{name}'")
    low, high = map(float, options.get("range") or RANGES.get(name, (0, 1)))
    centers = int(options.get("centers") or COUNTS.get(name, 16))
    if centers < 1:
        raise ValueError(f"{centers} centers")
    given = options.get("sigma")
    sigma = SIGMAS.get(name, 1.0) if given is None else float(given)
    return GENERATORS[name](Draw(n, dim, seed, low, high, centers, sigma)).astype(np.float32)


class Draw:
    """The random words of n × dim values, and a generator's options."""

    def __init__(self, n, dim, seed, low, high, centers, sigma):
        self.n, self.dim, self.seed = n, dim, seed
        self.low, self.high, self.centers, self.sigma = low, high, centers, sigma
        self.rows = np.arange(n, dtype=np.uint64)

    def words(self, stream: int, rows: np.ndarray) -> np.ndarray:
        """A word for each of the dimensions (len(rows) × dim)."""
        blocks = np.arange((self.dim + 3) // 4, dtype=np.uint64)
        words = philox(rows[:, None], blocks, stream, self.seed)
        return words.reshape(len(rows), -1)[:, : self.dim]

    def normal(self, stream: int, rows: np.ndarray) -> np.ndarray:
        return normal_quantile(_open_unit32(self.words(stream, rows)))

    def own(self) -> np.ndarray:
        """The four words of each row that all its dimensions share."""
        return philox(self.rows, 0, CHOICE, self.seed)

    def zipf(self, words: np.ndarray) -> np.ndarray:
        log_count = natural_log(np.array([self.centers + 1.0]))
        rank = (exponential(_open_unit32(words) * log_count) - 1).astype(np.uint64)
        return np.minimum(rank, np.uint64(self.centers - 1))

    def between(self, rows: np.ndarray) -> np.ndarray:
        return _between(self.low, self.high, self.words(CENTERS, rows))


def _uniform(draw: Draw) -> np.ndarray:
    values = _between(draw.low, draw.high, draw.words(POINTS, draw.rows)).astype(np.float32)
    least, greatest = np.float32(draw.low), np.float32(draw.high)
    if least < draw.low:
        least = np.nextafter(least, np.float32(np.inf))
    if greatest >= draw.high:
        greatest = np.nextafter(greatest, np.float32(-np.inf))
    return np.clip(values, least, greatest)


def _uva_int(draw: Draw) -> np.ndarray:
    return np.int64(-100) + _below(draw.words(POINTS, draw.rows), 201).astype(np.int64)


def _normal(draw: Draw) -> np.ndarray:
    return draw.normal(POINTS, draw.rows)


def _blobs(draw: Draw) -> np.ndarray:
    chosen = _below(draw.own()[:, 0], draw.centers)
    return draw.between(chosen) + draw.sigma * draw.normal(POINTS, draw.rows)


def _stamp_gauss(draw: Draw) -> np.ndarray:
    inverse = 1.0 / draw.centers
    draw.sigma = inverse * inverse * inverse
    return _blobs(draw)


def _embeddings(draw: Draw) -> np.ndarray:
    own = draw.own()
    scale = draw.sigma / np.sqrt(np.sqrt(_open_unit32(own[:, 1:2])))
    place = draw.normal(SHAPE, np.zeros(1, np.uint64)) + draw.normal(CENTERS, draw.zipf(own[:, 0]))
    return place + scale * draw.normal(POINTS, draw.rows)


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.floor(np.clip(values, 0, 255))


def _sift(draw: Draw) -> np.ndarray:
    bins = -natural_log(_open_unit32(draw.words(CENTERS, draw.zipf(draw.own()[:, 0]))))
    return _bytes(40 * (bins + 0.4 * draw.normal(POINTS, draw.rows)) - 10)


def _gps(draw: Draw) -> np.ndarray:
    roads, ways = 2, 20
    own = draw.own()
    town, way = draw.zipf(own[:, 0]), _below(own[:, 1], ways)
    along = _unit24(own[:, 2:3])
    rows = town * np.uint64(ways * 2) + way * np.uint64(2)
    here = draw.between(town)
    other = _below(philox(rows, 0, SHAPE, draw.seed)[:, 0], draw.centers)
    road = along * (draw.between(other) - here)
    place = along + along - 1
    street = draw.normal(SHAPE, rows) + place * draw.normal(SHAPE, rows + np.uint64(1))
    offset = np.where((way < roads)[:, None], road, (draw.high - draw.low) * 0.005 * street)
    error = draw.sigma / np.sqrt(_open_unit32(own[:, 3:4]))
    return here + offset + error * draw.normal(POINTS, draw.rows)


def _rgb(draw: Draw) -> np.ndarray:
    own = draw.own()
    region = draw.zipf(own[:, 0])
    light = 1 + 0.25 * normal_quantile(_open_unit32(own[:, 1:2]))
    grey = 256 * _unit24(philox(region, 0, SHAPE, draw.seed)[:, :1])
    colour = grey + 32 * draw.normal(CENTERS, region)
    return _bytes(light * colour + draw.sigma * draw.normal(POINTS, draw.rows))


def _anisotropic(draw: Draw) -> np.ndarray:
    own = draw.own()
    chosen = _below(own[:, 0], draw.centers)
    far = normal_quantile(_open_unit32(own[:, 1:2])) * draw.normal(SHAPE, chosen)
    near = 0.25 * draw.normal(POINTS, draw.rows)
    return draw.between(chosen) + draw.sigma * (far + near)


def _skewed(draw: Draw) -> np.ndarray:
    own = draw.own()
    others = np.uint64(1) + _below(own[:, 1], draw.centers - 1)
    large = (own[:, 0] < 2**31) | (draw.centers == 1)
    chosen = np.where(large, np.uint64(0), others)
    return draw.between(chosen) + draw.sigma * draw.normal(POINTS, draw.rows)


GENERATORS = {
    "uniform": _uniform,
    "blobs": _blobs,
    "uva_int": _uva_int,
    "stamp_gauss": _stamp_gauss,
    "normal": _normal,
    "embeddings": _embeddings,
    "sift": _sift,
    "gps": _gps,
    "rgb": _rgb,
    "anisotropic": _anisotropic,
    "skewed": _skewed,
}


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
    return low + (high - low) * _unit24(words)


def _unit24(words: np.ndarray) -> np.ndarray:
    return (words >> np.uint32(8)) * 2.0**-24


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
    """ln x for positive normal doubles by the series of random_numbers.h, with the same bits."""
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


def exponential(x: np.ndarray) -> np.ndarray:
    """e^x for x from -700 to 700 by the series of random_numbers.h, with the same bits."""
    n = np.floor(x * float.fromhex("0x1.71547652b82fep0") + 0.5)
    r = x - n * float.fromhex("0x1.62e42feep-1") - n * float.fromhex("0x1.a39ef35793c76p-33")
    return np.ldexp(_polynomial([1 / factorial(i) for i in range(14)], r), n.astype(int))


def normal_quantile(p: np.ndarray) -> np.ndarray:
    """The quantile of the standard normal distribution for p (AS 241), with the same bits."""
    q = p - 0.5
    r = 0.180625 - q * q
    central = q * _polynomial(_CENTRAL_ABOVE, r) / _polynomial(_CENTRAL_BELOW, r)
    tail = np.where(q < 0, p, 1 - p)
    r = np.sqrt(-natural_log(tail)) - 1.6
    value = _polynomial(_TAIL_ABOVE, r) / _polynomial(_TAIL_BELOW, r)
    return np.where(np.abs(q) <= 0.425, central, np.where(q < 0, -value, value))
