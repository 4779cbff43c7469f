"""A figure of a run, and the text in it."""

from analysis.figures import draw
from analysis.measures.points import gather
from analysis.model.load import load_run
from analysis.pages.report import subject


def drawing_of(path, name):
    run = load_run(path)
    return draw(name, gather([run], run.baseline), subject([run]))


def words(drawing):
    found = drawing.figure.findobj(match=lambda a: hasattr(a, "get_text"))
    return [text.get_text() for text in found]
