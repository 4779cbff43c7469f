"""CHANGELOG.md has no ratio of times that nobody can look up."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[1] / "CHANGELOG.md"
SHARE = r"(?:\d%|\d×|\d times|\bhalf\b|\bthird\b|\bquarter\b|\btwice\b)"
RATIO = re.compile(rf"{SHARE}[^.;:]*?\b(?:(?:CPU )?time|as long|as fast|faster|slower|less)\b")
LINK = re.compile(r"\]\((?:docs|data|kernels|analysis)/")


def entries(text):
    """The items of the lists, each on one line."""
    return [" ".join(item.split()) for item in re.split(r"^(?:\* |#)", text, flags=re.MULTILINE)]


def test_a_ratio_of_times_is_recognized():
    for words in ("takes half as long", "takes 58% of the time", "about half the CPU time"):
        assert RATIO.search(words)
    for words in ("the time to within 1% and 0.1%", "half of the host's memory"):
        assert not RATIO.search(words)


def test_a_ratio_of_times_links_to_where_it_comes_from():
    assert [e for e in entries(PAGE.read_text()) if RATIO.search(e) and not LINK.search(e)] == []
