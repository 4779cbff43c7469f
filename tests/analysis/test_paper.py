"""Figures for a paper: their widths, their fonts, and what LaTeX makes of them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from made_runs import Sweep, realistic_faults, write_run
from matplotlib.backends.backend_agg import FigureCanvasAgg

from analysis.__main__ import main
from analysis.figures import FIGURES, draw, write
from analysis.figures.paper import CLASSES, POINTS, paper_for
from analysis.figures.tex import tex
from analysis.measures.points import gather
from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.pages.report import subject

NEEDS_LATEX = pytest.mark.skipif(
    not shutil.which("pdflatex"), reason="needs LaTeX: tools/setup-system.sh paper"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    everything = {"counters": True, "ceilings": True, "floors": True, "convergence": True}
    sweep = Sweep(dim=(2, 8), faults=realistic_faults(), **everything)
    return load_run(write_run(tmp_path_factory.mktemp("runs") / "run", sweep))


def drawing_of(run, name, width):
    return draw(name, gather([run], run.baseline), subject([run]), width)


def shown_texts(figure):
    texts = figure.findobj(match=lambda artist: hasattr(artist, "get_text"))
    return [text for text in texts if text.get_text().strip() and text.get_visible()]


@pytest.mark.parametrize("inches", [241.1475 / POINTS, 4.8, 516 / POINTS])
@pytest.mark.parametrize("name", [name for name in FIGURES if name != "clustering"])
def test_a_figure_fits_the_width_that_a_paper_has(run, name, inches):
    figure = drawing_of(run, name, inches).figure
    assert figure.get_figwidth() == inches
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    for text in shown_texts(figure):
        assert text.get_fontsize() >= 7
        box = text.get_window_extent(renderer)
        assert box.x0 >= -1, text.get_text()
        assert box.x1 <= figure.bbox.width + 1, text.get_text()
        assert box.y0 >= -1, text.get_text()
    for axes in figure.axes:
        assert axes.get_position().width * inches >= 0.5


def test_title_and_small_print_are_in_the_caption_alone(run):
    alone, apart = (drawing_of(run, "speedup", width).figure for width in (None, 3.3))
    for words in ("Speedup over K", "by CUDA events", "Without result: 46 of 480 points."):
        assert any(words in text.get_text() for text in shown_texts(alone))
        assert not any(words in text.get_text() for text in shown_texts(apart))
        assert words in apart.caption


def test_a_title_that_asks_gets_no_full_stop(tmp_path):
    """docs/paper.md has a question for a title."""
    for title, begin in (("Is it faster?", "Is it faster? "), ("K = 5", "K = 5. ")):
        run = load_run(write_run(tmp_path / begin[0], Sweep()))
        run.spec["title"] = title
        assert drawing_of(run, "speedup", 3.3).figure.caption.startswith(begin)


@pytest.mark.parametrize(
    ("width", "of_class", "inches", "environment"),
    [
        (None, "IEEEtran", 3.487, "figure"),
        ("text", "IEEEtran", 7.140, "figure*"),
        ("column", "acmart", 3.337, "figure"),
        ("text", "llncs", 12.2 / 2.54, "figure"),
        ("3.5", None, 3.5, "figure"),
        (None, None, None, ""),
    ],
)
def test_a_width_is_of_a_class_or_in_inches(width, of_class, inches, environment):
    assert paper_for(width, of_class) == (inches and pytest.approx(inches, abs=1e-3), environment)


@pytest.mark.parametrize(
    ("width", "of_class", "message"),
    [
        ("column", None, "--width column: of which class? add --class acmart|IEEEtran|llncs"),
        ("wide", "llncs", "--width: 'wide' is not column, text or a number of inches"),
        ("1", None, "--width: 1 inches; from 2.5 to 14 can be drawn"),
        ("nan", None, "--width: nan inches; from 2.5 to 14 can be drawn"),
        (None, "acm", "--class: unknown class 'acm'; there are acmart, IEEEtran, llncs, article"),
    ],
)
def test_what_is_no_width_is_said(width, of_class, message):
    with pytest.raises(RunError) as error:
        paper_for(width, of_class)
    assert str(error.value).startswith(message)


def test_an_unknown_format_is_one_line_and_status_2(run, capsys):
    assert main(["figures", str(run.path), "--format", "eps"]) == 2
    err = capsys.readouterr().err
    assert err == "--format: unknown format 'eps'; there are svg, png, pdf, pgf\n"


def test_a_figure_that_is_higher_than_a_page_is_said(run, tmp_path, capsys):
    command = ["figures", str(run.path), "--only", "occupancy", "--out", str(tmp_path)]
    assert main([*command, "--class", "IEEEtran", "--format", "pdf"]) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(r"occupancy: \d+\.\d in high, more than a page: .*\n", err)
    assert [Path(line).name for line in out.splitlines()] == [
        *("occupancy.pdf", "occupancy.tex", "occupancy.csv")
    ]


def test_fonts_are_embedded_and_the_same_rows_give_the_same_bytes(run, tmp_path):
    formats = ("pdf", "pgf")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        paths = write(drawing_of(run, "speedup", 3.3), folder, formats, "figure")
        names = [path.name for path in paths]
        assert names == ["speedup.pdf", "speedup.pgf", "speedup.tex", "speedup.csv"]
    for name in names:
        assert len({(folder / name).read_bytes() for folder in folders}) == 1
    pdf = paths[0].read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"CreationDate" not in pdf


@pytest.mark.parametrize(
    ("plain", "latex"),
    [
        ("luigi_v1 50% of $5 & #1", r"luigi\_v1 50\% of \ensuremath{\mathdollar}5 \& \#1"),
        ("10⁻ 2×10¹² ± 1…", "".join([r"10\texttt{U+207B} 2\ensuremath{\times}10",
                                    r"\textsuperscript{1}\textsuperscript{2}",
                                    r" \ensuremath{\pm} 1\ldots{}"])),
        ("a\\b{c}^~", r"a\textbackslash{}b\{c\}\textasciicircum{}\textasciitilde{}"),
        ("Universität São Łódź", "Universität São Łódź"),
        ("北", r"\texttt{U+5317}"),
        ("a\nb", "a b"),
    ],
)  # fmt: skip
def test_plain_text_stays_plain_in_latex(plain, latex):
    assert tex(plain) == latex


def compiled(folder, body):
    """The text of LaTeX's PDF of `body`, and its fonts' types."""
    packages = "graphicx,pgf,array,booktabs,longtable"
    (folder / "paper.tex").write_text(
        "\\documentclass{article}\n"
        f"\\usepackage{{{packages}}}\n\\begin{{document}}\n{body}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[-3000:]
    assert "Missing character" not in (folder / "paper.log").read_text("utf-8", "replace")
    tool = shutil.which("pdftotext")
    assert tool, "poppler-utils is missing: tools/setup-system.sh paper"
    read = [[tool, "-raw", "paper.pdf", "-"], ["pdffonts", "paper.pdf"]]
    done = [subprocess.run(c, cwd=folder, capture_output=True, check=True) for c in read]
    text, fonts = (one.stdout.decode("utf-8") for one in done)
    return text, fonts


@NEEDS_LATEX
def test_latex_sets_every_figure_in_its_own_letters(make_run, tmp_path):
    odd = "needs $x_1$ ^ {and} ~50% of <tags> & #1 \\frac in 北京"
    faults = [(lambda p: p["n"] == 10**7, "failed", odd.replace("{", "{{").replace("}", "}}"))]
    path = make_run(k=(5,), title="50% of a_b & c", faults=faults, counters=True, ceilings=True)
    run = load_run(path)
    names = [*("speedup", "ladder", "phases", "roofline", "occupancy", "noise")]
    for name in names:
        write(drawing_of(run, name, CLASSES["article"].column / POINTS), tmp_path, ["pgf"])
    write(drawing_of(run, "tpb", 4.7), tmp_path, ["pdf", "pgf"], "figure")
    body = "\n\n".join(rf"\input{{{name}.pgf}}" for name in names) + "\n\n\\input{tpb.tex}"
    text, fonts = compiled(tmp_path, body)
    for words in ("speedup over cpu sequential", "luigi v4 device update", "50% of a b & c"):
        assert words in " ".join(text.replace("_", " ").split())
    assert "U+5317" in text
    assert "CMR7" in fonts  # the document's letters in the PGF …
    assert "DejaVuSans" in fonts  # … and the figure's own in the PDF
    assert "Type 3" not in fonts
