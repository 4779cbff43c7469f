"""Names, titles and reasons of strangers: long ones, and such as say something to a terminal, a
browser, a spreadsheet or a typesetter. They are shown, and do nothing."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from made_runs import write_lines

from analysis.__main__ import main
from analysis.figures.names import LONGEST, shortened
from analysis.model.files import one_line, printable
from analysis.model.load import load_run
from analysis.pages import escape
from analysis.pages.report import _folders
from analysis.pages.tables import markdown

EVIL = {
    "long": "x_" + "L" * 150,
    "markup": "x_</script><img src=x onerror=alert(1)>",
    "mathtext": "x_$\\frac{$",
    "escape": "x_\x1b[31m\x07",
    "nul": "x_a\x00b",
    "surrogate": "x_\ud800",
    "newline": "x_a\nb",
    "pipe": "x_a|b`c",
    "formula": '=HYPERLINK("http://x")',
    "direction": "x_\u202eb",
    "emoji": "x_\U0001f680",
}
FILES = ("measurements.jsonl", "phases.jsonl", "counters.jsonl")


def renamed(path, name, title=None):
    """The run with `name` in place of luigi_v1_fused."""
    for file in FILES:
        rows = [json.loads(line) for line in (path / file).read_text().splitlines()]
        for row in [row for row in rows if row["version"] == "luigi_v1_fused"]:
            row["point"], row["version"] = row["point"].replace(row["version"], name), name
        write_lines(path / file, rows)
    parents = {"cpu_openmp": "cpu_sequential", name: "cpu_sequential"}
    (path / "plan.json").write_text(json.dumps({"parents": parents}))
    if title is not None:
        spec = json.loads((path / "spec.resolved.json").read_text())
        (path / "spec.resolved.json").write_text(json.dumps({**spec, "title": title}))
    return path


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


@pytest.fixture
def small(make_run):
    few = {"n": (10_000, 100_000), "k": (5,), "threads_per_block": (128, 256), "threads": (1,)}
    return make_run(counters=True, floors=True, **few)


@pytest.mark.parametrize("kind", EVIL)
def test_figures_of_such_names_are_whole(small, tmp_path, kind, capsys):
    name = EVIL[kind]
    out = tmp_path / "out"
    assert main(["figures", str(renamed(small, name, name)), "--out", str(out)]) == 0
    drawn = list(out.glob("*.svg"))
    assert len(drawn) == 2  # the spec's speedup and tpb
    for file in drawn:
        ET.parse(file)
        table = list(csv.DictReader(io.StringIO(file.with_suffix(".csv").read_text())))
        versions = {row["version"] for row in table}
        shown = printable(name)
        assert ("'" if shown.startswith("=") else "") + shown in versions
    said = "".join(capsys.readouterr())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", said)


@pytest.mark.parametrize("kind", ["long", "mathtext"])
def test_every_other_figure_of_such_names_is_drawn(small, tmp_path, kind):
    path = renamed(small, EVIL[kind], EVIL[kind])
    wanted = "ladder,phases,occupancy,roofline,floor,noise,fastest"
    assert main(["figures", str(path), "--only", wanted, "--out", str(tmp_path / "out")]) == 0
    assert len(list((tmp_path / "out").glob("*.svg"))) == len(wanted.split(","))


def test_a_report_of_such_names_does_nothing(small, tmp_path):
    path = renamed(small, EVIL["markup"], "</title><script>alert(1)</script>![x](y)")
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[0] |= {"status": "failed", "reason": "<img src=x onerror=alert(1)> | [a](javascript:b)"}
    write_lines(file, rows)
    for options in ([], ["--single-file"]):
        assert main(["report", str(path), "-o", str(tmp_path / "out"), *options]) == 0
    (run,) = (tmp_path / "out").glob("*/index.html")
    whole = (tmp_path / "out" / "report.html").read_text()
    for page in ((tmp_path / "out" / "index.html").read_text(), run.read_text(), whole):
        for tag, attributes in Tags(page).found:
            assert not any(key.startswith("on") for key in attributes), (tag, attributes)
            assert not str(attributes.get("href", "")).startswith("javascript:")
        # rows are JSON, which a browser does not run
        assert not re.search(r"<script>[^<]*alert\(1\)", page)
        assert page.count("<script>") == (page is whole)
    assert "alert(1)" in run.read_text()


def test_a_spec_cannot_name_a_folder_outside_the_report(make_run):
    path = make_run(n=(10_000,), k=(5,))
    runs = []
    for name in ("../../above", "/root", "a/b", "..", "x" * 500, 'a"><b'):
        spec = json.loads((path / "spec.resolved.json").read_text())
        (path / "spec.resolved.json").write_text(json.dumps({**spec, "name": name}))
        runs.append(load_run(path))
    folders = _folders(runs)
    assert len(set(folders)) == len(runs)
    for folder in folders:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,84}", folder), folder


def test_what_cannot_be_printed_is_escaped():
    assert printable("a\x1b[31m\x00\ud800\u202e\n") == "a\\x1b[31m\\x00\\ud800\\u202e\\n"
    assert printable("Größe † µs 🚀") == "Größe † µs 🚀"
    assert one_line("ended:\n\tsignal 9\x07") == "ended: signal 9\\x07"


def test_markdown_stays_text():
    assert escape.text("a_b __c__ *d* <b> $e$ `f`") == (
        "a_b \\_\\_c\\_\\_ \\*d\\* &lt;b> \\$e\\$ \\`f\\`"
    )
    assert escape.text("1 < 2, [1, 2], sm__a.b") == "1 < 2, [1, 2], sm__a.b"
    assert escape.text("![a](b) [c](d) &lt;") == "\\![a\\](b) [c\\](d) &amp;lt;"
    assert escape.code("a`b``c") == "``` a`b``c ```"
    table = markdown(["x|y"], [["a|b\nc"], [escape.code("d|e")]], set())
    assert table == "| x\\|y |\n| --- |\n| a\\|b c |\n| `d\\|e` |\n"


def test_names_cut_short_stay_different():
    names = ["a" * 100 + str(i) + "b" * 100 for i in range(12)] + ["short"]
    cut = shortened(names, LONGEST["version"])
    assert set(cut) == set(names[:-1])
    assert len(set(cut.values())) == 12
    assert max(map(len, cut.values())) <= LONGEST["version"] + 1
