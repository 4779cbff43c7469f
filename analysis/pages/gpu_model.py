"""The table of what several GPUs are predicted to take, in docs/scaling.md."""

from __future__ import annotations

from analysis.measures.gpu_model import (
    GPUS,
    LINK_GB_S,
    NODES,
    PER_NODE,
    STRONG,
    WEAK,
    Case,
    efficiency,
    iteration_ms,
    stream_efficiency,
    stream_gb_s,
)
from analysis.model.numbers import count_text, number_text
from analysis.pages.escape import Code, Words
from analysis.pages.table import Table

PLACES = [*((gpus, 1) for gpus in GPUS), (PER_NODE, NODES)]


def predictions() -> Table:
    """Time of an iteration in ms and efficiency, by problem and number of GPUs."""
    header = ["version", "N", "K", "dim", "precision", "scaling", "1 GPU, ms"]
    places = [
        f"{gpus * nodes} GPUs" + (f" of {nodes} nodes" if nodes > 1 else "")
        for gpus, nodes in PLACES
    ]
    rows = [_row(case, weak=False) for case in STRONG] + [_row(case, weak=True) for case in WEAK]
    streamed = [_cell(stream_gb_s(*at), " GB/s", stream_efficiency(*at)) for at in PLACES]
    any_size: list[Words] = ["–"] * 3
    alone = f"{number_text(LINK_GB_S)} GB/s"
    rows.append([Code("stream_wgmma"), *any_size, "fp16", "weak", alone, *streamed])
    return Table("model", "", [*header, *places], rows, {*header[1:4], header[6], *places})


def _row(case: Case, weak: bool) -> list[Words]:
    sizes = [count_text(case.n), count_text(case.k), str(case.dim), case.precision]
    cells = [_cell(iteration_ms(case, *at, weak), "", efficiency(case, *at, weak)) for at in PLACES]
    kind = "weak" if weak else "strong"
    return [Code(case.version), *sizes, kind, number_text(case.single_ms), *cells]


def _cell(value: float, unit: str, share: float) -> str:
    return f"{number_text(value)}{unit}, {share:.0%}"
