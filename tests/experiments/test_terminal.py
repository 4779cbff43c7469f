"""What run_experiment prints on a terminal: its width, its colours and its live line."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from pseudo_terminal import PseudoTerminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("LLOYDBENCH_BUILD", ROOT / "build")).resolve()
PROGRAM = BUILD / "run_experiment"
FAULTY = BUILD / "tests" / "run_experiment_faulty"

SPEC = """
name: small
versions: [{versions}]
axes: {{n: [100, 200], k: [3], dim: [2], threads: [1]}}
data: {{generator: uniform, seed: 42}}
solve: {{iterations: 5}}
measure: {{repetitions: 6, max_seconds: 0.1, max_noise: 0.9}}
"""
COLOUR = "\033[3"
CLEAR = "\r\033[K"


@pytest.fixture
def spec(tmp_path):
    def write(versions="cpu_sequential, cpu_openmp"):
        (tmp_path / "small.yaml").write_text(SPEC.format(versions=versions))
        return "small.yaml"

    return write


def on_terminal(*arguments, program=PROGRAM, columns=80, cwd=None, status=0, **variables):
    terminal = PseudoTerminal([program, *arguments], columns=columns, cwd=cwd, **variables)
    assert terminal.status() == status, terminal.text
    return terminal.text


def lines_of(text):
    """The lines as they stand on the screen in the end, without colours."""
    lines = (line.split(CLEAR)[-1] for line in text.split("\n"))
    return [re.sub(r"\033\[[0-9;]*m", "", line) for line in lines]


def live_lines(text):
    return [line for line in re.split(r"\r\033\[K|\n", text) if "problems done" in line]


# The cheapest run.
ONE_POINT = ["small.yaml", "--only", "cpu_sequential", "--filter", "n:100/"]
LISTS = [["--help"], ["plan", "sweeps/quickstart.yaml"], ["list"], ["list", "axes"], ["doctor"]]


@pytest.mark.parametrize("columns", [60, 80, 140])
@pytest.mark.parametrize("arguments", LISTS, ids=" ".join)
def test_nothing_is_wider_than_the_window(arguments, columns):
    lines = lines_of(on_terminal(*arguments, columns=columns))
    assert max(map(len, lines)) <= columns
    assert max(map(len, lines)) > columns / 2


@pytest.mark.parametrize("columns", [60, 140])
def test_a_run_keeps_to_the_window_and_says_what_is_constant_once(spec, tmp_path, columns):
    spec("cpu_sequential, cpu_openmp, luigi_v1_fused")
    text = on_terminal("small.yaml", "--device", "99", columns=columns, cwd=tmp_path)
    lines = lines_of(text)
    assert max(map(len, lines)) <= columns
    assert all(len(line) < columns for line in live_lines(text))
    # Once above the progress and once above the table.
    shared = [i for i, line in enumerate(lines) if line.startswith("all points: k:3 dim:2")]
    assert len(shared) == 2
    after = "\n".join(lines[shared[0] + 2 :])
    assert after.count("precision:fp32") == 1
    assert re.search(r"^\[\d/6\] ok  cpu_openmp n:200: ", after, re.MULTILINE)
    assert re.search(r"^unsupported  luigi_v1_fused n:100, ", after, re.MULTILINE)
    assert "4 ok, 2 unsupported" in lines


def test_columns_is_heeded_before_the_window():
    lines = lines_of(on_terminal("list", columns=140, COLUMNS="50"))
    assert 40 < max(map(len, lines)) <= 50
    lines = lines_of(on_terminal("list", columns=70, COLUMNS="wide"))
    assert 50 < max(map(len, lines)) <= 70


def test_a_pipe_has_no_limit_no_colour_and_no_live_line(spec, tmp_path):
    spec()
    environment = {**os.environ, "COLUMNS": "40", "TERM": "xterm"}
    for arguments in (ONE_POINT, ["list"], ["plan", "small.yaml"]):
        result = subprocess.run(
            [PROGRAM, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "\033" not in result.stdout + result.stderr
        assert "\r" not in result.stderr
        assert max(map(len, result.stdout.splitlines())) > 40
    assert result.stdout.splitlines()[1].split()[0] == (
        "cpu_sequential/n:100/k:3/dim:2/precision:fp32"
    )


@pytest.mark.parametrize(
    ("variables", "coloured", "live"),
    [
        ({}, True, True),
        ({"NO_COLOR": ""}, True, True),
        ({"NO_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colours_and_the_live_line_are_for_terminals_that_want_them(
    spec, tmp_path, variables, coloured, live
):
    spec()
    text = on_terminal(*ONE_POINT, cwd=tmp_path, **variables)
    assert (COLOUR in text) == coloured
    assert bool(live_lines(text)) == live
    if not live:
        assert "\033" not in text
    assert (COLOUR in on_terminal("doctor", **variables)) == coloured
    assert (COLOUR in on_terminal("plan", "small.yaml", cwd=tmp_path, **variables)) == coloured


def test_statuses_have_their_colours(spec, tmp_path):
    spec("cpu_sequential, faulty_throws")
    text = on_terminal("small.yaml", program=FAULTY, cwd=tmp_path, status=1)
    assert "] \033[32mok\033[0m  cpu_sequential" in text
    assert "] \033[31mfailed\033[0m  faulty_throws" in text
    assert re.search(r"2 \033\[31mfailed\033\[0m, 2 \033\[32mok\033\[0m\n", text)


def test_the_live_line_counts_problems_and_is_gone_in_the_end(spec, tmp_path):
    spec()
    text = on_terminal("small.yaml", columns=140, cwd=tmp_path)
    live = live_lines(text)
    assert len(live) == 4
    assert re.fullmatch(r"\[1/4\] 0 of 2 problems done: cpu_\w+ n:[12]00", live[0])
    for line in live[1:]:
        assert re.match(r"\[\d/4\] about \d+ s left, [012] of 2 problems done: cpu", line)
    assert "1 of 2 problems done" in live[-1]
    assert "problems" not in "\n".join(lines_of(text))
    assert not live_lines(on_terminal(*ONE_POINT, "--no-progress", cwd=tmp_path))
    quiet = on_terminal(*ONE_POINT, "--quiet", cwd=tmp_path)
    assert re.fullmatch(r"results: results/small/\S+\n", quiet)


def test_json_is_the_same_on_a_terminal(spec, tmp_path):
    spec()
    text = on_terminal("plan", "small.yaml", "--json", columns=40, cwd=tmp_path)
    assert len(json.loads(text)) == 4


def test_the_plan_of_a_finished_run_has_no_table(spec, tmp_path):
    spec()
    on_terminal(*ONE_POINT, "--out", "out", cwd=tmp_path)
    planned = on_terminal("plan", "--resume", "out", cwd=tmp_path)
    assert lines_of(planned)[0].rstrip() == "0 left of 1 point, 0 runnable here"
