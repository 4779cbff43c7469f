"""The report: pages that are whole, small, linked with each other and with the rows."""

import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from recorded_runs import RECORDED, recorded_run
from unpacked import packed_pages

from analysis.__main__ import main
from analysis.model.load import load_run
from analysis.pages.facts import rerun_command

ROOT = Path(__file__).parents[2]
LARGEST_PAGE, LARGEST_FILE = 2_000_000, 12_000_000


class Page(HTMLParser):
    """Collects tags, ids, links and text of a page; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.ids, self.links, self.sources, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        self.sources += [attributes["src"]] if "src" in attributes else []
        if tag not in ("meta", "link", "img", "br", "input"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.stack):
            self.words.append(data)


def words(file):
    return " ".join(" ".join(Page(file.read_text()).words).split())


def test_every_page_is_whole_and_needs_only_files_beside_it(report):
    pages = sorted(report.glob("**/index.html"))
    assert {page.parent.name for page in pages} == {"out", "k5", "k1000", "odd"}
    for file in pages:
        text = file.read_text()
        page = Page(text)
        assert len(page.ids) == len(set(page.ids))
        for link in [*page.links, *page.sources]:
            if re.match(r"https://", link):
                assert file.parent == report, link  # where a study is
                continue
            target, _, place = link.partition("#")
            if not link.startswith("data:"):
                assert not target or (file.parent / target).is_file(), link
                assert target or unquote(place) in page.ids, link
        assert "<script>alert" not in text
    assert "A <script>alert(1)</script> & 'title'" in words(report / "odd" / "index.html")


def test_the_index_has_the_readers_runs_first_and_the_studies(report):
    said = words(report / "index.html")
    own, recorded = said.index("Your results"), said.index("Recorded with the project")
    assert own < said.index("A <script>") < recorded < said.index("Speedup with K = 1000")
    for expected in (
        *("Claims of the studies", "hold", "answered here"),
        "Luigi, Accelerating K-means with CUDA, blog post, luigicennini.it, 2025",
        "PoJen Wang, Kmeans Clustering Algorithm with CUDA, blog post, IBM Q-hub, National Taiwan "
        "University, 2024: no row here can judge its 10 claims",
    ):
        assert expected in said, expected
    assert said.count("no row here can judge its") < 5


def test_a_runs_page_has_its_figures_medians_and_what_failed(report):
    said = words(report / "odd" / "index.html")
    for expected in (
        *("Measure it again: run_experiment", "Environment and method", "580.82.07"),
        "needs 96,000 B of shared memory per block",
    ):
        assert expected in said, expected
    assert "roofline" in words(report / "k5" / "index.html")


def test_an_alternative_text_says_what_the_figure_shows(report):
    text = (report / "k1000" / "index.html").read_text()
    alternative = dict(re.findall(r'role="img" aria-label="(\w+): ([^"]+)"', text))
    rows = load_run(recorded_run("k1000")).measurements
    said = r"Over cpu_sequential, (\w+) \(which ran fast_cpu_tree\) is the fastest: "
    fastest = re.match(said, alternative["speedup"])
    assert fastest is not None
    assert fastest[1] in set(rows["version"])
    assert set(alternative) >= {"speedup", "tpb", "phases", "noise"}
    for name, said in alternative.items():
        assert f"<figcaption>{said} <a" in text, name
        assert any(version in said for version in rows["version"].unique()), name


def test_figures_are_text_and_follow_the_theme(report):
    text = (report / "k1000" / "index.html").read_text()
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == text.count('class="picture')
    assert ">luigi_v1_fused</text>" in pictures[0]
    assert "var(--ink)" in pictures[0]
    assert "var(--hue1)" in pictures[0]
    assert not re.search("#222222|#D55E00", pictures[0], re.IGNORECASE)


def test_a_claim_links_to_the_rows_that_judge_it(report):
    links = re.findall(
        r'<td><a href="(k1000/index.html#[^"]+)"', (report / "index.html").read_text()
    )
    assert links
    page = (report / "k1000" / "index.html").read_text()
    for link in links:
        asked = link.split("#")[1].split("&amp;")
        rows = re.findall(r'data-at="([^"]*)"', page)
        assert any(all(word in row.split() for word in asked) for row in rows), link


def test_the_rows_of_the_chart_are_those_of_the_table(report):
    text = (report / "k1000" / "index.html").read_text()
    chart = json.loads(re.search(r'id="chart-rows">(.*?)</script>', text, re.DOTALL)[1])
    assert sorted(chart["columns"]["row"]) == sorted(map(int, re.findall(r'id="row=(\d+)"', text)))
    assert set(chart["looks"]) == set(chart["columns"]["version"])


def test_what_cannot_be_read_is_said_and_the_rest_is_reported(make_run, tmp_path, capsys):
    make_run("runs/good", n=(10_000,), k=(5,))
    old = make_run("runs/old", n=(10_000,), k=(5,))
    file = old / "measurements.jsonl"
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 0'))
    out = tmp_path / "out"
    assert main(["report", str(tmp_path / "runs"), "-o", str(out)]) == 2
    assert "not read: " in capsys.readouterr().err
    said = words(out / "index.html")
    assert "Not read: " in said
    assert "schema 0; this version reads schemas 1, 2, 3" in said
    assert (out / "sweep" / "noise.csv").is_file()


def test_the_one_file_has_the_name_that_was_given(make_run, tmp_path):
    run, out = make_run(n=(10_000,), k=(5,)), tmp_path / "new" / "page.html"
    for _ in range(2):
        assert main(["report", str(run), "-o", str(out), "--single-file"]) == 0
        assert [path.name for path in out.parent.iterdir()] == ["page.html"]
        assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    (tmp_path / "folder.html").mkdir()
    assert main(["report", str(run), "-o", str(tmp_path / "folder.html"), "--single-file"]) == 0
    assert (tmp_path / "folder.html" / "report.html").is_file()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The one file with every recorded run: about half a minute on two cores."""
    out = tmp_path_factory.mktemp("whole")
    assert main(["report", str(RECORDED), "-o", str(out), "--single-file"]) == 0
    assert [path.name for path in out.iterdir()] == ["report.html"]
    return out / "report.html"


def test_every_recorded_run_fits(whole):
    assert whole.stat().st_size < LARGEST_FILE
    text = whole.read_text()
    assert len(text.split("<main", 1)[1].split("</main>")[0].encode()) < LARGEST_PAGE
    pages = packed_pages(text)
    runs = [plan.parent for plan in RECORDED.glob("*/*/plan.json")]
    specs = [run.name for run in runs]
    several = {spec for spec in specs if specs.count(spec) > 1}  # these also get a page together
    assert len(pages) == len(runs) + len(several), sorted(pages)
    assert {f"{run.parent.name}-{run.name}" for run in runs} <= {*pages}
    for name, page in pages.items():
        # here the rows of the figures are in links; in a folder they are files of their own
        own = re.sub(r'href="data:text/csv[^"]*"', "", page)
        assert len(own.encode()) < LARGEST_PAGE, name
        assert set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', page)) <= {*Page(page).ids}, name
        assert not re.search(r'(fill|stroke)="(?!none)', page), name
    # what does not fit is hatched
    assert 'style="fill: #ffffff"' in pages["nvidia-h200-dims"].split("<pattern")[1][:200]


def test_how_to_measure_again_has_the_options(make_run):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "plan.json"
    plan = json.loads(file.read_text())
    plan["overrides"] = {
        **{"set": ["n=1e4"], "only": ["luigi_*", "cpu_*"], "filter": "n:1", "shuffle": False},
        **{"repetitions": 9, "profile": ["counters"]},
    }
    file.write_text(json.dumps(plan))
    assert rerun_command(load_run(path)) == (
        f"run_experiment {path}/spec.yaml --set n=1e4 --only 'luigi_*,cpu_*' --filter n:1 "
        "--repetitions 9 --profile counters --no-shuffle"
    )


def test_make_report_takes_what_is_recorded():
    root = Path(__file__).parents[2]
    shown = subprocess.run(
        ["make", "-n", "-o", ".venv/.stamp", "report"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    directories = re.search(r"analysis report (.*) -o report", shown)[1].split()
    recorded = [directory for directory in directories if directory.startswith("data/recorded/")]
    assert recorded
    for directory in recorded:
        assert len(load_run(root / directory).measurements)
