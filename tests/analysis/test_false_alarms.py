"""Simulated comparisons: of a program with itself compare finds nothing in 95 of 100 cases, over
all points together, whatever launches do to the times; and it finds a real slowdown."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from analysis.measures.stats import Samples, holm, median_interval, permutation_test, ratio_interval

POINTS, LAUNCHES, REPETITIONS = 40, 5, 9


def heavy_tails(random, shape):
    """Most launches differ by 1%, some by very much more."""
    return 0.01 * random.standard_t(2, shape)


def two_modes(random, shape):
    """Half of the launches land where everything takes 10% longer, and are else alike."""
    return 0.1 * random.integers(0, 2, shape) + 0.001 * random.normal(size=shape)


def together(random, shape):
    """A slow launch is slow at every point: the machine was busy."""
    return 0.02 * random.exponential(size=(shape[0], 1)) + 0.002 * random.normal(size=shape)


MODELS = [heavy_tails, two_modes, together]


def run_of(random, model):
    """Samples of one run: launches × points × repetitions, in ms."""
    shifts = model(random, (LAUNCHES, POINTS))[:, :, None]
    jitter = 0.003 * random.exponential(size=(LAUNCHES, POINTS, REPETITIONS))
    return 10 * np.exp(shifts + jitter)


def log_medians(run):
    return np.log(np.median(run, axis=2))


def alarms(model, trials, seed):
    """In how many of so many comparisons of a program with itself any point differs."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(trials):
        old, new = run_of(random, model), run_of(random, model)
        found += np.nanmin(permutation_test(log_medians(old), log_medians(new))) < 0.05
    return found


@pytest.mark.parametrize("model", MODELS)
def test_a_comparison_with_itself_raises_an_alarm_in_at_most_one_of_twenty(model):
    # 26 of 300 is three standard errors above 5%
    assert alarms(model, 300, seed=21) <= 26


@pytest.mark.parametrize("model", MODELS)
def test_pooled_samples_raise_one_nearly_always(model):
    # what compare did until launches were told apart
    random = np.random.default_rng(22)
    found = 0
    for _ in range(20):
        old, new = run_of(random, model), run_of(random, model)
        pooled = [np.moveaxis(run, 1, 0).reshape(POINTS, -1) for run in (old, new)]
        p = [mannwhitneyu(a, b).pvalue for a, b in zip(*pooled, strict=True)]
        found += holm(np.array(p)).min() < 0.05
    assert found >= 10


def test_a_slowdown_of_a_tenth_is_found_in_five_launches_and_only_there():
    random = np.random.default_rng(23)
    found = elsewhere = 0
    for _ in range(100):
        old, new = (run_of(random, lambda r, shape: 0.01 * r.normal(size=shape)) for _ in range(2))
        new[:, 7] *= 1.1
        p = permutation_test(log_medians(old), log_medians(new))
        found += p[7] < 0.05
        elsewhere += (np.delete(p, 7) < 0.05).any()
    assert found >= 95
    assert elsewhere <= 10


def test_four_launches_reach_the_level_and_three_cannot():
    apart = [np.arange(count)[:, None] + np.zeros((1, 30)) for count in (3, 4)]
    for launches, least in zip(apart, (0.1, 2 / 70), strict=True):
        p = permutation_test(launches, launches + 100)
        assert p == pytest.approx(np.full(30, least))


def test_many_launches_are_relabelled_at_random_and_the_same_every_time():
    random = np.random.default_rng(24)
    old, new = random.normal(size=(12, 5)), random.normal(size=(12, 5))
    new[:, 0] += 5
    p = permutation_test(old, new)
    assert p[0] == pytest.approx(1e-4)
    assert (p[1:] > 0.05).all()
    assert permutation_test(old, new).tolist() == p.tolist()


def test_points_without_two_launches_on_a_side_have_no_p():
    random = np.random.default_rng(25)
    old, new = random.normal(size=(5, 3)), random.normal(size=(5, 3))
    old[1:, 1] = np.nan
    p = permutation_test(old, new)
    assert np.isnan(p).tolist() == [False, True, False]
    assert p[[0, 2]].tolist() == permutation_test(old[:, [0, 2]], new[:, [0, 2]]).tolist()


def test_intervals_of_launches_hold_the_true_value_where_pooled_ones_do_not():
    random = np.random.default_rng(26)
    hits = {"median": 0, "ratio": 0, "pooled": 0}
    trials = 400
    for _ in range(trials):
        # launches shift by 5%, samples within them by 0.5%
        shifts = 10 * np.exp(random.normal(0, 0.05, (2, LAUNCHES, 1)))
        times = shifts * np.exp(random.normal(0, 0.005, (2, LAUNCHES, REPETITIONS)))
        sides = [Samples(tuple(np.sort(side)), tuple(range(LAUNCHES))) for side in times]
        _, low, high = median_interval(sides[0])
        hits["median"] += low <= 10 <= high
        _, low, high = ratio_interval(*sides)
        hits["ratio"] += low <= 1 <= high
        _, low, high = ratio_interval(*(side.pooled for side in sides))
        hits["pooled"] += low <= 1 <= high
    # 92% is three standard errors below 95%
    assert hits["median"] / trials >= 0.92
    assert hits["ratio"] / trials >= 0.92
    assert hits["pooled"] / trials < 0.8
