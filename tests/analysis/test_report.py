"""The report: whole, self-contained, and as a browser shows it."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_runs import Sweep, realistic_faults, write_run

from analysis.__main__ import main
from analysis.model.load import load_run
from analysis.pages.facts import rerun_command


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
        if tag not in ("meta", "link", "img", "br"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.stack):
            self.words.append(data)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Writes the report of two runs, one with faults; returns its folder."""
    folder = tmp_path_factory.mktemp("report")
    everything = {"counters": True, "ceilings": True, "floors": True}
    write_run(folder / "runs/k5", Sweep(name="k5", k=(5,), n=(10_000, 10_000_000), **everything))
    odd = {"name": "odd", "title": "A <script>alert(1)</script> & 'title'"}
    large = {"k": (1000,), "n": (10_000_000,), "faults": realistic_faults()}
    write_run(folder / "runs/odd", Sweep(**odd, **large))
    out = folder / "out"
    assert main(["report", str(folder / "runs"), "-o", str(out)]) == 0
    return out


def test_the_page_is_whole_and_needs_nothing_else(report):
    text = (report / "report.html").read_text()
    page = Page(text)
    assert not re.search(r"https?://(?!www\.w3\.org)", text.split("<body>")[0])
    for link in page.links:
        assert link.startswith(("#", "data:"))
        assert link in ("#", "data:,") or link[1:] in page.ids
    assert len(page.ids) == len(set(page.ids))
    assert page.sources
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    words = " ".join(" ".join(page.words).split())
    assert "A <script>alert(1)</script> & 'title'" in words
    assert "<script>alert" not in text
    for expected in (
        *("Claims of the studies", "hold", "luigi: published, and these runs'", "Table VIII"),
        *("needs 96,000 B of shared memory per block", "Environment and method", "580.82.07"),
        *("Measure it again: run_experiment", "roofline: click for its rows"),
    ):
        assert expected in words, expected


def test_the_rows_in_the_page_are_the_csv_beside_it(report):
    text = (report / "report.html").read_text()
    found = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    files = {file.read_text() for file in report.glob("*/*.csv")}
    assert {json.loads(rows) for rows in found} == files
    assert len(files) > 10


def test_what_cannot_be_read_is_said_and_the_rest_is_reported(make_run, tmp_path, capsys):
    make_run("runs/good", n=(10_000,), k=(5,))
    old = make_run("runs/old", n=(10_000,), k=(5,))
    file = old / "measurements.jsonl"
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 0'))
    out = tmp_path / "out"
    assert main(["report", str(tmp_path / "runs"), "-o", str(out)]) == 2
    assert "not read: " in capsys.readouterr().err
    words = " ".join(Page((out / "report.html").read_text()).words)
    assert "schema 0; this version reads schemas 1 and 2" in words
    assert "Not read: " in (out / "report.md").read_text()
    assert (out / "sweep" / "noise.svg").is_file()


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


# Told to the harness page by each copy of the report, one at a time in a frame of its own width.
CHECK = """<script>
const wrong = [];
addEventListener("error", (event) => wrong.push(String(event.message)));
for (const kind of ["error", "warn"]) console[kind] = (...what) => wrong.push(what.join(" "));
addEventListener("load", async () => {
  for (const image of document.images) image.loading = "eager";
  const broken = [];
  for (const image of document.images)
    await image.decode().catch((reason) => broken.push(image.alt + ": " + reason));
  document.querySelector(".picture").click();
  const rows = document.querySelector(".rows");
  const claims = document.querySelector("table.claims");
  claims.querySelector("th").click();
  const first = claims.tBodies[0].rows[0].cells[0].textContent;
  claims.querySelector("th").click();
  const last = claims.tBodies[0].rows[0].cells[0].textContent;
  for (const details of document.querySelectorAll("details")) details.open = true;
  const wide = [...document.querySelectorAll("main > *, main p, figure, .scroll, nav, h2, h3")]
    .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .map((e) => e.tagName + " " + e.textContent.slice(0, 40));
  parent.postMessage({
    width: innerWidth, page: document.documentElement.scrollWidth, wrong, broken, wide,
    shown: !rows.hidden, rows: rows.querySelectorAll("tbody tr").length,
    sorts: first < last, images: document.images.length,
    numbers: ["2×10⁴", "3,440× [1, 2]", "0.119 ms", "10⁷"].map(leading),
  }, "*");
});
</script>"""
WIDTHS = (1280, 390)


def test_a_browser_shows_it_at_desktop_and_phone_width(report):
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((found for name in names if (found := shutil.which(name))), None)
    if not browser:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    text = (report / "report.html").read_text()
    (report / "checked.html").write_text(text.replace("<head>", "<head>" + CHECK, 1))
    frames = "".join(
        f'<iframe src="checked.html" style="width:{width}px;height:800px;border:0"></iframe>'
        for width in WIDTHS
    )
    (report / "frames.html").write_text(
        "<!doctype html><body><script>const told = [];"
        'addEventListener("message", (event) => { told.push(event.data);'
        'document.querySelector("pre").textContent = JSON.stringify(told); });</script>'
        f"<pre></pre>{frames}"
    )
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    command += ["--user-data-dir=" + str(report / "profile"), "--virtual-time-budget=30000"]
    command += ["--enable-logging=stderr", "--dump-dom", (report / "frames.html").as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in result.stderr, result.stderr
    told = json.loads(
        re.search(r"<pre>(.*?)</pre>", result.stdout, re.DOTALL)[1].replace("&gt;", ">")
    )
    assert sorted(frame["width"] for frame in told) == sorted(WIDTHS)
    drawn = len(list(report.glob("*/*.svg")))
    first = Path(next(iter(sorted(report.glob("k5/speedup.csv")))))
    for frame in told:
        assert frame["wrong"] == []
        assert frame["broken"] == []
        assert frame["wide"] == []
        assert frame["page"] <= frame["width"]
        assert frame["images"] == drawn
        assert frame["shown"]
        assert frame["rows"] == len(first.read_text().splitlines()) - 1
        assert frame["sorts"]
        assert frame["numbers"] == [20000, 3440, 0.119, 1e7]


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
    assert directories
    for directory in directories:
        assert len(load_run(root / directory).measurements)
