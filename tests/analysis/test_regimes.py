"""The regimes' tables: who is beside whom, and what a run has not."""

import json

import pytest
from made_runs import measurement, write_lines

from analysis.__main__ import main
from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.pages.choices import choices
from analysis.pages.choices import summary as choices_lost
from analysis.pages.jobs import jobs as whole_jobs
from analysis.pages.regimes import every_version, summary

SIZES = {
    "L": (10**7, 100, 2),
    "A1": (10**6, 1000, 128),
    "C": (10**7, 1000, 2),
    "E": (65_536, 16, 32),
}
MS = {  # regime, version, precision: ms
    ("A1", "peer_flash_kmeans", "fp16"): 1.2,
    ("A1", "fast_dense", "fp16"): 0.4,
    ("A1", "fast_cublas", "fp32"): 3.0,  # of another regime, B
    ("C", "peer_flash_kmeans", "tf32"): 8.0,
    ("C", "peer_torch", "fp32"): 12.0,
    ("C", "fast_grid", "fp32"): 0.08,
    ("C", "fast_optin", "fp32"): 3.2,
    ("C", "fast_auto", "fp32"): 0.07,
    ("E", "fast_small", "fp32"): 0.008,
    ("L", "luigi_v4_device_update", "fp32"): 0.5,
}


def row_of(regime, version, precision, **values):
    n, k, dim = SIZES[regime]
    point = {
        "point": f"{version}/n:{n}/k:{k}/dim:{dim}/precision:{precision}",
        **{"version": version, "family": version.split("_")[0], "backend": "cuda"},
        **{"n": n, "k": k, "dim": dim, "precision": precision},
    }
    return measurement(point, **values)


@pytest.fixture
def run_path(tmp_path):
    rows = []
    for (regime, version, precision), ms in MS.items():
        exact = version == "fast_grid"
        for repetition in range(9):
            times = {"iteration_ms": ms * (1 + 0.001 * repetition), "floor_ms": 0.05}
            labels = {"label_mismatches": 0 if exact else 12, "max_regret": 0 if exact else 1e-8}
            labels |= {"chosen": "fast_grid"} if version == "fast_auto" else {}
            rows.append(
                row_of(
                    *(regime, version, precision),
                    **{"repetition": repetition, "repetitions": 9, "regret_bound": 1e-6},
                    **times,
                    **labels,
                )
            )
    wrong = {"status": "incorrect", "reason": "point 3 is labelled 4", "verified": False}
    rows.append(row_of("C", "peer_faiss", "fp32", **wrong, label_mismatches=7, max_regret=1e-3))
    other = {"status": "unsupported", "reason": "computes in tf32, fp16 only, not fp32"}
    rows.append(row_of("C", "peer_flash_kmeans", "fp32", **other))
    path = tmp_path / "fast_regimes"
    path.mkdir()
    write_lines(path / "measurements.jsonl", rows)
    (path / "spec.resolved.json").write_text(json.dumps({"name": "fast_regimes", "title": "Fast"}))
    return path


def cells(text, *beginning):
    (line,) = (
        line for line in text.splitlines() if line.startswith(f"| {' | '.join(beginning)} |")
    )
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_version_stands_beside_the_best_peer(run_path):
    text = every_version(load_run(run_path)).markdown()
    grid = cells(text, "C", "fast_grid", "fp32")
    assert grid[3].startswith("0.0803 [")
    assert grid[4] == "1.61×"
    assert grid[5].startswith("100× [")  # over flash-kmeans in tf32, the best peer, not over torch
    assert grid[6:] == ["0", "0", "1e-06"]
    assert cells(text, "C", "peer_flash_kmeans", "tf32")[5] == "1.00×"
    assert cells(text, "C", "fast_auto (fast_grid)", "fp32")[3].startswith("0.0703 [")
    assert cells(text, "C", "peer_torch", "fp32")[5].startswith("0.667×")
    assert cells(text, "C", "peer_faiss", "fp32")[3:7] == [
        *("incorrect: point 3 is labelled 4", "", "", "7")
    ]
    assert cells(text, "B", "fast_cublas", "fp32")[5] == "–"  # no peer there
    # in a precision that it has no product for a version is no news
    assert "computes in" not in text


def two_tables(text):
    """The regimes, and who is fastest in each."""
    said, problems, results = text.split("\n\n")
    assert "median of an iteration" in said
    return problems, results


def test_the_summary_has_a_line_a_regime_in_each_table(run_path, capsys):
    text = summary(load_run(run_path))
    problems, results = two_tables(text)
    for table in (problems, results):
        lines = table.splitlines()[2:]
        assert [line.split("|")[1].strip() for line in lines] == ["A1", "B", "C", "E", "L"]
        assert len(cells(table, "regime")) <= 7
    assert cells(problems, "A1")[1:] == ["10⁶", "1,000", "128", "fp16, bf16", "0.0500", "≤ 0.50"]
    a1 = cells(results, "A1")
    assert a1[1].startswith("`peer_flash_kmeans` fp16: 1.20 [")
    assert a1[2] == "–"
    assert a1[3].startswith("`fast_dense` fp16: 0.402 [")
    assert a1[4].startswith("3.00× [")
    assert a1[5:] == ["1%", "1%"]
    assert cells(problems, "C")[4:] == ["fp32", "0.0500", "≤ 0.10; brute force ≤ 0.80"]
    c = cells(results, "C")
    assert c[3].startswith("`fast_grid` fp32: ")  # not what chose it
    assert c[5:] == ["1%", "0"]
    assert cells(results, "E")[1] == "–"
    assert cells(problems, "L")[6] == "≤ 0.0502, a tenth of luigi_v4"
    assert cells(results, "L")[2].startswith("0.502 [")  # of a study
    assert cells(results, "L")[3:5] == ["–", "–"]
    assert main(["regimes", str(run_path), "--summary"]) == 0
    assert capsys.readouterr().out.strip() == text.strip()


def test_the_summary_names_the_peers_that_did_not_run(run_path):
    missing = {"status": "unsupported", "reason": "python3 has no package cuvs: install it there"}
    rows = [json.loads(line) for line in (run_path / "measurements.jsonl").read_text().splitlines()]
    rows.append(row_of("A1", "peer_cuvs", "fp16", **missing))
    rows.append(row_of("A1", "peer_torch", "fp16", **missing))
    write_lines(run_path / "measurements.jsonl", rows)
    text = summary(load_run(run_path))
    assert "; peers that did not run: peer_cuvs." in text
    _, results = two_tables(text)
    assert cells(results, "A1")[1].endswith("]; peer_torch did not run")
    assert cells(results, "C")[1].endswith("]")


def test_the_sustained_floor_stands_beside_that_of_a_burst(run_path):
    file = run_path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        row["floor_sustained_ms"] = 0.06 if row["precision"] == "fp16" else 0.05
    write_lines(file, rows)
    problems, _ = two_tables(summary(load_run(run_path)))
    assert cells(problems, "A1")[5] == "0.0500 (sustained 0.0600)"
    assert cells(problems, "C")[5] == "0.0500"


JOBS = {  # regime, version, precision: ms of the whole job
    ("A1", "peer_flash_kmeans", "fp16"): 80.0,
    ("A1", "fast_dense", "fp16"): 20.0,
    ("C", "peer_flash_kmeans", "tf32"): 165.0,
    ("C", "peer_torch", "fp32"): None,  # does not report it
    ("C", "fast_grid", "fp32"): 9.0,
    ("C", "fast_optin", "fp32"): 8.0,  # slower loop, faster job
    ("C", "fast_auto", "fp32"): 7.0,
    ("E", "fast_small", "fp32"): 0.4,
}


def test_whole_jobs_stand_beside_the_peers(run_path):
    file = run_path / "measurements.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        regime = next(
            (name for name, size in SIZES.items() if size == (row["n"], row["k"], row["dim"]))
        )
        job = JOBS.get((regime, row["version"], row["precision"]))
        row["end_to_end_ms"] = job and job * (1 + 0.001 * row["repetition"])
        if row["version"] == "fast_optin":
            row["noisy"] = True
            row["noise"] = {"reasons": ["other processes used 0.7 of 16 cores"]}
    write_lines(file, rows)
    # Rows without a floor are older, and count what a process needs only once.
    assert "end to end" not in summary(load_run(run_path))
    assert "end to end" not in every_version(load_run(run_path)).markdown()

    write_lines(file, [row | {"end_to_end_floor_ms": 2.0} for row in rows])
    *_, jobs = summary(load_run(run_path)).split("\n\n")
    header = ["regime", "floor end to end, ms", "best peer end to end, ms"]
    assert cells(jobs, "regime") == [*header, "ours end to end, ms", "faster by"]
    a1 = cells(jobs, "A1")
    assert a1[1] == "2.00"
    assert a1[2].startswith("`peer_flash_kmeans` fp16: 80.3 [")
    assert a1[3].startswith("`fast_dense` fp16: 20.1 [")
    assert a1[4].startswith("4.00× [")
    assert cells(jobs, "C")[3].startswith("`fast_optin` fp32: 8.03 [")
    assert cells(jobs, "C")[3].endswith("]†")
    assert "† noisy: 1 point, " in summary(load_run(run_path))
    assert cells(jobs, "E")[2:5:2] == ["–", "–"]
    assert "| L |" not in jobs  # neither side has one

    table = whole_jobs(load_run(run_path)).markdown()
    assert "a whole job: allocation, copies, set-up, 20 iterations and the answer" in table
    c = cells(table, "10⁷", "1,000", "2")  # N, K and dim
    assert c[3].startswith("`fast_grid` fp32: 0.0803 [")  # the shortest iteration
    assert c[4].startswith("9.04 [")
    assert c[5].startswith("`fast_optin` fp32: 8.03 [")  # the shortest job
    assert c[5].endswith("]†")
    assert "† noisy: 1 point, " in table
    every = every_version(load_run(run_path)).markdown()
    assert cells(every, "regime")[-1] == "ms end to end"
    assert cells(every, "C", "fast_grid", "fp32")[-1].startswith("9.04 [")
    assert cells(every, "C", "peer_torch", "fp32")[-1] == "–"
    assert cells(every, "C", "peer_faiss", "fp32")[-1] == ""


def test_a_readme_may_hold_it(run_path, tmp_path, capsys):
    readme = tmp_path / "README.md"
    block = "<!-- table:BEGIN {0} -->\n<!-- table:END {0} -->\n"
    readme.write_text(block.format("fast_regimes:regimes") + block.format("nowhere:regimes"))
    assert main(["readme", str(readme), str(run_path)]) == 0
    assert "`fast_dense` fp16" in readme.read_text()
    assert "table 'nowhere:regimes' belongs to none of the given runs" in capsys.readouterr().err
    readme.write_text(block.format("fast_regimes:regime"))
    assert main(["readme", str(readme), str(run_path)]) == 2
    assert (
        "must be RUN or RUN:PART, with one of regimes, peers, jobs, choices, counters, profiler"
        in capsys.readouterr().err
    )


def test_runs_without_regrets_or_regimes(run_path, make_run):
    """Rows from before there was a regret still load."""
    lines = (run_path / "measurements.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        del row["max_regret"], row["regret_bound"]
    write_lines(run_path / "measurements.jsonl", rows)
    assert cells(two_tables(summary(load_run(run_path)))[1], "C")[5:] == ["–", "–"]
    every = every_version(load_run(run_path)).markdown()
    assert cells(every, "C", "fast_grid", "fp32")[6:] == ["0", "–", "–"]
    with pytest.raises(RunError, match="no result of a regime"):
        summary(load_run(make_run(n=(1000,), k=(5,))))


def test_choices_are_judged_by_the_fastest_of_the_family(run_path, tmp_path, capsys):
    text = choices(load_run(run_path)).markdown()
    # 0.07 of fast_auto beside fast_grid's 0.08; fast_optin's 3.2 and other families do not count
    assert "more than 5% longer than the fastest other version at 0 of 1 problems" in text
    assert "at most 0.88× its time. At 0 it chose another version. Where" in text
    columns = ["chosen", "fast_auto, ms", "chosen alone, ms", "fastest", "fastest, ms"]
    assert cells(text, "precision")[4:9] == columns
    row = cells(text, "fp32", "10000000", "1000", "2")
    assert row[4:9] == ["fast_grid", "0.0703", "0.0803", "fast_grid", "0.0803"]
    assert row[9].startswith("0.875× [")
    assert "| fp32" not in choices_lost(load_run(run_path)).markdown()  # it lost nowhere

    slow = tmp_path / "slow"
    slow.mkdir()
    rows = [
        row_of("C", version, "fp32", iteration_ms=ms + r / 1e3, repetition=r, **more)
        for version, ms, more in (
            ("fast_auto", 0.9, {"chosen": "fast_optin/threads_per_block:128"}),
            ("fast_grid", 0.6, {}),
            ("fast_optin", 0.75, {}),
        )
        for r in range(6)
    ]
    write_lines(slow / "measurements.jsonl", rows)
    assert main(["choices", str(slow)]) == 0
    said = capsys.readouterr().out
    assert "at 1 of 1 problems, at most 1.50× its time. At 1 it chose another version, " in said
    assert "whose own row takes up to 1.25× that time" in said
    assert main(["choices", str(slow), "--summary"]) == 0
    assert capsys.readouterr().out == said
    write_lines(slow / "measurements.jsonl", rows[6:])
    assert main(["choices", str(slow)]) == 2
    assert "has no row of fast_auto or fast_cpu_auto" in capsys.readouterr().err


def test_choices_are_judged_for_each_source_of_points(tmp_path, capsys):
    rows = [
        row_of("C", version, "fp32", iteration_ms=ms + r / 1e3, repetition=r, data=data)
        | {"point": f"{version}/{data}", "data_name": data}
        for data, times in (("near", (0.2, 0.2)), ("far", (0.9, 0.9)))
        for version, ms in zip(("fast_auto", "fast_grid"), times, strict=True)
        for r in range(6)
    ]
    for name, chosen in (("data", rows), ("batch", [{**r, "batch": 8} for r in rows])):
        (tmp_path / name).mkdir()
        write_lines(tmp_path / name / "measurements.jsonl", chosen)
        assert main(["choices", str(tmp_path / name)]) == 0
        out = capsys.readouterr().out
        assert "at 0 of 2 problems" in out
        assert "| near |" in out
        assert "| far |" in out
    assert main(["tune", str(tmp_path / "data")]) == 2
    assert "has 2 sources of points for precision fp32" in capsys.readouterr().err
    # the table is for single problems
    assert main(["tune", str(tmp_path / "batch")]) == 2
    assert "no verified result" in capsys.readouterr().err


def test_choices_on_several_gpus_are_beside_what_had_as_many(tmp_path):
    path = tmp_path / "several"
    path.mkdir()
    rows = [
        row_of("C", version, "fp32", iteration_ms=ms + r / 1e3, repetition=r, **more)
        for version, ms, more in (
            ("fast_auto", 0.8, {"gpus": 1, "chosen": "fast_grid", "chosen_by": "tried: x"}),
            ("fast_auto", 0.5, {"gpus": 2, "chosen": "multi_grid/gpus:2"}),
            ("fast_grid", 0.8, {}),
            ("multi_grid", 0.9, {"gpus": 1, "family": "multi"}),
            ("multi_grid", 0.4, {"gpus": 2, "family": "multi"}),
        )
        for r in range(6)
    ]
    for row in rows:
        row["point"] += f"/gpus:{row.get('gpus')}"
    write_lines(path / "measurements.jsonl", rows)
    text = choices(load_run(path)).markdown()
    assert "more than 5% longer than the fastest other version at 1 of 2 problems" in text
    one = cells(text, "fp32", "10000000", "1000", "2", "1")
    assert one[5:11] == ["fast_grid", "tried", "0.802", "0.802", "fast_grid", "0.802"]
    two = cells(text, "fp32", "10000000", "1000", "2", "2")
    assert two[5:11] == ["multi_grid/gpus:2", "–", "0.502", "0.403", "multi_grid", "0.403"]
