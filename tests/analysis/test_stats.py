import numpy as np
import pytest
import scipy.stats

from analysis.measures.stats import median_interval, median_ranks, ratio_interval


def test_ranks_by_hand():
    # the interval leaves out 2 Σ C(n, i) / 2^n over i below the lower rank (counted from 1)
    assert median_ranks(6) == (0, 5)  # leaves out 2 / 64 = 3.1%
    assert median_ranks(8) == (0, 7)  # (1, 6) would leave out 2 × 9 / 256 = 7.0%
    assert median_ranks(9) == (1, 7)  # 2 × 10 / 512 = 3.9%
    assert median_ranks(20) == (5, 14)  # 2 × 21,700 / 2^20 = 4.1%


@pytest.mark.parametrize("count", range(6))
def test_too_few_samples_have_no_interval(count):
    assert median_ranks(count) is None


@pytest.mark.parametrize("count", [6, 9, 10, 15, 31, 100, 1001])
def test_ranks_cover_and_the_next_tighter_would_not(count):
    low, high = median_ranks(count)

    def coverage(lo, hi):  # P(x_(lo) <= median <= x_(hi)), 0-based ranks
        return scipy.stats.binom.cdf(hi, count, 0.5) - scipy.stats.binom.cdf(lo, count, 0.5)

    assert coverage(low, high) >= 0.95
    assert coverage(low + 1, high - 1) < 0.95


def test_median_interval_of_known_samples():
    samples = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0]
    assert median_interval(samples) == (5.0, 2.0, 8.0)
    value, low, high = median_interval([3.0, 1.0, 2.0])
    assert value == 2.0
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize("samples", [[], [1.0, np.nan], [1.0, np.inf]])
def test_samples_that_are_none_or_not_numbers_are_refused(samples):
    with pytest.raises(ValueError, match="finite"):
        median_interval(samples)
    with pytest.raises(ValueError, match="finite"):
        ratio_interval([1.0], samples)


@pytest.mark.parametrize("count", [7, 9, 12, 25])
def test_median_interval_covers_the_true_median_of_a_skewed_distribution(count):
    random = np.random.default_rng(3)
    hits = 0
    trials = 2000
    for _ in range(trials):
        _, low, high = median_interval(random.lognormal(1, 0.5, count))
        hits += low <= np.exp(1) <= high
    assert hits / trials >= 0.94  # at least 95%, less three standard errors of the simulation


@pytest.mark.parametrize("count", [9, 15, 30])
def test_ratio_interval_covers_the_true_ratio(count):
    random = np.random.default_rng(4)
    hits = 0
    trials = 1000
    for _ in range(trials):
        _, low, high = ratio_interval(
            random.lognormal(2, 0.3, count), random.lognormal(1, 0.3, count)
        )
        hits += low <= np.e <= high
    # the percentile bootstrap of small samples is approximate; it must not be far off either way
    assert 0.91 <= hits / trials <= 0.995


@pytest.mark.parametrize(("above", "below"), [(9, 9), (10, 15), (31, 8), (500, 200)])
def test_ratio_interval_agrees_with_scipys_bootstrap(above, below):
    random = np.random.default_rng(5)
    x, y = random.lognormal(2, 0.2, above), random.lognormal(0, 0.2, below)
    value, low, high = ratio_interval(x, y)
    assert value == np.median(x) / np.median(y)
    theirs = scipy.stats.bootstrap(
        (x, y),
        lambda a, b, axis=-1: np.median(a, axis=axis) / np.median(b, axis=axis),
        n_resamples=4000,
        random_state=6,
    ).bootstrap_distribution
    # medians of few samples take few values, so ends are compared by the share of resamples beyond
    for end, tail in ((low, 0.025), (high, 0.975)):
        assert np.mean(theirs < end) - 0.01 <= tail <= np.mean(theirs <= end) + 0.01


def test_ratio_interval_is_the_same_every_time_and_scale_free():
    random = np.random.default_rng(8)
    x, y = random.lognormal(2, 0.2, 9), random.lognormal(0, 0.2, 9)
    assert ratio_interval(x, y) == ratio_interval(x.copy()[::-1], y)
    assert ratio_interval(x * 8, y) == tuple(8 * v for v in ratio_interval(x, y))


def test_ratio_of_few_samples_has_a_value_and_no_interval():
    value, low, high = ratio_interval([8.0, 10.0, 12.0], np.full(9, 2.0))
    assert value == 5.0
    assert np.isnan([low, high]).all()


def test_two_sides_are_resampled_independently():
    # of one and the same sample against itself the ratio still varies
    x = np.linspace(1, 2, 9)
    value, low, high = ratio_interval(x, x)
    assert value == 1.0
    assert low < 0.9
    assert high > 1.1
