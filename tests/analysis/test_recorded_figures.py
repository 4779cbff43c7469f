"""Figures of recorded runs whose texts once overlapped, left the page or said too much."""

from itertools import combinations

import pytest
from drawn import drawing_of, words
from matplotlib.backends.backend_agg import FigureCanvasAgg
from recorded_runs import RECORDED, recorded_run

from analysis.figures.roofline import MOST_NAMES


def level_texts(figure):
    """The texts of a figure that are not slanted, each with its box in inches."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    found = figure.findobj(match=lambda a: hasattr(a, "get_text"))
    shown = [t for t in found if t.get_visible() and t.get_text().strip()]
    boxes = [(t, t.get_window_extent(renderer)) for t in shown if t.get_rotation() % 90 == 0]
    return [(t.get_text(), box.transformed(figure.dpi_scale_trans.inverted())) for t, box in boxes]


@pytest.mark.parametrize("spec", ["stamp_generated", "uva_generated"])
def test_the_title_of_a_panel_ends_before_the_second_denominator(spec):
    texts = level_texts(drawing_of(recorded_run(spec), "speedup").figure)
    assert any(text.startswith("over\n") for text, _ in texts)
    for (one, box), (other, beside) in combinations(texts, 2):
        wide = min(box.x1, beside.x1) - max(box.x0, beside.x0)
        high = min(box.y1, beside.y1) - max(box.y0, beside.y0)
        assert wide < 0.015 or high < 0.03, (one, other)


def test_the_longest_speedup_ends_within_the_page():
    figure = drawing_of(RECORDED / "amd-epyc-2-cores" / "cpu_regimes", "speedup").figure
    ends = [box.x1 for text, box in level_texts(figure) if text.endswith("×")]
    assert max(ends) < figure.get_figwidth() - 0.03


def test_an_axis_of_workers_names_the_kinds_that_the_run_has():
    said = words(drawing_of(recorded_run("scaling_strong"), "scaling"))
    assert "workers (threads × processes)" in said
    assert not any("GPUs" in text for text in said)


def test_a_panel_with_many_versions_names_no_kernels():
    drawing = drawing_of(recorded_run("counters"), "roofline")
    names = {text.get_text() for text in drawing.figure.texts}
    tensor = {text for text in names if text.startswith("fast_screen\nscreen_wide")}
    assert len(tensor) == 1
    assert not any(text.startswith("luigi_v1_fused\n") for text in names)
    assert f"roofline.csv has the names of the kernels in panels of more than {MOST_NAMES}" in (
        " ".join(words(drawing))
    )


def test_the_name_of_a_flat_roof_stands_to_the_right_of_the_ridges():
    """The panel of fp64 has its marks to the left of them."""
    figure = drawing_of(recorded_run("counters"), "roofline").figure
    axes = next(a for a in figure.axes if a.get_title(loc="left") == "fp64")
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    (name,) = [t for t in axes.texts if t.get_text().startswith("fp64 tensor")]
    left, _ = axes.transData.inverted().transform(name.get_window_extent(renderer).p0)
    lines = [line.get_xydata() for line in axes.lines]
    slanted = [line for line in lines if len(line) == 2 and line[1, 1] > 1.5 * line[0, 1]]
    assert len(slanted) == 4  # L1, L2 and DRAM as measured, and DRAM's datasheet
    assert left > max(line[1, 0] for line in slanted)
