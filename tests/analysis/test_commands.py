import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from made_runs import realistic_faults, write_lines

from analysis.__main__ import main
from analysis.model.files import RunError
from analysis.pages.findings import finding
from analysis.pages.readme import rewrite
from analysis.pages.table import markdown
from analysis.pages.tables import interval_text

ROOT = Path(__file__).resolve().parents[2]


def test_help_names_every_command():
    shown = subprocess.run(
        [sys.executable, "-m", "analysis", "--help"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert {"figures", "report", "readme-table", "readme"} <= set(shown.stdout.split())


def test_an_interpreter_without_the_packages_is_told_which_has_them():
    """Such as the system's: -S leaves out the packages of .venv."""
    result = subprocess.run(
        [sys.executable, "-S", "-m", "analysis", "--help"],
        cwd=ROOT,
        env={},
        capture_output=True,
        check=False,
        text=True,
    )
    assert result.returncode == 2
    assert re.fullmatch(
        rf"{re.escape(sys.executable)} does not have the package \w+; `make` sets up another: "
        r"\.venv/bin/python -m analysis COMMAND\n",
        result.stderr,
    ), result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figures", "{}/nowhere"], r"^{}/nowhere: no such directory\n$"),
        (["figures", "{}"], r"no run directory here or below it"),
        (["figures", "{}/run", "--only", "spedup"], r"did you mean 'speedup'\?"),
        (["figures", "{}/run", "--only", "zzz"], r"there are speedup, ladder"),
        (["readme", "{}/none.md", "{}/run"], r"^{}/none.md: No such file or directory\n$"),
        (["report", "{}/nowhere", "-o", "{}/out"], r"no such directory"),
        (["readme-table", "{}/two"], r"holds 2 run directories; name one of them"),
    ],
)
def test_unusable_input_is_one_line_and_status_2(make_run, tmp_path, capsys, arguments, message):
    if arguments[1] != "{}":
        make_run(n=(10_000,), k=(5,))
        make_run("two/a", n=(10_000,), k=(5,))
        make_run("two/b", n=(10_000,), k=(5,))
    assert main([a.format(tmp_path) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert re.search(message.replace("{}", re.escape(str(tmp_path))), err)


def test_an_unknown_schema_is_status_2(make_run, capsys):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    file.write_text(file.read_text().replace('"schema": 1', '"schema": 9'))
    assert main(["figures", str(path)]) == 2
    assert "schema 9; this version reads schemas 1, 2, 3" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_status_2(make_run, tmp_path, capsys):
    path = make_run(n=(10_000, 100_000), k=(5,))
    (tmp_path / "taken").write_text("")
    assert main(["figures", str(path), "--out", str(tmp_path / "taken")]) == 2
    assert "taken: " in capsys.readouterr().err


@pytest.mark.parametrize(("option", "kind"), [("--only", "figure"), ("--format", "format")])
def test_an_empty_list_of_names_is_status_2(make_run, capsys, option, kind):
    path = make_run(n=(10_000,), k=(5,))
    for names in ("", " ,"):
        assert main(["figures", str(path), option, names]) == 2
        out, err = capsys.readouterr()
        assert err.startswith(f"{option}: names no {kind}; there are ")
        assert not out


def test_warnings_go_to_standard_error(make_run, capsys):
    path = make_run(n=(10_000, 100_000), k=(5,))
    with (path / "measurements.jsonl").open("a") as file:
        file.write('{"schema": 1, "poi')
    assert main(["figures", str(path), "--only", "speedup"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith(f"warning: {path}/measurements.jsonl:")
    assert "cut off" in err
    assert "warning:" not in out


def test_report_has_environment_figures_medians_and_missing_points(make_run, tmp_path, capsys):
    make_run("runs/k5", name="k5", title="Speedup with K = 5", k=(5,))
    make_run(
        "runs/k1000",
        name="k1000",
        title="Speedup with K = 1000",
        k=(1000,),
        faults=realistic_faults(),
    )
    out = tmp_path / "report"
    assert main(["report", str(tmp_path / "runs"), "-o", str(out)]) == 0
    paths = capsys.readouterr().out.splitlines()
    assert all(Path(path).is_file() for path in paths)
    assert paths[-1] == str(out / "index.html")
    index = (out / "index.html").read_text()
    assert index.count("NVIDIA H200 · AMD EPYC 9654 96-Core Processor (96 cores)") == 2
    k5, k1000 = ((out / name / "index.html").read_text() for name in ("k5", "k1000"))
    for name, page in (("k5", k5), ("k1000", k1000)):
        links = set(re.findall(r'download="[^"]*" href="([^"]+)"', page))
        assert {"speedup.csv", "tpb.csv"} <= links
        assert links == {path.name for path in (out / name).glob("*.csv")}
    assert "Medians: 80 of 80 points" in k5
    assert "Medians: 61 of 80 points" in k1000
    assert "Without result: 19 points" in k1000
    table = k1000.split('<section id="missing"')[1]
    assert table.count("needs 96,000 B of shared memory per block") == 1
    assert "<td>16 points of luigi_v3_shared_centroids</td>" in table
    assert len(re.findall(r'<td class="number">10[⁴⁵⁶⁷]</td><td class="number">5</td>', k5)) == 80


def test_report_of_a_run_without_any_row(make_run, tmp_path):
    path = make_run(n=(10_000,), k=(5,))
    (path / "measurements.jsonl").unlink()
    assert main(["report", str(path), "-o", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "sweep" / "index.html").read_text()
    assert "<li>speedup: no point has a result</li>" in text
    assert "Without result: 20 points" in text


def test_readme_table_has_each_version_at_its_best(make_run, capsys):
    path = make_run(k=(5, 1000), faults=realistic_faults())
    assert main(["readme-table", str(path)]) == 0
    text = capsys.readouterr().out
    head, table = text.split("\n\n")
    assert head.startswith("N = 10⁷; dim = 2; NVIDIA H200")
    assert "median of 9 samples [95% interval within one launch]; speedup over" in head
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert rows[0] == [
        *("K", "version", "threads per block", "threads", "ms per iteration", "speedup"),
        "over the fastest CPU version",
    ]
    assert len(rows) == 2 + 2 * 6
    by_hand = next(r for r in rows if r[:2] == ["5", "`luigi_v4_device_update`"])
    # the model: 10⁷ × 5 × 2 × 0.0008 ns + 22 µs = 0.102 ms, and noise that only adds
    assert by_hand[2] == "256"
    assert re.fullmatch(r"0\.10\d \[0\.10\d, 0\.10\d\]", by_hand[4])
    assert re.fullmatch(r"5\d\d× \[5\d\d, 6?\d\d\d?\]", by_hand[5])
    openmp = next(r for r in rows if r[:2] == ["5", "`cpu_openmp`"])
    assert openmp[6] == "1.00× over `cpu_openmp`"
    over_both = [float(by_hand[i].split("×")[0]) for i in (5, 6)]
    times = float(openmp[5].split("×")[0])
    assert over_both[0] / over_both[1] == pytest.approx(times, rel=0.02)
    alone = next(r for r in rows if r[:2] == ["1,000", "`cpu_sequential`"])
    assert alone[6] == "1.00× over `cpu_sequential`"  # cpu_openmp was too slow there
    refused = next(r for r in rows if r[:2] == ["1,000", "`luigi_v3_shared_centroids`"])
    assert refused[2] == ""
    assert refused[4].startswith("unsupported: needs 96,000 B")


def test_readme_table_names_one_fastest_cpu_version_once(make_run, capsys):
    assert main(["readme-table", str(make_run(k=(5,)))]) == 0
    head, table = capsys.readouterr().out.split("\n\n")
    assert head.endswith("; the fastest CPU version of the run is `cpu_openmp`.")
    (openmp,) = [line for line in table.splitlines() if line.startswith("| `cpu_openmp`")]
    assert openmp.endswith(" | 1.00× |")
    # the baseline is the fastest, or no CPU version: one column of speedups says it all
    for baseline in ("cpu_openmp", "luigi_v1_fused", None):
        path = make_run(f"over-{baseline}", k=(5,), baseline=baseline)
        assert main(["readme-table", str(path)]) == 0
        assert "the fastest CPU version" not in capsys.readouterr().out


def test_readme_table_says_what_the_fastest_cpu_version_ran(make_run, capsys):
    path = make_run(k=(5,))
    file = path / "measurements.jsonl"
    text = file.read_text().replace("cpu_openmp", "fast_cpu_auto")
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        if row["version"] == "fast_cpu_auto":
            row["chosen"] = "fast_cpu_tree/threads:16"
    write_lines(file, rows)
    (path / "plan.json").unlink()
    assert main(["readme-table", str(path)]) == 0
    head = capsys.readouterr().out.split("\n\n")[0]
    assert "; the fastest CPU version of the run is `fast_cpu_auto`, where it ran " in head
    assert head.endswith("fast_cpu_tree.")


def test_readme_table_has_problems_at_which_the_baseline_failed(make_run, capsys):
    failed = (
        lambda p: p["version"] == "cpu_sequential" and p["k"] >= 1000,
        "failed",
        "ended by signal 11",
    )
    assert main(["readme-table", str(make_run(k=(5, 1000), faults=[failed]))]) == 0
    table = capsys.readouterr().out.split("\n\n")[1]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    of_1000 = {row[1]: row[2:] for row in rows if row[0] == "1,000"}
    assert len(of_1000) == 6
    assert of_1000["`cpu_sequential`"][2:] == ["failed: ended by signal 11", "", ""]
    *_, ms, speedup, over_best = of_1000["`luigi_v4_device_update`"]
    assert re.fullmatch(r"[\d,]+× \[.*\]", over_best)
    assert re.fullmatch(r"16\.\d \[16\.\d, 16\.\d\]", ms)  # at N = 10⁷, the largest
    assert speedup == "–"


def test_readme_table_has_problems_at_which_nothing_ran(make_run, capsys):
    refused = (lambda p: p["k"] >= 1000, "unsupported", "needs another machine")
    assert main(["readme-table", str(make_run(k=(5, 1000), faults=[refused]))]) == 0
    assert capsys.readouterr().out.count("| unsupported: needs another machine |") == 6


def test_readme_rewrites_only_between_its_markers(make_run, tmp_path, capsys):
    path = make_run("gpu/k5", name="k5", k=(5,), n=(10_000, 100_000))
    file = tmp_path / "README.md"
    file.write_text(
        "# a\n\n<!-- table:BEGIN k5 -->\nold\n<!-- table:END k5 -->\n\nb\n"
        "<!-- table:BEGIN gpu/k5 --><!-- table:END gpu/k5 -->\n"
        "<!-- table:BEGIN other -->\nstays\n<!-- table:END other -->\n"
    )
    before = file.read_text()
    assert main(["readme", str(file), str(path), "--check"]) == 1
    assert file.read_text() == before
    assert "out of date" in capsys.readouterr().err

    assert main(["readme", str(file), str(path)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{file}\n"
    assert "table 'other' belongs to none of the given runs and is left as it is" in err
    after = file.read_text()
    main(["readme-table", str(path)])
    table = capsys.readouterr().out
    assert after.count(table) == 2
    assert "old" not in after
    assert after.startswith("# a\n\n<!-- table:BEGIN k5 -->\n\n")
    assert after.endswith("<!-- table:BEGIN other -->\nstays\n<!-- table:END other -->\n")

    assert main(["readme", str(file), str(path), "--check"]) == 0
    assert main(["readme", str(file), str(path)]) == 0
    assert file.read_text() == after


def test_a_table_name_that_two_runs_share_is_refused(make_run, tmp_path, capsys):
    make_run("h200/k5", name="k5", k=(5,), n=(10_000,))
    make_run("l4/k5", name="k5", k=(5,), n=(10_000,))
    file = tmp_path / "README.md"
    file.write_text("<!-- table:BEGIN k5 -->\n<!-- table:END k5 -->\n")
    assert main(["readme", str(file), str(tmp_path / "h200"), str(tmp_path / "l4")]) == 2
    assert "use more of its path" in capsys.readouterr().err
    file.write_text("<!-- table:BEGIN l4/k5 -->\n<!-- table:END l4/k5 -->\n")
    assert main(["readme", str(file), str(tmp_path / "h200"), str(tmp_path / "l4")]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n<!-- table:BEGIN a -->\n", "f.md:2: table 'a' does not end"),
        ("<!-- table:END a -->", "f.md:1: table 'a' ends here but does not begin"),
        (
            "<!-- table:BEGIN a -->\n<!-- table:BEGIN b -->",
            "f.md:2: table 'b' begins before 'a' has ended",
        ),
        ("<!-- table:BEGIN a -->\n<!-- table:END b -->", "f.md:2: table 'b' ends here"),
    ],
)
def test_markers_that_do_not_pair_are_refused_with_their_line(text, message):
    with pytest.raises(RunError) as error:
        rewrite(text, "f.md", lambda *_: "table")
    assert str(error.value).startswith(message)


def test_rewriting_keeps_line_endings():
    text = "x\r\n<!-- table:BEGIN a -->\r\n<!-- table:END a -->\r\ny\r\n"
    new, left = rewrite(text, "f.md", lambda *_: "| a |\n| --- |\n")
    assert left == []
    assert new == (
        "x\r\n<!-- table:BEGIN a -->\r\n\r\n| a |\r\n| --- |\r\n\r\n<!-- table:END a -->\r\ny\r\n"
    )


def test_cells_cannot_break_the_table():
    table = markdown(["a", "b"], [["x|y", "two\nlines"]], {"b"})
    assert table == "| a | b |\n| --- | ---: |\n| x\\|y | two lines |\n"


def test_interval_text():
    assert interval_text(12.345, 12.0, 13.0) == "12.3 [12.0, 13.0]"
    assert interval_text(12.345, float("nan"), float("nan"), "×") == "12.3×"
    assert interval_text(1.0, 1.0, 1.0, "×") == "1.00×"
    assert interval_text(float("nan"), 1.0, 2.0) == "–"


def test_readme_draws_the_figures_between_its_markers(make_run, tmp_path, capsys):
    path = make_run("runs/k5", name="k5", n=(10_000, 100_000), k=(5,))
    file = tmp_path / "README.md"
    begin, end = "<!-- figure:BEGIN k5:noise -->", "<!-- figure:END k5:noise -->"
    file.write_text(f"a\n{begin}\nold\n{end}\nb\n")
    assert main(["readme", str(file), str(tmp_path / "runs"), "--check"]) == 1
    assert not (path / "figures").exists()
    assert main(["readme", str(file), str(tmp_path / "runs")]) == 0
    rows = pd.read_csv(path / "figures" / "noise.csv")
    image = f"![Speedup over K. {finding('noise', rows, '')}](runs/k5/figures/noise.png)"
    assert "half" in image
    assert file.read_text() == f"a\n{begin}\n\n{image}\n\n{end}\nb\n"
    assert (path / "figures" / "noise.png").is_file()
    assert main(["readme", str(file), str(tmp_path / "runs"), "--check"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("k5:histogram", "figure 'k5:histogram' must be RUN:FIGURE, with one of speedup"),
        ("k5:roofline", "roofline of .*: the run has no counters"),
    ],
)
def test_a_figure_that_cannot_be_in_a_readme_is_said(make_run, tmp_path, capsys, name, message):
    make_run("runs/k5", name="k5", n=(10_000,), k=(5,))
    file = tmp_path / "README.md"
    file.write_text(f"<!-- figure:BEGIN {name} --><!-- figure:END {name} -->\n")
    assert main(["readme", str(file), str(tmp_path / "runs")]) == 2
    assert re.search(message, capsys.readouterr().err)
