"""The sentences that stand for figures."""

import pandas as pd
from drawn import drawing_of

from analysis.pages.findings import finding


def test_a_phase_of_few_solves_is_not_what_takes_most(make_run):
    drawing = drawing_of(make_run(n=(10**6,), k=(100,)), "phases")
    rows = drawing.rows
    few = rows[rows["point"].eq(rows["point"].iloc[0])].head(1).assign(phase="rare")
    few["share_percent"] = 100.0
    assert rows["point"].nunique() > 2
    said = finding("phases", pd.concat([rows, few]), "title")
    assert "rare takes most" not in said
    assert "rare" not in said


def test_another_axis_than_threads_per_block_has_no_sentence_about_it(make_run):
    rows = drawing_of(make_run(), "tpb").rows
    assert "Threads per block matter most" in finding("tpb", rows, "title")
    assert "Threads per block" not in finding("tpb:samples_per_thread", rows, "title")
