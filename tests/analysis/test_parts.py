"""The parts of a sweep (run_experiment --shard), joined into one run."""

import json

import numpy as np
import pandas as pd
import pytest
from made_runs import write_lines

from analysis.__main__ import main
from analysis.figures.explained import timeline
from analysis.measures.lookup import Rows
from analysis.measures.points import all_points
from analysis.model.answers import answers
from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.model.parts import join_parts
from analysis.pages import profiler
from analysis.pages.facts import facts, rerun_command
from analysis.pages.tables import every_point_cells


@pytest.fixture
def make_parts(make_run):
    """Two parts of a sweep over two sizes, on the nodes n1 and n2."""

    def make(folder="sweep", gpus=("A100", "A100"), nodes=("n1", "n2")):
        sizes = (10_000, 1_000_000)
        parts = []
        for index, (n, gpu, node) in enumerate(zip(sizes, gpus, nodes, strict=True), 1):
            path = make_run(f"{folder}/part-{index}", n=(n,), k=(5,), gpu=gpu)
            file = path / "measurements.jsonl"
            rows = [json.loads(line) for line in file.read_text().splitlines()]
            told = [{**row, "schema": 3, "node": node, "shard": f"{index}/2"} for row in rows]
            file.write_text("".join(json.dumps(row) + "\n" for row in told))
            plan = json.loads((path / "plan.json").read_text())
            plan = plan if isinstance(plan, dict) else {"points": plan}
            plan |= {"shard": f"{index}/2", "fingerprints": {"binary": "ab"}}
            (path / "plan.json").write_text(json.dumps(plan))
            environment = json.loads((path / "environment.json").read_text())
            environment |= {"node": node, "gpus": [{"name": gpu, "driver": "1"}]}
            (path / "environment.json").write_text(json.dumps(environment))
            parts.append(path)
        return parts

    return make


def joined(parts):
    return join_parts([load_run(path) for path in parts])


def test_parts_are_one_run(make_parts):
    first, second = make_parts()
    (run,) = joined([second, first])
    assert set(run.measurements["n"]) == {10_000, 1_000_000}
    assert run.path == first.parent
    assert run.warnings == []
    points = all_points([run], run.baseline)
    assert points.loc[points["status"].eq("ok"), "speedup"].notna().all()
    assert set(points["machine"]) == {"A100"}
    assert set(points["node"]) == {"n1", "n2"}


def test_a_timeline_of_parts_is_that_of_the_sweep(make_parts, capsys):
    parts = make_parts()
    for path in parts:
        (run,) = joined([path])
        traced = {"point": run.plan["point"].iloc[0], "part": "solve"}
        iterations = [
            {**traced, "kind": "iteration", "name": "iteration", "duration_us": 10}
            | {"iteration": iteration, "start_us": 10 * iteration}
            for iteration in range(3)
        ]
        kernel = {**traced, "kind": "kernel", "name": "assign", "start_us": 10, "duration_us": 6}
        write_lines(path / "timeline.jsonl", [*iterations, kernel])
    (run,) = joined(reversed(parts))
    drawing = timeline(run)
    titles = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    assert len(titles) == 2
    assert "n:10000," in titles[0]
    assert "n:1000000," in titles[1]
    assert profiler.summary(run).count("### ") == 2
    assert main(["profiler", str(parts[0].parent)]) == 0
    assert capsys.readouterr().out.replace("## ", "### ") == profiler.summary(run)
    for path in parts:
        measured = Rows(run).activities(load_run(path).plan.iloc[0])
        assert measured["duration_us"].tolist() == [6]
    (parts[0] / "timeline.jsonl").unlink()
    assert len(timeline(run).figure.axes) == 1


def test_answers_of_parts_are_those_of_the_sweep(make_parts):
    parts = make_parts()
    points = [load_run(path).plan["point"].iloc[0] for path in parts]
    for label, (path, point) in enumerate(zip(parts, points, strict=True)):
        n = int(load_run(path).plan["n"].iloc[0])
        (path / "answers").mkdir()
        name = point.replace("/", ",").replace(":", "=")
        np.save(path / "answers" / f"{name},labels.npy", np.full(n, label, np.uint8))
    (run,) = joined(parts)
    kept = answers(run)
    assert sorted(kept) == sorted(points)
    assert [set(kept[point].labels) for point in points] == [{0}, {1}]
    (parts[1] / "answers").rename(parts[1] / "moved")
    assert list(answers(run)) == points[:1]
    (parts[1] / "answers").symlink_to("moved")
    with pytest.raises(RunError, match="part-2/answers: is a link"):
        answers(run)


def test_a_missing_part_is_named(make_parts):
    first, _ = make_parts()
    (run,) = joined([first])
    assert any("parts of its sweep are missing: 2/2" in warning for warning in run.warnings)


def test_a_part_that_is_there_twice_is_refused(make_parts):
    first, _ = make_parts()
    with pytest.raises(RunError, match="are both part 1/2 of one sweep"):
        joined([first, first])


def test_two_sweeps_of_one_spec_stay_apart(make_parts):
    runs = joined([*make_parts("a"), *make_parts("b")])
    assert [run.path.name for run in runs] == ["a", "b"]


def test_parts_of_two_programs_are_two_runs(make_parts):
    first, second = make_parts()
    plan = json.loads((second / "plan.json").read_text())
    plan["fingerprints"]["binary"] = "cd"
    (second / "plan.json").write_text(json.dumps(plan))
    runs = joined([first, second])
    assert len(runs) == 2
    assert all("are missing" in run.warnings[-1] for run in runs)


def test_each_kind_of_machine_has_its_own_lines_and_ratios(make_parts):
    (run,) = joined(make_parts(gpus=("A100", "H100")))
    points = all_points([run], run.baseline)
    ok = points[points["status"].eq("ok")]
    assert set(ok["machine"]) == {"A100", "H100"}
    # the CPU's points belong to the machine of their node, so that every speedup is formed
    assert ok["speedup"].notna().all()
    assert ok.groupby("n")["machine"].nunique().eq(1).all()


def test_a_part_that_ran_elsewhere_than_its_baseline_is_named(make_parts):
    first, second = make_parts()
    file = first / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        if not row["version"].startswith("cpu_"):
            row["node"] = "n7"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = joined([first, second])
    points = all_points([run], run.baseline)
    moved = points[points["node"].eq("n7") & points["status"].eq("ok")]
    assert len(moved) > 0
    assert moved["speedup"].isna().all()
    assert set(moved["reason"]) == {"cpu_sequential ran on n1, this point on n7"}
    assert points.loc[points["node"].eq("n2"), "speedup"].notna().all()


def test_figures_of_a_folder_of_parts_are_those_of_the_sweep(make_parts, tmp_path):
    first, _ = make_parts()
    assert main(["figures", str(first.parent), "--only", "speedup"]) == 0
    rows = pd.read_csv(first.parent / "figures" / "speedup.csv")
    assert set(rows["n"]) == {10_000, 1_000_000}
    assert set(rows["node"]) == {"n1", "n2"}


def test_figures_of_parts_in_two_folders_go_into_the_current_one(make_parts, tmp_path, monkeypatch):
    first, second = make_parts()
    moved = second.rename(first.parent.parent / "elsewhere")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["figures", str(first), str(moved), "--only", "speedup"]) == 0
    assert main(["tables", str(first), str(moved)]) == 0
    assert (tmp_path / "here" / "figures" / "speedup.csv").exists()
    assert (tmp_path / "here" / "tables" / "medians.md").exists()
    assert not (first.parent.parent / "figures").exists()


def test_the_report_of_parts_names_files_that_are_there(make_parts, tmp_path):
    parts = make_parts()
    other = make_parts("sweep/other")[0]  # a run in the parts' folder that was not asked for
    (run,) = joined(parts)
    assert rerun_command(run) == f"run_experiment {parts[0]}/spec.yaml"
    assert main(["report", *map(str, parts), "-o", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "index.html").read_text()
    assert f"python -m analysis report {parts[0]} {parts[1]} -o" in page
    assert str(other) not in page


def test_an_artifact_of_parts_asks_to_merge_them(make_parts, tmp_path, capsys):
    first, second = make_parts()
    assert main(["artifact", str(first), str(second), "--out", str(tmp_path / "packed")]) == 2
    said = f"merge them first: run_experiment --merge {first} {second} --out DIR"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "packed").exists()


def with_cpus(parts, *models):
    """Gives each part's environment a CPU of two cores."""
    for path, model in zip(parts, models, strict=True):
        file = path / "environment.json"
        told = json.loads(file.read_text()) | {"cpu": {"model": model, "cores": 2}}
        file.write_text(json.dumps(told))
    return parts


def test_a_run_of_parts_names_each_node_and_its_cpu(make_parts):
    (run,) = joined(with_cpus(make_parts(), "EPYC", "Xeon"))
    assert run.nodes == {"n1": "EPYC (2 cores)", "n2": "Xeon (2 cores)"}
    assert run.cpu == "EPYC (2 cores) and Xeon (2 cores)"
    assert dict(facts(run))["nodes"] == "n1: EPYC (2 cores), n2: Xeon (2 cores)"
    header, _ = every_point_cells(all_points([run], run.baseline))
    assert "node" in header
    (same,) = joined(with_cpus(make_parts("same"), "EPYC", "EPYC"))
    assert same.cpu == "EPYC (2 cores)"


def test_parts_are_compared_on_the_cpu_of_each_point(make_parts, capsys):
    old = with_cpus(make_parts("old"), "EPYC", "Xeon")
    alike = with_cpus(make_parts("alike"), "EPYC", "Xeon")
    swapped = with_cpus(make_parts("swapped"), "Xeon", "EPYC")
    folders = [str(parts[0].parent) for parts in (old, alike, swapped)]
    assert main(["compare", folders[0], folders[1]]) in (0, 2)
    assert "no difference found" in capsys.readouterr().out
    assert main(["compare", folders[0], folders[2]]) == 2
    assert "measured on the CPU at " in capsys.readouterr().err
    assert main(["compare", folders[0], folders[2], "--across-machines"]) in (0, 2)
