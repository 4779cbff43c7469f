"""Places labels beside the ends of lines, so that none covers another."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes

from analysis.figures.style import SMALL


def spread(wanted: list[float], heights: list[float], low: float, high: float) -> list[float]:
    """The centres nearest to `wanted` so that boxes of `heights` do not overlap and stay within
    low..high, in one dimension and any unit.

    Boxes keep the order of `wanted`. Boxes that collide are merged into a block centred on the mean
    of their wanted places (pool adjacent violators), which is the least-squares solution. If there
    is not enough room, boxes are stacked upwards from `low`."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[dict] = []
    for i in order:
        # a block has its members, its height, and the wanted place of its bottom
        block = {"of": [i], "height": heights[i], "bottom": wanted[i] - heights[i] / 2, "n": 1}
        block["bottom"] = _clamp(block, low, high)
        while blocks and blocks[-1]["bottom"] + blocks[-1]["height"] > block["bottom"]:
            under = blocks.pop()
            wish = under["bottom"] * under["n"] + (block["bottom"] - under["height"]) * block["n"]
            count = under["n"] + block["n"]
            block = {
                "of": under["of"] + block["of"],
                "height": under["height"] + block["height"],
                "bottom": wish / count,
                "n": count,
            }
            block["bottom"] = _clamp(block, low, high)
        blocks.append(block)
    centres = [0.0] * len(wanted)
    for block in blocks:
        bottom = block["bottom"]
        for i in block["of"]:
            centres[i] = bottom + heights[i] / 2
            bottom += heights[i]
    return centres


def _clamp(block: dict, low: float, high: float) -> float:
    return max(low, min(block["bottom"], high - block["height"]))


def stacked_height(labels: Iterable[str]) -> float:
    """The height of these labels on top of each other, in inches."""
    return 0.125 * sum(label.count("\n") + 1 for label in labels)


def label_ends(axes: Axes, ends: list[tuple[float, float, str, str]], gap: float = 0.06) -> None:
    """Writes labels to the right of `axes`, one for each (x, y, label, colour) in data coordinates.

    A label is at its line's height, or moved up or down if labels would overlap. A thin leader
    connects it to the end of its line. Call this after the limits are set."""
    figure = axes.figure
    box = axes.get_position()
    left, width = box.x0 * figure.get_figwidth(), box.width * figure.get_figwidth()
    height = box.height * figure.get_figheight()
    to_inches = axes.transData + axes.transAxes.inverted()
    spots = [to_inches.transform((x, y)) for x, y, _, _ in ends]
    heights = [0.115 * (label.count("\n") + 1) + 0.02 for _, _, label, _ in ends]
    centres = spread([y * height for _, y in spots], heights, -0.1, height + 0.1)
    for (x, y), centre, (_, _, label, colour) in zip(spots, centres, ends, strict=True):
        elbow = 1 + 0.10 / width
        text_at = elbow + gap / width
        axes.plot(
            [x + 0.04 / width, elbow, text_at - 0.02 / width],
            [y, centre / height, centre / height],
            transform=axes.transAxes,
            color=colour,
            linewidth=0.5,
            # a leader across the panel must not look like data
            linestyle=(0, (1, 2)) if x < 0.9 else "-",
            alpha=0.7,
            clip_on=False,
            zorder=1,
        )
        figure.text(
            (left + text_at * width) / figure.get_figwidth(),
            box.y0 + centre / figure.get_figheight(),
            label,
            color=colour,
            fontsize=SMALL,
            va="center",
            linespacing=1.0,
            parse_math=False,
        )
