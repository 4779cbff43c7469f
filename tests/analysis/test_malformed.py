"""No run directory, whatever is in it, makes a command end in a traceback (see malformed.py)."""

import json
import os
import random
import shutil

import pytest
from malformed import SLOW, cases, commands, crash, write_good

from analysis.__main__ import main
from analysis.model.files import RunError
from analysis.model.load import load_run

PARTS, SAMPLE = 4, 200
"""Of some four thousand cases so many are drawn, by a fixed seed, and each meets one command."""


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return write_good(tmp_path_factory.mktemp("malformed") / "good")


@pytest.mark.parametrize("part", range(PARTS))
def test_no_command_ends_in_a_traceback(good, tmp_path, part):
    choice = random.Random(part)
    drawn = choice.sample(list(cases(good)), SAMPLE // PARTS)
    wrong = []
    for name, spoil in drawn:
        run = tmp_path / "run"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(good, run)
        spoil(run)
        quick = [c for c in commands(run, good, tmp_path).items() if c[0] not in SLOW]
        command, arguments = choice.choice(quick)
        if fault := crash(arguments):
            wrong.append(f"{command}: {name}: {fault}")
    assert wrong == []


@pytest.mark.parametrize("command", [*SLOW, "figures in place", "claims", "choices", "profiler"])
def test_the_good_run_is_one(good, tmp_path, command):
    arguments = commands(good, good, tmp_path)[command]
    assert main([str(argument) for argument in arguments]) == 0


FAULTS = [
    ("n", "x", 'n is "x", not a whole number from 1 to 1e+15'),
    ("n", 0, "n is 0, not a whole number from 1 to 1e+15"),
    ("k", None, "lacks k"),
    ("dim", 2.5, "dim is 2.5, not a whole number from 1 to 1e+15"),
    ("version", ["a"], 'version is ["a"], not text'),
    ("status", "fine", 'status is "fine", not one of ok, unsupported, incorrect, imprecise'),
    ("iteration_ms", -1, "iteration_ms is -1, not a number from 0 to 1e+12"),
    ("iteration_ms", float("nan"), "iteration_ms is NaN, not a number from 0 to 1e+12"),
    ("iteration_ms", 1e-300, "iteration_ms is 1e-300, not a number from 0 to 1e+12, 0 or at least"),
    ("iterations", True, "iterations is true, not a whole number"),
    ("verified", 1, "verified is 1, not true or false"),
    ("noise", {"reasons": [1]}, "noise is not an object with a list of texts `reasons`"),
    ("null_reasons", [], "null_reasons is not an object"),
    ("reason", "x" * 10_000, None),
]


@pytest.mark.parametrize(("field", "value", "said"), FAULTS)
def test_a_fault_in_a_row_is_named_with_file_line_field_and_value(make_run, field, value, said):
    path = make_run(n=(10_000,), k=(5,))
    file = path / "measurements.jsonl"
    lines = file.read_text().splitlines()
    lines[4] = json.dumps({**json.loads(lines[4]), field: value})
    file.write_text("\n".join(lines))
    if said is None:
        load_run(path)
        return
    with pytest.raises(RunError) as error:
        load_run(path)
    assert str(error.value).startswith(f"{file}:5: {said}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("plan.json", '{"points": [{"point": 5}]}', "plan.json: points: 0: point is 5, not text"),
        ("plan.json", '{"parents": {"a": 5}}', 'plan.json: parents: "a": 5 is not text'),
        ("plan.json", "[" * 100_000, "plan.json: nested too deeply"),
        ("spec.resolved.json", '{"figures": [5]}', "spec.resolved.json: figures: 0: 5 is not text"),
        ("environment.json", '{"cpu": "x"}', 'environment.json: cpu: "x" is not an object'),
        ("environment.json", "[]", "environment.json: [] is not an object"),
    ],
)
def test_a_fault_in_a_document_is_named_with_its_key(make_run, name, text, said):
    path = make_run(n=(10_000,), k=(5,))
    (path / name).write_text(text)
    with pytest.raises(RunError) as error:
        load_run(path)
    assert said in str(error.value)


def test_the_other_runs_are_drawn_and_the_status_is_2(make_run, tmp_path, capsys):
    good = make_run("good", n=(10_000, 100_000), k=(5,))
    bad = make_run("bad", n=(10_000,), k=(5,))
    file = bad / "measurements.jsonl"
    file.write_text(file.read_text().replace('"n": 10000', '"n": "many"'))
    out = tmp_path / "out"
    assert main(["figures", str(bad), str(good), "--only", "speedup", "--out", str(out)]) == 2
    assert (out / "speedup.svg").is_file()
    err = capsys.readouterr().err
    assert f'not read: {file}:1: n is "many"' in err


NAMES = ["measurements.jsonl", "plan.json", "environment.json", "spec.resolved.json"]
NAMES += ["phases.jsonl", "counters.jsonl"]


@pytest.mark.parametrize("name", NAMES)
def test_links_and_pipes_in_a_run_directory_are_not_followed(make_run, tmp_path, name):
    path = make_run(n=(10_000,), k=(5,), counters=True)
    elsewhere = tmp_path / "elsewhere"
    (path / name).rename(elsewhere)
    (path / name).symlink_to(elsewhere)
    with pytest.raises(RunError, match=f"{name}: is a link, and links in a run directory are not"):
        load_run(path)
    (path / name).unlink()
    os.mkfifo(path / name)
    with pytest.raises(RunError, match=f"{name}: not a regular file"):
        load_run(path)


def test_nothing_is_written_through_a_link(make_run, tmp_path, capsys):
    path = make_run(n=(10_000, 100_000), k=(5,))
    kept, folder = tmp_path / "kept", tmp_path / "folder"
    kept.write_text("mine")
    folder.mkdir()
    (path / "figures").mkdir()
    (path / "figures" / "noise.csv").symlink_to(kept)
    assert main(["figures", str(path), "--only", "noise"]) == 0
    assert kept.read_text() == "mine"
    assert not (path / "figures" / "noise.csv").is_symlink()
    shutil.rmtree(path / "figures")
    (path / "figures").symlink_to(folder)
    assert main(["figures", str(path), "--only", "noise"]) == 2
    assert "is a link, and nothing is written through it" in capsys.readouterr().err
    assert not list(folder.iterdir())


def test_folders_below_are_not_reached_through_links(make_run, tmp_path, capsys):
    make_run("runs/one", n=(10_000,), k=(5,))
    (tmp_path / "runs" / "two").symlink_to(make_run("other", n=(10_000,), k=(5,)))
    assert main(["readme-table", str(tmp_path / "runs")]) == 0
    capsys.readouterr()


def test_of_a_glob_what_is_no_run_is_left_out_with_a_line(make_run, tmp_path, capsys):
    path = make_run("all/run", n=(10_000, 100_000), k=(5,))
    (tmp_path / "all" / "ceilings.txt").write_text("{}")
    (tmp_path / "all" / "empty").mkdir()
    given = sorted(str(entry) for entry in (tmp_path / "all").iterdir())
    out = tmp_path / "out"
    assert main(["figures", *given, "--only", "noise", "--out", str(out)]) == 0
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 2
    assert err[0] == f"left out: {given[0]}: is a file, not a run directory"
    assert err[1].startswith(f"left out: {given[1]}: no run directory here or below it")
    assert (out / "noise.svg").is_file()
    # alone it is an error, and so is a name that is mistyped
    assert main(["figures", given[0]]) == 2
    assert main(["figures", str(path), str(tmp_path / "rnu")]) == 2
