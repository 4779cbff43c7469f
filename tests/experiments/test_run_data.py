"""Runs on data files."""

import json

import numpy as np
from run_program import rows, run

from analysis.model.load import load_run
from analysis.pages.converged import convergence


def test_rows_and_summary_say_what_part_of_a_file_is_used(tmp_path):
    (tmp_path / "points.csv").write_text("".join(f"{i},{i * i % 7},9\n" for i in range(50)))
    path = tmp_path / "file.yaml"
    path.write_text(
        "name: file\nversions: [cpu_sequential]\naxes: {n: [20, 50], k: [3], dim: [2, 3]}\n"
        "data: {file: points.csv}\nmeasure: {repetitions: 3, max_seconds: 0.1}\n"
    )
    out = tmp_path / "out"
    result = run(path, "--out", out)
    assert result.returncode == 0, result.stderr
    told = {(row["n"], row["dim"]): row["data_part"] for row in rows(out)}
    assert told == {
        (20, 2): "first 20 of 50 rows, first 2 of 3 columns",
        (20, 3): "first 20 of 50 rows",
        (50, 2): "first 2 of 3 columns",
        (50, 3): None,
    }
    for text in (result.stdout, (out / "summary.md").read_text()):
        assert text.count("first 20 of 50 rows, first 2 of 3 columns") == 1
        assert text.count("first 2 of 3 columns") == 2


def test_the_options_of_a_data_file_reach_the_workers(tmp_path):
    points = [(i / 4, i * i % 7 - 0.5) for i in range(40)]
    (tmp_path / "plain.csv").write_text("".join(f"{x},{y}\n" for x, y in points))
    lines = [f"p{i};{y};{x};a" for i, (x, y) in enumerate(points)]
    comma = "\n".join(["id;y;x;kind", *lines]).replace(".", ",")
    (tmp_path / "comma.csv").write_text(comma + "\n")
    np.savez_compressed(tmp_path / "both.npz", points=np.array(points), labels=np.arange(40))
    sources = {
        "plain.csv": "file: plain.csv",
        "comma.csv(columns=['x', 1])": "file: comma.csv, header: true, delimiter: ';', "
        "decimal: ',', index_column: id, label_column: -1, columns: [x, 1]",
        "both.npz(array=points)": "file: both.npz, array: points",
    }
    inertias = set()
    for i, (name, keys) in enumerate(sources.items()):
        path = tmp_path / "file.yaml"
        path.write_text(
            "name: file\nversions: cpu_sequential\naxes: {k: 3}\n"
            f"data: {{{keys}}}\nmeasure: {{repetitions: 1, max_seconds: 0.1}}\n"
        )
        result = run(path, "--out", tmp_path / str(i))
        assert result.returncode == 0, result.stderr
        read = rows(tmp_path / str(i))
        assert {row["data"] for row in read} == {name}
        inertias |= {row["inertia"] for row in read}
    assert len(inertias) == 1


def test_a_bad_data_file_is_named_with_its_line(tmp_path):
    (tmp_path / "bad.csv").write_text("1,2\n3,x\n")
    path = tmp_path / "bad.yaml"
    path.write_text(
        "name: bad\nversions: [cpu_sequential]\naxes: {k: [1]}\ndata: {file: bad.csv}\n"
    )
    result = run(path, "--out", tmp_path / "out")
    assert result.returncode == 2
    assert "bad.csv:2:3:" in result.stderr
    assert not (tmp_path / "out").exists()


def test_an_axis_of_seeds_draws_what_the_keys_draw(tmp_path):
    head = "versions: cpu_sequential\nmeasure: {repetitions: 1, max_seconds: 0.1}\n"
    (tmp_path / "axes.yaml").write_text(
        f"name: axes\n{head}axes: {{n: 200, k: 9, init: [kmeans++, random_points], "
        "init_seed: [1, 4], data_seed: [42, 5]}\nsolve: {iterations: 3}\n"
    )
    assert run(tmp_path / "axes.yaml", "--out", tmp_path / "axes").returncode == 0
    by_axes = {
        (row["init"], row["init_seed"], row["data_seed"]): (row["inertia"], row["data"])
        for row in rows(tmp_path / "axes")
    }
    assert len(by_axes) == len({inertia for inertia, _ in by_axes.values()}) == 8
    (tmp_path / "keys.yaml").write_text(
        f"name: keys\n{head}axes: {{n: 200, k: 9}}\ndata: {{generator: uniform, seed: 5}}\n"
        "solve: {iterations: 3, init: kmeans++, seed: 4}\n"
    )
    assert run(tmp_path / "keys.yaml", "--out", tmp_path / "keys").returncode == 0
    row = rows(tmp_path / "keys")[0]
    assert row["point"] == "cpu_sequential/n:200/k:9/dim:2/precision:fp32"
    assert by_axes["kmeans++", 4, 5] == (row["inertia"], row["data"])


def test_sources_are_run_beside_each_other_under_their_names(tmp_path):
    points = np.random.default_rng(1).normal(size=(150, 3))
    np.save(tmp_path / "p.npy", points.astype("f4"))
    (tmp_path / "s.yaml").write_text(
        "name: sources\nversions: [cpu_sequential, cpu_openmp]\n"
        "axes: {n: [100, 300], k: 4, threads: 1}\nsolve: {iterations: 3}\n"
        "exclude: [{data: p, n: 300}]\n"
        "data:\n  - {name: flat, generator: uniform, seed: 5}\n"
        "  - {name: clouds, generator: blobs}\n  - {name: p, file: p.npy}\n"
        "measure: {repetitions: 1, max_seconds: 1e-9}\nfigures: [convergence]\n"
    )
    out = tmp_path / "out"
    result = run(tmp_path / "s.yaml", "--out", out)
    assert result.returncode == 0, result.stderr
    read = rows(out)
    assert len(read) == 10
    told = {row["data_name"]: (row["data"], row["data_seed"], row["dim"]) for row in read}
    assert told["flat"] == ("uniform(range=[0,1), seed=5)", 5, 2)
    assert told["clouds"][1:] == (42, 2)
    assert told["p"] == ("p.npy", None, 3)
    assert {row["data_part"] for row in read if row["data_name"] == "p"} == {
        "first 100 of 150 rows"
    }
    # Each is what a spec with this source alone gives.
    for name, source in {"flat": "generator: uniform, seed: 5", "p": "file: p.npy"}.items():
        (tmp_path / "one.yaml").write_text(
            f"name: one\nversions: cpu_sequential\naxes: {{n: 100, k: 4}}\n"
            f"data: {{{source}}}\nsolve: {{iterations: 3}}\n"
            "measure: {repetitions: 1, max_seconds: 1e-9}\n"
        )
        assert run(tmp_path / "one.yaml", "--out", tmp_path / name).returncode == 0
        (alone,) = rows(tmp_path / name)
        same = [row for row in read if row["data_name"] == name and row["n"] == 100]
        assert {row["inertia"] for row in same} == {alone["inertia"]}
        assert alone["data_name"] is None

    # The analysis shows the names, and a changed file stops --resume.
    table = convergence(load_run(out))
    at = table.header.index("data")
    assert {line[at] for line in table.rows} == {"flat", "clouds", "p"}
    np.save(tmp_path / "p.npy", points.astype("f4") + 1)
    result = run("--resume", out)
    assert result.returncode == 2
    assert "the data differ (p.npy has other contents now)" in result.stderr
    result = run(tmp_path / "s.yaml", "--dry-run", "--json", "--set", "data=clouds")
    planned = json.loads(result.stdout)
    assert {point["data_name"] for point in planned} == {"clouds"}
    assert len(planned) == 4


def test_a_plan_says_of_the_data_what_the_rows_say(tmp_path):
    np.savetxt(tmp_path / "p.csv", np.random.default_rng(1).random((50, 2)), delimiter=",")
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: s\nversions: cpu_sequential\naxes: {n: [30, 50], k: 3, dim: 2}\n"
        "data:\n  - {name: file, file: p.csv}\n  - {name: flat, generator: uniform, seed: 7}\n"
        "measure: {repetitions: 1, max_seconds: 0.01}\n"
    )
    planned = json.loads(run(path, "--dry-run", "--json").stdout)
    assert run(path, "--out", tmp_path / "out").returncode == 0
    columns = ("data", "data_name", "data_part", "data_seed")
    told = {point["point"]: [point[column] for column in columns] for point in planned}
    assert told == {
        row["point"]: [row[column] for column in columns] for row in rows(tmp_path / "out")
    }
    assert {(data, part) for data, _, part, _ in told.values()} == {
        ("p.csv", "first 30 of 50 rows"),
        ("p.csv", None),
        ("uniform(range=[0,1), seed=7)", None),
    }


def test_points_that_stay_in_their_file_give_the_same_answers(tmp_path):
    points = np.random.default_rng(3).normal(size=(3000, 8)).astype("f4")
    np.save(tmp_path / "points.npy", points)
    lengths = np.full((len(points), 1), 8, "i4").view("f4")
    np.hstack([lengths, points]).tofile(tmp_path / "points.fvecs")
    np.save(tmp_path / "wide.npy", points.astype("f8"))
    path = tmp_path / "mapped.yaml"
    path.write_text(
        "name: mapped\nversions: cpu_openmp\naxes: {k: 7}\n"
        "data:\n"
        "  - {name: memory, file: points.npy}\n"
        "  - {name: mapped, file: points.npy, mapped: true}\n"
        "  - {name: vectors, file: points.fvecs, mapped: true}\n"
        "measure: {repetitions: 1, max_seconds: 0.1}\n"
    )
    out = tmp_path / "out"
    result = run(path, "--out", out)
    assert result.returncode == 0, result.stderr
    read = rows(out)
    assert {row["data"] for row in read} == {
        "points.npy",
        "points.npy mapped",
        "points.fvecs mapped",
    }
    assert len({row["inertia"] for row in read}) == 1
    path.write_text(path.read_text().replace("points.fvecs", "wide.npy"))
    refused = run(path, "--dry-run")
    assert refused.returncode == 2
    assert "wide.npy: holds '<f8' in C order, and mapped: true needs '<f2'" in refused.stderr
