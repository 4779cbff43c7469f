from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from analysis.figures.looks import version_styles
from analysis.figures.placement import spread
from analysis.figures.scales import fitting, log_axis, log_positions, log_ticks, tick_text
from analysis.figures.typeset import break_label, shorten, text_width, wrap
from analysis.model.numbers import count_text, number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((1, "1"), (999, "999"), (1024, "1,024"), (10_000, "10⁴"), (20_000, "2×10⁴")),
        *((12_345, "12,345"), (10**7, "10⁷"), (10**12, "10¹²"), (0, "0")),
    ],
)
def test_counts_are_short_and_exact(value, text):
    assert count_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0123456, "0.0123"), (1.0, "1.00"), (9.996, "10.0"), (12.34, "12.3")),
        *((999.6, "1,000"), (1234.5, "1,230"), (0.0, "0"), (0.09999, "0.100")),
        (np.float64(0.4025), "0.403"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number_text(value) == text


def test_spread_leaves_alone_what_has_room():
    assert spread([1.0, 3.0, 2.0], [0.5] * 3, 0, 4) == [1.0, 3.0, 2.0]


def test_spread_separates_and_keeps_order_and_bounds():
    random = np.random.default_rng(2)
    for _ in range(200):
        count = random.integers(1, 12)
        wanted = random.choice([0.0, 1.0, 1.01, 2.5, 3.0], count).tolist()
        heights = random.choice([0.1, 0.2], count).tolist()
        centres = spread(wanted, heights, 0.0, 3.0)
        boxes = sorted(
            (c - h / 2, c + h / 2, w) for c, h, w in zip(centres, heights, wanted, strict=True)
        )
        assert boxes[0][0] >= -1e-9
        assert boxes[-1][1] <= 3.0 + 1e-9
        for below, above in pairwise(boxes):
            assert above[0] >= below[1] - 1e-9
            assert above[2] >= below[2]


def test_spread_shares_the_shift_of_two_that_collide():
    assert spread([1.0, 1.0], [0.5, 0.5], 0, 4) == [0.75, 1.25]


def test_wrapped_lines_fit_and_lose_nothing():
    text = "luigi_v3 unsupported: " + "x" * 400 + " needs 96,000 B of shared memory " * 5
    lines = wrap(text, 3.0, indent="  ")
    assert len(lines) > 3
    assert all(text_width(line) <= 3.0 for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_shortened_text_fits_and_shows_that_it_is():
    lines = wrap("needs 96,000 B of shared memory per block, device allows 49,152 B", 1.5)
    assert len(lines) > 2
    short = shorten(lines, 2, 1.5)
    assert short[0] == lines[0]
    assert short[1].endswith(" …")
    assert all(text_width(line) <= 1.5 for line in short)
    assert shorten(lines[:2], 2, 1.5) == lines[:2]


def test_labels_break_after_the_version_and_after_underscores():
    assert break_label("luigi_v1_fused", 2.0) == "luigi_v1_fused"
    assert break_label("luigi_v3_shared_centroids", 1.0) == "luigi_v3_shared_\ncentroids"
    assert break_label("luigi_v1_fused GeForce RTX 4090", 1.0) == (
        "luigi_v1_fused\nGeForce RTX 4090"
    )


@pytest.mark.parametrize(
    ("low", "high"), [(0.1, 900), (0.9, 4.2), (1.10, 1.25), (0.02, 0.3), (1e-6, 1e6), (80, 130)]
)
def test_every_log_axis_has_a_few_ticks(low, high):
    ticks = log_ticks(low, high)
    assert 3 <= len(ticks) <= 8
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize(("high", "width"), [(7120, 1.0), (7120, 3.0), (2.4, 0.9), (1e9, 1.2)])
def test_labels_of_a_narrow_log_axis_do_not_touch(high, width):
    axes = Figure().subplots()
    log_axis(axes, "x", 1, high, width=width)
    ticks = [float(t) for t in axes.get_xticks()]
    at = log_positions(axes.get_xlim(), ticks, width)
    halves = [text_width(tick_text(t)) / 2 for t in ticks]
    assert len(ticks) >= 2
    assert all(
        b - a >= p + q for (a, b), (p, q) in zip(pairwise(at), pairwise(halves), strict=True)
    )


def test_labels_that_fit_do_not_touch_and_keep_the_ends():
    at = [0.0, 0.1, 0.2, 0.5, 1.0]
    chosen = fitting(at, ["1,000"] * 5)
    assert chosen[0] == 0
    assert chosen[-1] == 4
    width = text_width("1,000")
    assert all(at[b] - at[a] >= width + 0.08 for a, b in pairwise(chosen))


def test_versions_keep_apart_and_only_the_ninth_repeats_a_colour():
    looks = [variants[0] for variants in version_styles([f"v{i}" for i in range(20)])]
    assert len({look["color"] for look in looks[:8]}) == 8
    assert len({(look["color"], look["marker"], str(look["linestyle"])) for look in looks}) == 20
