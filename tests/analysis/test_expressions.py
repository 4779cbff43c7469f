"""The functions that the expression of a claim may call, one by one."""

from types import SimpleNamespace

import pandas as pd
import pytest

from analysis.measures.expressions import NAMES, ExpressionError, Functions, evaluate
from analysis.measures.lookup import MissingError, Place, Rows
from analysis.measures.quantity import Quantity
from analysis.model.load import load_run


@pytest.fixture
def functions(make_run):
    path = make_run(n=(10**6,), k=(100, 1000))
    return Functions(Rows(load_run(path)), Place(n=10**6, k=100, dim=2))


def counted(*rows):
    """Functions of a run whose only point has these rows of counters."""
    blank = {"phase": "assign", "kernel": None, "calls": None, "unit": "ns"}
    table = pd.DataFrame([{**blank, **row} for row in rows])
    answers = SimpleNamespace(point=lambda *_, **__: None, counters=lambda _: table)
    return Functions(answers, Place())


def test_times_are_medians_at_the_place(functions):
    # made_runs: 0.0021 ns per point × cluster × dimension and 0.26 ms
    time = functions.time("luigi_v1_fused")
    assert time.value == pytest.approx(0.68, rel=0.03)
    assert functions.solve("luigi_v1_fused").value == pytest.approx(20 * time.value)
    with pytest.raises(MissingError, match="no end_to_end_ms"):
        functions.end_to_end("luigi_v1_fused")


def test_keywords_override_the_place(functions):
    assert functions.time("luigi_v1_fused", k=1000).value == pytest.approx(4.46, rel=0.03)
    assert functions.place == Place(n=10**6, k=100, dim=2)
    slower = functions.time("luigi_v1_fused", threads_per_block=128).value
    assert slower > functions.time("luigi_v1_fused", threads_per_block=256).value
    with pytest.raises(ExpressionError, match="unknown axis 'tbp'"):
        functions.time("luigi_v1_fused", tbp=128)


def test_speedup_and_efficiency_divide_by_the_same_baseline(functions):
    one = functions.solve("cpu_sequential").value
    ratio = one / functions.solve("cpu_openmp", threads=4).value
    assert functions.speedup("cpu_openmp", "solve_ms", threads=4).value == pytest.approx(ratio)
    assert functions.efficiency("cpu_openmp", threads=4).value == pytest.approx(ratio / 4)


def test_a_counter_of_the_whole_phase_goes_before_those_of_its_kernels():
    kernels = [{"metric": "x", "kernel": name, "value": v} for name, v in (("a", 10), ("b", 30))]
    assert counted(*kernels).counter("v", "x").value == 20
    assert counted(*kernels, {"metric": "x", "value": 50}).counter("v", "x").value == 50
    with pytest.raises(MissingError, match="v: no counter x in phase 'update'"):
        counted(*kernels).counter("v", "x", phase="update")


def test_a_cpu_counter_is_the_sum_over_calls_and_phases():
    rows = [
        {"metric": "misses", "value": 10, "calls": 20},
        {"metric": "misses", "value": 3, "phase": "update"},
        {"metric": "cycles", "value": 1000},
    ]
    assert counted(*rows).cpu_counter("v", "misses").value == 203
    with pytest.raises(MissingError, match="v: no counter hits"):
        counted(*rows).cpu_counter("v", "hits")


def test_a_traced_share_is_of_what_ran_on_the_gpu_in_the_loop():
    rows = [
        *(("assign", "kernel", "solve", us) for us in (50, 70)),
        ("copy DtoH", "copy", "solve", 60),
        ("memset", "memset", "solve", 20),
        ("assign", "kernel", "setup", 1000),
        ("assign", "range", "solve", 500),
    ]
    events = pd.DataFrame(rows, columns=["name", "kind", "part", "duration_us"]).assign(point="p")
    here = SimpleNamespace(_events=events)
    traced = SimpleNamespace(
        point=lambda *_, **__: {"point": "p"}, activities=lambda point: Rows.activities(here, point)
    )
    functions = Functions(traced, Place())
    assert functions.traced_share("v", "assign").value == pytest.approx(60)
    assert functions.traced_share("v", "copy").value == pytest.approx(30)
    assert functions.traced_call_ms("v", "assign").value == pytest.approx(0.06)
    with pytest.raises(MissingError, match="v: no 'reduce' in the timeline"):
        functions.traced_share("v", "reduce")
    here._events = events.assign(point="another")
    with pytest.raises(MissingError, match="p: no timeline"):
        functions.traced_share("v", "assign")


def test_least_and_most_take_quantities_and_numbers():
    functions = counted()
    assert functions.least(Quantity(3.0), 2).value == 2
    assert functions.most(Quantity(3.0), 2).value == 3


@pytest.mark.parametrize("name", ["rows", "place", "_find", "__init__"])
def test_only_the_public_methods_can_be_called(functions, name):
    assert name not in NAMES
    with pytest.raises(ExpressionError, match=f"no function '{name}'; there are time, solve"):
        evaluate(f"{name}('luigi_v1_fused')", functions.rows, functions.place)
