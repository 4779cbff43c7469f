"""Tables as Markdown and as LaTeX."""

import json

import numpy as np
import pytest
from made_runs import write_lines
from malformed import write_good
from recorded_runs import recorded_run
from test_paper import NEEDS_LATEX, compiled

from analysis.__main__ import main
from analysis.measures.points import all_points
from analysis.measures.speedups import over, over_best_cpu
from analysis.measures.stats import Samples
from analysis.model.load import load_run
from analysis.pages import tables
from analysis.pages.escape import Code, text
from analysis.pages.every_table import write_tables
from analysis.pages.table import Table, _name_lines


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return write_good(tmp_path_factory.mktemp("tables") / "good")


@pytest.fixture(scope="module")
def written(good, tmp_path_factory):
    out = tmp_path_factory.mktemp("written")
    assert main(["tables", str(good), "--out", str(out)]) == 0
    return out


def test_a_line_says_how_far_intervals_reach():
    few, enough = np.arange(1.0, 4.0), np.arange(1.0, 7.0)
    one, short, two = Samples((enough,)), Samples((few,)), Samples((few, few))
    said = tables.interval_said
    assert said([one, None]) == "[95% interval within one launch]"
    assert said([one, short]) == (
        "[95% interval within one launch; none with fewer than 6 samples]"
    )
    assert said([one, two]) == said([]) == "[95% interval]"


def test_a_table_is_the_same_in_both_languages():
    said = ("times of ", Code("a_b"), " & more")
    header = ["N", "what", "ms per iteration"]
    table = Table("t", said, header, [["10⁴", Code("v_1"), "1.2|†"]], {"N", header[2]})
    assert table.markdown() == (
        "times of `a_b` & more\n\n| N | what | ms per iteration |\n| ---: | --- | ---: |\n"
        "| 10⁴ | `v_1` | 1.2\\|† |\n"
    )
    assert table.latex().splitlines() == [
        *(r"\begin{table}", r"\centering", r"\footnotesize", r"\setlength{\tabcolsep}{4pt}"),
        r"\caption{times of \texttt{a\_b} \& more}\label{tab:t}",
        *(
            r"\begin{tabular}{rlr}",
            r"\toprule",
            r"N & what & \shortstack[r]{ms per\\iteration} \\",
            r"\midrule",
        ),
        r"10\textsuperscript{4} & \texttt{v\_1} & 1.2\textbar{}\ensuremath{\dagger} \\",
        *(r"\bottomrule", r"\end{tabular}", r"\end{table}"),
    ]


def test_a_long_table_goes_over_pages_and_a_long_cell_over_lines():
    rows = [[str(i), f"reason {i} " * 10] for i in range(46)]
    lines = Table("t", "s", ["point", "reason"], rows).latex().splitlines()
    assert r"\begin{longtable}{l>{\raggedright\arraybackslash}p{0.89\linewidth}}" in lines
    assert lines.count(r"point & reason \\") == 2  # on the first page and on the others
    assert sum(line.startswith(tuple("0123456789")) for line in lines) == 46
    assert lines[-2:] == [r"\end{longtable}", "}"]


def test_a_table_that_is_wider_than_a_page_becomes_several():
    header = ["version", *(f"metric__{i}" for i in range(40))]
    rows = [[f"v{row}", *(f"{row}{i:07}" for i in range(40))] for row in range(2)]
    text = Table("t", "s", header, rows, {*header[1:]}).latex()
    assert text.count(r"\begin{table}") == text.count(r"\label{tab:t-") == 7
    assert text.count("\nversion & ") == 7
    assert [f"{i:07}" in text for i in range(40)] == [True] * 40


def test_each_part_of_a_table_has_the_columns_that_tell_its_rows_apart():
    header = ["N", "version", *(f"metric__{i}" for i in range(7)), "over"]
    rows = [[f"{row}0", "v", *(f"{row}{i:07}" for i in range(7)), f"v{row}"] for row in range(2)]
    table = Table("t", ("of ", Code("a_b")), header, rows, {*header[:-1]} - {"version"}, keys={"N"})
    first, second = table.latex().split("\n\n")
    assert r"\caption{Part 1 of 2: of \texttt{a\_b} All rows: version v.}\label{tab:t-1}" in first
    assert r"\caption{Part 2 of 2: of" in second
    assert first.count("\n10 & ") == second.count("\n10 & ") == 1
    # a column of text that is no key stands once
    assert "over" not in first
    assert "over" in second


WIDE = [f"metric__{i}" for i in range(7)]


def of_problems(*problems):
    """A table that is too wide for a page, with two versions for each problem."""
    header = ["N", "K", "version", "threads", *WIDE]
    rows = [[*sizes, v, "4", *(f"{v}{i:07}" for i in WIDE)] for v in "ab" for sizes in problems]
    rows[0][3] = "2"
    return Table("t", "s", header, rows, {*header} - {"version"}, keys={*header} - {*WIDE})


def test_a_wide_table_says_above_the_rows_of_a_problem_which_it_is():
    first, second = of_problems(("10", "5"), ("20", "7")).latex().split("\n\n")
    for part in (first, second):
        lines = part.splitlines()
        above = [lines.index(line) for line in lines if r"\multicolumn" in line]
        columns = lines[lines.index(r"\toprule") + 1].count("&") + 1
        whole = rf"\multicolumn{{{columns}}}{{l}}"
        assert [lines[at] for at in above] == [
            rf"{whole}{{\itshape N 10, K 5}} \\*",
            rf"{whole}{{\itshape N 20, K 7}} \\*",
        ]
        for at in above:
            assert [line[:3] for line in lines[at + 1 : at + 3]] == ["a &", "b &"]
        assert lines[above[1] - 1] == r"\addlinespace"
    # the version alone tells a problem's rows apart, so the threads stand once
    assert "threads" in first
    assert "threads" not in second


def test_a_wide_table_of_single_rows_keeps_the_columns_of_the_problem():
    table = of_problems(("10", "5"), ("20", "7"))
    latex = Table("t", "s", table.header, table.rows[:3], table.numeric, keys=table.keys).latex()
    assert "multicolumn" not in latex
    assert "\n10 & 5 & a &" in latex


def test_a_long_name_of_a_column_takes_as_few_even_lines_as_it_can():
    assert _name_lines("ms per iteration") == ["ms per", "iteration"]
    assert _name_lines("l1tex__t_sectors, l2_sector") == ["l1tex__t_", "sectors,", "l2_sector"]
    assert _name_lines("one_" + "a" * 20) == ["one_", "a" * 20]
    assert _name_lines("a" * 30) == ["a" * 30]


def test_the_medians_are_keyed_by_their_problems_and_axes(good):
    run = load_run(good)
    table = tables.medians(all_points([run], run.baseline), run.baseline)
    assert {"N", "K", "dim", "version", "threads", "threads per block"} <= table.keys
    assert table.keys.isdisjoint({"samples", "ms per iteration", "speedup"})


def test_many_parts_do_not_wait_for_each_other():
    """LaTeX holds back at most 52 tables."""
    header = ["version", *(f"metric__{i}" for i in range(90))]
    rows = [[f"v{row}", *(f"{row}{i:07}" for i in range(90))] for row in range(2)]
    text = Table("t", "s", header, rows, {*header[1:]}).latex()
    pages = text.split(r"\clearpage")
    assert [page.count(r"\begin{table}") for page in pages] == [12, 3]


def test_what_all_rows_have_in_common_is_said_in_the_caption_of_latex():
    header = ["N", "version", "K", "threads", "ms"]
    rows = [["10⁴", Code("v_1"), "5", "", "1.2"], ["10⁵", Code("v_1"), "5", "", "1.3"]]
    lines = Table("t", "Times.", header, rows, {"N", "K", "ms"}).latex().splitlines()
    assert r"\caption{Times. All rows: version v\_1, K 5.}\label{tab:t}" in lines
    assert r"N & ms \\" in lines
    assert r"10\textsuperscript{5} & 1.3 \\" in lines


def test_a_run_has_every_table_in_both_languages(written):
    names = [*("headline", "medians", "missing", "environment", "regimes", "choices", "counters")]
    found = sorted(path.name for path in written.iterdir())
    assert found == sorted(f"{n}.{e}" for n in names if n != "missing" for e in ("md", "tex"))
    medians = (written / "medians.md").read_text()
    latex = (written / "medians.tex").read_text()
    assert medians.count("\n| 1,000 |") == 6
    parts = latex.count(r"\label{tab:medians-")
    assert latex.count(r"{\itshape N 1,000, K 5, dim 2}") == parts
    assert latex.count("\ncpu\\_openmp &") == 2 * parts


def test_out_is_of_one_run(good, tmp_path, capsys, make_run):
    other = make_run(n=(1000,), k=(5,))
    assert main(["tables", str(good), str(other), "--out", str(tmp_path / "out")]) == 2
    message = "--out takes one run, and these are 2: each gets its own tables/\n"
    assert capsys.readouterr().err == message


@NEEDS_LATEX
def test_latex_sets_every_table(good, written, tmp_path, capsys):
    capsys.readouterr()
    for command in (
        ["table", "luigi", good],
        ["compare", good, good, "--all"],
        ["regimes", good, "--summary"],
        ["profiler", good],
    ):
        assert main([*map(str, command), "--latex"]) in (0, 2)
    (tmp_path / "printed.tex").write_text(capsys.readouterr().out)
    files = [*written.glob("*.tex"), tmp_path / "printed.tex"]
    assert len(files) == 7
    text, _ = compiled(tmp_path, "\n".join(rf"\input{{{file}}}\clearpage" for file in files))
    text = " ".join(text.replace("_", " ").split())
    for words in ("luigi v4 device update", "ms per", "holds if", "best peer, ms"):
        assert words in text


@NEEDS_LATEX
def test_the_tables_of_a_run_fit_the_page_of_an_article(written, tmp_path):
    files = sorted(written.glob("*.tex"))
    compiled(tmp_path, "\n".join(rf"\input{{{file}}}\clearpage" for file in files))
    assert "Overfull" not in (tmp_path / "paper.log").read_text("utf-8", "replace")


@NEEDS_LATEX
@pytest.mark.parametrize("spec", ["counters", "real"])
def test_the_tables_of_a_recorded_run_fit_the_page_of_an_article(spec, tmp_path):
    """These runs have the longest names of columns and the most columns that tell rows apart."""
    files = write_tables(load_run(recorded_run(spec)), tmp_path)
    body = "\n".join(rf"\input{{{file}}}\clearpage" for file in files if file.suffix == ".tex")
    compiled(tmp_path, body)
    assert "Overfull" not in (tmp_path / "paper.log").read_text("utf-8", "replace")


def test_a_column_of_broken_lines_holds_its_longest_word():
    """So that words do not stand in the next column, even where the table is too wide for it."""
    names = [f"{letter}" * 30 for letter in "abcd"]
    widths = Table("t", "s", names, [[f"{name} x" for name in names]])._widths()
    assert [*widths.values()] == [pytest.approx(31 * 4.3, abs=1e-6)] * 4


def test_a_headline_says_which_of_its_baselines_points_a_speedup_is_over():
    def said(run, baseline=None):
        run = over(load_run(run), baseline)
        text = tables.headline(run, all_points([run], run.baseline)).markdown()
        return text.split("; speedup over ")[1].split("\n")[0]

    stream, several = recorded_run("stream"), recorded_run("multi_stream")
    assert said(stream) == (
        "`fast_wgmma` at its fastest: pageable at K = 256, pinned at K = 1,024 and K = 8,192."
    )
    assert said(several) == "`stream_wgmma` at its fastest: pinned."
    assert said(several, "multi_stream") == "`multi_stream` at its fastest: 2 GPUs pinned."
    assert said(recorded_run("multi_gpu"), "fast_wgmma") == "`fast_wgmma`."


def test_medians_are_over_the_fastest_point_of_the_baseline(make_run):
    for threads, words in (
        ((1, 2), "cpu_openmp at its fastest for each problem"),
        ((1,), "cpu_openmp"),
    ):
        run = load_run(make_run(f"{len(threads)}", k=(5,), baseline="cpu_openmp", threads=threads))
        said = tables.medians(all_points([run], run.baseline), run.baseline).said
        assert said == f"Medians with 95% intervals; speedup over {words}."


def test_a_headline_over_the_fastest_cpu_leaves_the_other_tables_alone(make_run):
    run = load_run(make_run())
    points = all_points([run], run.baseline)
    assert set(over_best_cpu(points)["baseline"].dropna()) != {run.baseline}
    before = tables.medians(points, run.baseline).rows
    tables.headline(run, points)
    assert tables.medians(points, run.baseline).rows == before


def test_an_oversubscribed_point_counts_only_where_there_is_no_other(make_run):
    """The headline does not choose it, though it is faster. A time without another is marked."""
    path = make_run(n=(10_000,), k=(5,), threads=(2, 4))
    file = path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        if row["threads"] == 4:
            row.update(oversubscribed=True, iteration_ms=row["iteration_ms"] / 1e3)
    write_lines(file, rows)
    marked, headline, medians = _openmp(path)
    assert (marked, headline[2]) == (False, "2")
    assert "‡" not in headline[3]
    assert [words.endswith("‡") for words in medians] == [False, True]

    write_lines(file, [row for row in rows if row["threads"] != 2])
    marked, headline, medians = _openmp(path)
    assert (marked, headline[2]) == (True, "4")
    assert headline[3].endswith("‡")


def _openmp(path):
    """Whether the headline's note has the mark, its line, and the medians' times."""
    run = load_run(path)
    points = all_points([run], run.baseline)
    made = [tables.headline(run, points), tables.medians(points, run.baseline)]
    headline, *medians = [
        row for table in made for row in table.rows if "cpu_openmp" in map(str, row)
    ]
    at = made[1].header.index("ms per iteration")
    return "‡ oversubscribed: 1 point" in text(made[0].said), headline, [row[at] for row in medians]
