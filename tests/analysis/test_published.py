import ast
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from analysis.__main__ import main
from analysis.measures.claims import read_claims
from analysis.measures.expressions import NAMES
from analysis.measures.lookup import Place, Rows
from analysis.measures.published import COLUMNS, compared, expression, place, read_numbers, studies
from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.model.words import AXES

BUILD = Path(os.environ.get("LLOYDBENCH_BUILD", Path(__file__).parents[2] / "build"))
ALL = ["biason_romania", "flores_alves", "goldsborough", "luigi", "wang"]


def number(study, **wanted):
    found = [
        row
        for row in read_numbers(study)
        if all(row[column] == str(value) for column, value in wanted.items())
    ]
    assert len(found) == 1, found
    return float(found[0]["value"])


def test_the_five_studies_are_there_with_every_column():
    assert studies() == ALL
    for study in ALL:
        rows = read_numbers(study)
        assert [column for column in rows[0] if column not in AXES] == COLUMNS
        for row in rows:
            assert row["place"], row
            assert row["quantity"], row
            assert re.fullmatch(r"\d+(\.\d+)?", row["value"]), row
            # a number that a run answers has a version and a unit of its own
            assert not row["here"] or row["version"], row


# how many numbers each table of each study has, counted on paper
TABLES = {
    "biason_romania": {
        **{"I": 3, "II": 24, "III": 21, "IV": 21, "V": 54, "VI": 42, "VII": 108, "VIII": 42}
    },
    "flores_alves": {"results": 4 * 2 + 3 * 4 * 4},
    "goldsborough": {"6": 16},
    "luigi": {"nvprof V1": 1 + 4 * 6 + 12 * 6, "nvprof V2": 1 + 5 * 6 + 13 * 6},
    "wang": {"figure 2": 1},
}


@pytest.mark.parametrize("study", ALL)
def test_no_number_of_a_table_is_missing(study):
    rows = read_numbers(study)
    counted = {t: sum(r["table"] == t for r in rows) for t in {r["table"] for r in rows} - {""}}
    assert counted == TABLES[study]


def test_spot_checks_against_the_studies():
    assert number("luigi", table="nvprof V2", item="reductionKernel", quantity="total") == 32.830
    assert number("goldsborough", item="Our CUDA (3)", n=100000, table=6) == 0.0171
    flores = {"version": "flores_sums", "n": 10**8, "k": 64}
    assert number("flores_alves", quantity="execution time", **flores) == 3.63
    biason = {"table": "V", "processes": 4, "threads": 32, "dim": 100, "n": 100000}
    assert number("biason_romania", **biason) == 5.24488
    assert number("wang", version="wang_shared") == 5500


def test_biasons_speedups_and_efficiencies_follow_from_its_times():
    # a slip of a row or column in copying would show: the tables are three views of one thing
    rows = read_numbers("biason_romania")
    key = ("version", "n", "dim", "threads", "processes", "device")
    serial = {r["item"][-4:]: float(r["value"]) for r in rows if r["table"] == "I"}
    times = {
        tuple(r[c] for c in key): float(r["value"]) for r in rows if r["quantity"] == "run time"
    }
    checked = 0
    for row in rows:
        time = times.get(tuple(row[c] for c in key))
        if row["table"] not in ("II", "VI", "VII", "VIII") or row["quantity"] == "run time":
            continue
        if "the times of Table I give" in row["note"]:
            continue  # the study's own slip, told in the note
        speedup = serial[row["item"][-4:]] / time
        workers = int(row["threads"] or 1) * int(row["processes"] or 1)
        expected = speedup / workers if row["quantity"] == "efficiency" else speedup
        assert float(row["value"]) == pytest.approx(expected, rel=0.03, abs=0.006), row
        checked += 1
    assert checked == 9 + 42 + 108 + 42


def calls(text):
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]


def test_every_expression_calls_what_there_is_and_nothing_else_is_there():
    claims = read_claims()
    assert {claim.study for claim in claims} == set(ALL)
    texts = [text for claim in claims for text in (claim.value, *claim.because, claim.best_cpu)]
    texts = [text for text in texts if text]
    texts += [text for study in ALL for row in read_numbers(study) if (text := expression(row))]
    called = set()
    for text in texts:
        assert calls(text)
        for call in calls(text):
            called.add(call.func.id)
            names = {keyword.arg for keyword in call.keywords}
            assert names <= {*Place._fields, *AXES, "column", "phase"}
    assert called == {*NAMES}


def test_every_version_of_a_study_is_known():
    program = BUILD / "run_experiment"
    if not program.exists():
        pytest.skip(f"{program} is not built, and only it knows its versions")
    command = [program, "--list-versions", "--json"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout
    versions = {version["name"] for version in json.loads(listed)}
    named = {row["version"] for study in ALL for row in read_numbers(study)} - {""}
    named |= set(
        re.findall(
            r"'((?:cpu|python|luigi|wang|flores|biason|goldsborough)_\w+)'",
            " ".join(claim.value for claim in read_claims()),
        )
    )
    assert named <= versions


def test_a_number_is_answered_by_the_run_that_has_its_row(make_run):
    other = Rows(load_run(make_run("a", name="a", n=(10_000,), k=(5,))))
    run = Rows(load_run(make_run("b", name="b", n=(10_000_000,), k=(5, 100))))
    numbers = compared("luigi", [other, run])
    (k5,) = [n for n in numbers if n.row["quantity"].startswith("speedup") and n.row["k"] == "5"]
    assert k5.run == "b on NVIDIA H200"
    points = run.points.set_index("point")
    of = points[points["version"].eq("luigi_v1_fused") & points["k"].eq(5)]
    assert k5.quantity_here.value == pytest.approx(of["speedup"].max(), rel=1e-12)
    (k1000,) = [
        n
        for n in numbers
        if n.row["version"] == "luigi_v1_fused"
        and n.row["k"] == "1000"
        and n.row["here"] == "speedup"
    ]
    assert k1000.quantity_here is None
    assert k1000.why.endswith("no row")


def test_a_whole_solve_of_another_length_is_no_answer():
    row = read_numbers("goldsborough")[0]
    assert place(row).iterations == 300
    ratio = next(r for r in read_numbers("goldsborough") if r["here"].startswith("over:"))
    assert place(ratio).iterations is None


def test_the_table_command_prints_both_sides_and_the_claims(make_run, capsys):
    path = make_run(n=(10_000_000,), k=(5,))
    assert main(["table", "luigi", str(path)]) == 0
    out = capsys.readouterr().out
    assert "## nvprof V1 (section Profiling with nvprof)" in out
    line = next(
        r for r in out.splitlines() if "speedup over sequential, about" in r and "| 5 |" in r
    )
    assert re.search(
        r"\| 4× \| \d+× \[\d+, \d+\] \| luigi_v1_fused in sweep on NVIDIA H200 \|", line
    )
    assert "| holds |" in out
    assert "cannot be judged" in out


def test_the_table_command_without_a_run(capsys):
    assert main(["table", "wang"]) == 0
    assert "5500×" in capsys.readouterr().out


def test_an_unknown_study_is_named(capsys):
    assert main(["table", "luigy"]) == 2
    assert capsys.readouterr().err == "unknown study 'luigy'; did you mean 'luigi'?\n"
    with pytest.raises(RunError, match="there are biason_romania, flores_alves"):
        read_numbers("zzz")
