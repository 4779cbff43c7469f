"""Colours and markers of versions: the same in all figures, and apart within each."""

import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from drawn import drawing_of
from matplotlib.colors import same_color
from recorded_runs import RECORDED

from analysis.figures.fastest import FILLS, _colours
from analysis.figures.looks import OWN, version_styles

LISTED = Path(__file__).resolve().parents[2] / "docs" / "versions.md"


def looks(versions):
    styles = [variants[0] for variants in version_styles(versions)]
    return {
        version: (look["color"], look["marker"])
        for version, look in zip(versions, styles, strict=True)
    }


def own(version):
    """The looks of a version that needs not share colours with others."""
    return looks([version])[version]


def test_the_versions_with_own_looks_exist_and_look_different():
    named = " ".join(OWN).split()
    listed = re.findall(r"^\| `(\w+)` \|", LISTED.read_text("utf-8"), re.MULTILINE)
    assert {*named} <= {*listed}
    assert len({own(version) for version in named}) == len(named)


def test_versions_look_alike_in_all_recorded_runs_with_as_many_colours_as_there_are():
    runs = sorted(RECORDED.glob("*/*/plan.json"))
    assert len(runs) > 20
    for run in runs:
        spec = json.loads((run.parent / "spec.resolved.json").read_text("utf-8"))
        points = json.loads(run.read_text("utf-8"))["points"]
        versions = {point["version"]: None for point in points}
        versions.pop(spec["baseline"], None)
        given = looks([*versions])
        for version, look in given.items():
            assert look == own(version) or version not in " ".join(OWN).split(), (run, version)
        assert len({colour for colour, _ in given.values()}) == min(len(given), 8), run


@pytest.mark.parametrize("count", [1, 8, 9, 16, 17, 40, 58])
def test_no_colour_is_used_more_often_than_it_must(count):
    for versions in (" ".join(OWN).split()[:count], [f"v{i}" for i in range(count)]):
        given = looks(versions)
        assert max(Counter(colour for colour, _ in given.values()).values()) == -(-count // 8)
        assert len({*given.values()}) == count


def test_of_two_versions_with_one_colour_the_first_of_the_list_keeps_it():
    first, second = OWN[0].split()[:2]
    for versions in ([first, second, "mine"], ["mine", second, first]):
        given = looks(versions)
        assert given[first] == own(first)
        assert given[second][0] not in (own(first)[0], given["mine"][0])
        assert given[second][1] == own(second)[1]


def test_figures_of_a_run_agree(make_run):
    path = make_run(k=(100,), n=(10_000, 10_000_000), baseline="luigi_v1_fused")

    def labels(name):
        return {
            text.get_text().split()[0]: text.get_color()
            for text in drawing_of(path, name).figure.texts
            if text.get_text().startswith(("cpu_", "luigi"))
        }

    speedup, scaling = labels("speedup"), labels("scaling")
    assert scaling["cpu_openmp"] == speedup["cpu_openmp"] == own("cpu_openmp")[0]
    drawing = drawing_of(path, "fastest")
    (version,) = set(drawing.rows.loc[drawing.rows["drawn"], "version"])
    cells = [patch for axes in drawing.figure.axes for patch in axes.patches]
    assert all(same_color(cell.get_facecolor()[:3], speedup[version]) for cell in cells)


def test_cells_of_two_versions_with_one_colour_differ():
    first, second = OWN[0].split()[:2]
    points = pd.DataFrame({"version": " ".join(OWN[:2]).split()})
    best = pd.DataFrame({"version": [second, first]})
    given = _colours(points, best, "")
    assert given[first] == own(first)[0]
    assert given[second] in FILLS
    assert given[second] != given[first]
    assert _colours(points, best, first)[first] != _colours(points, best, first)[second]
