import json
import re

import numpy as np
import pytest
from made_runs import measurement, write_lines

from analysis.__main__ import main
from analysis.measures import claims
from analysis.measures.claims import FAILS, HOLDS, UNJUDGED, Claim, judge, read_claims
from analysis.measures.expressions import ExpressionError, evaluate
from analysis.measures.lookup import MissingError, Place, Rows
from analysis.measures.places import PLACE
from analysis.measures.quantity import combine
from analysis.model.files import RunError
from analysis.model.load import load_run

HERE = Place(n=1000, k=4, dim=2)


def point(version, n=1000, precision="fp32", **axes):
    names = ["threads_per_block", "samples_per_thread", "threads", "processes", "gpus"]
    own = "".join(f"/{name}:{value}" for name, value in axes.items())
    return {
        "point": f"{version}/n:{n}{own}/{precision}",
        "version": version,
        "family": "a",
        "backend": "cuda" if version.startswith("fast") else "cpu",
        **{"n": n, "k": 4, "dim": 2, "precision": precision},
        **{name: axes.get(name) for name in names},
    }


@pytest.fixture
def rows_of(tmp_path):
    """rows_of({point: times}, counters=[…]) as a run that can be asked. `jobs` has the
    end_to_end_ms of each version."""

    def make(samples, counters=(), name="made", jobs=None, **values):
        path = tmp_path / name
        path.mkdir()
        lines = [
            measurement(of, iteration_ms=t, repetition=i, repetitions=len(times), **values)
            | ({"end_to_end_ms": jobs[of["version"]]} if jobs else {})
            for of, times in samples
            for i, t in enumerate(times)
        ]
        write_lines(path / "measurements.jsonl", lines)
        write_lines(path / "counters.jsonl", counters)
        spec = {"name": name, "baseline": "cpu_sequential"}
        (path / "spec.resolved.json").write_text(json.dumps(spec))
        return Rows(load_run(path))

    return make


SLOW = [40.0 + d / 10 for d in range(9)]
FAST = [4.0 + d / 100 for d in range(9)]


def claim(value, holds, at=(HERE,), **values):
    return Claim("c", "luigi", "there", "so it is", tuple(at), value, holds, **values)


def pair(rows_of, slow=SLOW, fast=FAST, **values):
    return rows_of([(point("cpu_sequential"), slow), (point("fast_a"), fast)], **values)


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ("value > 9", HOLDS),
        ("value >= 5", HOLDS),
        ("value < 9", FAILS),
        ("value > 11", FAILS),
        ("9 <= value <= 11", HOLDS),
        ("1 <= value <= 2", FAILS),
        ("20 < value < 30", FAILS),
        # the interval of the ratio lies around 10
        ("value > 10", UNJUDGED),
        ("10 <= value <= 20", UNJUDGED),
    ],
)
def test_a_verdict_is_of_the_whole_interval(rows_of, holds, verdict):
    (judgment,) = judge(claim("time('cpu_sequential') / time('fast_a')", holds), [pair(rows_of)])
    assert judgment.verdict == verdict
    assert judgment.value.value == pytest.approx(40.4 / 4.04)
    low, high = judgment.value.interval()
    assert 9.8 < low < 10 < high < 10.2


def test_no_verdict_from_too_few_samples(rows_of):
    rows = pair(rows_of, fast=FAST[:5])
    (judgment,) = judge(claim("time('cpu_sequential') / time('fast_a')", "value > 1"), [rows])
    assert judgment.verdict == UNJUDGED
    assert judgment.why == "fast_a has 5 samples, an interval needs 6"
    # the value is shown all the same, as what it is
    assert claims.value_text(judgment.value, "×") == "10.0× (no interval)"


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"threads": 16}, "; cpu_b has 16 threads; "),
        ({"threads": 16, "processes": 4}, "; cpu_b has 4 ranks of 16 threads; "),
        ({"processes": 4}, "; cpu_b has 4 ranks; "),
        ({"threads": 1, "processes": 1}, "dim 2; made"),
    ],
)
def test_the_cpu_versions_with_several_threads_are_named(rows_of, axes, said):
    rows = rows_of([(point("cpu_sequential"), SLOW), (point("cpu_b", **axes), FAST)])
    (judgment,) = judge(claim("solve('cpu_sequential') / solve('cpu_b')", "value > 9"), [rows])
    assert said in claims.sentence(judgment)
    assert "cpu_sequential" not in claims.sentence(judgment)


def test_a_speedup_is_shown_over_the_fastest_cpu_version_too(rows_of):
    quick = [t / 5 for t in SLOW]
    rows = rows_of(
        [(point("cpu_sequential"), SLOW), (point("cpu_quick"), quick), (point("fast_a"), FAST)]
    )
    told = claim("speedup('fast_a')", "value > 9", best_cpu="over_best_cpu('fast_a')", unit="×")
    (judgment,) = judge(told, [rows])
    assert judgment.value.value == pytest.approx(10)
    assert judgment.best_cpu.value == pytest.approx(2)
    assert claims.best_cpu_text(judgment).startswith("2.00× [")
    assert claims.best_cpu_text(judgment).endswith("] over cpu_quick")
    said = claims.sentence(judgment)
    assert ", over the best CPU code 2.00× [" in said
    assert "] over cpu_quick (holds if > 9×" in said


def test_a_speedup_over_the_best_cpu_code_has_that_of_the_whole_job(rows_of):
    quick, direct = [t / 10 for t in SLOW], [t / 5 for t in SLOW]
    versions = {"cpu_quick": quick, "cpu_direct": direct, "fast_a": FAST}
    jobs = {"cpu_quick": 900, "cpu_direct": 300, "fast_a": 100}
    rows = rows_of([(point(name), times) for name, times in versions.items()], jobs=jobs)
    ratio = evaluate("over_best_cpu('fast_a')", rows, HERE)
    assert (ratio.over, ratio.whole_job.over) == ("cpu_quick", "cpu_direct")
    assert ratio.value == pytest.approx(1)
    assert ratio.whole_job.value == pytest.approx(3)
    told = claim("time('fast_a')", "value > 0", best_cpu="over_best_cpu('fast_a')", unit="ms")
    (judgment,) = judge(told, [rows])
    assert " over cpu_quick (whole job: 3.00× [" in claims.best_cpu_text(judgment)
    job = evaluate("over_best_cpu('fast_a', 'end_to_end_ms')", rows, HERE)
    assert (job.over, job.whole_job) == ("cpu_direct, whole jobs", None)


def test_the_claims_own_denominator_is_not_shown_twice(rows_of):
    told = claim("speedup('fast_a')", "value > 9", best_cpu="over_best_cpu('fast_a')")
    (judgment,) = judge(told, [pair(rows_of)])
    assert claims.best_cpu_text(judgment) == ""


def test_a_cpu_version_that_was_not_verified_is_no_denominator(rows_of):
    rows = rows_of([(point("cpu_quick"), FAST), (point("fast_a"), FAST)], verified=None)
    with pytest.raises(MissingError, match="no verified CPU version solved its problem"):
        evaluate("over_best_cpu('fast_a')", rows, HERE)


def test_every_speedup_of_a_gpu_version_over_a_cpu_program_has_both_denominators():
    over_cpu = re.compile(
        r"speedup\('(?!cpu)\w+'[^/]*\)|\w+\('(cpu|python)_[^/]*/ \w+\('(?!cpu|python)"
    )
    about = [c for c in read_claims() if over_cpu.match(c.value) and " / speedup" not in c.value]
    assert len(about) > 10
    assert not [c.id for c in about if not c.best_cpu]


def test_missing_rows_are_named(rows_of):
    (judgment,) = judge(claim("time('fast_b')", "value > 1"), [pair(rows_of)])
    assert judgment.verdict == UNJUDGED
    assert judgment.why == "fast_b n=1,000 k=4 dim=2: no row"


def test_a_point_without_result_says_why(rows_of):
    bad = rows_of([(point("fast_a"), [1.0])], status="unsupported", reason="needs 3 B")
    with pytest.raises(MissingError, match="fast_a n=1,000 k=4 dim=2: unsupported, needs 3 B"):
        evaluate("time('fast_a')", bad, HERE)


def test_the_first_problem_that_can_be_judged_counts(rows_of):
    rows = pair(rows_of)
    places = (HERE._replace(n=10**6), HERE)
    (judgment,) = judge(claim("speedup('fast_a')", "value > 1", at=places), [rows])
    assert judgment.place == HERE
    assert judgment.verdict == HOLDS
    assert claims.measured_text(judgment) == "N = 1,000, K = 4, dim 2; in place of N = 10⁶"


def test_every_run_that_can_judge_does(rows_of):
    two = [pair(rows_of, name="a"), pair(rows_of, fast=SLOW, slow=FAST, name="b")]
    given = judge(claim("speedup('fast_a')", "value > 1"), two)
    assert [(j.run, j.verdict) for j in given] == [
        ("a on NVIDIA H200", HOLDS),
        ("b on NVIDIA H200", FAILS),
    ]


def test_ratios_are_within_one_run(rows_of):
    apart = [
        rows_of([(point("cpu_sequential"), SLOW)], name="a"),
        rows_of([(point("fast_a"), FAST)], name="b"),
    ]
    (judgment,) = judge(claim("speedup('fast_a')", "value > 1"), apart)
    assert judgment.verdict == UNJUDGED


def test_times_of_two_nodes_are_not_compared(rows_of, monkeypatch):
    rows = pair(rows_of)
    points = rows.points
    at = points["version"].map({"cpu_sequential": "0:n1", "fast_a": "0:n2"})
    monkeypatch.setattr(rows, "points", points.assign(**{PLACE: at}))
    for text in ("speedup('fast_a')", "time('cpu_sequential') - time('fast_a')"):
        (judgment,) = judge(claim(text, "value > 1"), [rows])
        assert judgment.verdict == UNJUDGED
        assert "(n1) and of" in judgment.why
    # each ratio is of one node
    (judgment,) = judge(
        claim(
            "time('fast_a') / time('fast_a') / (time('cpu_sequential') / time('cpu_sequential'))",
            "value >= 1",
        ),
        [rows],
    )
    assert judgment.verdict == HOLDS


def test_the_same_point_is_the_same_draw_and_cancels(rows_of):
    rows = pair(rows_of)
    one = evaluate("time('fast_a') / time('fast_a')", rows, HERE)
    assert one.interval() == (1.0, 1.0)
    apart = evaluate("time('fast_a') / time('cpu_sequential')", rows, HERE)
    assert apart.interval()[0] < apart.interval()[1]


def test_least_and_most_and_arithmetic_by_hand(rows_of):
    rows = pair(rows_of)
    most = evaluate("most(time('fast_a'), time('cpu_sequential'))", rows, HERE)
    assert most.value == 40.4
    mixed = evaluate("2 * least(time('fast_a'), time('cpu_sequential')) - 1", rows, HERE)
    assert mixed.value == pytest.approx(2 * 4.04 - 1)
    assert mixed.interval()[0] < mixed.value < mixed.interval()[1]


def test_tunables_left_open_are_at_their_fastest(rows_of):
    some = [
        (point("fast_a", threads_per_block=128), SLOW),
        (point("fast_a", threads_per_block=256), FAST),
    ]
    rows = rows_of(some)
    assert evaluate("time('fast_a')", rows, HERE).value == 4.04
    assert evaluate("time('fast_a', threads_per_block=128)", rows, HERE).value == 40.4


def test_several_precisions_must_be_told_apart(rows_of):
    rows = rows_of([(point("fast_a"), FAST), (point("fast_a", precision="fp64"), SLOW)])
    with pytest.raises(MissingError, match=r"several precision \(fp32, fp64\), none named"):
        evaluate("time('fast_a')", rows, HERE)
    assert evaluate("time('fast_a', precision='fp64')", rows, HERE).value == 40.4


def test_counters_are_taken_as_they_are(rows_of):
    of = point("fast_a")
    counter = {"point": of["point"], "version": "fast_a", "phase": "assign", "passes": 1}
    counter |= {"kernel": "reduce(float*)"}
    rows = rows_of(
        [(of, FAST[:2])],
        counters=[
            {**counter, "metric": "x.pct", "value": 40.0, "unit": "%"},
            {**counter, "metric": "y.pct", "value": None},
        ],
    )
    (judgment,) = judge(claim("counter('fast_a', 'x.pct')", "value >= 40"), [rows])
    assert judgment.verdict == HOLDS
    assert claims.value_text(judgment.value, "%") == "40.0% (profiled)"
    with pytest.raises(MissingError, match=r"no counter y\.pct"):
        evaluate("counter('fast_a', 'y.pct')", rows, HERE)


def test_counters_that_explain_are_shown_where_there_are_any(rows_of):
    of = point("fast_a")
    counter = {"point": of["point"], "version": "fast_a", "phase": "assign", "kernel": "a"}
    rows = rows_of(
        [(point("cpu_sequential"), SLOW), (of, FAST)],
        counters=[{**counter, "metric": "x.pct", "value": 98.5}],
    )
    because = ("counter('fast_a', 'x.pct')", "counter('fast_a', 'z.pct')")
    (judgment,) = judge(claim("speedup('fast_a')", "value > 99", because=because), [rows])
    assert judgment.verdict == FAILS
    assert [(text, value.value) for text, value in judgment.counters] == [(because[0], 98.5)]


def test_combine_keeps_the_reason_of_what_has_no_interval(rows_of):
    rows = pair(rows_of, fast=FAST[:3])
    ratio = evaluate("time('cpu_sequential') / time('fast_a')", rows, HERE)
    assert np.isnan(ratio.interval()).all()
    assert combine(lambda a: 2 * a, ratio).why == "fast_a has 3 samples, an interval needs 6"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("tim('fast_a')", "no function 'tim'; there are time, solve"),
        ("time('fast_a', tbp=1)", "unknown axis 'tbp'"),
        ("time()", "missing 1 required positional argument"),
        ("time('fast_a').value", "is neither a number, a call nor arithmetic"),
        ("__import__('os')", "no function '__import__'"),
        ("1 + 1", "measures nothing"),
        ("time('fast_a'", "was never closed"),
    ],
)
def test_wrong_expressions_are_said(rows_of, expression, message):
    with pytest.raises(ExpressionError, match=message):
        evaluate(expression, pair(rows_of), HERE)


GOOD = """
[[claim]]
id = "a"
study = "luigi"
where = "there"
says = "so"
at = [{n = 1000}]
value = "time('fast_a')"
holds = "value > 1"
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "units = 3", r"claim 1 \('a'\): unknown key 'units'; 'unit'\?"),
        (GOOD.replace('holds = "value > 1"', ""), r"claim 1 \('a'\): lacks holds"),
        (GOOD.replace("value > 1", "value = 1"), r"'value = 1' is not like 'value >= 4'"),
        (GOOD.replace("value > 1", "1 < 2"), "is not like"),
        (GOOD.replace("value > 1", "value == 1"), "is not like"),
        (GOOD.replace("n = 1000", "m = 1000"), "at: .*'m'"),
        (GOOD.replace("time('fast_a')", "time("), "never closed"),
        (GOOD + GOOD, "claim 'a' occurs twice"),
        ("[[claim]", "not valid TOML"),
    ],
)
def test_a_wrong_claims_file_is_said(tmp_path, text, message):
    file = tmp_path / "claims.toml"
    file.write_text(text)
    with pytest.raises(RunError, match=message):
        read_claims(file)


def test_a_good_claims_file_is_read(tmp_path):
    file = tmp_path / "claims.toml"
    file.write_text(GOOD)
    (one,) = read_claims(file)
    assert one.at == (Place(n=1000),)
    assert claims.condition(one) == "> 1"


def test_the_claims_command_prints_a_verdict_a_line(make_run, capsys):
    path = make_run(n=(10_000, 10_000_000), k=(5,))
    assert main(["claims", str(path), "--only", "luigi-k5-speedup,luigi-k5-fewer-points"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("luigi-k5-speedup: With K = 5 and 10⁷ points")
    assert "published 4×, here " in first
    assert first.endswith("(holds if ≥ 4×; N = 10⁷, K = 5, dim 2; sweep on NVIDIA H200): holds")
    assert second.endswith(": holds")


def test_unknown_claims_are_named(make_run, capsys):
    path = make_run(n=(10_000,), k=(5,))
    assert main(["claims", str(path), "--only", "luigi-k5-speedupp"]) == 2
    assert "unknown claim 'luigi-k5-speedupp'; did you mean 'luigi-k5-speedup'?" in (
        capsys.readouterr().err
    )


def test_the_rule_of_shared_memory_is_counted_point_by_point(make_run):
    beyond = [(lambda p: p["version"].startswith("luigi_v3") and p["k"] > 819, "unsupported", "no")]
    rows = Rows(load_run(make_run(n=(10_000,), k=(5, 1000), faults=beyond)))
    rule = "beyond_shared_memory('luigi_v3_shared_centroids')"
    assert evaluate(rule, rows, Place()).value == 0
    # a version that fits all the same contradicts the rule at each of its 4 points with K = 1000
    assert evaluate(rule.replace("v3_shared_centroids", "v2_split"), rows, Place()).value == 4


def test_more_threads_than_cores_judge_no_efficiency(rows_of):
    four = point("cpu_openmp", threads=4)
    samples = [(point("cpu_sequential"), SLOW), (four, FAST)]
    asked = claim("efficiency('cpu_openmp', threads=4)", "value >= 0.9")
    assert judge(asked, [rows_of(samples, name="fits", oversubscribed=False)])[0].verdict == HOLDS
    (judged,) = judge(asked, [rows_of(samples, name="over", oversubscribed=True)])
    assert judged.verdict == UNJUDGED
    assert judged.why.endswith("more threads than this machine has cores")
