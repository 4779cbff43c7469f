"""The model of several GPUs, by hand."""

import json

import pytest

from analysis.measures.gpu_model import (
    GPUS,
    STRONG,
    WEAK,
    Case,
    efficiency,
    exchange_ms,
    iteration_ms,
    stream_efficiency,
    stream_gb_s,
)
from analysis.model.files import RunError
from analysis.model.load import load_run
from analysis.pages import gpu_model
from analysis.pages.gpu_model import measured, predictions


def case(**values):
    usual = {"single_ms": 10.0, "fixed_ms": 0.5, "sum_bytes": 1000}
    return Case("v", n=10**6, k=1000, dim=2, precision="fp32", **{**usual, **values})


def test_an_exchange_over_nccl_is_what_was_measured_on_two_gpus():
    assert case().megabytes == 1
    assert exchange_ms(case(), 2, 1, rest_ms=1) == pytest.approx(0.0195)
    assert exchange_ms(case(sum_bytes=20), 2, 1, rest_ms=1) == pytest.approx(0.0130)
    # nothing hides its launch
    assert exchange_ms(case(sum_bytes=20), 2, 1, rest_ms=0.02) == pytest.approx(0.0276)


def test_an_exchange_between_peers_is_one_way_and_twice_the_bytes():
    peers = case(peers=True, sum_bytes=396)
    assert exchange_ms(peers, 4, 1, rest_ms=1) == pytest.approx((1.24 / 2 + 3 * 2 * 1.0) / 1e3)


def test_nodes_cost_steps_and_the_bytes_of_each_adapter():
    one = exchange_ms(case(), 8, 1, rest_ms=1)
    many = exchange_ms(case(), 8, 8, rest_ms=1)
    # three doublings, and an eighth of a megabyte there and back at 45 GB/s
    assert many - one == pytest.approx((30 + 1 / 8 * 2 * 7 / 8 / 45 * 1e3) / 1e3)
    # memory of another node cannot be stored into
    assert exchange_ms(case(peers=True), 8, 8, rest_ms=1) == many


def test_efficiency_is_over_one_gpu():
    strong = 0.5 + 9.5 / 2 + 0.0195
    assert iteration_ms(case(), 2) == pytest.approx(strong)
    assert efficiency(case(), 2) == pytest.approx(10 / (2 * strong))
    assert iteration_ms(case(), 2, weak=True) == pytest.approx(10.0195)
    assert efficiency(case(), 2, weak=True) == pytest.approx(10 / 10.0195)


def test_more_gpus_are_never_more_efficient():
    for each, weak in [*((c, False) for c in STRONG), *((c, True) for c in WEAK)]:
        shares = [efficiency(each, gpus, weak=weak) for gpus in GPUS] + [
            efficiency(each, 8, 8, weak)
        ]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] < 1
        assert shares[-1] > 0


def test_links_add_up_until_the_hosts_memory_is_the_limit():
    assert stream_gb_s(2) == pytest.approx(110.8)
    assert stream_gb_s(8) == stream_gb_s(4) == 119
    assert stream_efficiency(2) == 1
    assert stream_efficiency(8, 8) == pytest.approx(119 / (8 * 55.4))


def test_the_table_has_a_row_for_each_problem():
    table = predictions()
    assert len(table.rows) == len(STRONG) + len(WEAK) + 1
    assert all(len(row) == len(table.header) for row in table.rows)


ONE = Case("multi_wgmma", 4 * 10**6, 1000, 16, "fp32", 1.0, 0.01, 8 * 17)


def test_what_was_measured_is_beside_the_prediction_from_one_gpu(make_run, monkeypatch):
    monkeypatch.setattr(gpu_model, "STRONG", (ONE,))
    monkeypatch.setattr(gpu_model, "WEAK", ())
    run = load_run(make_run(n=(4 * 10**6,), k=(1000,), dim=(16,), gpus=(1, 2, 4)))
    table = measured(run)
    assert [row[table.header.index("GPUs")] for row in table.rows] == ["2", "4"]
    of = run.measurements.groupby(["version", run.measurements["gpus"].fillna(0)])
    times = of["iteration_ms"].median()
    alone = times["fast_wgmma", 0]
    for row, gpus in zip(table.rows, (2, 4), strict=True):
        cells = dict(zip(table.header, row, strict=True))
        expected = 0.01 + (alone - 0.01) / gpus + exchange_ms(ONE, gpus, 1, rest_ms=1)
        assert float(cells["T(1), ms"]) == pytest.approx(alone, rel=0.01)
        assert float(cells["T(G) expected"]) == pytest.approx(expected, rel=0.01)
        took = times["multi_wgmma", gpus]
        assert float(cells["longer"].rstrip("%")) == pytest.approx(
            100 * (took / expected - 1), abs=0.51
        )
        share = float(cells["efficiency"].split("%")[0])
        assert share == pytest.approx(100 * alone / (gpus * took), rel=0.01)


def test_weak_scaling_is_over_one_gpu_with_as_many_points_as_each(make_run, monkeypatch):
    monkeypatch.setattr(gpu_model, "STRONG", ())
    monkeypatch.setattr(gpu_model, "WEAK", (ONE,))
    sizes = (4 * 10**6, 8 * 10**6, 16 * 10**6)
    run = load_run(make_run(n=sizes, k=(1000,), dim=(16,), gpus=(2, 4)))
    table = measured(run)
    where = [table.header.index(name) for name in ("N", "scaling", "GPUs")]
    assert [[row[i] for i in where] for row in table.rows] == [
        ["8×10⁶", "weak", "2"],
        ["16,000,000", "weak", "4"],
    ]


def test_ranks_count_with_all_their_gpus_if_these_are_of_one_host(make_run, monkeypatch):
    monkeypatch.setattr(gpu_model, "STRONG", (ONE,))
    monkeypatch.setattr(gpu_model, "WEAK", ())
    path = make_run(n=(4 * 10**6,), k=(1000,), dim=(16,), gpus=(2,))
    rows = [json.loads(line) for line in (path / "measurements.jsonl").read_text().splitlines()]
    for row in rows:
        if row["version"] == "multi_wgmma":
            row.update(gpus=1, processes=2, gpu_uuid="GPU-0b5c,GPU-b")
    (path / "measurements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    environment = json.loads((path / "environment.json").read_text())
    environment["gpus"] = [{"name": "NVIDIA H200", "uuid": uuid} for uuid in ("GPU-0b5c", "GPU-b")]
    (path / "environment.json").write_text(json.dumps(environment))
    table = measured(load_run(path))
    assert [row[table.header.index("GPUs")] for row in table.rows] == ["2"]
    del environment["gpus"][1]
    (path / "environment.json").write_text(json.dumps(environment))
    with pytest.raises(RunError, match="of one host"):
        measured(load_run(path))


def test_a_run_without_a_problem_of_the_model_has_no_table(make_run):
    with pytest.raises(RunError, match="no problem of the model"):
        measured(load_run(make_run(n=(4 * 10**6,), k=(1000,), gpus=(2,))))
