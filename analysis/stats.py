"""Medians and their intervals, without any assumption about how times are distributed."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

CONFIDENCE = 0.95
RESAMPLES = 5000
SEED = 20150615


class Interval(NamedTuple):
    """A value and its confidence interval, all in the unit of the samples; NaN ends where there is
    no interval.
    """

    value: float
    low: float
    high: float


@lru_cache(maxsize=4096)
def median_ranks(count: int, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """0-based ranks (low, high) of the sorted samples that enclose the median with at least
    `confidence`.

    The number of samples below the median is Binomial(count, 1/2), whatever the distribution; the
    ranks are the tightest symmetric ones that keep the coverage (Le Boudec 2010,
    chapter 2; Hoefler & Belli 2015). None when no pair of samples reaches it: at 95% that is
    fewer than 6 samples."""
    below = int(binom.ppf((1 - confidence) / 2, count, 0.5)) if count > 0 else 0
    return (below - 1, count - below) if below > 0 else None


def median_interval(samples: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """The median of `samples` (1-D, any unit) with its exact order-statistic interval.

    The ends are NaN with fewer than 6 samples. Raises ValueError for no samples or a NaN among
    them."""
    ordered = _sorted(samples)
    ranks = median_ranks(len(ordered), confidence)
    low, high = (ordered[list(ranks)]) if ranks else (np.nan, np.nan)
    return Interval(float(np.median(ordered)), float(low), float(high))


def ratio_interval(
    numerator: np.ndarray, denominator: np.ndarray, confidence: float = CONFIDENCE
) -> Interval:
    """median(numerator) / median(denominator) with its percentile bootstrap interval.

    Both are 1-D samples in the same unit, resampled independently (Efron & Tibshirani 1993, chapter
    13). The seed is fixed: the same samples give the same interval. The ends are NaN when either
    side has fewer than 6 samples. Raises ValueError for no samples or a NaN among them."""
    above, below = _sorted(numerator), _sorted(denominator)
    ratio = float(np.median(above) / np.median(below))
    # where the median of one side has no interval, neither has the ratio: a bootstrap of 3 samples
    # is make-believe
    if not (median_ranks(len(above), confidence) and median_ranks(len(below), confidence)):
        return Interval(ratio, np.nan, np.nan)
    ratios = resampled_medians(above, 0) / resampled_medians(below, 1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return Interval(ratio, float(low), float(high))


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction of p-values (Holm 1979), in their order: reject what is below
    alpha, and the chance of any false rejection is below alpha."""
    order = np.argsort(p, kind="stable")
    steps = np.asarray(p, dtype=float)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


def _sorted(samples: np.ndarray) -> np.ndarray:
    ordered = np.sort(np.asarray(samples, dtype=float))
    if len(ordered) == 0 or not np.isfinite(ordered).all():
        raise ValueError("samples must be finite numbers, at least one")
    return ordered


def resampled_medians(ordered: np.ndarray, stream: int) -> np.ndarray:
    """RESAMPLES medians of bootstrap resamples of sorted samples; streams are independent."""
    lower, upper = _middle_ranks(len(ordered), stream)
    return (ordered[lower] + ordered[upper]) / 2


@lru_cache(maxsize=256)
def _middle_ranks(count: int, stream: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of the two middle elements (equal for odd counts) of RESAMPLES resamples of `count`
    samples.

    A resample of sorted data is decided by its ranks, floor(count × U) for uniform U, so its middle
    elements come from the middle order statistics of `count` uniforms, which are Beta distributed
    (David & Nagaraja 2003, chapter 2): the cost does not grow with the number of samples, and
    points with as many samples share the draws."""
    random = np.random.default_rng([SEED, count, stream])
    middle = (count + 1) // 2
    lower = random.beta(middle, count - middle + 1, RESAMPLES)
    upper = lower
    if count % 2 == 0:
        upper = lower + (1 - lower) * random.beta(1, count - middle, RESAMPLES)
    return tuple(np.minimum((u * count).astype(int), count - 1) for u in (lower, upper))
