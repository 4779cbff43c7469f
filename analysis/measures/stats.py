"""Medians, their intervals, and tests.

The samples of one process launch share addresses, cores and clocks, which differ in another launch.
So if a point has several launches, the launch is the unit: its median is one observation, and the
scatter of these medians gives the uncertainty of the point. A single launch has only the scatter
within it.

A restart begins at other initial centroids, so its time may differ too. If a point has several, the
restart is the unit instead: the median over its launches is one observation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binom
from scipy.stats import t as student

CONFIDENCE = 0.95
RESAMPLES = 5000
SEED = 20150615


WIDEST = 100
"""Ends of an interval over launches that are further apart than this factor are no interval: two
launches that differ say almost nothing."""


@dataclass(frozen=True, eq=False)
class Samples:
    """A point's samples, which are positive and in one unit: a sorted 1-D array for each launch
    (or restart; see units()), and the numbers of these launches in the run."""

    launches: tuple[np.ndarray, ...]
    numbers: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        return sum(map(len, self.launches))

    @property
    def pooled(self) -> np.ndarray:
        """All samples, sorted."""
        return self.launches[0] if len(self.launches) == 1 else np.sort(np.hstack(self.launches))

    @cached_property
    def medians(self) -> np.ndarray:
        """Each launch's median."""
        # np.median would take twenty times as long, because it sorts again
        return np.array([(s[(len(s) - 1) // 2] + s[len(s) // 2]) / 2 for s in self.launches])

    @cached_property
    def median(self) -> float:
        """The median of the launches' medians."""
        return float(np.median(self.medians))

    @property
    def has_interval(self) -> bool:
        """Two launches suffice; a single one needs 6 samples."""
        return len(self.launches) > 1 or median_ranks(len(self)) is not None


def units(rows: pd.DataFrame) -> pd.Series:
    """The launch of each row of measurements, or its restart if its point has several."""
    if not rows["restart"].gt(0).any():
        return rows["launch"]
    several = rows.groupby("point")["restart"].transform("max").gt(0)
    return rows["restart"].where(several, rows["launch"])


class Interval(NamedTuple):
    """A value and its confidence interval in the unit of the samples. The ends are NaN if there is
    no interval.
    """

    value: float
    low: float
    high: float


@lru_cache(maxsize=4096)
def median_ranks(count: int, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """0-based ranks (low, high) of the sorted samples that enclose the median with at least
    `confidence`.

    The number of samples below the median is Binomial(count, 1/2) for any distribution. The ranks
    are the tightest symmetric ones with that coverage (Le Boudec 2010, chapter 2; Hoefler & Belli
    2015). None if no pair of samples reaches it; at 95% that means fewer than 6 samples."""
    below = int(binom.ppf((1 - confidence) / 2, count, 0.5)) if count > 0 else 0
    return (below - 1, count - below) if below > 0 else None


def median_interval(samples: Samples | np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """The median of `samples` (an array is one launch) with its interval.

    For one launch it is the exact interval of order statistics. Its ends are NaN with fewer than 6
    samples. For several launches it is Student's interval of the logarithms of the launches'
    medians, extended to contain the value. That assumes that launches scatter symmetrically on the
    logarithmic scale. With few launches the interval is wide, as it must be, and its ends are NaN
    if they would be further apart than WIDEST. Raises ValueError if
    there are no samples or one is NaN."""
    samples = _checked(samples)
    if len(samples.launches) == 1:
        ordered = samples.launches[0]
        ranks = median_ranks(len(ordered), confidence)
        low, high = (ordered[list(ranks)]) if ranks else (np.nan, np.nan)
        return Interval(samples.median, float(low), float(high))
    centre, error = _log_mean(samples)
    reach = student.ppf((1 + confidence) / 2, len(samples.launches) - 1) * error
    return _stretched(samples.median, *_exp([centre - reach, centre + reach]))


def ratio_interval(
    numerator: Samples | np.ndarray,
    denominator: Samples | np.ndarray,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The ratio of the two medians with its interval, both sides drawn independently (see draws):
    of single launches this is the percentile bootstrap (Efron & Tibshirani 1993, chapter 13).

    The seed is fixed, so the same samples give the same interval. The ends are NaN if a side is a
    single launch with fewer than 6 samples. Raises ValueError if there are no samples or one is
    NaN."""
    above, below = _checked(numerator), _checked(denominator)
    ratio = above.median / below.median
    # if the median of a side has no interval, the ratio has none either: a bootstrap of 3 samples
    # would mean nothing
    if not (above.has_interval and below.has_interval):
        return Interval(ratio, np.nan, np.nan)
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws(above, 0) / draws(below, 1), [tail, 1 - tail])
    if len(above.launches) == len(below.launches) == 1:
        return Interval(ratio, float(low), float(high))
    return _stretched(ratio, low, high)


def draws(samples: Samples, stream: int) -> np.ndarray:
    """RESAMPLES values that the median may have. Different streams are independent.

    For one launch they are medians of bootstrap resamples. For several launches they follow
    Student's distribution about the mean logarithm of the launches' medians."""
    if len(samples.launches) == 1:
        return resampled_medians(samples.launches[0], stream)
    centre, error = _log_mean(samples)
    return _exp(centre + error * _student_draws(len(samples.launches) - 1, stream))


def _log_mean(samples: Samples) -> tuple[float, float]:
    """Mean and standard error of the logarithms of the launches' medians."""
    logs = np.log(samples.medians)
    return float(logs.mean()), float(logs.std(ddof=1)) / math.sqrt(len(logs))


def _exp(values: np.ndarray | list[float]) -> np.ndarray:
    # two very different launches say almost nothing; this keeps the ends finite
    return np.exp(np.clip(values, -230, 230))


def _stretched(value: float, low: float, high: float) -> Interval:
    low, high = min(low, value), max(high, value)
    if high > WIDEST * low:
        return Interval(value, np.nan, np.nan)
    return Interval(value, float(low), float(high))


@lru_cache(maxsize=256)
def _student_draws(freedom: int, stream: int) -> np.ndarray:
    return np.random.default_rng([SEED, freedom, stream]).standard_t(freedom, RESAMPLES)


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction of p-values (Holm 1979), in their order. If all values below
    alpha are rejected, the chance of any false rejection is below alpha."""
    order = np.argsort(p, kind="stable")
    steps = np.asarray(p, dtype=float)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


PERMUTATIONS = 10_000
"""The limit on permutations. With 8 launches on each side there are 12,870."""


def relabellings(old: int, new: int) -> int:
    """The number of ways to divide `old` + `new` launches into two sides of these sizes. Swapping
    two sides of equal size does not count as another way."""
    ways = math.comb(old + new, old)
    return ways // 2 if old == new else ways


def permutation_test(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """For each point the p-value, corrected for all points, of no difference between the launches
    of `old` and `new` (launches × points: logarithms of medians, NaN if a launch has none).

    If both are the same program, it is chance which launches are called old. So the labels are
    exchanged in all ways (if there are too many, in PERMUTATIONS random ways with a fixed seed),
    for all points at once. Each point's Welch t is compared with the largest t that the exchanged
    labels give for this point and for those with a smaller t (step-down maxT: Westfall & Young
    1993, algorithm 4.1). The chance of any false alarm is at most the level, for any distribution
    of the launches, and even if the points of one launch are slow together. With all labels
    exchanged, nothing is assumed about the tails. NaN for points with fewer than two launches on a
    side."""
    launches = np.vstack([old, new])
    counts = [np.isfinite(side).sum(axis=0) for side in (old, new)]
    usable = (counts[0] > 1) & (counts[1] > 1)
    p = np.full(launches.shape[1], np.nan)
    if not usable.any():
        return p
    data = launches[:, usable]
    data = data - np.nanmean(data, axis=0)
    present = np.isfinite(data)
    data = np.where(present, data, 0.0)
    labels = _labels(len(old), len(new))
    observed = _welch(labels[:1], data, present)[0]
    order = np.argsort(-observed, kind="stable")
    exceeding = np.zeros(len(order))
    for part in np.array_split(labels, max(1, labels.shape[0] * data.shape[1] // 2_000_000)):
        found = _welch(part, data, present)[:, order]
        # the largest t of a point and of all points with a smaller t
        largest = np.maximum.accumulate(found[:, ::-1], axis=1)[:, ::-1]
        exceeding += (largest >= observed[order] * (1 - 1e-9)).sum(axis=0)
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(exceeding / len(labels))
    p[usable] = corrected
    return p


def _labels(old: int, new: int) -> np.ndarray:
    """Ways to call `old` of the launches old, one per row (1: new). The measured one is first."""
    measured = np.r_[np.zeros(old), np.ones(new)]
    if math.comb(old + new, old) <= PERMUTATIONS:
        rows = np.ones((math.comb(old + new, old), old + new))
        for row, chosen in zip(rows, combinations(range(old + new), old), strict=True):
            row[list(chosen)] = 0
        return rows
    random = np.random.default_rng(SEED)
    return np.vstack([measured, random.permuted([measured] * (PERMUTATIONS - 1), axis=1)])


def _welch(labels: np.ndarray, data: np.ndarray, present: np.ndarray) -> np.ndarray:
    """|t| of each labelling (rows) and point (columns). Infinite if a side has fewer than two
    launches, which can only make a p-value larger."""
    sides = []
    for of in (1 - labels, labels):
        count = of @ present
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = of @ data / count
            variance = (of @ data**2 - count * mean**2) / (count - 1)
        sides.append((count, mean, np.maximum(variance, 0)))
    (n, a, v), (m, b, w) = sides
    with np.errstate(divide="ignore", invalid="ignore"):
        # clocks have a resolution, so medians may be exactly equal
        error = np.sqrt(v / n + w / m) + 1e-9
        t = np.abs(b - a) / error
    return np.where((n > 1) & (m > 1), t, np.inf)


def _checked(samples: Samples | np.ndarray) -> Samples:
    if not isinstance(samples, Samples):
        samples = Samples((np.sort(np.asarray(samples, dtype=float)),))
    if not samples.launches or not all(len(s) and np.isfinite(s).all() for s in samples.launches):
        raise ValueError("samples must be finite numbers, at least one")
    return samples


def resampled_medians(ordered: np.ndarray, stream: int) -> np.ndarray:
    """RESAMPLES medians of bootstrap resamples of sorted samples. Streams are independent."""
    lower, upper = _middle_ranks(len(ordered), stream)
    return (ordered[lower] + ordered[upper]) / 2


@lru_cache(maxsize=256)
def _middle_ranks(count: int, stream: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of the two middle elements (equal for odd counts) of RESAMPLES resamples of `count`
    samples.

    The ranks of a resample of sorted data are floor(count × U) for uniform U. Its middle elements
    therefore come from the middle order statistics of `count` uniforms, which are Beta distributed
    (David & Nagaraja 2003, chapter 2). So the cost does not grow with the number of samples, and
    points with equally many samples share the draws."""
    random = np.random.default_rng([SEED, count, stream])
    middle = (count + 1) // 2
    lower = random.beta(middle, count - middle + 1, RESAMPLES)
    upper = lower
    if count % 2 == 0:
        upper = lower + (1 - lower) * random.beta(1, count - middle, RESAMPLES)
    return tuple(np.minimum((u * count).astype(int), count - 1) for u in (lower, upper))
