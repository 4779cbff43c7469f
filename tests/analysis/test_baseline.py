"""Speedups over another version than the spec's baseline: --baseline."""

import pandas as pd
import pytest
from drawn import words

from analysis.__main__ import main
from analysis.figures import draw
from analysis.measures.points import all_points, gather
from analysis.measures.speedups import over
from analysis.measures.stats import ratio_interval
from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.pages.report import subject

OTHER = "luigi_v2_split"


def test_a_ratio_and_its_interval_are_over_that_version(make_run):
    run = over(load_run(make_run(n=(10**6,), k=(5,))), OTHER)
    points = all_points([run], run.baseline)
    ok = points[points["version"].ne(OTHER)].iloc[-1]
    own = points[points["version"].eq(OTHER)]
    base = own.loc[own["iteration_ms"].idxmin()]
    assert (ok["baseline"], ok["baseline_point"]) == (OTHER, base["point"])
    ratio = ratio_interval(base["times_ms"], ok["times_ms"])
    assert tuple(ok[["speedup", "speedup_low", "speedup_high"]]) == ratio
    assert ratio.low < ratio.value < ratio.high


def test_a_figure_names_it_wherever_it_names_a_baseline(make_run):
    run = over(load_run(make_run()), OTHER)
    said = " ".join(words(draw("speedup", gather([run], run.baseline), subject([run]))))
    assert f"speedup over {OTHER}" in said
    assert f"Time per iteration of {OTHER} over the version's" in said
    assert "cpu_sequential over" not in said


def test_figures_and_tables_take_it(make_run, tmp_path, capsys):
    path = str(make_run())
    given = ["--baseline", OTHER]
    assert main(["figures", path, "--only", "speedup", "--out", str(tmp_path), *given]) == 0
    assert set(pd.read_csv(tmp_path / "speedup.csv")["baseline"]) == {OTHER}
    assert main(["tables", path, "--out", str(tmp_path), *given]) == 0
    assert f"speedup over {OTHER} at its fastest for each problem." in (
        tmp_path / "medians.md"
    ).read_text().replace("\\", "")
    capsys.readouterr()
    assert main(["readme-table", path, *given]) == 0
    assert f"speedup over `{OTHER}`" in capsys.readouterr().out
    assert main(["readme-table", path, "--baseline", "best:cpu"]) == 0
    assert "the fastest CPU version" in capsys.readouterr().out


def test_a_report_has_it_in_its_pages_but_not_in_the_claims(make_run, tmp_path):
    path = str(make_run(name="k5", k=(5,), n=(10**7,)))
    plain, out = tmp_path / "plain", tmp_path / "other"
    assert main(["report", path, "-o", str(plain)]) == 0
    assert main(["report", path, "-o", str(out), "--baseline", OTHER]) == 0
    page = (out / "k5/index.html").read_text()
    assert f"speedup over {OTHER}" in page
    assert "speedup over cpu_sequential" not in page
    index = (out / "index.html").read_text()
    assert ">holds" in index
    given = f"-o {out} --baseline {OTHER}"
    assert given in index
    assert index.replace(given, f"-o {plain}") == (plain / "index.html").read_text()


def test_runs_of_different_baselines_are_drawn_over_one(make_run, tmp_path, capsys):
    one, other = make_run("one", gpu="NVIDIA A100"), make_run("other", baseline="cpu_openmp")
    command = ["figures", str(one), str(other), "--only", "speedup", "--out", str(tmp_path)]
    assert main(command) == 2
    assert "give --baseline" in capsys.readouterr().err
    assert main([*command, "--baseline", OTHER]) == 0


@pytest.mark.parametrize("command", ["figures", "tables", "readme-table", "report"])
def test_a_version_without_a_result_is_refused_with_those_that_have_one(
    make_run, tmp_path, capsys, command
):
    failed = (lambda row: row["version"] == OTHER, "failed", "ended by signal 11")
    path = make_run(n=(10_000,), k=(5,), faults=[failed])
    out = ["-o", str(tmp_path / "out")] if command == "report" else []
    for name in (OTHER, "luigi_v2", ""):
        assert main([command, str(path), *out, "--baseline", name]) == 2
        assert capsys.readouterr().err == (
            f"--baseline: '{name}' has no result in {path}; these versions have one: "
            "cpu_sequential, cpu_openmp, luigi_v1_fused, luigi_v3_shared_centroids, "
            "luigi_v4_device_update\n"
        )


def test_best_cpu_needs_a_version_on_the_cpu(make_run):
    failed = (lambda row: row["backend"] == "cpu", "failed", "ended by signal 11")
    run = load_run(make_run(n=(10_000,), k=(5,), faults=[failed]))
    with pytest.raises(RunError, match="'best:cpu' has no result"):
        over(run, "best:cpu")
