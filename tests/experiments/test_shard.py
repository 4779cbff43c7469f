"""--shard: the parts of a sweep."""

import json

import pytest
import yaml
from run_program import ROOT, by_point, rows, run

SWEEPS = sorted(path.stem for path in (ROOT / "experiments" / "sweeps").glob("*.yaml"))


def plan(*arguments):
    result = run(*arguments, "--dry-run", "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def problem(point, weak):
    axes = ("k", "dim", "batch", "data_name", "init", "init_seed", "data_seed")
    return tuple(point[axis] for axis in (axes if weak else ("n", *axes)))


def is_weak_scaling(sweep):
    text = (ROOT / "experiments" / "sweeps" / f"{sweep}.yaml").read_text(encoding="utf-8")
    zips = yaml.safe_load(text).get("zip", [])
    return any("n" in zipped and {"threads", "processes", "gpus"} & {*zipped} for zipped in zips)


@pytest.mark.parametrize("sweep", SWEEPS)
def test_the_parts_of_a_shipped_sweep_are_the_sweep(sweep):
    spec = f"sweeps/{sweep}.yaml"
    listed = run(spec, "--dry-run", "--json")
    if "was not found" in listed.stderr:
        pytest.skip(listed.stderr.strip())  # its data are not shipped
    whole = json.loads(listed.stdout)
    weak = is_weak_scaling(sweep)
    problems = len({problem(point, weak) for point in whole})
    count = min(2, problems)  # shipped_specs_test.cpp divides by more
    parts = [plan(spec, "--shard", f"{i}/{count}") for i in range(1, count + 1)]
    assert all(parts), "an empty part"
    places = {point["point"]: i for i, part in enumerate(parts) for point in part}
    assert sum(map(len, parts)) == len(places) == len(whole)
    assert set(places) == {point["point"] for point in whole}
    for part in parts:  # in the order of the sweep
        mine = {point["point"] for point in part}
        assert part == [point for point in whole if point["point"] in mine]
    together = {(problem(point, weak), places[point["point"]]) for point in whole}
    assert len(together) == problems, "a problem is in two parts"


def test_parts_run_and_say_which_they_are(spec, tmp_path):
    sweep = spec(versions="cpu_sequential, cpu_openmp", n="100, 200, 300")
    whole = {point["point"] for point in plan(sweep)}
    found = set()
    for index in (1, 2):
        out = tmp_path / f"part-{index}"
        result = run(sweep, "--shard", f"{index}/2", "--out", out)
        assert result.returncode == 0, result.stderr
        told = json.loads((out / "plan.json").read_text())
        assert told["shard"] == f"{index}/2"
        assert {point["point"] for point in told["points"]} == set(by_point(out))
        assert {row["shard"] for row in rows(out)} == {f"{index}/2"}
        assert {row["node"] for row in rows(out)} == {rows(out)[0]["host"]}
        assert not found & set(by_point(out))
        found |= set(by_point(out))
    assert found == whole
    resolved = [(tmp_path / f"part-{i}" / "spec.resolved.json").read_text() for i in (1, 2)]
    assert resolved[0] == resolved[1]
    assert set(json.loads(resolved[0])["points"]) == whole


def test_without_a_shard_there_is_neither_node_nor_shard(spec, tmp_path):
    out = tmp_path / "run"
    assert run(spec(), "--out", out).returncode == 0
    assert {(row["node"], row["shard"]) for row in rows(out)} == {(None, None)}
    assert "shard" not in json.loads((out / "plan.json").read_text())


def test_one_command_starts_a_part_and_goes_on_with_it(spec, tmp_path):
    """So a scheduler can run it again and again."""
    sweep, out = spec(n="100, 200"), tmp_path / "part"
    command = (sweep, "--shard", "2/2", "--resume", out)
    assert run(*command).returncode == 0
    before = rows(out)
    assert run(*command).returncode == 0
    assert rows(out) == before
    assert run("--resume", out).returncode == 0  # the directory knows its part
    assert rows(out) == before
    last = (out / "measurements.jsonl").read_text().splitlines()[:-1]
    (out / "measurements.jsonl").write_text("\n".join(last) + "\n")
    (out / "passes.jsonl").write_text("")
    assert run(*command).returncode == 0
    assert [row["repetition"] for row in rows(out)] == [row["repetition"] for row in before]
    other = run(sweep, "--shard", "1/2", "--resume", out)
    assert other.returncode == 2
    assert "cannot resume: it has part 2/2, not part 1/2" in other.stderr


def test_a_whole_run_is_not_resumed_as_a_part(spec, tmp_path):
    out = tmp_path / "run"
    assert run(spec(), "--out", out).returncode == 0
    refused = run(spec(), "--shard", "1/2", "--resume", out)
    assert refused.returncode == 2
    assert "it has a whole sweep, not part 1/2" in refused.stderr


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "1/0", "a/2", "-1/2", "1/2/3", "1/1e99"])
def test_what_is_no_part_is_refused(spec, shard):
    refused = run(spec(), f"--shard={shard}")
    assert refused.returncode == 2
    assert "--shard: " in refused.stderr


def test_a_problem_may_have_several_parts_if_there_are_more_parts_than_problems(spec, tmp_path):
    sweep = spec(versions="cpu_sequential, cpu_openmp", n="100, 200")
    whole = {point["point"] for point in plan(sweep)}
    parts = []
    for index in range(1, 5):
        parts.append({point["point"] for point in plan(sweep, "--shard", f"{index}/4")})
        assert run(sweep, "--shard", f"{index}/4", "--out", tmp_path / f"{index}").returncode == 0
        assert set(by_point(tmp_path / f"{index}")) == parts[-1]
    assert [len(part) for part in parts] == [1] * 4
    assert set.union(*parts) == whole
    assert run("--merge", tmp_path, "--out", tmp_path / "all").returncode == 0
    assert set(by_point(tmp_path / "all")) == whole


def test_more_parts_than_points_are_refused(spec):
    refused = run(spec(n="100, 200, 300"), "--dry-run", "--shard", "1/4")
    assert refused.returncode == 2
    assert "--shard: 4 parts, but the sweep has 3 points\n" in refused.stderr


def test_the_variable_names_the_node(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "slurm7")
    assert run(spec(), "--out", tmp_path / "a").returncode == 0
    assert {row["node"] for row in rows(tmp_path / "a")} == {"slurm7"}
    monkeypatch.setenv("LLOYDBENCH_NODE", "rack3")
    assert run(spec(), "--out", tmp_path / "b").returncode == 0
    assert {row["node"] for row in rows(tmp_path / "b")} == {"rack3"}


def test_the_plan_of_a_part_says_how_much_it_is(spec):
    shown = run(spec(n="100, 200, 300"), "--dry-run", "--shard", "1/3").stdout
    assert "1 point of 3 in part 1/3, 1 runnable here" in shown
